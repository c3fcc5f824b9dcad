"""Which records one share fetch acquires, and how they are divided in its answer.

Records that are read for the first time become an *in-flight batch*: whole batches of the log, about as many records as
the client wants together. A batch of the stored state is one, too. It is a unit as long as its records are known:

    limit of the fetch    in-flight batches that it reads are acquired
    batch-optimised       whole, as far as their records are available; the last one may exceed the limit
    exact                 only up to the limit; the rest of the last one stays available

One part of the answer is within one in-flight batch, and its records have the same delivery count.

Trap. A record that no consumer can process would archive its neighbours with it. So from half of the delivery limit on
an in-flight batch is alone in its answer, and only half of it, a quarter, and so on is acquired; in its last delivery a
record is alone.

Source: KIP-932, KIP-1206 (record limit), "delivery count limit" in Apache Kafka 4.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from heirlog.broker.share_partitions.delivery_window import DeliveryWindow, InFlightBatch, InFlightRun, RecordState

_HALVED_FROM_AT_LEAST: Final = 2


@dataclass(frozen=True, slots=True)
class ShareLimits:
    """Configurations of the broker."""

    delivery_count: int = 5
    """`group.share.delivery.count.limit`"""
    record_locks: int = 2000
    """`group.share.partition.max.record.locks`: the most offsets in the window, except for the rest of a batch."""

    @property
    def halved_from(self) -> int:
        """Delivery count from which on parts of an in-flight batch are acquired."""
        return max(_HALVED_FROM_AT_LEAST, -(-self.delivery_count // 2))

    def is_last_delivery(self, run: InFlightRun) -> bool:
        """Whether the next delivery of these records is the last one, and each has it alone."""
        return self.delivery_count > _HALVED_FROM_AT_LEAST and run.delivery_count >= self.delivery_count - 1


class AcquiredRecords(NamedTuple):
    first: int
    last: int
    delivery_count: int


class FetchedBatch(NamedTuple):
    """A batch of the log, by its header."""

    first: int
    last: int
    is_aborted: bool = False
    """Of an aborted transaction, for a group that reads committed records only."""


class Wanted(NamedTuple):
    """What the member asks for."""

    max_records: int
    batch_size: int
    """Records that an in-flight batch should have at least; it ends where a batch of the log does."""
    is_exact: bool
    """Never acquire more than `max_records`."""


class Acquisition:
    """One call of `SharePartition.acquire`."""

    def __init__(
        self,
        window: DeliveryWindow,
        limits: ShareLimits,
        member: str,
        locked_until_ms: int,
        wanted: Wanted,
        batches: Sequence[FetchedBatch],
    ) -> None:
        """batches: what the log has, at least one."""
        self._window = window
        self._limits = limits
        self._member = member
        self._locked_until_ms = locked_until_ms
        self._wanted = wanted
        self._batches = batches
        self._left = wanted.max_records
        self._is_stopped = False
        self._records: list[AcquiredRecords] = []

    def acquire_from(self, offset: int) -> list[AcquiredRecords]:
        """Acquire from this offset on, below which nothing is available."""
        window, top = self._window, self._batches[-1].last
        if offset < self._batches[0].first:
            # the log has no such offsets any more
            window.archive_available(offset, self._batches[0].first - 1)
        self._archive_aborted()
        while self._left > 0 and not self._is_stopped and offset <= top:
            if offset >= window.end_offset:
                top = self._extend(top)
                continue
            run = window.run_at(offset)
            if run.batch is None and run.is_available:
                self._begin_batches(offset, self._end_of_batches(offset, self._left, min(run.last, top)))
                run = window.run_at(offset)
            if run.batch is None:
                offset = run.last + 1
            else:
                self._take(run.batch, offset, top)
                offset = run.batch.last + 1
        return self._records

    # -- records that are read for the first time ----------------------------------------------------------------

    def _extend(self, top: int) -> int:
        """Extend the window by what the log has behind it, as far as there are locks.

        Returns the last offset that may be acquired; below the end offset if there is none.
        """
        window = self._window
        end, room = window.end_offset, self._limits.record_locks - window.size
        if room <= 0:
            return end - 1
        first = max(end, self._batches[0].first)
        if first > end:
            # the log has no such offsets
            window.add(first - 1, RecordState.ARCHIVED)
        wanted = min(self._left, room)
        last = self._end_of_batches(first, wanted, top)
        window.add(last, RecordState.AVAILABLE)
        self._begin_batches(first, last)
        self._archive_aborted()
        return min(last, first + wanted - 1) if self._wanted.is_exact else last

    def _end_of_batches(self, first: int, count: int, limit: int) -> int:
        """End of the batch of the log with the last of `count` records from `first` on, at most `limit`."""
        last = first + count - 1
        if last >= limit:
            return limit
        return min(limit, next((batch.last for batch in self._batches if batch.first <= last <= batch.last), last))

    def _begin_batches(self, first: int, last: int) -> None:
        begin = first
        for batch in () if self._wanted.is_exact else self._batches:
            if begin < batch.first <= last and batch.first - begin >= self._wanted.batch_size:
                self._window.begin_batch(InFlightBatch(begin, batch.first - 1))
                begin = batch.first
        self._window.begin_batch(InFlightBatch(begin, last))

    def _archive_aborted(self) -> None:
        for batch in self._batches:
            if batch.is_aborted:
                self._window.archive_available(batch.first, batch.last)

    # -- acquire -------------------------------------------------------------------------------------------------

    def _take(self, batch: InFlightBatch, first: int, top: int) -> None:
        """Acquire what is available of an in-flight batch between two offsets."""
        last = min(batch.last, top)
        runs = [run for run in self._window.overlapping(first, last) if run.is_available]
        is_delivered_often = any(run.delivery_count >= self._limits.halved_from for run in runs)
        if is_delivered_often and self._records:
            self._is_stopped = True
            return
        found: list[AcquiredRecords] = []
        for begin, end in self._chosen(batch, runs, last):
            for part in self._window.exactly(begin, end):
                self._lock(part)
                if found and found[-1].last + 1 == part.first and found[-1].delivery_count == part.delivery_count:
                    found[-1] = found[-1]._replace(last=part.last)
                else:
                    found.append(AcquiredRecords(part.first, part.last, part.delivery_count))
        self._left -= sum(each.last - each.first + 1 for each in found)
        self._records += found
        self._is_stopped = is_delivered_often and bool(found)

    def _chosen(self, batch: InFlightBatch, runs: Sequence[InFlightRun], last: int) -> Iterator[tuple[int, int]]:
        """The first and last offset of each range to acquire. runs: the available ones, up to `last`."""
        taken, most = 0, self._left if self._wanted.is_exact else batch.size
        is_halved = False
        for run in runs:
            is_last = self._limits.is_last_delivery(run)
            if run.delivery_count >= self._limits.halved_from and not is_halved:
                is_halved = True
                part = max(1, batch.size >> (run.delivery_count - self._limits.halved_from + 1))
                # with as many before them that were delivered less often, nothing is left to halve
                most = min(most, part) if part > taken else most
            if taken >= most or (is_last and taken):
                return
            begin = run.first
            end = min(run.last, last, begin + (1 if is_last else most - taken) - 1)
            taken += end - begin + 1
            yield begin, end
            if is_last:
                return

    def _lock(self, run: InFlightRun) -> None:
        run.state = RecordState.ACQUIRED
        run.delivery_count += 1
        run.member = self._member
        run.locked_until_ms = self._locked_until_ms
