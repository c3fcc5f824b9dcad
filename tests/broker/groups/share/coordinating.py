"""A broker that coordinates share groups; the test is the share coordinator and its members."""

from __future__ import annotations

from typing import Any

from heirlog.broker.groups.share.group import ShareGroup
from heirlog.broker.groups.share.state_requests import CHANNEL
from heirlog.metadata.state import SHARE_VERSION
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
    InitializeShareGroupStateResponse,
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    ShareGroupHeartbeatRequest,
)

from ...fakes import TOPIC_IDS, Rig, answer_of, context, state

OFFSETS, STATES = "__consumer_offsets", "__share_group_state"
FOO, BAR = TOPIC_IDS["foo"], TOPIC_IDS["bar"]
SESSION_MS = 45_000


class Coordinating(Rig):
    """Broker 1 leads the only partition of `__consumer_offsets`; broker 3 leads foo and `__share_group_state`."""

    def __init__(self, replicas: list[int] | None = None, partitions: int = 2, **properties: str) -> None:
        super().__init__(**properties)
        self.started()
        self.replicas = replicas or [1]
        self.partition_epoch = 5
        self.image.set_feature(SHARE_VERSION, 1, self.journal)
        self.set_topic("foo", partitions)
        self.set_topic(STATES, 1)
        self.lead(5)

    def set_topic(self, topic: str, partitions: int) -> None:
        for index in range(partitions):
            self.set_partition(state([3], leader=3, leader_epoch=0), topic, index)

    def lead(self, epoch: int, leader: int = 1, isr: list[int] | None = None) -> None:
        to = state(self.replicas, isr, leader=leader, leader_epoch=epoch, partition_epoch=epoch)
        self.set_partition(to, OFFSETS)
        self.publish()
        self.env.advance(1)

    def set_isr(self, isr: list[int]) -> None:
        self.partition_epoch += 1
        to = state(self.replicas, isr, leader=1, leader_epoch=5, partition_epoch=self.partition_epoch)
        self.set_partition(to, OFFSETS)
        self.publish()

    def follow(self, epoch: int = 5) -> None:
        """Broker 2 has fetched everything."""
        end = self.partition(OFFSETS).log.log_end_offset
        self.fetch(end, replica=2, leader_epoch=epoch, last_fetched_epoch=epoch, topic=OFFSETS)

    def answer_states(self, code: ErrorCode = ErrorCode.NONE) -> str:
        """The share coordinator answers what it is asked; returns what that was."""
        self.env.advance(1)
        sent = self.env.take(CHANNEL)
        asked: Any = sent.request
        shown = [f"{names()[t.topic_id]}:{','.join(str(p.partition) for p in t.partitions)}" for t in asked.topics]
        kind = type(asked).__name__.removesuffix("Request").replace("ShareGroupState", "")
        R: Any = InitializeShareGroupStateResponse
        topic_class = InitializeShareGroupStateResponse.InitializeStateResult
        if isinstance(asked, DeleteShareGroupStateRequest):
            R, topic_class = DeleteShareGroupStateResponse, DeleteShareGroupStateResponse.DeleteStateResult
        elif isinstance(asked, ReadShareGroupStateSummaryRequest):
            R = ReadShareGroupStateSummaryResponse
            topic_class = ReadShareGroupStateSummaryResponse.ReadStateSummaryResult
        results = [
            topic_class(
                topic_id=topic.topic_id,
                partitions=[R.PartitionResult(partition=each.partition, error_code=code) for each in topic.partitions],
            )
            for topic in asked.topics
        ]
        sent.on_result(R(results=results))
        return f"{kind} {' '.join(shown)}"

    def group(self, group_id: str = "g") -> ShareGroup:
        shard = self.broker.groups.shard_of(group_id)
        assert not isinstance(shard, ErrorCode)
        return shard.shares.groups[group_id]

    def log_end(self) -> int:
        return self.partition(OFFSETS).log.log_end_offset

    def beat(self, request: ShareGroupHeartbeatRequest) -> Any:
        return self.broker.groups.share_group_heartbeat(request, context(1))


def names() -> dict[Any, str]:
    return {topic_id: name for name, topic_id in TOPIC_IDS.items()}


class ShareConsumer:
    """A member as a client has it."""

    def __init__(self, rig: Coordinating, name: str, *topics: str, group: str = "g") -> None:
        self.rig = rig
        self.id = name
        self.topics = list(topics or ("foo",))
        self.group = group
        self.epoch = 0
        self.owned = ""

    def send(self, **fields: Any) -> Any:
        values: dict[str, Any] = {"group_id": self.group, "member_id": self.id, "member_epoch": self.epoch}
        return self.rig.beat(ShareGroupHeartbeatRequest(**(values | fields)))

    def join(self) -> str:
        self.epoch = 0
        return self.hear(self.send(subscribed_topic_names=self.topics))

    def beat(self, **fields: Any) -> str:
        return self.hear(self.send(**fields))

    def hear(self, answer: Any) -> str:
        """Takes the answer; its error's name, or what the member has now."""
        answer = answer_of(answer)
        assert answer is not None, "it waits for the high watermark"
        if answer.error_code:
            return ErrorCode(answer.error_code).name
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            parts = answer.assignment.topic_partitions
            self.owned = " ".join(f"{names()[each.topic_id]}:{','.join(map(str, each.partitions))}" for each in parts)
        return f"{self.epoch} {self.owned}".rstrip()
