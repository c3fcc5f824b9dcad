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


def counts_waits() -> bool:
    """Whether the kernel does: it may have the file, with zeros only."""
    return process.HAS_SCHEDULED and Path(process.SCHEDULED).read_text().split()[2] != "0"


@pytest.mark.skipif(not counts_waits(), reason="the kernel does not count how long a thread waits for a CPU")
def test_a_thread_that_waits_for_a_cpu_is_as_busy_as_one_that_has_it() -> None:
    (*_, cpu), before = sorted(os.sched_getaffinity(0)), os.sched_getaffinity(0)
    other = subprocess.Popen([sys.executable, "-c", f"import os; os.sched_setaffinity(0, {{{cpu}}})\nwhile True: pass"])
    os.sched_setaffinity(0, {cpu})
    try:
        began_s, ran_s, busy_s = time.monotonic(), time.thread_time(), process.busy_s()
        # until the other one has had the CPU for a while
        while (process.busy_s() - busy_s) - (time.thread_time() - ran_s) < 0.05:
            assert time.monotonic() - began_s < 60
        # not longer than that: what the machine's host takes may be missing
        assert process.busy_s() - busy_s < time.monotonic() - began_s + 0.02
    finally:
        os.sched_setaffinity(0, before)
        other.kill()
        other.wait()


def test_without_proc_the_rest_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "HAS_PROC", False)
    assert values().keys() == {"process_cpu_seconds_total", "process_max_fds"}
    assert process.started_monotonic_s() <= time.monotonic()
