"""What a share group consists of, in addition to what it has in common with consumer groups (`consumer/values.py`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

from heirlog.protocol.types import Uuid


class ShareGroupPhase(Enum):
    """The values are the names in ListGroups and ShareGroupDescribe."""

    EMPTY = "Empty"
    STABLE = "Stable"
    DEAD = "Dead"


@dataclass(frozen=True, slots=True)
class ShareSubscriber:
    """What a member says of itself."""

    member_id: str
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()


class NamedPartitions(NamedTuple):
    """Partitions of a topic, whose name is stored too: the topic may be deleted when it is needed."""

    name: str
    partitions: frozenset[int]


Topics: TypeAlias = Mapping[Uuid, NamedPartitions]
NO_TOPICS: Final[Topics] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class StateTopics:
    """Where the group's state of its partitions stands (`initialization.py`)."""

    initializing: Topics = field(default_factory=lambda: NO_TOPICS)
    initialized: Topics = field(default_factory=lambda: NO_TOPICS)
    deleting: Mapping[Uuid, str] = field(default_factory=dict)
    """Names of the topics whose state is being deleted."""

    @property
    def is_empty(self) -> bool:
        return not (self.initializing or self.initialized or self.deleting)


def with_partitions(topics: Topics, more: Topics) -> Topics:
    after = dict(topics)
    for topic_id, (name, partitions) in more.items():
        before = after.get(topic_id)
        after[topic_id] = NamedPartitions(name, partitions if before is None else partitions | before.partitions)
    return after


def without_partitions(topics: Topics, fewer: Topics) -> Topics:
    after = dict(topics)
    for topic_id, (_, partitions) in fewer.items():
        before = after.pop(topic_id, None)
        if before is not None and before.partitions - partitions:
            after[topic_id] = NamedPartitions(before.name, before.partitions - partitions)
    return after
