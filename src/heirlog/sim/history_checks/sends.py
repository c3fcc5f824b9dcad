"""What acks=all promises a producer: its own order, one leader per epoch, and min ISR copies.

    nonmonotonic-send    a batch got a lower offset than an earlier one of the same producer
    two-leaders          two brokers acknowledged records of a partition in one leader epoch
    few-copies           fewer than min ISR replicas had the records when they were committed

*Earlier* means: acknowledged before the other one was sent first. For an idempotent producer it means: sent first
before the other one, even if both were in flight. An election on a lossy basis that gave up one of the two batches
excuses the order, since its offsets were assigned again.

Source: Jepsen's Kafka workload (nonmonotonic-send); KIP-966 (min ISR); KIP-98 (order of an idempotent producer).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from heirlog.sim.history import AcknowledgedBatch, AcknowledgedBy, Copies, Finding, KnownLoss
from heirlog.sim.history_checks.losses import touches

NONMONOTONIC_SEND = "nonmonotonic-send"
TWO_LEADERS = "two-leaders"
FEW_COPIES = "few-copies"


def nonmonotonic_send(batches: Iterable[AcknowledgedBatch], losses: Collection[KnownLoss] = ()) -> list[Finding]:
    """Batches of one producer whose offsets contradict the order in which it sent them."""
    of: dict[tuple[str, str], list[AcknowledgedBatch]] = {}
    for one in batches:
        if not any(one.time_ms <= loss.time_ms and touches(loss, one.partition, one.first_offset) for loss in losses):
            of.setdefault((one.client, one.partition), []).append(one)
    return [finding for sends in of.values() for finding in _out_of_order(sends)]


def _out_of_order(sends: list[AcknowledgedBatch]) -> list[Finding]:
    """Of one producer and partition: each batch is compared with the highest one of those before it."""
    settled = sorted(sends, key=_settled)
    found: list[Finding] = []
    highest: AcknowledgedBatch | None = None
    next_settled = 0
    for one in sorted(sends, key=lambda each: each.sent):
        while next_settled < len(settled) and _settled(settled[next_settled]) < one.sent:
            earlier = settled[next_settled]
            next_settled += 1
            if highest is None or earlier.last_offset > highest.last_offset:
                highest = earlier
        if highest is not None and one.first_offset <= highest.last_offset:
            sentence = (
                f"{one.partition}: {one.client} sent a batch that got offset {one.first_offset} after one that had "
                f"got {highest.first_offset} to {highest.last_offset}"
            )
            found.append(Finding(NONMONOTONIC_SEND, sentence))
    return found


def _settled(one: AcknowledgedBatch) -> int:
    """From this tick on, what the producer sends gets a higher offset."""
    return one.sent if one.in_order else one.answered


def two_leaders(acknowledged_by: Iterable[AcknowledgedBy]) -> list[Finding]:
    """Leader epochs in which two brokers acknowledged."""
    found = []
    leader: dict[tuple[str, int], int] = {}
    for one in sorted(acknowledged_by, key=lambda each: (each.partition, each.leader_epoch, each.broker)):
        if leader.setdefault((one.partition, one.leader_epoch), one.broker) != one.broker:
            sentence = (
                f"{one.partition}: in leader epoch {one.leader_epoch} both broker "
                f"{leader[one.partition, one.leader_epoch]} and broker {one.broker} acknowledged records"
            )
            found.append(Finding(TWO_LEADERS, sentence))
    return found


def few_copies(copies: Iterable[Copies]) -> list[Finding]:
    """What was committed, and so acknowledged with acks=all, with fewer copies than min ISR."""
    return [
        Finding(
            FEW_COPIES,
            f"{one.partition}: what is below offset {one.end_offset} was committed while {one.copies} replicas had it; "
            f"min ISR is {one.min_isr}",
        )
        for one in copies
        if one.copies < one.min_isr
    ]
