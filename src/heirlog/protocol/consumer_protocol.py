"""What consumers of a group tell each other in JoinGroup and SyncGroup, in Kafka's formats; written in version 0.

    ConsumerProtocolSubscription   int16 version | topics | user data | 1+ partitions that the member has | 2+ int32
                                   generation | 3+ rack
    ConsumerProtocolAssignment     int16 version | topics, each with its int32 partitions | user data | ...

    topics    int32 count, then int16-prefixed strings         user data    int32-prefixed bytes, -1: none

Every version of the formats starts like this, so newer ones are read as version 0. A client may send any bytes. A
subscription that cannot be parsed names no topics that are known; that is not an error of the group.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from struct import Struct
from struct import error as StructError
from typing import NamedTuple

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


class Subscription(NamedTuple):
    topics: frozenset[str]
    owned: dict[str, list[int]]
    """Partitions that the member has; none in version 0, whose members give up everything before they join."""
    rack_id: str | None


def read_subscription(data: bytes) -> Subscription:
    """Raises ValueError for bytes of another format."""
    topics = subscribed_topics(data)
    if topics is None:
        raise ValueError(f"{len(data)} bytes are not the subscription of a consumer")
    version, count = _HEAD.unpack_from(data)
    position = _HEAD.size
    try:
        for _ in range(count):
            position += _LENGTH.size + _LENGTH.unpack_from(data, position)[0]
        position = _after_bytes(data, position)
        owned: dict[str, list[int]] = {}
        rack_id = None
        if version >= 1:
            owned, position = _partitions_at(data, position)
        if version >= 3:
            (size,) = _LENGTH.unpack_from(data, position + _COUNT.size)
            start = position + _COUNT.size + _LENGTH.size
            rack_id = None if size < 0 else data[start : start + size].decode() or None
    except (StructError, UnicodeDecodeError) as error:
        raise ValueError(f"the subscription of {len(data)} bytes is cut off: {error}") from error
    return Subscription(topics, owned, rack_id)


def read_assignment(data: bytes) -> tuple[dict[str, list[int]], bytes]:
    """The partitions of each topic, and the data of a custom assignor. Raises ValueError for bytes of another format.

    Without any bytes there are no partitions.
    """
    if not data:
        return {}, b""
    try:
        partitions, position = _partitions_at(data, _LENGTH.size)
        end = _after_bytes(data, position)
    except (StructError, UnicodeDecodeError) as error:
        raise ValueError(f"the assignment of {len(data)} bytes is not one of a consumer: {error}") from error
    return partitions, data[position + _COUNT.size : end]


def version_of(data: bytes) -> int:
    """The version of a subscription or an assignment."""
    return int(_LENGTH.unpack_from(data)[0]) if len(data) >= _LENGTH.size else _VERSION


def _partitions_at(data: bytes, position: int) -> tuple[dict[str, list[int]], int]:
    """Topics with their partitions, and the position behind them."""
    found: dict[str, list[int]] = {}
    (count,) = _COUNT.unpack_from(data, position)
    position += _COUNT.size
    for _ in range(count):
        (size,) = _LENGTH.unpack_from(data, position)
        position += _LENGTH.size + size
        topic = data[position - size : position].decode()
        (numbers,) = _COUNT.unpack_from(data, position)
        if size < 0 or not 0 <= numbers <= len(data):
            raise ValueError("a length is negative, or larger than the data")
        position += _COUNT.size
        found[topic] = [_COUNT.unpack_from(data, position + _COUNT.size * index)[0] for index in range(numbers)]
        position += _COUNT.size * numbers
    return found, position


def _after_bytes(data: bytes, position: int) -> int:
    """The position behind nullable bytes."""
    (size,) = _COUNT.unpack_from(data, position)
    end = position + _COUNT.size + max(0, size)
    if end > len(data):
        raise ValueError("the data ends early")
    return int(end)


def subscription(topics: Iterable[str]) -> bytes:
    names = sorted(topics)
    return _HEAD.pack(_VERSION, len(names)) + b"".join(map(_string, names)) + _NO_USER_DATA


def assignment(partitions: Mapping[str, Sequence[int]], version: int = _VERSION) -> bytes:
    """partitions: of each topic. All versions have the same form."""
    topics = (
        _string(topic) + _COUNT.pack(len(numbers)) + b"".join(map(_COUNT.pack, numbers))
        for topic, numbers in sorted(partitions.items())
    )
    return _HEAD.pack(version, len(partitions)) + b"".join(topics) + _NO_USER_DATA


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
