"""Reassignments: started, replaced, completed, cancelled, listed."""

from __future__ import annotations

from typing import Any

import pytest
from controller.cluster import alter, create, heartbeat, leading, state_of
from controller.fakes import Harness

from heirlog.metadata.apply import apply, apply_all
from heirlog.metadata.basis import Basis
from heirlog.metadata.state import RECOVERING
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import (
    AlterPartitionReassignmentsRequest,
    CreateTopicsRequest,
    ListPartitionReassignmentsRequest,
)
from heirlog.protocol.records import PartitionChangeRecord

Topics = ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics


def listed(harness: Harness, topics: list[Any] | None) -> list[tuple[str, int, list[int], list[int], list[int]]]:
    request = ListPartitionReassignmentsRequest(topics=topics)
    return [
        (topic.name, found.partition_index, found.replicas, found.adding_replicas, found.removing_replicas)
        for topic in harness.ask("list_partition_reassignments", request, 0).topics
        for found in topic.partitions
    ]


def test_only_partitions_with_adding_or_removing_replicas_are_listed() -> None:
    harness = leading(brokers=4)
    create(harness, "rests")
    create(harness, "moves", 3)
    image = harness.controller.image
    moving = PartitionChangeRecord(
        topic_id=image.topic_ids["moves"], partition_id=1, replicas=[1, 2, 3, 4], adding_replicas=[4]
    )
    leaving = PartitionChangeRecord(topic_id=image.topic_ids["moves"], partition_id=2, removing_replicas=[1])
    apply_all(image, [moving, leaving], image.offset + 1, image.epoch)
    replicas = list(image.partitions[image.topic_ids["moves"]][2].replicas)
    both = [("moves", 1, [1, 2, 3, 4], [4], []), ("moves", 2, replicas, [], [1])]
    assert listed(harness, None) == both
    asked = [Topics(name="moves", partition_indexes=[0, 2, 9]), Topics(name="nowhere", partition_indexes=[0])]
    assert listed(harness, asked) == both[1:]
    assert listed(harness, []) == []


def reassign(
    harness: Harness, replicas: list[int] | None, topic: str = "foo", partition: int = 0, free: bool = True
) -> str:
    """The partition's error."""
    asked = AlterPartitionReassignmentsRequest.ReassignablePartition(partition_index=partition, replicas=replicas)
    request = AlterPartitionReassignmentsRequest(
        allow_replication_factor_change=free,
        topics=[AlterPartitionReassignmentsRequest.ReassignableTopic(name=topic, partitions=[asked])],
    )
    (result,) = harness.ask("alter_partition_reassignments", request, 1).responses[0].partitions
    return ErrorCode(result.error_code).name


@pytest.mark.parametrize("free", [True, False])
def test_an_answer_about_nothing_does_not_repeat_what_the_request_allows(free: bool) -> None:
    request = AlterPartitionReassignmentsRequest(allow_replication_factor_change=free, topics=[])
    answer = leading().ask("alter_partition_reassignments", request, 1)
    assert answer.allow_replication_factor_change is True


def born(harness: Harness, replicas: list[int], **configs: str) -> None:
    assignment = CreateTopicsRequest.CreatableReplicaAssignment(partition_index=0, broker_ids=replicas)
    configured = [
        CreateTopicsRequest.CreatableTopicConfig(name=name.replace("_", "."), value=value)
        for name, value in configs.items()
    ]
    topic = CreateTopicsRequest.CreatableTopic(
        name="foo", num_partitions=-1, replication_factor=-1, assignments=[assignment], configs=configured
    )
    (result,) = harness.ask("create_topics", CreateTopicsRequest(topics=[topic]), 7).topics
    assert result.error_code == 0


def test_a_reassignment_starts_runs_and_completes() -> None:
    harness = leading(brokers=5)
    born(harness, [1, 2, 3])
    assert reassign(harness, [5, 4, 3]) == "NONE"
    state = state_of(harness)
    assert (state.replicas, state.adding, state.removing, state.isr) == ((5, 4, 3, 1, 2), (4, 5), (1, 2), (1, 2, 3))
    alter(harness, [1, 2, 3, 4])
    assert state_of(harness).is_reassigning
    answer = alter(harness, [1, 2, 3, 4, 5])
    assert answer.error_code == ErrorCode.NEW_LEADER_ELECTED
    state = state_of(harness)
    assert (state.replicas, state.isr, state.is_reassigning) == ((5, 4, 3), (3, 4, 5), False)
    assert state.leader == 5 and state.leader_epoch == 1


