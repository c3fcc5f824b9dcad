"""What a client knows of a cluster: who its brokers are, and who leads which partition.

Learned from Metadata answers, which may come from a broker that is behind. A leader with a lower epoch than the one
known is therefore not believed, unless the topic is another one by now (its id changed).

Source: KIP-320 (leader epochs in metadata), KIP-516 (topic ids).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from heirlog.protocol.errors import ErrorCode, KafkaError, error_code
from heirlog.protocol.messages import MetadataResponse
from heirlog.protocol.types import ZERO_UUID, Endpoint

NO_EPOCH = -1


class Leader(NamedTuple):
    endpoint: Endpoint
    epoch: int
    """-1 from brokers that do not say (before Kafka 2.1)."""


@dataclass(slots=True)
class KnownTopic:
    topic_id: bytes | None
    """None from brokers without topic ids (before Kafka 2.8)."""
    internal: bool
    partitions: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Leader (-1: none) and its epoch."""


class ClusterView:
    def __init__(self) -> None:
        self.brokers: dict[int, Endpoint] = {}
        self.controller_id = -1
        """The broker to ask for what only a controller does; with KRaft any of them."""
        self.topics: dict[str, KnownTopic] = {}

    def learn(self, response: MetadataResponse, *, of_all: bool = False) -> dict[str, ErrorCode]:
        """Returns the topics that the answer names with an error; of these nothing is known afterwards.

        of_all: the answer is about all topics, so what it does not name is not there.
        """
        if of_all:
            named = {topic.name for topic in response.topics}
            self.topics = {name: topic for name, topic in self.topics.items() if name in named}
        self.brokers = {broker.node_id: Endpoint(broker.host, broker.port) for broker in response.brokers}
        self.controller_id = response.controller_id
        refused: dict[str, ErrorCode] = {}
        for topic in response.topics:
            name = topic.name or ""
            if topic.error_code and not topic.partitions:
                refused[name] = error_code(topic.error_code)
                self.topics.pop(name, None)
            else:
                self._learn_topic(name, topic)
        return refused

    def _learn_topic(self, name: str, topic: MetadataResponse.MetadataResponseTopic) -> None:
        found = KnownTopic(None if topic.topic_id == ZERO_UUID else topic.topic_id, topic.is_internal)
        before = self.topics.get(name)
        known = before.partitions if before is not None and before.topic_id == found.topic_id else {}
        for partition in topic.partitions:
            index = partition.partition_index
            newer = (partition.leader_id, partition.leader_epoch)
            older = known.get(index, newer)
            found.partitions[index] = older if NO_EPOCH < newer[1] < older[1] else newer
        self.topics[name] = found

    def leader(self, topic: str, partition: int) -> Leader:
        """Raises KafkaError, with a code that asks for newer metadata, where none is known."""
        known = self.topics.get(topic)
        if known is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"no metadata of topic {topic}")
        if partition not in known.partitions:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {topic} has no partition {partition}")
        broker_id, epoch = known.partitions[partition]
        if broker_id not in self.brokers:
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{topic}-{partition} has no leader")
        return Leader(self.brokers[broker_id], epoch)
