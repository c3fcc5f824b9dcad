"""GetReplicaLogInfo: what its descriptor promises of listeners, refusals and their size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from apis.guarded import CLUSTER, Guarded, denials

from heirlog.apis.get_replica_log_info import API, handle
from heirlog.context import Context
from heirlog.metadata.acls import AclOperation
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import GetReplicaLogInfoRequest


def of_topics(*counts: int) -> GetReplicaLogInfoRequest:
    """A request for so many partitions of each topic."""
    topics = [
        GetReplicaLogInfoRequest.TopicPartitions(topic_id=bytes([number]) * 16, partitions=list(range(count)))
        for number, count in enumerate(counts, 1)
    ]
    return GetReplicaLogInfoRequest(broker_id=1, topic_partitions=topics)


EXAMPLE = of_topics(1), None


def sizes(answer: Any) -> list[int]:
    return [len(topic.partition_log_info) for topic in answer.topic_partition_log_info_list]


def test_a_refusal_names_every_partition_up_to_the_limit() -> None:
    answer = API.refusal(of_topics(2, 3), ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    assert sizes(answer) == [2, 3]
    infos = [info for topic in answer.topic_partition_log_info_list for info in topic.partition_log_info]
    assert {info.error_code for info in infos} == {ErrorCode.CLUSTER_AUTHORIZATION_FAILED}
    assert all(info.error_message for info in infos)


def test_the_limit_of_a_refusal_is_that_of_the_whole_request_and_not_of_each_topic() -> None:
    (limit,) = API.limits
    assert isinstance(limit.most, int)
    refusal = API.refusal(of_topics(600, 600, 600), ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    assert sizes(refusal) == [600, limit.most - 600, 0]


def test_a_client_on_another_listener_gets_no_broker_epoch() -> None:
    @dataclass
    class Config:
        inter_broker_listener_name: str = "INTERNAL"

    @dataclass
    class Node:
        config: Config

    answer: Any = handle(Node(Config()), of_topics(1), CLIENTS)  # type: ignore[arg-type]
    assert answer.broker_epoch == -1
    (info,) = answer.topic_partition_log_info_list[0].partition_log_info
    assert info.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert "INTERNAL" in info.error_message


CLIENTS = Context(api_version=0, client_id="", client_host="10.0.0.9", listener="PLAINTEXT", connection=object())


def test_only_nodes_may_ask_and_a_replica_that_is_not_here_is_said_to_be_unknown(node: Guarded) -> None:
    asked = of_topics(1)
    asked.topic_partitions[0].topic_id = node.topic_id("t")
    asked.topic_partitions += of_topics(1).topic_partitions
    assert denials(node.ask(asked))
    node.allow(AclOperation.CLUSTER_ACTION, CLUSTER)
    here, nowhere = node.ask(asked).topic_partition_log_info_list
    assert here.partition_log_info[0].error_code == ErrorCode.NONE
    assert nowhere.partition_log_info[0].error_code != ErrorCode.NONE
