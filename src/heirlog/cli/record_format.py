"""How `heirlog consume` writes a record: a line, a JSON object, or kcat's format string.

    %s value   %S its length in bytes, -1 without a value       %t topic      %T timestamp in ms
    %k key     %K its length in bytes, -1 without a key         %p partition  %h headers: name=value,name=value
    %% a percent sign   \\n \\r \\t \\0 \\\\ and \\xHH as in C         %o offset

Nothing is added: `-f '%s'` writes the values as they are, one after the other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TypeAlias

from heirlog.cli.errors import UsageError
from heirlog.cli.render import text_or_base64
from heirlog.protocol.batch import Record

Format: TypeAlias = Callable[[str, int, Record], bytes]
"""Topic, partition and record, to what is written."""

_FIELDS: dict[str, Format] = {
    "s": lambda topic, partition, record: record.value or b"",
    "S": lambda topic, partition, record: _length(record.value),
    "k": lambda topic, partition, record: record.key or b"",
    "K": lambda topic, partition, record: _length(record.key),
    "t": lambda topic, partition, record: topic.encode(),
    "p": lambda topic, partition, record: b"%d" % partition,
    "o": lambda topic, partition, record: b"%d" % record.offset,
    "T": lambda topic, partition, record: b"%d" % record.timestamp_ms,
    "h": lambda topic, partition, record: b",".join(
        b"%s=%s" % (name.encode(), b"NULL" if value is None else value) for name, value in record.headers
    ),
    "%": lambda topic, partition, record: b"%",
}
WORDS = {
    "s": "(value)",
    "S": "(its length)",
    "k": "(key)",
    "K": "(its length)",
    "h": "(headers)",
    "t": "(topic)",
    "p": "(partition)",
    "o": "(offset)",
    "T": "(time in ms)",
}
_ESCAPES = {"n": b"\n", "r": b"\r", "t": b"\t", "0": b"\0", "\\": b"\\"}
_PARTS = re.compile(r"%(.?)|\\(x[0-9a-fA-F]{2}|.?)|([^%\\]+)", re.DOTALL)
_ESCAPED = re.compile(r"\\(x[0-9a-fA-F]{2}|[nrt0\\])")


def unescaped(text: str) -> bytes:
    """`\\t` and the other escapes of a format, as kcat reads them in a separator; another backslash is itself."""
    # split with a group: literals and escapes alternate
    literals_and_escapes = _ESCAPED.split(text)
    return b"".join(
        part.encode() if at % 2 == 0 else _ESCAPES[part] if part in _ESCAPES else bytes([int(part[1:], 16)])
        for at, part in enumerate(literals_and_escapes)
    )


def format_of(text: str) -> Format:
    """Raises UsageError for what is no format."""
    parts: list[Format | bytes] = []
    for field, escape, literal in _PARTS.findall(text):
        if literal:
            parts.append(literal.encode())
        elif field:
            if field not in _FIELDS:
                there = ", ".join(f"%{name} {word}" for name, word in WORDS.items())
                raise UsageError(f"--format: %{field} is unknown; there are {there}, and %%")
            parts.append(_FIELDS[field])
        elif escape in _ESCAPES:
            parts.append(_ESCAPES[escape])
        elif len(escape) == len("xHH"):
            parts.append(bytes([int(escape[1:], 16)]))
        else:
            raise UsageError(
                f"--format: after a percent sign a field is named, after a backslash one of {', '.join(_ESCAPES)} or "
                "xHH; write %% or \\\\ for the sign itself"
            )
    return lambda topic, partition, record: b"".join(
        part if isinstance(part, bytes) else part(topic, partition, record) for part in parts
    )


def as_text(topic: str, partition: int, record: Record) -> bytes:
    return (record.value or b"") + b"\n"


def as_text_with_key(topic: str, partition: int, record: Record) -> bytes:
    return b"%s\t%s\n" % (record.key or b"", record.value or b"")


def as_json(topic: str, partition: int, record: Record) -> bytes:
    return _line(_shown(topic, partition, record))


def as_shared_json(delivery_count: Callable[[str, int, int], int], topic: str, partition: int, record: Record) -> bytes:
    """delivery_count: of a topic, partition and offset."""
    shown = _shown(topic, partition, record) | {"delivery_count": delivery_count(topic, partition, record.offset)}
    return _line(shown)


def _line(shown: dict[str, object]) -> bytes:
    """In UTF-8, so that a person can read it and grep finds what they look for."""
    return json.dumps(shown, ensure_ascii=False).encode() + b"\n"


def _shown(topic: str, partition: int, record: Record) -> dict[str, object]:
    return {
        "topic": topic,
        "partition": partition,
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
        "key": text_or_base64(record.key),
        "value": text_or_base64(record.value),
        "headers": [[name, text_or_base64(value)] for name, value in record.headers],
    }


def _length(data: bytes | None) -> bytes:
    return b"%d" % (-1 if data is None else len(data))
