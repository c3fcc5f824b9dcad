"""Transactions with librdkafka: what consumers of committed records see, across processes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from clients.world import World
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

LIMIT_S = 30


def transactional(world: World, name: str, **more: Any) -> Producer:
    producer = Producer({"bootstrap.servers": world.cluster.bootstrap_servers, "transactional.id": name, **more})
    producer.init_transactions(LIMIT_S)
    return producer


@pytest.fixture
def consumers(world: World) -> Iterator[Any]:
    opened = []

    def consumer(group: str, isolation: str = "read_committed") -> Consumer:
        opened.append(
            Consumer(
                {
                    "bootstrap.servers": world.cluster.bootstrap_servers,
                    "group.id": group,
                    "isolation.level": isolation,
                    "auto.offset.reset": "earliest",
                    "enable.auto.commit": False,
                    "enable.partition.eof": True,
                }
            )
        )
        return opened[-1]

    yield consumer
    for one in opened:
        one.close()


def read(consumer: Consumer, topic: str) -> list[bytes]:
    """Everything of partition 0, as far as the consumer may read."""
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = []
    while True:
        message = consumer.poll(LIMIT_S)
        assert message is not None, "neither a record nor the end of the partition"
        if message.error():
            return found
        found.append(message.value())


def write(producer: Producer, topic: str, *values: bytes) -> None:
    for value in values:
        producer.produce(topic, value, partition=0)


def test_only_committed_records_are_read(world: World, consumers: Any) -> None:
    topic = world.topic()
    producer = transactional(world, "txn-read")
    for values, commit in (((b"a", b"b"), True), ((b"c",), False), ((b"d",), True)):
        producer.begin_transaction()
        write(producer, topic, *values)
        producer.flush(LIMIT_S)
        producer.commit_transaction(LIMIT_S) if commit else producer.abort_transaction(LIMIT_S)
    producer.begin_transaction()
    write(producer, topic, b"open")
    producer.flush(LIMIT_S)
    assert read(consumers("txn-read-1"), topic) == [b"a", b"b", b"d"]
    assert read(consumers("txn-read-2", "read_uncommitted"), topic) == [b"a", b"b", b"c", b"d", b"open"]
    producer.abort_transaction(LIMIT_S)


def test_the_second_producer_of_an_id_fences_the_first(world: World, consumers: Any) -> None:
    topic = world.topic()
    first = transactional(world, "txn-fence")
    first.begin_transaction()
    write(first, topic, b"lost")
    first.flush(LIMIT_S)
    second = transactional(world, "txn-fence")
    with pytest.raises(KafkaException):
        first.commit_transaction(LIMIT_S)
    second.begin_transaction()
    write(second, topic, b"kept")
    second.commit_transaction(LIMIT_S)
    assert read(consumers("txn-fence"), topic) == [b"kept"]


def test_records_are_copied_exactly_once_through_aborts(world: World, consumers: Any) -> None:
    source, target = world.topic(), world.topic()
    values = [b"%d" % number for number in range(40)]
    plain = Producer({"bootstrap.servers": world.cluster.bootstrap_servers})
    write(plain, source, *values)
    plain.flush(LIMIT_S)
    consumer, producer = consumers("txn-copy"), transactional(world, "txn-copy")
    position, attempts = 0, 0
    while position < len(values):
        consumer.assign([TopicPartition(source, 0, position)])
        batch = [message for message in consumer.consume(10, LIMIT_S) if not message.error()]
        producer.begin_transaction()
        write(producer, target, *(message.value() for message in batch))
        reached = [TopicPartition(source, 0, batch[-1].offset() + 1)]
        producer.send_offsets_to_transaction(reached, consumer.consumer_group_metadata(), LIMIT_S)
        attempts += 1
        producer.abort_transaction(LIMIT_S) if attempts % 3 == 1 else producer.commit_transaction(LIMIT_S)
        (committed,) = consumer.committed([TopicPartition(source, 0)], LIMIT_S)
        position = max(0, committed.offset)
    assert read(consumers("txn-copied"), target) == values
