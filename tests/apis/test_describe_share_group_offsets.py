"""DescribeShareGroupOffsets through a node: versions, lag, and what a client may see."""

from __future__ import annotations

from typing import Any

from apis.guarded import ADMIN, G_DENIED, GROUP, T_DENIED, TOPIC, Guarded
from apis.shares import joined, left, reading

from heirlog.metadata.acls import AclOperation
from heirlog.metadata.topic_name import SHARE_STATE_TOPIC
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import (
    AlterShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequest,
    ReadShareGroupStateSummaryRequest,
    WriteShareGroupStateRequest,
)

R = DescribeShareGroupOffsetsRequest


def describing(group: str = "g", *topics: str) -> DescribeShareGroupOffsetsRequest:
    """Without topics: all of them."""
    named = [R.DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=[0]) for name in topics] or None
    return R(groups=[R.DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=named)])


EXAMPLE = describing(), None


def shown(answer: Any) -> Any:
    """The error of the group, or each partition's start offset and lag, or error."""
    (group,) = answer.groups
    if group.error_code:
        return ErrorCode(group.error_code)
    return {
        topic.topic_name: ErrorCode(part.error_code) if part.error_code else (part.start_offset, part.lag)
        for topic in group.topics
        for part in topic.partitions
    }


def test_a_description_does_not_create_the_topic_of_the_state(node: Guarded) -> None:
    """The first test here: those that follow do."""
    assert shown(node.ask(describing("none", "t"), principal=ADMIN)) == {"t": (-1, -1)}
    assert SHARE_STATE_TOPIC not in node.node.image.topic_ids


def test_start_offsets_and_from_version_1_on_lag(node: Guarded) -> None:
    left(node, "lag")
    assert shown(node.ask(describing("lag"), principal=ADMIN)) == {"t": (-1, -1)}, "nothing was fetched"
    node.write("t", *(b"%d" % n for n in range(10)))
    A, W = AlterShareGroupOffsetsRequest, WriteShareGroupStateRequest
    part = A.AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=2)
    topics = [A.AlterShareGroupOffsetsRequestTopic(topic_name="t", partitions=[part])]
    assert node.ask(A(group_id="lag", topics=topics), principal=ADMIN).error_code == ErrorCode.NONE
    node.ask(reading(node.topic_id("t"), "lag", 0), principal=ADMIN)
    asked = W.PartitionData(
        partition=0, state_epoch=-1, leader_epoch=0, start_offset=3, delivery_complete_count=2, state_batches=[]
    )
    write = W(group_id="lag", topics=[W.WriteStateData(topic_id=node.topic_id("t"), partitions=[asked])])
    assert node.ask(write, principal=ADMIN).results[0].partitions[0].error_code == ErrorCode.NONE
    assert shown(node.ask(describing("lag"), 0, ADMIN)) == {"t": (3, -1)}
    assert shown(node.ask(describing("lag", "t"), 1, ADMIN)) == {"t": (3, 10 - 3 - 2)}


def test_what_does_not_exist_has_no_offset_and_no_error(node: Guarded) -> None:
    """As on Apache Kafka, and as OffsetFetch."""
    joined(node, "known")
    for group in ("none", ""):
        assert shown(node.ask(describing(group), principal=ADMIN)) == {}
        assert shown(node.ask(describing(group, "t"), principal=ADMIN)) == {"t": (-1, -1)}
    found = shown(node.ask(describing("known", "none", "hidden"), principal=ADMIN))
    assert found == {"none": (-1, -1), "hidden": (-1, -1)}


def test_what_is_named_twice_is_described_once(node: Guarded) -> None:
    joined(node, "doubled")
    request = describing("doubled", "t", "t")
    request.groups[0].topics[0].partitions *= 2
    (topic,) = node.ask(request, principal=ADMIN).groups[0].topics
    assert [part.partition_index for part in topic.partitions] == [0]


def test_a_client_sees_groups_and_topics_that_it_may_describe(node: Guarded) -> None:
    joined(node, "acl", "t", "hidden")
    assert shown(node.ask(describing("acl"))) is G_DENIED
    node.allow(AclOperation.DESCRIBE, GROUP, "acl")
    node.allow(AclOperation.DESCRIBE, TOPIC, "t")
    assert shown(node.ask(describing("acl"))) == {"t": (-1, -1)}
    assert shown(node.ask(describing("acl", "t", "hidden"))) == {"t": (-1, -1), "hidden": T_DENIED}


def test_the_summary_is_asked_for_by_nodes_only(node: Guarded) -> None:
    """The client needs no permission on the cluster, because the coordinator asks for itself."""
    joined(node, "inner")
    node.allow(AclOperation.DESCRIBE, GROUP, "inner")
    node.allow(AclOperation.DESCRIBE, TOPIC, "t")
    assert shown(node.ask(describing("inner"))) == {"t": (-1, -1)}
    S = ReadShareGroupStateSummaryRequest
    asked = [
        S.ReadStateSummaryData(topic_id=node.topic_id("t"), partitions=[S.PartitionData(partition=0, leader_epoch=0)])
    ]
    answer = node.ask(S(group_id="inner", topics=asked))
    assert answer.results[0].partitions[0].error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
