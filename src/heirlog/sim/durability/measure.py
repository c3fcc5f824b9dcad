"""One run of `durability` as one row: what was acknowledged, lost and unavailable, and how to repeat the run."""

from __future__ import annotations

import time
from dataclasses import dataclass

from heirlog.sim.durability.cell import Cell
from heirlog.sim.run import RunReport, run_seed


@dataclass(frozen=True, slots=True)
class Measurement:
    """Names and units are those of the table's columns."""

    scenario: str
    seed: int
    acknowledged: int
    """Records acknowledged with acks=all."""
    lost: int
    """Those of them that cannot be read in the end."""
    lost_reported: int
    """Those of the lost ones that are in the range of a loss report."""
    unavailable_ms: int
    """Summed over the partitions: virtual time in which no leader accepts acks=all writes."""
    unavailable_max_ms: int
    """Of the partition that was unavailable longest."""
    partition_ms: int
    """Virtual time that was observed, summed over the partitions."""
    failures: int
    """Of brokers."""
    elections: int
    lossy_elections: int
    """Elections of a replica that was in neither ISR nor ELR."""
    events: int
    cpu_s: float
    complete: bool
    """The run was played to its end. The figures of one that was cut off are those up to there."""
    tolerated: str
    """The rule that Kafka breaks by design in this cell, if this run did; else empty."""
    check: str
    """The check that failed, if one did; else empty. It may have cut the run off."""
    sentence: str
    """What it said."""
    hash: str
    """Of the run's trace: a replay that gives the same one is the same run."""
    replay: str
    """The command that repeats the run."""


def measure(cell: Cell, seed: int) -> Measurement:
    began_s = time.process_time()
    report = run_seed(seed, scenario=cell.scenario)
    return _measurement(report, round(time.process_time() - began_s, 3))


def _measurement(report: RunReport, cpu_s: float) -> Measurement:
    counters, violation = report.counters, report.violation
    return Measurement(
        scenario=report.scenario,
        seed=report.seed,
        acknowledged=report.acknowledged,
        lost=report.lost,
        lost_reported=report.lost_reported,
        unavailable_ms=counters["durability.unavailable-ms"],
        unavailable_max_ms=counters["durability.unavailable-max-ms"],
        partition_ms=counters["durability.partition-ms"],
        failures=counters["durability.failures"],
        elections=counters["durability.elections"],
        lossy_elections=counters["durability.lossy-elections"],
        events=report.events,
        cpu_s=cpu_s,
        complete=report.complete,
        tolerated="" if report.tolerated is None else report.tolerated.check,
        check="" if violation is None else violation.check,
        sentence="" if violation is None else violation.sentence,
        hash=report.hash,
        replay=report.replay_command,
    )
