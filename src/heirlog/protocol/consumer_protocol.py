"""What consumers of a group tell each other in JoinGroup and SyncGroup, in Kafka's formats.

    ConsumerProtocolSubscription   int16 version | topics | user data | 1: owned partitions | 2: int32 generation
                                   | 3: rack
    ConsumerProtocolAssignment     int16 version | partitions | user data | ...

    topics        int32 count, then int16-prefixed strings         user data    int32-prefixed bytes, -1: none
    partitions    int32 count, then topics, each with an int32 count and int32 partitions

A newer version starts like the older ones, so it is read as the newest that is known here. A client may send any bytes.
A subscription that cannot be parsed names no topics that are known; that is not an error of the group.

The user data of the strategy "sticky" are the partitions of the member's last assignment, and its int32 generation.

Source: Kafka's ConsumerProtocolSubscription.json and -Assignment.json; KIP-429 (owned partitions), KIP-792
(generation), KIP-54 and KIP-341 (user data of the sticky strategy).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from struct import Struct
from struct import error as StructError

CONSUMER = "consumer"
"""The protocol type of groups whose members use these formats."""
NO_GENERATION = -1
_VERSION = 0
_VERSION_WITH_OWNED = 1
_VERSION_WITH_GENERATION = 2
_VERSION_WITH_RACK = 3
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


@dataclass(frozen=True, slots=True)
class OwnedPartitions:
    """Partitions that a member has, and since which generation."""

    partitions: Mapping[str, Sequence[int]] = field(default_factory=dict)
    generation: int = NO_GENERATION
    """-1 from members that do not say."""


def subscription(
    topics: Iterable[str], *, owned: OwnedPartitions | None = None, user_data: bytes | None = None
) -> bytes:
    """owned: partitions that the member keeps while the group rebalances; None: it keeps none, and need not say so."""
    names = sorted(topics)
    version = _VERSION if owned is None else _VERSION_WITH_GENERATION
    data = _NO_USER_DATA if user_data is None else _COUNT.pack(len(user_data)) + user_data
    head = _HEAD.pack(version, len(names)) + b"".join(map(_string, names)) + data
    return head if owned is None else head + owned_data(owned)


def owned_data(owned: OwnedPartitions) -> bytes:
    """As in a subscription, and as the user data of the sticky strategy: both have the same form."""
    return _partitions(owned.partitions) + _COUNT.pack(owned.generation)


def owned_in_subscription(data: bytes) -> OwnedPartitions:
    """None of a subscription without them, or that cannot be parsed."""
    try:
        version, position = _user_data_at(data)
        (size,) = _COUNT.unpack_from(data, position)
        position += _COUNT.size + max(size, 0)
        if version < _VERSION_WITH_OWNED:
            return OwnedPartitions()
        partitions, position = _read_partitions(data, position)
        if version < _VERSION_WITH_GENERATION:
            return OwnedPartitions(partitions)
        return OwnedPartitions(partitions, _COUNT.unpack_from(data, position)[0])
    except (StructError, ValueError):
        return OwnedPartitions()


def owned_in_user_data(data: bytes) -> OwnedPartitions:
    """What the sticky strategy has there; none without it, or where it cannot be parsed."""
    try:
        _, position = _user_data_at(data)
        (size,) = _COUNT.unpack_from(data, position)
        if size <= 0:
            return OwnedPartitions()
        end = position + _COUNT.size + size
        partitions, position = _read_partitions(data, position + _COUNT.size)
        # the first version of it has no generation
        return OwnedPartitions(partitions, _COUNT.unpack_from(data, position)[0] if position < end else NO_GENERATION)
    except (StructError, ValueError):
        return OwnedPartitions()


def _user_data_at(subscription: bytes) -> tuple[int, int]:
    """The version, and the position of the user data. Raises StructError, ValueError."""
    version, count = _HEAD.unpack_from(subscription)
    position = _HEAD.size
    for _ in range(count):
        (size,) = _LENGTH.unpack_from(subscription, position)
        if size < 0:
            raise ValueError("the name of a topic has a negative length")
        position += _LENGTH.size + size
    return version, position


@dataclass(frozen=True, slots=True)
class SubscriptionOfMember:
    """What a coordinator reads in a subscription (KIP-848, online upgrade of a group)."""

    topics: frozenset[str]
    owned: dict[str, list[int]]
    """Partitions that the member has; none in version 0, whose members give up everything before they join."""
    rack_id: str | None


def read_subscription(data: bytes) -> SubscriptionOfMember:
    """Raises ValueError for bytes of another format."""
    topics = subscribed_topics(data)
    if topics is None:
        raise ValueError(f"{len(data)} bytes are not the subscription of a consumer")
    try:
        version, position = _user_data_at(data)
        position = _after_bytes(data, position)
        owned: dict[str, list[int]] = {}
        rack_id = None
        if version >= _VERSION_WITH_OWNED:
            owned, position = _read_partitions(data, position)
        if version >= _VERSION_WITH_RACK:
            (size,) = _LENGTH.unpack_from(data, position + _COUNT.size)
            start = position + _COUNT.size + _LENGTH.size
            rack_id = None if size < 0 else data[start : start + size].decode() or None
    except (StructError, UnicodeDecodeError) as error:
        raise ValueError(f"the subscription of {len(data)} bytes is cut off: {error}") from error
    return SubscriptionOfMember(topics, owned, rack_id)


def read_assignment(data: bytes) -> tuple[dict[str, list[int]], bytes]:
    """The partitions of each topic, and the data of a custom assignor. Raises ValueError for bytes of another format.

    Without any bytes there are no partitions.
    """
    if not data:
        return {}, b""
    try:
        partitions, position = _read_partitions(data, _LENGTH.size)
        end = _after_bytes(data, position)
    except (StructError, UnicodeDecodeError) as error:
        raise ValueError(f"the assignment of {len(data)} bytes is not one of a consumer: {error}") from error
    return partitions, data[position + _COUNT.size : end]


def version_of(data: bytes) -> int:
    """The version of a subscription or an assignment."""
    return int(_LENGTH.unpack_from(data)[0]) if len(data) >= _LENGTH.size else _VERSION


def _after_bytes(data: bytes, position: int) -> int:
    """The position behind nullable bytes. Raises StructError, ValueError."""
    (size,) = _COUNT.unpack_from(data, position)
    end = position + _COUNT.size + max(0, int(size))
    if end > len(data):
        raise ValueError("the data of the subscription or assignment ends early")
    return end


def assignment(partitions: Mapping[str, Sequence[int]], version: int = _VERSION) -> bytes:
    """partitions: of each topic. All versions have the same form."""
    return _LENGTH.pack(version) + _partitions(partitions) + _NO_USER_DATA


def assigned_partitions(data: bytes) -> dict[str, list[int]]:
    """The partitions of each topic; without any bytes there are none. Raises ValueError for bytes of another format."""
    if not data:
        return {}
    try:
        return _read_partitions(data, _LENGTH.size)[0]
    except StructError as error:
        raise ValueError(f"the assignment of {len(data)} bytes is not one of a consumer: {error}") from error


def _partitions(partitions: Mapping[str, Sequence[int]]) -> bytes:
    return _COUNT.pack(len(partitions)) + b"".join(
        _string(topic) + _COUNT.pack(len(numbers)) + b"".join(map(_COUNT.pack, numbers))
        for topic, numbers in sorted(partitions.items())
    )


def _read_partitions(data: bytes, position: int) -> tuple[dict[str, list[int]], int]:
    """The partitions of each topic, and the position behind them. Raises StructError, ValueError."""
    found: dict[str, list[int]] = {}
    (count,) = _COUNT.unpack_from(data, position)
    position += _COUNT.size
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
    return found, position


def _string(text: str) -> bytes:
    data = text.encode()
    return _LENGTH.pack(len(data)) + data
