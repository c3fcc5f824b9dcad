"""Disks that lie: a flush succeeds and does nothing, and the power goes.

No protocol survives that: the promise counts what was flushed as kept. So the run goes up to the first broken rule that
rests on flushes (`RESTS_ON_FLUSHES`), after such a disk has lost what it had reported as durable. The report names the
disk and what was lost. All other rules, and all runs without such a disk, are judged as always.

    controllers   what they have committed is gone: brokers refuse the older metadata, or a quorum forgets a vote
    broker        after a clean stop its log is shorter than its clean-shutdown file says; if the checkpoint of the
                  recovery points survives, the broker notices
"""

from __future__ import annotations

from random import Random
from typing import Final

from heirlog.sim.history import Finding
from heirlog.sim.plan import RunPlan
from heirlog.sim.simulation import Simulation

ROUNDS = 4
STOP_LIMIT_MS = 20_000

RESTS_ON_FLUSHES: Final = frozenset(
    {
        *("T4", "T5", "T6", "T7", "T8a", "T8b", "T9", "T10", "T11", "T15", "T16", "T18", "R1", "R2"),
        *("L1", "L3", "L5", "L6", "L7", "Q1", "Q2", "Q3", "Q4", "Q5", "Q6", "Q7", "Q8", "Q10", "Q14"),
        *("lost-write", "unseen", "inconsistent-offsets", "duplicate", "poll-skip", "high-watermark-regression"),
        *("lost-key", "lost-commit", "loss-report", "recovery-answers", "recovery-choice", "liveness"),
    }
)
"""The rules that a lost flush can break. The others say what nodes do, whatever their disks have lost."""


def lying_disks_plan(random: Random) -> RunPlan:
    return RunPlan(
        partitions=random.randrange(1, 3),
        controllers=(1, 3)[random.randrange(0, 2)],
        idempotent=bool(random.randrange(0, 2)),
        batch_records=random.randrange(3, 10),
        config={"log.flush.interval.messages": "1"},
    )


def lying_disks(simulation: Simulation) -> None:
    random, cluster = simulation.random, simulation.cluster
    brokers = cluster.broker_names
    random.shuffle(brokers)
    liars = cluster.controller_names if random.randrange(0, 2) else brokers[:1]
    for name in liars:
        cluster.lie_about_flushes(name)
    for _ in range(ROUNDS):
        cluster.run_for(random.randrange(500, 2500))
        # leaders and ISRs change: there are metadata to lose, and the log of one broker ends before the others
        other = brokers[random.randrange(1, len(brokers))]
        cluster.kill(other)
        cluster.run_for(random.randrange(0, 1500))
        cluster.start(other)
        for name in liars:
            if random.randrange(0, 2):
                cluster.stop(name)
                cluster.run_until(lambda name=name: not cluster.is_up(name), STOP_LIMIT_MS)  # type: ignore[misc]
            cluster.kill(name, lose_unflushed=True)
        cluster.run_for(random.randrange(0, 1000))
        for name in liars:
            cluster.start(name)


def excused_by_lies(simulation: Simulation, broken: Finding) -> Finding | None:
    """The broken rule with the disks that explain it; None if no disk does, or if the rule rests on no flush."""
    liars = simulation.cluster.disks_that_lied()
    if not liars or broken.check not in RESTS_ON_FLUSHES:
        return None
    return Finding(broken.check, f"{' and '.join(liars)} lost what a flush had called durable; {broken.sentence}")
