"""Whether memory and open files of a process are level."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from heirlog.drill.resource_usage import DELETED_OPEN_S, SAMPLES_KEPT, ProcessSamples, ResourceUsage

MB = 1_000_000


def life_of(memory: list[int], files: list[int] | None = None) -> ResourceUsage:
    process_samples = ProcessSamples(1, 100)
    for second, resident in enumerate(memory):
        process_samples.add(second, resident, files[second] if files else 50)
    return ResourceUsage(processes=[process_samples])


def test_a_process_that_warms_up_and_stays_is_level() -> None:
    assert life_of([20 * MB + min(second, 60) * MB for second in range(300)]).findings() == []


def test_a_process_that_grows_all_the_time_is_not() -> None:
    (finding,) = life_of([40 * MB + second * MB // 10 for second in range(300)]).findings()
    assert finding == "node 1: memory grew from 55.0 to 65.0 MB"


def test_a_peak_is_no_growth() -> None:
    assert life_of([90 * MB if second % 7 == 0 else 40 * MB for second in range(300)]).findings() == []


def test_open_files_are_judged_as_well() -> None:
    (finding,) = life_of([40 * MB] * 300, [100 + second for second in range(300)]).findings()
    assert finding == "node 1: open files grew from 249.5 to 349.5"


def test_a_short_life_is_not_judged() -> None:
    resource_usage = life_of([second * MB for second in range(30)])
    assert resource_usage.findings() == [] and resource_usage.as_json() == []


def test_samples_of_a_long_life_stay_few() -> None:
    process_samples = ProcessSamples(1, 100)
    for second in range(100_000):
        process_samples.add(second, 40 * MB, 50)
    assert len(process_samples.samples) < SAMPLES_KEPT
    assert process_samples.seconds > 99_000


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="there is no /proc here")
def test_a_deleted_file_that_stays_open_is_found_with_its_name(tmp_path: Path) -> None:
    resource_usage, path = ResourceUsage(), tmp_path / "00000000000000000000.log.deleted"
    with path.open("w"):
        path.unlink()
        for at_s in (0.0, DELETED_OPEN_S / 2):
            resource_usage.sample(at_s, {1: os.getpid()})
        assert not any(str(path) in finding for finding in resource_usage.findings())
        resource_usage.sample(DELETED_OPEN_S + 1, {1: os.getpid()})
    assert f"{path} (deleted) stayed open for more than {DELETED_OPEN_S:g} s" in resource_usage.findings()
