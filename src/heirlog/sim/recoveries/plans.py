"""The plan of a script of unclean recovery: the strategy, which clients write and how, and what may be lost."""

from __future__ import annotations

from random import Random

from heirlog.controller.recovery.strategy import TIMEOUT
from heirlog.sim.clients.admin import AGGRESSIVE, BALANCED, NONE, STRATEGY
from heirlog.sim.plan import RunPlan

MANY = 40
"""Partitions of U15; `make bench` has ten thousand on real processes."""
LOG_DIRS = ("/data/a", "/data/b")
"""Of U18."""


def plan(random: Random, *, strategy: str = BALANCED, partitions: int = 1, tail: bool = False) -> RunPlan:
    """tail: a producer also writes with acks=1, so that logs end in records that are not replicated."""
    return RunPlan(
        partitions=partitions,
        idempotent=bool(random.randrange(0, 2)),
        leader_acks=tail,
        batch_records=random.randrange(5, 20),
        interval_ms=random.randrange(60, 200),
        manager=True,
        topic_config={STRATEGY: strategy},
    )


def balanced(random: Random) -> RunPlan:
    return plan(random)


def script_recreates_topic(random: Random) -> RunPlan:
    made = plan(random)
    made.script_recreates_topic = True
    return made


def keeps(random: Random) -> RunPlan:
    """Kills alone lose nothing, and another replica has a copy of what a power cut loses."""
    made = plan(random)
    made.keeps_everything = True
    return made


def keeps_with_three_controllers(random: Random) -> RunPlan:
    made = keeps(random)
    made.controllers = 3
    return made


def keeps_and_waits_briefly(random: Random) -> RunPlan:
    """The recovery waits without a limit for the quorum only."""
    made = keeps(random)
    made.config = {**made.config, TIMEOUT: "1000"}
    return made


def keeps_with_a_tail(random: Random) -> RunPlan:
    made = plan(random, tail=True)
    made.keeps_everything = True
    return made


def by_kafkas_rule(random: Random) -> RunPlan:
    """With the manager off, the last leader becomes leader again, with the log that it has left."""
    made = plan(random)
    made.manager, made.topic_config = False, {}
    return made


def aggressive(random: Random) -> RunPlan:
    return plan(random, strategy=AGGRESSIVE)


def none(random: Random) -> RunPlan:
    return plan(random, strategy=NONE)


def either(random: Random) -> RunPlan:
    return plan(random, strategy=(BALANCED, AGGRESSIVE)[random.randrange(0, 2)], tail=True)


def under_an_old_leader(random: Random) -> RunPlan:
    """With a min ISR of one, a replica that falls behind is neither in the ISR nor in the ELR."""
    made = plan(random, strategy=AGGRESSIVE, tail=True)
    made.min_isr, made.interval_ms = 1, random.randrange(30, 80)
    return made


def many(random: Random) -> RunPlan:
    made = plan(random, partitions=MANY)
    made.idempotent, made.batch_records, made.interval_ms = False, 2, 1500
    return made


def damaged(random: Random) -> RunPlan:
    made = plan(random)
    made.config = {"log.dirs": ",".join(LOG_DIRS)}
    return made
