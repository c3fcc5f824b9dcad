"""What the operating system says of this process."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from heirlog.server.metrics import process


def values() -> dict[str, float]:
    found = [family for family in process.families() if family is not None]
    return {family.name: next(iter(family.samples))[1] for family in found}


def test_open_files_are_counted_without_listing_them(tmp_path: Path) -> None:
    before = process.open_files()
    files = [(tmp_path / str(number)).open("w") for number in range(7)]
    assert process.open_files() == before + 7
    for file in files:
        file.close()


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
