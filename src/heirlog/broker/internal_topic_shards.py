"""Which keys of an internal topic this broker coordinates: those of the partitions that it leads.

A key belongs to the partition that it hashes to, and the leader of that partition is its coordinator. So the image
alone says which broker coordinates a key. A shard exists from the image that makes this broker the leader to the one
that changes that.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from operator import mul
from struct import unpack
from typing import Generic, Protocol, TypeVar

from heirlog.broker.partition import Partition
from heirlog.broker.replica_manager import ReplicaManager
from heirlog.metadata.image import Image
from heirlog.metadata.journal import ImageJournal

REMEMBERED_KEY_MAX = 256
"""Characters. Clients choose the keys, and one may have 32 kB."""
_HASHED_AT_A_TIME = 256
_POWERS = [31**power & 0xFFFFFFFF for power in range(_HASHED_AT_A_TIME + 1)]


class Shard(Protocol):
    """The state of one partition in one leader epoch."""

    @property
    def leads(self) -> bool: ...

    def load(self) -> None: ...

    def close(self) -> None: ...


ShardT = TypeVar("ShardT", bound=Shard)


def partition_for(key: str, partition_count: int) -> int:
    """Kafka's partition for the key: Java's hash of it (over UTF-16 units, 32 bits), without its sign."""
    if len(key) > REMEMBERED_KEY_MAX:
        return _hashed(key, partition_count)
    return _remembered(key, partition_count)


def _hashed(key: str, partition_count: int) -> int:
    encoded = key.encode("utf-16-be", "surrogatepass")
    units = unpack(f">{len(encoded) // 2}H", encoded)
    code = 0
    # many units at a time: a request may name very many keys, or long ones
    for start in range(0, len(units), _HASHED_AT_A_TIME):
        part = units[start : start + _HASHED_AT_A_TIME]
        code = (code * _POWERS[len(part)] + sum(map(mul, reversed(part), _POWERS))) & 0xFFFFFFFF
    if code >= 1 << 31:
        code = (1 << 32) - code
    # the one number whose absolute value does not fit into 32 bits
    return 0 if code == 1 << 31 else code % partition_count


_remembered = lru_cache(maxsize=256)(_hashed)


class InternalTopicShards(Generic[ShardT]):
    def __init__(self, topic: str, replicas: ReplicaManager, new_shard: Callable[[Partition], ShardT]) -> None:
        self._topic = topic
        self._replicas = replicas
        self._new_shard = new_shard
        self._partition_count: int | None = None
        """Of the topic; None while it does not exist."""
        self._shards: dict[int, ShardT] = {}
        self._stopped = False

    def on_image(self, image: Image, changed: ImageJournal | None) -> None:
        """Called after the partitions have followed the image. `changed` is None if anything may differ."""
        if self._stopped:
            return
        if changed is not None:
            topic_id = image.topic_ids.get(self._topic)
            is_deleted = any(
                before is not None and before.name == self._topic and changed_id not in image.topics
                for changed_id, before in changed.topics.items()
            )
            if not is_deleted and all(changed_id != topic_id for changed_id, _ in changed.partitions):
                return
        topic = image.topic_named(self._topic)
        self._partition_count = None if topic is None else len(image.partitions[topic.id])
        self._follow()

    def _follow(self) -> None:
        """Keep one shard per partition that we lead, created for its current leader epoch."""
        for index in [index for index, shard in self._shards.items() if not shard.leads]:
            self._shards.pop(index).close()
        for index, partition in sorted(self._replicas.partitions_named(self._topic).items()):
            if index not in self._shards:
                shard = self._new_shard(partition)
                if shard.leads:
                    self._shards[index] = shard
                    shard.load()

    def stop(self) -> None:
        """The broker stops serving."""
        self._stopped = True
        shards, self._shards = self._shards, {}
        for shard in shards.values():
            shard.close()

    def partition_of(self, key: str) -> int | None:
        """The partition of the topic for this key; None while the topic does not exist."""
        return None if self._partition_count is None else partition_for(key, self._partition_count)

    def shard_of(self, key: str) -> ShardT | None:
        """The shard of this key, loaded or not; None if another broker may have it."""
        index = self.partition_of(key)
        return None if index is None else self.shard_at(index)

    def shard_at(self, index: int) -> ShardT | None:
        """The shard of a partition, loaded or not."""
        shard = self._shards.get(index)
        if shard is not None and not shard.leads:
            shard.close()
            return None
        return shard

    def shards(self) -> list[ShardT]:
        """All shards of this broker, loaded or not."""
        return [shard for _, shard in sorted(self._shards.items()) if shard.leads]
