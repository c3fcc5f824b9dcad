"""Fetched bytes of one partition to `pyarrow.RecordBatch`es with the columns of Spark's Kafka source.

    fetched bytes --batches--> segments --kernel--> Arrow buffers --> RecordBatch
                     |  before the start, control, aborted: skipped
                     |  compressed: decompressed only if needed

Batches are collected until some 65,000 records or 16 MiB are together and decoded in one pass: a Python call costs as
much as forty records. Decompression waits until the batch's turn, so that one answer of highly compressed batches
cannot fill the memory. The client checks the checksums (`heirlog.blocking`).

Skipped records. A fetch may begin before its offset, because batches come whole. After compaction offsets have gaps. A
control batch ends a transaction and holds no data, and with read_committed batches of aborted transactions are skipped
(`client/aborted.py`).

Columns that were not requested are not built. Row memory is Arrow's own, so buffers are reused between batches.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from heirlog.client.aborted import AbortedTransactions
from heirlog.env import Buffer
from heirlog.protocol.batch import HEADER_SIZE, BatchHeader, InvalidBatch, walk
from heirlog.protocol.compression import DecompressionError, decompress
from heirlog.spark import kernels
from heirlog.spark.kernels import (
    SEGMENT_FIELDS,
    SMALLEST_RECORD_BYTES,
    STATE_FIELDS,
    BinaryOutput,
    ColumnOutputs,
    HeadersOutput,
)

Array: TypeAlias = Any

ROWS_MAX = 65_536
BYTES_MAX = 16 * 1024 * 1024
"""Limits of a RecordBatch; a single record batch that exceeds one becomes a RecordBatch of its own."""
DECOMPRESSED_BYTES_MAX = 1 << 30
"""Below 2 GiB, where Arrow's 32-bit offsets end."""


HEADER_TYPE = pa.struct([("key", pa.string()), ("value", pa.binary())])
TYPES = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestampType": pa.int32(),
    "headers": pa.list_(HEADER_TYPE),
}


class CorruptRecords(ValueError):
    """Invalid bytes in the records of a partition. The message names the partition and the offset."""

    def __init__(self, topic: str, partition: int, offset: int, why: str) -> None:
        super().__init__(
            f"{topic}-{partition}: the records from offset {offset} on cannot be read: {why}. "
            f"Read this partition with another client to see whether the broker's log is damaged; "
            f"to skip it, start after it (startingOffsets)"
        )
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.why = why

    def __reduce__(self) -> tuple[type[CorruptRecords], tuple[str, int, int, str]]:
        return CorruptRecords, (self.topic, self.partition, self.offset, self.why)


def arrow_schema(columns: Sequence[str]) -> pa.Schema:
    return pa.schema([(name, TYPES[name]) for name in columns])


class PartitionDecoder:
    """Records of one partition with offsets in [start_offset, end_offset), in the order in which they come.

    schema: a subset of `columns.COLUMNS`, in any order, of `TYPES` or their large variants.
    """

    def __init__(
        self, topic: str, partition: int, schema: pa.Schema, start_offset: int = 0, end_offset: int = 2**63 - 1
    ) -> None:
        self._topic = topic
        self._partition = partition
        self._schema = schema
        self._start_offset = start_offset
        self._end_offset = end_offset
        self.next_offset = start_offset
        """The next offset to fetch: after the last batch that was seen, even if it was skipped."""
        self._group = _Group()

    def decode(self, records: Buffer, aborted: Sequence[tuple[int, int]] = ()) -> Iterator[pa.RecordBatch]:
        """The records of one answer of the broker, which may end inside a batch; `records` are not kept.

        aborted: (producer id, first offset) of the aborted transactions, empty for read_uncommitted.
        Raises CorruptRecords.
        """
        transactions = AbortedTransactions(aborted)
        try:
            for position, header in walk(records, partial_tail=True):
                if header.base_offset >= self._end_offset:
                    self.next_offset = self._end_offset
                    break
                passed_over = header.last_offset < self.next_offset
                if not passed_over:
                    self.next_offset = header.next_offset
                if transactions.skips(records, position, header) or passed_over or not header.record_count:
                    continue
                yield from self._take(records, position, header)
        except (InvalidBatch, DecompressionError) as error:
            raise self._corrupt(self.next_offset, str(error)) from error
        if self._group.records:
            yield from self._build()

    def _take(self, records: Buffer, position: int, header: BatchHeader) -> Iterator[pa.RecordBatch]:
        payload: Buffer = memoryview(records)[position + HEADER_SIZE : position + header.size]
        if header.compression:
            try:
                payload = decompress(header.compression, payload, DECOMPRESSED_BYTES_MAX)
            except DecompressionError as error:
                raise self._corrupt(header.base_offset, str(error)) from error
        if header.record_count * SMALLEST_RECORD_BYTES > len(payload):
            # buffers are sized by this number, so it must not be trusted
            raise self._corrupt(header.base_offset, f"{header.record_count} records in {len(payload)} bytes")
        group = self._group
        if group.records and (
            group.records + header.record_count > ROWS_MAX or group.payload_bytes + len(payload) > BYTES_MAX
        ):
            yield from self._build()
            group = self._group
        if header.compression:
            group.add_decompressed(payload, header)
        else:
            group.add(records, position + HEADER_SIZE, position + header.size, header)

    def _build(self) -> Iterator[pa.RecordBatch]:
        group, self._group = self._group, _Group()
        columns = _Columns(self._schema.names, group.records, group.payload_bytes)
        for data, segments in group.parts():
            damaged = columns.decode(data, segments, self._start_offset, self._end_offset)
            if damaged >= 0:
                base_offset = int(segments[damaged, kernels.BASE_OFFSET])
                raise self._corrupt(base_offset, "the fields of a record do not add up")
        if columns.rows:
            yield columns.record_batch(self._schema, self._topic, self._partition)

    def _corrupt(self, offset: int, why: str) -> CorruptRecords:
        return CorruptRecords(self._topic, self._partition, offset, why)


