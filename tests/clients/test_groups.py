"""Consumer groups with strangers' clients over real sockets: subscribe, commit, resume, lose a member, administer."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AioTopicPartition
from clients.world import UNTOUCHED, World
from confluent_kafka import (
    Consumer,
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from kafka import KafkaAdminClient, KafkaConsumer
from kafka import TopicPartition as KafkaTopicPartition
from kafka.structs import OffsetAndMetadata

from heirlog.testing.cluster import Cluster

MEMBER = Path(__file__).with_name("group_member.py")
QUIET = {"log_level": 0}
WAIT_S = 60.0


@pytest.fixture(scope="module")
def groups() -> Iterator[World]:
    """A cluster of their own, on which the first rebalance of a group does not wait for more members."""
    with Cluster(nodes=3, config={**UNTOUCHED, "group.initial.rebalance.delay.ms": 200}) as cluster:
        yield World(cluster)


@pytest.fixture
def admin(groups: World) -> Any:
    return AdminClient({"bootstrap.servers": groups.cluster.bootstrap_servers, **QUIET})


class Member:
    """A consumer in a process of its own."""

    def __init__(self, world: World, group: str, topic: str, *config: str) -> None:
        command = [sys.executable, str(MEMBER), world.cluster.bootstrap_servers, group, topic, *config]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.assigned: list[int] = []
        self.assignments = 0
        self.records: list[tuple[int, int]] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Member:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            said = json.loads(line)
            if "assigned" in said:
                self.assigned, self.assignments = said["assigned"], self.assignments + 1
            if "revoked" in said:
                self.assigned = [partition for partition in self.assigned if partition not in said["revoked"]]
            self.records += [(partition, offset) for partition, offset in said.get("records", ())]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def leave(self) -> None:
        """Close the consumer, which leaves the group."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.process.wait(WAIT_S) == 0


def produce(world: World, topic: str, count: int, partitions: int) -> None:
    producer = Producer({"bootstrap.servers": world.cluster.bootstrap_servers, "acks": "all", **QUIET})
    problems: list[Any] = []
    for number in range(count):
        producer.produce(
            topic,
            b"v%d" % number,
            partition=number % partitions,
            on_delivery=lambda error, _: problems.append(error) if error else None,
        )
    assert producer.flush(WAIT_S) == 0
    assert problems == []


def consumer_of(world: World, group: str, **config: Any) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": world.cluster.bootstrap_servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 30_000,
            **QUIET,
            **{name.replace("_", "."): value for name, value in config.items()},
        }
    )


def read(consumer: Consumer, count: int, within_s: float = WAIT_S) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    deadline = time.monotonic() + within_s
    while len(found) < count:
        assert time.monotonic() < deadline, f"only {len(found)} of {count} records came"
        found += [(m.partition(), m.offset()) for m in consumer.consume(count, timeout=0.2) if m.error() is None]
    return found


def coordinator_of(world: World, group: str) -> int:
    answer = world.ask("find_coordinator", 4, key_type=0, coordinator_keys=[group])
    found: int = answer.coordinators[0].node_id
    return found


def described(admin: Any, group: str) -> Any:
    return admin.describe_consumer_groups([group])[group].result(WAIT_S)


# -- subscribe, commit, resume ----------------------------------------------------------------------------------------


def test_a_consumer_comes_back_where_it_committed(groups: World) -> None:
    topic, group = groups.topic(partitions=3), groups.name("g")
    produce(groups, topic, 90, 3)
    first = consumer_of(groups, group)
    first.subscribe([topic])
    seen = read(first, 90)
    assert sorted(seen) == [(index, offset) for index in range(3) for offset in range(30)]
    first.commit(offsets=[TopicPartition(topic, index, 10 * index, "as far as that") for index in range(3)])
    first.commit(
        offsets=[TopicPartition(topic, index, 10 * index, "as far as that") for index in range(3)],
        asynchronous=False,
    )
    first.close()

    again = consumer_of(groups, group)
    again.subscribe([topic])
    assert sorted(read(again, 60)) == [(index, offset) for index in range(3) for offset in range(10 * index, 30)]
    committed = again.committed([TopicPartition(topic, index) for index in range(3)], timeout=WAIT_S)
    assert [(one.offset, one.metadata) for one in committed] == [(10 * i, "as far as that") for i in range(3)]
    again.close()


