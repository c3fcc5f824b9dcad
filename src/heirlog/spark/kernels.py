"""The loops over records, compiled by numba: bytes of record batches to Arrow buffers and back.

The rules are those of `heirlog.protocol.batch`; these loops only avoid a Python object per record. Nothing is trusted:

    every length is compared with what is left of its record before a byte is read
    every record must fill exactly its declared size, the last one its batch
    an output has room for the whole payload, so no write needs a check of its own

`decode_records` answers with the number of the segment that is damaged, or -1; which rule it broke is not worth a
branch here, since the reader is told topic, partition and offset of the batch.

Compiled code is kept: beside this file where that is writable, else in numba's own place in the user's home, else in a
directory of this user below the temporary one. Without it each Spark worker would compile for seconds.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

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

# columns of the state that one call leaves to the next: how much of each output is filled
STATE_FIELDS = 6
ROWS, KEY_BYTES, VALUE_BYTES, HEADERS, HEADER_KEY_BYTES, HEADER_VALUE_BYTES = range(STATE_FIELDS)

MICROSECONDS = 1000
"""In a millisecond."""
LAST_MILLISECOND = (2**63 - 1) // MICROSECONDS
SMALLEST_RECORD_BYTES = 7
"""Size, attributes, timestamp, offset, key size, value size, header count: a byte each."""


def compiled(function: F) -> F:
    try:
        return cast(F, numba.njit(cache=True, nogil=True)(function))
    except RuntimeError:  # no place for the cache that numba knows
        os.environ["NUMBA_CACHE_DIR"] = _private_directory()
        numba_config.reload_config()
        return cast(F, numba.njit(cache=True, nogil=True)(function))


def _private_directory() -> str:
    """Not shared with other users: what lies in it is executed."""
    path = Path(tempfile.gettempdir()) / f"heirlog-kernels-{os.getuid()}"
    path.mkdir(mode=0o700, exist_ok=True)
    status = path.lstat()
    if status.st_uid != os.getuid() or status.st_mode & 0o077 or path.is_symlink():
        return tempfile.mkdtemp(prefix="heirlog-kernels-")
    return str(path)


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
        cgutils.raw_memcpy(  # type: ignore[no-untyped-call]  # half of numba is annotated
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
    key_ends: Ints,
    key_valid: Bytes,
    key_data: Bytes,
    value_ends: Ints,
    value_valid: Bytes,
    value_data: Bytes,
    offsets: Longs,
    timestamps: Longs,
    timestamp_types: Ints,
    header_ends: Ints,
    header_valid: Bytes,
    header_key_ends: Ints,
    header_key_data: Bytes,
    header_value_ends: Ints,
    header_value_valid: Bytes,
    header_value_data: Bytes,
) -> int:
    """Append the records of all segments whose offset lies in [start_offset, end_offset) to the outputs.

    An output of length 0 is a column that nobody wants. `*_ends[i]` is where row i ends in its data (Arrow's offsets
    without the leading 0). -1, or the first damaged segment; what was written until then is worthless.
    """
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
                    # wraps around where the sum leaves 64 bits: then its sign is that of neither
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
