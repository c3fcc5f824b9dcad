"""The suite: many seeds, each judged after every event, and proof that they went somewhere."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from heirlog.sim import judgement, mixed_group_races, scenarios
from heirlog.sim.plan import RunPlan
from heirlog.sim.quorum_elections import ELECTIONS
from heirlog.sim.recoveries.catalogue import RECOVERIES
from heirlog.sim.recoveries.fail_over import FAIL_OVER_AT, STEPS
from heirlog.sim.run import RunReport, run_seed
from heirlog.sim.scenarios import SCENARIOS, SWARMS
from heirlog.sim.simulation import Simulation
from heirlog.sim.swarms import REGISTRATION_TIMEOUT
from heirlog.sim.transaction_races import ADD, COMPLETE, EXPIRE, HIT_AT, INIT, MARKERS, PREPARE
from heirlog.sim.world import World

ROOT = Path(__file__).resolve().parents[2]
LONG = ("U15",)
SUITE = {
    "last-replica-standing": range(1, 26),
    "kip-903-race": range(1, 21),
    "swarm": range(1, 19),
    "moves": range(2, 4),
    "feature-levels": (2, 3, 5, 9),
    "rolling-upgrade": (4, 9),
    "shared-cluster": (1, 7),
    "outages": (1, 3, 5),
    "controllers": (5, 9, 13, 14, 1006001871),
    "manager-switch": range(1, 4),
    "consumer-groups": range(1, 4),
    "mixed-groups": (11, 27),
    "share-groups": (5, 10),
    "replaced-share-leaders": (3,),
    "every-coordinator": (2,),
    "rotten-coordinators": (2,),
    "broken-coordinators": (2,),
    "transactions": (1, 2, 8, 9),
    "late-coordinators": (1,),
    "late-verifications": (1,),
    "zombie-copiers": (1,),
    "late-markers": (1,),
    "zombie-markers": (2,),
    "lost-markers": (5, 7),
    "used-up-ids": (3,),
    "forgotten-epochs": (2,),
    "expiring-ids": (1,),
    "two-phase-commit": (6, 11),
    "overtaken-offsets": (2,),
    "cleaned-transactions": (1,),
    "older-metadata": (*range(1, 5), 20, 29, 35),
    "accepted-metadata": (6, 7, 52, 82),
    "accepted-transactions": (6,),
    "seeded-aggressive": (1,),
    "whole-power-cut": (1, 16),
    "wrong-order": (1, 2),
    "failed-directory": (1, 2),
    "repeated-batches": range(1, 3),
    "overtaken-isr-change": (1, 2),
    "leader-epoch-jump": (1, 2),
    "late-fetch-answer": (1,),
    "late-registration": (3,),
    "loose-transport": (5,),
    "controller-power-cut": (1, 2),
    "forgotten-vote": (1,),
    "older-epoch-commit": (1,),
    "late-vote": (1,),
    "replaced-voter": (1,),
    "two-voter-changes": (1,),
    # five voters and three in turn
    **{name: (4 if index % 2 else 1,) for index, name in enumerate(ELECTIONS)},
    **{name: range(1, 2 if name in LONG else 3) for name in RECOVERIES},
    "U5-fail-over": (1, 3, 4, 5, 7, 9),
}
"""Scenario: its seeds in every `make test`."""
ONE_CONTROLLER = {"swarm": (5,), "outages": (2, 36, 1003000091, 1004000881)}
"""The same, in clusters that have a single controller. Seeds of `outages` above 30 broke a rule once."""
DRAWN = ("last-replica-standing", "kip-903-race", "swarm")
"""Scenarios that draw what happens, so that their seeds show how often a rare state is reached."""
ELSEWHERE = {
    "broken-disks": "test_broken_disks.py",
    "bit-rot": "test_bit_rot.py",
    "voter-rot": "test_voter_rot.py",
    "lying-disks": "test_lying_disks.py",
}
TWICE = (("last-replica-standing", 7), ("kip-903-race", 7), ("swarm", 7), ("swarm", 10), ("U5", 2))
ON_THE_WIRE = ("last-replica-standing", "kip-903-race", "swarm", "U3", "U5", "U13", "U16")
MUST_HAPPEN = (
    "elr_election",
    "last_known_wait",
    "lossy_election",
    "recovery",
    "recovery_missing_answer",
    "failover_mid_recovery",
    "log.quorum-leader-resigned",
    "log.metadata-log-truncated",
    "reader.rewound",
    "truncation",
    "judged.batches",
    "judged.copies",
    "judged.leaders",
    "judged.answers",
    "unclean_registration",
    "clean_registration",
    "under_min_isr",
    "failover",
    "leaderless",
    "disk.lost",
    "network.lost",
    "network.reset",
    "network.late-request",
    "log.log-compacted",
    "group.generations",
    "group.commits",
    "group.reads",
    "topic.remade",
    "disk.log-removed",
    "produce.duplicate",
    "start.failed",
    "fault.whole-power-cut",
    "fault.wrong-order",
    "fault.failing-start",
    "placed_in_racks",
    "manager_switched",
    "metadata_raised",
    "metadata_lowered",
    "metadata.refused",
    "metadata.accepted",
    "shared-cluster.throttled",
    "voter.removed",
    "voter.added",
    "voter.disk-lost",
    "log.quorum-voter-request",
    "log.metadata-quorum-failed",
    "log.metadata-snapshot-download",
    "controller.seeded",
    *(FAIL_OVER_AT + step for step in STEPS),
    "transaction.committed",
    "transaction.not-committed",
    "transaction.copied",
    "transaction.version-0",
    "transaction.version-2",
    "transaction.repeated-same",
    "transaction.repeated-refused",
    "transaction.late-markers",
    "transaction.late-verifications",
    "transaction.zombie-markers",
    "transaction.force-terminated",
    HIT_AT + "marker",
    HIT_AT + "successor",
    "log.transaction-timed-out",
    *(HIT_AT + step for step in (INIT, ADD, PREPARE, COMPLETE, MARKERS, EXPIRE)),
    *(mixed_group_races.HIT_AT + step for step in (mixed_group_races.UPGRADE, mixed_group_races.DOWNGRADE)),
)


def test_every_scenario_is_in_a_suite() -> None:
    assert sorted(SCENARIOS) == sorted({*SUITE, *ELSEWHERE}), "add the scenario to SUITE, with its seeds"
    for name, file in ELSEWHERE.items():
        assert f'scenario="{name}"' in (Path(__file__).parent / file).read_text("utf-8")


@pytest.mark.parametrize("scenario", SWARMS)
def test_every_seed_of_a_swarm_draws_its_nodes(scenario: str) -> None:
    plans = [SCENARIOS[scenario].plan(World(seed).stream("plan")) for seed in range(100)]
    drawn = Counter(plan.controllers for plan in plans)
    assert sorted(drawn) == [3, 5]
    assert drawn[5] >= len(plans) / 5
    assert {3, 4, 5, 7} - {plan.brokers for plan in plans} <= {3}, "more than three brokers in some seeds"
    assert {plan.replication_factor for plan in plans} == {2, 3, 4, 5}
    assert all(plan.replication_factor <= plan.brokers for plan in plans)
    assert sum(plan.replication_factor == 3 for plan in plans) >= len(plans) / 2
    assert 5 <= sum(bool(plan.racks) for plan in plans) <= len(plans) / 2


@pytest.mark.parametrize("scenario", SWARMS)
def test_a_third_of_the_seeds_of_a_swarm_or_all_have_transactions(scenario: str) -> None:
    plans = [SCENARIOS[scenario].plan(World(seed).stream("plan")) for seed in range(200)]
    some = [plan for plan in plans if plan.transactions]
    if scenario == "every-coordinator":
        assert some == plans
    else:
        assert len(plans) / 4 <= len(some) <= len(plans) / 2
    assert any(plan.used_up_epochs for plan in some)
    assert any(plan.transaction_version_changes for plan in some)
    assert any(plan.recreated for plan in some)


def test_every_scenario_is_in_the_list_of_its_module_and_on_the_page_of_the_simulation() -> None:
    page = (ROOT / "docs" / "internals" / "simulation.md").read_text("utf-8")
    scripts = [name for name in SCENARIOS if name not in RECOVERIES]
    assert [name for name in scripts if name not in (scenarios.__doc__ or "")] == []
    assert [name for name in SCENARIOS if f"`{name}`" not in page and f"| {name} |" not in page] == []


@pytest.fixture(scope="module")
def reports() -> list[RunReport]:
    drawn = [run_seed(seed, scenario=scenario) for scenario, seeds in SUITE.items() for seed in seeds]
    alone = [(scenario, seed) for scenario, seeds in ONE_CONTROLLER.items() for seed in seeds]
    return drawn + [run_seed(seed, scenario=scenario, controllers=1) for scenario, seed in alone]


def test_every_seed_passes(reports: list[RunReport]) -> None:
    failed = [report for report in reports if not report.passed]
    assert not failed, "\n\n".join(map(str, failed[:3]))


def test_the_drill_loses_nothing(reports: list[RunReport]) -> None:
    assert sum(report.lost for report in reports if report.scenario == "last-replica-standing") == 0


def test_the_seeds_went_somewhere(reports: list[RunReport]) -> None:
    assert len(reports) >= 120
    assert sum(report.acknowledged for report in reports) / len(reports) >= 500
    drawn = [report for report in reports if report.scenario in DRAWN]
    assert sum(report.counters["elr_election"] > 0 for report in drawn) >= 0.3 * len(drawn)
    assert sum(report.counters["recovery"] > 0 for report in reports) >= 0.05 * len(reports)
    swarm = [report for report in reports if report.scenario == "swarm"]
    assert sum(report.counters["recovery"] > 0 for report in swarm) >= 0.05 * len(swarm)
    total: Counter[str] = Counter()
    for report in reports:
        total.update(report.counters)
    assert {name: total[name] for name in MUST_HAPPEN if total[name] == 0} == {}


@pytest.mark.parametrize(("scenario", "seed"), TWICE)
def test_two_runs_of_a_seed_give_one_hash(scenario: str, seed: int, reports: list[RunReport]) -> None:
    (first, *_) = [report for report in reports if (report.scenario, report.seed) == (scenario, seed)]
    assert run_seed(seed, scenario=scenario).hash == first.hash


def hash_under(python: str | Path, hash_seed: int, path: list[str]) -> str:
    # a seed that draws a group, a compacted topic, one made again, and changes of min ISR
    program = "from heirlog.sim.run import run_seed; print(run_seed(1).hash)"
    environment = {"PYTHONHASHSEED": str(hash_seed), "PYTHONPATH": os.pathsep.join(path)}
    done = subprocess.run([python, "-c", program], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_the_hash_does_not_depend_on_pythonhashseed() -> None:
    assert hash_under(sys.executable, 0, sys.path) == hash_under(sys.executable, 4242, sys.path)


def test_the_hash_does_not_depend_on_the_version_of_python() -> None:
    other = ROOT / ".venv-other-python" / "bin" / "python"
    if not other.exists():
        pytest.skip("`make test` found only one supported Python on this machine")
    assert hash_under(other, 1, [str(ROOT / "src")]) == hash_under(sys.executable, 0, sys.path)


def test_without_elr_the_drill_loses_acknowledged_records() -> None:
    """KIP-966's motivation: what the feature is for."""
    reports = [run_seed(seed, scenario="last-replica-standing", elr=False) for seed in (*range(1, 10), 19)]
    broken = {str(report.violation) for report in reports if report.violation is not None}
    assert all("two brokers serve again" in each for each in broken), "without the last one no replica may lead"
    assert any(report.lost > 0 for report in reports)
    assert any(report.tolerated is not None and report.tolerated.check == "T4" for report in reports)