def test_a_group_of_three_loses_a_member_and_reads_on(groups: World, admin: Any) -> None:
    topic, group = groups.topic(partitions=6), groups.name("g")
    with ExitStack() as stack:
        members = [stack.enter_context(Member(groups, group, topic)) for _ in range(3)]
        groups.eventually(lambda: sorted(len(member.assigned) for member in members) == [2, 2, 2], WAIT_S)
        assert sorted(p for member in members for p in member.assigned) == list(range(6))
        produce(groups, topic, 60, 6)
        groups.eventually(lambda: sum(len(member.records) for member in members) == 60, WAIT_S)
        members[0].kill()
        produce(groups, topic, 60, 6)
        rest = members[1:]
        groups.eventually(lambda: [len(member.assigned) for member in rest] == [3, 3], WAIT_S)
        whole = {(index, offset) for index in range(6) for offset in range(20)}
        groups.eventually(lambda: {place for member in members for place in member.records} == whole, WAIT_S)
        found = [place for member in members for place in member.records]
        assert len(found) == len(whole), "what was committed before the kill is not read again"
        members[1].leave()
        groups.eventually(lambda: members[2].assigned == list(range(6)), WAIT_S)
        assert len(described(admin, group).members) == 1


def test_a_static_member_comes_back_without_a_rebalance(groups: World, admin: Any) -> None:
    topic, group = groups.topic(partitions=4), groups.name("g")
    config = "session.timeout.ms=30000"
    with ExitStack() as stack:
        stays = stack.enter_context(Member(groups, group, topic, "group.instance.id=stays", config))
        goes = stack.enter_context(Member(groups, group, topic, "group.instance.id=goes", config))
        groups.eventually(lambda: sorted([len(stays.assigned), len(goes.assigned)]) == [2, 2], WAIT_S)
        before, assignments = goes.assigned, stays.assignments
        instances = sorted(member.group_instance_id for member in described(admin, group).members)
        assert instances == ["goes", "stays"]
        goes.kill()
        back = stack.enter_context(Member(groups, group, topic, "group.instance.id=goes", config))
        groups.eventually(lambda: back.assigned == before, WAIT_S)
        assert stays.assignments == assignments, "nobody else had to join again"


def test_the_coordinator_is_killed_and_the_group_goes_on(groups: World) -> None:
    topic, group = groups.topic(partitions=4), groups.name("g")
    with ExitStack() as stack:
        # nobody is to be thrown out meanwhile
        patient = "session.timeout.ms=30000"
        members = [stack.enter_context(Member(groups, group, topic, patient)) for _ in range(2)]
        groups.eventually(lambda: sorted(len(member.assigned) for member in members) == [2, 2], WAIT_S)
        produce(groups, topic, 40, 4)
        groups.eventually(lambda: sum(len(member.records) for member in members) == 40, WAIT_S)
        victim = coordinator_of(groups, group)
        groups.cluster.kill(victim)
        try:
            groups.eventually(lambda: coordinator_of(groups, group) not in (victim, -1), WAIT_S)
            produce(groups, topic, 40, 4)
            whole = {(index, offset) for index in range(4) for offset in range(20)}
            groups.eventually(lambda: {place for member in members for place in member.records} == whole, WAIT_S)
        finally:
            groups.cluster.start(victim)
            groups.cluster.wait_until_ready()
        for member in members:
            member.leave()
    after = consumer_of(groups, group)
    committed = after.committed([TopicPartition(topic, index) for index in range(4)], timeout=WAIT_S)
    assert [one.offset for one in committed] == [20] * 4, "commits outlive their coordinator"
    after.close()


def test_commits_outlive_a_restart_of_every_broker(groups: World) -> None:
    topic, group = groups.topic(partitions=2), groups.name("g")
    consumer = consumer_of(groups, group)
    consumer.assign([TopicPartition(topic, 0)])
    consumer.commit(offsets=[TopicPartition(topic, 0, 7), TopicPartition(topic, 1, 8)], asynchronous=False)
    consumer.close()
    for broker in groups.cluster.brokers:
        groups.cluster.stop(broker)
    for broker in groups.cluster.brokers:
        groups.cluster.start(broker)
    groups.cluster.wait_until_ready()
    consumer = consumer_of(groups, group)
    committed = consumer.committed([TopicPartition(topic, 0), TopicPartition(topic, 1)], timeout=WAIT_S)
    assert [one.offset for one in committed] == [7, 8]
    consumer.close()


# -- administration ---------------------------------------------------------------------------------------------------


