"""OffsetForLeaderEpoch through a node: ends of epochs, and who may ask for them."""

from __future__ import annotations

from typing import Any

import pytest
from apis.guarded import ADMIN, CLUSTER, T_DENIED, TOPIC, Guarded

from heirlog.metadata.acls import AclOperation
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import OffsetForLeaderEpochRequest


def asking(*topics: str, epoch: int = 0, current: int = -1) -> OffsetForLeaderEpochRequest:
    Topic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
    Partition = OffsetForLeaderEpochRequest.OffsetForLeaderPartition
    return OffsetForLeaderEpochRequest(
        topics=[
            Topic(topic=name, partitions=[Partition(leader_epoch=epoch, current_leader_epoch=current)])
            for name in topics
        ]
    )


EXAMPLE = asking("t"), None


def codes(answer: Any) -> dict[str, int]:
    return {topic.topic: topic.partitions[0].error_code for topic in answer.topics}


@pytest.mark.parametrize("version", [2, 3, 4])
def test_an_epoch_ends_where_the_log_ends_or_is_unknown(node: Guarded, version: int) -> None:
    node.write("t", b"v")
    end = node.node.broker.replicas.partitions_named("t")[0].high_watermark
    (known,) = node.ask(asking("t"), version, ADMIN).topics[0].partitions
    assert (known.leader_epoch, known.end_offset) == (0, end)
    (later,) = node.ask(asking("t", epoch=7), version, ADMIN).topics[0].partitions
    assert (later.leader_epoch, later.end_offset) == (-1, -1)


def test_another_current_epoch_and_an_unknown_topic_are_refused(node: Guarded) -> None:
    assert codes(node.ask(asking("t", current=5), principal=ADMIN)) == {"t": ErrorCode.UNKNOWN_LEADER_EPOCH}
    assert codes(node.ask(asking("nowhere"), principal=ADMIN)) == {"nowhere": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_consumers_need_each_topic_and_replicas_the_cluster(node: Guarded) -> None:
    node.allow(AclOperation.DESCRIBE, TOPIC, "t")
    assert codes(node.ask(asking("t", "hidden"))) == {"t": 0, "hidden": T_DENIED}
    node.forget_acls()
    node.allow(AclOperation.CLUSTER_ACTION, CLUSTER)
    assert codes(node.ask(asking("t", "hidden"))) == {"t": 0, "hidden": 0}
