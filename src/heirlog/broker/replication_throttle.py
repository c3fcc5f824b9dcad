"""Replication throttles: replicas that catch up do not take the network from those that are in sync (KIP-73).

    leader.replication.throttled.rate      bytes per second that this broker sends to listed replicas
    follower.replication.throttled.rate    bytes per second that this broker fetches for listed replicas
    leader. and follower.replication.throttled.replicas    of a topic: `partition:broker,...`, or `*` for all; a
                                           partition is listed for this broker by its own id

Only a replica *outside the ISR* is ever held back: one in the ISR would otherwise leave it. But all bytes of listed
partitions count. Above the rate, the leader answers a fetch without the records of that partition, and the follower
leaves the partition out of its requests for a while. Nothing else of the answer changes, so that the high watermark
and the log start move on.

The rate is measured over `replication.quota.window.num` windows, at least one of them. Source: KIP-73.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from heirlog.broker.partition import Partition
from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.configs import server_value
from heirlog.metadata.image import TOPIC_RESOURCE, Image
from heirlog.metadata.journal import ImageJournal
from heirlog.protocol.types import BrokerId
from heirlog.rates import WindowedRate

LEADER: Final = ("leader.replication.throttled.rate", "leader.replication.throttled.replicas")
FOLLOWER: Final = ("follower.replication.throttled.rate", "follower.replication.throttled.replicas")
UNLIMITED: Final = 2**63 - 1
EVERY: Final = "*"


class ReplicationThrottle:
    """Of one side: what this broker sends as a leader, or fetches as a follower."""

    def __init__(self, configs: tuple[str, str], static: StaticConfig, now_ms: Callable[[], int]) -> None:
        """configs: `LEADER` or `FOLLOWER`."""
        self._rate_config, self._replicas_config = configs
        self._static = static
        self._now_ms = now_ms
        self._window_ms = static.int("replication.quota.window.size.seconds") * 1000
        self._rate = WindowedRate(static.int("replication.quota.window.num"), self._window_ms, is_stretched=False)
        self._limit = UNLIMITED
        self._listed: dict[str, frozenset[int] | None] = {}
        """Partitions by topic; None: all of them. Empty without a limit, so that nothing is looked up."""
        self.is_in_use = False
        """False: nothing is counted, and nothing is held back. An attribute, for the sake of each fetch."""

    def on_image(self, image: Image, changed: ImageJournal | None) -> None:
        """changed: None if anything may differ."""
        if changed is not None and not any(
            name in (self._rate_config, self._replicas_config) for _, _, name in changed.configs
        ):
            return
        self._limit = server_value(image, self._static, self._rate_config)
        self._listed = {} if self._limit == UNLIMITED else self._listed_in(image)
        self.is_in_use = bool(self._listed)

    def _listed_in(self, image: Image) -> dict[str, frozenset[int] | None]:
        found: dict[str, frozenset[int] | None] = {}
        for (kind, topic), values in image.configs.items():
            text = values.get(self._replicas_config) if kind == TOPIC_RESOURCE else None
            if text is not None:
                found[topic] = None if text.strip() == EVERY else _partitions_of(text, self._static.node_id)
        return found

    def count(self, partition: Partition, size: int) -> None:
        """These bytes of records were sent, or fetched."""
        if self.is_in_use and self._is_listed(partition):
            self._rate.add(size, self._now_ms())

    def holds_back(self, partition: Partition, replica: BrokerId, in_sync: Collection[BrokerId]) -> bool:
        """Whether the replica gets no records of the partition now. in_sync: the members of its ISR."""
        return self.is_in_use and self._is_listed(partition) and replica not in in_sync and self._is_exceeded

    @property
    def pause_ms(self) -> int:
        """After which time to look again: no longer than a window, since the rate may be changed meanwhile."""
        now_ms = self._now_ms()
        return max(1, min(self._window_ms, self._rate.throttle_ms(max(self._limit, 1), now_ms)))

    @property
    def _is_exceeded(self) -> bool:
        return self._rate.per_second(self._now_ms()) > self._limit

    def _is_listed(self, partition: Partition) -> bool:
        if partition.topic not in self._listed:
            return False
        listed = self._listed[partition.topic]
        return listed is None or partition.index in listed


def _partitions_of(text: str, broker: int) -> frozenset[int]:
    pairs = (entry.strip().partition(":") for entry in text.split(","))
    # a metadata log that others wrote may hold anything
    return frozenset(
        int(partition) for partition, _, replica in pairs if partition.isdecimal() and replica == str(broker)
    )
