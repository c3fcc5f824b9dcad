"""How standard input becomes lines, and that every line that was read is counted."""

from __future__ import annotations

import os

import pytest

from heirlog.cli.errors import CommandError
from heirlog.cli.input_lines import InputLines
from heirlog.cli.interrupts import Interrupts


def pipe_with(written: bytes) -> int:
    read, write = os.pipe()
    os.write(write, written)
    os.close(write)
    return read


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
    read = pipe_with(written)
    given = InputLines(read, Interrupts())
    assert [line for chunk in given for line in chunk] == lines
    assert given.count == len(lines)
    os.close(read)


def test_a_line_is_sent_before_the_next_one_is_typed() -> None:
    read, write = os.pipe()
    given = InputLines(read, Interrupts())
    chunks = iter(given)
    os.write(write, b"first\nsec")
    assert next(chunks) == [b"first"]
    assert given.count == 2, "the second has begun"
    os.write(write, b"ond\n")
    assert next(chunks) == [b"second"]
    assert given.count == 2
    os.close(write)
    assert list(chunks) == []
    os.close(read)


def test_a_line_that_comes_in_three_reads_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heirlog.cli.input_lines.READ_BYTES", 4)
    read = pipe_with(b"0123456789\nabc\n")
    given = InputLines(read, Interrupts())
    assert [line for chunk in given for line in chunk] == [b"0123456789", b"abc"]
    assert given.count == 2
    os.close(read)


def test_a_line_that_no_request_can_carry_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heirlog.cli.input_lines.LINE_BYTES_MAX", 10)
    read = pipe_with(b"short\n" + b"x" * 11)
    given = InputLines(read, Interrupts())
    chunks = iter(given)
    assert next(chunks) == [b"short"]
    with pytest.raises(CommandError, match="longer than 10 bytes"):
        next(chunks)
    assert given.count == 2
    os.close(read)
