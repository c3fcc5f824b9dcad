"""The records of a batch for the log cleaner, and the same batch with fewer records.

Records are found by their positions and not decoded: the cleaner needs each record's key, whether it has a value, and
its offset. Kept records are copied, so headers and values do not change.

    some records removed     base offset, last offset delta, sequences, leader epoch and attributes stay; record count,
                             maximum timestamp, length and CRC are new; compressed with the codec it had
    tombstones, first time   in addition, the delete horizon replaces the base timestamp (attribute bit 6), and the
                             records' timestamp deltas are rewritten relative to it (KIP-534)
    all records removed      an empty batch: see `empty_batch`

Source: Kafka's MemoryRecords.filterTo, DefaultRecordBatch.writeEmptyHeader.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from struct import Struct
from typing import NamedTuple

from heirlog.env import Buffer, Region
from heirlog.protocol.batch import (
    COMPRESSION_MASK,
    DELETE_HORIZON,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    MAGIC,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    BatchHeader,
    InvalidBatch,
    crc_matches,
    put_varint,
    read_header,
    read_varint,
)
from heirlog.protocol.checksum import crc32c
from heirlog.protocol.compression import compress, decompress

_HEADER = Struct(">qiibIhiqqqhii")
_CRC = Struct(">I")
_CRC_AT = 17
_CRC_START = 21
_INT64_MAX = 2**63 - 1

KEYLESS_LISTED_MAX = 1000
"""Limit of reported records. Each is an entry of the produce response, and a batch of a few KB may hold millions."""


class RecordSpan(NamedTuple):
    """One record within the decompressed records of a batch."""

    start: int
    """Position of its length field."""
    offset_at: int
    """Position of its offset delta, which follows length, attributes and timestamp delta."""
    end: int
    timestamp_delta: int
    offset_delta: int
    key: bytes | None
    has_value: bool


def payload_of(batch: Buffer, header: BatchHeader) -> bytes:
    """The records of a whole batch, decompressed. Raises DecompressionError."""
    return bytes(decompress(header.compression, memoryview(batch)[HEADER_SIZE : header.size]))


def spans(payload: bytes, header: BatchHeader) -> Iterator[RecordSpan]:
    """Raises InvalidBatch if the records are damaged."""
    position = 0
    size = len(payload)
    new = RecordSpan.__new__
    try:
        for _ in range(header.record_count):
            start = position
            length, position = read_varint(payload, position)
            end = position + length
            # this number nearly always fits into one byte, and a call costs as much as the rest
            position += 1
            byte = payload[position]
            if byte < 0x80:
                timestamp_delta, offset_at = (byte >> 1) ^ -(byte & 1), position + 1
            else:
                timestamp_delta, offset_at = read_varint(payload, position)
            offset_delta, position = read_varint(payload, offset_at)
            byte = payload[position]
            if byte < 0x80:
                key_size, position = (byte >> 1) ^ -(byte & 1), position + 1
            else:
                key_size, position = read_varint(payload, position)
            key = None
            if key_size >= 0:
                key = payload[position : position + key_size]
                position += key_size
            byte = payload[position]
            if byte < 0x80:
                value_size, position = (byte >> 1) ^ -(byte & 1), position + 1
            else:
                value_size, position = read_varint(payload, position)
            if length < 0 or end > size or position + max(value_size, 0) > end:
                raise _damaged(header)
            yield new(RecordSpan, start, offset_at, end, timestamp_delta, offset_delta, key, value_size >= 0)
            position = end
    except IndexError as error:
        raise _damaged(header) from error
    if position != size:
        raise _damaged(header)


def _damaged(header: BatchHeader) -> InvalidBatch:
    return InvalidBatch(f"the records of the batch at offset {header.base_offset} are damaged")


def keyless(batch: Buffer, header: BatchHeader) -> list[int]:
    """Indexes of the records in a whole batch that have no key: the first `KEYLESS_LISTED_MAX` of them.

    Raises InvalidBatch and DecompressionError.
    """
    found = (index for index, span in enumerate(spans(payload_of(batch, header), header)) if span.key is None)
    return list(islice(found, KEYLESS_LISTED_MAX))


def with_records(
    header: BatchHeader, payload: bytes, kept: Sequence[RecordSpan], new_horizon_ms: int | None
) -> tuple[bytes, BatchHeader]:
    """The batch with only these records; `new_horizon_ms`, if given, becomes its delete horizon."""
    attributes, base_timestamp = header.attributes, header.base_timestamp
    if new_horizon_ms is None:
        records = b"".join([payload[span.start : span.end] for span in kept])
    else:
        shift = base_timestamp - new_horizon_ms
        records = b"".join([_with_timestamp(payload, span, span.timestamp_delta + shift) for span in kept])
        attributes |= DELETE_HORIZON
        base_timestamp = new_horizon_ms
    max_timestamp = header.max_timestamp
    if not header.log_append_time:
        max_timestamp = latest_timestamp(header, kept)
    content = compress(header.compression, records)
    return _written(header, attributes, base_timestamp, max_timestamp, len(kept), content)


def latest_timestamp(header: BatchHeader, records: Iterable[RecordSpan]) -> int:
    """Of these records of the batch."""
    return _nearest_int64(header.base_timestamp + max(span.timestamp_delta for span in records))


def _nearest_int64(sum_of_times: int) -> int:
    """A producer may send a delta with which the sum is no 64-bit number any more. (Kafka's wraps around.)"""
    return min(max(sum_of_times, -_INT64_MAX - 1), _INT64_MAX)


def rewritten(
    header: BatchHeader, payload: bytes, max_timestamp: int, codec: int, level: int | None
) -> tuple[bytes, BatchHeader]:
    """The batch with the same records, compressed with another codec."""
    attributes = header.attributes & ~COMPRESSION_MASK | codec
    content = compress(codec, payload, level)
    return _written(header, attributes, header.base_timestamp, max_timestamp, header.record_count, content)


def empty_batch(header: BatchHeader) -> tuple[bytes, BatchHeader]:
    """The rest of a producer's last batch: its sequences and offsets, so that the producer may continue."""
    attributes = header.attributes & ~(COMPRESSION_MASK | DELETE_HORIZON)
    return _written(header, attributes, NO_TIMESTAMP, header.max_timestamp, 0, b"")


def filler(base_offset: int, last_offset: int, leader_epoch: int) -> tuple[bytes, BatchHeader]:
    """A batch without records that covers offsets of one leader epoch."""
    blank = BatchHeader(
        base_offset,
        HEADER_SIZE,
        leader_epoch,
        MAGIC,
        0,
        0,
        last_offset - base_offset,
        NO_TIMESTAMP,
        NO_TIMESTAMP,
        NO_PRODUCER_ID,
        NO_PRODUCER_EPOCH,
        NO_SEQUENCE,
        0,
    )
    return _written(blank, 0, NO_TIMESTAMP, NO_TIMESTAMP, 0, b"")


def continued_at(records: Buffer, header: BatchHeader, offset: int) -> bytearray:
    """The leader's batches from `offset` on, if the first one is a filler that begins before `offset`.

    Each replica compacts on its own, so one may have a single filler where another has several batches. Fetches start
    at boundaries of appended batches, and only a filler spans several of them. Raises InvalidBatch (CRC).
    """
    if not crc_matches(records, 0, header):
        raise InvalidBatch(f"the CRC of the empty batch at offset {header.base_offset} does not match")
    batch, _ = filler(offset, header.last_offset, header.leader_epoch)
    return bytearray(batch) + memoryview(records)[header.size :]


def end_of_empty(region: Region) -> int | None:
    """The offset that follows the region's batches if none of them has a record."""
    if region.size % HEADER_SIZE:
        return None
    # most regions of such a size have it by chance: the first header shows that
    if read_header(region.file.pread(HEADER_SIZE, region.position)).record_count:
        return None
    data = region.read()
    next_offset = None
    for position in range(0, region.size, HEADER_SIZE):
        header = read_header(data, position)
        if header.record_count:
            return None
        next_offset = header.next_offset
    return next_offset


def _written(
    header: BatchHeader, attributes: int, base_timestamp: int, max_timestamp: int, count: int, content: Buffer
) -> tuple[bytes, BatchHeader]:
    size = HEADER_SIZE + len(content)
    batch = bytearray(size)
    _HEADER.pack_into(
        batch,
        0,
        header.base_offset,
        size - LENGTH_OVERHEAD,
        header.leader_epoch,
        MAGIC,
        0,
        attributes,
        header.last_offset_delta,
        base_timestamp,
        max_timestamp,
        *header[9:12],
        count,
    )
    batch[HEADER_SIZE:] = content
    _CRC.pack_into(batch, _CRC_AT, crc32c(memoryview(batch)[_CRC_START:]))
    return bytes(batch), read_header(batch)


def _with_timestamp(payload: bytes, span: RecordSpan, timestamp_delta: int) -> bytes:
    # the attributes byte is right before the timestamp delta, which ends where the offset delta begins
    attributes_at = read_varint(payload, span.start)[1]
    body = bytearray(payload[attributes_at : attributes_at + 1])
    put_varint(body, _nearest_int64(timestamp_delta))
    body += payload[span.offset_at : span.end]
    record = bytearray()
    put_varint(record, len(body))
    return bytes(record + body)
