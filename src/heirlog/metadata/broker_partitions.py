"""Which partitions a broker has a seat in: one bit per partition, by broker and topic.

Fencing a broker must not look at partitions that the broker has no part in, so every image keeps, per broker, where it
leads, where it is in the ISR and where in the ELR. An `int` used as a bit set costs one bit per seat, is ordered (so no
hash order can leak into records), and is immutable.

Only `Image.set_partition` writes here. In Kafka each record type kept the index by itself and one of them forgot, which
made a later registration fail.
"""

from __future__ import annotations

from collections.abc import Iterator

from heirlog.metadata.state import Ids
from heirlog.protocol.types import BrokerId, PartitionKey, Uuid


class BrokerPartitions:
    """One kind of seat. Equal if they hold the same seats."""

    __slots__ = ("_by_broker",)

    def __init__(self) -> None:
        self._by_broker: dict[BrokerId, dict[Uuid, int]] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BrokerPartitions) and self._by_broker == other._by_broker

    __hash__ = None  # type: ignore[assignment]  # mutable

    def move(self, topic_id: Uuid, partition: int, before: Ids, after: Ids) -> None:
        """The holders of this kind of seat in the partition were `before` and are now `after`."""
        if before == after:
            return
        for broker in before:
            if broker not in after:
                self._remove(broker, topic_id, partition)
        for broker in after:
            if broker not in before:
                topics = self._by_broker.setdefault(broker, {})
                topics[topic_id] = topics.get(topic_id, 0) | (1 << partition)

    def _remove(self, broker: BrokerId, topic_id: Uuid, partition: int) -> None:
        topics = self._by_broker[broker]
        left = topics[topic_id] & ~(1 << partition)
        if left:
            topics[topic_id] = left
            return
        del topics[topic_id]
        if not topics:
            # equality with an index built from scratch must not see brokers that hold nothing any more
            del self._by_broker[broker]

    def any(self, broker: BrokerId) -> bool:
        return broker in self._by_broker

    def count(self, broker: BrokerId) -> int:
        return sum(mask.bit_count() for mask in self._by_broker.get(broker, {}).values())

    def of(self, broker: BrokerId) -> list[PartitionKey]:
        """The broker's seats, by topic id, then partition. A copy: records may be applied while reading it."""
        topics = self._by_broker.get(broker, {})
        return [(topic_id, partition) for topic_id in sorted(topics) for partition in _ones(topics[topic_id])]


def _ones(mask: int) -> Iterator[int]:
    """Positions of the one bits, ascending. Through the text form: clearing the lowest bit would copy the whole
    integer per seat."""
    digits = f"{mask:b}"[::-1]
    position = digits.find("1")
    while position >= 0:
        yield position
        position = digits.find("1", position + 1)
