"""Where a follower's log diverges from the leader's, found from one offset and the epoch just below it.

    its epoch and end are in the leader's log        -> valid: send the next records
    the leader's end of that epoch is below it       -> diverging: truncate to there, then fetch again
    the leader no longer has the next records        -> snapshot: fetch that first

Agreement below the offset follows from the epoch alone: one leader per epoch, and it only appends (log matching).

Trap: once the start of the log is deleted, the first epochs are known only as "before the oldest snapshot". So a
follower whose offset is exactly the log start is compared with that snapshot's epoch.

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


_VALID = Valid()


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
    """The leader's verdict on a fetch from `position`. `snapshots`: the leader's, oldest first."""
    real = [snapshot for snapshot in snapshots if snapshot != BOOTSTRAP]
    if position.offset == 0 and real:
        return NeedsSnapshot(real[-1])
    if position.offset == 0 and log_start_offset == 0:
        return _VALID
    if real and _before(position, log_start_offset, snapshots[0]):
        return NeedsSnapshot(real[-1])
    if real and SnapshotId(*position) == real[0]:
        return _VALID
    epoch, end_offset = end_offset_for_epoch(position.epoch)
    if epoch != position.epoch or end_offset < position.offset:
        return Diverging(epoch, end_offset)
    return _VALID


def _before(position: Position, log_start_offset: int, oldest: SnapshotId) -> bool:
    if position.offset < log_start_offset or position.epoch < oldest.epoch:
        return True
    return position.offset == log_start_offset == oldest.end_offset and position.epoch != oldest.epoch


def truncation_offset(
    leader: Diverging, own_end_offset: int, own_end_offset_for_epoch: Callable[[int], tuple[int, int]]
) -> int:
    """Where a follower truncates its log after a diverging answer; never above its own end."""
    epoch, end_offset = own_end_offset_for_epoch(leader.epoch)
    if epoch == leader.epoch:
        return min(end_offset, leader.end_offset, own_end_offset)
    # the leader's epoch is unknown here: all records above its predecessor's end came from other leaders
    return min(max(end_offset, 0), own_end_offset)
