"""Disks that fill up or answer EIO below brokers with three log directories: every rule holds on the way.

A run of this scenario is long (brokers restart all the time), so the suite has a few; `HEIRLOG_BROKEN_DISKS=1-200` asks
for a range of seeds.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest

from heirlog.sim.run import RunReport, run_seed

FIRST, _, LAST = os.environ.get("HEIRLOG_BROKEN_DISKS", "1-8").partition("-")
SEEDS = range(int(FIRST), int(LAST or FIRST) + 1)
MUST_HAPPEN = (
    "log.log-directory-offline",
    "unclean_registration",
    "clean_registration",
    "failover",
    "elr_election",
)


@pytest.fixture(scope="module")
def reports() -> list[RunReport]:
    return [run_seed(seed, scenario="broken-disks") for seed in SEEDS]


def test_every_seed_passes(reports: list[RunReport]) -> None:
    failed = [report for report in reports if not report.passed]
    assert not failed, "\n\n".join(map(str, failed[:3]))


def test_the_seeds_went_somewhere(reports: list[RunReport]) -> None:
    total: Counter[str] = Counter()
    for report in reports:
        total.update(report.counters)
    assert {name: total[name] for name in MUST_HAPPEN if total[name] == 0} == {}
    assert sum(report.acknowledged for report in reports) >= 100 * len(reports)
    faults = [fault for report in reports for fault in report.faults]
    for how in ("full", "read", "flush", "dead", "set back an hour"):
        assert any(fault.endswith(how) for fault in faults), how


def test_two_runs_of_a_seed_give_one_hash(reports: list[RunReport]) -> None:
    assert run_seed(SEEDS[0], scenario="broken-disks").hash == reports[0].hash


def test_messages_survive_the_wire() -> None:
    report = run_seed(SEEDS[0], scenario="broken-disks", wire=True)
    assert report.passed, str(report)
