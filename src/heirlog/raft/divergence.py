"""Where a follower's log stops agreeing with the leader's: judged from one offset and the epoch just below it.

    its epoch and end are in the leader's log        -> valid: send what follows
    the leader's end of that epoch lies below it     -> diverging: truncate to there, then ask again
    the leader no longer has what would follow       -> snapshot: fetch that first

Agreement below the offset follows from the epoch alone: one leader per epoch, and it only appends (log matching).

Trap: with the prefix cleaned away, the first epochs are known only as "before the oldest snapshot", so a follower that
stands exactly at the log start is compared with that snapshot's epoch.

Source: KIP-595 "Fetch", KIP-630 for the snapshot answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from heirlog.raft.snapshot import BOOTSTRAP, SnapshotId


class Position(NamedTuple):
    """A fetch offset and the epoch of the record just below it (0: nothing below it)."""

    offset: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Valid:
    pass


@dataclass(frozen=True, slots=True)
class Diverging:
    epoch: int
    end_offset: int


@dataclass(frozen=True, slots=True)
class NeedsSnapshot:
    id: SnapshotId


Verdict: TypeAlias = Valid | Diverging | NeedsSnapshot


def judge(
    position: Position,
    log_start_offset: int,
    snapshots: Sequence[SnapshotId],
    end_offset_for_epoch: Callable[[int], tuple[int, int]],
) -> Verdict:
    """What the leader says to a fetch from `position`. `snapshots`: its own, oldest first."""
    real = [snapshot for snapshot in snapshots if snapshot != BOOTSTRAP]
    if position.offset == 0 and real:
        return NeedsSnapshot(real[-1])
    if position.offset == 0 and log_start_offset == 0:
        return Valid()
    if real and _before(position, log_start_offset, real[0]):
        return NeedsSnapshot(real[-1])
    if real and SnapshotId(*position) == real[0]:
        return Valid()
    epoch, end_offset = end_offset_for_epoch(position.epoch)
    if epoch != position.epoch or end_offset < position.offset:
        return Diverging(epoch, end_offset)
    return Valid()


def _before(position: Position, log_start_offset: int, oldest: SnapshotId) -> bool:
    if position.offset < log_start_offset or position.epoch < oldest.epoch:
        return True
    return position.offset == log_start_offset == oldest.end_offset and position.epoch != oldest.epoch


def truncation_offset(
    leader: Diverging, own_end_offset: int, own_end_offset_for_epoch: Callable[[int], tuple[int, int]]
) -> int:
    """Where a follower cuts its log on a diverging answer; never above its own end."""
    epoch, end_offset = own_end_offset_for_epoch(leader.epoch)
    if epoch == leader.epoch:
        return min(end_offset, leader.end_offset, own_end_offset)
    # the leader's epoch is unknown here: all that is above its predecessor's end came from other leaders
    return min(max(end_offset, 0), own_end_offset)
