"""Record batches, format version ("magic") 2: the unit that is produced, stored, replicated and fetched.

    0  base offset      int64      23 last offset delta  int32      51 producer epoch  int16
    8  batch length     int32      27 base timestamp     int64      53 base sequence   int32
    12 leader epoch     int32      35 max timestamp      int64      57 record count    int32
    16 magic            int8       43 producer id        int64      61 records
    17 CRC-32C          uint32
    21 attributes       int16: codec 0-2, log append time 3, transactional 4, control 5, delete horizon 6

The length counts what follows it, the CRC covers everything from the attributes on. So a leader gives a batch its
offset and epoch by writing 12 bytes into the receive buffer, and neither the CRC nor the records are touched. Hot paths
read these 61 bytes and nothing else; records are decoded for clients, tests, the metadata log and timestamp search.

Traps. Formats 0 and 1 have their magic byte in the same place, so byte 16 tells them apart before anything else is
believed. After compaction a batch may hold fewer records than its last offset delta says, and its base offset stays.
A sequence number wraps from 2^31-1 to 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from struct import Struct
from struct import error as StructError
from typing import NamedTuple, TypeAlias

from heirlog.env import Buffer
from heirlog.protocol.checksum import crc32c
from heirlog.protocol.compression import MAX_DECOMPRESSED_BYTES, compress, decompress
from heirlog.protocol.errors import ErrorCode, KafkaError

HEADER_SIZE = 61
LENGTH_OVERHEAD = 12
"""Base offset and length itself: what the length field does not count."""
MAGIC = 2
NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_TIMESTAMP = -1
NO_LEADER_EPOCH = -1
LAST_SEQUENCE = 2**31 - 1

_SHORTEST = HEADER_SIZE - LENGTH_OVERHEAD
"""What the length field says of a batch without records."""
_CRC_START = 21
_MAGIC_AT = 16
_ATTRIBUTES_LOW_AT = 22
_HEADER = Struct(">qiibIhiqqqhii")
_BASE_OFFSET = Struct(">q")
_LEADER_EPOCH = Struct(">i")
_CRC = Struct(">I")
_ATTRIBUTES = Struct(">h")
_MAX_TIMESTAMP = Struct(">q")
_new = tuple.__new__

COMPRESSION_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
DELETE_HORIZON = 0x40

Headers: TypeAlias = Sequence[tuple[str, bytes | None]]
NewRecord: TypeAlias = tuple[bytes | None, bytes | None, Headers, int]
"""Key, value, headers, timestamp in ms."""


class InvalidBatch(KafkaError):
    """Bytes that are not a whole record batch of format 2."""

    def __init__(self, message: str, code: ErrorCode = ErrorCode.CORRUPT_MESSAGE) -> None:
        super().__init__(code, message)


class BatchHeader(NamedTuple):
    base_offset: int
    size: int
    """Of the whole batch in bytes."""
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """-1 without a producer id; wraps at 2^31-1."""
        if self.base_sequence < 0:
            return NO_SEQUENCE
        return advance_sequence(self.base_sequence, self.last_offset_delta)

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL != 0

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL != 0

    @property
    def delete_horizon_ms(self) -> int | None:
        """From when on the log cleaner may drop this batch's tombstones. It stands where the base timestamp was, and
        the timestamps of the records are relative to it."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON else None

    @property
    def is_filler(self) -> bool:
        """No records, of no producer: it covers offsets whose records the log cleaner removed."""
        return self.record_count == 0 and self.producer_id < 0

    @property
    def compression(self) -> int:
        """The codec, 0-4; 5-7 are not assigned."""
        return self.attributes & COMPRESSION_MASK

    @property
    def log_append_time(self) -> bool:
        return self.attributes & LOG_APPEND_TIME != 0

    def stored_at(self, base_offset: int, leader_epoch: int, max_timestamp: int) -> BatchHeader:
        """This header with what a leader writes into it."""
        fields = (base_offset, self[1], leader_epoch, *self[3:8], max_timestamp, *self[9:])
        return tuple.__new__(BatchHeader, fields)


