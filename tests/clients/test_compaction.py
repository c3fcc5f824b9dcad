"""Compacted topics as strangers' clients see them: kafka-python, aiokafka and librdkafka read what the cleaner left.

Segments are small (internal.segment.bytes) and the cleaner does not rest for long, so that a few hundred records are
enough for several passes.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from clients.librdkafka_session import read_partitions
from clients.world import UNTOUCHED, WAIT_S, World
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from heirlog.protocol.batch import encode_batch
from heirlog.testing.cluster import Cluster

Records = list[tuple[int, bytes, bytes | None]]
"""(offset, key, value) in the order of the log."""

KEYS = 20
COMPACTED = {
    "cleanup_policy": "compact",
    "internal_segment_bytes": "2000",
    "min_cleanable_dirty_ratio": "0.01",
    "file_delete_delay_ms": "100",
    "min_insync_replicas": "1",
}


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with Cluster(nodes=3, config={**UNTOUCHED, "log.cleaner.backoff.ms": 100}) as cluster:
        yield World(cluster)
        for node in cluster.node_ids:
            assert "request-failed" not in cluster.output(node)


def produce(world: World, topic: str, rounds: int, **options: Any) -> dict[bytes, bytes]:
    """Every key once in each round; the last values."""
    producer = KafkaProducer(bootstrap_servers=world.cluster.bootstrap_servers, acks="all", **options)
    last = {}
    for number in range(rounds):
        for key in range(KEYS):
            last[b"k%d" % key] = b"%d:" % number + b"x" * 50
            producer.send(topic, key=b"k%d" % key, value=last[b"k%d" % key], partition=0)
        producer.flush()
    producer.close()
    return last


def roll(world: World, topic: str) -> None:
    """Fill the active segment, so that what came before it may be compacted."""
    producer = KafkaProducer(bootstrap_servers=world.cluster.bootstrap_servers, acks="all")
    for number in range(3):
        producer.send(topic, key=b"roll", value=b"%d" % number * 1500, partition=0).get(WAIT_S)
    producer.close()


def bytes_on(world: World, broker: int, topic: str) -> int:
    """Of all segments; they come and go while we look."""
    (directory,) = world.cluster.data.glob(f"broker-{broker}/**/{topic}-0")
    size = 0
    for path in directory.glob("*.log"):
        try:
            size += path.stat().st_size
        except FileNotFoundError:
            return sys.maxsize
    return size


def compacted_on(world: World, broker: int, topic: str, below: int) -> None:
    world.eventually(lambda: bytes_on(world, broker, topic) < below)


def read_between_passes(world: World, topic: str, read_with_another: Callable[[], Records]) -> tuple[Records, Records]:
    """What we and another client read while the cleaner changed nothing: our reads before and after are the same.

    A log has only so many records to remove, so the passes that change something come to an end.
    """
    for _ in range(10):
        before, other, after = read(world, topic), read_with_another(), read(world, topic)
        if before == after:
            return after, other
    raise AssertionError(f"{topic} changed between all of ten reads")


def read(world: World, topic: str) -> Records:
    consumer = KafkaConsumer(bootstrap_servers=world.cluster.bootstrap_servers, group_id=None, auto_offset_reset="none")
    at = TopicPartition(topic, 0)
    consumer.assign([at])
    consumer.seek(at, 0)
    end = consumer.end_offsets([at])[at]
    found: Records = []
    deadline = time.monotonic() + WAIT_S
    while consumer.position(at) < end:
        assert time.monotonic() < deadline, f"stuck at {consumer.position(at)} of {end}"
        for messages in consumer.poll(500).values():
            found += [(m.offset, m.key, m.value) for m in messages]
    consumer.close()
    return found


async def read_with_aiokafka(world: World, topic: str) -> Records:
    import aiokafka

    consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=world.cluster.bootstrap_servers)
    await consumer.start()
    at = aiokafka.TopicPartition(topic, 0)
    consumer.assign([at])
    consumer.seek(at, 0)
    end = (await consumer.end_offsets([at]))[at]
    found: Records = []
    deadline = time.monotonic() + WAIT_S
    while await consumer.position(at) < end:
        assert time.monotonic() < deadline
        for messages in (await consumer.getmany(timeout_ms=500)).values():
            found += [(m.offset, m.key, m.value) for m in messages]
    await consumer.stop()
    return found


@pytest.mark.parametrize("codec", [None, "gzip", "snappy", "lz4", "zstd"])
def test_every_client_reads_the_last_value_of_each_key(world: World, codec: str | None) -> None:
    topic = world.topic(**COMPACTED)
    idempotent = codec in (None, "zstd")
    last = produce(world, topic, 15, compression_type=codec, enable_idempotence=idempotent, batch_size=700)
    roll(world, topic)
    for broker in world.cluster.brokers:
        compacted_on(world, broker, topic, 9000)
    # what is compressed is so small before the first pass already
    world.eventually(lambda: len([1 for _, key, _ in read(world, topic) if key != b"roll"]) < 3 * KEYS)

    def with_aiokafka() -> Records:
        return asyncio.run(read_with_aiokafka(world, topic))

    def with_librdkafka() -> Records:
        return read_partitions(world.cluster.bootstrap_servers, topic, [0])[0]

    for read_with_another in (with_aiokafka, with_librdkafka):
        found, other = read_between_passes(world, topic, read_with_another)
        assert other == found
    values = {key: value for _, key, value in found}
    assert {key: values[key] for key in last} == last
    assert [offset for offset, _, _ in found] == sorted({offset for offset, _, _ in found})


def test_a_tombstone_goes_after_delete_retention(world: World) -> None:
    topic = world.topic(**COMPACTED, delete_retention_ms="0")
    producer = KafkaProducer(bootstrap_servers=world.cluster.bootstrap_servers, acks="all")
    producer.send(topic, key=b"gone", value=b"1", partition=0).get(WAIT_S)
    producer.send(topic, key=b"gone", value=None, partition=0).get(WAIT_S)

    def is_gone() -> bool:
        roll(world, topic)
        return all(key != b"gone" for _, key, _ in read(world, topic))

    producer.send(topic, key=b"stays", value=b"1", partition=0).get(WAIT_S)
    producer.close()
    world.eventually(is_gone)
    assert {key for _, key, _ in read(world, topic)} == {b"stays", b"roll"}


def test_a_record_without_key_is_refused_and_named(world: World) -> None:
    topic = world.topic(**COMPACTED)
    now_ms = int(time.time() * 1000)
    records = bytes(encode_batch([(b"a", b"1", (), now_ms), (None, b"2", (), now_ms)], compression=1))
    answer = world.ask_leader(
        topic,
        "produce",
        9,
        acks=-1,
        timeout=20_000,
        topic_data=[{"name": topic, "partition_data": [{"index": 0, "records": records}]}],
    )
    (refused,) = answer.responses[0].partition_responses
    assert refused.error_code.name == "invalid_record" and [e.batch_index for e in refused.record_errors] == [1]
    assert "key" in refused.error_message
    assert read(world, topic) == []


def test_a_follower_that_was_away_copies_a_compacted_log_and_leads_with_it(world: World) -> None:
    topic = world.topic(**COMPACTED, replicas=[1, 2])
    produce(world, topic, 5, batch_size=700)
    other = 2 if world.leader(topic) == 1 else 1
    world.cluster.stop(other)
    last = produce(world, topic, 15, batch_size=700)
    roll(world, topic)
    leader = world.leader(topic)
    compacted_on(world, leader, topic, 9000)
    found = read(world, topic)
    world.cluster.start(other)
    world.cluster.wait_until_ready()
    world.eventually(lambda: len(world.metadata(topic).partitions[0].isr_nodes) == 2)
    checkpoint = next(world.cluster.data.glob(f"broker-{leader}/**/cleaner-offset-checkpoint"))
    # the checkpoint follows the segments
    world.eventually(lambda: clean_offset(checkpoint, topic) > 300)
    world.cluster.stop(leader)
    world.eventually(lambda: world.leader(topic) == other)
    values = {key: value for _, key, value in read(world, topic)}
    assert {key: values[key] for key in last} == last and values == {key: value for _, key, value in found}
    world.cluster.start(leader)
    world.cluster.wait_until_ready()
    world.eventually(lambda: len(world.metadata(topic).partitions[0].isr_nodes) == 2)


def clean_offset(checkpoint: Path, topic: str) -> int:
    return max((int(line.split()[2]) for line in checkpoint.read_text().splitlines() if topic in line), default=-1)


def test_a_broker_killed_and_cut_off_from_power_while_it_compacts_keeps_every_last_value(world: World) -> None:
    topic = world.topic(**COMPACTED, replicas=[3, 1])
    for number in range(3):
        last = produce(world, topic, 8, batch_size=700)
        roll(world, topic)
        world.cluster.kill(3)
        world.cluster.lose_unflushed(3, seed=number)
        world.eventually(lambda: world.metadata(topic).partitions[0].isr_nodes == (1,))
        world.cluster.start(3)
        world.cluster.wait_until_ready()
        world.eventually(lambda: len(world.metadata(topic).partitions[0].isr_nodes) == 2)
    world.cluster.stop(1)
    world.eventually(lambda: world.leader(topic) == 3)
    values = {key: value for _, key, value in read(world, topic)}
    assert {key: values[key] for key in last} == last
    world.cluster.start(1)
    world.cluster.wait_until_ready()
