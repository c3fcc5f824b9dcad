"""AlterShareGroupOffsets through a node: what it changes, and who may."""

from __future__ import annotations

from typing import Any

from apis.guarded import ADMIN, G_DENIED, GROUP, T_DENIED, TOPIC, Guarded
from apis.shares import coordinate_shares, joined, left

from heirlog.metadata.acls import AclOperation
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import (
    AlterShareGroupOffsetsRequest,
    DeleteGroupsRequest,
    ReadShareGroupStateRequest,
)

R = AlterShareGroupOffsetsRequest


def altering(group: str = "g", offset: int = 7, *topics: str) -> AlterShareGroupOffsetsRequest:
    part = R.AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=offset)
    named = [R.AlterShareGroupOffsetsRequestTopic(topic_name=name, partitions=[part]) for name in topics or ("t",)]
    return R(group_id=group, topics=named)


EXAMPLE = altering(), None


def codes(answer: Any) -> Any:
    if answer.error_code:
        return ErrorCode(answer.error_code)
    return {topic.topic_name: ErrorCode(topic.partitions[0].error_code) for topic in answer.responses}


def test_a_leader_begins_at_the_new_offset_in_a_new_epoch(node: Guarded) -> None:
    left(node, "moved")
    S = ReadShareGroupStateRequest
    asked = [S.ReadStateData(topic_id=node.topic_id("t"), partitions=[S.PartitionData(partition=0, leader_epoch=1)])]
    (before,) = node.ask(S(group_id="moved", topics=asked), principal=ADMIN).results[0].partitions
    assert codes(node.ask(altering("moved"), 0, ADMIN)) == {"t": ErrorCode.NONE}
    (after,) = node.ask(S(group_id="moved", topics=asked), principal=ADMIN).results[0].partitions
    assert (before.start_offset, after.start_offset) == (-1, 7)
    assert after.state_epoch > before.state_epoch


def test_a_group_with_members_is_refused_and_so_are_unknown_topics(node: Guarded) -> None:
    joined(node, "busy")
    assert codes(node.ask(altering("busy"), principal=ADMIN)) is ErrorCode.NON_EMPTY_GROUP
    found = codes(node.ask(altering("new", 7, "t", "none"), principal=ADMIN))
    assert found == {"t": ErrorCode.NONE, "none": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    below = node.ask(altering("new", -5), principal=ADMIN).responses[0].partitions[0]
    assert (below.error_code, below.error_message) == (ErrorCode.INVALID_REQUEST, "The start offset is below 0.")
    missing = node.ask(altering("new", 7, "none"), principal=ADMIN).responses[0].partitions[0]
    assert missing.error_message == "This server does not host this topic-partition."
    nameless = node.ask(altering(""), principal=ADMIN)
    assert codes(nameless) is ErrorCode.INVALID_GROUP_ID and nameless.error_message == "The group id is empty."


def test_a_partition_that_does_not_exist_keeps_no_group_from_being_deleted(node: Guarded) -> None:
    left(node, "beyond")
    request = altering("beyond")
    request.topics[0].partitions[0].partition_index = 99
    assert codes(node.ask(request, principal=ADMIN)) == {"t": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    answer = node.ask(DeleteGroupsRequest(groups_names=["beyond"]), principal=ADMIN)
    assert answer.results[0].error_code == ErrorCode.NONE


def test_a_client_must_be_allowed_to_read_the_group_and_the_topic(node: Guarded) -> None:
    coordinate_shares(node)
    assert codes(node.ask(altering("acl"))) is G_DENIED
    node.allow(AclOperation.READ, GROUP, "acl")
    node.allow(AclOperation.READ, TOPIC, "t")
    assert codes(node.ask(altering("acl", 1, "t", "hidden"))) == {"t": ErrorCode.NONE, "hidden": T_DENIED}
