"""Index of the partitions that a broker leads, or whose ISR or ELR it is in: one bit per partition, by broker and
topic.

Fencing a broker must not look at partitions that do not concern the broker. So every image has three indexes by broker:
the partitions that it leads, and those with the broker in the ISR or in the ELR. An `int` used as a bit set costs one
bit per entry, is ordered (so no hash order can get into records), and is immutable.

Only `Image.set_partition` writes here. In Kafka the code of each record type updated the index on its own, and one of
them did not, which made a later registration fail.
"""

from __future__ import annotations

from collections.abc import Iterator

from heirlog.metadata.state import Ids
from heirlog.protocol.types import BrokerId, PartitionKey, Uuid


class BrokerPartitions:
    """One such index. Equal if the entries are the same."""

    __slots__ = ("_by_broker",)

    def __init__(self) -> None:
        self._by_broker: dict[BrokerId, dict[Uuid, int]] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BrokerPartitions) and self._by_broker == other._by_broker

    __hash__ = None  # type: ignore[assignment]  # mutable

    def copy(self) -> BrokerPartitions:
        other = BrokerPartitions()
        other._by_broker = {broker: dict(topics) for broker, topics in self._by_broker.items()}
        return other

    def move(self, topic_id: Uuid, partition: int, before: Ids, after: Ids) -> None:
        """The partition's brokers in this index were `before` and are now `after`."""
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
            # remove empty entries, so that the index equals one that was built from scratch
            del self._by_broker[broker]

    def any(self, broker: BrokerId) -> bool:
        return broker in self._by_broker

    def count(self, broker: BrokerId) -> int:
        return sum(mask.bit_count() for mask in self._by_broker.get(broker, {}).values())

    def of(self, broker: BrokerId) -> list[PartitionKey]:
        """The broker's partitions, by topic id, then partition. A copy: records may be applied while reading it."""
        topics = self._by_broker.get(broker, {})
        return [(topic_id, partition) for topic_id in sorted(topics) for partition in _ones(topics[topic_id])]


def _ones(mask: int) -> Iterator[int]:
    """Positions of the one bits, ascending.

    Uses the text form: clearing the lowest bit would copy the whole integer for each entry."""
    digits = f"{mask:b}"[::-1]
    position = digits.find("1")
    while position >= 0:
        yield position
        position = digits.find("1", position + 1)
