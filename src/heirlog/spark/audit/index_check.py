"""The two index files of a segment against its batches, which are passed in order.

An index that disagrees makes readers start at a wrong place. What an entry means: `heirlog.storage.index`. Apache
Kafka's followers name the last offset of several batches in an entry: too large an offset does no harm there.
"""

from __future__ import annotations

import os

import numpy as np

from heirlog.spark.kernels import Longs

_OFFSET_ENTRY = np.dtype([("offset", ">i4"), ("position", ">i4")])
_TIME_ENTRY = np.dtype([("timestamp", ">i8"), ("offset", ">i4")])


def _read(path: str, entry: np.dtype[np.void]) -> np.ndarray | None:
    """None: the file is not made of whole entries. Raises OSError."""
    data = np.fromfile(path, np.uint8)
    return None if data.size % entry.itemsize else data.view(entry)


class IndexFilesCheck:
    """`wrong`: the first thing in each index file that does not fit, as a sentence about it.

    `beyond`: those of them that only know more than the segment has.
    """

    def __init__(self, log_path: str, base_offset: int) -> None:
        self.wrong: dict[str, str] = {}
        self.beyond: set[str] = set()
        self._base_offset = base_offset
        self._largest = -1
        """Timestamp of the batches so far."""
        stem = log_path.removesuffix(".log")
        self._offset_path, self._time_path = f"{stem}.index", f"{stem}.timeindex"
        offsets = self._open(self._offset_path, _OFFSET_ENTRY)
        self.positions: Longs = offsets["position"].astype(np.int64)
        self._offsets: Longs = offsets["offset"].astype(np.int64) + base_offset
        times = self._open(self._time_path, _TIME_ENTRY)
        self._timestamps: Longs = times["timestamp"].astype(np.int64)
        self._time_offsets: Longs = times["offset"].astype(np.int64) + base_offset
        if not (_rises(self.positions) and _rises(self._offsets)):
            self._note(self._offset_path, "its entries do not rise")
        if not (_rises(self._timestamps) and _rises(self._time_offsets, or_equal=True)):
            self._note(self._time_path, "its entries do not rise")
        self._times_seen = 0

    def _open(self, path: str, entry: np.dtype[np.void]) -> np.ndarray:
        try:
            found = _read(path, entry)
        except FileNotFoundError:
            self._note(path, "the file is missing")
            return np.zeros(0, entry)
        if found is None:
            self._note(path, "it ends inside an entry")
            return np.zeros(0, entry)
        return found

    def batches(self, positions: Longs, last_offsets: Longs, max_timestamps: Longs) -> None:
        """The next batches: their positions in the file, last offsets, and timestamps (-1: no record)."""
        if self._offset_path not in self.wrong:
            self._check_offsets(positions, last_offsets)
        if self._time_path not in self.wrong:
            self._check_times(last_offsets, max_timestamps)
        self._largest = max(self._largest, int(max_timestamps.max()))

    def _check_offsets(self, positions: Longs, last_offsets: Longs) -> None:
        first = int(np.searchsorted(self.positions, positions[0]))
        behind = int(np.searchsorted(self.positions, positions[-1], side="right"))
        entries, offsets = self.positions[first:behind], self._offsets[first:behind]
        at = np.searchsorted(positions, entries)
        wrong = np.flatnonzero((positions[at] != entries) | (offsets < last_offsets[at]))
        if wrong.size:
            entry = int(wrong[0])
            self._note(self._offset_path, f"an entry names offset {offsets[entry]} at byte {entries[entry]}")

    def _check_times(self, last_offsets: Longs, max_timestamps: Longs) -> None:
        behind = int(np.searchsorted(self._time_offsets, last_offsets[-1], side="right"))
        entries = slice(self._times_seen, behind)
        before = np.maximum.accumulate(np.concatenate(([self._largest], max_timestamps)))
        at = np.searchsorted(last_offsets, self._time_offsets[entries])
        wrong = np.flatnonzero(before[at] > self._timestamps[entries])
        if wrong.size:
            timestamp = self._timestamps[entries][int(wrong[0])]
            self._note(self._time_path, f"its entry of timestamp {timestamp} is smaller than a timestamp before it")
        self._times_seen = max(behind, self._times_seen)

    def ended(self, size: int, *, knows_timestamps: bool) -> None:
        """The segment was read to its end, which is at byte `size`. Timestamps of damaged batches are not known."""
        if self.positions.size and self.positions[-1] >= size:
            self._note_beyond(self._offset_path, "it points past the last batch")
        if knows_timestamps and self._timestamps.size and self._timestamps[-1] > self._largest:
            self._note_beyond(self._time_path, "its last entry is larger than every timestamp")

    def _note_beyond(self, path: str, what: str) -> None:
        if path not in self.wrong:
            self.beyond.add(path)
            self._note(path, what)

    def _note(self, path: str, what: str) -> None:
        self.wrong.setdefault(path, f"{os.path.basename(path)} does not fit its segment: {what}")


def _rises(values: Longs, or_equal: bool = False) -> bool:
    steps = np.diff(values)
    return bool((steps >= 0).all() if or_equal else (steps > 0).all())
