"""CreatePartitions through a node: versions, bad counts, and topics without permission."""

from __future__ import annotations

from typing import Any

import pytest
from apis.guarded import ADMIN, T_DENIED, TOPIC, Guarded
from controller.fakes import Harness

from heirlog.metadata.acls import AclOperation
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import CreatePartitionsRequest


def growing(count: int, *topics: str, **more: Any) -> CreatePartitionsRequest:
    Topic = CreatePartitionsRequest.CreatePartitionsTopic
    return CreatePartitionsRequest(
        topics=[Topic(name=name, count=count, assignments=None) for name in topics], timeout_ms=5000, **more
    )


EXAMPLE = growing(1, "t"), None


def codes(answer: Any) -> dict[str, int]:
    return {result.name: result.error_code for result in answer.results}


@pytest.mark.parametrize("version", range(4))
def test_a_topic_grows_in_every_version(node: Guarded, version: int) -> None:
    name = f"grows-{version}"
    node.create_topics(name)
    assert codes(node.ask(growing(3, name), version, ADMIN)) == {name: ErrorCode.NONE}
    assert len(node.node.image.partitions[node.topic_id(name)]) == 3


def test_a_dry_run_adds_nothing(node: Guarded) -> None:
    assert codes(node.ask(growing(3, "t", validate_only=True), principal=ADMIN)) == {"t": ErrorCode.NONE}
    assert len(node.node.image.partitions[node.topic_id("t")]) == 1


def test_each_bad_topic_is_refused_with_a_message(node: Guarded) -> None:
    for request, expected in (
        (growing(1, "t"), {"t": ErrorCode.INVALID_PARTITIONS}),
        (growing(2, "none"), {"none": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}),
        (growing(2, "t", "t"), {"t": ErrorCode.INVALID_REQUEST}),
        (growing(10_002, "t"), {"t": ErrorCode.POLICY_VIOLATION}),
    ):
        answer = node.ask(request, principal=ADMIN)
        assert codes(answer) == expected
        assert all(result.error_message for result in answer.results)


def test_a_controller_that_is_not_active_refuses_each_topic() -> None:
    refused = codes(Harness().ask("create_partitions", growing(2, "a", "b"), 3))
    assert refused == {"a": ErrorCode.NOT_CONTROLLER, "b": ErrorCode.NOT_CONTROLLER}


def test_topics_that_must_not_be_altered_are_refused_and_duplicates_are_invalid_for_every_client(node: Guarded) -> None:
    node.allow(AclOperation.ALTER, TOPIC, "t")
    assert codes(node.ask(growing(2, "t", "hidden", "none", validate_only=True))) == {
        "t": 0,
        "hidden": T_DENIED,
        "none": T_DENIED,
    }
    assert codes(node.ask(growing(2, "hidden", "hidden"))) == {"hidden": ErrorCode.INVALID_REQUEST}
