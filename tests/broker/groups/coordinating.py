"""A broker that coordinates classic groups, and clients that a test moves by hand."""

from __future__ import annotations

import struct
from typing import Any

from heirlog.broker.groups import admin, offset_requests
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import (
    DescribeGroupsRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
)

from ..fakes import Rig, answer_of, context, state

OFFSETS = "__consumer_offsets"
READS_FOO = struct.pack(">hih3s", 1, 1, 3, b"foo")


class Coordinating(Rig):
    """Broker 1 leads the only partition of `__consumer_offsets`; foo has two partitions."""

    def __init__(self, replicas: list[int] | None = None, **properties: str) -> None:
        super().__init__(group_initial_rebalance_delay_ms="0", **properties)
        self.started()
        self.replicas = replicas or [1]
        for index in range(2):
            self.set_partition(state([1], leader_epoch=0), "foo", index)
        self.lead(5)

    def lead(self, epoch: int, leader: int = 1, isr: list[int] | None = None) -> None:
        self.set_partition(state(self.replicas, isr, leader=leader, leader_epoch=epoch, partition_epoch=epoch), OFFSETS)
        self.publish()
        self.env.advance(1)

    def followed(self) -> None:
        """Broker 2 has fetched everything."""
        end = self.partition(OFFSETS).log.log_end_offset
        self.fetch(end, replica=2, leader_epoch=5, last_fetched_epoch=5, topic=OFFSETS)

    def commit(self, offset: int, group: str = "g", *, topic: str = "foo", index: int = 0, **more: Any) -> Any:
        version = more.pop("version", 9)
        metadata = more.pop("metadata", None)
        request = OffsetCommitRequest(
            group_id=group,
            topics=[
                OffsetCommitRequest.OffsetCommitRequestTopic(
                    name=topic,
                    topic_id=more.pop("topic_id", bytes(16)),
                    partitions=[
                        OffsetCommitRequest.OffsetCommitRequestPartition(
                            partition_index=index, committed_offset=offset, committed_metadata=metadata
                        )
                    ],
                )
            ],
            **more,
        )
        return offset_requests.commit(self.broker.groups, self.env, request, context(version))

    def committed(self, group: str = "g", index: int = 0) -> Any:
        """The offset, or the name of the error."""
        request = OffsetFetchRequest(
            group_id=group,
            topics=[OffsetFetchRequest.OffsetFetchRequestTopic(name="foo", partition_indexes=[index])],
        )
        answer = offset_requests.fetch(self.broker.groups, request, context(7))
        if answer.error_code:
            return ErrorCode(answer.error_code).name
        return answer.topics[0].partitions[0].committed_offset

    def join(self, group: str = "g", version: int = 3, **more: Any) -> Any:
        protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=READS_FOO)
        request = JoinGroupRequest(
            group_id=group,
            **{"session_timeout_ms": 10_000, "protocol_type": "consumer", "protocols": [protocol], **more},
        )
        pending = self.broker.groups.join_group(request, context(version))
        self.env.advance(1)
        return pending

    def member(self, group: str = "g") -> tuple[str, int]:
        """The only member of a stable group: its id and generation."""
        joined = answer_of(self.join(group))
        part = SyncGroupRequest.SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"all")
        request = SyncGroupRequest(
            group_id=group, generation_id=joined.generation_id, member_id=joined.member_id, assignments=[part]
        )
        assert answer_of(self.broker.groups.sync_group(request, context(3))).assignment == b"all"
        return joined.member_id, joined.generation_id

    def heartbeat(self, member: tuple[str, int], group: str = "g") -> str:
        request = HeartbeatRequest(group_id=group, member_id=member[0], generation_id=member[1])
        return ErrorCode(self.broker.groups.heartbeat(request, context(3)).error_code).name

    def described(self, group: str = "g", version: int = 5) -> Any:
        request = DescribeGroupsRequest(groups=[group])
        return admin.describe_groups(self.broker.groups, request, context(version)).groups[0]


def codes(answer: Any) -> list[str]:
    return [ErrorCode(p.error_code).name for topic in answer_of(answer).topics for p in topic.partitions]
