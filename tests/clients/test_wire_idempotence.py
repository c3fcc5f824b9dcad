"""InitProducerId and idempotent batches, also over restarts and changes of leadership, as a stranger sees them."""

from __future__ import annotations

import time
from typing import Any

import pytest
from clients.test_wire_data import batch, end_offset, produce
from clients.wire_client import WireClient
from clients.world import World

NEW = {"producer_id": -1, "producer_epoch": -1}


def new_producer_id(world: World) -> int:
    answer = world.ask("init_producer_id", 4, transactional_id=None, transaction_timeout=60_000, **NEW)
    assert (answer.error_code.value, answer.producer_epoch) == (0, 0)
    producer_id: int = answer.producer_id
    return producer_id


class Producer:
    """Writes batches of given sequences to one partition, wherever its leader is."""

    def __init__(self, world: World, topic: str) -> None:
        self._world = world
        self.topic = topic
        self.id = new_producer_id(world)

    def write(self, sequence: int, count: int = 2, *, epoch: int = 0) -> tuple[str, int]:
        """(error, base offset); the leader is looked for until there is one."""
        # now: an old timestamp would let the producer expire (producer.id.expiration.ms), as on Apache Kafka
        now_ms = int(time.time() * 1000)
        records = batch(count, now_ms, producer_id=self.id, producer_epoch=epoch, base_sequence=sequence)
        answer = self._world.eventually(lambda: self._attempt(records))
        return answer.error_code.name, answer.base_offset

    def _attempt(self, records: bytes) -> Any:
        try:
            answer = produce(self._world, self.topic, records)
        except (OSError, ValueError):  # its leader is just gone, or there is none
            return None
        return None if answer.error_code.name in RETRIABLE else answer


RETRIABLE = {"not_leader_or_follower", "not_enough_replicas", "request_timed_out", "unknown_topic_or_partition"}


@pytest.fixture
def producer(world: World) -> Producer:
    return Producer(world, world.topic(replicas=[1]))


@pytest.mark.parametrize("version", range(6))
def test_every_init_gives_another_id(world: World, version: int) -> None:
    given = set()
    for broker in (1, 2, 3):
        with world.broker(broker) as wire_client:
            for _ in range(3):
                answer = wire_client.ask(
                    "init_producer_id", version, transactional_id=None, transaction_timeout=60_000, **NEW
                )
                assert (answer.error_code.value, answer.producer_epoch) == (0, 0)
                given.add(answer.producer_id)
    assert len(given) == 9
    assert min(given) >= 0


def test_one_of_the_last_five_batches_is_recognised_and_not_written_again(world: World, producer: Producer) -> None:
    for number in range(7):
        assert producer.write(2 * number) == ("none", 2 * number)
    for number in range(2, 7):
        assert producer.write(2 * number) == ("none", 2 * number)
    assert end_offset(world, producer.topic) == 14
    assert producer.write(0)[0] == "duplicate_sequence_number"
    assert producer.write(2)[0] == "duplicate_sequence_number"
    assert end_offset(world, producer.topic) == 14
    assert producer.write(14) == ("none", 14)


def test_a_gap_is_out_of_order(world: World, producer: Producer) -> None:
    assert producer.write(0) == ("none", 0)
    assert producer.write(3) == ("out_of_order_sequence_number", -1)
    assert producer.write(2) == ("none", 2)


def test_epochs_only_rise(world: World, producer: Producer) -> None:
    assert producer.write(0, epoch=0) == ("none", 0)
    assert producer.write(5, epoch=1)[0] == "out_of_order_sequence_number", "a new epoch begins at sequence 0"
    assert producer.write(0, epoch=1) == ("none", 2)
    assert producer.write(2, epoch=0)[0] == "invalid_producer_epoch"
    assert producer.write(2, epoch=1) == ("none", 4)


