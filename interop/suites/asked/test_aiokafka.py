"""What aiokafka's own tests of consumer, producer and admin client ask of a broker, in our words."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.errors import (
    CommitFailedError,
    IllegalStateError,
    KafkaError,
    MessageSizeTooLargeError,
    OffsetOutOfRangeError,
    ProducerFenced,
    UnknownTopicOrPartitionError,
    for_code,
)
from aiokafka.structs import OffsetAndMetadata


@asynccontextmanager
async def producing(address: str, **more: Any) -> AsyncIterator[AIOKafkaProducer]:
    async with AIOKafkaProducer(bootstrap_servers=address, **more) as producer:
        yield producer


@asynccontextmanager
async def consuming(address: str, *topics: str, **more: Any) -> AsyncIterator[AIOKafkaConsumer]:
    options: dict[str, Any] = {"auto_offset_reset": "earliest", "heartbeat_interval_ms": 300, **more}
    async with AIOKafkaConsumer(*topics, bootstrap_servers=address, **options) as consumer:
        yield consumer


async def send(address: str, topic: str, count: int, partition: int = 0) -> list[bytes]:
    values = [b"%d" % number for number in range(count)]
    async with producing(address) as producer:
        waiting = [await producer.send(topic, value, partition=partition) for value in values]
        await asyncio.gather(*waiting)
    return values


async def take(consumer: AIOKafkaConsumer, count: int) -> list[bytes]:
    async def all_of_them() -> list[bytes]:
        return [(await consumer.getone()).value for _ in range(count)]

    return await asyncio.wait_for(all_of_them(), 30)


async def until(condition: Any, timeout_s: float = 30) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)


def run(coroutine: Any) -> Any:
    return asyncio.run(asyncio.wait_for(coroutine, 60))


@pytest.mark.parametrize("codec", [None, "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("idempotent", [False, True])
def test_every_codec(address: str, topic: str, codec: str | None, idempotent: bool) -> None:
    async def body() -> None:
        async with producing(address, compression_type=codec, enable_idempotence=idempotent) as producer:
            sent = [await producer.send(topic, b"x" * 1000, headers=[("h", b"v")], partition=0) for _ in range(50)]
            received = await asyncio.gather(*sent)
        assert [one.offset for one in received] == list(range(50))
        async with consuming(address, topic) as consumer:
            records = [await consumer.getone() for _ in range(50)]
        assert {(record.value, record.headers) for record in records} == {(b"x" * 1000, (("h", b"v"),))}

    run(body())


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_every_acks(address: str, topic: str, acks: Any) -> None:
    async def body() -> None:
        async with producing(address, acks=acks) as producer:
            for number in range(10):
                await producer.send_and_wait(topic, b"%d" % number, partition=0)
        async with consuming(address, topic) as consumer:
            assert await take(consumer, 10) == [b"%d" % number for number in range(10)]

    run(body())


def test_a_batch_made_by_hand(address: str, topic: str) -> None:
    async def body() -> None:
        async with producing(address) as producer:
            batch = producer.create_batch()
            for number in range(5):
                batch.append(key=None, value=b"%d" % number, timestamp=1_700_000_000_000 + number)
            sent = await producer.send_batch(batch, topic, partition=1)
            assert (await sent).offset == 0
        async with consuming(address, topic) as consumer:
            records = [await consumer.getone() for _ in range(5)]
        assert [record.timestamp - 1_700_000_000_000 for record in records] == list(range(5))

    run(body())


def test_log_append_time(address: str, name: str) -> None:
    async def body() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=address)
        await admin.start()
        await admin.create_topics(
            [NewTopic(name, 1, 1, topic_configs={"message.timestamp.type": "LogAppendTime"})], timeout_ms=5000
        )
        await admin.close()
        async with producing(address) as producer:
            received = await producer.send_and_wait(name, b"v", timestamp_ms=5)
        assert received.timestamp_type == 1 and received.timestamp > 5
        async with consuming(address, name) as consumer:
            record = await consumer.getone()
        assert (record.timestamp, record.timestamp_type) == (received.timestamp, 1)

    run(body())


def test_a_message_at_the_limit_and_one_beyond(address: str, name: str) -> None:
    async def body() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=address)
        await admin.start()
        await admin.create_topics([NewTopic(name, 1, 1, topic_configs={"max.message.bytes": "20000"})], timeout_ms=5000)
        await admin.close()
        async with producing(address, max_request_size=10**6) as producer:
            # room for the headers of batch and record
            await producer.send_and_wait(name, b"x" * (20000 - 100))
            with pytest.raises(MessageSizeTooLargeError):
                await producer.send_and_wait(name, b"x" * 20000)

    run(body())


def test_seek_position_beginning_and_end(address: str, topic: str) -> None:
    async def body() -> None:
        await send(address, topic, 20)
        place, other = TopicPartition(topic, 0), TopicPartition(topic, 1)
        async with consuming(address, group_id=None) as consumer:
            consumer.assign([place, other])
            assert await consumer.beginning_offsets([place, other]) == {place: 0, other: 0}
            assert await consumer.end_offsets([place, other]) == {place: 20, other: 0}
            consumer.seek(place, 15)
            assert await take(consumer, 5) == [b"15", b"16", b"17", b"18", b"19"]
            assert await consumer.position(place) == 20
            await consumer.seek_to_beginning(place)
            assert await take(consumer, 1) == [b"0"]
            await consumer.seek_to_end(place)
            assert await consumer.position(place) == 20
            assert consumer.highwater(place) == 20

    run(body())


def test_offsets_for_times(address: str, topic: str) -> None:
    async def body() -> None:
        place, other = TopicPartition(topic, 0), TopicPartition(topic, 1)
        begin_ms = 1_700_000_000_000
        async with producing(address) as producer:
            for number in range(3):
                await producer.send_and_wait(topic, b"v", partition=0, timestamp_ms=begin_ms + number * 10)
        async with consuming(address, group_id=None) as consumer:
            consumer.assign([place, other])
            found = await consumer.offsets_for_times({place: begin_ms + 1, other: begin_ms})
            assert (found[place].offset, found[place].timestamp, found[other]) == (1, begin_ms + 10, None)
            assert (await consumer.offsets_for_times({place: begin_ms + 21}))[place] is None
            assert (await consumer.offsets_for_times({place: 0}))[place].offset == 0

    run(body())


def test_an_offset_out_of_range(address: str, topic: str) -> None:
    async def body() -> None:
        await send(address, topic, 3)
        place = TopicPartition(topic, 0)
        async with consuming(address, group_id=None, auto_offset_reset="none") as consumer:
            consumer.assign([place])
            consumer.seek(place, 999)
            with pytest.raises(OffsetOutOfRangeError):
                await consumer.getone()
        async with consuming(address, group_id=None) as consumer:
            consumer.assign([place])
            consumer.seek(place, 999)
            assert await take(consumer, 3) == [b"0", b"1", b"2"]

    run(body())


def test_commits_carry_metadata_and_are_resumed(address: str, topic: str, name: str) -> None:
    async def body() -> None:
        await send(address, topic, 10)
        place = TopicPartition(topic, 0)
        async with consuming(address, topic, group_id=name, enable_auto_commit=False) as consumer:
            await take(consumer, 4)
            assert await consumer.committed(place) is None
            await consumer.commit({place: OffsetAndMetadata(4, "four")})
            assert await consumer.committed(place) == 4
        async with consuming(address, topic, group_id=name, enable_auto_commit=False) as consumer:
            assert await take(consumer, 1) == [b"4"]
            await consumer.seek_to_committed(place)
            assert await take(consumer, 1) == [b"4"]
        admin = AIOKafkaAdminClient(bootstrap_servers=address)
        await admin.start()
        assert await admin.list_consumer_group_offsets(name) == {place: OffsetAndMetadata(4, "four")}
        await admin.close()

    run(body())


def test_a_commit_of_one_who_left_its_generation_fails(address: str, topic: str, name: str) -> None:
    async def body() -> None:
        await send(address, topic, 10)
        async with consuming(address, topic, group_id=name, enable_auto_commit=False) as first:
            await take(first, 1)
            first._coordinator.member_id = "somebody-else"
            with pytest.raises((CommitFailedError, IllegalStateError)):
                await first.commit({TopicPartition(topic, 0): 1})

    run(body())


def test_pause_and_resume(address: str, topic: str) -> None:
    async def body() -> None:
        await send(address, topic, 5, 0)
        await send(address, topic, 5, 1)
        one, two = TopicPartition(topic, 0), TopicPartition(topic, 1)
        async with consuming(address, group_id=None) as consumer:
            consumer.assign([one, two])
            consumer.pause(one)
            assert {(await consumer.getone()).partition for _ in range(5)} == {1}
            assert await consumer.getmany(timeout_ms=300) == {}
            consumer.resume(one)
            assert {(await consumer.getone()).partition for _ in range(5)} == {0}

    run(body())


class Listener(ConsumerRebalanceListener):
    def __init__(self) -> None:
        self.assigned: list[set[int]] = []
        self.revoked: list[set[int]] = []

    async def on_partitions_revoked(self, revoked: Any) -> None:
        self.revoked.append({place.partition for place in revoked})

    async def on_partitions_assigned(self, assigned: Any) -> None:
        self.assigned.append({place.partition for place in assigned})


@pytest.mark.parametrize("sticky", [False, True])
def test_two_members_share_and_one_takes_over(address: str, topic: str, name: str, sticky: bool) -> None:
    async def body() -> None:
        await send(address, topic, 5)
        more: dict[str, Any] = {"partition_assignment_strategy": [StickyPartitionAssignor]} if sticky else {}
        first, second = Listener(), Listener()
        async with consuming(address, group_id=name, **more) as one:
            one.subscribe([topic], listener=first)
            await take(one, 5)
            assert first.assigned == [{0, 1}]
            async with consuming(address, group_id=name, **more) as two:
                two.subscribe([topic], listener=second)
                reading = [asyncio.create_task(each.getone()) for each in (one, two)]
                await until(lambda: len(one.assignment()) == len(two.assignment()) == 1)
                for task in reading:
                    task.cancel()
                await asyncio.gather(*reading, return_exceptions=True)
                assert one.assignment().isdisjoint(two.assignment())
            task = asyncio.create_task(one.getone())
            await until(lambda: len(one.assignment()) == 2)
            task.cancel()
        assert len(first.revoked) >= 2 and second.assigned[-1] in ({0}, {1})

    run(body())


def test_a_pattern_finds_a_topic_that_comes_later(address: str, name: str) -> None:
    async def body() -> None:
        async with producing(address) as producer:
            await producer.send_and_wait(f"{name}-a", b"a")
            async with consuming(address, group_id=name, metadata_max_age_ms=300) as consumer:
                consumer.subscribe(pattern=f"^{name}-.*")
                assert await take(consumer, 1) == [b"a"]
                await producer.send_and_wait(f"{name}-b", b"b")
                assert await take(consumer, 1) == [b"b"]
                assert {place.topic for place in consumer.assignment()} == {f"{name}-a", f"{name}-b"}

    run(body())


def test_read_committed_reads_what_is_not_transactional(address: str, topic: str) -> None:
    async def body() -> None:
        values = await send(address, topic, 10)
        async with consuming(address, topic, isolation_level="read_committed") as consumer:
            assert await take(consumer, 10) == values
            assert consumer.last_stable_offset(TopicPartition(topic, 0)) == 10

    run(body())


def test_static_members_come_back_without_a_rebalance(address: str, topic: str, name: str) -> None:
    async def body() -> None:
        await send(address, topic, 5)
        generations = []
        for _ in range(2):
            async with consuming(address, topic, group_id=name, group_instance_id="i-1") as consumer:
                await until(lambda consumer=consumer: consumer.assignment())
                generations.append(consumer._coordinator.generation)
        assert generations[0] == generations[1]

    run(body())


def test_admin_topics_partitions_and_configurations(address: str, name: str) -> None:
    async def body() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=address)
        await admin.start()
        made = await admin.create_topics([NewTopic(name, 1, 1)], timeout_ms=5000)
        assert made.topic_errors[0][:2] == (name, 0)
        again = await admin.create_topics([NewTopic(name, 1, 1)], timeout_ms=5000)
        assert again.topic_errors[0][1] == 36
        assert name in await admin.list_topics()
        more = await admin.create_partitions({name: NewPartitions(3)}, timeout_ms=5000)
        assert more.topic_errors[0][1] == 0
        described = await admin.describe_topics([name])
        assert len(described[0]["partitions"]) == 3
        resource = ConfigResource(ConfigResourceType.TOPIC, name, configs={"retention.ms": "70000"})
        (altered,) = await admin.alter_configs([resource])
        assert altered.resources[0][0] == 0
        asked = ConfigResource(ConfigResourceType.TOPIC, name)
        (found,) = await admin.describe_configs([asked])
        assert {entry[0]: entry[1] for entry in found.resources[0][4]}["retention.ms"] == "70000"
        gone = await admin.delete_topics([name], timeout_ms=5000)
        assert gone.topic_error_codes[0] == (name, 0)
        missing = await admin.delete_topics([name + "x"], timeout_ms=5000)
        assert for_code(missing.topic_error_codes[0][1]) is UnknownTopicOrPartitionError
        assert (await admin.describe_cluster())["brokers"]
        await admin.close()

    run(body())


def test_admin_groups_and_records(address: str, topic: str, name: str) -> None:
    async def body() -> None:
        await send(address, topic, 10)
        admin = AIOKafkaAdminClient(bootstrap_servers=address)
        await admin.start()
        async with consuming(address, topic, group_id=name) as consumer:
            await take(consumer, 10)
            await consumer.commit()
            assert name in {group[0] for group in await admin.list_consumer_groups()}
            (described,) = await admin.describe_consumer_groups([name])
            assert described.groups[0][1:3] == (name, "Stable")
        assert (await admin.list_consumer_group_offsets(name))[TopicPartition(topic, 0)].offset == 10
        coordinator = await admin.find_coordinator(name)
        assert coordinator == 0
        left = await admin.delete_records({TopicPartition(topic, 0): RecordsToDelete(before_offset=6)})
        assert left[TopicPartition(topic, 0)] == 6
        with pytest.raises(KafkaError):
            await admin.delete_records({TopicPartition(topic, 0): RecordsToDelete(before_offset=99)})
        await admin.close()

    run(body())


def test_transactions_are_read_once_committed(address: str, topic: str, name: str) -> None:
    async def body() -> None:
        async with producing(address, transactional_id=name) as producer:
            async with producer.transaction():
                await producer.send_and_wait(topic, b"committed", partition=0)
            with pytest.raises(ZeroDivisionError):
                async with producer.transaction():
                    await producer.send_and_wait(topic, b"aborted", partition=0)
                    raise ZeroDivisionError
            async with producer.transaction():
                pass  # empty
            async with producer.transaction():
                await producer.send_and_wait(topic, b"later", partition=0)
        async with consuming(address, topic, isolation_level="read_committed") as consumer:
            assert await take(consumer, 2) == [b"committed", b"later"]
        async with consuming(address, topic) as consumer:
            assert await take(consumer, 3) == [b"committed", b"aborted", b"later"]

    run(body())


def test_the_second_producer_of_a_transactional_id_fences_the_first(address: str, topic: str, name: str) -> None:
    async def body() -> None:
        async with producing(address, transactional_id=name) as first:
            await first.begin_transaction()
            await first.send_and_wait(topic, b"of the first", partition=0)
            async with producing(address, transactional_id=name) as second, second.transaction():
                await second.send_and_wait(topic, b"of the second", partition=0)
            with pytest.raises(ProducerFenced):
                await first.commit_transaction()
        async with consuming(address, topic, isolation_level="read_committed") as consumer:
            assert await take(consumer, 1) == [b"of the second"]

    run(body())


def test_offsets_are_committed_with_a_transaction_or_not_at_all(address: str, topic: str, name: str) -> None:
    async def body() -> None:
        place = TopicPartition(topic, 0)
        await send(address, topic, 3)
        async with producing(address, transactional_id=name) as producer:
            await producer.begin_transaction()
            await producer.send_offsets_to_transaction({place: 1}, name)
            await producer.commit_transaction()
            await producer.begin_transaction()
            await producer.send_offsets_to_transaction({place: 3}, name)
            await producer.abort_transaction()
        async with consuming(address, group_id=name) as consumer:
            consumer.assign([place])
            assert await take(consumer, 1) == [b"1"]

    run(body())
