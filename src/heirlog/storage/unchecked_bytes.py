"""Which bytes of a segment no CRC was computed for since it was opened.

    trusted after a clean stop --> unchecked --first read of them--> checked
    appended since, or scanned by recovery ------------------------> checked

A flipped bit of a disk shows in nothing but the CRC. Reading all segments at each start would take hours; computing the
CRC at each read would cost more than the rest of the read. So each byte is checked once, before it leaves this broker
for the first time (`Log.read`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator


class UncheckedBytes:
    __slots__ = ("_ends", "_starts", "end")

    def __init__(self, end: int) -> None:
        self.end = end
        """Nothing from here on is unchecked; 0: nothing at all."""
        self._starts: list[int] = []
        self._ends: list[int] = []

    def parts(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """The parts of a range that are unchecked. Do not call `checked` meanwhile."""
        end = min(end, self.end)
        place = bisect_right(self._starts, start) - 1
        if place >= 0:
            start = max(start, self._ends[place])
        for next_start, next_end in zip(self._starts[place + 1 :], self._ends[place + 1 :], strict=True):
            if start >= end:
                return
            if start < next_start:
                yield start, min(next_start, end)
            start = max(start, next_end)
        if start < end:
            yield start, end

    def checked(self, start: int, end: int) -> None:
        """These bytes are as they were written."""
        known = [(s, e) for s, e in zip(self._starts, self._ends, strict=True) if e < start or s > end]
        joined = [(s, e) for s, e in zip(self._starts, self._ends, strict=True) if not (e < start or s > end)]
        merged = (min([start, *(s for s, _ in joined)]), max([end, *(e for _, e in joined)]))
        if merged[0] == 0 and merged[1] >= self.end:
            self.all_checked()
            return
        ranges = sorted([*known, merged])
        self._starts, self._ends = [s for s, _ in ranges], [e for _, e in ranges]

    def all_checked(self) -> None:
        self.cut(0)

    def cut(self, position: int) -> None:
        """The file was truncated there."""
        if position < self.end:
            self.end = position
            ranges = [(s, min(e, position)) for s, e in zip(self._starts, self._ends, strict=True) if s < position]
            self._starts, self._ends = [s for s, _ in ranges], [e for _, e in ranges]
