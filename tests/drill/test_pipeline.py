"""`heirlog drill pipeline` as a user runs it: the job is killed three times, the table holds each line once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from cli.json_shapes import mistakes
from patience import eventually

from heirlog.drill import pipeline
from heirlog.drill.observe import DrillFailure


@pytest.mark.parametrize("form", [[], ["--quick", "--secure"]], ids=["four JVMs", "quick, on a closed cluster"])
@pytest.mark.skipif("HEIRLOG_ALL_KILLS" not in os.environ, reason="a minute and a half of JVMs: runs in .ci/run")
def test_the_table_counts_each_line_once_though_the_job_was_killed_three_times(form: list[str], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "heirlog", "drill", "pipeline", "--records", "12000", "--json", *form]
    command += ["--out", str(tmp_path)]
    # JVMs in turn, each too short-lived for the optimising compiler
    environment = {**os.environ, "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert ended.returncode == 0, ended.stderr
    verdict = json.loads(ended.stdout)
    assert not mistakes(command[3:], ended.stdout)
    assert verdict["passed"] and verdict["rows_in"] == verdict["lines"] == 12_000
    assert len(verdict["kills"]) == 3 and not verdict["wrong_modules"]
    picture = (tmp_path / "timeline.svg").read_text()
    assert "batches in the table" in picture and picture.count("killed: ") == 3


@pytest.mark.parametrize("doing", ["time.sleep(600)", "while True: pass"], ids=["idle", "slow"])
def test_a_job_is_stuck_when_it_does_nothing_and_not_when_it_is_slow(
    doing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "STUCK_S", 0.0)
    monkeypatch.setattr(pipeline, "WORK_S", 1.0)
    # of a further level: JVMs are children of the driver
    script = f"import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time\\n{doing}'])"
    job = pipeline._Job(tmp_path, "job", "-c", script)
    try:
        deadline = pipeline._Deadline(job)
        if doing.startswith("while"):
            eventually(lambda: sum(job.cpu_s().values()) >= 1.0, "the job works", within_s=120)
            deadline.check()
            monkeypatch.setattr(pipeline, "STUCK_MAX_S", 0.0)
        with pytest.raises(DrillFailure, match="job is stuck"):
            deadline.check()
    finally:
        job.end()
