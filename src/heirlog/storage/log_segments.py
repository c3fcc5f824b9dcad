"""The segments of one log, from the oldest to the active one.

    base offsets     0          40         95
                     | closed   | closed   | active --> appends
                                ^ offset 40 to 94

Each segment begins where the one before it ends, so an offset belongs to the last segment whose base offset is not
above it. There is always an active segment, except between `drop_from(0)` and the `add` that has to follow.

`drop_from` unlinks files; all other changes are in memory only. The caller decides which files exist, in which order
they are created and removed, and when the directory is synced.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from heirlog.storage.recovery import drop
from heirlog.storage.segment import Segment


class LogSegments:
    __slots__ = ("_bases", "active", "all")

    active: Segment
    """The newest segment, the only one that is appended to."""
    all: list[Segment]
    """Not to be changed by others."""

    def __init__(self, segments: list[Segment]) -> None:
        """segments: at least one, the oldest first; the list belongs to this object from now on."""
        self._set(segments)

    def _set(self, segments: list[Segment]) -> None:
        self.all = segments
        self._bases = [segment.base_offset for segment in segments]
        self.active = segments[-1]

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

    def close(self) -> None:
        for segment in self.all:
            segment.close()
