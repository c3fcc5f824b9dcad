"""Whether a segment still holds what was written: read once, when its bytes are first served after a start.

Batches that were appended since then are not read again (`unchecked_bytes.py`).
"""

from __future__ import annotations

from heirlog.protocol.batch import InvalidBatch
from heirlog.storage.epochs import LeaderEpochCache
from heirlog.storage.errors import DamagedLog
from heirlog.storage.segment import Segment

_CHECKED_AT_ONCE_BYTES = 1024 * 1024
"""A small read checks so much more: the next ones will follow."""


def check(segment: Segment, offset: int, start: int, end: int, epochs: LeaderEpochCache) -> None:
    """Check the batches from one boundary to another, as far as none of this was checked before.

    That is their CRCs, and what no CRC covers: their offsets, of which the first batch holds `offset` and the
    others follow each other, and their leader epochs. Raises DamagedLog.
    """
    ahead = min(max(end, start + _CHECKED_AT_ONCE_BYTES), segment.unchecked.end)
    for first, last in list(segment.unchecked.parts(start, ahead)):
        position, expected = first, _offset_at(segment, start, first)
        for at, header in segment.scan(first):
            follows = (
                header.base_offset == expected if at > start else header.base_offset <= offset < header.next_offset
            )
            if at >= last or not follows or not epochs.agrees(header):
                break
            position, expected = at + header.size, header.next_offset
        segment.unchecked.checked(first, position)
        if position < min(last, end):
            raise DamagedLog(segment.log.path, position, segment.base_offset)
        if position < last:
            return  # what is asked for is sound


def _offset_at(segment: Segment, start: int, position: int) -> int:
    """The offset after the batch that ends at `position`, by the headers from `start` on; -1 if it is `start`."""
    return next((found.next_offset for at, found in segment.headers_from(start) if at + found.size == position), -1)


def has_damage(segment: Segment, position: int) -> bool:
    """Whether the damage that `check` or `damage` found there is still in the file, or there is other damage.

    Damaged bytes stay unchecked; bytes that were appended after a truncation do not.
    """
    try:
        return any(segment.unchecked.parts(position, position + 1)) or damage(segment).position < segment.size
    except OSError:
        return True


def damage(segment: Segment) -> DamagedLog:
    """Where the file stops being a row of batches, by their headers."""
    end = 0
    try:
        for position, header in segment.headers_from(0):
            if position + header.size > segment.log.size:
                break
            end = position + header.size
    except InvalidBatch:
        pass
    return DamagedLog(segment.log.path, end, segment.base_offset)