class _Group:
    """The batches that become one RecordBatch: buffers, and the positions of the records in them."""

    def __init__(self) -> None:
        self.records = 0
        self.payload_bytes = 0
        self._parts: list[tuple[list[Buffer], list[tuple[int, ...]]]] = []
        self._joined_bytes = 0
        self._source: Buffer | None = None

    def add(self, records: Buffer, start: int, end: int, header: BatchHeader) -> None:
        if self._source is not records:
            self._source = records
            self._parts.append(([records], []))
        self._append(start, end, header)

    def add_decompressed(self, payload: Buffer, header: BatchHeader) -> None:
        """Joined with its neighbours: a copy, but one call of the kernel for all of them."""
        if self._source is not None or not self._parts:
            self._source = None
            self._joined_bytes = 0
            self._parts.append(([], []))
        self._parts[-1][0].append(payload)
        self._append(self._joined_bytes, self._joined_bytes + len(payload), header)
        self._joined_bytes += len(payload)

    def _append(self, start: int, end: int, header: BatchHeader) -> None:
        self._parts[-1][1].append(
            (
                start,
                end,
                header.base_offset,
                header.last_offset_delta,
                header.base_timestamp,
                header.max_timestamp,
                header.log_append_time,
                header.record_count,
            )
        )
        self.records += header.record_count
        self.payload_bytes += end - start

    def parts(self) -> Iterator[tuple[Any, Any]]:
        for buffers, segments in self._parts:
            data = np.frombuffer(buffers[0] if len(buffers) == 1 else b"".join(buffers), np.uint8)
            data.setflags(write=False)  # one type of array for the kernel, however the bytes came
            yield data, np.array(segments, np.int64).reshape(-1, SEGMENT_FIELDS)


class _Output:
    """Arrow memory that the kernel fills and a column then takes over. Without `length` the column is not needed."""

    def __init__(self, length: int, kind: type[np.generic]) -> None:
        self.buffer = pa.allocate_buffer(length * np.dtype(kind).itemsize)
        self.array = np.frombuffer(self.buffer, kind)

    def first(self, length: int) -> pa.Buffer:
        return self.buffer.slice(0, length * self.array.itemsize)


class _Ends(_Output):
    """Arrow's offsets: one more than rows, the first is 0. The kernel writes the ends only."""

    def __init__(self, length: int) -> None:
        super().__init__(length + 1 if length else 0, np.int32)
        if length:
            self.array[0] = 0
        self.ends = self.array[1:]


@dataclass(frozen=True, slots=True)
class _Binary:
    """The memory of one binary column."""

    ends: _Ends
    valid: _Output
    data: _Output

    @property
    def arrays(self) -> BinaryOutput:
        return BinaryOutput(self.ends.ends, self.valid.array, self.data.array)

    def column(self, length: int) -> Array:
        size = int(self.ends.array[length]) if length else 0
        buffers = [_bitmap(self.valid, length), self.ends.first(length + 1), self.data.first(size)]
        return pa.Array.from_buffers(pa.binary(), length, buffers)