def test_a_sequence_follows_the_last_possible_one_at_0(producer: Producer) -> None:
    last = 2**31 - 1
    assert producer.write(last - 1, 2) == ("none", 0)
    assert producer.write(0, 2) == ("none", 2)
    assert producer.write(last - 1, 2) == ("none", 0)
    assert producer.write(2, 1) == ("none", 4)


def test_a_batch_across_the_last_sequence_is_one_batch(producer: Producer) -> None:
    last = 2**31 - 1
    assert producer.write(last, 3) == ("none", 0)
    assert producer.write(last, 3) == ("none", 0)
    assert producer.write(2, 1) == ("none", 3)


def test_producers_and_partitions_do_not_mix(world: World, producer: Producer) -> None:
    other = Producer(world, producer.topic)
    assert producer.write(0) == ("none", 0)
    assert other.write(0) == ("none", 2)
    assert producer.write(2) == ("none", 4)
    assert other.write(2) == ("none", 6)
    assert producer.write(0) == ("none", 0)


def test_a_repeat_while_the_original_waits_for_its_replicas_is_answered_with_it(world: World) -> None:
    topic = world.topic()
    producer_id = new_producer_id(world)
    records = batch(3, producer_id=producer_id, producer_epoch=0, base_sequence=0)
    body = [{"name": topic, "partition_data": [{"index": 0, "records": records}]}]
    with world.broker(world.leader(topic)) as wire_client:
        asked = [wire_client.send("produce", 9, acks=-1, timeout=15_000, topic_data=body) for _ in range(3)]
        answers = [wire_client.answer(one).responses[0].partition_responses[0] for one in asked]
    assert [(one.error_code.name, one.base_offset) for one in answers] == [("none", 0)] * 3
    assert end_offset(world, topic) == 3


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_producers_are_known_after_a_restart(world: World, end: str) -> None:
    producer = Producer(world, world.topic(replicas=[2]))
    for number in range(3):
        producer.write(2 * number)
    getattr(world.cluster, end)(2)
    world.cluster.start(2)
    world.cluster.wait_until_ready()
    assert producer.write(4) == ("none", 4), "the last batch is a repeat"
    assert producer.write(8)[0] == "out_of_order_sequence_number"
    assert producer.write(6) == ("none", 6)
    assert end_offset(world, producer.topic) == 8


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_producers_are_known_to_the_next_leader(world: World, end: str) -> None:
    producer = Producer(world, world.topic(replicas=[3, 1, 2]))
    for number in range(6):
        producer.write(2 * number)
    old = world.leader(producer.topic)
    try:
        getattr(world.cluster, end)(old)
        world.eventually(lambda: world.leader(producer.topic) not in (old, -1))
        assert producer.write(10) == ("none", 10)
        assert producer.write(4) == ("none", 4), "all of the last five are known, as the follower has seen them"
        assert producer.write(0)[0] == "duplicate_sequence_number"
        assert producer.write(14)[0] == "out_of_order_sequence_number"
        assert producer.write(12) == ("none", 12)
        stale = stale_fetch(world, producer.topic)
        assert stale == "fenced_leader_epoch"
        assert diverging(world, producer.topic) == (0, 12), "epoch 0 ends where the new leader began"
    finally:
        world.cluster.start(old)
        world.cluster.wait_until_ready()


def stale_fetch(world: World, topic: str) -> str:
    with world.broker(world.leader(topic)) as wire_client:
        name: str = _fetched(wire_client, topic, current_leader_epoch=0).error_code.name
        return name


def diverging(world: World, topic: str) -> tuple[int, int]:
    """What the leader says to somebody who has more of epoch 0 than it has."""
    with world.broker(world.leader(topic)) as wire_client:
        found = _fetched(wire_client, topic, fetch_offset=13, last_fetched_epoch=0).diverging_epoch
        return found.epoch, found.end_offset


def _fetched(wire_client: WireClient, topic: str, **partition: Any) -> Any:
    asked = [{"topic": topic, "partitions": [{"partition_max_bytes": 1000, **partition}]}]
    return wire_client.ask("fetch", 12, max_bytes=1000, topics=asked).responses[0].partitions[0]
