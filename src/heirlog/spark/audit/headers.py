"""The loop over batch headers, compiled by numba: a matrix of numbers, one row per header field.

`heirlog.protocol.batch` has the format and its rules. This loop only avoids a Python object per batch: without it
segments of small batches take ten times as long to read.
"""

from __future__ import annotations

import numpy as np

from heirlog.protocol.batch import HEADER_SIZE, LENGTH_OVERHEAD, MAGIC
from heirlog.spark.kernels import Bytes, Longs, compiled

FIELDS = 13
(
    POSITION,
    SIZE,
    BASE_OFFSET,
    LEADER_EPOCH,
    CRC,
    ATTRIBUTES,
    LAST_OFFSET_DELTA,
    BASE_TIMESTAMP,
    MAX_TIMESTAMP,
    PRODUCER_ID,
    PRODUCER_EPOCH,
    BASE_SEQUENCE,
    RECORD_COUNT,
) = range(FIELDS)


@compiled
def _number(data: Bytes, position: int, size: int) -> int:
    """A signed number in network order."""
    value = np.int64(data[position])
    if value >= 128:
        value -= 256
    for i in range(1, size):
        value = (value << 8) | np.int64(data[position + i])
    return value  # type: ignore[return-value]  # compiled code has one kind of number


@compiled
def walk_headers(data: Bytes, position: int, end: int, out: Longs) -> tuple[int, int, bool]:
    """Fill the columns of `out` with the headers of the whole batches from `position` to `end`.

    Returns how many, the position after the last of them, and whether what is there cannot be a header. Otherwise the
    walk ended because `out` is full, or because the next batch is not completely before `end`.
    """
    count = 0
    while count < out.shape[1] and end - position >= HEADER_SIZE:
        length = _number(data, position + 8, 4)
        base_offset = _number(data, position, 8)
        last_delta = _number(data, position + 23, 4)
        magic = data[position + 16]
        if magic != MAGIC or length < HEADER_SIZE - LENGTH_OVERHEAD or last_delta < 0 or base_offset < 0:
            return count, position, True
        size = length + LENGTH_OVERHEAD
        if size > end - position:
            break
        out[POSITION, count] = position
        out[SIZE, count] = size
        out[BASE_OFFSET, count] = base_offset
        out[LEADER_EPOCH, count] = _number(data, position + 12, 4)
        out[CRC, count] = _number(data, position + 17, 4) & 0xFFFFFFFF
        out[ATTRIBUTES, count] = _number(data, position + 21, 2)
        out[LAST_OFFSET_DELTA, count] = last_delta
        out[BASE_TIMESTAMP, count] = _number(data, position + 27, 8)
        out[MAX_TIMESTAMP, count] = _number(data, position + 35, 8)
        out[PRODUCER_ID, count] = _number(data, position + 43, 8)
        out[PRODUCER_EPOCH, count] = _number(data, position + 51, 2)
        out[BASE_SEQUENCE, count] = _number(data, position + 53, 4)
        out[RECORD_COUNT, count] = _number(data, position + 57, 4)
        position += size
        count += 1
    return count, position, False
