"""The kernel against the plain decoder of `heirlog.protocol.batch`, which is the slow second definition."""

from __future__ import annotations

import json
import pickle
import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from heirlog.protocol.batch import (
    HEADER_SIZE,
    InvalidBatch,
    NewRecord,
    decode_records,
    encode_batch,
    put_varint,
    read_header,
    rewrite,
    rewrite_as_log_append_time,
)
from heirlog.protocol.compression import CODEC_NAMES
from heirlog.spark import kernels
from heirlog.spark.columns import COLUMNS
from heirlog.spark.decode import ROWS_MAX, CorruptRecords, PartitionDecoder, arrow_schema

DATA = Path(__file__).parent / "data"
ALL = arrow_schema(COLUMNS)
BEYOND_64_BITS = re.compile(rb"[\x80-\xff]{9}[\x02-\xff]")
BASE_TIME = 1_700_000_000_000

data = st.one_of(st.none(), st.binary(max_size=200))
names = st.text(max_size=5)
records = st.lists(
    st.tuples(
        data, data, st.lists(st.tuples(names, data), max_size=3), st.integers(BASE_TIME - 10**12, BASE_TIME + 10**12)
    ),
    min_size=1,
    max_size=30,
)


def decoded(raw: bytes, start: int = 0, end: int = 2**60, columns: tuple[str, ...] = COLUMNS, **more: Any) -> list[Any]:
    decoder = PartitionDecoder("t", 3, arrow_schema(columns), start, end)
    batches = list(decoder.decode(memoryview(raw), **more))
    for batch in batches:
        batch.validate(full=True)
    return [row for batch in batches for row in batch.to_pylist()]


def reference(raw: bytes, position: int = 0) -> list[dict[str, Any]]:
    """Rows of one batch as Spark's source has them."""
    header = read_header(raw, position)
    return [
        {
            "key": record.key,
            "value": record.value,
            "topic": "t",
            "partition": 3,
            "offset": record.offset,
            "timestamp": record.timestamp_ms,
            "timestampType": int(header.log_append_time),
            "headers": [{"key": name, "value": content} for name, content in record.headers] or None,
        }
        for record in decode_records(raw, position)
    ]


def in_milliseconds(rows: list[Any]) -> list[Any]:
    return [{**row, "timestamp": int(row["timestamp"].timestamp() * 1000 + 0.5)} for row in rows]


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(records, st.integers(0, 4)), min_size=1, max_size=4))
def test_every_record_comes_out_as_the_plain_decoder_reads_it(batches: list[tuple[list[NewRecord], int]]) -> None:
    raw, expected, offset = b"", [], 7
    for content, codec in batches:
        batch = encode_batch(content, base_offset=offset, compression=codec)
        raw += batch
        expected += reference(bytes(batch))
        offset += len(content) + 2
    assert in_milliseconds(decoded(raw)) == expected


@settings(deadline=None, max_examples=100)
@given(records, st.data())
def test_damaged_records_raise_or_are_read_as_the_plain_decoder_reads_them(
    content: list[NewRecord], chosen: st.DataObject
) -> None:
    raw = encode_batch(content)
    for _ in range(chosen.draw(st.integers(1, 3))):
        at = chosen.draw(st.integers(HEADER_SIZE, len(raw) - 1))
        raw[at] = chosen.draw(st.sampled_from([0, 1, 2, 0x7F, 0x80, 0xFF, raw[at] ^ 0x01, raw[at] ^ 0x80]))
    assert_as_plain(bytes(raw))


@settings(deadline=None, max_examples=200)
@given(st.binary(min_size=7, max_size=80), st.integers(1, 6), st.integers(0, 3))
def test_any_bytes_raise_or_are_read_as_the_plain_decoder_reads_them(
    payload: bytes, count: int, last_delta: int
) -> None:
    raw = encode_batch([(None, None, (), 0)] * count)[:HEADER_SIZE] + payload
    struct.pack_into(">i", raw, 8, len(raw) - 12)
    struct.pack_into(">i", raw, 23, last_delta)
    assert_as_plain(bytes(raw))


