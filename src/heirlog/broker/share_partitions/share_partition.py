"""One partition of a share group on the leader: which records are delivered, to whom, how often, and what is finished.

    available --acquire--> acquired --accept--> acknowledged
        ^                     |  |---gap, reject--> archived
        |                     |  '---release, lock end, session end
        '--- delivery count below the limit --'  '--- at the limit --> archived

`delivery_window.py` holds the offsets between the start offset (everything below is finished) and the end offset
(nothing from there on was acquired). The start offset moves over finished records.

An acknowledgement takes effect once the share coordinator has stored it:

    acknowledge --> change (the caller stores `StateTransition.batches`) --> settle(stored)
                                                                      yes: the new state
                                                                      no:  acquired as before, so that the lock ends it

What ends by itself (a lock, a session) takes effect at once, whether or not it is stored: its member must not be able
to acknowledge later. A new leader then delivers such records with a lower count; nothing is lost.

Acquiring is not stored. So after a change of the leader a record may be delivered again, and a delivery may be missing
from its count.

Traps.
* A lock does not end while an acknowledgement of its records is being stored. If that fails, the lock ends then.
* Offsets without a record inside a batch are acquired like records, and the client acknowledges them as gaps. Offsets
  before the first batch that the log has are archived here.
* A new leader resolves "latest" only once: the result is stored before the first record is delivered. Otherwise the
  next leader would resolve it to a later offset, and records between the two would never be delivered.

No method sends, waits or reads. Source: KIP-932, "In-flight records", KIP-1206 (record limit), KIP-1222 (renew).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple

from heirlog.broker.share_coordinator.batches import StateBatch, combined
from heirlog.broker.share_partitions.acquisition import (
    AcquiredRecords,
    Acquisition,
    FetchedBatch,
    ShareLimits,
    Wanted,
)
from heirlog.broker.share_partitions.delivery_window import DeliveryWindow, InFlightBatch, InFlightRun, RecordState
from heirlog.protocol.errors import ErrorCode, KafkaError


class AcknowledgeType(IntEnum):
    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


_STATE_AFTER: Final = {
    AcknowledgeType.GAP: RecordState.ARCHIVED,
    AcknowledgeType.ACCEPT: RecordState.ACKNOWLEDGED,
    AcknowledgeType.RELEASE: RecordState.AVAILABLE,
    AcknowledgeType.REJECT: RecordState.ARCHIVED,
}


class Acknowledgement(NamedTuple):
    """One type for all offsets, or one for each of them."""

    first: int
    last: int
    types: Sequence[int]


@dataclass(frozen=True, slots=True)
class StateTransition:
    """New states for the coordinator. `runs` is empty if they are in effect already."""

    start_offset: int
    finished_count: int
    batches: Sequence[StateBatch]
    runs: Sequence[InFlightRun] = ()


class SharePartition:
    def __init__(self, limits: ShareLimits, start_offset: int, batches: Iterable[StateBatch] = ()) -> None:
        """`batches`: the stored state, in any order."""
        self._limits = limits
        self.window = DeliveryWindow(start_offset)
        self._load(sorted(batches))

    def _load(self, batches: Iterable[StateBatch]) -> None:
        window = self.window
        for batch in batches:
            first = max(batch.first_offset, window.end_offset)
            if batch.last_offset < first:
                continue
            if first > window.end_offset:
                window.add(first - 1, RecordState.AVAILABLE)
            state = RecordState.ARCHIVED
            if batch.delivery_state == RecordState.ACKNOWLEDGED:
                state = RecordState.ACKNOWLEDGED
            elif batch.delivery_state != RecordState.ARCHIVED:
                state = self._state_after_delivery(batch.delivery_count)
            window.add(batch.last_offset, state, batch.delivery_count)
            window.begin_batch(InFlightBatch(first, batch.last_offset))
        window.trim()

    # -- what may be fetched -------------------------------------------------------------------------------------

    @property
    def start_offset(self) -> int:
        return self.window.start_offset

    @property
    def end_offset(self) -> int:
        return self.window.end_offset

    @property
    def next_fetch_offset(self) -> int:
        """The first offset that may be acquired, if the window has room for it."""
        return next((run.first for run in self.window.runs if run.is_available), self.window.end_offset)

    def may_acquire(self, offset: int) -> bool:
        """Whether the record at `next_fetch_offset` may be acquired now."""
        return offset < self.window.end_offset or self.window.size < self._limits.record_locks

    def last_wanted(self, wanted: Wanted) -> int:
        """The highest offset that this fetch can acquire, except for the rest of a batch; more need not be read."""
        left = wanted.max_records
        for run in self.window.runs:
            if run.is_available:
                if run.size >= left:
                    return run.first + left - 1 if wanted.is_exact or run.batch is None else run.batch.last
                left -= run.size
        return self.window.end_offset + left - 1

    def log_starts_at(self, offset: int) -> None:
        """The log's start has moved. What was below it is finished, without being stored."""
        if offset > self.window.start_offset:
            self.window.drop_below(offset)
            self.window.trim()

    # -- acquire -------------------------------------------------------------------------------------------------

    def acquire(
        self, member: str, fetch_offset: int, batches: Sequence[FetchedBatch], wanted: Wanted, locked_until_ms: int
    ) -> list[AcquiredRecords]:
        """Lock records for the member.

        fetch_offset: `next_fetch_offset` before the read. batches: what the log has from there on.
        """
        if not batches:
            return []
        acquisition = Acquisition(self.window, self._limits, member, locked_until_ms, wanted, batches)
        acquired = acquisition.acquire_from(fetch_offset)
        self.window.trim()
        return acquired

    # -- acknowledge ---------------------------------------------------------------------------------------------

    def acknowledge(self, member: str, given: Sequence[Acknowledgement], locked_until_ms: int) -> StateTransition:
        """All of them, or none: then KafkaError, and nothing has changed.

        locked_until_ms: of renewed locks. INVALID_REQUEST: beyond the end offset. INVALID_RECORD_STATE: the member does
        not hold all of these records, or acknowledges one twice. Offsets below the start offset are ignored.
        """
        start_offset = self.window.start_offset
        parts: list[tuple[int, int, AcknowledgeType]] = []
        for each in given:
            if each.last >= start_offset:
                found = list(_of_one_type(each, start_offset))
                self._check_held(member, each, parts, found)
                parts += found
        changing = []
        for first, last, kind in parts:
            for run in self.window.exactly(first, last):
                if kind is AcknowledgeType.RENEW:
                    run.locked_until_ms = locked_until_ms
                    continue
                after = _STATE_AFTER[kind]
                run.changes_to = after if after.is_terminal else self._state_after_delivery(run.delivery_count)
                changing.append(run)
        batches = [StateBatch(run.first, run.last, run.changes_to or 0, run.delivery_count) for run in changing]
        return StateTransition(
            self.window.start_offset,
            self.window.finished_count(),
            combined((), batches, self.window.start_offset),
            changing,
        )

    def _check_held(
        self,
        member: str,
        given: Acknowledgement,
        before: Sequence[tuple[int, int, AcknowledgeType]],
        parts: Sequence[tuple[int, int, AcknowledgeType]],
    ) -> None:
        """before: what the same request acknowledges already, if anything of it is at or above the start offset."""
        window = self.window
        if not window.runs:
            raise KafkaError(ErrorCode.INVALID_RECORD_STATE, f"nothing is delivered from {window.start_offset} on")
        if given.last >= window.end_offset:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"offset {given.last} is beyond {window.end_offset - 1}, the last one"
            )
        changed = [last for _, last, kind in before if kind is not AcknowledgeType.RENEW]
        if changed and parts[0][0] <= changed[-1]:
            raise KafkaError(ErrorCode.INVALID_RECORD_STATE, f"offset {changed[-1]} is acknowledged twice")
        for run in window.overlapping(parts[0][0], given.last):
            if not run.is_held_by(member):
                raise KafkaError(
                    ErrorCode.INVALID_RECORD_STATE, f"the member does not hold the records {run.first}-{run.last}"
                )

    def settle(self, change: StateTransition, *, is_stored: bool) -> None:
        """The change is durable, or storing it failed. Records may be available now, and locks may have ended."""
        for run in change.runs:
            if run.changes_to is None:
                continue
            if is_stored:
                run.end_with(run.changes_to)
            else:
                run.changes_to = None
        self.window.trim()

    def release(self, member: str) -> StateTransition | None:
        """The member's session has ended: it gives back what it holds. None if it holds nothing."""
        return self._end(lambda run: run.is_held_by(member))

    def end_locks(self, now_ms: int) -> StateTransition | None:
        """None if no lock has ended."""
        return self._end(lambda run: _is_locked(run) and run.locked_until_ms <= now_ms)

    def next_lock_end_ms(self) -> int | None:
        """When `end_locks` is due; None while nothing is locked."""
        return min((run.locked_until_ms for run in self.window.runs if _is_locked(run)), default=None)

    def _end(self, ends: Callable[[InFlightRun], bool]) -> StateTransition | None:
        batches = []
        for run in self.window.runs:
            if ends(run):
                run.end_with(self._state_after_delivery(run.delivery_count))
                batches.append(StateBatch(run.first, run.last, run.state, run.delivery_count))
        if not batches:
            return None
        change = StateTransition(
            self.window.start_offset, self.window.finished_count(), combined((), batches, self.window.start_offset)
        )
        self.window.trim()
        return change

    def _state_after_delivery(self, delivery_count: int) -> RecordState:
        """Of records that were delivered so often and not finished."""
        at_limit = delivery_count >= self._limits.delivery_count
        return RecordState.ARCHIVED if at_limit else RecordState.AVAILABLE


