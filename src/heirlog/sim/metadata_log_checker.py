"""Compares the metadata logs of the controllers of a quorum with each other, and with what was committed.

Q4     two logs that have a record of one epoch at one offset are equal up to there
Q6     what a leader takes as committed is flushed on a majority of the voters that it has in force
Q7     what a controller takes as committed never shrinks, and is in its log; a leader commits records of earlier epochs
       only together with one of its own
Q9     the active controller leads the epoch that it acts in, and has applied a record of it
Q14    a snapshot ends where a committed batch ends, and names its epoch; a log that does not begin at 0 has a snapshot
       of what is missing

Two logs are equal below a record if they have the same batch there and the same epoch before it, and so on down to the
first one. So each batch is looked at once in each log.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from heirlog.protocol.batch import BatchHeader, walk
from heirlog.raft.control import Voter
from heirlog.raft.epoch_state import EpochState, QuorumRole
from heirlog.raft.replica_key import ReplicaKey
from heirlog.raft.snapshot import SnapshotId
from heirlog.raft.votes import majority

READ_BYTES = 1 << 20


class ComparedLog(Protocol):
    """What is read of `heirlog.raft.metadata_log.MetadataLog`."""

    @property
    def start_offset(self) -> int: ...

    @property
    def end_offset(self) -> int: ...

    @property
    def flushed_offset(self) -> int: ...

    @property
    def voters(self) -> tuple[Voter, ...]: ...

    @property
    def snapshots(self) -> Sequence[SnapshotId]: ...

    def epoch_below(self, offset: int) -> int: ...

    def read_bytes(self, offset: int, max_bytes: int, upto_offset: int) -> bytes: ...


class ActiveController(Protocol):
    """What is read of `heirlog.controller.controller.Controller`."""

    @property
    def is_active(self) -> bool: ...

    @property
    def epoch(self) -> int: ...


@dataclass(slots=True)
class _Copy:
    """A controller's log, as it was seen last."""

    log: ComparedLog
    key: ReplicaKey
    end: int
    """It was compared up to here."""
    epoch: int | None
    """Of the record below `end`; None if the log does not say."""
    flushed_before: int = 0
    """What an earlier process had flushed; the log itself knows only what it has flushed since it was opened."""
    high_watermark: int = -1
    snapshots: list[SnapshotId] = field(default_factory=list)

    @property
    def flushed_offset(self) -> int:
        return max(self.log.flushed_offset, min(self.flushed_before, self.log.end_offset))


