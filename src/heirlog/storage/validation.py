"""The leader's checks of a producer's batch, before anything is written.

They read the header, the CRC over the rest, and of an uncompressed batch the first few records (all records only if
the topic is compacted, for their keys).

A request has one batch per partition, at base offset 0. That is Kafka's rule since Produce 3; it also prevents that an
idempotent batch is a duplicate in part. Only brokers write control batches.

Timestamps far in the future are refused (message.timestamp.after.max.ms): one of them would keep its segment from
retention for years. The age (before.max.ms) is checked for the batch's first record, since only the header is read.

Source: KIP-937; Kafka's ProduceRequest.validateRecords, UnifiedLog.analyzeAndValidateRecords, LogValidator.
"""

from __future__ import annotations

from heirlog.env import Buffer
from heirlog.protocol.batch import (
    COMPRESSION_MASK,
    CONTROL,
    HEADER_SIZE,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL,
    BatchHeader,
    crc_matches,
    read_header,
    read_varint,
)
from heirlog.protocol.compression import ZSTD
from heirlog.protocol.errors import ErrorCode
from heirlog.storage.cleaning.records import keyless
from heirlog.storage.config import LogConfig
from heirlog.storage.errors import InvalidRecords, LogError

SMALLEST_RECORD_BYTES = 7
"""Length, attributes, timestamp, offset, key, value and number of headers take a byte each."""
RECORDS_LOOKED_AT = 4


def check_client_batch(records: Buffer, config: LogConfig, wall_ms: int) -> BatchHeader:
    """The header of the one batch in `records`, which arrived at `wall_ms`.

    Raises LogError or InvalidBatch with Kafka's code.
    """
    if len(records) < HEADER_SIZE:
        _check_not_empty(records)
    header = read_header(records)
    size = header.size
    if size != len(records):
        raise _wrong_size(header, len(records))
    check_size(size, config)
    if not crc_matches(records, 0, header):
        raise LogError(ErrorCode.CORRUPT_MESSAGE, "the CRC of the batch does not match: it was damaged in transit")
    if header.attributes:
        _check_attributes(header, config)
    if header.base_offset or header.record_count != header.last_offset_delta + 1:
        raise _wrong_content(header)
    if header.producer_id > NO_PRODUCER_ID and header.base_sequence <= NO_SEQUENCE:
        raise LogError(
            ErrorCode.INVALID_RECORD, f"base sequence {header.base_sequence} with producer id {header.producer_id}"
        )
    if not config.log_append_time:
        _check_timestamps(header.base_timestamp, header.max_timestamp, config, wall_ms)
    if config.compact:
        _check_keys(records, header)
    if not header.attributes & COMPRESSION_MASK:
        _check_first_records(records, header)
    return header


def _check_first_records(records: Buffer, header: BatchHeader) -> None:
    """Check that the first records have the stated lengths and offsets in the batch, and that all records can fit.

    This covers a small batch completely. To check all records of a large one would cost more than to store it; its
    later records are covered only by the CRC, which proves that they are what the producer wrote.
    """
    size, count = header.size, header.record_count
    if count * SMALLEST_RECORD_BYTES > size - HEADER_SIZE:
        raise _damaged(f"{count} records in {size - HEADER_SIZE} bytes")
    end = HEADER_SIZE
    try:
        for expected in range(count if count < RECORDS_LOOKED_AT else RECORDS_LOOKED_AT):
            # these numbers nearly always fit into one byte, and calls cost as much as the rest
            byte, position = records[end], end + 1
            if byte < 0x80:
                length = (byte >> 1) ^ -(byte & 1)
            else:
                length, position = read_varint(records, end)
            end = position + length
            position += 1  # the attributes
            position = position + 1 if records[position] < 0x80 else read_varint(records, position)[1]
            if records[position] == expected << 1:
                position += 1
            else:
                position = _end_of_offset(records, position, count)
            position = _end_of_field(records, _end_of_field(records, position))
            headers = records[position]
            # headers are not checked; each takes at least two bytes; the lowest bit of their number is its sign
            if (position + 1 != end) if not headers else (headers & 1 or position + 1 + min(headers, 0x80) > end):
                raise _damaged(f"the fields of record {expected} do not fill it")
    except IndexError:
        raise _damaged("a record ends after the end of its batch") from None
    if end > size or (count <= RECORDS_LOOKED_AT and end != size):
        raise _damaged("its records do not end at the end of the batch")


