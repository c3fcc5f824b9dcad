"""The topics of a run, and what is special about each of them.

t    every run has it: scenarios and checks are about its partitions
c    compacted
r    deleted and recreated all the time
m    very many partitions
x    written in transactions only
y    written in transactions, and compacted
"""

from __future__ import annotations

from typing import Final

from heirlog.sim.plan import RunPlan

TOPIC: Final = "t"
COMPACTED: Final = "c"
RECREATED: Final = "r"
MANY: Final = "m"
TRANSACTIONAL: Final = "x"
CLEANED: Final = "y"

TRANSACTIONAL_PARTITIONS: Final = 2
COMPACTED_CONFIG: Final = {
    "cleanup.policy": "compact",
    "internal.segment.bytes": "3000",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "3600000",
}
CLEANED_CONFIG: Final = {**COMPACTED_CONFIG, "internal.segment.bytes": "1500", "delete.retention.ms": "4000"}

_OF_COMPACTED: Final = (f"{COMPACTED}-", f"{CLEANED}-")
_WITH_MARKERS: Final = (f"{TRANSACTIONAL}-", f"{RECREATED}-", f"{CLEANED}-")


def topics_of(plan: RunPlan) -> dict[str, int]:
    """With their partitions."""
    topics = {TOPIC: plan.partitions}
    if plan.compacted:
        topics[COMPACTED] = 1
    if plan.recreated:
        topics[RECREATED] = 1
    if plan.many:
        topics[MANY] = plan.many
    if plan.transactions:
        topics[TRANSACTIONAL] = TRANSACTIONAL_PARTITIONS
    if plan.cleaned_transactions:
        topics[CLEANED] = 1
    return topics


def is_compacted(partition: str) -> bool:
    return partition.startswith(_OF_COMPACTED)


def has_markers(plan: RunPlan, partition: str) -> bool:
    """Whether some of its offsets have markers of transactions and no record."""
    return plan.transactions and partition.startswith(_WITH_MARKERS)
