"""DeleteTopics through a node: names and ids, bad elements, and clients without permission."""

from __future__ import annotations

from typing import Any

import pytest
from apis.guarded import ADMIN, CLUSTER, T_DENIED, TOPIC, Guarded
from controller.fakes import Harness

from heirlog.metadata.acls import AclOperation, AclPermissionType
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import DeleteTopicsRequest


def deleting(*topics: tuple[str | None, bytes]) -> DeleteTopicsRequest:
    State = DeleteTopicsRequest.DeleteTopicState
    return DeleteTopicsRequest(topics=[State(name=name, topic_id=topic_id) for name, topic_id in topics])


EXAMPLE = deleting(("none", bytes(16))), None


def deleted(answer: Any) -> dict[tuple[str | None, bytes], int]:
    return {(result.name, result.topic_id): result.error_code for result in answer.responses}


@pytest.mark.parametrize("version", [1, 3, 5])
def test_up_to_version_5_topics_are_named(node: Guarded, version: int) -> None:
    node.create_topics("gone")
    asked = DeleteTopicsRequest(topic_names=["gone", "none"])
    gone, missing = node.ask(asked, version, ADMIN).responses
    assert (gone.name, gone.error_code) == ("gone", ErrorCode.NONE)
    assert (missing.name, missing.error_code) == ("none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert bool(missing.error_message) is (version >= 5)
    assert "gone" not in node.node.image.topic_ids


def test_version_6_also_takes_ids(node: Guarded) -> None:
    node.create_topics("gone")
    gone, nobody = node.topic_id("gone"), b"n" * 16
    answer = node.ask(deleting((None, gone), (None, nobody)), 6, ADMIN)
    assert deleted(answer) == {("gone", gone): ErrorCode.NONE, (None, nobody): ErrorCode.UNKNOWN_TOPIC_ID}


def test_an_element_with_a_name_and_an_id_with_neither_or_named_twice_is_refused(node: Guarded) -> None:
    t, zero = node.topic_id("t"), bytes(16)
    for elements in ([("t", t)], [(None, zero)], [("t", zero), ("t", zero)], [("t", zero), (None, t)]):
        answer = node.ask(deleting(*elements), 6, ADMIN)
        assert {result.error_code for result in answer.responses} == {ErrorCode.INVALID_REQUEST}, elements
    assert "t" in node.node.image.topic_ids


def test_a_controller_that_is_not_active_refuses_names_and_ids() -> None:
    request = deleting(("a", bytes(16)), (None, b"i" * 16))
    refused = deleted(Harness().ask("delete_topics", request, 6))
    assert refused == dict.fromkeys([("a", bytes(16)), (None, b"i" * 16)], ErrorCode.NOT_CONTROLLER)
    named = Harness().ask("delete_topics", DeleteTopicsRequest(topic_names=["a"]), 5)
    assert deleted(named) == {("a", bytes(16)): ErrorCode.NOT_CONTROLLER}


def test_the_permission_for_the_cluster_is_enough_for_every_topic(node: Guarded) -> None:
    node.create_topics("gone")
    node.allow(AclOperation.DELETE, CLUSTER)
    gone = node.topic_id("gone")
    assert deleted(node.ask(deleting((None, gone)))) == {("gone", gone): 0}


def test_deleting_tells_no_name_and_no_existence_to_those_who_may_not_describe(node: Guarded) -> None:
    hidden, zero = node.node.image.topic_ids["hidden"], bytes(16)
    refused = deleted(node.ask(deleting(("t", zero), ("none", zero), (None, hidden))))
    assert refused == {("t", zero): T_DENIED, ("none", zero): T_DENIED, (None, hidden): T_DENIED}
    node.allow(AclOperation.DESCRIBE, TOPIC, "*")
    refused = deleted(node.ask(deleting(("t", zero), ("none", zero), (None, hidden))))
    assert refused == {("t", zero): T_DENIED, ("none", zero): 3, ("hidden", hidden): T_DENIED}


def test_by_name_a_topic_is_deleted_by_those_who_may_also_describe_it(node: Guarded) -> None:
    node.allow(AclOperation.DELETE, TOPIC, "gone")
    node.allow(AclOperation.DESCRIBE, TOPIC, "gone", permission=AclPermissionType.DENY)
    node.create_topics("gone")
    gone, zero = node.node.image.topic_ids["gone"], bytes(16)
    assert deleted(node.ask(deleting(("gone", zero)))) == {("gone", zero): T_DENIED}
    assert deleted(node.ask(deleting((None, gone)))) == {("gone", gone): 0}


def test_by_name_each_topic_of_an_older_version_must_allow_it(node: Guarded) -> None:
    node.create_topics("gone")
    node.allow(AclOperation.DELETE, TOPIC, "gone")
    node.allow(AclOperation.DESCRIBE, TOPIC, "hidden")
    zero = bytes(16)
    answer = node.ask(DeleteTopicsRequest(topic_names=["gone", "hidden", "none"]), 5)
    assert deleted(answer) == {("gone", zero): 0, ("hidden", zero): T_DENIED, ("none", zero): T_DENIED}
    assert "hidden" in node.node.image.topic_ids


def test_where_topics_must_not_be_deleted_every_client_learns_only_that() -> None:
    node = Guarded(delete_topic_enable="false")
    node.create_topics("t")
    for principal in (ADMIN, "User:alice"):
        answer = node.ask(deleting(("t", bytes(16))), principal=principal)
        assert deleted(answer) == {("t", bytes(16)): ErrorCode.TOPIC_DELETION_DISABLED}


def test_an_invalid_element_is_invalid_for_clients_that_must_not_delete_the_topic_too(node: Guarded) -> None:
    t, zero = node.topic_id("t"), bytes(16)
    for elements in ([("t", t)], [("t", zero), ("t", zero)], [(None, zero)]):
        answer = node.ask(deleting(*elements), 6)
        assert {result.error_code for result in answer.responses} == {ErrorCode.INVALID_REQUEST}, elements
    twice = node.ask(DeleteTopicsRequest(topic_names=["t", "t", "hidden"]), 5)
    assert deleted(twice) == {("t", zero): ErrorCode.INVALID_REQUEST, ("hidden", zero): T_DENIED}
