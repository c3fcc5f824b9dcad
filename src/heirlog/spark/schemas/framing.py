"""Where a serializer puts the id of a value's schema.

    confluent   a zero byte, the id in 4 bytes, the value    Confluent's serializers; Apicurio's since version 3
    apicurio    a zero byte, the id in 8 bytes, the value    Apicurio's serializers up to version 2
    headers     the id in 8 bytes in a header, the value     Apicurio's serializers with headers enabled
    none        the value alone

Numbers are big-endian. After the id a Protobuf value has the path to its message type within the schema: a count and
that many positions, each as a varint with a sign (zigzag). A single zero is short for the path [0].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

FRAMINGS = ("confluent", "apicurio", "headers", "none")
_ID_BYTES = {"confluent": 4, "apicurio": 8}
_ID_HEADERS = ("apicurio.value.contentId", "apicurio.value.globalId", "apicurio.key.contentId", "apicurio.key.globalId")
PATH_MAX = 64
"""Message types are not nested as deep."""


class BadValue(ValueError):
    """A value that cannot be read. The message says why."""


class Framed(NamedTuple):
    schema_id: int | None
    """None with framing `none`."""
    payload: bytes


def unframed(value: bytes, framing: str, headers: Sequence[dict[str, bytes | str | None]] | None = None) -> Framed:
    """Raises BadValue."""
    if framing == "none":
        return Framed(None, value)
    if framing == "headers":
        return Framed(_id_in(headers or ()), value)
    size = 1 + _ID_BYTES[framing]
    if len(value) < size or value[0] != 0:
        raise BadValue(
            f"it does not begin with a zero byte and a schema id of {size - 1} bytes. Check that a serializer with a "
            f"schema registry wrote it, and the argument framing (now {framing})"
        )
    return Framed(int.from_bytes(value[1:size], "big"), value[size:])


def _id_in(headers: Sequence[dict[str, bytes | str | None]]) -> int:
    found = {str(header["key"]): header["value"] for header in headers}
    for name in _ID_HEADERS:
        value = found.get(name)
        if isinstance(value, bytes) and len(value) == 8:
            return int.from_bytes(value, "big")
    raise BadValue(f"it has none of the headers {', '.join(_ID_HEADERS)} with an id of 8 bytes")


def message_path(payload: bytes) -> tuple[tuple[int, ...], bytes]:
    """The path to a Protobuf value's message type, and the value. Raises BadValue."""
    count, position = _zigzag(payload, 0)
    if not count:
        return (0,), payload[position:]
    if not 0 < count <= PATH_MAX:
        raise BadValue(f"the path to its message type would have {count} positions")
    path = []
    for _ in range(count):
        index, position = _zigzag(payload, position)
        path.append(index)
    return tuple(path), payload[position:]


def _zigzag(data: bytes, position: int) -> tuple[int, int]:
    number = shift = 0
    while shift < 35:
        if position >= len(data):
            break
        byte = data[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), position
        shift += 7
    raise BadValue("the path to its message type is cut or damaged")