def test_groups_are_listed_described_altered_and_deleted(groups: World, admin: Any) -> None:
    topic, group = groups.topic(partitions=2), groups.name("g")
    produce(groups, topic, 20, 2)
    consumer = consumer_of(groups, group, client_id="reader")
    consumer.subscribe([topic])
    read(consumer, 20)
    consumer.commit(asynchronous=False)

    listed = {one.group_id: one.state for one in admin.list_consumer_groups().result(WAIT_S).valid}
    assert listed[group] is ConsumerGroupState.STABLE
    only = admin.list_consumer_groups(states={ConsumerGroupState.EMPTY}).result(WAIT_S).valid
    assert group not in {one.group_id for one in only}
    found = described(admin, group)
    (member,) = found.members
    assert (found.state, member.client_id, found.partition_assignor) == (ConsumerGroupState.STABLE, "reader", "range")
    assert sorted(p.partition for p in member.assignment.topic_partitions) == [0, 1]
    with pytest.raises(KafkaException, match="NON_EMPTY_GROUP"):
        admin.delete_consumer_groups([group])[group].result(WAIT_S)

    consumer.close()
    assert described(admin, group).state is ConsumerGroupState.EMPTY
    moved = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, 3)])
    admin.alter_consumer_group_offsets([moved])[group].result(WAIT_S)
    offsets = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group].result(WAIT_S)
    assert sorted((one.partition, one.offset) for one in offsets.topic_partitions) == [(0, 3), (1, 10)]
    admin.delete_consumer_groups([group])[group].result(WAIT_S)
    assert group not in {one.group_id for one in admin.list_consumer_groups().result(WAIT_S).valid}
    offsets = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0)])])
    assert [one.offset for one in offsets[group].result(WAIT_S).topic_partitions] == [-1001]
    with pytest.raises(KafkaException, match="GROUP_ID_NOT_FOUND"):
        admin.delete_consumer_groups([group])[group].result(WAIT_S)


# -- kafka-python -----------------------------------------------------------------------------------------------------


def test_kafka_python_subscribes_commits_and_resumes(groups: World) -> None:
    topic, group = groups.topic(partitions=2), groups.name("g")
    bootstrap = groups.cluster.bootstrap_servers
    produce(groups, topic, 20, 2)
    config = {"bootstrap_servers": bootstrap, "group_id": group, "enable_auto_commit": False}

    def polled(consumer: Any, count: int) -> list[Any]:
        found: list[Any] = []
        deadline = time.monotonic() + WAIT_S
        while len(found) < count:
            assert time.monotonic() < deadline, f"only {len(found)} of {count} records came"
            found += [one for batch in consumer.poll(500).values() for one in batch]
        return found

    first = KafkaConsumer(topic, auto_offset_reset="earliest", **config)
    assert len(polled(first, 20)) == 20
    first.commit({KafkaTopicPartition(topic, 0): OffsetAndMetadata(4, "four", -1)})
    first.close()
    again = KafkaConsumer(topic, auto_offset_reset="earliest", **config)
    assert sorted((one.partition, one.offset) for one in polled(again, 16)) == sorted(
        [(0, offset) for offset in range(4, 10)] + [(1, offset) for offset in range(10)]
    )
    assert again.committed(KafkaTopicPartition(topic, 0)) == 4
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    description = admin.describe_groups([group])[group]
    assert (description["group_state"], len(description["members"])) == ("Stable", 1)
    again.close()
    offsets = admin.list_group_offsets({group: None})[group]
    assert {(p.topic, p.partition): value.offset for p, value in offsets.items()} == {(topic, 0): 4}
    admin.delete_groups([group])
    assert group not in [one["group_id"] for one in admin.list_groups()]
    admin.close()


# -- aiokafka ---------------------------------------------------------------------------------------------------------


def test_aiokafka_members_share_and_take_over(groups: World) -> None:
    topic, group = groups.topic(partitions=4), groups.name("g")
    produce(groups, topic, 40, 4)
    config: dict[str, Any] = {
        "bootstrap_servers": groups.cluster.bootstrap_servers,
        "group_id": group,
        "enable_auto_commit": False,
        "auto_offset_reset": "earliest",
        "session_timeout_ms": 30_000,
        "heartbeat_interval_ms": 200,
    }

    async def scenario() -> None:
        one, two = AIOKafkaConsumer(topic, **config), AIOKafkaConsumer(topic, **config)
        await one.start()
        await two.start()

        async def shared() -> None:
            while not len(one.assignment()) == len(two.assignment()) == 2:
                await asyncio.gather(one.getmany(timeout_ms=100), two.getmany(timeout_ms=100))

        await asyncio.wait_for(shared(), WAIT_S)
        mine = AioTopicPartition(topic, min(p.partition for p in one.assignment()))
        await one.commit({mine: (9, "nine")})
        await one.stop()

        async def taken_over() -> None:
            while len(two.assignment()) != 4:
                await two.getmany(timeout_ms=100)

        await asyncio.wait_for(taken_over(), WAIT_S)
        assert await two.committed(mine) == 9
        await two.stop()

    asyncio.run(asyncio.wait_for(scenario(), 2 * WAIT_S))
