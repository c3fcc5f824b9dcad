"""AddPartitionsToTxn through a node: for clients until version 3, for brokers from version 4 on."""

from __future__ import annotations

from typing import Any

from apis.guarded import ADMIN, C_DENIED, CLUSTER, T_DENIED, TOPIC, X_DENIED, Guarded

from heirlog.metadata.acls import AclOperation, ResourceType
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import AddPartitionsToTxnRequest


def adding(producer: tuple[int, int], *topics: str) -> AddPartitionsToTxnRequest:
    """As a client asks."""
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="x",
        v3_and_below_producer_id=producer[0],
        v3_and_below_producer_epoch=producer[1],
        v3_and_below_topics=[
            AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=topic, partitions=[0]) for topic in topics
        ],
    )


def asking(producer: tuple[int, int], *topics: str, verify_only: bool = True) -> AddPartitionsToTxnRequest:
    """As a broker asks."""
    transaction = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction(
        transactional_id="x",
        producer_id=producer[0],
        producer_epoch=producer[1],
        verify_only=verify_only,
        topics=[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=topic, partitions=[0]) for topic in topics],
    )
    return AddPartitionsToTxnRequest(transactions=[transaction])


EXAMPLE = adding((0, 0), "t"), 3


def codes(topics: Any) -> dict[str, int]:
    return {topic.name: topic.results_by_partition[0].partition_error_code for topic in topics}


def added(answer: Any) -> dict[str, int]:
    return codes(answer.results_by_topic_v3_and_below)


def found(answer: Any) -> dict[str, int]:
    (result,) = answer.results_by_transaction
    return codes(result.topic_results)


def test_every_version_of_clients_adds_partitions(node: Guarded) -> None:
    producer = node.begin_transaction("x", "t")
    for version in range(4):
        node.create_topics(f"more-{version}")
        assert added(node.ask(adding(producer, f"more-{version}"), version, ADMIN)) == {f"more-{version}": 0}
    stale = adding((producer[0], producer[1] + 1), "t")
    fenced = [added(node.ask(stale, version, ADMIN))["t"] for version in (1, 2)]
    assert fenced == [ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED]


def test_brokers_look_partitions_up_or_add_them(node: Guarded) -> None:
    producer = node.begin_transaction("x", "t")
    node.create_topics("more")
    for version in (4, 5):
        assert found(node.ask(asking(producer, "t", "more"), version, ADMIN)) == {
            "t": ErrorCode.NONE,
            "more": ErrorCode.TRANSACTION_ABORTABLE,
        }
    assert found(node.ask(asking(producer, "more", verify_only=False), 5, ADMIN)) == {"more": ErrorCode.NONE}
    assert found(node.ask(asking(producer, "more"), 5, ADMIN)) == {"more": ErrorCode.NONE}
    assert node.ask(AddPartitionsToTxnRequest(), 5, ADMIN).results_by_transaction == []


def test_one_topic_that_a_client_may_not_write_keeps_the_others_out(node: Guarded) -> None:
    producer = node.begin_transaction("x", "t")
    node.create_topics("hidden")
    assert added(node.ask(adding(producer, "t"), 3)) == {"t": X_DENIED}
    node.allow(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, "x")
    node.allow(AclOperation.WRITE, TOPIC, "t")
    assert added(node.ask(adding(producer, "t", "hidden"), 3)) == {
        "t": ErrorCode.OPERATION_NOT_ATTEMPTED,
        "hidden": T_DENIED,
    }
    assert added(node.ask(adding(producer, "t"), 3)) == {"t": ErrorCode.NONE}


def test_a_topic_without_partitions_has_a_result_if_partitions_were_to_be_added(node: Guarded) -> None:
    producer = node.begin_transaction("x", "t")
    client = adding(producer, "t", "none")
    client.v3_and_below_topics[1].partitions = []
    names = [topic.name for topic in node.ask(client, 3, ADMIN).results_by_topic_v3_and_below]
    assert names == ["t", "none"]
    client.v3_and_below_topics[0].partitions = [9]
    assert [topic.name for topic in node.ask(client, 3, ADMIN).results_by_topic_v3_and_below] == ["t"]
    for verify_only in (False, True):
        broker = asking(producer, "t", "none", verify_only=verify_only)
        broker.transactions[0].topics[1].partitions = []
        (result,) = node.ask(broker, 5, ADMIN).results_by_transaction
        assert [topic.name for topic in result.topic_results] == (["t"] if verify_only else ["t", "none"])


def test_only_brokers_use_the_versions_of_brokers(node: Guarded) -> None:
    producer = node.begin_transaction("x", "t")
    node.allow(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, "x")
    assert node.ask(asking(producer, "t"), 5).error_code == C_DENIED
    node.allow(AclOperation.CLUSTER_ACTION, CLUSTER)
    assert found(node.ask(asking(producer, "t"), 5)) == {"t": ErrorCode.NONE}
