"""Replicas moved between brokers, seen by a stranger: AlterPartitionReassignments, ListPartitionReassignments."""

from __future__ import annotations

from typing import Any

import pytest
from clients.world import World


def answer(world: World, version: int, topic: str, wanted: Any, forwarded: bool = True, **top: Any) -> Any:
    """What one partition is told; replicas None cancels."""
    ask = world.ask if forwarded else world.ask_controller
    partition = {"partition_index": 0, "replicas": wanted}
    got = ask(
        "alter_partition_reassignments",
        version,
        topics=[{"name": topic, "partitions": [partition]}],
        timeout=5000,
        **top,
    )
    assert got.error_code.value == 0, got
    (found,) = got.responses
    assert found.name == topic
    return found.partitions[0]


def code(*args: Any, **more: Any) -> str:
    name: str = answer(*args, **more).error_code.name
    return name


def listed(world: World, topics: Any = None, forwarded: bool = True) -> dict[tuple[str, int], Any]:
    ask = world.ask if forwarded else world.ask_controller
    got = ask("list_partition_reassignments", 0, topics=topics, timeout=5000)
    assert got.error_code.value == 0, got
    return {(topic.name, each.partition_index): each for topic in got.topics for each in topic.partitions}


def replicas(world: World, topic: str) -> tuple[tuple[int, ...], set[int]]:
    """In order, and who is in sync."""
    found = world.metadata(topic).partitions[0]
    return tuple(found.replica_nodes), set(found.isr_nodes)


@pytest.mark.parametrize("forwarded", [True, False])
@pytest.mark.parametrize("version", range(2))
def test_a_partition_moves_and_keeps_its_records(world: World, version: int, forwarded: bool) -> None:
    topic = world.topic(replicas=[1, 2])
    assert code(world, version, topic, [3, 2], forwarded) == "none"
    world.eventually(lambda: replicas(world, topic) == ((3, 2), {2, 3}))
    world.eventually(lambda: world.leader(topic) in (2, 3))
    assert (topic, 0) not in listed(world, forwarded=forwarded)
    # more and fewer replicas than before
    assert code(world, version, topic, [3, 2, 1], forwarded) == "none"
    world.eventually(lambda: replicas(world, topic) == ((3, 2, 1), {1, 2, 3}))
    assert code(world, version, topic, [3], forwarded) == "none"
    world.eventually(lambda: replicas(world, topic) == ((3,), {3}))


@pytest.mark.parametrize("version", range(2))
def test_what_cannot_be_reassigned_is_refused_alone(world: World, version: int) -> None:
    topic = world.topic(replicas=[1, 2])
    assert code(world, version, "nowhere", [1]) == "unknown_topic_or_partition"
    assert code(world, version, topic, [1, 9]) == "invalid_replica_assignment"
    assert code(world, version, topic, [1, 1]) == "invalid_replica_assignment"
    assert code(world, version, topic, []) == "invalid_replica_assignment"
    assert code(world, version, topic, None) == "no_reassignment_in_progress"
    assert replicas(world, topic)[0] == (1, 2)
    both = world.ask(
        "alter_partition_reassignments",
        version,
        topics=[
            {
                "name": topic,
                "partitions": [{"partition_index": 0, "replicas": [2, 1]}, {"partition_index": 1, "replicas": [1]}],
            }
        ],
        timeout=5000,
    )
    assert [each.error_code.name for each in both.responses[0].partitions] == ["none", "unknown_topic_or_partition"]
    world.eventually(lambda: replicas(world, topic)[0] == (2, 1))


def test_a_factor_that_may_not_change_does_not(world: World) -> None:
    topic = world.topic(replicas=[1, 2])
    refused = answer(world, 1, topic, [1, 2, 3], allow_replication_factor_change=False)
    assert refused.error_code.name == "invalid_replication_factor" and refused.error_message
    assert code(world, 1, topic, [3, 2], allow_replication_factor_change=False) == "none"
    world.eventually(lambda: replicas(world, topic)[0] == (3, 2))


@pytest.mark.parametrize("forwarded", [True, False])
def test_an_empty_list_asks_for_no_reassignment(world: World, forwarded: bool) -> None:
    topic = world.topic(replicas=[1, 2])
    assert listed(world, [], forwarded) == {}
    assert listed(world, [{"name": topic, "partition_indexes": [0, 7]}], forwarded) == {}
    assert listed(world, [{"name": "nowhere", "partition_indexes": [0]}], forwarded) == {}
