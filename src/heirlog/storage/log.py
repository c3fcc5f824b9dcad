"""One partition's log: record batches in segments, from the log start offset to the log end offset.

Who may do what:

* a leader appends a producer's batch: validated, given offset and epoch in place, written at once (`append_as_leader`)
* a follower, and the metadata log, append batches that have both already (`append_as_follower`)
* anyone reads whole batches, out of one segment at a time (`read`, and for clients `read_for_client`)
* what is loaded, flushed and closed: `log_files.py`; what is cut off: `log_cuts.py`

An append enters its epoch before its bytes, so that a failed write leaves at most an epoch without records.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from heirlog.env import Buffer, Region
from heirlog.protocol.batch import (
    HEADER_SIZE,
    NO_TIMESTAMP,
    BatchHeader,
    crc_matches,
    read_header,
    rewrite,
    rewrite_as_log_append_time,
    walk,
)
from heirlog.protocol.errors import ErrorCode
from heirlog.storage.cleaning.records import continued_at
from heirlog.storage.errors import LogError, OffsetOutOfRange, UnexpectedAppendOffset
from heirlog.storage.log_cuts import CutLog
from heirlog.storage.recompression import recompressed
from heirlog.storage.timestamps import TimestampOffset, first_at_or_after, largest
from heirlog.storage.validation import check_client_batch


class LogAppendInfo(NamedTuple):
    first_offset: int
    last_offset: int
    """first - 1 if nothing was appended."""
    append_time_ms: int
    """-1 unless the topic's timestamps are those of the append; of a duplicate, the original's timestamp."""
    log_start_offset: int
    duplicate: bool


class FetchDataInfo(NamedTuple):
    regions: list[Region]
    """Whole batches, valid as `Region` says."""
    size: int


_NOTHING = FetchDataInfo([], 0)


def _end_of_empty(region: Region) -> int | None:
    """The offset behind the region if none of its batches has a record."""
    if region.size % HEADER_SIZE:
        return None
    # most such regions are of that size by chance: one look at the begin tells
    if read_header(region.file.pread(HEADER_SIZE, region.position)).record_count:
        return None
    data = region.read()
    behind = None
    for position in range(0, region.size, HEADER_SIZE):
        header = read_header(data, position)
        if header.record_count:
            return None
        behind = header.next_offset
    return behind


class Log(CutLog):
    """Open with `Log.open`."""

    # appending

    def append_as_leader(self, records: bytearray | memoryview, leader_epoch: int, wall_ms: int) -> LogAppendInfo:
        """Append one producer's batch; offset and epoch are written into `records`.

        Raises LogError or InvalidBatch with Kafka's code, or OSError; nothing was appended then.
        """
        if self.failure is not None:
            raise self.failure
        config = self.config
        header = check_client_batch(records, config, wall_ms)
        if header.producer_id >= 0:
            original = self.producers.check(header)
            if original is not None:
                return LogAppendInfo(
                    original.base_offset, original.last_offset, original.timestamp_ms, self.log_start_offset, True
                )
        if config.compression is not None and config.compression != header.compression:
            records, header = recompressed(records, header, config.compression, config)
        first = self.log_end_offset
        rewrite(records, 0, first, leader_epoch)
        append_time_ms = NO_TIMESTAMP
        max_timestamp = header.max_timestamp
        if config.log_append_time:
            rewrite_as_log_append_time(records, 0, header, wall_ms)
            append_time_ms = max_timestamp = wall_ms
        self._append(records, [header.stored_at(first, leader_epoch, max_timestamp)], wall_ms)
        return LogAppendInfo(first, self.log_end_offset - 1, append_time_ms, self.log_start_offset, False)

    def append_as_follower(self, records: Buffer, max_epoch: int) -> LogAppendInfo:
        """Append batches that have their offsets and epochs and continue this log.

        A batch cut off at the end, and everything from the first batch of an epoch above `max_epoch` on, is left out:
        it belongs to a leader that this follower has not checked its log against (KAFKA-18723). Raises
        UnexpectedAppendOffset, LogError (CRC), InvalidBatch or OSError; nothing was appended then.
        """
        if self.failure is not None:
            raise self.failure
        first = expected = self.log_end_offset
        headers: list[BatchHeader] = []
        end = 0
        for position, header in walk(records, partial_tail=True):
            if header.leader_epoch > max_epoch:
                break
            if header.base_offset != expected:
                if header.base_offset < expected <= header.last_offset and header.is_filler and not headers:
                    return self.append_as_follower(continued_at(records, header, expected), max_epoch)
                raise UnexpectedAppendOffset(str(self), expected, header.base_offset)
            if not crc_matches(records, position, header):
                raise LogError(
                    ErrorCode.CORRUPT_MESSAGE, f"the CRC of the batch at offset {expected} of {self} does not match"
                )
            headers.append(header)
            expected, end = header.next_offset, position + header.size
        if headers:
            self._append(memoryview(records)[:end], headers, None)
        return LogAppendInfo(first, expected - 1, NO_TIMESTAMP, self.log_start_offset, False)

    def _append(self, data: Buffer, headers: list[BatchHeader], wall_ms: int | None) -> None:
        config = self.config
        last = headers[-1]
        next_offset = last.base_offset + last.last_offset_delta + 1
        active = self._active
        max_timestamp = last.max_timestamp if len(headers) == 1 else max(header.max_timestamp for header in headers)
        # a follower's segments are rolled in record time; in wall time by `maybe_roll`
        now_ms = active.created_ms if wall_ms is None else wall_ms
        if active.must_roll(len(data), max_timestamp, next_offset - 1, now_ms, config):
            self.roll()
            active = self._active
        epochs = self.epochs
        for header in headers:
            if header.leader_epoch > epochs.latest:
                epochs.assign(header.leader_epoch, header.base_offset)
        active.append(data, headers, config.index_interval_bytes)
        self.log_end_offset = next_offset
        for header in headers:
            if header.producer_id >= 0:
                self.producers.update(header)

    # reading

    def read(self, offset: int, max_bytes: int, upto_offset: int, min_one: bool = True) -> FetchDataInfo:
        """Whole batches, from the one that holds `offset` to at most `upto_offset`, out of one segment.

        `min_one`: the first batch comes even if it is larger than `max_bytes` (KIP-74). Raises OffsetOutOfRange.
        """
        if offset < self.log_start_offset or offset > self.log_end_offset:
            raise OffsetOutOfRange(str(self), offset, self.log_start_offset, self.log_end_offset)
        if upto_offset > self.log_end_offset:
            upto_offset = self.log_end_offset
        if offset >= upto_offset:
            return _NOTHING
        segment = self._active
        segment_end = self.log_end_offset
        if offset < segment.base_offset:
            i = bisect_right(self._bases, offset) - 1
            segment = self._segments[i]
            segment_end = self._bases[i + 1]
        start = segment.position_of(offset)
        end = segment.size if upto_offset >= segment_end else segment.position_of(upto_offset)
        if end - start > max_bytes:
            end = segment.boundary_at(start, start + max_bytes)
            if end == start and min_one:
                end = segment.end_of_batch(start)
        if end <= start:
            return _NOTHING
        return FetchDataInfo([Region(segment.log, start, end - start)], end - start)

    def read_for_client(self, offset: int, max_bytes: int, upto_offset: int, min_one: bool = True) -> FetchDataInfo:
        """As `read`, but never batches without records (the log cleaner's) alone where records follow them.

        To clients a batch without records is rare: kafkajs takes it for the end of the log and asks for the same offset
        again, for ever.
        """
        first = found = self.read(offset, max_bytes, upto_offset, min_one)
        while found.size and (behind := _end_of_empty(found.regions[0])) is not None:
            found = self.read(behind, max_bytes, upto_offset, min_one)
        return found if found.size else first

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """(epoch, end offset) of the largest epoch not above the one asked for, or (-1, -1): see `epochs.py`."""
        return self.epochs.end_offset_for(epoch, self.log_end_offset)

    def offset_for_timestamp(self, timestamp_ms: int, upto_offset: int) -> TimestampOffset | None:
        """The first record at or after a time, below `upto_offset`; None if there is none."""
        return first_at_or_after(self._segments, timestamp_ms, self.log_start_offset, upto_offset)

    def max_timestamp_offset(self, upto_offset: int) -> TimestampOffset | None:
        """The first record with the largest timestamp in the batches below `upto_offset` (KIP-734)."""
        return largest(self._segments, self.log_start_offset, min(upto_offset, self.log_end_offset))
