"""The arrays that the kernels read and fill, grouped by column.

Named tuples, because numba passes them to compiled code as they are. Each array has one type however it was made: an
input is read-only, an output is writable. Otherwise numba would compile a kernel again for every mixture.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]


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
    """The columns that `kernels.decode_records` fills. An array of length 0 is a column that is not needed."""

    key: BinaryOutput
    value: BinaryOutput
    offsets: Longs
    timestamps: Longs
    """In microseconds."""
    timestamp_types: Ints
    headers: HeadersOutput