class MetadataLogChecker:
    """broken(rule, sentence): called for each broken rule."""

    def __init__(self, broken: Callable[[str, str], None]) -> None:
        self._broken = broken
        self._batches: dict[tuple[int, int], tuple[int, int, int]] = {}
        """By the offset after a batch and its epoch: its base offset, its CRC, and the epoch before it."""
        self._copies: dict[str, _Copy] = {}
        self._lost: list[_Copy] = []
        """On disks that were replaced since: what they acknowledged before counts."""

    def observe(self, name: str, key: ReplicaKey, log: ComparedLog, high_watermark: int, state: EpochState) -> None:
        """After an event of the controller on this machine."""
        copy = self._copies.get(name)
        if copy is None or copy.log is not log:
            start = max(log.start_offset, 0)
            flushed_before = 0 if copy is None else copy.flushed_offset
            copy = self._copies[name] = _Copy(log, key, start, _epoch_below(log, start), flushed_before)
        self._compare(name, copy)
        if copy.snapshots != log.snapshots:
            copy.snapshots = list(log.snapshots)
            self._check_snapshots(name, copy, high_watermark)
        if high_watermark != copy.high_watermark:
            self._check_high_watermark(name, copy, high_watermark, state)
            copy.high_watermark = high_watermark

    def disk_changed(self, name: str) -> None:
        """This controller has another disk now."""
        lost = self._copies.pop(name, None)
        if lost is not None:
            self._lost.append(lost)

    def check_active(self, name: str, controller: ActiveController, state: EpochState, applied_epoch: int) -> None:
        """applied_epoch: of the last record that the controller has received."""
        if not controller.is_active:
            return
        if state.role is not QuorumRole.LEADER or controller.epoch != state.epoch:
            self._broken(
                "Q9", f"{name} is active in epoch {controller.epoch}, and is {state.role.value} of {state.epoch}"
            )
        if applied_epoch != state.epoch:
            self._broken("Q9", f"{name} is active in epoch {state.epoch}, and has not applied a record of it")

    def _compare(self, name: str, copy: _Copy) -> None:
        log, end = copy.log, copy.log.end_offset
        if end == copy.end and log.epoch_below(end) == copy.epoch:
            return
        begin = max(log.start_offset, 0)
        if copy.end > end or log.epoch_below(copy.end) != copy.epoch:
            # it was truncated: what is left was compared before, and is compared again if others took its place
            offset = end if copy.end > end else begin
        else:
            offset = max(copy.end, begin)
        before = copy.epoch if offset == copy.end else _epoch_below(log, offset)
        while offset < end:
            begins = offset
            for _, header in walk(log.read_bytes(offset, READ_BYTES, end)):
                if header.base_offset < offset:
                    continue
                self._check_batch(name, header, before)
                before, offset = header.leader_epoch, header.next_offset
            if offset == begins:
                break
        copy.end, copy.epoch = end, _epoch_below(log, end)

    def _check_batch(self, name: str, header: BatchHeader, before: int | None) -> None:
        ends = header.next_offset, header.leader_epoch
        known = self._batches.get(ends)
        if known is None and before is not None:
            self._batches[ends] = header.base_offset, header.crc, before
        elif known is not None and known != (header.base_offset, header.crc, known[2] if before is None else before):
            self._broken(
                "Q4",
                f"{name} has another batch of epoch {header.leader_epoch} at offset {header.base_offset}, or before "
                "it, than the first controller that had one",
            )

    def _check_high_watermark(self, name: str, copy: _Copy, high_watermark: int, state: EpochState) -> None:
        log = copy.log
        if high_watermark < copy.high_watermark:
            self._broken("Q7", f"{name} took {copy.high_watermark} as committed, and {high_watermark} now")
        if high_watermark > log.end_offset:
            self._broken("Q7", f"{name} takes {high_watermark} as committed, and its log ends at {log.end_offset}")
        if state.role is not QuorumRole.LEADER:
            return
        epoch = log.epoch_below(high_watermark)
        if epoch != state.epoch:
            self._broken("Q7", f"{name} leads epoch {state.epoch}, and commits a record of epoch {epoch} alone")
        voting = {voter.key for voter in log.voters}
        having = {
            one.key.id
            for one in (*self._copies.values(), *self._lost)
            if one.key in voting
            and one.flushed_offset >= high_watermark
            and one.log.epoch_below(high_watermark) == epoch
        }
        if len(having) < majority(len(voting)):
            voters = sorted(key.id for key in voting)
            self._broken(
                "Q6", f"{name} commits {high_watermark}; of the voters {voters} only {sorted(having)} have flushed it"
            )

    def _check_snapshots(self, name: str, copy: _Copy, high_watermark: int) -> None:
        for one in copy.snapshots:
            if one.end_offset == 0:
                continue
            if one.end_offset > high_watermark:
                self._broken("Q14", f"{name} has a snapshot up to {one.end_offset}; {high_watermark} is committed")
            if (one.end_offset, one.epoch) not in self._batches:
                self._broken(
                    "Q14", f"{name} has a snapshot of epoch {one.epoch} up to {one.end_offset}: no batch ends so"
                )
        start = copy.log.start_offset
        if start > 0 and all(one.end_offset < start for one in copy.snapshots):
            self._broken("Q14", f"the log of {name} begins at {start}, and no snapshot reaches that")


def _epoch_below(log: ComparedLog, offset: int) -> int | None:
    """None if the log begins there, and no snapshot ends there."""
    if 0 < offset <= log.start_offset and all(one.end_offset != offset for one in log.snapshots):
        return None
    return log.epoch_below(offset)
