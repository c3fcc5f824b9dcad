"""Runs of `durability`: what they measure, and that loss by Kafka's rule is a figure and not the end of the run."""

from __future__ import annotations

from heirlog.sim.durability.cell import Cell, Policy
from heirlog.sim.durability.failures import Failures
from heirlog.sim.durability.meter import Meter
from heirlog.sim.durability.play import FAILURES_MS, QUIET_MS
from heirlog.sim.run import run_seed
from heirlog.sim.simulation import Simulation
from heirlog.sim.world import World

LOSES = 12
"""A seed that loses records with the ELR off, and not with it."""


def test_without_elr_a_run_that_loses_records_goes_to_its_end() -> None:
    report = run_seed(LOSES, scenario=Cell(3, 2, Policy.ELR_OFF, 5).scenario)
    assert report.passed, str(report)
    assert report.lost > 0
    assert report.lost_reported == 0, "Kafka does not know what it lost"
    assert report.tolerated is not None and report.tolerated.check == "T4"
    assert f"{report.lost} of them lost, 0 of those reported" in str(report)
    assert "expected with these settings: T4: t-" in str(report)
    assert report.counters["durability.lossy-elections"] == 0
    assert abs(report.counters["durability.partition-ms"] - 2 * (FAILURES_MS + QUIET_MS)) <= 2


def test_balanced_loses_nothing_in_the_same_failures() -> None:
    report = run_seed(LOSES, scenario=Cell(3, 2, Policy.BALANCED, 5).scenario)
    assert report.passed, str(report)
    assert (report.lost, report.tolerated) == (0, None)


def test_all_cells_of_a_seed_have_the_same_failures() -> None:
    runs = [run_seed(LOSES, scenario=Cell(3, 2, policy, 5).scenario) for policy in (Policy.ELR_OFF, Policy.BALANCED)]
    failures = [run.counters["durability.failures"] for run in runs]
    assert failures[0] == failures[1] > 0
    assert runs[0].hash != runs[1].hash


def test_the_high_watermark_that_a_winner_brings_along_needs_no_copies() -> None:
    """Two lossy elections in a row: the second winner knows more as committed than what the first one had."""
    report = run_seed(6, scenario=Cell(3, 2, Policy.AGGRESSIVE, 4).scenario)
    assert report.passed, str(report)


def started(cell: Cell) -> tuple[Simulation, Meter]:
    simulation = Simulation(1, cell.plan(World(1).stream("plan")))
    simulation.begin()
    # so rare that none happens
    return simulation, Meter(simulation, Failures(simulation.cluster, 3_600_000, 1))


def test_the_meter_counts_the_time_without_a_leader_that_accepts_writes() -> None:
    simulation, meter = started(Cell(1, 1, Policy.BALANCED, 3600))
    cluster = simulation.cluster
    cluster.run_for(1000)
    cluster.kill("broker-1")
    cluster.run_for(5000)
    cluster.start("broker-1")
    simulation.wait("it leads again", simulation.all_led_and_in_sync, 10_000)
    cluster.run_for(2000)
    meter.end()
    counters = simulation.world.counters
    assert 5000 <= counters["durability.unavailable-ms"] <= 8000
    assert counters["durability.unavailable-max-ms"] == counters["durability.unavailable-ms"], "one partition of two"
    assert counters["durability.elections"] >= 1


def test_the_meter_counts_a_leader_that_may_not_accept_acks_all() -> None:
    simulation, meter = started(Cell(3, 3, Policy.BALANCED, 3600))
    cluster = simulation.cluster
    cluster.stop("broker-3")
    cluster.run_for(5000)
    meter.end()
    states = simulation.checker.committed.image.partitions.values()
    assert all(state.has_leader for each in states for state in each.values()), "two of three replicas are there"
    assert simulation.world.counters["durability.unavailable-ms"] >= 2 * 4000