class Record(NamedTuple):
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


def advance_sequence(sequence: int, by: int) -> int:
    """Sequence numbers are 31 bits wide and start again at 0."""
    return (sequence + by) & LAST_SEQUENCE


def read_header(buf: Buffer, position: int = 0) -> BatchHeader:
    """Raises InvalidBatch if not even a header is there, or what is there cannot be a batch of format 2.

    Says nothing about whether the rest of the batch is in `buf`, nor about the CRC.
    """
    try:
        (
            base_offset,
            length,
            leader_epoch,
            magic,
            crc,
            attributes,
            last_offset_delta,
            base_timestamp,
            max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            record_count,
        ) = _HEADER.unpack_from(buf, position)
    except StructError as error:
        raise _not_a_header(buf, position) from error
    if magic != MAGIC or length < _SHORTEST or last_offset_delta < 0 or base_offset < 0:
        raise _not_a_header(buf, position)
    # as BatchHeader(...) does, without the call in between: every batch is read several times on its way
    return _new(
        BatchHeader,
        (
            base_offset,
            length + LENGTH_OVERHEAD,
            leader_epoch,
            magic,
            crc,
            attributes,
            last_offset_delta,
            base_timestamp,
            max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            record_count,
        ),
    )


def _not_a_header(buf: Buffer, position: int) -> InvalidBatch:
    available = len(buf) - position
    if available > _MAGIC_AT and buf[position + _MAGIC_AT] in (0, 1):
        magic = buf[position + _MAGIC_AT]
        return InvalidBatch(
            f"a message of format {magic}; only record batches of format 2 are stored", ErrorCode.INVALID_RECORD
        )
    if available < HEADER_SIZE:
        return InvalidBatch(f"{available} bytes are too few for the header of a record batch")
    base_offset, length, _, magic, _, _, last_offset_delta, *_ = _HEADER.unpack_from(buf, position)
    return InvalidBatch(
        f"not a record batch: base offset {base_offset}, length {length}, magic {magic}, "
        f"last offset delta {last_offset_delta}"
    )


def walk(buf: Buffer, *, partial_tail: bool = False) -> Iterator[tuple[int, BatchHeader]]:
    """Each batch's position and header, in order.

    A Fetch answer may end inside a batch: with `partial_tail` the walk stops there. Otherwise, and for anything that is
    damaged rather than cut, it raises InvalidBatch.
    """
    position, end = 0, len(buf)
    while position < end:
        if partial_tail and end - position < HEADER_SIZE:
            return
        header = read_header(buf, position)
        if position + header.size > end:
            if partial_tail:
                return
            raise InvalidBatch(f"a batch of {header.size} bytes of which only {end - position} are there")
        yield position, header
        position += header.size


def crc_matches(buf: Buffer, position: int, header: BatchHeader) -> bool:
    """False too if the batch does not end inside `buf`."""
    end = position + header.size
    if end > len(buf):
        return False
    return crc32c(memoryview(buf)[position + _CRC_START : end]) == header.crc


def rewrite(buf: bytearray | memoryview, position: int, base_offset: int, leader_epoch: int) -> None:
    """Give a batch its place in the log, in place. Neither field is covered by the CRC."""
    _BASE_OFFSET.pack_into(buf, position, base_offset)
    _LEADER_EPOCH.pack_into(buf, position + 12, leader_epoch)


def rewrite_as_log_append_time(
    buf: bytearray | memoryview, position: int, header: BatchHeader, append_time_ms: int
) -> None:
    """Set the batch's timestamp type and maximum timestamp in place, and the CRC that this changes.

    The records keep their deltas: readers take the maximum timestamp for all of them (message.timestamp.type).
    """
    _ATTRIBUTES.pack_into(buf, position + _CRC_START, header.attributes | LOG_APPEND_TIME)
    _MAX_TIMESTAMP.pack_into(buf, position + 35, append_time_ms)
    _write_crc(buf, position, header.size)


