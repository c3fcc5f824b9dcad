"""What a consumer group consists of (KIP-848): values that never change, so versions of a group can share them.

A *target* is what a member shall have in the end; what it has now, and what it must give up first, is its current
assignment. An assignment names topics by id and never lists a topic without partitions.

Source: KIP-848; the numbers are those of the records.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

from heirlog.protocol.types import Uuid

Assignment: TypeAlias = Mapping[Uuid, frozenset[int]]
"""Partitions by topic."""
NO_PARTITIONS: Final[Assignment] = MappingProxyType({})

JOINING_EPOCH = 0
LEAVING_EPOCH = -1
STATIC_LEAVING_EPOCH = -2
"""A static member leaves for a while: its partitions wait for it until its session ends."""
UNKNOWN_EPOCH = -1


class ConsumerGroupPhase(Enum):
    """The values are the names in ListGroups and ConsumerGroupDescribe."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


class MemberState(IntEnum):
    """The values are those of the record of a member's current assignment."""

    STABLE = 0
    """At its epoch with its complete assignment."""
    UNREVOKED_PARTITIONS = 1
    """It must give up partitions before it reaches the epoch of the target."""
    UNRELEASED_PARTITIONS = 2
    """At the epoch of the target; partitions that it shall have are still with other members."""
    UNKNOWN = 127
    """A later version of the coordinator wrote another state."""


class ClassicProtocols(NamedTuple):
    """What a member says that uses the classic protocol in a consumer group."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]
    """Names in the order of its preference, with its subscription in each."""


@dataclass(frozen=True, slots=True)
class ConsumerGroupMember:
    """What a member says of itself."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()
    regex: str | None = None
    """Regular expression of topics, in addition to `topics`."""
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = None
    classic: ClassicProtocols | None = None
    """None: the member uses the consumer protocol."""


@dataclass(frozen=True, slots=True)
class MemberAssignment:
    """What a member has."""

    epoch: int = JOINING_EPOCH
    previous_epoch: int = UNKNOWN_EPOCH
    """Before the last change of this value, even if the epoch stayed the same."""
    state: MemberState = MemberState.STABLE
    assigned: Assignment = field(default_factory=lambda: NO_PARTITIONS)
    pending: Assignment = field(default_factory=lambda: NO_PARTITIONS)
    """Partitions that the member must give up."""


@dataclass(frozen=True, slots=True)
class ResolvedRegex:
    """The topics that a regular expression matched."""

    topics: frozenset[str]
    version: int
    """Metadata offset of the image in which they were looked up."""
    timestamp_ms: int


# -- arithmetic of assignments ----------------------------------------------------------------------------------------


def assignment_of(parts: Iterable[tuple[Uuid, Iterable[int]]]) -> Assignment:
    found: dict[Uuid, frozenset[int]] = {}
    for topic_id, partitions in parts:
        numbers = frozenset(partitions)
        if numbers:
            found[topic_id] = found.get(topic_id, frozenset()) | numbers
    return found


def stored_assignment(topics: Iterable[Any]) -> Assignment:
    """topics: of a stored record, each with a topic id and partitions."""
    return assignment_of((Uuid(bytes(topic.topic_id)), topic.partitions) for topic in topics)


def minus(left: Assignment, right: Assignment) -> Assignment:
    """What only `left` has."""
    return assignment_of((topic_id, numbers - right.get(topic_id, frozenset())) for topic_id, numbers in left.items())


def common(left: Assignment, right: Assignment) -> Assignment:
    return assignment_of(
        (topic_id, numbers & right[topic_id]) for topic_id, numbers in left.items() if topic_id in right
    )


def plus(left: Assignment, right: Assignment) -> Assignment:
    return assignment_of((*left.items(), *right.items()))


def overlaps(left: Assignment, right: Assignment) -> bool:
    return any(numbers & right.get(topic_id, frozenset()) for topic_id, numbers in left.items())


def contains(outer: Assignment, inner: Assignment) -> bool:
    return all(numbers <= outer.get(topic_id, frozenset()) for topic_id, numbers in inner.items())


def size_of(assignment: Assignment) -> int:
    return sum(map(len, assignment.values()))
