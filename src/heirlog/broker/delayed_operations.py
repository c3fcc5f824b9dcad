"""Requests that wait for a partition, and the events that wake them.

    the high watermark moved   produce (acks=all), consumer fetches
    the log grew               follower fetches; once per turn of the event loop, so that one response carries the
                               records of several requests
    a follower fetched         DeleteRecords: its log start may have moved. Also when brokers register or are removed
    role or leader changed     all of them

Fetch sessions get the same events (`partition_listeners.py`), and also changes of the ISR, of the log start and of
brokers, which wake no request.
"""

from __future__ import annotations

from collections.abc import Iterable

from heirlog.broker.partition import Partition
from heirlog.broker.partition_listeners import PartitionEvent, PartitionListeners
from heirlog.broker.purgatory import Purgatory
from heirlog.env import Env
from heirlog.protocol.types import PartitionKey


class DelayedOperations:
    def __init__(self, env: Env) -> None:
        self._env = env
        self.produce: Purgatory[PartitionKey] = Purgatory(env)
        self.consumer_fetch: Purgatory[PartitionKey] = Purgatory(env)
        self.follower_fetch: Purgatory[PartitionKey] = Purgatory(env)
        self.delete_records: Purgatory[PartitionKey] = Purgatory(env)
        self.partition_listeners: PartitionListeners[PartitionKey] = PartitionListeners()
        self._grown: dict[PartitionKey, None] = {}

    def log_grew(self, partition: Partition, watermark_before: int) -> None:
        # a fetch that comes before the end of this turn has to look at it as well
        self.partition_listeners.mark(partition.key)
        if not self._grown:
            self._env.call_later(0, self._notify_of_appends)
        self._grown[partition.key] = None
        self.watermark_may_have_moved(partition, watermark_before)

    def _notify_of_appends(self) -> None:
        grown, self._grown = self._grown, {}
        for key in grown:
            self.follower_fetch.check_and_complete(key)
            self.partition_listeners.notify(key, PartitionEvent.LOG_APPENDED)

    def watermark_may_have_moved(self, partition: Partition, watermark_before: int) -> None:
        if partition.high_watermark != watermark_before:
            key = partition.key
            self.produce.check_and_complete(key)
            self.consumer_fetch.check_and_complete(key)
            self.partition_listeners.notify(key, PartitionEvent.HIGH_WATERMARK_MOVED)

    def watermarks_may_have_moved(self, moved: list[tuple[Partition, int]]) -> None:
        """moved: partitions, each with its high watermark before."""
        if len(moved) > 1:
            self.partition_listeners.mark_all(partition.key for partition, _ in moved)
        for partition, watermark_before in moved:
            self.watermark_may_have_moved(partition, watermark_before)

    def low_watermarks_may_have_moved(self, partitions: Iterable[Partition | None]) -> None:
        if not len(self.delete_records):
            return
        for partition in partitions:
            if partition is not None:
                self.delete_records.check_and_complete(partition.key)

    def leadership_changed(self, key: PartitionKey) -> None:
        """The partition's leader or role may have changed: every request that waits for it looks again."""
        self.produce.check_and_complete(key)
        self.consumer_fetch.check_and_complete(key)
        self.follower_fetch.check_and_complete(key)
        self.delete_records.check_and_complete(key)
        self.partition_listeners.notify(key, PartitionEvent.LEADERSHIP_CHANGED)
