"""Arrow rows to record batches, read back by the plain decoder."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2

from heirlog.protocol.batch import decode_records, encode_batch, read_header
from heirlog.protocol.compression import CODEC_NAMES
from heirlog.spark.decode import HEADER_TYPE
from heirlog.spark.encode import Partitioner, Records, Unencodable, encode_batches, rows_by_partition

NOW = 1_700_000_000_000
HEADERS = pa.list_(HEADER_TYPE)

data = st.one_of(st.none(), st.binary(max_size=300))
headers = st.one_of(st.none(), st.lists(st.fixed_dictionaries({"key": st.text(max_size=4), "value": data}), max_size=3))
rows = st.lists(st.tuples(data, data, headers), min_size=1, max_size=40)


BINARY = pa.binary()


def batch_of(rows: list[Any], kind: pa.DataType = BINARY) -> pa.RecordBatch:
    keys, values, lists = zip(*rows, strict=True)
    return pa.record_batch(
        {"key": pa.array(keys, kind), "value": pa.array(values, kind), "headers": pa.array(lists, HEADERS)}
    )


def encoded(batch: pa.RecordBatch, **more: Any) -> list[bytearray]:
    return list(encode_batches(Records.of(batch), range(batch.num_rows), NOW, **more))


def plain(rows: list[Any]) -> list[tuple[Any, ...]]:
    return [(k, v, tuple((h["key"], h["value"]) for h in headers or ()), NOW) for k, v, headers in rows]


def read_back(batches: list[bytearray]) -> list[tuple[Any, ...]]:
    return [(r.key, r.value, r.headers, r.timestamp_ms) for raw in batches for r in decode_records(raw)]


@settings(deadline=None, max_examples=80)
@given(rows, st.integers(0, 4), st.sampled_from([100, 500, 1 << 20]), st.data())
def test_every_row_is_read_back_as_it_was(rows: list[Any], codec: int, limit: int, chosen: st.DataObject) -> None:
    batch = batch_of(rows, chosen.draw(st.sampled_from([pa.binary(), pa.large_binary()])))
    start = chosen.draw(st.integers(0, len(rows) - 1))
    batches = encoded(batch.slice(start), codec=codec, batch_bytes=limit)
    assert read_back(batches) == plain(rows[start:])
    if not codec:
        assert all(len(raw) <= limit or read_header(raw).record_count == 1 for raw in batches)


@settings(deadline=None, max_examples=30)
@given(rows)
def test_a_batch_is_byte_for_byte_what_the_plain_encoder_writes(rows: list[Any]) -> None:
    (raw,) = encoded(batch_of(rows), batch_bytes=1 << 20)
    expected = encode_batch(plain(rows))
    crc = slice(17, 21)
    expected[crc] = raw[crc]
    assert raw == expected


@settings(deadline=None)
@given(st.binary(max_size=40), st.integers(1, 50))
def test_a_key_lies_where_every_kafka_client_puts_it(key: bytes, count: int) -> None:
    (partition,) = Partitioner(count).choose(Records.of(batch_of([(key, None, None)])))
    assert partition == (murmur2(key) & 0x7FFFFFFF) % count


def test_strings_are_written_as_utf8_and_missing_columns_as_null() -> None:
    batch = pa.record_batch({"value": pa.array(["ä", None], pa.string())})
    assert read_back(encoded(batch)) == [(None, "ä".encode(), (), NOW), (None, None, (), NOW)]


def test_a_named_partition_wins_over_the_key_and_null_leaves_it_to_the_key() -> None:
    records = Records.of(batch_of([(b"a", b"1", None), (b"a", b"2", None)]))
    by_key = Partitioner(7).choose(records)[0]
    named = (by_key + 1) % 7
    assert list(Partitioner(7).choose(records, pa.array([named, None], pa.int32()))) == [named, by_key]


@pytest.mark.parametrize("wrong", [-1, 3])
def test_a_partition_that_the_topic_does_not_have_is_refused(wrong: int) -> None:
    records = Records.of(batch_of([(b"a", b"1", None)]))
    with pytest.raises(Unencodable, match=rf"partition {wrong} .* \[0...2\]"):
        Partitioner(3).choose(records, pa.array([wrong], pa.int32()))


def test_records_without_a_key_fill_one_partition_after_the_other() -> None:
    records = Records.of(batch_of([(None, bytes(93), None)] * 100))
    chosen = Partitioner(4, start=2, batch_bytes=1000).choose(records)
    assert list(chosen) == [(2 + row // 8) % 4 for row in range(100)]
    # what one visit leaves fits into one batch
    (whole,) = encode_batches(records, range(8), 0, batch_bytes=1000)
    assert len(whole) > 800


def test_rows_keep_their_order_within_a_partition() -> None:
    keys = [b"%d" % (number % 17) for number in range(500)]
    records = Records.of(batch_of([(key, b"", None) for key in keys]))
    chosen = Partitioner(5).choose(records)
    seen = {partition: list(rows) for partition, rows in rows_by_partition(chosen)}
    assert sorted(row for rows in seen.values() for row in rows) == list(range(500))
    assert all(rows == sorted(rows) and set(chosen[rows]) == {partition} for partition, rows in seen.items())


@pytest.mark.parametrize("codec", range(5), ids=CODEC_NAMES)
def test_a_record_larger_than_a_batch_is_alone_in_its_own(codec: int) -> None:
    rows = [(None, b"s", None), (None, bytes(10_000), None), (None, b"t", None)]
    batches = encoded(batch_of(rows), codec=codec, batch_bytes=200)
    assert [read_header(raw).record_count for raw in batches] == [1, 1, 1]
    assert read_back(batches) == plain(rows)
    assert read_header(batches[0]).compression == codec


def test_a_null_list_of_headers_may_hide_elements() -> None:
    array = pa.array([[{"key": "a", "value": b"x"}], [{"key": "b", "value": None}]], HEADERS)
    hidden = pa.Array.from_buffers(HEADERS, 2, [pa.py_buffer(b"\x02"), array.buffers()[1]], children=[array.values])
    batch = pa.record_batch({"value": pa.array([b"1", b"2"]), "headers": hidden})
    assert [headers for _, _, headers, _ in read_back(encoded(batch))] == [(), (("b", None),)]


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ({"value": pa.array([1])}, "column value is int64"),
        ({"value": pa.array([b""]), "key": pa.array([1.5])}, "column key is double"),
        ({"value": pa.array([b""]), "headers": pa.array(["x"])}, "column headers is string"),
        (
            {"value": pa.array([b""]), "headers": pa.array([[{"key": None, "value": b""}]], HEADERS)},
            "header has no key",
        ),
    ],
)
def test_what_no_record_can_hold_is_refused_with_a_reason(columns: dict[str, Any], why: str) -> None:
    with pytest.raises(Unencodable, match=why):
        Records.of(pa.record_batch(columns))


def test_an_empty_batch_of_rows_makes_no_batch() -> None:
    assert encoded(batch_of([(None, b"", None)]).slice(1)) == []
