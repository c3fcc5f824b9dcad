from __future__ import annotations

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatchBuilder
from kafka.record.memory_records import MemoryRecords

from heirlog.protocol import batch
from heirlog.protocol.batch import InvalidBatch, Record, encode_batch
from heirlog.protocol.errors import ErrorCode, KafkaError

binary = st.none() | st.binary(max_size=300)
headers = st.lists(st.tuples(st.text(max_size=8), binary), max_size=3)
record = st.tuples(binary, binary, headers, st.integers(0, 2**42))
records = st.lists(record, min_size=1, max_size=20)


def expected(items: list[tuple], base: int) -> list[Record]:
    return [Record(base + i, t, k, v, tuple(h)) for i, (k, v, h, t) in enumerate(items)]


@settings(deadline=None)
@given(records, st.integers(0, 2**60), st.sampled_from([0, 1, 2, 3, 4]))
def test_records_come_back_as_they_went_in(items: list[tuple], base: int, codec: int) -> None:
    buf = encode_batch(items, base, 7, codec)
    header = batch.read_header(buf)
    assert header.size == len(buf)
    assert (header.base_offset, header.next_offset, header.leader_epoch) == (base, base + len(items), 7)
    assert header.compression == codec
    assert header.max_timestamp == max(r[3] for r in items)
    assert batch.crc_matches(buf, 0, header)
    assert batch.decode_records(buf) == expected(items, base)


@settings(deadline=None)
@given(records, st.sampled_from([0, 1, 2, 3, 4]))
def test_another_implementation_reads_our_batches(items: list[tuple], codec: int) -> None:
    theirs = MemoryRecords(bytes(encode_batch(items, 5, 0, codec)))
    assert theirs.has_next()
    their_batch = theirs.next_batch()
    assert their_batch.validate_crc()
    got = [(r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in their_batch]
    assert got == [tuple(r) for r in expected(items, 5)]


@pytest.mark.parametrize("codec", [0, 1, 2, 3, 4])
def test_we_read_the_batches_of_another_implementation(codec: int) -> None:
    builder = DefaultRecordBatchBuilder(2, codec, False, -1, -1, -1, 100_000)
    for i in range(50):
        assert builder.append(i, 1000 + i, b"k%d" % i, b"v" * i, [("h", b"x")])
    buf = bytes(builder.build())
    assert batch.crc_matches(buf, 0, batch.read_header(buf))
    assert batch.decode_records(buf) == [Record(i, 1000 + i, b"k%d" % i, b"v" * i, (("h", b"x"),)) for i in range(50)]


def test_a_place_in_the_log_leaves_the_crc_valid() -> None:
    buf = encode_batch([(None, b"a", [], 1)] * 3)
    batch.rewrite(memoryview(buf), 0, 99, 4)
    header = batch.read_header(buf)
    assert (header.base_offset, header.last_offset, header.leader_epoch) == (99, 101, 4)
    assert batch.crc_matches(buf, 0, header)


def test_log_append_time_replaces_the_timestamps_of_all_records_and_the_crc() -> None:
    buf = encode_batch([(None, b"a", [], 1), (None, b"b", [], 9)])
    batch.rewrite_as_log_append_time(buf, 0, batch.read_header(buf), 777)
    header = batch.read_header(buf)
    assert header.log_append_time and header.max_timestamp == 777
    assert batch.crc_matches(buf, 0, header)
    assert [r.timestamp_ms for r in batch.decode_records(buf)] == [777, 777]


def test_walk_names_each_batch_and_its_position() -> None:
    first, second = encode_batch([(None, b"a", [], 1)]), encode_batch([(b"k", None, [], 1)] * 2, 1)
    assert [(p, h.base_offset) for p, h in batch.walk(first + second)] == [(0, 0), (len(first), 1)]


@settings(deadline=None)
@given(st.integers(1, 500))
def test_a_torn_tail_ends_a_partial_walk_and_fails_a_strict_one(cut: int) -> None:
    first, second = encode_batch([(None, b"a", [], 1)]), encode_batch([(None, b"b" * 500, [], 1)], 1)
    torn = (first + second)[:-cut]
    assert [h.base_offset for _, h in batch.walk(torn, partial_tail=True)] == [0]
    with pytest.raises(InvalidBatch):
        list(batch.walk(torn))


@settings(deadline=None)
@given(st.data())
def test_one_flipped_bit_behind_the_crc_is_seen(data: st.DataObject) -> None:
    buf = encode_batch([(b"key", b"value", [], 1)] * 3)
    at = data.draw(st.integers(21 * 8, len(buf) * 8 - 1))
    buf[at // 8] ^= 1 << at % 8
    try:
        header = batch.read_header(buf)
    except InvalidBatch:
        return
    assert not batch.crc_matches(buf, 0, header)


@settings(deadline=None)
@given(st.binary(max_size=200), st.integers(0, 200))
def test_garbage_raises_only_kafka_errors(garbage: bytes, at: int) -> None:
    buf = encode_batch([(b"key", b"value", [("a", b"b")], 1)] * 3)
    buf[at : at + len(garbage)] = garbage
    try:
        for position, _ in batch.walk(buf):
            batch.decode_records(buf, position)
    except KafkaError:
        pass


@pytest.mark.parametrize("magic", [0, 1])
def test_an_old_message_format_is_named(magic: int) -> None:
    old = bytearray(40)
    old[16] = magic
    with pytest.raises(InvalidBatch, match=f"format {magic}") as raised:
        batch.read_header(old)
    assert raised.value.code == ErrorCode.INVALID_RECORD


def test_sequences_wrap_at_31_bits() -> None:
    buf = encode_batch([(None, b"a", [], 1)] * 3, producer_id=1, producer_epoch=0, base_sequence=2**31 - 2)
    assert batch.read_header(buf).last_sequence == 0
    assert batch.read_header(encode_batch([(None, b"a", [], 1)])).last_sequence == -1


def test_attribute_bits_have_names() -> None:
    header = batch.read_header(encode_batch([(b"k", b"v", [], 1)], control=True, transactional=True))
    assert header.is_control and header.is_transactional and not header.log_append_time


def test_a_header_is_the_sixty_one_bytes_of_kafka() -> None:
    buf = encode_batch([(None, b"x", [], 5)], 3, 2)
    stream = io.BytesIO(buf)
    assert int.from_bytes(stream.read(8), "big") == 3
    assert int.from_bytes(stream.read(4), "big") == len(buf) - 12
    assert int.from_bytes(stream.read(4), "big") == 2
    assert stream.read(1) == b"\x02"
    assert batch.HEADER_SIZE == 61
