"""The two sparse indexes of a segment, in memory and in Kafka's files.

    .index      int32 relative offset, int32 position      for some batches: their last offset, where they begin
    .timeindex  int64 timestamp, int32 relative offset     the largest timestamp so far, last offset of its batch

Both are sorted in both columns and relative to the segment's base offset. An entry is made for the first batch after
`index.interval.bytes` of others. A lookup returns the greatest entry that is not above the key; a reader continues from
there through batch headers.

The files are written when a segment stops being active and when the log is closed, not at each entry. After any other
stop the segments that were being written are scanned anyway, and the scan makes the entries again. So a file is either
complete or missing, and there is no preallocation (and trimming) as in Kafka.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from itertools import pairwise
from struct import Struct, unpack

from heirlog.env import Files
from heirlog.storage.atomic import read_file

OFFSET_ENTRY_BYTES = 8
TIME_ENTRY_BYTES = 12
OFFSET_ENTRY = Struct(">ii")
TIME_ENTRY = Struct(">qi")


class OffsetIndex:
    __slots__ = ("base_offset", "positions", "relative_offsets")

    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset
        self.relative_offsets = array("i")
        self.positions = array("i")

    def __len__(self) -> int:
        return len(self.positions)

    def append(self, last_offset: int, position: int) -> None:
        self.relative_offsets.append(last_offset - self.base_offset)
        self.positions.append(position)

    def floor(self, offset: int) -> int:
        """Position from which to search for `offset`: that of a batch which does not begin after it."""
        i = bisect_right(self.relative_offsets, offset - self.base_offset) - 1
        return self.positions[i] if i >= 0 else 0

    def floor_of_position(self, position: int) -> int:
        """The last indexed batch that begins at or before `position`."""
        i = bisect_right(self.positions, position) - 1
        return self.positions[i] if i >= 0 else 0

    def offset_above(self, position: int) -> int | None:
        """An offset that no batch which begins before `position` reaches; None: no later batch is indexed."""
        i = bisect_left(self.positions, position)
        return self.base_offset + self.relative_offsets[i] if i < len(self.positions) else None

    def truncate(self, position: int) -> None:
        """Forget batches that begin at or after `position`."""
        keep = bisect_right(self.positions, position - 1)
        del self.positions[keep:]
        del self.relative_offsets[keep:]

    def encode(self) -> bytes:
        out = bytearray(OFFSET_ENTRY_BYTES * len(self))
        for i, entry in enumerate(zip(self.relative_offsets, self.positions, strict=True)):
            OFFSET_ENTRY.pack_into(out, i * OFFSET_ENTRY_BYTES, *entry)
        return bytes(out)

    @classmethod
    def decode(cls, base_offset: int, data: bytes, log_size: int) -> OffsetIndex | None:
        """None if this cannot be the index of a log file of `log_size` bytes."""
        if len(data) % OFFSET_ENTRY_BYTES:
            return None
        index = cls(base_offset)
        numbers = unpack(f">{len(data) // 4}i", data)
        index.relative_offsets = array("i", numbers[0::2])
        index.positions = array("i", numbers[1::2])
        if numbers and (
            index.positions[0] < 0
            or index.positions[-1] >= log_size
            or index.relative_offsets[0] < 0
            or not _rising(index.positions)
            or not _rising(index.relative_offsets)
        ):
            return None
        return index


class TimeIndex:
    __slots__ = ("base_offset", "relative_offsets", "timestamps")

    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset
        self.timestamps = array("q")
        self.relative_offsets = array("i")

    def __len__(self) -> int:
        return len(self.timestamps)

    def maybe_append(self, timestamp_ms: int, offset: int) -> None:
        """No entry unless the timestamp is larger than that of the last one: only the largest so far is of use."""
        if timestamp_ms >= 0 and (not self.timestamps or timestamp_ms > self.timestamps[-1]):
            self.timestamps.append(timestamp_ms)
            self.relative_offsets.append(offset - self.base_offset)

    def floor(self, timestamp_ms: int) -> int:
        """No batch that ends before this offset has a record of `timestamp_ms` or later."""
        # strictly smaller: the entry of an equal timestamp names the batch that ends there, which contains the answer
        i = bisect_right(self.timestamps, timestamp_ms - 1) - 1
        return self.base_offset + self.relative_offsets[i] if i >= 0 else self.base_offset

    @property
    def last(self) -> tuple[int, int]:
        """Largest timestamp and the last offset of its batch; (-1, base offset) without entries."""
        if not self.timestamps:
            return -1, self.base_offset
        return self.timestamps[-1], self.base_offset + self.relative_offsets[-1]

    def truncate(self, offset: int) -> None:
        """Forget entries at or above `offset`."""
        keep = bisect_right(self.relative_offsets, offset - self.base_offset - 1)
        del self.timestamps[keep:]
        del self.relative_offsets[keep:]

    def encode(self) -> bytes:
        out = bytearray(TIME_ENTRY_BYTES * len(self))
        for i, entry in enumerate(zip(self.timestamps, self.relative_offsets, strict=True)):
            TIME_ENTRY.pack_into(out, i * TIME_ENTRY_BYTES, *entry)
        return bytes(out)

    @classmethod
    def decode(cls, base_offset: int, data: bytes) -> TimeIndex | None:
        """None if this cannot be a time index."""
        if len(data) % TIME_ENTRY_BYTES:
            return None
        index = cls(base_offset)
        for timestamp_ms, relative_offset in TIME_ENTRY.iter_unpack(data):
            index.timestamps.append(timestamp_ms)
            index.relative_offsets.append(relative_offset)
        if data and (
            index.relative_offsets[0] < 0 or not _rising(index.timestamps) or not _rising(index.relative_offsets, True)
        ):
            return None
        return index


def _rising(values: array[int], or_equal: bool = False) -> bool:
    if or_equal:
        return all(a <= b for a, b in pairwise(values))
    return all(a < b for a, b in pairwise(values))


def read_offset_index(files: Files, path: str, base_offset: int, log_size: int) -> OffsetIndex | None:
    """None if the file is missing or inconsistent: the caller rebuilds it."""
    data = read_file(files, path)
    return None if data is None else OffsetIndex.decode(base_offset, data, log_size)


def read_time_index(files: Files, path: str, base_offset: int) -> TimeIndex | None:
    data = read_file(files, path)
    return None if data is None else TimeIndex.decode(base_offset, data)
