"""Arrow columns to record batches, ready to be produced.

    rows --topic--> --partition--> rows of one partition, in their order --kernel--> payload --compress--> batch

A row's partition is the one that its column names. Otherwise Kafka's rule by the key decides (murmur2 as in every Kafka
client, so that a key has the same partition for all writers). A row without a key gets the sticky partition, which
changes after the bytes of one batch: that makes few full batches instead of many small ones.

All records of a batch have the same timestamp, the time of their encoding, as with Spark's own sink. The producer sets
producer id, epoch, sequence number and checksum, because they are known only when a batch is sent.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from heirlog.protocol.batch import (
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    MAGIC,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
)
from heirlog.protocol.compression import compress
from heirlog.spark import kernels
from heirlog.spark.kernels import BinaryInput, HeadersInput

Array: TypeAlias = Any

BATCH_BYTES = 256 * 1024
"""Size before compression. Far below the default of max.message.bytes (1 MiB)."""

_HEADER = struct.Struct(">qiibIhiqqqhii")
_VARINT_BYTES = 5
_VARINTS_BYTES = 2 + 5 * _VARINT_BYTES
_NO_BYTES = np.empty(0, np.uint8)
_NO_BOUNDS = np.empty(0, np.int64)
_LARGE = (pa.large_binary(), pa.large_string())
_SMALL = (pa.binary(), pa.string())
for _array in (_NO_BYTES, _NO_BOUNDS):
    _array.setflags(write=False)


class Unencodable(ValueError):
    """A column or a value that a record cannot contain. The message names it."""


def _binary(array: Array, name: str) -> BinaryInput:
    """A binary or string column. Raises Unencodable."""
    if array.type in _LARGE:
        kind: type[np.generic] = np.int64
    elif array.type in _SMALL:
        kind = np.int32
    else:
        raise Unencodable(f"column {name} is {array.type}; a record's {name} is string or binary: cast it")
    _, bounds_buffer, data_buffer = array.buffers()
    bounds = _numbers(bounds_buffer, kind, array.offset, len(array) + 1).astype(np.int64)
    data = np.frombuffer(data_buffer, np.uint8) if data_buffer is not None and data_buffer.size else _NO_BYTES
    return BinaryInput(_readonly(data), _readonly(bounds), _readonly(valid_rows(array)))


def _nulls(length: int) -> BinaryInput:
    return BinaryInput(_NO_BYTES, _readonly(np.zeros(length + 1, np.int64)), _readonly(np.zeros(length, np.uint8)))


def _headers(array: Array) -> HeadersInput:
    """A column of type list<struct<key, value>>. Raises Unencodable."""
    kind = array.type
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    if not is_list or not pa.types.is_struct(kind.value_type) or _names(kind.value_type) != ["key", "value"]:
        raise Unencodable(
            f"column headers is {kind}; it must be array<struct<key: string, value: binary>>, "
            f"as the source reads it with includeHeaders"
        )
    bounds = np.asarray(array.offsets).astype(np.int64)
    if np.diff(bounds)[valid_rows(array) == 0].any():
        # in Arrow a null list may still have elements
        return _headers(pa.array(array.to_pylist(), kind))
    pairs = array.values
    keys = pairs.field(0)
    used = slice(int(bounds[0]), int(bounds[-1]))
    if not valid_rows(pairs)[used].all() or not valid_rows(keys)[used].all():
        raise Unencodable("a header has no key: Kafka requires one")
    return HeadersInput(_readonly(bounds), _binary(keys, "headers.key"), _binary(pairs.field(1), "headers.value"))


@dataclass(frozen=True, slots=True)
class Records:
    """The rows of one RecordBatch as records: key, value, headers."""

    rows: int
    key: BinaryInput
    value: BinaryInput
    headers: HeadersInput

    @classmethod
    def of(cls, batch: pa.RecordBatch) -> Records:
        """Columns `key` and `headers` may be missing. Raises Unencodable."""
        names = batch.schema.names
        key = _binary(batch.column("key"), "key") if "key" in names else _nulls(batch.num_rows)
        value = _binary(batch.column("value"), "value")
        no_headers = HeadersInput(_NO_BOUNDS, _nulls(0), _nulls(0))
        headers = _headers(batch.column("headers")) if "headers" in names else no_headers
        return cls(batch.num_rows, key, value, headers)

    def bytes_at_most(self, rows: Any) -> int:
        """An upper limit of the bytes that these rows need as records."""
        total = _VARINTS_BYTES * len(rows)
        for column in (self.key, self.value):
            total += int((column.bounds[rows + 1] - column.bounds[rows]).sum())
        bounds = self.headers.bounds
        if bounds.size:
            # of all rows: headers are few and small
            total += 2 * _VARINT_BYTES * int(bounds[-1] - bounds[0])
            total += int(self.headers.keys.bounds[-1] + self.headers.values.bounds[-1])
        return total


class Partitioner:
    """Chooses the partitions of one topic's records. start: the first sticky partition, best a random one."""

    def __init__(self, count: int, start: int = 0, batch_bytes: int = BATCH_BYTES) -> None:
        self._count = count
        self._batch_bytes = batch_bytes
        self._sticky = np.zeros(kernels.STICKY_FIELDS, np.int64)
        self._sticky[kernels.STICKY_PARTITION] = start % count

    def choose(self, records: Records, given: Array | None = None) -> Any:
        """A partition for each row. given: the column `partition`; for null the partition is chosen here.

        Raises Unencodable for a partition that the topic does not have.
        """
        chosen = np.full(records.rows, -1, np.int32)
        if given is not None:
            named = np.asarray(given.drop_null())
            wrong = named[(named < 0) | (named >= self._count)]
            if wrong.size:
                raise Unencodable(
                    f"partition {wrong[0]} given with a record is not in the range [0...{self._count - 1}]: the column "
                    "`partition` says where each row goes, also if it came from a topic that was read. Drop it "
                    "to have partitions chosen, or give the topic more partitions"
                )
            chosen[valid_rows(given).astype(bool)] = named
        batch_bytes = self._batch_bytes - HEADER_SIZE
        kernels.choose_partitions(chosen, self._count, records.key, records.value.bounds, self._sticky, batch_bytes)
        return chosen