def is_transactional(view: memoryview) -> bool:
    """Whether the first batch is part of a transaction. False for what is too short or of another magic."""
    return len(view) >= HEADER_SIZE and view[_MAGIC_AT] == MAGIC and bool(view[_ATTRIBUTES_LOW_AT] & TRANSACTIONAL)


def encode_batch(
    records: Sequence[NewRecord],
    base_offset: int = 0,
    leader_epoch: int = NO_LEADER_EPOCH,
    compression: int = 0,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    control: bool = False,
    transactional: bool = False,
) -> bytearray:
    """One batch whose records have consecutive offsets. Raises ValueError without records."""
    if not records:
        raise ValueError("a record batch has at least one record")
    base_timestamp = records[0][3]
    body = bytearray()
    for delta, record in enumerate(records):
        _encode_record(body, delta, base_timestamp, record)
    payload = compress(compression, body)
    size = HEADER_SIZE + len(payload)
    buf = bytearray(HEADER_SIZE)
    _HEADER.pack_into(
        buf,
        0,
        base_offset,
        size - LENGTH_OVERHEAD,
        leader_epoch,
        MAGIC,
        0,
        compression | (CONTROL if control else 0) | (TRANSACTIONAL if transactional else 0),
        len(records) - 1,
        base_timestamp,
        max(record[3] for record in records),
        producer_id,
        producer_epoch,
        base_sequence,
        len(records),
    )
    buf += payload
    _write_crc(buf, 0, size)
    return buf


def decode_records(
    buf: Buffer, position: int = 0, max_bytes: int = MAX_DECOMPRESSED_BYTES, header: BatchHeader | None = None
) -> list[Record]:
    """The records of one whole batch; the CRC is not checked. header: the batch's, if it is known.

    Raises InvalidBatch if they are damaged, DecompressionError if they hold more than `max_bytes`.
    """
    header, data = _records_of(buf, position, max_bytes, header)
    try:
        return list(_decode_all(data, header))
    except (IndexError, UnicodeDecodeError) as error:
        raise _damaged_records(header) from error


def iter_records(buf: Buffer, position: int = 0, max_bytes: int = MAX_DECOMPRESSED_BYTES) -> Iterator[Record]:
    """As `decode_records`, one after the other: nine million records fit into a batch of some kilobytes."""
    header, data = _records_of(buf, position, max_bytes)
    try:
        yield from _decode_all(data, header)
    except (IndexError, UnicodeDecodeError) as error:
        raise _damaged_records(header) from error


def _records_of(
    buf: Buffer, position: int, max_bytes: int, header: BatchHeader | None = None
) -> tuple[BatchHeader, bytes]:
    """The batch's header, and its records as they are when they are not compressed."""
    if header is None:
        header = read_header(buf, position)
    if position + header.size > len(buf):
        raise InvalidBatch(f"a batch of {header.size} bytes of which only {len(buf) - position} are there")
    payload = memoryview(buf)[position + HEADER_SIZE : position + header.size]
    codec = header.attributes & COMPRESSION_MASK
    return header, bytes(decompress(codec, payload, max_bytes) if codec else payload)


def _damaged_records(header: BatchHeader) -> InvalidBatch:
    return InvalidBatch(f"the records of the batch at offset {header.base_offset} are damaged")


def _write_crc(buf: bytearray | memoryview, position: int, size: int) -> None:
    _CRC.pack_into(buf, position + 17, crc32c(memoryview(buf)[position + _CRC_START : position + size]))


def _encode_record(out: bytearray, delta: int, base_timestamp: int, record: NewRecord) -> None:
    key, value, headers, timestamp_ms = record
    body = bytearray(1)
    put_varint(body, timestamp_ms - base_timestamp)
    put_varint(body, delta)
    _put_bytes(body, key)
    _put_bytes(body, value)
    if headers:
        put_varint(body, len(headers))
        for name, content in headers:
            _put_bytes(body, name.encode())
            _put_bytes(body, content)
    else:
        body.append(0)
    put_varint(out, len(body))
    out += body


