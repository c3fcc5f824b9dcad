"""However the columns are made, the kernels see one type of each: they are compiled once, and found in their cache."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("numba")

from numba import types

from heirlog.protocol.batch import encode_batch
from heirlog.spark import kernels
from heirlog.spark.decode import TYPES, PartitionDecoder, arrow_schema
from heirlog.spark.encode import Partitioner, Records, encode_batches

HEADERS = [[("name", b"content")], [], None]


def test_one_type_decodes_every_choice_of_columns_and_every_buffer() -> None:
    plain = bytes(encode_batch([(b"k", None, (("h", b"x"),), 7)] * 3))
    packed = bytes(encode_batch([(None, b"v", (), 7)] * 3, compression=1))
    for columns in (["key"], ["value", "offset"], ["headers"], list(TYPES)):
        for raw in (plain, bytearray(plain), memoryview(plain), packed):
            decoder = PartitionDecoder("t", 0, arrow_schema(columns))
            assert sum(batch.num_rows for batch in decoder.decode(raw)) == 3
    assert len(kernels.decode_records.signatures) == 1


def test_one_type_encodes_every_kind_of_column_with_and_without_nulls_keys_and_headers() -> None:
    values = [b"a", None, b"c"]
    keys = [None, {"key": pa.array([b"1", None, b"3"], pa.large_binary())}, {"key": pa.array(["1", "2", "3"])}]
    headers = [None, {"headers": pa.array(HEADERS, TYPES["headers"])}]
    for kind, key, header in itertools.product((pa.binary(), pa.large_binary()), keys, headers):
        batch = pa.record_batch({"value": pa.array(values, kind), **(key or {}), **(header or {})})
        for part in (batch, batch.slice(1), batch.slice(0, 0)):
            records = Records.of(part)
            Partitioner(3).choose(records)
            assert bool(list(encode_batches(records, np.arange(records.rows), 1))) == bool(records.rows)
    assert len(kernels.encode_records.signatures) == 1
    assert len(kernels.choose_partitions.signatures) == 1


def named_tuples(kinds: Iterable[Any]) -> Iterator[type[Any]]:
    for kind in kinds:
        if isinstance(kind, types.NamedTuple):
            yield kind.instance_class
            yield from named_tuples(kind.types)


def test_every_named_tuple_that_a_kernel_takes_is_of_the_kernels_own_file() -> None:
    """The cache of compiled code is checked against that file only: fields that move elsewhere would be mixed up."""
    record_batch = pa.record_batch({"value": pa.array([b"v"])})
    raw = bytes(next(encode_batches(Records.of(record_batch), np.arange(1), 1)))
    list(PartitionDecoder("t", 0, arrow_schema(["value"])).decode(raw))
    taken = {
        kind
        for kernel in (kernels.decode_records, kernels.encode_records)
        for signature in kernel.signatures
        for kind in named_tuples(signature)
    }
    assert kernels.ColumnOutputs in taken
    assert kernels.BinaryInput in taken
    assert {kind.__module__ for kind in taken} == {kernels.__name__}
