"""What confluent-kafka's own integration tests ask of a broker, in our words."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    ElectionType,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

TIMEOUT_S = 30


def produce(address: str, topic: str, count: int, partition: int = 0, **more: Any) -> list[Message]:
    received: list[Message] = []
    producer = Producer({"bootstrap.servers": address, **more})
    for number in range(count):
        producer.produce(
            topic, b"%d" % number, partition=partition, on_delivery=lambda error, message: received.append(message)
        )
    assert producer.flush(TIMEOUT_S) == 0
    return received


@contextmanager
def consumer_of(address: str, group: str, **more: Any) -> Iterator[Consumer]:
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 300,
            "topic.metadata.refresh.interval.ms": 500,
            **more,
        }
    )
    try:
        yield consumer
    finally:
        consumer.close()


def take(consumer: Consumer, count: int) -> list[bytes]:
    deadline = time.monotonic() + TIMEOUT_S
    values: list[bytes] = []
    while len(values) < count:
        assert time.monotonic() < deadline, values
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            values.append(message.value())
    return values


def drive(condition: Callable[[], bool], *consumers: Consumer) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline
        for consumer in consumers:
            consumer.poll(0.05)


def eventually(condition: Callable[[], bool]) -> None:
    """Brokers follow the controller, on Apache Kafka a little later."""
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def refused(future: Any) -> int:
    with pytest.raises(KafkaException) as raised:
        future.result(TIMEOUT_S)
    return int(raised.value.args[0].code())


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec_idempotent(address: str, topic: str, name: str, codec: str) -> None:
    received = produce(address, topic, 500, **{"compression.type": codec, "enable.idempotence": True, "linger.ms": 20})
    assert [message.offset() for message in received] == list(range(500))
    with consumer_of(address, name) as consumer:
        consumer.subscribe([topic])
        assert take(consumer, 500) == [b"%d" % number for number in range(500)]


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_every_acks(address: str, topic: str, name: str, acks: str) -> None:
    # nobody tells a producer with acks=0 that the partition has no leader yet
    produce(address, topic, 1, acks="all")
    produce(address, topic, 20, acks=acks)
    with consumer_of(address, name) as consumer:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        assert len(take(consumer, 21)) == 21


@pytest.mark.parametrize("partitioner", ["random", "consistent", "murmur2", "murmur2_random", "fnv1a"])
def test_every_partitioner(address: str, topic: str, partitioner: str) -> None:
    received: list[Message] = []
    producer = Producer({"bootstrap.servers": address, "partitioner": partitioner})
    for number in range(40):
        producer.produce(topic, b"v", key=b"%d" % number, on_delivery=lambda error, message: received.append(message))
    producer.flush(TIMEOUT_S)
    assert {message.partition() for message in received} == {0, 1}


def test_headers_keys_and_empty_values(address: str, topic: str, name: str) -> None:
    producer = Producer({"bootstrap.servers": address})
    headers = [("a", b"1"), ("a", b"2"), ("empty", b""), ("none", None)]
    producer.produce(topic, None, key=b"k", headers=headers, partition=0, timestamp=1_700_000_000_000)
    producer.produce(topic, b"", key=None, partition=0)
    producer.flush(TIMEOUT_S)
    with consumer_of(address, name) as consumer:
        consumer.assign([TopicPartition(topic, 0, 0)])
        first, second = consumer.consume(2, TIMEOUT_S)
    assert (first.key(), first.value(), first.headers(), first.timestamp()) == (
        b"k",
        None,
        headers,
        (1, 1_700_000_000_000),
    )
    assert (second.key(), second.value(), second.headers()) == (None, b"", None)


def test_a_message_beyond_the_limit_of_its_topic(address: str, admin: AdminClient, name: str) -> None:
    admin.create_topics([NewTopic(name, 1, 1, config={"max.message.bytes": "10000"})])[name].result(TIMEOUT_S)
    errors: list[Any] = []
    producer = Producer({"bootstrap.servers": address, "message.max.bytes": 10**6})
    for size in (9000, 11000):
        producer.produce(name, b"x" * size, on_delivery=lambda error, message: errors.append(error))
        producer.flush(TIMEOUT_S)
    assert errors[0] is None and errors[1].code() == KafkaError.MSG_SIZE_TOO_LARGE


def test_what_is_purged_is_not_sent(address: str, topic: str, name: str) -> None:
    errors: list[Any] = []
    producer = Producer({"bootstrap.servers": address, "linger.ms": 60_000})
    for _ in range(3):
        producer.produce(topic, b"x", partition=0, on_delivery=lambda error, message: errors.append(error.code()))
    producer.purge()
    producer.flush(TIMEOUT_S)
    assert errors == [KafkaError._PURGE_QUEUE] * 3
    with consumer_of(address, name) as consumer:
        assert consumer.get_watermark_offsets(TopicPartition(topic, 0), TIMEOUT_S) == (0, 0)


def test_an_idempotent_producer_of_no_topic(address: str, name: str) -> None:
    errors: list[Any] = []
    producer = Producer({"bootstrap.servers": address, "allow.auto.create.topics": False, "message.timeout.ms": 3000})
    producer.produce(f"bad name {name}"[:20], b"x", on_delivery=lambda error, message: errors.append(error.code()))
    producer.flush(TIMEOUT_S)
    assert errors[0] in (KafkaError.TOPIC_EXCEPTION, KafkaError._UNKNOWN_TOPIC)


def test_stored_offsets_and_metadata(address: str, topic: str, name: str) -> None:
    produce(address, topic, 10)
    with consumer_of(address, name, **{"enable.auto.offset.store": False, "enable.auto.commit": False}) as consumer:
        consumer.subscribe([topic])
        take(consumer, 5)
        consumer.store_offsets(offsets=[TopicPartition(topic, 0, 3, metadata="three")])
        committed = consumer.commit(asynchronous=False)
        assert [(place.offset, place.error) for place in committed if place.partition == 0] == [(3, None)]
        (found,) = consumer.committed([TopicPartition(topic, 0)], TIMEOUT_S)
        assert (found.offset, found.metadata) == (3, "three")
        (position,) = consumer.position([TopicPartition(topic, 0)])
        assert position.offset == 5
    with consumer_of(address, name) as consumer:
        consumer.subscribe([topic])
        assert take(consumer, 1) == [b"3"]
        assert consumer.memberid() and consumer.consumer_group_metadata()


def test_seek_pause_resume_and_times(address: str, topic: str, name: str) -> None:
    producer = Producer({"bootstrap.servers": address})
    for number in range(5):
        producer.produce(topic, b"%d" % number, partition=0, timestamp=1_700_000_000_000 + 10 * number)
    producer.flush(TIMEOUT_S)
    place = TopicPartition(topic, 0)
    with consumer_of(address, name) as consumer:
        consumer.assign([TopicPartition(topic, 0, 0)])
        assert len(take(consumer, 5)) == 5
        consumer.seek(TopicPartition(topic, 0, 2))
        assert take(consumer, 3) == [b"2", b"3", b"4"]
        consumer.pause([place])
        produce(address, topic, 1)
        assert consumer.poll(0.5) is None
        consumer.resume([place])
        assert take(consumer, 1) == [b"0"]
        asked = [TopicPartition(topic, 0, 1_700_000_000_011), TopicPartition(topic, 1, 0)]
        assert [found.offset for found in consumer.offsets_for_times(asked, TIMEOUT_S)] == [2, -1]
        assert consumer.get_watermark_offsets(place, TIMEOUT_S) == (0, 6)


def test_an_unknown_topic_and_an_offset_out_of_range_are_told(address: str, topic: str, name: str) -> None:
    def first_error(consumer: Consumer) -> int:
        deadline = time.monotonic() + TIMEOUT_S
        while time.monotonic() < deadline:
            message = consumer.poll(0.2)
            if message is not None and message.error():
                return int(message.error().code())
        raise AssertionError("no error")

    produce(address, topic, 2)
    with consumer_of(address, name, **{"auto.offset.reset": "error"}) as consumer:
        consumer.assign([TopicPartition(topic, 0, 99)])
        assert first_error(consumer) == KafkaError._AUTO_OFFSET_RESET
    with consumer_of(address, name, **{"allow.auto.create.topics": False}) as consumer:
        consumer.subscribe([f"missing{name}"])
        assert first_error(consumer) == KafkaError.UNKNOWN_TOPIC_OR_PART
    with consumer_of(address, name, **{"enable.partition.eof": True}) as consumer:
        consumer.assign([TopicPartition(topic, 0, 2)])
        assert first_error(consumer) == KafkaError._PARTITION_EOF


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "cooperative-sticky"])
def test_members_come_and_one_is_lost(address: str, topic: str, name: str, strategy: str) -> None:
    produce(address, topic, 5)
    options = {"partition.assignment.strategy": strategy}
    with consumer_of(address, name, **options) as one, consumer_of(address, name, **options) as two:
        one.subscribe([topic])
        take(one, 5)
        lost = Consumer({"bootstrap.servers": address, "group.id": name, "session.timeout.ms": 6000, **options})
        lost.subscribe([topic])
        two.subscribe([topic])
        drive(lambda: len(one.assignment()) + len(two.assignment()) + len(lost.assignment()) == 2, one, two, lost)
        lost.close()
        drive(lambda: len(one.assignment()) == len(two.assignment()) == 1, one, two)
        produce(address, topic, 5, 0)
        two.unsubscribe()
        drive(lambda: len(one.assignment()) == 2, one)


def test_a_static_member_is_fenced_by_its_namesake(address: str, topic: str, name: str) -> None:
    options = {"group.instance.id": "i-1"}
    with consumer_of(address, name, **options) as one, consumer_of(address, name, **options) as two:
        one.subscribe([topic])
        drive(lambda: bool(one.assignment()), one)
        two.subscribe([topic])
        drive(lambda: bool(two.assignment()), two)
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            assert time.monotonic() < deadline
            try:
                message = one.poll(0.2)
            except KafkaException as error:
                assert error.args[0].code() in (KafkaError._FATAL, KafkaError.FENCED_INSTANCE_ID)
                break
            if message is not None and message.error():
                assert message.error().code() in (KafkaError._FATAL, KafkaError.FENCED_INSTANCE_ID)
                break


def test_a_pattern_finds_a_topic_that_comes_later(address: str, admin: AdminClient, name: str) -> None:
    with consumer_of(address, name) as consumer:
        produce(address, f"{name}-a", 1)
        consumer.subscribe([f"^{name}-.*"])
        take(consumer, 1)
        produce(address, f"{name}-b", 1)
        take(consumer, 1)


def test_a_member_that_does_not_poll_is_out(address: str, topic: str, name: str) -> None:
    with consumer_of(address, name, **{"max.poll.interval.ms": 6500, "session.timeout.ms": 6000}) as slow:
        slow.subscribe([topic])
        drive(lambda: len(slow.assignment()) == 2, slow)
        with consumer_of(address, name) as other:
            other.subscribe([topic])
            drive(lambda: len(other.assignment()) == 2, other)


def test_incremental_assignments(address: str, topic: str, name: str) -> None:
    produce(address, topic, 3, 0)
    produce(address, topic, 3, 1)
    with consumer_of(address, name) as consumer:
        consumer.incremental_assign([TopicPartition(topic, 0, 0)])
        assert len(take(consumer, 3)) == 3
        consumer.incremental_assign([TopicPartition(topic, 1, 1)])
        assert take(consumer, 2) == [b"1", b"2"]
        consumer.incremental_unassign([TopicPartition(topic, 0)])
        assert [place.partition for place in consumer.assignment()] == [1]


def test_admin_topics(address: str, admin: AdminClient, name: str) -> None:
    wanted = NewTopic(name, 2, 1, config={"compression.type": "producer"})
    admin.create_topics([wanted], validate_only=True)[name].result(TIMEOUT_S)
    assert name not in admin.list_topics(timeout=TIMEOUT_S).topics
    admin.create_topics([wanted], operation_timeout=5)[name].result(TIMEOUT_S)
    assert refused(admin.create_topics([wanted])[name]) == KafkaError.TOPIC_ALREADY_EXISTS
    bad = NewTopic(f"{name}x", 1, 1, config={"retention.ms": "soon"})
    assert refused(admin.create_topics([bad])[f"{name}x"]) == KafkaError.INVALID_CONFIG
    placed = NewTopic(f"{name}y", 2, replica_assignment=[[0], [0]])
    admin.create_topics([placed])[f"{name}y"].result(TIMEOUT_S)
    admin.create_partitions([NewPartitions(name, 4)])[name].result(TIMEOUT_S)
    assert refused(admin.create_partitions([NewPartitions(name, 3)])[name]) == KafkaError.INVALID_PARTITIONS

    def described() -> Any:
        return admin.describe_topics(TopicCollection([name]))[name].result(TIMEOUT_S)

    eventually(lambda: len(described().partitions) == 4)
    assert described().topic_id and not described().is_internal
    nowhere = admin.describe_topics(TopicCollection([f"{name}z"]))[f"{name}z"]
    assert refused(nowhere) == KafkaError.UNKNOWN_TOPIC_OR_PART
    admin.delete_topics([name], operation_timeout=5)[name].result(TIMEOUT_S)
    assert refused(admin.delete_topics([f"{name}z"])[f"{name}z"]) == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_admin_configurations(admin: AdminClient, topic: str) -> None:
    def value_of(key: str) -> str | None:
        resource = ConfigResource(ResourceType.TOPIC, topic)
        (found,) = [one.result(TIMEOUT_S) for one in admin.describe_configs([resource]).values()]
        return found[key].value  # type: ignore[no-any-return]

    def change(*entries: ConfigEntry) -> Any:
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=list(entries))
        (future,) = admin.incremental_alter_configs([resource]).values()
        return future

    change(
        ConfigEntry("retention.ms", "90000", incremental_operation=AlterConfigOpType.SET),
        ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.APPEND),
    ).result(TIMEOUT_S)
    eventually(lambda: (value_of("retention.ms"), value_of("cleanup.policy")) == ("90000", "delete,compact"))
    change(
        ConfigEntry("retention.ms", None, incremental_operation=AlterConfigOpType.DELETE),
        ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.SUBTRACT),
    ).result(TIMEOUT_S)
    eventually(lambda: (value_of("retention.ms"), value_of("cleanup.policy")) == ("604800000", "delete"))
    wrong = change(ConfigEntry("nobody.knows", "1", incremental_operation=AlterConfigOpType.SET))
    assert refused(wrong) == KafkaError.INVALID_CONFIG
    legacy = ConfigResource(ResourceType.TOPIC, topic, set_config={"retention.ms": "80000"})
    (future,) = admin.alter_configs([legacy]).values()
    future.result(TIMEOUT_S)
    eventually(lambda: value_of("retention.ms") == "80000")
    (broker,) = admin.describe_configs([ConfigResource(ResourceType.BROKER, "0")]).values()
    assert broker.result(TIMEOUT_S)["log.dirs"].is_read_only


def test_admin_groups(address: str, admin: AdminClient, topic: str, name: str) -> None:
    produce(address, topic, 5)
    with consumer_of(address, name) as consumer:
        consumer.subscribe([topic])
        take(consumer, 5)
        consumer.commit(asynchronous=False)
        stable = admin.list_consumer_groups(states={ConsumerGroupState.STABLE}).result(TIMEOUT_S)
        assert name in {group.group_id for group in stable.valid} and not stable.errors
        (described,) = admin.describe_consumer_groups([name], include_authorized_operations=True).values()
        group = described.result(TIMEOUT_S)
        assert (group.state, len(group.members), bool(group.authorized_operations)) == (
            ConsumerGroupState.STABLE,
            1,
            True,
        )
        assert {place.partition for place in group.members[0].assignment.topic_partitions} == {0, 1}
        assert refused(admin.delete_consumer_groups([name])[name]) == KafkaError.NON_EMPTY_GROUP
        change = ConsumerGroupTopicPartitions(name, [TopicPartition(topic, 0, 1)])
        (place,) = admin.alter_consumer_group_offsets([change])[name].result(TIMEOUT_S).topic_partitions
        assert place.error.code() == KafkaError.UNKNOWN_MEMBER_ID
    changed = admin.alter_consumer_group_offsets([change])[name].result(TIMEOUT_S)
    assert changed.topic_partitions[0].error is None
    received = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(name)])[name].result(TIMEOUT_S)
    assert (TopicPartition(topic, 0), 1) in [(place, place.offset) for place in received.topic_partitions]
    admin.delete_consumer_groups([name])[name].result(TIMEOUT_S)
    assert refused(admin.delete_consumer_groups([name])[name]) == KafkaError.GROUP_ID_NOT_FOUND


def test_admin_offsets_records_and_elections(address: str, admin: AdminClient, topic: str) -> None:
    produce(address, topic, 10)
    place = TopicPartition(topic, 0)

    def offset(spec: OffsetSpec) -> int:
        futures = admin.list_offsets({place: spec}, isolation_level=IsolationLevel.READ_COMMITTED)
        return int(futures[place].result(TIMEOUT_S).offset)

    assert (offset(OffsetSpec.earliest()), offset(OffsetSpec.latest())) == (0, 10)
    # ten records within one millisecond or several: the first with the largest timestamp
    assert 0 <= offset(OffsetSpec.max_timestamp()) < 10
    assert offset(OffsetSpec.for_timestamp(0)) == 0
    deleted = admin.delete_records([TopicPartition(topic, 0, 4)])
    assert next(iter(deleted.values())).result(TIMEOUT_S).low_watermark == 4
    assert offset(OffsetSpec.earliest()) == 4
    beyond = admin.delete_records([TopicPartition(topic, 0, 999)])
    assert refused(next(iter(beyond.values()))) == KafkaError.OFFSET_OUT_OF_RANGE
    elected = admin.elect_leaders(ElectionType.PREFERRED, [place]).result(TIMEOUT_S)
    assert next(iter(elected.values())).code() == KafkaError.ELECTION_NOT_NEEDED


def test_admin_cluster(admin: AdminClient) -> None:
    cluster = admin.describe_cluster(include_authorized_operations=True).result(TIMEOUT_S)
    assert [node.id for node in cluster.nodes] == [0] and cluster.cluster_id and cluster.controller.id == 0
    assert cluster.authorized_operations
