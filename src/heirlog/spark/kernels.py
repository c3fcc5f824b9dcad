"""The loops over records, compiled by numba: bytes of record batches to Arrow buffers and back.

The rules are those of `heirlog.protocol.batch`; these loops only avoid a Python object per record. No input is trusted:

    every length is compared with what is left of its record before a byte is read
    every record must fill exactly its declared size, the last one its batch
    an output has room for the whole payload, so no write needs a check of its own

`decode_records` reads a field with its size in four places, and the code is repeated in each. With one function for it,
inlined by numba or not, a record of 100 B takes 110 to 180 ns instead of 55.

`decode_records` returns the number of the damaged segment, or -1. It does not say which rule was broken, since the
error names topic, partition and offset of the batch.

Compiled code is kept: next to this file if that is writable, else in numba's own cache in the user's home, else in a
directory of this user below the temporary one. Without it each Spark worker would compile for seconds.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import numba
import numpy as np
from numba.core import cgutils, types
from numba.core import config as numba_config
from numba.extending import intrinsic
from numpy.typing import NDArray

F = TypeVar("F", bound=Callable[..., Any])

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]

# columns of a segment: the records of one batch inside a buffer
SEGMENT_FIELDS = 8
START, END, BASE_OFFSET, LAST_OFFSET_DELTA, BASE_TIMESTAMP, APPEND_TIME, IS_APPEND_TIME, RECORDS = range(SEGMENT_FIELDS)

# columns of the state between two calls: how much of each output is filled
STATE_FIELDS = 6
ROWS, KEY_BYTES, VALUE_BYTES, HEADERS, HEADER_KEY_BYTES, HEADER_VALUE_BYTES = range(STATE_FIELDS)

MICROSECONDS = 1000
"""In a millisecond."""
LAST_MILLISECOND = (2**63 - 1) // MICROSECONDS
SMALLEST_RECORD_BYTES = 7
"""Size, attributes, timestamp, offset, key size, value size, header count: a byte each."""
KEYLESS_OVERHEAD_BYTES = 10
"""Overhead of a record without key and headers: the same, with its size and offset in three bytes each."""


def compiled(function: F) -> F:
    try:
        return cast(F, numba.njit(cache=True, nogil=True)(function))
    except RuntimeError:  # no place for the cache that numba knows
        os.environ["NUMBA_CACHE_DIR"] = _private_directory()
        numba_config.reload_config()
        return cast(F, numba.njit(cache=True, nogil=True)(function))


def _private_directory() -> str:
    """Not shared with other users, because its content is executed."""
    path = Path(tempfile.gettempdir()) / f"heirlog-kernels-{os.getuid()}"
    path.mkdir(mode=0o700, exist_ok=True)
    status = path.lstat()
    if status.st_uid != os.getuid() or status.st_mode & 0o077 or path.is_symlink():
        return tempfile.mkdtemp(prefix="heirlog-kernels-")
    return str(path)


# The arrays of a column are a named tuple, which numba passes to compiled code as it is. Inputs are always read-only,
# and outputs always writable: numba would compile a kernel again for each mixture.
#
# These classes must stay in this file. The cache of compiled code is discarded when this file changes. If they were
# elsewhere, a change in the order of their fields would not discard it, and a kernel would use one array for another.


class BinaryInput(NamedTuple):
    """A binary or string column to encode."""

    data: Bytes
    bounds: Longs
    """Arrow's offsets: row i is from `bounds[i]` to `bounds[i + 1]` of the data."""
    valid: Bytes
    """1 for each row that is not null, else 0."""


class HeadersInput(NamedTuple):
    """A column of type list<struct<key, value>> to encode."""

    bounds: Longs
    """Arrow's offsets into keys and values; empty if no record has headers."""
    keys: BinaryInput
    values: BinaryInput


class BinaryOutput(NamedTuple):
    """A decoded binary column; all arrays are empty if the column is not needed."""

    ends: Ints
    """End of each row in the data: Arrow's offsets without the leading 0."""
    valid: Bytes
    data: Bytes


class HeadersOutput(NamedTuple):
    """The decoded column of headers; all arrays are empty if it is not needed."""

    ends: Ints
    """End of each row in keys and values."""
    valid: Bytes
    key_ends: Ints
    key_data: Bytes
    values: BinaryOutput