def assert_as_plain(raw: bytes) -> None:
    """The kernel is stricter in what the header promises (offsets) and Spark can hold (timestamps), and as lenient as
    Kafka's own client with a header's name that is no UTF-8."""
    assume(not BEYOND_64_BITS.search(raw, HEADER_SIZE))  # the plain decoder's integers have no end
    header = read_header(raw)
    try:
        plain = decode_records(raw)
    except InvalidBatch as error:
        if not isinstance(error.__cause__, UnicodeDecodeError):
            with pytest.raises(CorruptRecords):
                stored_columns(raw)
        return
    if all(
        0 <= record.offset - header.base_offset <= header.last_offset_delta
        and abs(record.timestamp_ms) <= kernels.LAST_MILLISECOND
        for record in plain
    ):
        expected = [(record.offset, record.timestamp_ms * 1000, record.key, record.value) for record in plain]
        assert stored_columns(raw) == expected
    else:
        with pytest.raises(CorruptRecords):
            stored_columns(raw)


def stored_columns(raw: bytes) -> list[tuple[Any, ...]]:
    """Offset, timestamp in us (as the number it is stored as), key, value."""
    schema = arrow_schema(("offset", "timestamp", "key", "value", "headers"))
    rows: list[tuple[Any, ...]] = []
    for batch in PartitionDecoder("t", 3, schema, -(2**62)).decode(memoryview(raw)):
        batch.validate(full=True)
        columns = [batch.column(i).cast(pa.int64()) if i == 1 else batch.column(i) for i in range(4)]
        rows += zip(*(column.to_pylist() for column in columns), strict=True)
    return rows


def test_only_records_between_the_two_offsets_come_out() -> None:
    raw = b"".join(encode_batch([(None, b"v", (), 0)] * 10, base_offset=start) for start in (0, 10, 20))
    assert [row["offset"] for row in decoded(raw, 7, 23, ("offset",))] == list(range(7, 23))


def test_only_wanted_columns_are_built_in_the_order_in_which_they_are_wanted() -> None:
    raw = encode_batch([(b"k", b"v", [("h", b"x")], 5)])
    assert decoded(raw, columns=("value", "offset")) == [{"value": b"v", "offset": 0}]
    assert decoded(raw, columns=("headers",)) == [{"headers": [{"key": "h", "value": b"x"}]}]
    assert decoded(raw, columns=("topic", "partition")) == [{"topic": "t", "partition": 3}]


def test_a_broker_s_append_time_is_every_record_s_timestamp() -> None:
    raw = encode_batch([(None, b"a", (), 1), (None, b"b", (), 2)])
    rewrite_as_log_append_time(raw, 0, read_header(raw), 9)
    assert [(row[1]) for row in stored_columns(bytes(raw))] == [9000, 9000]
    assert [row["timestampType"] for row in decoded(bytes(raw))] == [1, 1]


def test_an_answer_that_ends_inside_a_batch_is_continued_behind_its_last_whole_one() -> None:
    first, second = (encode_batch([(None, b"v", (), 0)] * 3, base_offset=start) for start in (0, 3))
    decoder = PartitionDecoder("t", 3, ALL)
    for cut in (1, HEADER_SIZE - 1, len(second) - 1):
        assert sum(batch.num_rows for batch in decoder.decode(memoryview(first + second[:cut]))) in (0, 3)
        assert decoder.next_offset == 3
    assert sum(batch.num_rows for batch in decoder.decode(memoryview(second))) == 3
    assert decoder.next_offset == 6


def test_batches_whose_records_were_compacted_away_move_the_position_and_nothing_else() -> None:
    empty = encode_batch([(None, b"v", (), 0)] * 4, base_offset=5)[:HEADER_SIZE]
    struct.pack_into(">i", empty, 8, HEADER_SIZE - 12)
    struct.pack_into(">i", empty, 57, 0)
    decoder = PartitionDecoder("t", 3, ALL, 5)
    assert list(decoder.decode(memoryview(empty))) == []
    assert decoder.next_offset == 9


def test_records_of_aborted_transactions_and_control_batches_are_passed_over() -> None:
    def batch(offset: int, producer: int, value: bytes) -> bytearray:
        return encode_batch([(None, value, (), 0)], base_offset=offset, producer_id=producer, transactional=True)

    def marker(offset: int, producer: int, kind: int) -> bytearray:
        key = struct.pack(">hh", 0, kind)
        return encode_batch(
            [(key, bytes(6), (), 0)], base_offset=offset, producer_id=producer, transactional=True, control=True
        )

    raw = bytes(
        batch(0, 1, b"committed")
        + batch(1, 2, b"aborted")
        + encode_batch([(None, b"plain", (), 0)], base_offset=2)
        + marker(3, 1, 1)
        + marker(4, 2, 0)
        + batch(5, 2, b"after")
        + batch(6, 2, b"aborted again")
        + marker(7, 2, 0)
    )
    aborted = [(2, 1), (2, 6)]
    assert [row["value"] for row in decoded(raw, aborted=aborted)] == [b"committed", b"plain", b"after"]
    assert len(decoded(raw)) == 5, "read_uncommitted: everything but the markers"


