"""How `heirlog produce` makes a record of a line of its input.

lines   the line is the value, or what is behind the key separator
json    an object as `heirlog consume --json` prints: value and key are text, null, or {"base64": ...}; headers are
        [name, value] pairs; timestamp_ms. Some may be missing. With an offset, the record was read: where from (topic,
        partition, offset, delivery_count) is ignored, so that the output of consume can be written to another topic.
        Without one, partition and topic say where the record is to go. Any other member is refused: with "payload",
        kcat's word for the value, each record would be a tombstone
"""

from __future__ import annotations

import binascii
import json
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from typing import Any, NamedTuple, TypeAlias

from heirlog.cli.errors import CommandError, UsageError
from heirlog.protocol.batch import Headers

TIMESTAMP_MAX = 2**63 - 1
READ = ("key", "value", "headers", "timestamp_ms")
IGNORED = ("topic", "partition", "offset", "delivery_count")
"""The first two only with an offset."""


class LineRecord(NamedTuple):
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp_ms: int | None = None
    """None: the time of sending."""
    partition: int | None = None
    """None: any, and of `topic` too."""
    topic: str | None = None


class InputFormat(StrEnum):
    LINES = "lines"
    JSON = "json"


Parse: TypeAlias = Callable[[bytes], LineRecord]


def parser_of(
    input_format: InputFormat,
    *,
    key: bytes | None = None,
    key_separator: bytes | None = None,
    headers: Sequence[str] = (),
    tombstones: bool = False,
) -> Parse:
    """key: of every record. headers: NAME=VALUE or NAME, of every record. tombstones: an empty value becomes null.

    Raises UsageError; what it returns raises CommandError for a line that is not a record.
    """
    fixed = tuple(_header(one) for one in headers)

    def of_line(line: bytes) -> LineRecord:
        found, value = split_key(line, key_separator) if key_separator else (key, line)
        return LineRecord(found, value or None if tombstones else value, fixed)

    def of_json(line: bytes) -> LineRecord:
        record = _record_of(line)
        return record._replace(
            key=record.key if key is None else key,
            value=record.value or None if tombstones else record.value,
            headers=(*record.headers, *fixed),
        )

    if input_format is InputFormat.LINES:
        return of_line
    if key_separator is not None:
        raise UsageError("--key-separator is for lines; with --input-format json the key is a member of the object")
    return of_json


def split_key(line: bytes, separator: bytes) -> tuple[bytes | None, bytes]:
    key, found, value = line.partition(separator)
    return (key, value) if found else (None, line)


def _header(text: str) -> tuple[str, bytes | None]:
    """As kcat reads it: a name alone has the value null."""
    name, found, value = text.partition("=")
    if not name:
        raise UsageError(f"--header {text} is not of the form NAME=VALUE, or NAME for null")
    return name, value.encode() if found else None


def _headers(given: Any) -> Iterator[tuple[str, bytes | None]]:
    """Pairs, or an object of names and values. Raises ValueError."""
    for pair in given.items() if isinstance(given, dict) else given or ():
        if not (isinstance(pair, list | tuple) and len(pair) == 2):
            raise ValueError('headers are pairs: [["name", "value"]]')
        yield str(pair[0]), _bytes(pair[1])


def _record_of(line: bytes) -> LineRecord:
    try:
        members = json.loads(line)
        if not isinstance(members, dict):
            raise ValueError("it is not an object")
        unknown = [name for name in members if name not in READ + IGNORED]
        if unknown:
            raise ValueError(f"{unknown[0]!r} is not a member of it; there are {', '.join(READ)}")
        if not any(name in READ for name in members):
            raise ValueError(f"it has none of {', '.join(READ)}")
        timestamp_ms = members.get("timestamp_ms")
        if timestamp_ms is not None and not (type(timestamp_ms) is int and 0 <= timestamp_ms <= TIMESTAMP_MAX):
            raise ValueError("timestamp_ms is no time in ms")
        was_read = members.get("offset") is not None
        partition, topic = (None, None) if was_read else (members.get("partition"), members.get("topic"))
        if partition is not None and not (type(partition) is int and partition >= 0):
            raise ValueError("partition is not a number from 0")
        if topic is not None and not isinstance(topic, str):
            raise ValueError("topic is not text")
        return LineRecord(
            _bytes(members.get("key")),
            _bytes(members.get("value")),
            tuple(_headers(members.get("headers"))),
            timestamp_ms,
            partition,
            topic,
        )
    except (ValueError, TypeError) as error:
        shown = line[:80].decode(errors="replace")
        raise CommandError(
            f"not a JSON object as heirlog consume --json prints them ({error}): {shown}; what was before it is sent"
        ) from error


def _bytes(member: Any) -> bytes | None:
    """Raises ValueError, TypeError."""
    if member is None:
        return None
    if isinstance(member, dict):
        try:
            return binascii.a2b_base64(member["base64"], strict_mode=True)
        except KeyError as error:
            raise ValueError("an object without base64") from error
    if not isinstance(member, str):
        raise TypeError(f"{member!r} is neither text nor base64; write other JSON as text")
    return member.encode()
