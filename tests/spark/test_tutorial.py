"""The tutorial docs/tutorials/spark.md, command by command: each does what the page says it does.

Left out are the environment and `heirlog up`: the cluster of the tests stands in for it. `heirlog pipeline` runs in
this process, on the session that is there; with HEIRLOG_ALL_KILLS in a process of its own, as it stands on the page.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from heirlog.cli.app import run
from heirlog.testing.cluster import Cluster

PAGE = (Path(__file__).parents[2] / "docs" / "tutorials" / "spark.md").read_text(encoding="utf-8")
ALONE = "HEIRLOG_ALL_KILLS" in os.environ


@pytest.fixture
def here(tmp_path: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A terminal: an empty folder, the commands of this environment, a cluster to talk to."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEIRLOG_BOOTSTRAP", cluster.bootstrap_servers)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield tmp_path
    for number, handler in handlers.items():
        signal.signal(number, handler)


def test_each_command_of_the_tutorial_does_what_the_page_says(
    here: Path, spark: SparkSession, cluster: Cluster, capfd: Any
) -> None:
    blocks = re.findall(r"^```(\w+)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    assert [kind for kind, _ in blocks if kind != "text"] == ["sh", "python", "sh", "sh", "sh", "sh"]
    said = ""
    for kind, text in blocks:
        if kind == "text":
            missing = [line for line in text.splitlines() if line not in said]
            assert not missing, f"{missing} not in: {said}"
            continue
        if kind == "sh":
            run_in_a_shell(text)
        else:
            # relative places are relative to where the shared JVM was started
            exec(
                re.sub(r'"(first-\w+)"', rf'"{here}/\1"', text).replace("localhost:9092", cluster.bootstrap_servers), {}
            )
        said = capfd.readouterr().out
    assert not list(here.iterdir()), "the last commands remove everything"


def run_in_a_shell(block: str) -> None:
    lines = block.splitlines(keepends=True)
    for is_pipeline, some in groupby(lines, lambda line: line.startswith("heirlog pipeline") and not ALONE):
        if not is_pipeline:
            subprocess.run(["bash", "-e", "-c", "".join(some)], check=True)
            continue
        for line in some:
            assert run(line.split()[1:]) == 0, line
