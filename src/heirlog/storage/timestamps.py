"""ListOffsets by timestamp: the first record at or after a time, and the record with the largest timestamp.

The time index gives the batch header from which to search; only the batch that holds the answer is decoded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from heirlog.protocol.batch import BatchHeader, iter_records
from heirlog.storage.segment import Segment


class TimestampOffset(NamedTuple):
    timestamp_ms: int
    offset: int
    leader_epoch: int


def first_at_or_after(
    segments: Sequence[Segment], timestamp_ms: int, start_offset: int, upto_offset: int
) -> TimestampOffset | None:
    """The first record in [start, upto) with that timestamp or a later one."""
    for segment in segments:
        if segment.base_offset >= upto_offset:
            return None
        if segment.max_timestamp < timestamp_ms or not segment.size:
            continue
        position = segment.offset_index.floor(max(segment.time_index.floor(timestamp_ms), start_offset))
        for at, header in segment.headers_from(position):
            if header.base_offset >= upto_offset:
                return None
            if header.max_timestamp >= timestamp_ms and header.next_offset > start_offset:
                found = _first_in_batch(segment, at, header, timestamp_ms, start_offset)
                if found is not None:
                    return found if found.offset < upto_offset else None
    return None


def _first_in_batch(
    segment: Segment, position: int, header: BatchHeader, timestamp_ms: int, start_offset: int
) -> TimestampOffset | None:
    for record in iter_records(segment.log.pread(header.size, position)):
        if record.timestamp_ms >= timestamp_ms and record.offset >= start_offset:
            return TimestampOffset(record.timestamp_ms, record.offset, header.leader_epoch)
    return None


def largest(segments: Sequence[Segment], start_offset: int, upto_offset: int) -> TimestampOffset | None:
    """The first of the records with the largest timestamp in [start, upto); None if there is no record."""
    best: tuple[Segment, int, BatchHeader] | None = None
    for segment in segments:
        if best is not None and segment.max_timestamp <= best[2].max_timestamp:
            continue
        for position, header in _headers_between(segment, start_offset, upto_offset):
            # an empty batch of the log cleaner has no record with its timestamp
            if header.record_count and (best is None or header.max_timestamp > best[2].max_timestamp):
                best = segment, position, header
    if best is None:
        return None
    segment, position, header = best
    return _first_in_batch(segment, position, header, header.max_timestamp, start_offset)


def _headers_between(segment: Segment, start_offset: int, upto_offset: int) -> Iterator[tuple[int, BatchHeader]]:
    """Whole batches of the range. If the segment's maximum is in the range, the search starts there."""
    begin = start_offset
    if start_offset <= segment.max_timestamp_offset < upto_offset:
        begin = max(start_offset, segment.time_index.floor(segment.max_timestamp))
    for position, header in segment.headers_from(segment.offset_index.floor(begin)):
        if header.last_offset >= upto_offset:
            return
        if header.base_offset >= start_offset or header.next_offset > start_offset:
            yield position, header
