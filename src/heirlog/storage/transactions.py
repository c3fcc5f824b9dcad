"""The transactions of one partition that decide its last stable offset (LSO).

    ongoing          first data batch -->  marker      no marker in the log yet
    unreplicated     marker           -->  HW > marker the marker may still be truncated
    decided          from then on; not remembered here

    first unstable offset = the lowest first offset of the ongoing and unreplicated transactions
    LSO                   = min(first unstable offset, HW)       (`Partition.last_stable_offset`)

A read_committed consumer reads below the LSO: what is there is decided, and the decision is committed. A marker moves
its transaction to `unreplicated`, and only a higher HW takes it from there. So within a leader epoch the LSO never
falls, and it moves only with the HW or the log start.

Traps.
* The log start may be above the start of an open transaction (retention, DeleteRecords). The offset is kept as it is,
  and the reader of `first_unstable_offset` raises it to the log start.
* A snapshot holds only the ongoing transactions. After a restart those that ended before the snapshot count as decided,
  also if the HW of the checkpoint is lower than their markers. Aborted data is filtered all the same, because the index
  of aborted transactions has them.

Source: Kafka's ProducerStateManager (ongoingTxns, unreplicatedTxns); KIP-98.
"""

from __future__ import annotations

from typing import NamedTuple


def is_decided(marker_offset: int, high_watermark: int) -> bool:
    """Guard 31: a transaction is undecided until its marker is below the high watermark.

    Without it the last stable offset goes back when the next leader does not have the marker.
    """
    return marker_offset < high_watermark


class CompletedTransaction(NamedTuple):
    first_offset: int
    last_offset: int
    """Offset of the marker."""
    last_stable_offset: int
    """First offset of the next ongoing transaction of another producer; without one, the offset after the marker."""


class Transactions:
    __slots__ = ("_ongoing", "_unreplicated", "first_unstable_offset")

    def __init__(self) -> None:
        self._ongoing: dict[int, int] = {}
        """First offset of each producer's transaction, in the order of these offsets."""
        self._unreplicated: list[CompletedTransaction] = []
        """In the order of their markers."""
        self.first_unstable_offset: int | None = None
        """None: every transaction is decided."""

    @property
    def ongoing_count(self) -> int:
        return len(self._ongoing)

    @property
    def oldest_ongoing(self) -> int | None:
        """Producer id of the ongoing transaction that began first."""
        return next(iter(self._ongoing), None)

    def begin(self, producer_id: int, first_offset: int) -> None:
        """The first batch of a transaction is in the log. Call it in the order of offsets."""
        self._ongoing[producer_id] = first_offset
        if self.first_unstable_offset is None:
            self.first_unstable_offset = first_offset

    def complete(self, producer_id: int, marker_offset: int) -> CompletedTransaction:
        """The marker of an ongoing transaction is in the log."""
        first_offset = self._ongoing.pop(producer_id)
        next_start = next(iter(self._ongoing.values()), marker_offset + 1)
        completed = CompletedTransaction(first_offset, marker_offset, next_start)
        self._unreplicated.append(completed)
        return completed

    def high_watermark_moved(self, high_watermark: int) -> None:
        """Markers below the high watermark are final."""
        waiting = self._unreplicated
        if waiting and is_decided(waiting[0].last_offset, high_watermark):
            self._unreplicated = waiting = [one for one in waiting if not is_decided(one.last_offset, high_watermark)]
            starts = [one.first_offset for one in waiting]
            starts += list(self._ongoing.values())[:1]
            self.first_unstable_offset = min(starts, default=None)