class ColumnOutputs(NamedTuple):
    """The columns that `decode_records` fills. An array of length 0 is a column that is not needed."""

    key: BinaryOutput
    value: BinaryOutput
    offsets: Longs
    timestamps: Longs
    """In microseconds."""
    timestamp_types: Ints
    headers: HeadersOutput


@compiled
def read_varint(data: Bytes, position: int, end: int) -> tuple[int, int]:
    """A zigzag varint and the position behind it, which is -1 if it is not whole before `end` or beyond 64 bits."""
    if position >= end:
        return 0, -1
    byte = data[position]
    if byte < 0x80:
        return int(np.int64(byte >> 1) ^ -np.int64(byte & 1)), position + 1
    value = np.uint64(byte & 0x7F)
    shift = 7
    position += 1
    while position < end:
        byte = data[position]
        position += 1
        if shift == 63 and byte > 1:
            return 0, -1
        value |= np.uint64(byte & 0x7F) << np.uint64(shift)
        if byte < 0x80:
            return int(np.int64(value >> np.uint64(1)) ^ -np.int64(value & np.uint64(1))), position
        shift += 7
    return 0, -1


@cast(Callable[..., Callable[[Bytes, int, Bytes, int, int], None]], intrinsic)
def copy(typing_context: Any, source: Any, start: Any, target: Any, at: Any, size: Any) -> Any:
    """`target[at : at + size] = source[start : start + size]` as one memcpy: a third of the time of a loop."""
    signature = types.void(source, types.int64, target, types.int64, types.int64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source, start, target, at, size = arguments
        source_data = context.make_array(signature.args[0])(context, builder, source).data
        target_data = context.make_array(signature.args[2])(context, builder, target).data
        cgutils.raw_memcpy(
            builder, builder.gep(target_data, [at]), builder.gep(source_data, [start]), size, size.type(1)
        )
        return context.get_dummy_value()

    return signature, generate


@compiled
def decode_records(
    data: Bytes,
    segments: Longs,
    start_offset: int,
    end_offset: int,
    state: Longs,
    columns: ColumnOutputs,
) -> int:
    """Append the records of all segments whose offset is in [start_offset, end_offset) to the columns.

    Returns -1, or the first damaged segment; the columns are then invalid.
    """
    key_ends, key_valid, key_data = columns.key
    value_ends, value_valid, value_data = columns.value
    offsets, timestamps, timestamp_types = columns.offsets, columns.timestamps, columns.timestamp_types
    header_ends, header_valid = columns.headers.ends, columns.headers.valid
    header_key_ends, header_key_data = columns.headers.key_ends, columns.headers.key_data
    header_value_ends, header_value_valid, header_value_data = columns.headers.values
    want_keys = key_ends.size > 0
    want_values = value_ends.size > 0
    want_offsets = offsets.size > 0
    want_timestamps = timestamps.size > 0
    want_types = timestamp_types.size > 0
    want_headers = header_ends.size > 0
    row = state[ROWS]
    key_at = state[KEY_BYTES]
    value_at = state[VALUE_BYTES]
    header = state[HEADERS]
    header_key_at = state[HEADER_KEY_BYTES]
    header_value_at = state[HEADER_VALUE_BYTES]
    for segment in range(segments.shape[0]):
        position = segments[segment, START]
        segment_end = segments[segment, END]
        base_offset = segments[segment, BASE_OFFSET]
        last_delta = segments[segment, LAST_OFFSET_DELTA]
        base_timestamp = segments[segment, BASE_TIMESTAMP]
        append_time = segments[segment, APPEND_TIME]
        is_append_time = segments[segment, IS_APPEND_TIME]
        for _ in range(segments[segment, RECORDS]):
            size, position = read_varint(data, position, segment_end)
            if position < 0 or size < 0 or size > segment_end - position:
                return segment
            end = position + size
            timestamp, position = read_varint(data, position + 1, end)
            if position < 0:
                return segment
            delta, position = read_varint(data, position, end)
            if position < 0 or delta < 0 or delta > last_delta:
                return segment
            offset = base_offset + delta
            wanted = start_offset <= offset < end_offset

            size, position = read_varint(data, position, end)
            if position < 0 or size > end - position:
                return segment
            if wanted and want_keys:
                key_valid[row] = size >= 0
                if size > 0:
                    copy(data, position, key_data, key_at, size)
                    key_at += size
                key_ends[row] = key_at
            if size > 0:
                position += size

            size, position = read_varint(data, position, end)
            if position < 0 or size > end - position:
                return segment
            if wanted and want_values:
                value_valid[row] = size >= 0
                if size > 0:
                    copy(data, position, value_data, value_at, size)
                    value_at += size
                value_ends[row] = value_at
            if size > 0:
                position += size

            count, position = read_varint(data, position, end)
            if position < 0 or count < 0 or count > end - position:
                return segment
            for _ in range(count):
                size, position = read_varint(data, position, end)
                if position < 0 or size < 0 or size > end - position:
                    return segment
                if wanted and want_headers:
                    copy(data, position, header_key_data, header_key_at, size)
                    header_key_at += size
                    header_key_ends[header] = header_key_at
                position += size
                size, position = read_varint(data, position, end)
                if position < 0 or size > end - position:
                    return segment
                if wanted and want_headers:
                    header_value_valid[header] = size >= 0
                    if size > 0:
                        copy(data, position, header_value_data, header_value_at, size)
                        header_value_at += size
                    header_value_ends[header] = header_value_at
                    header += 1
                if size > 0:
                    position += size
            if position != end:
                return segment
            if not wanted:
                continue
            if want_headers:
                header_valid[row] = count > 0
                header_ends[row] = header
            if want_offsets:
                offsets[row] = offset
            if want_timestamps:
                if is_append_time:
                    timestamp = append_time
                else:
                    # if the sum exceeds 64 bits it wraps around, and its sign differs from that of both
                    total = base_timestamp + timestamp
                    if (base_timestamp ^ total) & (timestamp ^ total) < 0:
                        return segment
                    timestamp = total
                if timestamp > LAST_MILLISECOND or timestamp < -LAST_MILLISECOND:
                    return segment
                timestamps[row] = timestamp * MICROSECONDS
            if want_types:
                timestamp_types[row] = is_append_time
            row += 1
        if position != segment_end:
            return segment
    state[ROWS] = row
    state[KEY_BYTES] = key_at
    state[VALUE_BYTES] = value_at
    state[HEADERS] = header
    state[HEADER_KEY_BYTES] = header_key_at
    state[HEADER_VALUE_BYTES] = header_value_at
    return -1


@compiled
def varint_size(value: int) -> int:
    """Of a value that is not negative, zigzag included."""
    size = 1
    rest = value >> 6
    while rest:
        size += 1
        rest >>= 7
    return size


@compiled
def put_varint(out: Bytes, at: int, value: int) -> int:
    """A value that is not negative, or -1 for null. The position behind it."""
    if value < 0:
        out[at] = 1
        return at + 1
    rest = value << 1
    while rest > 0x7F:
        out[at] = rest & 0x7F | 0x80
        at += 1
        rest >>= 7
    out[at] = rest
    return at + 1


@compiled
def put_field(out: Bytes, at: int, data: Bytes, start: int, size: int) -> int:
    at = put_varint(out, at, size)
    if size > 0:
        copy(data, start, out, at, size)
        at += size
    return at


@compiled
def field_size(size: int) -> int:
    """What a field of `size` bytes takes with its own size in front; -1 is null."""
    return 1 if size < 0 else varint_size(size) + size


@compiled
def encode_records(
    out: Bytes,
    at: int,
    rows: Longs,
    key: BinaryInput,
    value: BinaryInput,
    headers: HeadersInput,
) -> tuple[int, int]:
    """Write the records of `rows`, all with the batch's timestamp, from out[at] on, as many as fit.

    How many records were written, and the position behind them. If not even the first one fits: 0 and the position
    that it would need.
    """
    key_data, key_bounds, key_valid = key
    value_data, value_bounds, value_valid = value
    header_bounds = headers.bounds
    header_key_data, header_key_bounds = headers.keys.data, headers.keys.bounds
    header_value_data, header_value_bounds, header_value_valid = headers.values
    room = out.size
    for index in range(rows.size):
        row = rows[index]
        key_size = key_bounds[row + 1] - key_bounds[row] if key_valid[row] else -1
        value_size = value_bounds[row + 1] - value_bounds[row] if value_valid[row] else -1
        first_header, end_header = 0, 0
        if header_bounds.size > 0:
            first_header, end_header = header_bounds[row], header_bounds[row + 1]
        # attributes and a timestamp delta of 0: a byte each
        size = 2 + varint_size(index) + field_size(key_size) + field_size(value_size)
        size += varint_size(end_header - first_header)
        for header in range(first_header, end_header):
            size += field_size(header_key_bounds[header + 1] - header_key_bounds[header])
            if header_value_valid[header]:
                size += field_size(header_value_bounds[header + 1] - header_value_bounds[header])
            else:
                size += 1
        if at + varint_size(size) + size > room:
            if index == 0:
                at += varint_size(size) + size
            return index, at
        at = put_varint(out, at, size)
        out[at] = 0
        out[at + 1] = 0
        at = put_varint(out, at + 2, index)
        at = put_field(out, at, key_data, key_bounds[row], key_size)
        at = put_field(out, at, value_data, value_bounds[row], value_size)
        at = put_varint(out, at, end_header - first_header)
        for header in range(first_header, end_header):
            start = header_key_bounds[header]
            at = put_field(out, at, header_key_data, start, header_key_bounds[header + 1] - start)
            start = header_value_bounds[header]
            content = header_value_bounds[header + 1] - start if header_value_valid[header] else -1
            at = put_field(out, at, header_value_data, start, content)
    return rows.size, at


@compiled
def murmur2(data: Bytes, start: int, size: int) -> int:
    """The 32-bit hash by which Kafka's clients choose a key's partition."""
    mask = np.uint64(0xFFFFFFFF)
    factor = np.uint64(0x5BD1E995)
    result = np.uint64(0x9747B28C) ^ np.uint64(size)
    whole = start + (size & ~3)
    for at in range(start, whole, 4):
        word = np.uint64(data[at]) | np.uint64(data[at + 1]) << np.uint64(8)
        word |= np.uint64(data[at + 2]) << np.uint64(16) | np.uint64(data[at + 3]) << np.uint64(24)
        word = word * factor & mask
        word ^= word >> np.uint64(24)
        word = word * factor & mask
        result = (result * factor & mask) ^ word
    rest = size & 3
    if rest == 3:
        result ^= np.uint64(data[whole + 2]) << np.uint64(16)
    if rest >= 2:
        result ^= np.uint64(data[whole + 1]) << np.uint64(8)
    if rest >= 1:
        result = (result ^ np.uint64(data[whole])) * factor & mask
    result ^= result >> np.uint64(13)
    result = result * factor & mask
    return int(result ^ result >> np.uint64(15))


# the state of the sticky choice, for records without a key
STICKY_FIELDS = 2
STICKY_PARTITION, STICKY_BYTES = range(STICKY_FIELDS)


@compiled
def choose_partitions(
    chosen: Ints,
    count: int,
    key: BinaryInput,
    value_bounds: Longs,
    sticky: Longs,
    sticky_bytes_max: int,
) -> None:
    """Replace each -1 in `chosen`: by the partition of the key, or else by the sticky partition. The sticky partition
    changes before a record that would start another batch: `sticky_bytes_max` is the limit of a batch."""
    key_data, key_bounds, key_valid = key
    for row in range(chosen.size):
        if chosen[row] >= 0:
            continue
        if key_valid[row]:
            start = key_bounds[row]
            chosen[row] = (murmur2(key_data, start, key_bounds[row + 1] - start) & 0x7FFFFFFF) % count
            continue
        size = KEYLESS_OVERHEAD_BYTES + field_size(value_bounds[row + 1] - value_bounds[row])
        if sticky[STICKY_BYTES] + size > sticky_bytes_max and sticky[STICKY_BYTES] > 0:
            sticky[STICKY_PARTITION] += 1
            sticky[STICKY_BYTES] = 0
        chosen[row] = sticky[STICKY_PARTITION] % count
        sticky[STICKY_BYTES] += size
