"""AddOffsetsToTxn through a node: the group's partition takes part, and who may add it."""

from __future__ import annotations

import pytest
from apis.guarded import ADMIN, G_DENIED, GROUP, X_DENIED, Guarded

from heirlog.metadata.acls import AclOperation, ResourceType
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import AddOffsetsToTxnRequest, DescribeTransactionsRequest

EXAMPLE = AddOffsetsToTxnRequest(transactional_id="x", group_id="g"), None


def adding(producer: tuple[int, int]) -> AddOffsetsToTxnRequest:
    return AddOffsetsToTxnRequest(
        transactional_id="x", group_id="g", producer_id=producer[0], producer_epoch=producer[1]
    )


@pytest.mark.parametrize("version", range(5))
def test_the_groups_partition_of_the_offsets_topic_takes_part(node: Guarded, version: int) -> None:
    producer = node.begin_transaction("x", "t")
    assert node.ask_again(adding(producer), version, ADMIN).error_code == ErrorCode.NONE
    (found,) = node.ask(DescribeTransactionsRequest(transactional_ids=["x"]), principal=ADMIN).transaction_states
    assert sorted(topic.topic for topic in found.topics) == ["__consumer_offsets", "t"]
    stale = adding((producer[0], producer[1] + 1))
    expected = ErrorCode.INVALID_PRODUCER_EPOCH if version < 2 else ErrorCode.PRODUCER_FENCED
    assert node.ask(stale, version, ADMIN).error_code == expected


def test_a_transaction_may_be_the_first_that_needs_the_offsets_topic() -> None:
    node = Guarded()
    node.create_topics("t")
    producer = node.begin_transaction("x", "t")
    assert "__consumer_offsets" not in node.node.image.topic_ids
    assert node.ask(adding(producer), 1, ADMIN).error_code == ErrorCode.NONE


def test_offsets_cannot_be_added_where_their_topic_cannot_be_created() -> None:
    node = Guarded(offsets_topic_replication_factor="3")
    node.create_topics("t")
    producer = node.begin_transaction("x", "t")
    for _ in range(2):
        assert node.ask(adding(producer), 3, ADMIN).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_who_adds_offsets_may_write_with_the_id_and_read_the_group(node: Guarded) -> None:
    producer = node.begin_transaction("x", "t")
    assert node.ask(adding(producer)).error_code == X_DENIED
    node.allow(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, "x")
    assert node.ask(adding(producer)).error_code == G_DENIED
    node.allow(AclOperation.READ, GROUP, "g")
    assert node.ask_again(adding(producer)).error_code == ErrorCode.NONE
