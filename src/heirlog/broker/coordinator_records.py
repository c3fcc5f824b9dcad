"""How a coordinator's record holds its messages, in Kafka's format: each of them behind an int16.

key     type of the record | message
value   version of the message | message; none: deleted
"""

from __future__ import annotations

from struct import Struct
from typing import TypeVar

from heirlog.protocol.primitives import Malformed, Message, decode, encode_bytes

_PREFIX = Struct(">h")
M = TypeVar("M", bound=Message)


def encode_key(record_type: int, key: Message, version: int = 0) -> bytes:
    """version: of the message, which no reader finds in the key."""
    return _PREFIX.pack(record_type) + encode_bytes(key, version)


def encode_value(value: Message, version: int) -> bytes:
    return _PREFIX.pack(version) + encode_bytes(value, version)


def prefix_of(data: bytes | None, topic: str) -> int:
    """The type of a key, or the version of a value. Raises Malformed. topic: for the error."""
    if data is None or len(data) < _PREFIX.size:
        raise Malformed(f"a record of {topic} is shorter than its version")
    prefix: int = _PREFIX.unpack_from(data)[0]
    return prefix


def decode_message(kind: type[M], data: bytes, version: int = 0) -> M:
    """The message of a key or a value. Raises Malformed."""
    return decode(kind, data, version, _PREFIX.size)


def decode_value(kind: type[M], value: bytes | None, topic: str) -> M | None:
    """None for a tombstone. Raises Malformed, also for a version that is not known."""
    return None if value is None else decode_message(kind, value, prefix_of(value, topic))
