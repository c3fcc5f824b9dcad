"""CreateTopics through a node: what each version answers, bad topics, and clients without permission."""

from __future__ import annotations

from typing import Any

import pytest
from apis.guarded import ADMIN, CLUSTER, HOST, T_DENIED, TOPIC, Guarded, shown
from controller.fakes import Harness

from heirlog.apis.create_topics import API
from heirlog.metadata.acls import CLUSTER_NAME, AclOperation
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import CreateTopicsRequest
from heirlog.protocol.primitives import encode


def creating(*names: str, **more: Any) -> CreateTopicsRequest:
    Topic = CreateTopicsRequest.CreatableTopic
    return CreateTopicsRequest(
        topics=[Topic(name=name, num_partitions=1, replication_factor=1) for name in names], validate_only=True, **more
    )


EXAMPLE = (
    creating(
        "t",
    ),
    None,
)


@pytest.mark.parametrize("version", range(2, 8))
def test_a_topic_is_created_and_described_as_far_as_the_version_can(node: Guarded, version: int) -> None:
    request = creating(f"made-{version}")
    request.validate_only = False
    (topic,) = node.ask(request, version, ADMIN).topics
    assert topic.error_code == ErrorCode.NONE
    created = node.topic_id(f"made-{version}")
    assert (topic.topic_id == created) is (version >= 7)
    assert (topic.num_partitions, topic.replication_factor) == ((1, 1) if version >= 5 else (-1, -1))
    assert bool(topic.configs) is (version >= 5)


def test_a_dry_run_creates_nothing(node: Guarded) -> None:
    assert shown(node.ask(creating("dry"), principal=ADMIN)) == {"dry": ErrorCode.NONE}
    assert "dry" not in node.node.image.topic_ids


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"name": "t"}, ErrorCode.TOPIC_ALREADY_EXISTS),
        ({"name": "bad name!"}, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ({"num_partitions": 0}, ErrorCode.INVALID_PARTITIONS),
        ({"replication_factor": 2}, ErrorCode.INVALID_REPLICATION_FACTOR),
        ({"num_partitions": 10_000}, ErrorCode.POLICY_VIOLATION),
    ],
)
def test_a_bad_topic_is_refused_alone_and_with_a_message(
    node: Guarded, change: dict[str, Any], code: ErrorCode
) -> None:
    request = creating("bad", "good")
    for name, value in change.items():
        setattr(request.topics[0], name, value)
    refused, good = node.ask(request, principal=ADMIN).topics
    assert (refused.error_code, good.error_code) == (code, ErrorCode.NONE)
    assert refused.error_message


def test_a_controller_that_is_not_active_refuses_each_topic() -> None:
    answer = Harness().ask("create_topics", creating("a", "b"), 7)
    assert shown(answer) == {"a": ErrorCode.NOT_CONTROLLER, "b": ErrorCode.NOT_CONTROLLER}
    assert "active controller" in answer.topics[0].error_message


def test_topics_are_created_by_their_name_or_by_the_cluster(node: Guarded) -> None:
    node.allow(AclOperation.CREATE, TOPIC, "mine")
    answer = node.ask(creating("mine", "other", "twice", "twice", "__cluster_metadata"))
    assert shown(answer) == {"mine": 0, "other": T_DENIED, "twice": 42, "__cluster_metadata": 42}
    node.allow(AclOperation.CREATE, CLUSTER, CLUSTER_NAME)
    assert shown(node.ask(creating("other"))) == {"other": 0}


def test_the_configuration_of_a_new_topic_is_shown_to_those_who_may_describe_it(node: Guarded) -> None:
    node.allow(AclOperation.CREATE, TOPIC, "mine")
    (topic,) = node.ask(creating("mine")).topics
    assert (topic.topic_config_error_code, topic.num_partitions, topic.configs) == (T_DENIED, -1, [])
    node.allow(AclOperation.ALTER_CONFIGS, TOPIC, "mine")
    (topic,) = node.ask(creating("mine")).topics
    assert (topic.topic_config_error_code, topic.num_partitions, bool(topic.configs)) == (0, 1, True)


def test_the_address_of_the_client_travels_with_what_is_forwarded(node: Guarded) -> None:
    node.allow(AclOperation.CREATE, TOPIC, "mine", host=HOST)
    assert shown(node.ask(creating("mine"), host=HOST)) == {"mine": 0}
    assert shown(node.ask(creating("mine"), host="10.0.0.2")) == {"mine": T_DENIED}


def test_an_answer_may_be_far_larger_than_its_request(node: Guarded) -> None:
    """So a connection may have few of them in progress."""
    request = creating(*(f"topic-{number}" for number in range(50)))
    sizes = [len(b"".join(encode(message, 7))) for message in (request, node.ask(request, principal=ADMIN))]  # type: ignore[arg-type]
    assert sizes[1] > 20 * sizes[0]
    assert API.has_large_answer
