from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heirlog.protocol import primitives as p


@given(st.integers(0, 2**32 - 1))
def test_unsigned_varints_survive(value: int) -> None:
    raw = p.uvarint(value)
    assert p.read_uvarint(memoryview(raw), 0) == (value, len(raw))


@pytest.mark.parametrize("raw", [b"\x80" * 5 + b"\x01", b"\xff" * 4 + b"\x7f"])
def test_a_varint_of_more_than_32_bits_is_malformed(raw: bytes) -> None:
    with pytest.raises(p.Malformed):
        p.read_uvarint(memoryview(raw), 0)


@given(st.text(max_size=300))
def test_strings_survive_in_both_forms(text: str) -> None:
    assert p.read_string(memoryview(p.string(text)), 0)[0] == text
    raw = p.compact_string(text)
    assert p.read_compact_string(memoryview(raw), 0) == (text, len(raw))
    assert p.read_compact_nullable_string(memoryview(raw), 0) == (text, len(raw))


@pytest.mark.parametrize("raw", [b"\xff\xfe", b"\xff\xff"])
def test_a_string_with_a_negative_length_is_malformed(raw: bytes) -> None:
    with pytest.raises(p.Malformed):
        p.read_string(memoryview(raw), 0)


def test_null_bytes_and_strings() -> None:
    assert p.read_nullable_string(memoryview(b"\xff\xff"), 0) == (None, 2)
    assert p.read_nullable_bytes(memoryview(b"\xff\xff\xff\xff"), 0) == (None, 4)
    assert p.read_compact_nullable_bytes(memoryview(b"\0"), 0) == (None, 1)
    with pytest.raises(p.Malformed):
        p.read_compact_bytes(memoryview(b"\0"), 0)
    with pytest.raises(p.Malformed):
        p.read_nullable_string(memoryview(b"\xff\xfe"), 0)
    with pytest.raises(p.Malformed):
        p.read_nullable_records(memoryview(b"\xff\xff\xff\xfe"), 0)


@pytest.mark.parametrize("count", [0, 1, 15, 16, 500])
def test_number_and_uuid_arrays_of_any_size(count: int) -> None:
    numbers = [n * 1000 - 7 for n in range(count)]
    raw = p.int32s(numbers)
    assert p.read_int32s(memoryview(raw), 0, count) == (numbers, 4 * count)
    uuids = [bytes([n % 256]) * 16 for n in range(count)]
    assert p.read_uuids(memoryview(p.uuids(uuids)), 0, count) == (uuids, 16 * count)


@pytest.mark.parametrize("count", [16, 2**31 - 1])
def test_an_array_that_claims_more_than_there_is_allocates_nothing(count: int) -> None:
    with pytest.raises(p.Malformed):
        p.read_int32s(memoryview(bytes(8)), 0, count)
    with pytest.raises(p.Malformed):
        p.read_uuids(memoryview(bytes(8)), 0, count)


def test_record_sets_have_a_size_in_every_form() -> None:
    wide = memoryview(bytes(16)).cast("q")
    assert p.records_size(None) == 0
    assert p.records_size(wide) == 16
    assert p.records_size([b"ab", bytearray(3), wide]) == 21
    assert bytes(p.records_view(None)) == b""
    assert bytes(p.records_view(b"ab")) == b"ab"