class _Columns:
    """The outputs of the kernel for at most `rows` records that take `payload_bytes` together."""

    def __init__(self, names: Sequence[str], rows: int, payload_bytes: int) -> None:
        def wanted(name: str, length: int) -> int:
            return length if name in names else 0

        def row(name: str, kind: type[np.generic]) -> _Output:
            return _Output(wanted(name, rows), kind)

        def data(name: str) -> _Output:
            return _Output(wanted(name, payload_bytes), np.uint8)

        # a header takes two bytes at least
        headers = wanted("headers", payload_bytes // 2 + 1)
        self._key = _Binary(_Ends(wanted("key", rows)), row("key", np.uint8), data("key"))
        self._value = _Binary(_Ends(wanted("value", rows)), row("value", np.uint8), data("value"))
        self._offset = row("offset", np.int64)
        self._timestamp = row("timestamp", np.int64)
        self._timestamp_type = row("timestampType", np.int32)
        self._header_ends, self._header_valid = _Ends(wanted("headers", rows)), row("headers", np.uint8)
        self._header_key_ends, self._header_key_data = _Ends(headers), data("headers")
        self._header_value = _Binary(_Ends(headers), _Output(headers, np.uint8), data("headers"))
        self._state = np.zeros(STATE_FIELDS, np.int64)
        self._outputs = ColumnOutputs(
            self._key.arrays,
            self._value.arrays,
            self._offset.array,
            self._timestamp.array,
            self._timestamp_type.array,
            HeadersOutput(
                self._header_ends.ends,
                self._header_valid.array,
                self._header_key_ends.ends,
                self._header_key_data.array,
                self._header_value.arrays,
            ),
        )

    @property
    def rows(self) -> int:
        return int(self._state[kernels.ROWS])

    def decode(self, data: Any, segments: Any, start_offset: int, end_offset: int) -> int:
        """-1, or which segment is damaged."""
        return int(kernels.decode_records(data, segments, start_offset, end_offset, self._state, self._outputs))

    def record_batch(self, schema: pa.Schema, topic: str, partition: int) -> pa.RecordBatch:
        made = {
            "key": lambda: self._key.column(self.rows),
            "value": lambda: self._value.column(self.rows),
            "topic": lambda: _constant(topic, TYPES["topic"], self.rows),
            "partition": lambda: _constant(partition, TYPES["partition"], self.rows),
            "offset": lambda: self._fixed(TYPES["offset"], self._offset),
            "timestamp": lambda: self._fixed(TYPES["timestamp"], self._timestamp),
            "timestampType": lambda: self._fixed(TYPES["timestampType"], self._timestamp_type),
            "headers": self._header_lists,
        }
        arrays = []
        for field in schema:
            array = made[field.name]()
            arrays.append(array if array.type == field.type else array.cast(field.type))
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _fixed(self, kind: pa.DataType, output: _Output) -> Array:
        return pa.Array.from_buffers(kind, self.rows, [None, output.first(self.rows)])

    def _header_lists(self) -> Array:
        ends, valid = self._header_ends, self._header_valid
        count = int(self._state[kernels.HEADERS])
        pairs = pa.StructArray.from_arrays(
            [self._header_keys(count), self._header_value.column(count)], fields=list(HEADER_TYPE)
        )
        return pa.Array.from_buffers(
            TYPES["headers"], self.rows, [_bitmap(valid, self.rows), ends.first(self.rows + 1)], children=[pairs]
        )

    def _header_keys(self, count: int) -> Array:
        """Strings; bytes that are not UTF-8 become replacement characters, as in Kafka's own client."""
        ends, data = self._header_key_ends, self._header_key_data
        size = int(self._state[kernels.HEADER_KEY_BYTES])
        keys = pa.Array.from_buffers(pa.string(), count, [None, ends.first(count + 1), data.first(size)])
        try:
            keys.validate(full=True)
        except pa.ArrowInvalid:
            plain = keys.cast(pa.binary())
            return pa.array([key.decode("utf-8", "replace") for key in plain.to_pylist()], pa.string())
        return keys


def _constant(value: str | int, kind: pa.DataType, length: int) -> Array:
    """The same value in every row. Usually a slice of the last such column: making one costs as much as decoding."""
    return _column_of(value, kind, max(length, ROWS_MAX)).slice(0, length)


@functools.lru_cache(maxsize=16)
def _column_of(value: str | int, kind: pa.DataType, length: int) -> Array:
    return pa.repeat(pa.scalar(value, kind), length)


def _bitmap(valid: _Output, length: int) -> pa.Buffer | None:
    """Arrow's validity, a bit per row; None where every row is valid."""
    flags = valid.array[:length]
    if flags.all():
        return None
    return pa.py_buffer(np.packbits(flags, bitorder="little"))
