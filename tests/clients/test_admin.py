"""Strangers' admin clients change a running cluster: partitions, configurations, logs, and what that does.

A cluster of its own: logs are looked at five times a second, where Kafka's default is every five minutes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import kafka.errors as errors
import pytest
from clients.test_wire_alter import BROKER, DELETE, SET
from clients.world import UNTOUCHED, WAIT_S, World
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka import TopicPartition as At
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    OffsetSpec,
    ResourceType,
)
from kafka import TopicPartition
from kafka.admin import ConfigResource as PythonResource
from kafka.admin import KafkaAdminClient

from heirlog.testing.cluster import Cluster

CLIENT = {"log_level": 0, "reconnect.backoff.max.ms": 500}
"""Brokers are killed here: who has lost its connection shall not rest for ten seconds."""


@pytest.fixture(scope="module")
def busy() -> Iterator[World]:
    with Cluster(nodes=3, config={**UNTOUCHED, "log.retention.check.interval.ms": 200}) as cluster:
        yield World(cluster)
        for node in cluster.node_ids:
            assert "request-failed" not in cluster.output(node)


@pytest.fixture(scope="module")
def rdkafka(busy: World) -> Any:
    return AdminClient({"bootstrap.servers": busy.cluster.bootstrap_servers, **CLIENT})


@pytest.fixture
def python(busy: World) -> Iterator[Any]:
    client = KafkaAdminClient(bootstrap_servers=busy.cluster.bootstrap_servers)
    yield client
    client.close()


def only(futures: dict[Any, Any]) -> Any:
    (future,) = futures.values()
    return future.result(WAIT_S)


def refusal(futures: dict[Any, Any]) -> Any:
    with pytest.raises(KafkaException) as caught:
        only(futures)
    return caught.value.args[0]


def resource(kind: ResourceType, name: str, **values: str | None) -> ConfigResource:
    """Incremental: None deletes."""
    entries = [
        ConfigEntry(
            key.replace("_", "."),
            value,
            incremental_operation=AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET,
        )
        for key, value in values.items()
    ]
    return ConfigResource(kind, name, incremental_configs=entries)


def alter_cluster(world: World, name: str, value: str | None) -> None:
    """The default of all brokers, for which neither client has a name."""
    config = {"name": name, "config_operation": SET if value is not None else DELETE, "value": value}
    asked = [{"resource_type": BROKER, "resource_name": "", "configs": [config]}]
    (answer,) = world.ask("incremental_alter_configs", 1, resources=asked).responses
    assert answer.error_code.value == 0, answer


def eventually_described(world: World, rdkafka: Any, kind: ResourceType, name: str, key: str, expected: str) -> Any:
    """The entry, once the broker that is asked has heard of the change."""

    def found() -> Any:
        entry = only(rdkafka.describe_configs([ConfigResource(kind, name)]))[key]
        return entry if entry.value == expected else None

    return world.eventually(found)


def produce(world: World, topic: str, count: int, size: int = 100, **config: Any) -> list[Any]:
    """The errors of `count` records, one batch each."""
    producer = Producer(
        {"bootstrap.servers": world.cluster.bootstrap_servers, "acks": "all", "linger.ms": 0, **CLIENT, **config}
    )
    failed: list[Any] = []
    for _ in range(count):
        producer.produce(topic, b"x" * size, partition=0, on_delivery=lambda error, _: failed.append(error))
        producer.flush(WAIT_S)
    assert len(failed) == count
    return failed


def offsets(rdkafka: Any, topic: str) -> tuple[int, int]:
    """Log start and end."""
    at = At(topic, 0)
    return tuple(only(rdkafka.list_offsets({at: spec})).offset for spec in (OffsetSpec.earliest(), OffsetSpec.latest()))


# -- partitions ------------------------------------------------------------------------------------------------------


def test_confluent_kafka_adds_partitions(busy: World, rdkafka: Any) -> None:
    topic = busy.topic()
    only(rdkafka.create_partitions([NewPartitions(topic, 2)], validate_only=True))
    only(rdkafka.create_partitions([NewPartitions(topic, 4, [[1, 2, 3], [2, 3, 1], [3, 1, 2]])]))
    found = busy.eventually(lambda: len(busy.metadata(topic).partitions) == 4 and busy.metadata(topic).partitions)
    assert [p.replica_nodes for p in found[1:]] == [(1, 2, 3), (2, 3, 1), (3, 1, 2)]
    assert refusal(rdkafka.create_partitions([NewPartitions(topic, 4)])).name() == "INVALID_PARTITIONS"
    assert refusal(rdkafka.create_partitions([NewPartitions("nowhere", 4)])).name() == "UNKNOWN_TOPIC_OR_PART"


def test_kafka_python_adds_partitions(busy: World, python: Any) -> None:
    topic = busy.topic()
    python.create_partitions({topic: 3})
    busy.eventually(lambda: len(busy.metadata(topic).partitions) == 3)
    with pytest.raises(errors.InvalidPartitionsError):
        python.create_partitions({topic: 2})


# -- configurations --------------------------------------------------------------------------------------------------


def test_confluent_kafka_alters_and_describes(busy: World, rdkafka: Any) -> None:
    topic = busy.topic(retention_ms="1000")
    only(rdkafka.incremental_alter_configs([resource(ResourceType.TOPIC, topic, segment_ms="5000", retention_ms=None)]))
    entry = eventually_described(busy, rdkafka, ResourceType.TOPIC, topic, "segment.ms", "5000")
    assert (entry.source, entry.is_default, entry.is_read_only) == (1, False, False)
    eventually_described(busy, rdkafka, ResourceType.TOPIC, topic, "retention.ms", str(7 * 86_400_000))


def test_confluent_kafka_replaces(busy: World, rdkafka: Any) -> None:
    topic = busy.topic(retention_ms="1000")
    only(rdkafka.alter_configs([ConfigResource(ResourceType.TOPIC, topic, set_config={"segment.ms": "5000"})]))
    eventually_described(busy, rdkafka, ResourceType.TOPIC, topic, "segment.ms", "5000")
    eventually_described(busy, rdkafka, ResourceType.TOPIC, topic, "retention.ms", str(7 * 86_400_000))


@pytest.mark.parametrize("incremental", [True, False])
def test_kafka_python_alters_and_describes(busy: World, python: Any, incremental: bool) -> None:
    topic = busy.topic(flush_ms="9")
    python.alter_configs([PythonResource("TOPIC", topic, {"segment.ms": "5000"})], incremental=incremental)

    def found() -> Any:
        values = python.describe_configs([PythonResource("TOPIC", topic)])["topic"][topic]
        return values if "segment.ms" in values else None

    values = busy.eventually(found)
    assert values["segment.ms"]["value"] == "5000"
    assert values["flush.ms"]["value"] == "9"
    python.reset_configs([PythonResource("TOPIC", topic, ["segment.ms"])])
    busy.eventually(
        lambda: "segment.ms" not in python.describe_configs([PythonResource("TOPIC", topic)])["topic"][topic]
    )


def test_kafka_python_lists_what_has_configurations(busy: World, python: Any) -> None:
    topic = busy.topic()
    found = {kind.lower(): names for kind, names in python.list_config_resources().items()}
    assert topic in found["topic"]
    assert sorted(found["broker"]) == ["1", "2", "3"]


def test_what_is_wrong_is_refused_in_words(busy: World, rdkafka: Any) -> None:
    topic = busy.topic()
    for wrong, name, sentence in (
        (resource(ResourceType.TOPIC, topic, no_such="1"), "INVALID_CONFIG", "Unknown topic config name: no.such"),
        (resource(ResourceType.TOPIC, topic, segment_ms="x"), "INVALID_CONFIG", "Invalid value x"),
        (resource(ResourceType.TOPIC, "nowhere", segment_ms="1"), "UNKNOWN_TOPIC_OR_PART", "does not exist"),
        (
            resource(ResourceType.BROKER, "1", log_dirs="/x"),
            "INVALID_REQUEST",
            "Cannot update these configs dynamically",
        ),
    ):
        error = refusal(rdkafka.incremental_alter_configs([wrong]))
        assert error.name() == name and sentence in error.str()


def test_a_brokers_value_is_its_own_and_the_clusters_is_for_all(busy: World, rdkafka: Any) -> None:
    topic = busy.topic()
    only(rdkafka.incremental_alter_configs([resource(ResourceType.BROKER, "2", log_retention_ms="777000")]))
    assert eventually_described(busy, rdkafka, ResourceType.BROKER, "2", "log.retention.ms", "777000").source == 2
    assert only(rdkafka.describe_configs([ConfigResource(ResourceType.BROKER, "1")]))["log.retention.ms"].value is None
    alter_cluster(busy, "message.max.bytes", "3000")
    for broker in ("1", "2", "3"):
        assert eventually_described(busy, rdkafka, ResourceType.BROKER, broker, "message.max.bytes", "3000").source == 3
    assert produce(busy, topic, 1, 5000)[0].name() == "MSG_SIZE_TOO_LARGE"
    alter_cluster(busy, "message.max.bytes", None)
    only(rdkafka.incremental_alter_configs([resource(ResourceType.BROKER, "2", log_retention_ms=None)]))
    eventually_described(busy, rdkafka, ResourceType.BROKER, "1", "message.max.bytes", "1048588")
    busy.eventually(lambda: produce(busy, topic, 1, 5000) == [None])


# -- what a running log makes of it ----------------------------------------------------------------------------------


def test_a_lower_limit_refuses_the_next_large_record(busy: World, rdkafka: Any) -> None:
    topic = busy.topic()
    assert produce(busy, topic, 1, 5000) == [None]
    only(rdkafka.incremental_alter_configs([resource(ResourceType.TOPIC, topic, max_message_bytes="2000")]))
    busy.eventually(lambda: produce(busy, topic, 1, 5000)[0] is not None)
    assert produce(busy, topic, 1, 5000)[0].name() == "MSG_SIZE_TOO_LARGE"
    assert produce(busy, topic, 1, 500) == [None]


def test_a_shorter_retention_deletes_segments_on_every_replica(busy: World, rdkafka: Any) -> None:
    topic = busy.topic(internal_segment_bytes="1000")
    produce(busy, topic, 20, 300)
    directories = [busy.cluster.data / f"broker-{broker}" / "log" / f"{topic}-0" for broker in (1, 2, 3)]
    before = [len(list(directory.glob("*.log"))) for directory in directories]
    assert min(before) >= 5
    assert offsets(rdkafka, topic) == (0, 20)
    only(rdkafka.incremental_alter_configs([resource(ResourceType.TOPIC, topic, retention_ms="1")]))
    busy.eventually(lambda: offsets(rdkafka, topic) == (20, 20))
    busy.eventually(lambda: all(len(list(directory.glob("*.log"))) == 1 for directory in directories))


def test_smaller_segments_begin_with_the_next_record(busy: World, rdkafka: Any) -> None:
    topic = busy.topic()
    produce(busy, topic, 5, 300)
    directory = busy.cluster.data / f"broker-{busy.leader(topic)}" / "log" / f"{topic}-0"
    assert len(list(directory.glob("*.log"))) == 1
    only(rdkafka.incremental_alter_configs([resource(ResourceType.TOPIC, topic, internal_segment_bytes="1000")]))

    def rolled() -> bool:
        produce(busy, topic, 1, 300)
        return len(list(directory.glob("*.log"))) > 2

    busy.eventually(rolled)


def test_a_higher_min_isr_refuses_and_a_lower_one_takes_again(busy: World) -> None:
    topic = busy.topic(replicas=[1, 2], min_insync_replicas="1")
    busy.cluster.kill(2)
    try:
        busy.eventually(lambda: busy.metadata(topic).partitions[0].isr_nodes == (1,))
        # a client that took broker 2 for its controller may wait for that one until it is back
        rdkafka = AdminClient({"bootstrap.servers": busy.cluster.bootstrap_servers, **CLIENT})
        assert produce(busy, topic, 1) == [None]
        only(rdkafka.incremental_alter_configs([resource(ResourceType.TOPIC, topic, min_insync_replicas="2")]))
        quick = {"message.timeout.ms": 1000}
        busy.eventually(lambda: produce(busy, topic, 1, **quick)[0] is not None)
        only(rdkafka.incremental_alter_configs([resource(ResourceType.TOPIC, topic, min_insync_replicas="1")]))
        busy.eventually(lambda: produce(busy, topic, 1, **quick) == [None])
    finally:
        busy.cluster.start(2)
        busy.cluster.wait_until_ready()
    busy.eventually(lambda: busy.metadata(topic).partitions[0].isr_nodes == (1, 2))


# -- records, directories, producers ---------------------------------------------------------------------------------


def test_confluent_kafka_deletes_records(busy: World, rdkafka: Any) -> None:
    topic = busy.topic()
    produce(busy, topic, 10)
    assert only(rdkafka.delete_records([At(topic, 0, 4)])).low_watermark == 4
    assert offsets(rdkafka, topic) == (4, 10)
    assert refusal(rdkafka.delete_records([At(topic, 0, 11)])).name() == "OFFSET_OUT_OF_RANGE"
    consumer = Consumer(
        {
            "bootstrap.servers": busy.cluster.bootstrap_servers,
            "group.id": "unused",
            "auto.offset.reset": "earliest",
            **CLIENT,
        }
    )
    consumer.assign([At(topic, 0, 0)])
    assert consumer.poll(WAIT_S).offset() == 4
    consumer.close()


def test_kafka_python_deletes_all_records_and_they_stay_deleted_when_the_leader_moves(busy: World, python: Any) -> None:
    topic = busy.topic()
    produce(busy, topic, 10)
    partition = TopicPartition(topic, 0)
    assert python.delete_records({partition: -1})[partition]["low_watermark"] == 10
    leader = busy.leader(topic)
    busy.cluster.kill(leader)
    try:
        other = busy.eventually(lambda: busy.leader(topic) not in (-1, leader) and busy.leader(topic))

        def log_start() -> Any:
            """None as long as it does not know that it leads."""
            with busy.broker(other) as wire_client:
                asked = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": -2}
                topics = [{"name": topic, "partitions": [asked]}]
                answer = wire_client.ask("list_offsets", 7, replica_id=-1, topics=topics).topics[0].partitions[0]
            return None if answer.error_code.name == "not_leader_or_follower" else answer

        answer = busy.eventually(log_start)
        assert (answer.error_code.value, answer.offset) == (0, 10)
    finally:
        busy.cluster.start(leader)
        busy.cluster.wait_until_ready()
    busy.eventually(lambda: len(busy.metadata(topic).partitions[0].isr_nodes) == 3)


def test_deleted_records_leave_the_disk(busy: World, rdkafka: Any) -> None:
    topic = busy.topic(internal_segment_bytes="1000")
    produce(busy, topic, 20, 300)
    only(rdkafka.delete_records([At(topic, 0, 20)]))
    directories = [busy.cluster.data / f"broker-{broker}" / "log" / f"{topic}-0" for broker in (1, 2, 3)]
    busy.eventually(lambda: all(len(list(directory.glob("*.log"))) == 1 for directory in directories))


def test_kafka_python_describes_log_directories(busy: World, python: Any) -> None:
    topic = busy.topic(replicas=[1, 2])
    produce(busy, topic, 3)

    def sizes() -> dict[int, int]:
        return {
            answer["broker"]: partition["partition_size"]
            for answer in python.describe_log_dirs({topic: [0]})
            for directory in answer["log_dirs"]
            for found in directory["topics"]
            for partition in found["partitions"]
        }

    found = sizes()
    assert sorted(found) == [1, 2] and found[1] == found[2] > 300


def test_kafka_python_describes_producers(busy: World, python: Any) -> None:
    topic = busy.topic()
    produce(busy, topic, 3, **{"enable.idempotence": True})
    partition = TopicPartition(topic, 0)
    (producer,) = python.describe_producers([partition])[partition].active_producers
    assert producer.last_sequence == 2
    assert producer.last_timestamp > (time.time() - 3600) * 1000
