"""A broker that coordinates groups of the consumer protocol, and members that a test moves by hand."""

from __future__ import annotations

from typing import Any

from heirlog.broker.groups import offset_requests
from heirlog.broker.groups.consumer.group import ConsumerGroup
from heirlog.broker.groups.consumer.values import Assignment, MemberAssignment
from heirlog.metadata.state import GROUP_VERSION
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import ConsumerGroupHeartbeatRequest, OffsetCommitRequest, OffsetFetchRequest

from ...fakes import TOPIC_IDS, Rig, answer_of, context, state

OFFSETS = "__consumer_offsets"
FOO, BAR = TOPIC_IDS["foo"], TOPIC_IDS["bar"]
SESSION_MS = 45_000
REBALANCE_MS = 60_000


class Coordinating(Rig):
    """Broker 1 leads the only partition of `__consumer_offsets`; foo has `partitions` partitions."""

    def __init__(self, replicas: list[int] | None = None, partitions: int = 6, **properties: str) -> None:
        super().__init__(group_initial_rebalance_delay_ms="0", **properties)
        self.started()
        self.replicas = replicas or [1]
        self.image.set_feature(GROUP_VERSION, 1, self.journal)
        self.set_topic("foo", partitions)
        self.lead(5)

    def set_topic(self, topic: str, partitions: int) -> None:
        for index in range(partitions):
            self.set_partition(state([3], leader=3, leader_epoch=0), topic, index)

    def lead(
        self, epoch: int, leader: int = 1, isr: list[int] | None = None, partition_epoch: int | None = None
    ) -> None:
        number = epoch if partition_epoch is None else partition_epoch
        self.set_partition(
            state(self.replicas, isr, leader=leader, leader_epoch=epoch, partition_epoch=number), OFFSETS
        )
        self.publish()
        self.env.advance(1)

    def follow(self, epoch: int = 5) -> None:
        """Broker 2 has fetched everything."""
        end = self.partition(OFFSETS).log.log_end_offset
        self.fetch(end, replica=2, leader_epoch=epoch, last_fetched_epoch=epoch, topic=OFFSETS)

    def beat(self, request: ConsumerGroupHeartbeatRequest, version: int = 1) -> Any:
        return self.broker.groups.consumer_group_heartbeat(request, context(version))

    def group(self, group_id: str = "g") -> ConsumerGroup:
        shard = self.broker.groups.shard_of(group_id)
        assert not isinstance(shard, ErrorCode)
        group = shard.groups[group_id]
        assert isinstance(group, ConsumerGroup)
        return group

    def log_end(self) -> int:
        return self.partition(OFFSETS).log.log_end_offset

    def commit(self, member: Consumer, offset: int, *, epoch: int | None = None, version: int = 9) -> str:
        topic = OffsetCommitRequest.OffsetCommitRequestTopic(
            name="foo",
            partitions=[OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)],
        )
        request = OffsetCommitRequest(
            group_id="g",
            member_id=member.id,
            generation_id_or_member_epoch=member.epoch if epoch is None else epoch,
            topics=[topic],
        )
        answer = offset_requests.commit(self.broker.groups, self.env, request, context(version))
        answer = answer_of(answer)
        assert answer is not None, "it waits for the high watermark"
        return ErrorCode(answer.topics[0].partitions[0].error_code).name

    def committed(self, member: Consumer | None = None, *, epoch: int = -1) -> Any:
        """Offset of the first partition, or the name of the error. epoch: of a request that names no member."""
        Group, Topic = OffsetFetchRequest.OffsetFetchRequestGroup, OffsetFetchRequest.OffsetFetchRequestTopics
        asked = Group(group_id="g", topics=[Topic(name="foo", partition_indexes=[0])])
        asked.member_id, asked.member_epoch = None, epoch
        if member is not None:
            asked.member_id, asked.member_epoch = member.id, member.epoch
        (answer,) = offset_requests.fetch(self.broker.groups, OffsetFetchRequest(groups=[asked]), context(9)).groups
        if answer.error_code:
            return ErrorCode(answer.error_code).name
        return answer.topics[0].partitions[0].committed_offset


class Consumer:
    """A member as a client has it: it acknowledges at once what it is told, unless a test says otherwise."""

    def __init__(self, rig: Coordinating, name: str, instance: str | None = None, **joins_with: Any) -> None:
        self.rig = rig
        self.id = name
        self.instance = instance
        self.epoch = 0
        self.owned: Assignment = {}
        self.last: Any = None
        self._joins_with: dict[str, Any] = {"subscribed_topic_names": ["foo"], **joins_with}

    def send(self, **fields: Any) -> Any:
        values: dict[str, Any] = {"group_id": "g", "member_id": self.id, "member_epoch": self.epoch}
        values["instance_id"] = self.instance
        return self.rig.beat(ConsumerGroupHeartbeatRequest(**(values | fields)))

    def join(self, **fields: Any) -> str:
        self.epoch = 0
        return self.hear(self.send(**self._join_fields(), **fields))

    def _join_fields(self) -> dict[str, Any]:
        return {"rebalance_timeout_ms": REBALANCE_MS, "topic_partitions": [], **self._joins_with}

    def beat(self, *, owns: bool = False, **fields: Any) -> str:
        """owns: name what it has, as a client does after it gave up partitions."""
        if owns:
            Topic = ConsumerGroupHeartbeatRequest.TopicPartitions
            fields["topic_partitions"] = [Topic(topic_id=t, partitions=sorted(n)) for t, n in self.owned.items()]
        return self.hear(self.send(**fields))

    def hear(self, answer: Any) -> str:
        """Takes the answer; its error's name, or what the member has now."""
        answer = answer_of(answer)
        assert answer is not None, "it waits for the high watermark"
        self.last = answer
        if answer.error_code:
            return ErrorCode(answer.error_code).name
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.owned = {each.topic_id: frozenset(each.partitions) for each in answer.assignment.topic_partitions}
        return self.shown()

    def shown(self) -> str:
        names = {topic_id: name for name, topic_id in TOPIC_IDS.items()}
        parts = [f"{names[each]}:{','.join(map(str, sorted(n)))}" for each, n in sorted(self.owned.items())]
        return f"{self.epoch} {' '.join(parts)}".rstrip()

    @property
    def stored(self) -> MemberAssignment:
        return self.rig.group().state.current(self.id)
