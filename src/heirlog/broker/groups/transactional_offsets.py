"""Offsets that producers commit within their transactions (KIP-98, KIP-447).

    written --marker COMMIT--> the group's committed offset, unless a later record has replaced it
        |
        +-----marker ABORT---> gone

Until the marker the partition is *unstable*: what the group will have committed is not decided. A consumer that asks
for stable offsets only gets UNSTABLE_OFFSET_COMMIT and asks again; otherwise it would read once more what an open
transaction has read.

What counts is the order of the records, not of the markers: an offset that was written before another one of the same
partition never replaces it. A plain commit, and the deletion of an offset, are such records, too.

Everything here is below the high watermark, live and while the log is loaded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from heirlog.broker.groups.offsets import OffsetAndMetadata, TopicPartition


def is_newest(is_replaced: bool) -> bool:
    """Guard 32: an offset of a transaction does not replace one that was written later.

    Without it the commit of an earlier transaction takes a group back to what it has read already.
    """
    return not is_replaced


class GroupPartition(NamedTuple):
    group: str
    partition: TopicPartition


class _Written(NamedTuple):
    number: int
    """In the order of the records."""
    value: OffsetAndMetadata
    is_replaced: bool = False
    """By a later record."""


class TransactionalOffsets:
    """Those of one partition of `__consumer_offsets`."""

    def __init__(self) -> None:
        self._by_producer: dict[int, dict[GroupPartition, _Written]] = {}
        self._producers: dict[str, dict[TopicPartition, set[int]]] = {}
        """Producers with an open transaction that has written the offset."""
        self._next_number = 0

    def written(self, producer_id: int, group: str, partition: TopicPartition, value: OffsetAndMetadata) -> None:
        """A transaction has written an offset."""
        self._next_number += 1
        key = GroupPartition(group, partition)
        self._by_producer.setdefault(producer_id, {})[key] = _Written(self._next_number, value)
        self._producers.setdefault(group, {}).setdefault(partition, set()).add(producer_id)

    def replaced(self, group: str, partition: TopicPartition) -> None:
        """A record without a transaction was written: open transactions do not change this offset any more."""
        self._replace(GroupPartition(group, partition), self._next_number)

    def forgotten(self, group: str, partition: TopicPartition) -> None:
        """The offset was deleted, whatever open transactions decide."""
        producers = self._producers.get(group, {}).pop(partition, set())
        for producer_id in producers:
            self._by_producer[producer_id].pop(GroupPartition(group, partition), None)
        if not self._producers.get(group, True):
            del self._producers[group]

    def _replace(self, key: GroupPartition, upto_number: int) -> None:
        for producer_id in self._producers.get(key.group, {}).get(key.partition, ()):
            written = self._by_producer[producer_id][key]
            if written.number <= upto_number:
                self._by_producer[producer_id][key] = written._replace(is_replaced=True)

    def ended(self, producer_id: int, *, commit: bool) -> Iterator[tuple[GroupPartition, OffsetAndMetadata]]:
        """The transaction of a producer has ended: the offsets that are committed by that."""
        offsets = self._by_producer.pop(producer_id, {})
        for key in offsets:
            partitions = self._producers[key.group]
            partitions[key.partition].discard(producer_id)
            if not partitions[key.partition]:
                del partitions[key.partition]
            if not partitions:
                del self._producers[key.group]
        if not commit:
            return
        for key, written in offsets.items():
            if is_newest(written.is_replaced):
                self._replace(key, written.number)
                yield key, written.value

    def groups(self) -> list[str]:
        """Groups for which an open transaction has written an offset. Some of them have nothing else."""
        return list(self._producers)

    def is_unstable(self, group: str, partition: TopicPartition) -> bool:
        """Whether an open transaction has written an offset of this partition."""
        return partition in self._producers.get(group, ())

    def unstable(self, group: str) -> list[TopicPartition]:
        """Partitions of the group for which that is so."""
        return list(self._producers.get(group, ()))
