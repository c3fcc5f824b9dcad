"""aiokafka over real sockets: producer, consumer with assigned partitions, admin client."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import aiokafka.errors as errors
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from clients.world import World

CODECS = [None, "gzip", "snappy", "lz4", "zstd"]
FIRST_MS = 1_700_000_000_000
LIMIT_S = 120.0


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(scenario(), LIMIT_S))


@asynccontextmanager
async def started(client: Any) -> Any:
    await client.start()
    try:
        yield client
    finally:
        await (client.close() if isinstance(client, AIOKafkaAdminClient) else client.stop())


def producing(world: World, **config: Any) -> Any:
    return started(AIOKafkaProducer(bootstrap_servers=world.cluster.bootstrap_servers, **config))


def consuming(world: World, *topics: str, **config: Any) -> Any:
    config = {"group_id": None, "auto_offset_reset": "earliest", **config}
    return started(AIOKafkaConsumer(*topics, bootstrap_servers=world.cluster.bootstrap_servers, **config))


def administering(world: World) -> Any:
    return started(AIOKafkaAdminClient(bootstrap_servers=world.cluster.bootstrap_servers))


@pytest.fixture(scope="module")
def replicated(world: World) -> tuple[str, Iterator[int]]:
    """A topic, and the numbers of its partitions, two for each test: replication is under way after the first one."""
    return world.topic(partitions=40, replicas=[1, 2]), iter(range(40))


async def read(world: World, topic: str, partitions: list[int], count: int) -> list[Any]:
    """At least `count` records from the beginning."""
    found: list[Any] = []
    async with consuming(world) as consumer:
        consumer.assign([TopicPartition(topic, index) for index in partitions])
        while len(found) < count:
            for records in (await consumer.getmany(timeout_ms=500)).values():
                found += records
    return found


@pytest.mark.parametrize("acks", [0, 1, "all", "idempotent"])
@pytest.mark.parametrize("codec", CODECS)
def test_what_is_produced_is_consumed(
    world: World, replicated: tuple[str, Iterator[int]], codec: str | None, acks: Any
) -> None:
    topic, numbers = replicated
    pair = [next(numbers), next(numbers)]
    idempotent = acks == "idempotent"
    sent = [(b"k%d" % number, b"value " * 20 + b"%d" % number, [("h", b"%d" % number)]) for number in range(200)]

    async def scenario() -> None:
        config = {"acks": "all" if idempotent else acks, "enable_idempotence": idempotent, "compression_type": codec}
        async with producing(world, **config) as producer:
            waits = [
                await producer.send(topic, value, key, pair[number % 2], headers=headers)
                for number, (key, value, headers) in enumerate(sent)
            ]
            places = await asyncio.gather(*waits)
        if acks != 0:
            assert [place.offset for place in places] == [number // 2 for number in range(200)]
        found = await read(world, topic, pair, len(sent))
        found.sort(key=lambda record: (record.offset, record.partition))
        assert [(record.key, record.value, list(record.headers)) for record in found] == sent

    run(scenario)


def test_a_consumer_starts_where_it_is_told(world: World) -> None:
    topic = world.topic()
    partition = TopicPartition(topic, 0)

    async def scenario() -> None:
        async with producing(world, acks="all") as producer:
            for number in range(10):
                timestamp_ms = FIRST_MS + 1000 * number
                await producer.send_and_wait(topic, b"v%d" % number, partition=0, timestamp_ms=timestamp_ms)
        async with consuming(world) as consumer:
            consumer.assign([partition])
            consumer.seek(partition, 7)
            assert (await consumer.getone()).offset == 7
            by_time = (await consumer.offsets_for_times({partition: FIRST_MS + 3500}))[partition]
            assert (by_time.offset, by_time.timestamp) == (4, FIRST_MS + 4000)
            assert await consumer.beginning_offsets([partition]) == {partition: 0}
            assert await consumer.end_offsets([partition]) == {partition: 10}
            await consumer.seek_to_beginning(partition)
            assert (await consumer.getone()).value == b"v0"
            await consumer.seek_to_end(partition)
            assert await consumer.position(partition) == 10
            consumer.seek(partition, 10**6)
            assert (await consumer.getone()).offset == 0, "an offset that is not there is reset"
        async with consuming(world, auto_offset_reset="none") as consumer:
            consumer.assign([partition])
            consumer.seek(partition, 10**6)
            with pytest.raises(errors.OffsetOutOfRangeError):
                await consumer.getone()

    run(scenario)


def test_a_record_too_large_is_refused(world: World) -> None:
    topic = world.topic(replicas=[1], max_message_bytes="2000")

    async def scenario() -> None:
        async with producing(world) as producer:
            with pytest.raises(errors.MessageSizeTooLargeError):
                await producer.send_and_wait(topic, b"x" * 5000)
            assert (await producer.send_and_wait(topic, b"x" * 500)).offset == 0

    run(scenario)


def test_a_killed_leader_takes_nothing_with_it(world: World) -> None:
    topic = world.topic(partitions=3)
    victim = world.leader(topic)

    async def scenario() -> None:
        waits = []
        async with producing(world, enable_idempotence=True, linger_ms=2, retry_backoff_ms=50) as producer:
            for number in range(4000):
                waits.append(await producer.send(topic, b"%d" % number, partition=number % 3))
                if number == 1500:
                    await asyncio.to_thread(world.cluster.kill, victim)
            places = [(place.partition, place.offset) for place in await asyncio.gather(*waits)]
        found = {(one.partition, one.offset): int(one.value) for one in await read(world, topic, [0, 1, 2], 4000)}
        assert found == {place: number for number, place in enumerate(places)}, "nothing lost, nothing doubled"

    try:
        run(scenario)
    finally:
        world.cluster.start(victim)
        world.cluster.wait_until_ready()


def test_a_transaction_is_read_once_it_is_committed(world: World) -> None:
    topic = world.topic()

    async def scenario() -> None:
        bootstrap = world.cluster.bootstrap_servers
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=world.name("ai-txn"))
        await producer.start()
        async with producer.transaction():
            await producer.send_and_wait(topic, b"kept")
        with pytest.raises(ValueError, match="the application failed"):
            async with producer.transaction():
                await producer.send_and_wait(topic, b"dropped")
                raise ValueError("the application failed")
        async with producer.transaction():
            await producer.send_and_wait(topic, b"kept too")
        await producer.stop()
        consumer = AIOKafkaConsumer(
            topic, bootstrap_servers=bootstrap, isolation_level="read_committed", auto_offset_reset="earliest"
        )
        await consumer.start()
        assert [(await consumer.getone()).value for _ in range(2)] == [b"kept", b"kept too"]
        await consumer.stop()

    run(scenario)


def test_topics_are_created_listed_described_and_deleted(world: World) -> None:
    counted, placed = world.name("ai"), world.name("ai")

    async def scenario() -> None:
        async with administering(world) as admin:
            created = await admin.create_topics(
                [
                    NewTopic(counted, 4, 2, topic_configs={"retention.ms": "60000"}),
                    NewTopic(placed, -1, -1, replica_assignments={0: [2, 3], 1: [3, 1]}),
                ]
            )
            assert [error[:2] for error in created.topic_errors] == [(counted, 0), (placed, 0)]
            assert {counted, placed} <= set(await admin.list_topics())
            (described,) = await admin.describe_topics([placed])
            assert [(p["leader"], p["replicas"]) for p in described["partitions"]] == [(2, [2, 3]), (3, [3, 1])]
            (configs,) = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, counted)])
            (resource,) = configs.resources
            assert {entry[0]: entry[1] for entry in resource[4]}["retention.ms"] == "60000"
            cluster = await admin.describe_cluster()
            assert {broker["node_id"] for broker in cluster["brokers"]} == {1, 2, 3}
            deleted = await admin.delete_topics([counted, placed])
            assert {code for _, code in deleted.topic_error_codes} == {0}

    run(scenario)


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        (NewTopic("wrong", 0, 1), 37),
        (NewTopic("wrong", 1, 4), 38),
        (NewTopic("wrong", -1, -1, replica_assignments={0: [1, 1]}), 39),
        (NewTopic("wrong", 1, 1, topic_configs={"no.such": "1"}), 40),
        (NewTopic("no good", 1, 1), 17),
    ],
)
def test_topics_that_cannot_be_created(world: World, wrong: NewTopic, code: int) -> None:
    async def scenario() -> None:
        async with administering(world) as admin:
            answer = await admin.create_topics([wrong])
            assert [error[1] for error in answer.topic_errors] == [code]

    run(scenario)
