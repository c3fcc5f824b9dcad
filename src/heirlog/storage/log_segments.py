"""The segments of one log, from the oldest to the active one.

    base offsets     0          40         95
                     | closed   | closed   | active --> appends
                                ^ offset 40 to 94

Each segment begins where the one before it ends, so an offset belongs to the last segment whose base offset is not
above it. There is always an active segment, except between `drop_from(0)` and the `add` that has to follow.

The segments with aborted transactions are known apart, so that logs without any pay nothing for the search.

`drop_from` unlinks files; all other changes are in memory only. The caller decides which files exist, in which order
they are created and removed, and when the directory is synced.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from operator import attrgetter

from heirlog.env import File, Region
from heirlog.storage.recovery import drop
from heirlog.storage.segment import Segment
from heirlog.storage.transaction_index import AbortedTransaction

_BASE_OFFSET = attrgetter("base_offset")
_LAST_OFFSET = attrgetter("last_offset")


class LogSegments:
    __slots__ = ("_bases", "_with_aborted", "active", "all", "changes")

    active: Segment
    """The newest segment, the only one that is appended to."""
    all: list[Segment]
    """Not to be changed by others."""
    changes: int
    """How often segments were added, replaced or removed."""

    def __init__(self, segments: list[Segment]) -> None:
        """segments: at least one, the oldest first; the list belongs to this object from now on."""
        self.changes = 0
        self._set(segments)

    def _set(self, segments: list[Segment]) -> None:
        self.changes += 1
        self.all = segments
        self._bases = [segment.base_offset for segment in segments]
        self.active = segments[-1]
        self._with_aborted = [segment for segment in segments if segment.transaction_index is not None]

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self.all)

    def place_of(self, offset: int) -> int:
        """Place in `all` of the segment to which `offset` belongs; -1 below the oldest one."""
        return bisect_right(self._bases, offset) - 1

    def closed_at(self, offset: int) -> tuple[Segment, int]:
        """The closed segment to which `offset` belongs, and the base offset of the next one."""
        place = bisect_right(self._bases, offset) - 1
        return self.all[place], self._bases[place + 1]

    def from_offset(self, offset: int) -> Sequence[Segment]:
        """The segments that may have records at or above `offset`."""
        return self.all[max(self.place_of(offset), 0) :]

    def add(self, segment: Segment) -> None:
        """The new active segment."""
        self._set([*self.all, segment])

    def drop_from(self, place: int) -> None:
        """Unlink the segments from this place on, the newest first, so that a crash in between leaves no gap.

        Raises OSError.
        """
        drop(self.all, place)
        if self.all:
            self._set(self.all)

    def remove_oldest(self, count: int) -> list[Segment]:
        """The removed segments, whose files are still there; the active one stays."""
        removed = self.all[:count]
        self._set(self.all[count:])
        return removed

    def replace(self, old: Sequence[Segment], new: Segment) -> None:
        """`new` has the records of these neighbours, none of which is the active segment."""
        place = self.all.index(old[0])
        self._set([*self.all[:place], new, *self.all[place + len(old) :]])

    # aborted transactions

    def index_aborted(self, entry: AbortedTransaction) -> None:
        """The marker of this transaction is in the active segment."""
        if self.active.transaction_index is None:
            self._with_aborted.append(self.active)
        self.active.index_aborted(entry)

    def write_aborted(self, *, may_remove: bool) -> tuple[list[File], int | None]:
        """Write what the indexes of aborted transactions lack.

        may_remove: the log was not truncated, or that is durable. Returns the files, to be flushed and closed, and the
        base offset of the first segment whose index is not written yet. Raises OSError.
        """
        files: list[File] = []
        for segment in self._with_aborted:
            index = segment.transaction_index
            if index is None or index.is_written:
                continue
            file = index.write(may_remove=may_remove)
            if file is None:
                return files, segment.base_offset
            files.append(file)
            if segment is not self.active:
                index.retire()
        return files, None

    def aborted(self, from_offset: int, upto_offset: int) -> list[AbortedTransaction]:
        """The aborted transactions with records from `from_offset` on and below `upto_offset`, by their markers.

        Raises InvalidBatch if an index is damaged, and OSError.
        """
        found: list[AbortedTransaction] = []
        indexed = self._with_aborted
        for i in range(max(bisect_right(indexed, from_offset, key=_BASE_OFFSET) - 1, 0), len(indexed)):
            index = indexed[i].transaction_index
            entries = [] if index is None else index.entries
            for place in range(bisect_left(entries, from_offset, key=_LAST_OFFSET), len(entries)):
                entry = entries[place]
                if entry.first_offset < upto_offset:
                    found.append(entry)
                if entry.last_stable_offset >= upto_offset:
                    return found
        return found

    def aborted_in(self, from_offset: int, region: Region, upto_offset: int) -> list[AbortedTransaction]:
        """As `aborted`, for what was read from `from_offset` on; it may be a few more.

        Raises as `aborted` does.
        """
        if not self._with_aborted:
            return []
        place = max(self.place_of(from_offset), 0)
        while self.all[place].log is not region.file:
            place += 1
        above = self.all[place].offset_above(region.position + region.size)
        if above is None and place + 1 < len(self.all):
            above = self._bases[place + 1]
        return self.aborted(from_offset, upto_offset if above is None else min(above, upto_offset))

    def close(self) -> None:
        for segment in self.all:
            segment.close()
