"""The topics that a group reads, and how many partitions they have: what a change of either means to a member.

A member that reads by a pattern joins again when other topics match. The leader of a generation joins again when a
topic that it assigned appears, disappears or gets more partitions: then all members join, and it assigns them again.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from heirlog.cli.names import matching
from heirlog.client import assignment
from heirlog.protocol.consumer_protocol import subscribed_topics

if TYPE_CHECKING:
    from heirlog.blocking import Client


class GroupTopics:
    """names: of topics that need not exist yet. pattern: all topics that it matches as a whole, instead of `names`."""

    def __init__(self, client: Client, names: Sequence[str], pattern: str | None, max_age_ms: int) -> None:
        self._client = client
        self._pattern = pattern
        self._max_age_s = max_age_ms / 1000
        self._assigned: dict[str, int | None] | None = None
        """Of all topics of the group: how many partitions they had when this member assigned them (None: there was no
        such topic). None: another member assigns.
        """
        self._next_look_s = 0.0
        self.names = list(names)
        if pattern is not None:
            self.names = self._matching(pattern)

    def joins(self) -> None:
        """A generation ends: who assigns in the next one is not known yet."""
        self._assigned = None
        self._look_later()

    def assign(self, strategy: str, members: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """As the leader of a generation."""
        topics = frozenset[str]().union(*(subscribed_topics(data) or () for data in members.values()))
        partitions = self.partitions(topics)
        self._assigned = {name: partitions.get(name) for name in topics}
        return assignment.assign(strategy, members, partitions)

    def partitions(self, topics: Iterable[str]) -> dict[str, int]:
        """How many each of these topics has; those that do not exist are left out."""
        wanted = sorted(topics)
        described = self._client.metadata(wanted).topics if wanted else []
        return {topic.name: len(topic.partitions) for topic in described if topic.name and not topic.error_code}

    def have_changed(self) -> bool:
        """Whether the member should join again; looked up when the last look is old enough."""
        if time.monotonic() < self._next_look_s:
            return False
        self._look_later()
        if self._pattern is not None and (names := self._matching(self._pattern)) != self.names:
            self.names = names
            return True
        if self._assigned is None:
            return False
        found = self.partitions(self._assigned)
        return any(found.get(name) != count for name, count in self._assigned.items())

    def missing_of(self, topics: Iterable[str]) -> list[str]:
        wanted = list(topics)
        found = self.partitions(wanted)
        return [name for name in wanted if name not in found]

    def _matching(self, pattern: str) -> list[str]:
        return matching(self._client.topic_names(), pattern)

    def _look_later(self) -> None:
        self._next_look_s = time.monotonic() + self._max_age_s
