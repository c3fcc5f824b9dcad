"""The topics of a consumer's subscription: the start of Kafka's ConsumerProtocolSubscription.

    int16 version | int32 count | topics as int16-prefixed strings | ... parts that the coordinator does not need

Every version of the format starts like this. A client may send any bytes as its subscription. If they cannot be parsed
the topics are unknown; that is not an error.
"""

from __future__ import annotations

from struct import Struct
from struct import error as StructError

_HEAD = Struct(">hi")
_LENGTH = Struct(">h")


def subscribed_topics(subscription: bytes) -> frozenset[str] | None:
    """None if the bytes are not a consumer's subscription."""
    try:
        version, count = _HEAD.unpack_from(subscription)
        if version < 0 or not 0 <= count <= len(subscription):
            return None
        position = _HEAD.size
        topics = []
        for _ in range(count):
            (size,) = _LENGTH.unpack_from(subscription, position)
            position += _LENGTH.size
            name = subscription[position : position + size]
            if size < 0 or len(name) != size:
                return None
            topics.append(name.decode())
            position += size
    except (StructError, UnicodeDecodeError):
        return None
    return frozenset(topics)
