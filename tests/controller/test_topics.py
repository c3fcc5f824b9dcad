"""CreateTopics and DeleteTopics: what is refused, what is written, where replicas go."""

from __future__ import annotations

from typing import Any

import pytest
from controller.cluster import create, heartbeat, leading, register, state_of, topic_request

from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import CreateTopicsRequest, DeleteTopicsRequest
from heirlog.protocol.types import ZERO_UUID


@pytest.mark.parametrize(
    ("name", "partitions", "factor", "configs", "code"),
    [
        ("bad name!", 1, 1, {}, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("..", 1, 1, {}, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("a.b", 1, 1, {}, ErrorCode.TOPIC_ALREADY_EXISTS),
        ("a_b", 1, 1, {}, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("foo", 0, 1, {}, ErrorCode.INVALID_PARTITIONS),
        ("foo", 1, 0, {}, ErrorCode.INVALID_REPLICATION_FACTOR),
        ("foo", 1, 4, {}, ErrorCode.INVALID_REPLICATION_FACTOR),
        ("foo", 20_000, 1, {}, ErrorCode.POLICY_VIOLATION),
        ("foo", 1, 1, {"retention_ms": "soon"}, ErrorCode.INVALID_CONFIG),
        ("foo", 1, 1, {"cleanup_policy": "compact,keep"}, ErrorCode.INVALID_CONFIG),
        ("foo", 1, 1, {"no_such": "1"}, ErrorCode.INVALID_CONFIG),
    ],
)
def test_a_topic_that_cannot_be_is_refused(
    name: str, partitions: int, factor: int, configs: dict[str, str], code: ErrorCode
) -> None:
    harness = leading()
    create(harness, "a.b")
    end = harness.quorum.log_end_offset
    result = create(harness, name, partitions, factor, **configs)
    assert result.error_code == code and result.error_message
    assert harness.quorum.log_end_offset == end


def test_minus_one_takes_the_defaults_and_the_answer_names_them() -> None:
    harness = leading(num_partitions="4", default_replication_factor="2")
    result = create(harness, "foo", -1, -1, retention_ms="5")
    assert (result.num_partitions, result.replication_factor) == (4, 2)
    assert result.topic_id == harness.controller.image.topic_ids["foo"]
    assert [(c.value, c.config_source) for c in result.configs if c.name == "retention.ms"] == [("5", 1)]


def test_validate_only_writes_nothing() -> None:
    harness = leading()
    request = topic_request("foo")
    request.validate_only = True
    (result,) = harness.ask("create_topics", request, 7).topics
    assert (result.error_code, result.num_partitions) == (ErrorCode.NONE, 1)
    assert result.topic_id != ZERO_UUID, "as on Apache Kafka: an id that nothing will have"
    assert not harness.controller.image.topics


def test_a_name_given_twice_is_refused_once_and_the_others_are_made() -> None:
    harness = leading()
    request = topic_request("foo")
    request.topics += topic_request("foo").topics + topic_request("bar").topics
    codes = [result.error_code for result in harness.ask("create_topics", request, 7).topics]
    assert codes == [ErrorCode.INVALID_REQUEST, ErrorCode.NONE]


def test_the_metadata_log_is_no_topic_that_could_be_made() -> None:
    harness = leading()
    assert create(harness, "__cluster_metadata").error_code == ErrorCode.INVALID_REQUEST
    assert not harness.controller.image.topics


def manual(*assignments: tuple[int, list[int]]) -> CreateTopicsRequest:
    request = topic_request("foo", -1, -1)
    request.topics[0].assignments = [
        CreateTopicsRequest.CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
        for index, brokers in assignments
    ]
    return request


@pytest.mark.parametrize(
    "assignments",
    [[(0, [])], [(0, [1, 1])], [(0, [9])], [(1, [1])], [(0, [1]), (0, [2])], [(0, [1]), (1, [1, 2])]],
)
def test_a_manual_assignment_is_checked(assignments: list[Any]) -> None:
    harness = leading()
    (result,) = harness.ask("create_topics", manual(*assignments), 7).topics
    assert result.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_a_fenced_broker_gets_a_replica_only_if_the_factor_needs_it_and_starts_outside_the_isr() -> None:
    harness = leading()
    register(harness, 4)
    create(harness, "foo", 8, 3)
    assert all(4 not in state_of(harness, "foo", n).replicas for n in range(8))
    create(harness, "bar", 1, 4)
    state = state_of(harness, "bar")
    assert 4 in state.replicas and 4 not in state.isr and state.elr == ()
    heartbeat(harness, 4)


def test_topics_are_deleted_by_name_and_by_id() -> None:
    harness = leading()
    create(harness, "foo", retention_ms="5")
    topic_id = create(harness, "bar").topic_id
    named = DeleteTopicsRequest(topic_names=["foo"])
    (result,) = harness.ask("delete_topics", named, 5).responses
    assert (result.name, result.error_code) == ("foo", ErrorCode.NONE)
    by_id = DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name=None, topic_id=topic_id)])
    (result,) = harness.ask("delete_topics", by_id, 6).responses
    assert (result.name, result.error_code) == ("bar", ErrorCode.NONE)
    assert not harness.controller.image.topics and (2, "foo") not in harness.controller.image.configs


@pytest.mark.parametrize(
    ("topics", "codes"),
    [
        ([("nope", bytes(16))], [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]),
        ([(None, b"x" * 16)], [ErrorCode.UNKNOWN_TOPIC_ID]),
        ([(None, bytes(16))], [ErrorCode.INVALID_REQUEST]),
        ([("foo", b"x" * 16)], [ErrorCode.INVALID_REQUEST]),
        ([("foo", bytes(16)), ("foo", bytes(16))], [ErrorCode.INVALID_REQUEST]),
        ([("no", bytes(16)), ("no", bytes(16))], [ErrorCode.INVALID_REQUEST]),
    ],
)
def test_deletions_are_checked(topics: list[tuple[str | None, bytes]], codes: list[ErrorCode]) -> None:
    harness = leading()
    create(harness)
    request = DeleteTopicsRequest(
        topics=[DeleteTopicsRequest.DeleteTopicState(name=name, topic_id=topic_id) for name, topic_id in topics]
    )
    assert [r.error_code for r in harness.ask("delete_topics", request, 6).responses] == codes
    assert "foo" in harness.controller.image.topic_ids


def test_deletion_can_be_forbidden() -> None:
    harness = leading(delete_topic_enable="false")
    create(harness)
    (result,) = harness.ask("delete_topics", DeleteTopicsRequest(topic_names=["foo"]), 5).responses
    assert result.error_code == ErrorCode.TOPIC_DELETION_DISABLED