def _is_locked(run: InFlightRun) -> bool:
    return run.state is RecordState.ACQUIRED and run.changes_to is None


def _of_one_type(given: Acknowledgement, start_offset: int) -> Iterator[tuple[int, int, AcknowledgeType]]:
    """The offsets from `start_offset` on, divided where the type changes."""
    first = max(given.first, start_offset)
    if len(given.types) == 1:
        if first <= given.last:
            yield first, given.last, AcknowledgeType(given.types[0])
        return
    while first <= given.last:
        kind = given.types[first - given.first]
        last = first
        while last < given.last and given.types[last + 1 - given.first] == kind:
            last += 1
        yield first, last, AcknowledgeType(kind)
        first = last + 1


def check_acknowledgements(given: Sequence[Acknowledgement], *, may_renew: bool) -> None:
    """Raises KafkaError with INVALID_REQUEST for what no member may send, whatever it holds."""
    previous = -1
    for each in given:
        if each.first > each.last:
            raise _invalid(f"the range {each.first}-{each.last} ends before it begins")
        if each.first < previous:
            raise _invalid(f"the range {each.first}-{each.last} begins before {previous}, the end of the one before")
        previous = each.last
        if not each.types:
            raise _invalid(f"the range {each.first}-{each.last} has no type of acknowledgement")
        if len(each.types) not in (1, each.last - each.first + 1):
            raise _invalid(f"the range {each.first}-{each.last} has {len(each.types)} types, not one or one per offset")
        for kind in each.types:
            if not AcknowledgeType.GAP <= kind <= AcknowledgeType.RENEW:
                raise _invalid(f"{kind} is not a type of acknowledgement")
            if kind == AcknowledgeType.RENEW and not may_renew:
                raise _invalid("the request does not say that it renews locks")


def _invalid(why: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, why)
