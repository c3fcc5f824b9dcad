"""kafka-python over real sockets: producer, consumer with assigned partitions, admin client."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from typing import Any

import kafka.errors as errors
import pytest
from clients.world import WAIT_S, World
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient, NewTopic, OffsetSpec

CODECS = {None: 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
FIRST_MS = 1_700_000_000_000
PREFERRED, UNCLEAN = 0, 1


@pytest.fixture(scope="module")
def bootstrap(world: World) -> str:
    return world.cluster.bootstrap_servers


@pytest.fixture(scope="module")
def admin(bootstrap: str) -> Iterator[Any]:
    client = KafkaAdminClient(bootstrap_servers=bootstrap)
    yield client
    client.close()


@pytest.fixture(scope="module")
def topic(world: World) -> str:
    """Partitions 0 and 1; 0 has records 0-9, one per second."""
    name = world.topic(partitions=2)
    producer = KafkaProducer(bootstrap_servers=world.cluster.bootstrap_servers, acks="all")
    for number in range(10):
        producer.send(name, b"v%d" % number, partition=0, timestamp_ms=FIRST_MS + 1000 * number).get(WAIT_S)
    producer.close()
    return name


@pytest.fixture(scope="module")
def replicated(world: World) -> tuple[str, Iterator[int]]:
    """A topic, and the numbers of its partitions, two for each test: replication is under way after the first one."""
    return world.topic(partitions=40, replicas=[1, 2]), iter(range(40))


def read(bootstrap: str, topic: str, partitions: list[int], count: int) -> list[Any]:
    """At least `count` records from the beginning."""
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=None, auto_offset_reset="earliest")
    consumer.assign([TopicPartition(topic, index) for index in partitions])
    found: list[Any] = []
    deadline = time.monotonic() + WAIT_S
    while len(found) < count:
        assert time.monotonic() < deadline, f"{len(found)} of {count} records"
        found += itertools.chain.from_iterable(consumer.poll(500).values())
    consumer.close()
    return found


# -- produce and consume ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("acks", [0, 1, "all", "idempotent"])
@pytest.mark.parametrize("codec", CODECS)
def test_what_is_produced_is_consumed(
    replicated: tuple[str, Iterator[int]], bootstrap: str, codec: str | None, acks: Any
) -> None:
    topic, numbers = replicated
    pair = [next(numbers), next(numbers)]
    idempotent = acks == "idempotent"
    producer = KafkaProducer(
        bootstrap_servers=bootstrap,
        compression_type=codec,
        acks="all" if idempotent else acks,
        enable_idempotence=idempotent,
    )
    sent = [(b"k%d" % number, b"value " * 20 + b"%d" % number, [("h", b"%d" % number)]) for number in range(200)]
    futures = [
        producer.send(topic, value, key, headers, partition=pair[number % 2])
        for number, (key, value, headers) in enumerate(sent)
    ]
    offsets = [future.get(WAIT_S).offset for future in futures]
    producer.close()
    if acks != 0:
        assert offsets == [number // 2 for number in range(200)]
    found = read(bootstrap, topic, pair, len(sent))
    found.sort(key=lambda record: (record.offset, record.partition))
    assert [(record.key, record.value, list(record.headers)) for record in found] == sent


def test_a_record_too_large_is_refused(world: World, bootstrap: str) -> None:
    topic = world.topic(replicas=[1], max_message_bytes="2000")
    # (with idempotence kafka-python gives up the whole producer)
    producer = KafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=False)
    with pytest.raises(errors.MessageSizeTooLargeError):
        producer.send(topic, b"x" * 5000).get(WAIT_S)
    assert producer.send(topic, b"x" * 500).get(WAIT_S).offset == 0
    producer.close()


def test_a_consumer_starts_where_it_is_told(world: World, bootstrap: str, topic: str) -> None:
    partition = TopicPartition(topic, 0)
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=None)
    consumer.assign([partition])

    def first() -> Any:
        return world.eventually(lambda: consumer.poll(500))[partition][0]

    def first_from(offset: int) -> Any:
        consumer.seek(partition, offset)
        return first().offset

    assert first_from(7) == 7
    (by_time,) = consumer.offsets_for_times({partition: FIRST_MS + 3500}).values()
    assert (by_time.offset, by_time.timestamp) == (4, FIRST_MS + 4000)
    assert first_from(by_time.offset) == 4
    consumer.seek_to_beginning(partition)
    assert first().value == b"v0"
    consumer.seek_to_end(partition)
    assert consumer.position(partition) == 10
    assert consumer.poll(300) == {}
    assert consumer.beginning_offsets([partition]) == {partition: 0}
    assert consumer.end_offsets([partition]) == {partition: 10}
    assert consumer.offsets_for_times({partition: FIRST_MS + 10**9}) == {partition: None}
    assert consumer.highwater(partition) == 10
    consumer.close()


def test_an_offset_that_is_not_there_is_reset(world: World, bootstrap: str, topic: str) -> None:
    partition = TopicPartition(topic, 0)
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=None, auto_offset_reset="earliest")
    consumer.assign([partition])
    consumer.seek(partition, 1_000_000)
    assert world.eventually(lambda: consumer.poll(500))[partition][0].offset == 0
    consumer.close()


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_a_leader_that_goes_takes_nothing_with_it(world: World, bootstrap: str, end: str) -> None:
    topic = world.topic(partitions=3)
    producer = KafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=True, linger_ms=2, retry_backoff_ms=50)
    victim = world.leader(topic)
    halfway, futures = threading.Event(), []

    def write() -> None:
        for number in range(6000):
            futures.append(producer.send(topic, b"%d" % number, partition=number % 3))
            if number == 2000:
                halfway.set()
            if number % 50 == 0:
                time.sleep(0.005)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert halfway.wait(WAIT_S)
        getattr(world.cluster, end)(victim)
        writer.join()
        places = [(future.get(60).partition, future.get(60).offset) for future in futures]
    finally:
        producer.close()
        world.cluster.start(victim)
        world.cluster.wait_until_ready()
    found = {(one.partition, one.offset): int(one.value) for one in read(bootstrap, topic, [0, 1, 2], 6000)}
    assert found == {place: number for number, place in enumerate(places)}, "nothing lost, nothing doubled"
    for index in range(3):
        order = [number for (partition, _), number in sorted(found.items()) if partition == index]
        assert order == sorted(order)


# -- transactions are not there yet ----------------------------------------------------------------------------------


def test_a_transaction_is_read_once_it_is_committed(world: World, bootstrap: str) -> None:
    topic = world.topic()
    producer = KafkaProducer(bootstrap_servers=bootstrap, transactional_id=world.name("kp-txn"))
    producer.init_transactions()
    for value, commit in ((b"kept", True), (b"dropped", False), (b"kept too", True)):
        producer.begin_transaction()
        producer.send(topic, value).get(timeout=30)
        producer.commit_transaction() if commit else producer.abort_transaction()
    producer.close()
    consumer = KafkaConsumer(
        topic, bootstrap_servers=bootstrap, isolation_level="read_committed", auto_offset_reset="earliest"
    )
    assert [next(consumer).value for _ in range(2)] == [b"kept", b"kept too"]
    consumer.close()


# -- admin -----------------------------------------------------------------------------------------------------------


def test_topics_are_created_listed_described_and_deleted(world: World, admin: Any) -> None:
    counted, placed = world.name("kp"), world.name("kp")
    created = admin.create_topics(
        [
            NewTopic(counted, 4, 2, topic_configs={"retention.ms": "60000"}),
            NewTopic(placed, replica_assignments={0: [2, 3], 1: [3, 1]}),
        ]
    )["topics"]
    assert [(one["name"], one["num_partitions"], one["replication_factor"]) for one in created] == [
        (counted, 4, 2),
        (placed, 2, 2),
    ]
    assert {counted, placed} <= set(admin.list_topics())
    (described,) = admin.describe_topics([placed])
    assert [(p["leader_id"], p["replica_nodes"]) for p in described["partitions"]] == [(2, [2, 3]), (3, [3, 1])]
    (elr,) = admin.describe_topic_partitions([placed])["topics"]
    assert [p["isr_nodes"] for p in elr["partitions"]] == [[2, 3], [3, 1]]
    configs = admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, counted)], config_filter="all")
    assert configs["topic"][counted]["retention.ms"]["value"] == "60000"
    deleted = admin.delete_topics([counted, placed])["topics"]
    assert {one["error_code"] for one in deleted} == {0}
    world.eventually(lambda: not {counted, placed} & set(admin.list_topics()))


def test_validate_only_creates_nothing(world: World, admin: Any) -> None:
    name = world.name("kp")
    admin.create_topics([NewTopic(name, 1, 1)], validate_only=True)
    assert name not in admin.list_topics()


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (lambda name: NewTopic(name, 0, 1), errors.InvalidPartitionsError),
        (lambda name: NewTopic(name, 1, 4), errors.InvalidReplicationFactorError),
        (lambda name: NewTopic(name, replica_assignments={0: [1, 1]}), errors.InvalidReplicationAssignmentError),
        (lambda name: NewTopic(name, 1, 1, topic_configs={"no.such": "1"}), errors.InvalidConfigurationError),
        (lambda name: NewTopic("no good", 1, 1), errors.InvalidTopicError),
    ],
)
def test_topics_that_cannot_be_created(world: World, admin: Any, wrong: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        admin.create_topics([wrong(world.name("kp"))])


def test_topics_that_are_there_already_or_not_at_all(admin: Any, topic: str) -> None:
    with pytest.raises(errors.TopicAlreadyExistsError):
        admin.create_topics([NewTopic(topic, 1, 1)])
    with pytest.raises(errors.UnknownTopicOrPartitionError):
        admin.delete_topics(["nowhere"])


def test_offsets_by_every_name(admin: Any, topic: str) -> None:
    partition = TopicPartition(topic, 0)

    def offset(spec: Any) -> int:
        found: int = admin.list_partition_offsets({partition: spec})[partition].offset
        return found

    assert offset(OffsetSpec.EARLIEST) == 0
    assert offset(OffsetSpec.LATEST) == 10
    assert offset(OffsetSpec.MAX_TIMESTAMP) == 9
    assert offset(FIRST_MS + 2500) == 3


def test_elections_and_the_cluster(world: World, admin: Any) -> None:
    topic = world.topic(replicas=[1])
    for kind in (PREFERRED, UNCLEAN):
        (elected,) = admin.elect_leaders(kind, {topic: [0]}).replica_election_results
        assert [one.error_code for one in elected.partition_result] == [errors.ElectionNotNeededError.errno]
    with pytest.raises(errors.UnknownTopicOrPartitionError):
        admin.elect_leaders(PREFERRED, {"nowhere": [0]})
    cluster = admin.describe_cluster()
    assert [broker["broker_id"] for broker in cluster["brokers"]] == [1, 2, 3]
    assert cluster["controller_id"] in (1, 2, 3)
    features = admin.describe_features()
    assert features["eligible.leader.replicas.version"]["finalized"] == (1, 1)
    broker = admin.describe_configs([ConfigResource(ConfigResourceType.BROKER, "2")], config_filter="all")
    assert broker["broker"]["2"]["node.id"]["value"] == "2"
