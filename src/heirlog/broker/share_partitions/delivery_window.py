"""What a share group has done with the offsets of one partition, from its start offset to its end offset.

    start offset                                     end offset
         | acquired | acknowledged | available |  ...  |      records that were never read
    everything below is finished

The window is a list of *runs*: neighbouring offsets with the same state, delivery count and owner. The runs cover the
window without a gap and never overlap. Offsets that were not read yet between others (after a reload) are a run
with delivery count 0. A run is split only where its parts begin to differ, so a batch of a thousand records is one run
until a consumer treats some of its records differently. Runs are never joined again: they end with the window's start.

Runs also know in which in-flight batch they were read (`acquisition.py`); one that was never read is in none.

A run that *changes* waits until the new state is durable (`share_partition.py`). It is neither split nor acquired.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import NamedTuple


class RecordState(IntEnum):
    """The numbers are Kafka's, in records and requests."""

    AVAILABLE = 0
    ACQUIRED = 1
    """Never stored: a new leader delivers such records again."""
    ACKNOWLEDGED = 2
    ARCHIVED = 4

    @property
    def is_terminal(self) -> bool:
        """The record is never delivered again."""
        return self >= RecordState.ACKNOWLEDGED


class InFlightBatch(NamedTuple):
    """Offsets that were read together, or that the stored state has as one batch."""

    first: int
    last: int

    @property
    def size(self) -> int:
        return self.last - self.first + 1


@dataclass(slots=True, eq=False)
class InFlightRun:
    """Offsets from `first` to `last`, both included."""

    first: int
    last: int
    state: RecordState
    delivery_count: int
    member: str = ""
    """Who acquired it."""
    locked_until_ms: int = 0
    changes_to: RecordState | None = None
    """What it becomes once that is durable."""
    batch: InFlightBatch | None = None
    """None: these offsets were never read here, or the log does not have them."""

    @property
    def size(self) -> int:
        return self.last - self.first + 1

    @property
    def is_available(self) -> bool:
        return self.state is RecordState.AVAILABLE and self.changes_to is None

    @property
    def is_finished(self) -> bool:
        return self.changes_to is None and self.state.is_terminal

    def is_held_by(self, member: str) -> bool:
        return self.state is RecordState.ACQUIRED and self.changes_to is None and self.member == member

    def end_with(self, state: RecordState) -> None:
        """Take a state that has no owner."""
        self.state = state
        self.member = ""
        self.locked_until_ms = 0
        self.changes_to = None


class DeliveryWindow:
    def __init__(self, start_offset: int) -> None:
        self.start_offset = start_offset
        self.runs: list[InFlightRun] = []

    @property
    def end_offset(self) -> int:
        """The offset after the last one in the window."""
        return self.runs[-1].last + 1 if self.runs else self.start_offset

    @property
    def size(self) -> int:
        return self.end_offset - self.start_offset

    def add(self, last: int, state: RecordState, delivery_count: int = 0) -> InFlightRun:
        """Extend the window up to `last`."""
        run = InFlightRun(self.end_offset, last, state, delivery_count)
        assert run.first <= last, "a window grows"
        self.runs.append(run)
        return run

    def _place_of(self, offset: int) -> int:
        """Index of the run that holds `offset`, which is in the window."""
        return bisect_right(self.runs, offset, key=_first) - 1

    def run_at(self, offset: int) -> InFlightRun:
        """The run that holds `offset`, which is in the window."""
        return self.runs[self._place_of(offset)]

    def overlapping(self, first: int, last: int) -> Iterator[InFlightRun]:
        """The runs with an offset between the two, both included. None is split."""
        place = max(self._place_of(first), 0)
        runs = self.runs
        while place < len(runs) and runs[place].first <= last:
            if runs[place].last >= first:
                yield runs[place]
            place += 1

    def cut(self, offset: int) -> None:
        """Let a run begin at `offset`, which is in the window or at its end."""
        if offset >= self.end_offset or offset <= self.start_offset:
            return
        place = self._place_of(offset)
        run = self.runs[place]
        if run.first == offset:
            return
        assert run.changes_to is None, "a run that changes is not split"
        rest = replace(run, first=offset)
        run.last = offset - 1
        self.runs.insert(place + 1, rest)

    def exactly(self, first: int, last: int) -> list[InFlightRun]:
        """The runs from `first` to `last`, split where the window has these offsets in the middle of a run."""
        self.cut(first)
        self.cut(last + 1)
        return list(self.overlapping(first, last))

    def begin_batch(self, batch: InFlightBatch) -> None:
        """The offsets of the batch are read for the first time."""
        for run in self.exactly(batch.first, batch.last):
            run.batch = batch

    def archive_available(self, first: int, last: int) -> None:
        """Records that can never be delivered: they are not in the log, or their transaction was aborted."""
        for run in [run for run in self.overlapping(first, last) if run.is_available]:
            for part in self.exactly(max(run.first, first), min(run.last, last)):
                part.end_with(RecordState.ARCHIVED)

    def trim(self) -> bool:
        """Move the start offset over what is finished. True if it moved."""
        finished = 0
        while finished < len(self.runs) and self.runs[finished].is_finished:
            finished += 1
        if not finished:
            return False
        self.start_offset = self.runs[finished - 1].last + 1
        del self.runs[:finished]
        return True

    def drop_below(self, offset: int) -> None:
        """The log begins at `offset` now: nothing below it can be delivered, acquired or not."""
        dropped = 0
        while dropped < len(self.runs) and self.runs[dropped].last < offset:
            dropped += 1
        del self.runs[:dropped]
        self.start_offset = max(self.start_offset, offset)
        if self.runs:
            # not split, because the run may change
            self.runs[0].first = self.start_offset

    def finished_count(self) -> int:
        """Offsets of the window that are finished, or will be once the change under way is durable."""
        return sum(
            run.size for run in self.runs if (run.state if run.changes_to is None else run.changes_to).is_terminal
        )


def _first(run: InFlightRun) -> int:
    return run.first