def _end_of_offset(records: Buffer, position: int, count: int) -> int:
    """Position after an offset that is not the record's index in the batch.

    Kafka stores such a record, for example from a client that gives all records the offset 0. An offset outside of the
    batch would name another batch's record, and compaction would use it.
    """
    offset_delta, end = read_varint(records, position)
    if not 0 <= offset_delta < count:
        raise _damaged(f"a record has offset {offset_delta} in a batch of {count}")
    return end


def _end_of_field(records: Buffer, position: int) -> int:
    """Position after a key or value. Raises IndexError."""
    byte = records[position]
    if byte < 0x80:
        return position + 1 if byte & 1 else position + 1 + (byte >> 1)
    length, position = read_varint(records, position)
    return position + length if length > 0 else position


def _damaged(why: str) -> LogError:
    return LogError(ErrorCode.INVALID_RECORD, f"a batch whose records are damaged: {why}")


def check_size(size: int, config: LogConfig) -> None:
    """Raises LogError for a batch that is too large for its topic."""
    if size > config.max_message_bytes:
        raise LogError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"a batch of {size} bytes; max.message.bytes of the topic is {config.max_message_bytes}",
        )
    if size > config.segment_bytes:
        raise LogError(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"a batch of {size} bytes; segment.bytes of the topic is {config.segment_bytes}",
        )


def _check_keys(records: Buffer, header: BatchHeader) -> None:
    """Refuse records without keys, which compaction could neither keep nor replace. Only here all records are read."""
    indexes = keyless(records, header)
    if indexes:
        raise InvalidRecords("a record without key in a topic with cleanup.policy=compact", indexes)


def _check_not_empty(records: Buffer) -> None:
    if not len(records):
        raise LogError(ErrorCode.INVALID_RECORD, "a partition without a record batch")


def _check_attributes(header: BatchHeader, config: LogConfig) -> None:
    if header.attributes & CONTROL:
        raise LogError(ErrorCode.INVALID_RECORD, "clients may not write control batches")
    if header.attributes & TRANSACTIONAL and header.producer_id < 0:
        raise LogError(ErrorCode.INVALID_RECORD, "a transactional batch without a producer id")
    if header.compression > ZSTD:
        raise LogError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"{header.compression} is not a compression codec")
    if header.log_append_time and not config.log_append_time:
        raise LogError(ErrorCode.INVALID_TIMESTAMP, "a producer cannot set the timestamp type LogAppendTime")


def _check_timestamps(first: int, largest: int, config: LogConfig, wall_ms: int) -> None:
    if largest > wall_ms + config.timestamp_after_max_ms:
        raise LogError(
            ErrorCode.INVALID_TIMESTAMP,
            f"timestamp {largest} is more than message.timestamp.after.max.ms={config.timestamp_after_max_ms} ahead of "
            f"this broker's clock, {wall_ms}",
        )
    if NO_TIMESTAMP < first < wall_ms - config.timestamp_before_max_ms:
        raise LogError(
            ErrorCode.INVALID_TIMESTAMP,
            f"timestamp {first} is more than message.timestamp.before.max.ms={config.timestamp_before_max_ms} behind "
            f"this broker's clock, {wall_ms}",
        )


def _wrong_size(header: BatchHeader, available: int) -> LogError:
    if header.size > available:
        return LogError(
            ErrorCode.INVALID_RECORD, f"a batch of {header.size} bytes of which only {available} have arrived"
        )
    return LogError(ErrorCode.INVALID_RECORD, "a Produce request must have exactly one record batch per partition")


def _wrong_content(header: BatchHeader) -> LogError:
    if header.base_offset:
        return LogError(
            ErrorCode.INVALID_RECORD, f"the base offset of a produced batch must be 0, not {header.base_offset}"
        )
    return LogError(
        ErrorCode.INVALID_RECORD,
        f"{header.record_count} records in a batch of {header.last_offset_delta + 1} offsets",
    )
