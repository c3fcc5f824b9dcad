"""Topics for one test each, filled and read by librdkafka: a client that shares no code with what is tested."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from heirlog.testing.cluster import Cluster

TIMEOUT_S = 60.0
_numbers = itertools.count()


class Topics:
    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.servers = cluster.bootstrap_servers
        self._admin = AdminClient({"bootstrap.servers": self.servers})

    def create(self, partitions: int = 1, name: str = "", replicas: int = -1, **config: str) -> str:
        """A new topic, by a name that no other test has."""
        topic = name or f"spark-{next(_numbers)}"
        new = NewTopic(
            topic, partitions, replicas, config={key.replace("_", "."): value for key, value in config.items()}
        )
        self._admin.create_topics([new])[topic].result(TIMEOUT_S)
        return topic

    def delete(self, topic: str) -> None:
        self._admin.delete_topics([topic])[topic].result(TIMEOUT_S)

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        wanted = [TopicPartition(topic, partition, before)]
        for future in self._admin.delete_records(wanted).values():
            future.result(TIMEOUT_S)

    def produce(self, topic: str, records: Iterable[dict[str, Any]], **config: Any) -> None:
        """records: keyword arguments of librdkafka's produce. Returns when all are acknowledged."""
        failures: list[object] = []
        producer = Producer({"bootstrap.servers": self.servers, "linger.ms": 5, **config})
        for record in records:
            producer.produce(topic, on_delivery=lambda error, _: error and failures.append(error), **record)
            producer.poll(0)
        left = producer.flush(TIMEOUT_S)
        assert not left and not failures, failures or f"{left} records were not acknowledged"

    def fill(self, topic: str, count: int, partitions: int = 1, **config: Any) -> None:
        """Values "0", "1", ... in turn over the partitions."""
        self.produce(
            topic, ({"value": str(number), "partition": number % partitions} for number in range(count)), **config
        )

    def read(self, topic: str, partitions: Sequence[int] = (0,)) -> list[Any]:
        """Every message there is now, as librdkafka sees it, sorted by partition and offset."""
        config = {"bootstrap.servers": self.servers, "group.id": "unused", "enable.auto.commit": False}
        consumer = Consumer(config)
        try:
            ends = {}
            for partition in partitions:
                low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), TIMEOUT_S)
                if high > low:
                    ends[partition] = high
            consumer.assign([TopicPartition(topic, partition, 0) for partition in ends])
            messages = []
            while ends:
                message = consumer.poll(TIMEOUT_S)
                assert message is not None, f"{topic}: nothing came, and {ends} is not reached"
                if message.error():
                    raise KafkaException(message.error())
                messages.append(message)
                if message.offset() + 1 >= ends.get(message.partition(), 0):
                    ends.pop(message.partition(), None)
            return sorted(messages, key=lambda message: (message.partition(), message.offset()))
        finally:
            consumer.close()
