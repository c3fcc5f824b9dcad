"""FindCoordinator: one key or several, the topic that the first question creates, and groups without permission."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from apis.described import context, image_with, partition
from apis.guarded import ADMIN, G_DENIED, GROUP, X_DENIED, Guarded

from heirlog.apis import find_coordinator
from heirlog.broker.groups.coordinator import NAME_MAX_CHARACTERS
from heirlog.metadata.acls import AclOperation, ResourceType
from heirlog.pending import Pending
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import FindCoordinatorRequest
from heirlog.protocol.records import TopicRecord
from heirlog.protocol.types import CoordinatorType

EXAMPLE = FindCoordinatorRequest(coordinator_keys=["g"]), None


def offsets_topic(**more: Any) -> list[Any]:
    return [TopicRecord(name="__consumer_offsets", topic_id=b"o" * 16), partition(b"o" * 16, 0, **more)]


def ask_coordinator(port: Any) -> Any:
    # the part of a broker that the handler asks: "g" and "h" are two groups of one partition
    exists = "__consumer_offsets" in port.image.topic_ids
    port.broker = SimpleNamespace(groups=SimpleNamespace(partition_of=lambda group: 0 if exists else None))
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=["g", "h"])
    return answered(port, find_coordinator.handle(port, request, context(4))).coordinators


def answered(port: Any, reply: Any) -> Any:
    """The reply, once the topic that it waits for is created, or is not."""
    if not isinstance(reply, Pending):
        return reply
    assert not reply.done
    port.waiting.pop().complete(True)
    found: list[Any] = []
    reply.then(found.append)
    return found[0]


def test_the_first_question_for_a_coordinator_creates_the_topic(port: Any) -> None:
    found = ask_coordinator(port)
    assert [(c.key, c.error_code) for c in found] == [
        ("g", ErrorCode.COORDINATOR_NOT_AVAILABLE),
        ("h", ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ]
    assert set(port.created) == {"__consumer_offsets"}


def test_the_first_question_is_answered_when_the_topic_is_there(port: Any) -> None:
    groups = SimpleNamespace(partition_of=lambda group: 0 if "__consumer_offsets" in port.image.topic_ids else None)
    port.broker = SimpleNamespace(groups=groups)
    request = FindCoordinatorRequest(coordinator_keys=["g" * (NAME_MAX_CHARACTERS + 1), "g"])
    reply = find_coordinator.handle(port, request, context(4))
    port.image = image_with(*offsets_topic(leader=2))
    codes = {found.error_code: found.node_id for found in answered(port, reply).coordinators}
    assert codes == {ErrorCode.INVALID_GROUP_ID: -1, ErrorCode.NONE: 2}


def test_a_client_that_has_gone_waits_for_no_topic(port: Any) -> None:
    port.broker = SimpleNamespace(groups=SimpleNamespace(partition_of=lambda group: None))
    reply = find_coordinator.handle(port, FindCoordinatorRequest(key="g"), context(3))
    assert isinstance(reply, Pending)
    reply.abandon()
    assert port.waiting.pop().done


def test_the_coordinator_is_the_leader_of_the_groups_partition(port: Any) -> None:
    port.image = image_with(*offsets_topic(leader=2))
    assert [(c.key, c.node_id, c.host, c.port) for c in ask_coordinator(port)] == [
        ("g", 2, "h", 9002),
        ("h", 2, "h", 9002),
    ]
    port.image = image_with(*offsets_topic(leader=3))
    assert {c.error_code for c in ask_coordinator(port)} == {ErrorCode.COORDINATOR_NOT_AVAILABLE}, "3 is fenced"


def test_the_coordinator_of_a_transactional_id_leads_its_partition_of_another_topic(port: Any) -> None:
    port.broker = SimpleNamespace(transactions=SimpleNamespace(partition_of=lambda name: None))
    request = FindCoordinatorRequest(key="t", key_type=CoordinatorType.TRANSACTION)
    found = answered(port, find_coordinator.handle(port, request, context(3)))
    assert (found.error_code, port.created) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, ["__transaction_state"])
    topic = TopicRecord(name="__transaction_state", topic_id=b"x" * 16)
    port.image = image_with(topic, partition(b"x" * 16, 0, leader=2))
    port.broker = SimpleNamespace(transactions=SimpleNamespace(partition_of=lambda name: 0))
    assert find_coordinator.handle(port, request, context(3)).node_id == 2


def test_version_3_asks_for_one_key_and_says_none_where_nothing_is_wrong(port: Any) -> None:
    port.image = image_with(*offsets_topic(leader=2))
    port.broker = SimpleNamespace(groups=SimpleNamespace(partition_of=lambda group: 0))
    for version, message in ((0, ""), (1, "NONE"), (3, "NONE")):
        found = find_coordinator.handle(port, FindCoordinatorRequest(key="g"), context(version))
        assert (found.error_code, found.node_id, found.port) == (ErrorCode.NONE, 2, 9002)
        assert (found.error_message or "") == message
        assert found.coordinators == []


@pytest.mark.parametrize(
    ("key", "kind", "code"),
    [("g", 7, ErrorCode.INVALID_REQUEST), ("g" * (NAME_MAX_CHARACTERS + 1), 0, ErrorCode.INVALID_GROUP_ID)],
)
def test_keys_without_a_meaning_and_names_that_are_too_long_are_refused(
    port: Any, key: str, kind: int, code: ErrorCode
) -> None:
    port.broker = SimpleNamespace(groups=SimpleNamespace(partition_of=lambda group: 0))
    found = find_coordinator.handle(port, FindCoordinatorRequest(key=key, key_type=kind), context(3))
    assert found.error_code == code and found.error_message
    assert port.created == []


def test_groups_that_must_not_be_described_are_refused_one_by_one(node: Guarded) -> None:
    node.allow(AclOperation.DESCRIBE, GROUP, "g")
    asked = FindCoordinatorRequest(coordinator_keys=["hidden", "g"])
    for version in (4, 5, 6):
        codes = {found.key: found.error_code for found in node.ask(asked, version).coordinators}
        assert codes == {"g": 0, "hidden": G_DENIED}
    assert node.ask(FindCoordinatorRequest(key="g"), 3).error_code == ErrorCode.NONE
    old = node.ask(FindCoordinatorRequest(key="hidden"), 3)
    assert (old.error_code, old.node_id, old.port) == (G_DENIED, -1, -1)
    transactions = FindCoordinatorRequest(coordinator_keys=["g"], key_type=CoordinatorType.TRANSACTION)
    assert [found.error_code for found in node.ask(transactions).coordinators] == [X_DENIED]
    assert node.ask(asked, principal=ADMIN).coordinators[0].error_code == ErrorCode.NONE


def test_who_may_not_know_of_a_transactional_id_gets_no_coordinator(node: Guarded) -> None:
    transactions = FindCoordinatorRequest(key="x", key_type=CoordinatorType.TRANSACTION)
    assert node.ask(transactions, 3).error_code == X_DENIED
    node.allow(AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, "x")
    assert node.ask(transactions, 3).error_code == ErrorCode.NONE
    assert node.ask(FindCoordinatorRequest(key="x", key_type=7), 3).error_code == ErrorCode.INVALID_REQUEST
