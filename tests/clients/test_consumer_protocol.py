"""Groups of the consumer protocol (KIP-848) with librdkafka; `test_groups.py` has the classic ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from clients.test_groups import QUIET, WAIT_S, Member, coordinator_of, described, produce
from clients.world import UNTOUCHED, World
from confluent_kafka import Consumer, ConsumerGroupState, ConsumerGroupType, TopicPartition
from confluent_kafka.admin import AdminClient

from heirlog.testing.cluster import Cluster

CONSUMER = "group.protocol=consumer"


@pytest.fixture(scope="module")
def groups() -> Iterator[World]:
    """A cluster whose members send heartbeats often, so that partitions move quickly."""
    quick = {
        "group.consumer.min.heartbeat.interval.ms": 100,
        "group.consumer.heartbeat.interval.ms": 200,
        "group.consumer.min.session.timeout.ms": 1000,
        "group.consumer.session.timeout.ms": 6000,
    }
    with Cluster(nodes=3, config={**UNTOUCHED, **quick}) as cluster:
        yield World(cluster)
        for node in cluster.node_ids:
            assert "request-failed" not in cluster.output(node)


@pytest.fixture
def admin(groups: World) -> Any:
    return AdminClient({"bootstrap.servers": groups.cluster.bootstrap_servers, **QUIET})


def test_members_join_leave_and_are_killed_and_every_record_is_read_once(groups: World, admin: Any) -> None:
    topic, group = groups.topic(partitions=6), groups.name("g")
    produce(groups, topic, 60, 6)
    with ExitStack() as stack:
        members = [stack.enter_context(Member(groups, group, topic, CONSUMER)) for _ in range(3)]
        groups.eventually(lambda: sorted(len(member.assigned) for member in members) == [2, 2, 2], WAIT_S)
        assert sorted(p for member in members for p in member.assigned) == list(range(6))
        groups.eventually(lambda: sum(len(member.records) for member in members) == 60, WAIT_S)
        found = described(admin, group)
        assert (found.type, found.state, len(found.members)) == (
            ConsumerGroupType.CONSUMER,
            ConsumerGroupState.STABLE,
            3,
        )
        kept = [member.assigned for member in members[1:]]
        members[0].kill()
        groups.eventually(lambda: [len(member.assigned) for member in members[1:]] == [3, 3], WAIT_S)
        assert all(set(had) <= set(member.assigned) for had, member in zip(kept, members[1:], strict=True))
        produce(groups, topic, 60, 6)
        whole = {(index, offset) for index in range(6) for offset in range(20)}
        groups.eventually(lambda: {place for member in members for place in member.records} == whole, WAIT_S)
        assert sum(len(member.records) for member in members) == len(whole), "nothing that was committed is read again"
        members[1].leave()
        groups.eventually(lambda: members[2].assigned == list(range(6)), WAIT_S)


def test_a_static_member_comes_back_to_its_partitions(groups: World) -> None:
    topic, group = groups.topic(partitions=4), groups.name("g")
    with ExitStack() as stack:
        stays = stack.enter_context(Member(groups, group, topic, "group.instance.id=stays", CONSUMER))
        goes = stack.enter_context(Member(groups, group, topic, "group.instance.id=goes", CONSUMER))
        groups.eventually(lambda: sorted([len(stays.assigned), len(goes.assigned)]) == [2, 2], WAIT_S)
        before, assignments = goes.assigned, stays.assignments
        goes.leave()
        back = stack.enter_context(Member(groups, group, topic, "group.instance.id=goes", CONSUMER))
        groups.eventually(lambda: back.assigned == before, WAIT_S)
        assert stays.assignments == assignments, "no other member noticed"


def test_the_coordinator_is_killed_and_members_keep_their_partitions(groups: World) -> None:
    topic, group = groups.topic(partitions=4), groups.name("g")
    with ExitStack() as stack:
        members = [stack.enter_context(Member(groups, group, topic, CONSUMER)) for _ in range(2)]
        groups.eventually(lambda: sorted(len(member.assigned) for member in members) == [2, 2], WAIT_S)
        produce(groups, topic, 40, 4)
        groups.eventually(lambda: sum(len(member.records) for member in members) == 40, WAIT_S)
        had = [member.assigned for member in members]
        victim = coordinator_of(groups, group)
        groups.cluster.kill(victim)
        try:
            groups.eventually(lambda: coordinator_of(groups, group) not in (victim, -1), WAIT_S)
            produce(groups, topic, 40, 4)
            whole = {(index, offset) for index in range(4) for offset in range(20)}
            groups.eventually(lambda: {place for member in members for place in member.records} == whole, WAIT_S)
            assert [member.assigned for member in members] == had
        finally:
            groups.cluster.start(victim)
            groups.cluster.wait_until_ready()
        for member in members:
            member.leave()
    after = Consumer({"bootstrap.servers": groups.cluster.bootstrap_servers, "group.id": group, **QUIET})
    committed = after.committed([TopicPartition(topic, index) for index in range(4)], timeout=WAIT_S)
    assert [one.offset for one in committed] == [20] * 4
    after.close()


def test_a_group_is_upgraded_and_downgraded_while_its_members_read(groups: World, admin: Any) -> None:
    topic, group = groups.topic(partitions=4), groups.name("g")
    with ExitStack() as stack:
        old = [stack.enter_context(Member(groups, group, topic)) for _ in range(2)]
        groups.eventually(lambda: sorted(len(member.assigned) for member in old) == [2, 2], WAIT_S)
        produce(groups, topic, 40, 4)
        groups.eventually(lambda: sum(len(member.records) for member in old) == 40, WAIT_S)
        new = stack.enter_context(Member(groups, group, topic, CONSUMER))
        groups.eventually(lambda: sorted(len(member.assigned) for member in (*old, new)) == [1, 1, 2], WAIT_S)
        assert sorted(p for member in (*old, new) for p in member.assigned) == list(range(4))
        assert described(admin, group).type is ConsumerGroupType.CONSUMER
        old[0].leave()
        groups.eventually(lambda: sorted([len(old[1].assigned), len(new.assigned)]) == [2, 2], WAIT_S)
        new.leave()
        groups.eventually(lambda: old[1].assigned == list(range(4)), WAIT_S)
        produce(groups, topic, 40, 4)
        whole = {(index, offset) for index in range(4) for offset in range(20)}
        members = (*old, new)
        groups.eventually(lambda: {place for member in members for place in member.records} == whole, WAIT_S)
        found = described(admin, group)
        assert found.type is ConsumerGroupType.CLASSIC and len(found.members) == 1


def test_a_pattern_finds_topics_that_are_created_later(groups: World) -> None:
    prefix, group = groups.name("pattern"), groups.name("g")
    topic = groups.topic(partitions=2)
    with Member(groups, group, f"^({prefix}.*|{topic})", CONSUMER) as member:
        groups.eventually(lambda: member.assigned == [0, 1], WAIT_S)
        produce(groups, topic, 10, 2)
        groups.eventually(lambda: len(member.records) == 10, WAIT_S)
