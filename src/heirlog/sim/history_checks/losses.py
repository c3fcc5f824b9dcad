"""What an election on a lossy basis excuses: the records that it gave up, and offsets that are assigned again."""

from __future__ import annotations

from collections.abc import Collection

from heirlog.sim.history import AcknowledgedRecord, KnownLoss, Observed


def touches(loss: KnownLoss, partition: str, offset: int) -> bool:
    """Whether it gave up what was at this offset."""
    return loss.partition == partition and loss.start_offset <= offset


def excused(one: AcknowledgedRecord, losses: Collection[KnownLoss]) -> bool:
    """A lossy election may have taken it."""
    return any(one.time_ms <= loss.time_ms and touches(loss, one.partition, one.offset) for loss in losses)


def lineage_of(seen: Observed, losses: Collection[KnownLoss]) -> int:
    """How many lossy elections caused this offset to be assigned again before the record was written."""
    return sum(
        1 for loss in losses if touches(loss, seen.partition, seen.offset) and seen.leader_epoch >= loss.leader_epoch
    )


def separates(loss: KnownLoss, before: Observed, seen: Observed) -> bool:
    """Whether the loss explains a value at two offsets: it gave up one of them, and the winner has the value elsewhere,
    or the value was sent again after the loss.
    """
    older, newer = sorted((before, seen), key=lambda one: one.leader_epoch)
    if not touches(loss, older.partition, min(older.offset, newer.offset)):
        return False
    if older.leader_epoch < loss.leader_epoch <= newer.leader_epoch:
        return True
    return newer.leader_epoch < loss.leader_epoch and _epoch_of_winner(loss, newer.offset) != newer.leader_epoch


def explains(loss: KnownLoss, before: Observed, seen: Observed) -> bool:
    """Whether the loss explains two values at one offset.

    One of them was written after the loss; or the winner had a tail of an older epoch there that no client had read.
    """
    if not touches(loss, seen.partition, seen.offset) or before.leader_epoch == seen.leader_epoch:
        return False
    older, newer = sorted((before.leader_epoch, seen.leader_epoch))
    if loss.leader_epoch <= newer:
        return older < loss.leader_epoch
    return seen.leader_epoch < before.leader_epoch


def _epoch_of_winner(loss: KnownLoss, offset: int) -> int | None:
    """The leader epoch of what the winner has there."""
    return next((epoch for epoch, start in reversed(loss.winner) if start <= offset), None)
