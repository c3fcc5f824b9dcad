"""One segment: a `.log` file named after its base offset, its indexes, and the way from an offset to a position.

`transaction_index` is None while the segment has no abort marker, which is the normal case.

Ways to find the position of an offset, cheapest first:

    1. `recent`: the last few hundred appended batches, as two parallel lists. Serves followers and tail consumers.
    2. `resumes`: the next position of a reader whose read ended at its size limit.
    3. the sparse index, then a search through batch headers (never through records).

Returned positions are always boundaries of batches. `log.py` decides what may be read or truncated.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from heirlog.env import Buffer, File, Files
from heirlog.protocol.batch import HEADER_SIZE, BatchHeader, InvalidBatch, crc_matches, read_header
from heirlog.storage.config import LogConfig
from heirlog.storage.index import (
    OFFSET_ENTRY_BYTES,
    TIME_ENTRY_BYTES,
    OffsetIndex,
    TimeIndex,
    read_offset_index,
    read_time_index,
)
from heirlog.storage.transaction_index import TRANSACTION_INDEX_SUFFIX, AbortedTransaction, TransactionIndex
from heirlog.storage.unchecked_bytes import UncheckedBytes

SEGMENT_SUFFIXES = (".log", ".index", ".timeindex", TRANSACTION_INDEX_SUFFIX)
"""The `.log` first: loading removes an index without a log, but must rebuild a missing index."""
_MAX_RECENT = 512
_MAX_RESUMES = 64
_HEADER_CHUNK_BYTES = 4096
_SCAN_CHUNK_BYTES = 1024 * 1024
_MAX_RELATIVE_OFFSET = 2**31 - 1
_REBUILD_INTERVAL_BYTES = 4096


def segment_path(dir_path: str, base_offset: int, suffix: str) -> str:
    return f"{dir_path}/{base_offset:020d}{suffix}"


class Segment:
    __slots__ = (
        "_bytes_since_index",
        "_files",
        "_indexes_remade",
        "_offset_index",
        "_recent_offsets",
        "_recent_positions",
        "_resumes",
        "_time_index",
        "base_offset",
        "created_ms",
        "dir_path",
        "first_timestamp",
        "indexes_rebuilt",
        "log",
        "max_timestamp",
        "max_timestamp_offset",
        "transaction_index",
        "unchecked",
    )

    def __init__(self, files: Files, dir_path: str, base_offset: int, log: File, created_ms: int) -> None:
        self._files = files
        self.dir_path = dir_path
        self.base_offset = base_offset
        self.log = log
        self.created_ms = created_ms
        self._offset_index: OffsetIndex | None = None
        self._time_index: TimeIndex | None = None
        self._indexes_remade = False
        """Whether wrong indexes were rebuilt since the segment was opened."""
        self.indexes_rebuilt = False
        """Whether the files of the indexes were written when they were loaded, and nothing has flushed them."""
        self._bytes_since_index = 0
        self._recent_offsets: list[int] = []
        self._recent_positions: list[int] = []
        self._resumes: dict[int, int] = {}
        self.first_timestamp = -1
        """Largest timestamp of the first batch: segment.ms counts from it."""
        self.max_timestamp = -1
        self.max_timestamp_offset = base_offset
        """Last offset of the batch with the largest timestamp."""
        self.transaction_index: TransactionIndex | None = None
        self.unchecked = UncheckedBytes(log.size)

    @classmethod
    def create(cls, files: Files, dir_path: str, base_offset: int, suffix: str = "") -> Segment:
        """A new empty segment, even if a crash or a failure left a file of that name.

        suffix: suffix of the file's name until the segment replaces others.
        """
        path = segment_path(dir_path, base_offset, ".log") + suffix
        log = files.open(path, create=True)
        if log.size:
            log.truncate(0)
        segment = cls(files, dir_path, base_offset, log, files.modified_ms(path))
        segment.start_indexes()
        return segment

    @classmethod
    def open(cls, files: Files, dir_path: str, base_offset: int, has_transaction_index: bool = False) -> Segment:
        """has_transaction_index: whether the segment has a `.txnindex` file."""
        path = segment_path(dir_path, base_offset, ".log")
        segment = cls(files, dir_path, base_offset, files.open(path), files.modified_ms(path))
        if has_transaction_index:
            segment.transaction_index = segment._new_transaction_index()
        try:
            segment.first_timestamp = segment.header_at(0).max_timestamp
        except InvalidBatch:
            pass  # empty or damaged: recovery or the first append finds out
        return segment

    @property
    def size(self) -> int:
        return self.log.size

    @property
    def offset_index(self) -> OffsetIndex:
        if self._offset_index is None:
            self._load_indexes()
        assert self._offset_index is not None
        return self._offset_index

    @property
    def time_index(self) -> TimeIndex:
        if self._time_index is None:
            self._load_indexes()
        assert self._time_index is not None
        return self._time_index

    # appending

    def append(self, data: Buffer, headers: list[BatchHeader], index_interval_bytes: int) -> None:
        """Write whole batches whose headers (offsets as they will be stored) are given. All or nothing."""
        position = self.log.append(data)
        for header in headers:
            self._appended(header, position, index_interval_bytes)
            position += header.size

    def _appended(self, header: BatchHeader, position: int, index_interval_bytes: int) -> None:
        base_offset, size, last_offset_delta, timestamp_ms = header[0], header[1], header[6], header[8]
        # an empty batch of the log cleaner may carry a timestamp that no record has
        if timestamp_ms > self.max_timestamp and header[12]:
            self.max_timestamp = timestamp_ms
            self.max_timestamp_offset = base_offset + last_offset_delta
        if position == 0:
            self.first_timestamp = timestamp_ms
        if self._bytes_since_index > index_interval_bytes:
            self.offset_index.append(base_offset + last_offset_delta, position)
            self.time_index.maybe_append(self.max_timestamp, self.max_timestamp_offset)
            self._bytes_since_index = 0
        self._bytes_since_index += size
        offsets = self._recent_offsets
        offsets.append(base_offset)
        self._recent_positions.append(position)
        if len(offsets) > _MAX_RECENT:
            # half at a time, so that the cost per append stays constant
            del offsets[: _MAX_RECENT // 2]
            del self._recent_positions[: _MAX_RECENT // 2]

    def index_aborted(self, entry: AbortedTransaction) -> None:
        """The marker of this transaction is in the segment."""
        if self.transaction_index is None:
            self.transaction_index = self._new_transaction_index()
        self.transaction_index.append(entry)

    def _new_transaction_index(self) -> TransactionIndex:
        path = segment_path(self.dir_path, self.base_offset, TRANSACTION_INDEX_SUFFIX)
        return TransactionIndex(self._files, path, self.base_offset)

    def must_roll(self, size: int, max_timestamp_ms: int, last_offset: int, wall_ms: int, config: LogConfig) -> bool:
        """Whether an append of `size` bytes up to `last_offset` belongs to the next segment.

        Source: Kafka's LogSegment.shouldRoll, without its jitter.
        """
        held = self.log.size
        if not held:
            return False
        return (
            held + size > config.segment_bytes
            or self.waited_ms(max_timestamp_ms, wall_ms) > config.segment_ms
            or last_offset - self.base_offset > _MAX_RELATIVE_OFFSET
            or self._indexes_full(config)
        )

    def waited_ms(self, max_timestamp_ms: int, wall_ms: int) -> int:
        """Age of this segment: in record time if its first batch has a timestamp, else in wall time."""
        if self.first_timestamp >= 0 and max_timestamp_ms >= 0:
            return max_timestamp_ms - self.first_timestamp
        return wall_ms - self.created_ms

    def _indexes_full(self, config: LogConfig) -> bool:
        """Whether segment.index.bytes has no room for one more entry."""
        limit = config.segment_index_bytes
        offsets, times = self._offset_index, self._time_index
        if offsets is None or times is None:
            offsets, times = self.offset_index, self.time_index
        return (
            OFFSET_ENTRY_BYTES * (len(offsets.positions) + 1) > limit
            or TIME_ENTRY_BYTES * (len(times.timestamps) + 1) > limit
        )

    # finding

    def position_of(self, offset: int) -> int:
        """Position of the batch that holds `offset`, which must be below the segment's end (else use `size`)."""
        recent = self._recent_offsets
        if recent and offset >= recent[0]:
            i = bisect_right(recent, offset) - 1
            return self._recent_positions[i]
        resume = self._resumes.get(offset)
        if resume is not None:
            return resume
        try:
            return self._position_after(self.offset_index.floor(offset), offset)
        except InvalidBatch:
            self.distrust_indexes()
            return self._position_after(self.offset_index.floor(offset), offset)

    def _position_after(self, floor: int, offset: int) -> int:
        """Raises InvalidBatch if no batch at or below `offset` begins at `floor`, or the log is damaged after it."""
        for position, header in self._headers_from_index(floor):
            if position == floor and floor and header.base_offset > offset:
                raise InvalidBatch(f"byte {floor} cannot be the position of offset {offset}: a later batch is there")
            if header.next_offset > offset:
                return position
        return self.log.size

    def _headers_from_index(self, floor: int) -> Iterator[tuple[int, BatchHeader]]:
        """`headers_from` with a check of the size: bytes that look like a header by chance seldom have a valid size."""
        for position, header in self.headers_from(floor):
            if position == floor and floor + header.size > self.log.size:
                raise InvalidBatch(f"byte {floor} of {self.log.path} is inside a batch")
            yield position, header

    def distrust_indexes(self) -> None:
        """The indexes do not point at a batch: either they belong to another log, or this log is damaged.

        Raises InvalidBatch if the log is damaged. That is checked only once, because it reads the whole segment.
        """
        if self._indexes_remade:
            raise InvalidBatch(f"{self.log.path} is damaged")
        self._indexes_remade = True
        kept = self._offset_index, self._time_index, self.max_timestamp, self.max_timestamp_offset
        try:
            self._rebuild_indexes(is_contiguous=True)
        except InvalidBatch:
            self._offset_index, self._time_index, self.max_timestamp, self.max_timestamp_offset = kept
            self._recent_offsets.clear()
            self._recent_positions.clear()
            raise

    def boundary_at(self, start: int, limit: int) -> int:
        """The last boundary between batches at or before `limit`, not before the boundary `start`."""
        if limit >= self.log.size:
            return self.log.size
        recent = self._recent_positions
        if recent and limit >= recent[0]:
            return max(start, recent[bisect_right(recent, limit) - 1])
        try:
            return self._boundary_after(max(start, self.offset_index.floor_of_position(limit)), limit)
        except InvalidBatch:
            self.distrust_indexes()
            return self._boundary_after(max(start, self.offset_index.floor_of_position(limit)), limit)

    def _boundary_after(self, floor: int, limit: int) -> int:
        for position, header in self._headers_from_index(floor):
            if position + header.size > limit:
                self._remember_resume(header.base_offset, position)
                return position
        return self.log.size

    def _remember_resume(self, offset: int, position: int) -> None:
        if len(self._resumes) >= _MAX_RESUMES:
            del self._resumes[next(iter(self._resumes))]
        self._resumes[offset] = position

    def end_of_batch(self, position: int) -> int:
        recent = self._recent_positions
        i = bisect_left(recent, position)
        if i < len(recent) and recent[i] == position:
            return recent[i + 1] if i + 1 < len(recent) else self.log.size
        header = self.header_at(position)
        self._remember_resume(header.next_offset, position + header.size)
        return position + header.size

    def offset_above(self, position: int) -> int | None:
        """An offset that no batch which begins before `position` reaches; None: only the segment's end is known as one.

        It comes from the index, so it may be some batches too high.
        """
        above = self.offset_index.offset_above(position)
        at = bisect_left(self._recent_positions, position)
        if at == len(self._recent_positions):
            return above
        recent = self._recent_offsets[at]
        return recent if above is None else min(above, recent)

    def modified_ms(self) -> int:
        """Wall time of the last write."""
        return self._files.modified_ms(segment_path(self.dir_path, self.base_offset, ".log"))

    def header_at(self, position: int) -> BatchHeader:
        return read_header(self.log.pread(HEADER_SIZE, position))

    def headers_from(self, position: int) -> Iterator[tuple[int, BatchHeader]]:
        """Positions and headers from a boundary on. Raises InvalidBatch if the file is damaged."""
        chunk, chunk_start = b"", position
        while position < self.log.size:
            at = position - chunk_start
            if at + HEADER_SIZE > len(chunk):
                chunk, chunk_start, at = self.log.pread(_HEADER_CHUNK_BYTES, position), position, 0
            header = read_header(chunk, at)
            yield position, header
            position += header.size

    def scan(self, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
        """Like `headers_from`, but reads everything, and ends at the first incomplete batch or wrong CRC."""
        size = self.log.size
        chunk, chunk_start = b"", position
        while size - position >= HEADER_SIZE:
            at = position - chunk_start
            if at + HEADER_SIZE > len(chunk):
                chunk, chunk_start, at = self.log.pread(_SCAN_CHUNK_BYTES, position), position, 0
            try:
                header = read_header(chunk, at)
            except InvalidBatch:
                return
            if position + header.size > size:
                return
            if at + header.size > len(chunk):
                chunk = self.log.pread(max(_SCAN_CHUNK_BYTES, header.size), position)
                chunk_start, at = position, 0
            if not crc_matches(chunk, at, header):
                return
            yield position, header
            position += header.size

    def last_header(self) -> BatchHeader | None:
        """Header of the last batch; None in an empty segment."""
        last: BatchHeader | None = None
        for _, header in self.headers_from(self.offset_index.floor_of_position(self.log.size)):
            last = header
        return last

    def torn_bytes(self) -> int:
        """Bytes at the end that are not a complete batch, by the headers."""
        end = self.offset_index.floor_of_position(self.log.size)
        for position, header in self.headers_from(end):
            end = position + header.size
        return self.log.size - end

    def read_batch(self, position: int) -> bytes:
        return self.log.pread(self.header_at(position).size, position)

    # cutting, closing

    def truncate_to(self, position: int, offset: int) -> None:
        """Truncate the file at a boundary; `offset` is the first removed offset."""
        self.log.truncate(position)
        self.unchecked.cut(position)
        self.offset_index.truncate(position)
        self.time_index.truncate(offset)
        if self.transaction_index is not None:
            self.transaction_index.truncate(offset)
        keep = bisect_left(self._recent_positions, position)
        del self._recent_positions[keep:]
        del self._recent_offsets[keep:]
        self._resumes.clear()
        # an entry is due once the interval is exceeded: with a reset count the next one only comes later
        self._bytes_since_index = 0
        self._find_max_timestamp()
        if position == 0:
            self.first_timestamp = -1

    def _find_max_timestamp(self) -> None:
        self.max_timestamp, self.max_timestamp_offset = self.time_index.last
        for _, header in self.headers_from(self.offset_index.floor(self.max_timestamp_offset)):
            if header.max_timestamp > self.max_timestamp and header.record_count:
                self.max_timestamp, self.max_timestamp_offset = header.max_timestamp, header.last_offset

    def start_indexes(self) -> None:
        """Start with empty indexes; the caller then calls `index_batch` or appends for every batch."""
        self._offset_index = OffsetIndex(self.base_offset)
        self._time_index = TimeIndex(self.base_offset)
        self._bytes_since_index = 0
        self._recent_offsets.clear()
        self._recent_positions.clear()
        self._resumes.clear()
        self.max_timestamp, self.max_timestamp_offset = -1, self.base_offset

    def aborts_from(self, offset: int) -> bool:
        """Whether a transaction was aborted here, at `offset` or above."""
        index = self.transaction_index
        return index is not None and bool(index.entries) and index.entries[-1].last_offset >= offset

    def start_transaction_index(self) -> None:
        """Start with an empty index of aborted transactions; the caller then calls `index_aborted` for each."""
        if self.transaction_index is not None:
            self.transaction_index.clear()

    def can_hold(self, header: BatchHeader) -> bool:
        """Whether a batch with these offsets may be in this segment.

        The CRC does not cover the base offset, so only this check finds a damaged one."""
        return self.base_offset <= header.base_offset <= header.last_offset <= self.base_offset + _MAX_RELATIVE_OFFSET

    def index_batch(self, header: BatchHeader, position: int, index_interval_bytes: int) -> None:
        """Index a batch that is in the file already, during a scan."""
        self._appended(header, position, index_interval_bytes)

    def write_indexes(self, name_suffix: str = "") -> list[File]:
        """Write the index files; the caller flushes the returned files and closes them."""
        written = self.write_sparse_indexes(name_suffix)
        if self.transaction_index is not None and (file := self.transaction_index.write(name_suffix)) is not None:
            written.append(file)
        return written

    def write_sparse_indexes(self, name_suffix: str = "") -> list[File]:
        """As `write_indexes`, without that of aborted transactions."""
        self.time_index.maybe_append(self.max_timestamp, self.max_timestamp_offset)
        written: list[File] = []
        for suffix, data in ((".index", self.offset_index.encode()), (".timeindex", self.time_index.encode())):
            path = segment_path(self.dir_path, self.base_offset, suffix) + name_suffix
            file = self._files.open(path, create=True)
            file.truncate(0)
            if data:
                file.append(data)
            written.append(file)
        return written

    @property
    def has_index_files(self) -> bool:
        return any(
            self._files.exists(segment_path(self.dir_path, self.base_offset, suffix))
            for suffix in (".index", ".timeindex")
        )

    def retire(self) -> None:
        """No more appends: free the memory for tail reads; the indexes are loaded again when needed."""
        self._recent_offsets = []
        self._recent_positions = []
        self._offset_index = None
        self._time_index = None
        if self.transaction_index is not None and self.transaction_index.is_written:
            self.transaction_index.retire()

    def load_summary(self) -> None:
        """Load the largest timestamp from the time index; rebuild a missing or inconsistent index.

        Raises InvalidBatch if that is not possible: an index of aborted transactions needs the state of producers.
        """
        if self.transaction_index is not None:
            self.transaction_index.read()
        self._load_indexes()
        self.max_timestamp, self.max_timestamp_offset = self.time_index.last

    def _load_indexes(self) -> None:
        if not self.log.size:
            # a clean stop writes none for such a segment, and what is there would be of records that were cut off
            self.start_indexes()
            return
        offset_path = segment_path(self.dir_path, self.base_offset, ".index")
        time_path = segment_path(self.dir_path, self.base_offset, ".timeindex")
        self._offset_index = read_offset_index(self._files, offset_path, self.base_offset, max(self.log.size, 1))
        self._time_index = read_time_index(self._files, time_path, self.base_offset)
        if self._offset_index is None or self._time_index is None or self._lacks_timestamps():
            self._rebuild_indexes()

    def _lacks_timestamps(self) -> bool:
        """Whether the time index is empty or has only zeros, as after a power cut, although the first batch has a
        timestamp. Retention would delete the segment.
        """
        # a batch that the cleaner has emptied has one that no record has
        return self.time_index.last[0] < self.first_timestamp and self.header_at(0).record_count > 0

    def _rebuild_indexes(self, *, is_contiguous: bool = False) -> None:
        """is_contiguous: raise InvalidBatch also for a batch that does not begin where the one before it ended, or that
        would end after the file."""
        self.start_indexes()
        expected = self.base_offset
        for position, header in self.headers_from(0):
            if not self.can_hold(header) or (is_contiguous and header.base_offset != expected):
                raise InvalidBatch(
                    f"a batch at offset {header.base_offset} in the segment that begins at {self.base_offset}"
                )
            if is_contiguous and position + header.size > self.log.size:
                raise InvalidBatch(f"the batch at byte {position} of {self.log.path} would end after the file")
            expected = header.next_offset
            self._appended(header, position, _REBUILD_INTERVAL_BYTES)
        for file in self.write_sparse_indexes():
            file.close()
        self.indexes_rebuilt = True

    def unlink(self) -> None:
        """Unlink all files of the segment. Raises OSError."""
        for suffix in SEGMENT_SUFFIXES:
            path = segment_path(self.dir_path, self.base_offset, suffix)
            if self._files.exists(path):
                self._files.unlink(path)

    def close(self) -> None:
        self.log.close()
