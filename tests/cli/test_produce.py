"""What happens to lines on their way into records."""

from __future__ import annotations

import os

import pytest

from heirlog.cli.produce import chunks_of_lines, murmur2, split_key


@pytest.mark.parametrize(
    ("written", "lines"),
    [
        (b"", []),
        (b"a\nb\n", [b"a", b"b"]),
        (b"a\nb", [b"a", b"b"]),
        (b"\n\n", [b"", b""]),
        (b"\xff\x00\r\n", [b"\xff\x00\r"]),
    ],
)
def test_each_line_is_a_record_and_its_bytes_stay(written: bytes, lines: list[bytes]) -> None:
    read, write = os.pipe()
    os.write(write, written)
    os.close(write)
    assert [line for chunk in chunks_of_lines(read) for line in chunk] == lines
    os.close(read)


def test_a_line_is_sent_before_the_next_one_is_typed() -> None:
    read, write = os.pipe()
    chunks = chunks_of_lines(read)
    os.write(write, b"first\nsec")
    assert next(chunks) == [b"first"]
    os.write(write, b"ond\n")
    assert next(chunks) == [b"second"]
    os.close(write)
    assert list(chunks) == []
    os.close(read)


def test_the_key_stands_before_the_first_separator() -> None:
    assert split_key(b"k:v:w", b":") == (b"k", b"v:w")
    assert split_key(b"none", b":") == (None, b"none")


@pytest.mark.parametrize(
    ("key", "signed"),
    [
        # Kafka's own test vectors (UtilsTest.testMurmur2)
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
    ],
)
def test_keys_are_hashed_as_java_clients_hash_them(key: bytes, signed: int) -> None:
    assert murmur2(key) == signed & 0xFFFFFFFF