def test_many_small_batches_become_few_large_ones() -> None:
    one = encode_batch([(None, b"v", (), 0)] * 100)
    raw = bytearray()
    for number in range(1000):
        rewrite(one, 0, number * 100, 0)
        raw += one
    sizes = [batch.num_rows for batch in PartitionDecoder("t", 3, ALL).decode(memoryview(raw))]
    assert sum(sizes) == 100_000
    assert len(sizes) == 2
    assert max(sizes) <= ROWS_MAX


@pytest.mark.parametrize("codec", range(1, 5), ids=CODEC_NAMES[1:])
def test_damaged_compressed_data_name_topic_partition_and_offset(codec: int) -> None:
    raw = encode_batch([(None, b"value" * 50, (), 0)] * 20, base_offset=40, compression=codec)
    raw[HEADER_SIZE : HEADER_SIZE + 8] = b"\x00" * 8
    with pytest.raises(CorruptRecords, match=r"t-3: the records from offset 4\d"):
        decoded(bytes(raw))


def test_a_record_count_that_cannot_be_is_refused_before_memory_is_taken_for_it() -> None:
    raw = encode_batch([(None, b"v", (), 0)])
    struct.pack_into(">i", raw, 57, 2**31 - 1)
    with pytest.raises(CorruptRecords, match="2147483647 records in"):
        decoded(bytes(raw))


def test_a_message_of_an_old_format_is_refused_with_its_name() -> None:
    raw = bytearray(encode_batch([(None, b"v", (), 0)]))
    raw[16] = 1
    with pytest.raises(CorruptRecords, match="format 1"):
        decoded(bytes(raw))


def test_a_header_s_name_that_is_no_utf8_gets_replacement_characters() -> None:
    raw = encode_batch([(None, None, [("ab", b"x")], 0)])
    at = raw.index(b"ab")
    raw[at] = 0xFF
    assert decoded(bytes(raw), columns=("headers",)) == [{"headers": [{"key": "\ufffdb", "value": b"x"}]}]


def test_spark_s_large_types_are_served() -> None:
    schema = pa.schema([("value", pa.large_binary()), ("topic", pa.large_string())])
    raw = encode_batch([(None, b"v", (), 0)])
    (batch,) = PartitionDecoder("t", 3, schema).decode(memoryview(raw))
    assert batch.schema == schema
    assert batch.to_pylist() == [{"value": b"v", "topic": "t"}]


def test_the_error_survives_the_way_from_a_worker() -> None:
    error = pickle.loads(pickle.dumps(CorruptRecords("t", 3, 9, "why")))
    assert (error.topic, error.partition, error.offset) == ("t", 3, 9)


def test_a_varint_ends_where_its_bytes_end() -> None:
    out = bytearray()
    put_varint(out, 2**62)
    raw = np.frombuffer(bytes(out), np.uint8)
    assert kernels.read_varint(raw, 0, len(out)) == (2**62, len(out))
    for end in range(len(out)):
        assert kernels.read_varint(raw, 0, end)[1] == -1


def test_a_log_of_apache_kafka_with_aborted_and_open_transactions_is_read_as_kafka_reads_it() -> None:
    """Two producers whose transactions interleave, one aborts always; a plain record; an open one at the end.

    Written by the Java client 4.2 to Apache Kafka 4.2 (interop/java/Transactions.java).
    """
    raw = (DATA / "transactions.log").read_bytes()
    fetched = json.loads((DATA / "transactions.json").read_text())
    committed = {b"committed-%d" % number for number in range(200)} | {b"plain"}
    aborted = {b"aborted-%d" % number for number in range(200)}
    stable, pairs = fetched["lastStableOffset"], [tuple(pair) for pair in fetched["aborted"]]
    values = [row["value"] for row in decoded(raw, 0, stable, ("value",), aborted=pairs)]
    assert len(values) == 201
    assert set(values) == committed
    everything = [row["value"] for row in decoded(raw, columns=("value",))]
    assert sorted(everything) == sorted(committed | aborted | {b"open"})
    offsets = [row["offset"] for row in decoded(raw, 0, stable, ("offset",), aborted=pairs)]
    assert offsets == sorted(set(offsets)), "control records and aborted ones leave gaps, and nothing else"