def _put_bytes(out: bytearray, data: bytes | None) -> None:
    if data is None:
        out.append(1)  # -1, zigzag
        return
    size = len(data)
    if size < 0x40:
        out.append(size << 1)
    else:
        put_varint(out, size)
    out += data


def put_varint(out: bytearray, value: int) -> None:
    """Append the zigzag varint that the fields of a record are made of."""
    if 0 <= value < 0x40:
        out.append(value << 1)
        return
    value = value << 1 if value >= 0 else (-value << 1) - 1
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def read_varint(data: Buffer, position: int) -> tuple[int, int]:
    """The value and the position behind it. Raises IndexError at the end of the data."""
    byte = data[position]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), position + 1
    second = data[position + 1]
    if second < 0x80:  # written out for the lengths of most records
        value = byte & 0x7F | second << 7
        return (value >> 1) ^ -(value & 1), position + 2
    value, shift, position = byte & 0x7F | (second & 0x7F) << 7, 14, position + 2
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position
        shift += 7
        if shift > 63:
            raise IndexError("a varint of more than ten bytes")


def _nullable_bytes(data: bytes, position: int) -> tuple[bytes | None, int]:
    size = data[position]
    if size < 0x80:
        size, position = (size >> 1) ^ -(size & 1), position + 1
    else:
        size, position = read_varint(data, position)
    if size < 0:
        return None, position
    end = position + size
    if end > len(data):
        raise IndexError("a field reaches beyond the batch")
    return data[position:end], end


def _decode_all(data: bytes, header: BatchHeader) -> Iterator[Record]:
    position = 0
    value: bytes | None
    append_time_ms = header.max_timestamp if header.log_append_time else None
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    data_end = len(data)
    for _ in range(header.record_count):
        # `read_varint` without the call: nearly all have one byte, and there are six in a record
        size = data[position]
        if size < 0x80:
            size, position = (size >> 1) ^ -(size & 1), position + 1
        else:
            size, position = read_varint(data, position)
        end = position + size
        if size < 0 or end > data_end:
            raise IndexError("a record reaches beyond the batch")
        timestamp_delta = data[position + 1]
        if timestamp_delta < 0x80:
            timestamp_delta, position = (timestamp_delta >> 1) ^ -(timestamp_delta & 1), position + 2
        else:
            timestamp_delta, position = read_varint(data, position + 1)
        offset_delta = data[position]
        if offset_delta < 0x80:
            offset_delta, position = (offset_delta >> 1) ^ -(offset_delta & 1), position + 1
        else:
            offset_delta, position = read_varint(data, position)
        key, position = _nullable_bytes(data, position)
        # `_nullable_bytes` without the call, where the value has less than 64 bytes and is inside the record
        size = data[position]
        if size < 0x80 and not size & 1 and (value_end := position + 1 + (size >> 1)) < end:
            value, position = data[position + 1 : value_end], value_end
        else:
            value, position = _nullable_bytes(data, position)
        headers: tuple[tuple[str, bytes | None], ...] = ()
        if data[position] == 0:
            position += 1
        else:
            headers, position = _decode_headers(data, position)
        if position != end:
            raise IndexError("the fields of a record are shorter than the record")
        timestamp_ms = base_timestamp + timestamp_delta if append_time_ms is None else append_time_ms
        # as Record(...) does, without the call in between
        yield tuple.__new__(Record, (base_offset + offset_delta, timestamp_ms, key, value, headers))
    if position != data_end:
        raise IndexError("bytes after the last record")


def _decode_headers(data: bytes, position: int) -> tuple[tuple[tuple[str, bytes | None], ...], int]:
    count, position = read_varint(data, position)
    if count == 0:
        return (), position
    if count < 0 or count > len(data):
        raise IndexError("an impossible number of record headers")
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        name, position = _nullable_bytes(data, position)
        if name is None:
            raise IndexError("a record header without a name")
        content, position = _nullable_bytes(data, position)
        headers.append((name.decode(), content))
    return tuple(headers), position
