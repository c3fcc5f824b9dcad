"""Groups of one broker: members that join, and what they are asked for."""

from __future__ import annotations

from typing import Any, NamedTuple

from apis.guarded import ADMIN, Guarded

from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import (
    DescribeGroupsRequest,
    JoinGroupRequest,
    OffsetCommitRequest,
    SyncGroupRequest,
)

UNNAMED_VERSION = 3
"""The last version of JoinGroup in which a new member joins without an id."""


class Member(NamedTuple):
    id: str
    generation: int


def coordinate(node: Guarded) -> None:
    """Waits until the broker coordinates groups."""
    asked = DescribeGroupsRequest(groups=["any"])
    node.wait(lambda: node.ask(asked, 0, ADMIN).groups[0].error_code == ErrorCode.NONE)


def joining(group: str = "g", member_id: str = "", **more: Any) -> JoinGroupRequest:
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"subscription")
    values: dict[str, Any] = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 10_000, "protocols": [protocol]}
    return JoinGroupRequest(group_id=group, member_id=member_id, protocol_type="consumer", **(values | more))


def syncing(group: str, member: Member, **more: Any) -> SyncGroupRequest:
    assignment = SyncGroupRequest.SyncGroupRequestAssignment(member_id=member.id, assignment=b"all of it")
    values: dict[str, Any] = {"assignments": [assignment], "protocol_type": "consumer", "protocol_name": "range"}
    return SyncGroupRequest(group_id=group, member_id=member.id, generation_id=member.generation, **(values | more))


def joined(node: Guarded, group: str) -> Member:
    """The only member of a group, which has its assignment."""
    coordinate(node)
    answer = node.ask(joining(group), UNNAMED_VERSION, ADMIN)
    assert answer.error_code == ErrorCode.NONE
    member = Member(answer.member_id, answer.generation_id)
    assert node.ask(syncing(group, member), principal=ADMIN).error_code == ErrorCode.NONE
    return member


def committing(group: str, *topics: str, offset: int = 1, **more: Any) -> OffsetCommitRequest:
    Topic, Partition = OffsetCommitRequest.OffsetCommitRequestTopic, OffsetCommitRequest.OffsetCommitRequestPartition
    return OffsetCommitRequest(
        group_id=group,
        topics=[Topic(name=name, partitions=[Partition(committed_offset=offset)]) for name in topics],
        **more,
    )


def commit(node: Guarded, group: str, topic: str = "t", offset: int = 1) -> None:
    """An offset of a group without members."""
    coordinate(node)
    (answer,) = node.ask(committing(group, topic, offset=offset), 9, ADMIN).topics
    assert answer.partitions[0].error_code == ErrorCode.NONE
