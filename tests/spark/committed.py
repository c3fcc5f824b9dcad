"""What a consumer of committed records reads, by librdkafka: a client that shares no code with what is tested."""

from __future__ import annotations

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

TIMEOUT_S = 60.0


def committed(servers: str, topic: str, partitions: int) -> list[str]:
    """The values in all partitions, sorted. Open transactions are waited for, and aborted ones are not in it."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "unused",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
        values, ended = [], set[int]()
        while len(ended) < partitions:
            message = consumer.poll(TIMEOUT_S)
            assert message is not None, f"{topic}: nothing came, and only {sorted(ended)} ended"
            error = message.error()
            if error is None:
                values.append((message.value() or b"").decode())
            elif error.code() == KafkaError._PARTITION_EOF:
                ended.add(message.partition())
            else:
                raise KafkaException(error)
        return sorted(values)
    finally:
        consumer.close()
