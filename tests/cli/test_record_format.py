"""kcat's format strings, and what is none."""

from __future__ import annotations

import pytest

from heirlog.cli.errors import UsageError
from heirlog.cli.record_format import as_json, format_of, unescaped
from heirlog.protocol.batch import Record, decode_records, encode_batch


def record(key: bytes | None = b"k", value: bytes | None = b"value") -> Record:
    headers = (("a", b"1"), ("b", None))
    (made,) = decode_records(encode_batch([(key, value, headers, 1_700_000_000_000)]))
    return made


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("%s", b"value"),
        (r"%t-%p@%o %k=%s\n", b"topic-3@0 k=value\n"),
        (r"%T\t%h", b"1700000000000\ta=1,b=NULL"),
        ("%S %K", b"5 1"),
        (r"100%%\x00\\", b"100%\0\\"),
        ("\u65e5 %s", "\u65e5 value".encode()),
        ("", b""),
    ],
)
def test_each_field_and_escape(text: str, written: bytes) -> None:
    assert format_of(text)("topic", 3, record()) == written


@pytest.mark.parametrize(
    ("text", "separator"),
    [(r"\t", b"\t"), (r"\x1f", b"\x1f"), (r"\\", b"\\"), ("::", b"::"), ("\t", b"\t"), ("\\", b"\\"), (r"\q", rb"\q")],
)
def test_a_separator_has_the_escapes_of_a_format_and_else_backslashes_are_themselves(
    text: str, separator: bytes
) -> None:
    assert unescaped(text) == separator


def test_what_is_missing_has_length_minus_one() -> None:
    assert format_of("%S %K [%s%k]")("topic", 0, record(None, None)) == b"-1 -1 []"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("%q", r"%q is unknown; there are %s \(value\),"),
        ("%", "after a percent sign"),
        ("a\\", "after a"),
        (r"\q", "after a"),
    ],
)
def test_what_is_no_format_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        format_of(text)


def test_a_json_line_is_utf_8_that_a_person_can_read() -> None:
    (line,) = as_json("topic", 0, record("ключ".encode(), "naïve 😀\n".encode())).splitlines()
    assert '"key": "ключ", "value": "naïve 😀\\n"' in line.decode()
