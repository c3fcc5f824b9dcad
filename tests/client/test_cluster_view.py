"""What a client believes of a Metadata answer."""

from __future__ import annotations

import pytest

from heirlog.client.cluster_view import ClusterView, Leader
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import MetadataResponse
from heirlog.protocol.types import ZERO_UUID, Endpoint


def described(leader: int, epoch: int, topic_id: bytes = b"i" * 16, code: int = 0) -> MetadataResponse:
    partition = MetadataResponse.MetadataResponsePartition(partition_index=0, leader_id=leader, leader_epoch=epoch)
    topic = MetadataResponse.MetadataResponseTopic(
        name="t", topic_id=topic_id, error_code=code, partitions=[] if code else [partition]
    )
    brokers = [MetadataResponse.MetadataResponseBroker(node_id=n, host="h", port=n) for n in (1, 2)]
    return MetadataResponse(brokers=brokers, topics=[topic])


def test_a_leader_is_an_endpoint_and_an_epoch() -> None:
    view = ClusterView()
    assert view.learn(described(2, 5)) == {}
    assert view.leader("t", 0) == Leader(Endpoint("h", 2), 5)


def test_a_broker_that_is_behind_is_not_believed_but_a_new_topic_is() -> None:
    view = ClusterView()
    view.learn(described(2, 5))
    view.learn(described(1, 4))
    assert view.leader("t", 0).endpoint.port == 2
    view.learn(described(1, 0, topic_id=b"j" * 16))
    assert view.leader("t", 0) == Leader(Endpoint("h", 1), 0)
    view.learn(described(2, -1, topic_id=b"j" * 16))
    assert view.leader("t", 0).endpoint.port == 2, "brokers before 2.1 name no epoch"


def test_brokers_without_topic_ids_have_none() -> None:
    view = ClusterView()
    view.learn(described(2, 5, topic_id=ZERO_UUID))
    assert view.topics["t"].topic_id is None


def test_a_refused_topic_is_forgotten_and_named() -> None:
    view = ClusterView()
    view.learn(described(2, 5))
    assert view.learn(described(2, 5, code=3)) == {"t": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    with pytest.raises(KafkaError, match="topic t"):
        view.leader("t", 0)


def test_who_has_no_leader_asks_for_newer_metadata() -> None:
    view = ClusterView()
    view.learn(described(-1, 5))
    with pytest.raises(KafkaError, match="no leader") as failed:
        view.leader("t", 0)
    assert failed.value.code is ErrorCode.LEADER_NOT_AVAILABLE
    with pytest.raises(KafkaError, match="no partition 9"):
        view.leader("t", 9)


def test_an_answer_about_all_topics_drops_those_that_are_gone() -> None:
    view = ClusterView()
    view.learn(described(2, 5))
    view.learn(MetadataResponse())
    assert "t" in view.topics
    view.learn(MetadataResponse(), of_all=True)
    assert view.topics == {}
