"""What a sequence of requests is about: a few topics, groups and producers of its own, and chance."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any, TypeVar

from answers.world import NO_ID, UNKNOWN_ID, Symbol

T = TypeVar("T")
CLIENTS = 4
NODE_ID = 0


@dataclass
class Scene:
    rng: random.Random
    name: str
    """Begins the names of its topics and groups."""
    transaction_version: int = 2
    """The finalised level of the feature."""
    generations: dict[str, int] = field(default_factory=dict)
    """Of its groups, as last answered."""
    sessions: dict[int, int] = field(default_factory=dict)
    """By client: the epoch of its next fetch."""
    producers: list[int] = field(default_factory=list)
    epochs: dict[str, int] = field(default_factory=dict)
    """Of the producers with a transactional id, as last answered."""
    sequences: dict[tuple[Any, ...], int] = field(default_factory=dict)
    """By producer, topic and partition: the next sequence number."""
    member_epochs: dict[tuple[str, str], int] = field(default_factory=dict)
    """By group and member id, as last answered."""
    owned: dict[tuple[str, str], dict[str, tuple[int, ...]]] = field(default_factory=dict)
    """By group and member id: the partitions of each topic, as last answered."""
    share_sessions: dict[tuple[str, int], int] = field(default_factory=dict)
    """By group and client: the epoch of its next ShareFetch."""
    begun: set[tuple[str, str]] = field(default_factory=set)
    """Share groups and the topics of which they have a state."""
    shared: set[tuple[str, str, int]] = field(default_factory=set)
    """Partitions that a share group has fetched from."""
    states_read: set[tuple[str, str, int]] = field(default_factory=set)
    """Share partitions whose stored state a leader has read."""
    acquired: dict[tuple[str, int], list[tuple[str, int, int, int]]] = field(default_factory=dict)
    """By group and client: topic, partition, first and last offset of what it was given."""

    def happens(self, chance: float) -> bool:
        return self.rng.random() < chance

    def one(self, *choices: T) -> T:
        return self.rng.choice(choices)

    def some(self, make: Any, most: int = 3) -> list[Any]:
        return [make() for _ in range(self.rng.choice((1, 1, 1, 2, most)))]

    # -- names

    @property
    def topics(self) -> tuple[str, ...]:
        return tuple(f"{self.name}-{letter}" for letter in "abc")

    def topic(self) -> str:
        a, b, c = self.topics
        return self.rng.choice((a, a, a, a, b, b, c)) if self.happens(0.93) else self.one(f"{self.name}-none", "a+b")

    def new_topic(self) -> str:
        return self.one(self.topics[2], self.topics[2], f"{self.name}-d", f"{self.name}.e", f"{self.name}_e", "a+b")

    def topic_id(self, name: str | None = None) -> Symbol:
        return Symbol("topic_ids", name or self.topic(), self.one(NO_ID, UNKNOWN_ID))

    def known_id(self, name: str) -> Symbol:
        return Symbol("topic_ids", name, UNKNOWN_ID)

    def partition(self) -> int:
        return self.one(0, 0, 0, 0, 1, 1, 2, 3) if self.happens(0.95) else self.one(-1, 99)

    def group(self) -> str:
        return f"{self.name}-{self.one('g', 'g', 'g', 'h')}" if self.happens(0.95) else self.one("", f"{self.name}-x")

    def broker(self) -> int:
        return NODE_ID if self.happens(0.8) else self.one(1, -1, 99)

    def leader_epoch(self) -> int:
        return self.one(-1, -1, -1, 0, 0, 1, 7)

    def offset(self) -> int:
        return self.one(0, 0, 0, 1, 2, 3, 5, 10, -1, -2, 1000)
