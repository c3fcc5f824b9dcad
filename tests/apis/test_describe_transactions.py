"""DescribeTransactions through a node: state and partitions, and what a client must not know."""

from __future__ import annotations

from apis.guarded import ADMIN, TOPIC, X_DENIED, Guarded

from heirlog.metadata.acls import AclOperation, ResourceType
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import DescribeTransactionsRequest

EXAMPLE = DescribeTransactionsRequest(transactional_ids=["x"]), None


def test_an_open_transaction_shows_its_partitions(node: Guarded) -> None:
    producer = node.begin_transaction("x", "t")
    found, unknown = node.ask(
        DescribeTransactionsRequest(transactional_ids=["x", "y"]), principal=ADMIN
    ).transaction_states
    assert (found.transaction_state, found.producer_id, found.producer_epoch) == ("Ongoing", *producer)
    assert (found.transaction_timeout_ms, found.transaction_start_time_ms > 0) == (60_000, True)
    assert [(topic.topic, topic.partitions) for topic in found.topics] == [("t", [0])]
    assert unknown.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


def test_topics_that_a_client_may_not_describe_are_left_out(node: Guarded) -> None:
    node.begin_transaction("x", "t")
    node.allow(AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, "x")
    asked = DescribeTransactionsRequest(transactional_ids=["x", "hidden"])
    found, denied = node.ask(asked).transaction_states
    assert (found.error_code, found.topics, denied.error_code) == (ErrorCode.NONE, [], X_DENIED)
    node.allow(AclOperation.DESCRIBE, TOPIC, "t")
    assert [topic.topic for topic in node.ask(asked).transaction_states[0].topics] == ["t"]
