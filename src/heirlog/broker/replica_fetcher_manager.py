"""All fetchers of this broker, and which fetcher copies which partition.

Up to `num.replica.fetchers` fetchers copy from a leader; a partition's topic id and index choose its fetcher.
`replica_fetcher.py` describes one fetcher. A fetcher without partitions and without requests in flight is removed.

During controlled shutdown a follower outside the ISR stops fetching: the controller removed it, and its fetches must
not bring it back into the ISR.

If one change of the metadata gives many partitions leaders that are alone in their ISR, thousands more are likely to
follow: the controller recovers partitions a thousand at a time. Nothing waits for the followers of such a leader, and
their fetches cost a broker as much as taking over the leadership of partitions. So these followers begin once no
further change of this kind has come for a moment. A follower in the ISR begins at once, because acks=all waits for it.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Final
from zlib import crc32

from heirlog.broker.partition import Partition, ReplicaRole
from heirlog.broker.replica_fetcher import ReplicaFetcher, ReplicaFetcherPorts
from heirlog.env import Cancel
from heirlog.metadata.survey import Survey, in_groups
from heirlog.protocol.types import NO_LEADER, BrokerId, PartitionKey

MANY_ELECTIONS: Final = 100
"""Partitions of one change whose followers wait for further elections."""
MORE_ELECTIONS_MS: Final = 200
"""How long they wait after the last such change."""
MORE_ELECTIONS_MAX_MS: Final = 1000
"""How long they wait after the first one."""


class ReplicaFetcherManager:
    def __init__(self, ports: ReplicaFetcherPorts) -> None:
        self._ports = ports
        self._to_start: dict[PartitionKey, Partition] = {}
        """Their copies start with the next `wake_up`, unless they wait for further elections."""
        self._waiting: dict[PartitionKey, Partition] = {}
        """Their copies start once no further elections follow."""
        self._waiting_since_ms = 0
        self._cancel_wait: Cancel | None = None
        self._fetchers: dict[tuple[BrokerId, int], ReplicaFetcher] = {}
        self._fetcher_of: dict[PartitionKey, ReplicaFetcher] = {}
        self._shutting_down = False

    def follow(self, partition: Partition, restart: bool) -> None:
        """Copy the partition from its leader, from the next `wake_up` on.

        Without `restart` (same leader epoch) a running copy continues.
        """
        if self._must_stop(partition):
            self.remove(partition)
            return
        if not restart:
            return
        self.remove(partition)
        if partition.leader != NO_LEADER:
            self._to_start[partition.key] = partition

    def _start(self, partition: Partition) -> None:
        number = (crc32(partition.topic_id) + partition.index) % self._ports.settings.channels
        fetcher = self._fetchers.get((partition.leader, number))
        if fetcher is None:
            fetcher = ReplicaFetcher(self._ports, partition.leader, f"replica-fetch-{number}")
            self._fetchers[(partition.leader, number)] = fetcher
        try:
            fetcher.follow(partition)
        except OSError as error:
            self._ports.storage_failed(partition, error)
            return
        self._fetcher_of[partition.key] = fetcher

    def remove(self, partition: Partition) -> None:
        self._to_start.pop(partition.key, None)
        self._waiting.pop(partition.key, None)
        fetcher = self._fetcher_of.pop(partition.key, None)
        if fetcher is not None:
            self._ports.discarded_records.forget(partition)
            fetcher.unfollow(partition.key)

    def wake_up(self, more_elections_may_follow: bool = False) -> None:
        """Start the copies of a change, and wake idle fetchers: they may have got partitions."""
        if more_elections_may_follow and len(self._to_start) >= MANY_ELECTIONS:
            self._wait_for_more_elections()
        for partition in list(self._to_start.values()):
            # a disk that fails takes other partitions out while they start
            if self._to_start.pop(partition.key, None) is not None:
                self._start(partition)
        for key in [key for key, fetcher in self._fetchers.items() if fetcher.is_unused]:
            del self._fetchers[key]
        for fetcher in list(self._fetchers.values()):
            fetcher.wake_up()

    def _wait_for_more_elections(self) -> None:
        alone = {key: each for key, each in self._to_start.items() if each.image_isr == (each.leader,)}
        if len(alone) < MANY_ELECTIONS:
            return
        now_ms = self._ports.env.now_ms()
        if not self._waiting:
            self._waiting_since_ms = now_ms
        self._waiting |= alone
        self._to_start = {key: each for key, each in self._to_start.items() if key not in alone}
        if self._cancel_wait is not None:
            self._cancel_wait()
        ends_ms = min(now_ms + MORE_ELECTIONS_MS, self._waiting_since_ms + MORE_ELECTIONS_MAX_MS)
        self._cancel_wait = self._ports.env.call_later(max(0, ends_ms - now_ms), self._start_waiting)

    def _start_waiting(self) -> None:
        self._cancel_wait = None
        self._to_start, self._waiting = self._waiting, {}
        self.wake_up()

    def start_controlled_shutdown(self, partitions: list[Partition]) -> None:
        self._shutting_down = True
        for partition in partitions:
            if partition.role is ReplicaRole.FOLLOWER and self._must_stop(partition):
                self.remove(partition)

    def _must_stop(self, partition: Partition) -> bool:
        return self._shutting_down and self._ports.registered_brokers.broker_id not in partition.image_isr

    @property
    def fetched_partitions(self) -> Set[PartitionKey]:
        """(topic id, index) of the partitions that are being copied or wait for further elections, for checks."""
        return self._fetcher_of.keys() | self._waiting.keys()

    def lags(self) -> Survey[tuple[int, int]]:
        """The largest lag behind a leader's high watermark, and how many partitions had an error instead of records.

        An error counts until the next success, also while the partition is tried again: a count of those that back off
        would be 0 in between. A partition that waits for the replication throttle has not failed.
        """
        largest = failed = 0
        for fetcher in list(self._fetchers.values()):
            for group in in_groups(fetcher.followed.values()):
                largest = max(largest, *(followed.lag for followed in group))
                failed += sum(not followed.back_off.is_reset for followed in group)
                yield
        return largest, failed