def test_brokers_that_give_up_before_the_first_election_are_started_again() -> None:
    plan = RunPlan(controllers=3, config={REGISTRATION_TIMEOUT: "500"})
    simulation = Simulation(1, plan)
    simulation.begin()
    starts = sum("start broker-1" in fault for fault in simulation.cluster.faults)
    assert starts > 1


def test_a_fault_does_not_hit_the_formatting_of_a_new_disk() -> None:
    """Seed 1006025029 of `controllers`: it took place while an earlier fault ended."""
    simulation = Simulation(1, RunPlan(controllers=3))
    simulation.begin()
    cluster = simulation.cluster
    cluster.kill("controller-100")
    was_up: list[bool] = []

    def fault() -> None:
        was_up.append(cluster.is_up("controller-100"))
        cluster.kill("controller-100", lose_unflushed=True)
        cluster.start("controller-100")

    cluster.after(0, "fault", fault)
    simulation.replace_voter_disk("controller-100")
    assert was_up == [False]
    cluster.start("controller-100")
    assert cluster.is_up("controller-100")


@pytest.mark.parametrize("scenario", ON_THE_WIRE)
def test_messages_survive_the_wire(scenario: str) -> None:
    report = run_seed(3, scenario=scenario, wire=True)
    assert report.passed, str(report)


def test_a_failing_seed_says_what_how_and_how_to_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(simulation: Simulation) -> None:
        raise ZeroDivisionError("made to fail")

    monkeypatch.setattr(judgement, "judge", broken)
    text = str(run_seed(1, scenario="last-replica-standing"))
    assert "FAILED crash: ZeroDivisionError: made to fail" in text
    assert "power-cut broker-" in text
    assert "replay: heirlog sim replay 1 --scenario last-replica-standing" in text
