"""Files that rot while a broker is down: nothing that was acknowledged is lost, and no damaged copy is taken over.

`HEIRLOG_BIT_ROT=1-200` asks for a range of seeds.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest

from heirlog.sim.run import RunReport, run_seed

ASKED = os.environ.get("HEIRLOG_BIT_ROT", "")
FIRST, _, LAST = ASKED.partition("-")
SEEDS = range(int(FIRST), int(LAST or FIRST) + 1) if ASKED else (39, 48)


@pytest.fixture(scope="module")
def reports() -> list[RunReport]:
    return [run_seed(seed, scenario="bit-rot") for seed in SEEDS]


def test_every_seed_passes_and_loses_nothing(reports: list[RunReport]) -> None:
    failed = [report for report in reports if not report.passed]
    assert not failed, "\n\n".join(map(str, failed[:3]))
    assert sum(report.lost for report in reports) == 0


def test_damage_was_found_by_recovery_and_by_reads_and_was_copied_again(reports: list[RunReport]) -> None:
    total: Counter[str] = Counter()
    for report in reports:
        total.update(report.counters)
    assert {
        name
        for name in ("rot.log", "log.damaged-batch-found", "log.damaged-batch-kept", "log.log-cut-by-recovery")
        if not total[name]
    } == set()
    assert any("bit-flip at byte" in fault for report in reports for fault in report.faults)


def test_two_runs_of_a_seed_give_one_hash(reports: list[RunReport]) -> None:
    assert run_seed(SEEDS[0], scenario="bit-rot").hash == reports[0].hash
