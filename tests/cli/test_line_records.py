"""What a line of `heirlog produce` becomes, and that the output of `heirlog consume --json` can be its input."""

from __future__ import annotations

import json

import pytest

from heirlog.cli.errors import CommandError, UsageError
from heirlog.cli.line_records import InputFormat, LineRecord, parser_of
from heirlog.cli.record_format import as_json
from heirlog.protocol.batch import Headers, decode_records, encode_batch

LINES, JSON = InputFormat.LINES, InputFormat.JSON


def test_a_line_is_the_value_with_the_key_and_headers_of_all() -> None:
    parse = parser_of(LINES, key=b"k", headers=["a=1", "b=x=y", "c="])
    assert parse(b"v") == LineRecord(b"k", b"v", (("a", b"1"), ("b", b"x=y"), ("c", b"")))


def test_an_empty_value_is_a_tombstone_only_if_asked_for() -> None:
    assert parser_of(LINES, key_separator=b":")(b"k:") == LineRecord(b"k", b"")
    assert parser_of(LINES, key_separator=b":", tombstones=True)(b"k:") == LineRecord(b"k", None)
    assert parser_of(JSON, tombstones=True)(b'{"value": ""}') == LineRecord(None, None)


@pytest.mark.parametrize(
    ("key", "value", "headers"),
    [
        (b"k", b"v", ()),
        (None, None, (("h", None), ("h", b"\xff"))),
        (b"\xff\x00", b"", (("\u65e5", b"x"),)),
    ],
)
def test_what_consume_prints_is_read(key: bytes | None, value: bytes | None, headers: Headers) -> None:
    (record,) = decode_records(encode_batch([(key, value, headers, 1_700_000_000_000)]))
    line = as_json("topic", 3, record).rstrip(b"\n")
    assert parser_of(JSON)(line) == LineRecord(key, value, headers, 1_700_000_000_000)


def test_where_a_record_was_read_is_not_where_it_goes_and_without_an_offset_it_is() -> None:
    parse = parser_of(JSON)
    read = parse(b'{"value": "v", "topic": "t", "partition": 3, "offset": 0, "delivery_count": 1}')
    assert (read.partition, read.topic) == (None, None)
    meant = parse(b'{"value": "v", "topic": "t", "partition": 3}')
    assert (meant.partition, meant.topic) == (3, "t")


def test_options_add_to_a_json_line() -> None:
    parse = parser_of(JSON, key=b"all", headers=["b=2"])
    assert parse(b'{"key": "own", "headers": [["a", "1"]]}') == LineRecord(b"all", None, (("a", b"1"), ("b", b"2")))


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"[1]",
        b"{",
        b'{"value": 3}',
        b'{"value": {"base64": "?"}}',
        b'{"value": {"x": 1}}',
        b'{"headers": [1]}',
        b'{"headers": [["a"]]}',
        b'{"timestamp_ms": "now"}',
        b'{"timestamp_ms": true}',
        b'{"val": "a misspelled value would be a tombstone"}',
        b'{"timestamp_ms": -1}',
        b"{}",
        b'{"topic": "t"}',
        b'{"value": "v", "topic": 3}',
        b'{"value": "v", "partition": -1}',
        b'{"value": "v", "partition": "0"}',
        json.dumps({"timestamp_ms": 2**63}).encode(),
        b"\xff",
    ],
)
def test_a_line_that_is_no_record_is_refused(line: bytes) -> None:
    with pytest.raises(CommandError, match="not a JSON object as heirlog consume --json prints them"):
        parser_of(JSON)(line)


def test_headers_of_a_json_line_are_pairs_or_an_object_and_else_a_sentence_says_so() -> None:
    found = [parser_of(JSON)(b'{"headers": %s}' % given).headers for given in (b'[["a", "b"]]', b'{"a": "b"}')]
    assert found == [(("a", b"b"),)] * 2
    with pytest.raises(CommandError, match="headers are pairs"):
        parser_of(JSON)(b'{"headers": [["a"]]}')


def test_what_kcat_prints_is_refused_because_each_record_would_be_a_tombstone() -> None:
    with pytest.raises(CommandError, match="'tstype' is not a member of it; there are key, value, headers"):
        parser_of(JSON)(b'{"topic": "t", "partition": 0, "offset": 1, "tstype": "create", "ts": 1, "payload": "v"}')


def test_a_header_without_a_sign_of_equality_is_null_as_in_kcat() -> None:
    assert parser_of(LINES, headers=["a", "b=", "c=1"])(b"v").headers == (("a", None), ("b", b""), ("c", b"1"))


@pytest.mark.parametrize("header", ["=1", ""])
def test_a_header_needs_a_name(header: str) -> None:
    with pytest.raises(UsageError, match="is not of the form NAME=VALUE"):
        parser_of(LINES, headers=[header])


def test_a_key_separator_is_for_lines() -> None:
    with pytest.raises(UsageError, match="--key-separator is for lines"):
        parser_of(JSON, key_separator=b":")
