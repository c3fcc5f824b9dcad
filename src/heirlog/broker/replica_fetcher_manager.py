"""All fetchers of this broker, and which fetcher copies which partition.

Up to `num.replica.fetchers` fetchers copy from a leader; a partition's topic id and index choose its fetcher.
`replica_fetcher.py` describes one fetcher. A fetcher without partitions and without requests in flight is removed.

During controlled shutdown a follower outside the ISR stops fetching: the controller removed it, and its fetches must
not bring it back into the ISR.
"""

from __future__ import annotations

from collections.abc import KeysView
from zlib import crc32

from heirlog.broker.partition import Partition, ReplicaRole
from heirlog.broker.replica_fetcher import ReplicaFetcher, ReplicaFetcherPorts
from heirlog.metadata.survey import Survey, in_groups
from heirlog.protocol.types import NO_LEADER, BrokerId, PartitionKey


class ReplicaFetcherManager:
    def __init__(self, ports: ReplicaFetcherPorts) -> None:
        self._ports = ports
        self._fetchers: dict[tuple[BrokerId, int], ReplicaFetcher] = {}
        self._fetcher_of: dict[PartitionKey, ReplicaFetcher] = {}
        self._shutting_down = False

    def follow(self, partition: Partition, restart: bool) -> None:
        """Copy the partition from its leader. Without `restart` (same leader epoch) a running copy continues."""
        if self._must_stop(partition):
            self.remove(partition)
            return
        if not restart:
            return
        self.remove(partition)
        if partition.leader == NO_LEADER:
            return
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
        fetcher = self._fetcher_of.pop(partition.key, None)
        if fetcher is not None:
            self._ports.discarded_records.forget(partition)
            fetcher.unfollow(partition.key)

    def wake_up(self) -> None:
        """Wake idle fetchers after a change: they may have got partitions."""
        for key in [key for key, fetcher in self._fetchers.items() if fetcher.is_unused]:
            del self._fetchers[key]
        for fetcher in list(self._fetchers.values()):
            fetcher.wake_up()

    def start_controlled_shutdown(self, partitions: list[Partition]) -> None:
        self._shutting_down = True
        for partition in partitions:
            if partition.role is ReplicaRole.FOLLOWER and self._must_stop(partition):
                self.remove(partition)

    def _must_stop(self, partition: Partition) -> bool:
        return self._shutting_down and self._ports.registered_brokers.broker_id not in partition.image_isr

    @property
    def fetched_partitions(self) -> KeysView[PartitionKey]:
        """(topic id, index) of the partitions that are being copied, for checks and metrics."""
        return self._fetcher_of.keys()

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