def test_a_reassignment_does_not_complete_below_min_isr() -> None:
    harness = leading(brokers=4)
    born(harness, [1, 2, 3], min_insync_replicas="2")
    alter(harness, [1])
    reassign(harness, [4, 2])
    alter(harness, [1, 4])
    assert state_of(harness).is_reassigning
    alter(harness, [1, 2, 4])
    state = state_of(harness)
    assert (state.replicas, state.isr, state.elr) == ((4, 2), (2, 4), ())


def test_a_cancelled_reassignment_goes_back_to_the_original_replicas() -> None:
    harness = leading(brokers=4)
    born(harness, [1, 2, 3], min_insync_replicas="2")
    assert reassign(harness, None) == "NO_REASSIGNMENT_IN_PROGRESS"
    reassign(harness, [4, 1, 2])
    alter(harness, [1, 2, 3])
    assert reassign(harness, None) == "NONE"
    state = state_of(harness)
    assert (state.replicas, state.isr, state.is_reassigning) == ((1, 2, 3), (1, 2, 3), False)


def test_a_cancellation_waits_for_min_isr_without_the_adding_replicas() -> None:
    harness = leading(brokers=4)
    born(harness, [1, 2], min_insync_replicas="2")
    reassign(harness, [4, 3])
    alter(harness, [1, 4])
    assert reassign(harness, None) == "INVALID_REPLICA_ASSIGNMENT"
    alter(harness, [1, 2, 4])
    assert reassign(harness, None) == "NONE"
    assert state_of(harness).isr == (1, 2)


def test_an_unclean_cancellation_needs_the_topics_leave_and_says_recovering() -> None:
    for manager, allowed, error in (
        ("false", "false", "INVALID_REPLICA_ASSIGNMENT"),
        ("false", "true", "NONE"),
        ("true", "false", "INVALID_REPLICA_ASSIGNMENT"),
        ("true", "true", "NONE"),
    ):
        harness = leading(brokers=3, unclean_recovery_manager_enabled=manager)
        born(harness, [1, 2], unclean_leader_election_enable=allowed)
        reassign(harness, [3])
        heartbeat(harness, 2, want_fence=True)
        # 2 has stopped, 1 went away after 3 had caught up
        image = harness.controller.image
        moved = PartitionChangeRecord(topic_id=image.topic_ids["foo"], partition_id=0, isr=[3], leader=3)
        apply(image, moved, image.offset, image.epoch)
        assert reassign(harness, None) == error
        state = state_of(harness)
        if error == "NONE":
            assert (state.replicas, state.isr, state.leader) == ((1, 2), (1,), 1)
            assert state.leader_recovery_state == RECOVERING
            assert harness.controller.elections[Basis.UNCLEAN] == 1
        else:
            assert state.replicas == (3, 1, 2)


def test_a_reassignment_is_replaced_by_another_and_by_the_way_back() -> None:
    harness = leading(brokers=5)
    born(harness, [1, 2, 3])
    reassign(harness, [1, 2, 4])
    assert reassign(harness, [1, 2, 5]) == "NONE"
    state = state_of(harness)
    assert (state.replicas, state.adding, state.removing) == ((1, 2, 5, 3, 4), (5,), (3, 4))
    reassign(harness, [1, 2, 3])
    state = state_of(harness)
    assert (state.replicas, state.isr, state.is_reassigning) == ((1, 2, 3), (1, 2, 3), False)


def test_bad_targets_are_refused() -> None:
    harness = leading(brokers=3)
    born(harness, [1, 2])
    before = state_of(harness)
    for targets in ([], [1, 1], [1, 9]):
        assert reassign(harness, targets) == "INVALID_REPLICA_ASSIGNMENT"
    assert reassign(harness, [1, 2, 3], free=False) == "INVALID_REPLICATION_FACTOR"
    assert reassign(harness, [1], topic="bar") == "UNKNOWN_TOPIC_OR_PARTITION"
    assert reassign(harness, [1], partition=7) == "UNKNOWN_TOPIC_OR_PARTITION"
    assert state_of(harness) == before
    assert reassign(harness, [2, 1], free=False) == "NONE"
    assert state_of(harness).replicas == (2, 1)