def rows_by_partition(chosen: Any) -> Iterator[tuple[int, Any]]:
    """Each partition that was chosen and its rows, in their order."""
    order = np.argsort(chosen, kind="stable")
    partitions, firsts = np.unique(chosen[order], return_index=True)
    yield from zip(partitions.tolist(), np.split(order, firsts[1:]), strict=True)


def encode_batches(
    records: Records, rows: Any, timestamp_ms: int, codec: int = 0, batch_bytes: int = BATCH_BYTES
) -> Iterator[bytearray]:
    """Record batches of these rows, each of at most `batch_bytes` before compression; a larger record is alone in its.

    Base offset, CRC and the fields of the producer are written later.
    """
    rows = _readonly(np.ascontiguousarray(rows, np.int64))
    columns = (records.key, records.value, records.headers)
    size = min(batch_bytes, HEADER_SIZE + records.bytes_at_most(rows))
    while rows.size:
        out = bytearray(size)
        count, end = kernels.encode_records(np.frombuffer(out, np.uint8), HEADER_SIZE, rows, *columns)
        if not count:
            out = bytearray(end)
            count, end = kernels.encode_records(np.frombuffer(out, np.uint8), HEADER_SIZE, rows[:1], *columns)
        yield _finished(out, end, count, timestamp_ms, codec)
        rows = rows[count:]


def _finished(out: bytearray, end: int, count: int, timestamp_ms: int, codec: int) -> bytearray:
    if codec:
        payload = compress(codec, memoryview(out)[HEADER_SIZE:end])
        end = HEADER_SIZE + len(payload)
        out = bytearray(HEADER_SIZE) + payload
    else:
        del out[end:]
    _HEADER.pack_into(
        out,
        0,
        0,
        end - LENGTH_OVERHEAD,
        NO_LEADER_EPOCH,
        MAGIC,
        0,
        codec,
        count - 1,
        timestamp_ms,
        timestamp_ms,
        NO_PRODUCER_ID,
        NO_PRODUCER_EPOCH,
        NO_SEQUENCE,
        count,
    )
    return out


def _names(struct_type: pa.DataType) -> list[str]:
    return [field.name for field in struct_type]


def valid_rows(array: Array) -> Any:
    """1 per row that is not null, else 0."""
    if not array.null_count:
        return np.ones(len(array), np.uint8)
    return np.asarray(array.is_valid()).astype(np.uint8)


def _numbers(buffer: pa.Buffer | None, kind: type[np.generic], offset: int, length: int) -> Any:
    """Arrow's offsets; an empty array may have none."""
    if buffer is None or not buffer.size:
        return np.zeros(length, kind)
    return np.frombuffer(buffer, kind)[offset : offset + length]


def _readonly(array: Any) -> Any:
    """One type of array for the kernels, so that each is compiled once."""
    array = array.view()
    array.setflags(write=False)
    return array
