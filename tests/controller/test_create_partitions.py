"""More partitions for a topic: counts, assignments, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from controller.cluster import create, heartbeat, leading, register, state_of
from controller.fakes import Harness

from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import CreatePartitionsRequest
from heirlog.protocol.records import PartitionRecord


def grow(harness: Harness, count: int, assignments: list[list[int]] | None = None, topic: str = "foo") -> Any:
    (result,) = harness.ask("create_partitions", request((topic, count, assignments))).results
    return result


def request(*topics: tuple[str, int, list[list[int]] | None], **more: Any) -> CreatePartitionsRequest:
    return CreatePartitionsRequest(
        topics=[
            CreatePartitionsRequest.CreatePartitionsTopic(
                name=name,
                count=count,
                assignments=None
                if assignments is None
                else [
                    CreatePartitionsRequest.CreatePartitionsAssignment(broker_ids=replicas) for replicas in assignments
                ],
            )
            for name, count, assignments in topics
        ],
        **more,
    )


@pytest.fixture
def harness() -> Harness:
    """Brokers 1 to 3, and a topic foo of two partitions with two replicas each."""
    harness = leading()
    create(harness, partitions=2, factor=2)
    return harness


def partitions(harness: Harness, topic: str = "foo") -> list[int]:
    image = harness.controller.image
    return sorted(image.partitions[image.topic_ids[topic]])


def test_new_partitions_are_placed_like_those_of_a_new_topic(harness: Harness) -> None:
    before = [state_of(harness, partition=index) for index in (0, 1)]
    assert grow(harness, 5).error_code == ErrorCode.NONE
    assert partitions(harness) == [0, 1, 2, 3, 4]
    assert [state_of(harness, partition=index) for index in (0, 1)] == before
    for index in (2, 3, 4):
        state = state_of(harness, partition=index)
        assert len(state.replicas) == 2 and state.isr == state.replicas and state.leader == state.replicas[0]
        assert (state.leader_epoch, state.partition_epoch) == (0, 0)
        assert len(state.directories) == 2


def test_new_partitions_lie_where_the_request_puts_them(harness: Harness) -> None:
    assert grow(harness, 4, [[3, 1], [2, 3]]).error_code == ErrorCode.NONE
    assert [state_of(harness, partition=index).replicas for index in (2, 3)] == [(3, 1), (2, 3)]


def test_who_is_not_active_at_birth_is_not_in_the_isr(harness: Harness) -> None:
    register(harness, 4)
    assert grow(harness, 3, [[4, 2]]).error_code == ErrorCode.NONE
    state = state_of(harness, partition=2)
    assert (state.isr, state.leader, state.elr) == ((2,), 2, ())


@pytest.mark.parametrize("topic", ["__consumer_offsets", "__transaction_state", "__share_group_state"])
def test_internal_topics_keep_their_partitions_by_whose_number_brokers_find_what_is_stored(
    harness: Harness, topic: str
) -> None:
    create(harness, topic, partitions=2, factor=2)
    refused = grow(harness, 3, topic=topic)
    assert (refused.error_code, topic in refused.error_message) == (ErrorCode.INVALID_REQUEST, True)
    assert partitions(harness, topic) == [0, 1]


@pytest.mark.parametrize(
    ("count", "assignments", "code", "sentence"),
    [
        (2, None, "INVALID_PARTITIONS", "already has 2 partition"),
        (1, None, "INVALID_PARTITIONS", "would not be an increase"),
        (0, None, "INVALID_PARTITIONS", "would not be an increase"),
        (-7, None, "INVALID_PARTITIONS", "would not be an increase"),
        (2**31 - 1, None, "POLICY_VIOLATION", "Excessively large"),
        (4, [[1, 2]], "INVALID_REPLICA_ASSIGNMENT", "but only 1 assignment"),
        (3, [[1, 2], [1, 2]], "INVALID_REPLICA_ASSIGNMENT", "Attempted to add 1"),
        (3, [], "INVALID_REPLICA_ASSIGNMENT", "but only 0 assignment"),
        (3, [[]], "INVALID_REPLICA_ASSIGNMENT", "empty replica list"),
        (3, [[1, 1]], "INVALID_REPLICA_ASSIGNMENT", "more than once"),
        (3, [[1, 9]], "INVALID_REPLICA_ASSIGNMENT", "broker 9, but no such broker"),
        (3, [[1, 2, 3]], "INVALID_REPLICA_ASSIGNMENT", "not consistent with previous partitions, which have 2"),
    ],
)
def test_what_is_refused(
    harness: Harness, count: int, assignments: list[list[int]] | None, code: str, sentence: str
) -> None:
    result = grow(harness, count, assignments)
    assert ErrorCode(result.error_code).name == code
    assert sentence in result.error_message
    assert partitions(harness) == [0, 1]


def test_an_unknown_topic_is_refused_and_the_others_of_the_request_are_not(harness: Harness) -> None:
    results = harness.ask("create_partitions", request(("nowhere", 3, None), ("foo", 3, None))).results
    assert [(r.name, ErrorCode(r.error_code).name) for r in results] == [
        ("nowhere", "UNKNOWN_TOPIC_OR_PARTITION"),
        ("foo", "NONE"),
    ]


def test_a_name_given_twice_is_refused_once(harness: Harness) -> None:
    create(harness, "bar")
    results = harness.ask("create_partitions", request(("foo", 3, None), ("bar", 2, None), ("foo", 4, None))).results
    assert [(r.name, ErrorCode(r.error_code).name) for r in results] == [("foo", "INVALID_REQUEST"), ("bar", "NONE")]
    assert partitions(harness) == [0, 1]


def test_assignments_to_nobody_who_is_active_are_refused(harness: Harness) -> None:
    register(harness, 4)
    register(harness, 5)
    result = grow(harness, 3, [[4, 5]])
    assert ErrorCode(result.error_code) is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    heartbeat(harness, 4)
    assert grow(harness, 3, [[4, 5]]).error_code == ErrorCode.NONE


def test_validate_only_says_what_would_happen_and_changes_nothing(harness: Harness) -> None:
    answers = [
        harness.ask("create_partitions", request(("foo", count, None), validate_only=True)).results[0].error_code
        for count in (3, 1)
    ]
    assert answers == [ErrorCode.NONE, ErrorCode.INVALID_PARTITIONS]
    assert partitions(harness) == [0, 1]


def test_all_partitions_of_a_topic_come_in_one_batch(harness: Harness) -> None:
    grow(harness, 100)
    records = harness.quorum.log[-1].records
    assert [record.partition_id for record in records] == list(range(2, 100))
    assert all(isinstance(record, PartitionRecord) for record in records)


def test_a_request_for_more_records_than_one_batch_holds_is_refused_for_the_topic_that_is_too_many(
    harness: Harness,
) -> None:
    create(harness, "bar")
    results = harness.ask("create_partitions", request(("foo", 6_000, None), ("bar", 6_000, None))).results
    assert [ErrorCode(r.error_code).name for r in results] == ["NONE", "POLICY_VIOLATION"]


def test_a_controller_that_is_not_active_refuses_by_topic(harness: Harness) -> None:
    harness.lose()
    (result,) = harness.ask("create_partitions", request(("foo", 3, None))).results
    assert (result.name, result.error_code) == ("foo", ErrorCode.NOT_CONTROLLER)
