"""Controllers' files that rot while one of them is down: nothing that was committed is lost.

`HEIRLOG_VOTER_ROT=1-200` asks for a range of seeds.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest

from heirlog.sim.run import RunReport, run_seed

ASKED = os.environ.get("HEIRLOG_VOTER_ROT", "")
FIRST, _, LAST = ASKED.partition("-")
SEEDS = range(int(FIRST), int(LAST or FIRST) + 1) if ASKED else (25, 28, 31)


@pytest.fixture(scope="module")
def reports() -> list[RunReport]:
    return [run_seed(seed, scenario="voter-rot") for seed in SEEDS]


def test_every_seed_passes(reports: list[RunReport]) -> None:
    failed = [report for report in reports if not report.passed]
    assert not failed, "\n\n".join(map(str, failed[:3]))


def test_damage_was_found_and_some_controllers_voted_again_and_others_were_replaced(reports: list[RunReport]) -> None:
    total: Counter[str] = Counter()
    for report in reports:
        total.update(report.counters)
    names = ("rot.metadata/log", "rot.voter-refused", "rot.voter-returned", "log.metadata-log-cut-by-recovery")
    assert {name for name in names if not total[name]} == set()


def test_two_runs_of_a_seed_give_one_hash(reports: list[RunReport]) -> None:
    assert run_seed(SEEDS[0], scenario="voter-rot").hash == reports[0].hash
