"""What the operating system says of this process."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from heirlog.server.metrics import process


def values() -> dict[str, float]:
    found = [family for family in process.families() if family is not None]
    return {family.name: next(iter(family.samples))[1] for family in found}


COUNTING = """
from heirlog.server.metrics.process import open_files
before = open_files()
files = [open(__file__) for _ in range(7)]
print(open_files() - before)
"""


def test_open_files_are_counted(tmp_path: Path) -> None:
    """In a process where nobody else opens any."""
    script = tmp_path / "count.py"
    script.write_text(COUNTING)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, env=environment, timeout=300)
    assert (done.stdout, done.stderr) == ("7\n", "")


def test_the_process_began_before_now_and_uses_what_it_uses() -> None:
    found = values()
    assert time.time() - 86_400 < found["process_start_time_seconds"] < time.time()
    assert process.started_monotonic_s() < time.monotonic()
    assert found["process_cpu_seconds_total"] == pytest.approx(sum(os.times()[:2]), abs=0.5)
    assert found["process_virtual_memory_bytes"] > found["process_resident_memory_bytes"] > 10_000_000


def test_without_proc_the_rest_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "HAS_PROC", False)
    assert values().keys() == {"process_cpu_seconds_total", "process_max_fds"}
    assert process.started_monotonic_s() <= time.monotonic()
