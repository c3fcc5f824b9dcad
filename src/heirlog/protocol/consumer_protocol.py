"""What consumers of a group tell each other in JoinGroup and SyncGroup, in Kafka's formats of version 0.

    ConsumerProtocolSubscription   int16 version | topics | user data | ... parts of later versions
    ConsumerProtocolAssignment     int16 version | topics, each with its int32 partitions | user data | ...

    topics    int32 count, then int16-prefixed strings         user data    int32-prefixed bytes, -1: none

Every version of the formats starts like this, so newer ones are read as version 0. A client may send any bytes. A
subscription that cannot be parsed names no topics that are known; that is not an error of the group.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from struct import Struct
from struct import error as StructError

CONSUMER = "consumer"
"""The protocol type of groups whose members use these formats."""
_VERSION = 0
_HEAD = Struct(">hi")
_LENGTH = Struct(">h")
_COUNT = Struct(">i")
_NO_USER_DATA = _COUNT.pack(-1)


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


def subscription(topics: Iterable[str]) -> bytes:
    names = sorted(topics)
    return _HEAD.pack(_VERSION, len(names)) + b"".join(map(_string, names)) + _NO_USER_DATA


def assignment(partitions: Mapping[str, Sequence[int]]) -> bytes:
    """partitions: of each topic."""
    topics = (
        _string(topic) + _COUNT.pack(len(numbers)) + b"".join(map(_COUNT.pack, numbers))
        for topic, numbers in sorted(partitions.items())
    )
    return _HEAD.pack(_VERSION, len(partitions)) + b"".join(topics) + _NO_USER_DATA


def assigned_partitions(data: bytes) -> dict[str, list[int]]:
    """The partitions of each topic; without any bytes there are none. Raises ValueError for bytes of another format."""
    found: dict[str, list[int]] = {}
    if not data:
        return found
    try:
        _, count = _HEAD.unpack_from(data)
        position = _HEAD.size
        for _ in range(count):
            (size,) = _LENGTH.unpack_from(data, position)
            position += _LENGTH.size + size
            topic = data[position - size : position].decode()
            (numbers,) = _COUNT.unpack_from(data, position)
            if size < 0 or numbers < 0:
                raise ValueError("the assignment has a negative length")
            position += _COUNT.size
            found[topic] = [_COUNT.unpack_from(data, position + _COUNT.size * index)[0] for index in range(numbers)]
            position += _COUNT.size * numbers
    except StructError as error:
        raise ValueError(f"the assignment of {len(data)} bytes is not one of a consumer: {error}") from error
    return found


def range_assignment(subscriptions: Mapping[str, bytes], partitions: Mapping[str, int]) -> dict[str, bytes]:
    """The assignment of each member by Kafka's range strategy: each topic's partitions in as many runs as the topic has
    members, the first ones longer by one where they cannot be equal.

    subscriptions: by member id. partitions: how many each topic has; topics that are missing here do not exist.
    """
    members = {member: subscribed_topics(data) or frozenset() for member, data in sorted(subscriptions.items())}
    shares: dict[str, dict[str, list[int]]] = {member: {} for member in members}
    for topic, count in partitions.items():
        sharing = [member for member, topics in members.items() if topic in topics]
        first = 0
        for index, member in enumerate(sharing):
            size = count // len(sharing) + (index < count % len(sharing))
            if size:
                shares[member][topic] = list(range(first, first + size))
            first += size
    return {member: assignment(share) for member, share in shares.items()}


def _string(text: str) -> bytes:
    data = text.encode()
    return _LENGTH.pack(len(data)) + data
