"""State of share groups through a node, as brokers read and write it."""

from __future__ import annotations

from typing import Any

from apis.groups import coordinate
from apis.guarded import ADMIN, Guarded

from heirlog.metadata.state import SHARE_VERSION
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import (
    FindCoordinatorRequest,
    InitializeShareGroupStateRequest,
    ReadShareGroupStateRequest,
    ShareGroupHeartbeatRequest,
    UpdateFeaturesRequest,
    WriteShareGroupStateRequest,
)
from heirlog.protocol.types import CoordinatorType, uuid_text

UPGRADE, SAFE_DOWNGRADE = 1, 2
NO_TOPIC = bytes(15) + b"\7"


def set_share_version(node: Guarded, level: int) -> None:
    kind = UPGRADE if level else SAFE_DOWNGRADE
    update = UpdateFeaturesRequest.FeatureUpdateKey(feature=SHARE_VERSION, max_version_level=level, upgrade_type=kind)
    node.ask(UpdateFeaturesRequest(feature_updates=[update], timeout_ms=5000), principal=ADMIN)
    node.wait(lambda: node.node.image.share_version == level)


def coordinate_shares(node: Guarded, topic: str = "t") -> bytes:
    """Creates `__share_group_state`; returns the topic's id."""
    topic_id = node.topic_id(topic)
    keys = [f"g:{uuid_text(topic_id)}:0"]
    find = FindCoordinatorRequest(coordinator_keys=keys, key_type=CoordinatorType.SHARE)
    node.wait(lambda: not node.ask(find, principal=ADMIN).coordinators[0].error_code)
    node.wait(lambda: all(shard.loaded for shard in node.node.broker.share_coordinator.shards()))
    return topic_id


def initializing(topic: bytes, group: str = "g", epoch: int = 1, start: int = 5) -> InitializeShareGroupStateRequest:
    R = InitializeShareGroupStateRequest
    asked = R.PartitionData(partition=0, state_epoch=epoch, start_offset=start)
    return R(group_id=group, topics=[R.InitializeStateData(topic_id=topic, partitions=[asked])])


def reading(topic: bytes, group: str = "g", leader_epoch: int = 2) -> ReadShareGroupStateRequest:
    R = ReadShareGroupStateRequest
    asked = R.PartitionData(partition=0, leader_epoch=leader_epoch)
    return R(group_id=group, topics=[R.ReadStateData(topic_id=topic, partitions=[asked])])


def begin(node: Guarded, topic: bytes, group: str) -> None:
    """A state that its leader has read."""
    for request in (initializing(topic, group), reading(topic, group)):
        assert code(node.ask(request, principal=ADMIN)) is ErrorCode.NONE


def writing(topic: bytes, group: str = "g", count: int = 3) -> WriteShareGroupStateRequest:
    R = WriteShareGroupStateRequest
    batch = R.StateBatch(first_offset=6, last_offset=8, delivery_state=2, delivery_count=1)
    asked = R.PartitionData(
        partition=0, state_epoch=1, leader_epoch=2, start_offset=5, delivery_complete_count=count, state_batches=[batch]
    )
    return R(group_id=group, topics=[R.WriteStateData(topic_id=topic, partitions=[asked])])


def code(answer: Any) -> ErrorCode:
    (topic,) = answer.results
    (partition,) = topic.partitions
    return ErrorCode(partition.error_code)


def beating(group: str = "g", member_id: str = "m", epoch: int = 0, **more: Any) -> ShareGroupHeartbeatRequest:
    values: dict[str, Any] = {"subscribed_topic_names": ["t"]} if epoch == 0 else {}
    return ShareGroupHeartbeatRequest(group_id=group, member_id=member_id, member_epoch=epoch, **(values | more))


def joined(node: Guarded, group: str, *topics: str) -> int:
    """A member m has its partitions; returns its epoch."""
    coordinate_shares(node)
    coordinate(node)
    names = list(topics) or ["t"]
    assert node.ask(beating(group, subscribed_topic_names=names), principal=ADMIN).error_code == ErrorCode.NONE
    shard = node.node.broker.groups.shard_of(group)
    node.wait(lambda: len(shard.shares.groups[group].committed.topics.initialized) == len(names))
    answer = node.ask(beating(group, subscribed_topic_names=names), principal=ADMIN)
    assert len(answer.assignment.topic_partitions) == len(names)
    return int(answer.member_epoch)


def left(node: Guarded, group: str, *topics: str) -> None:
    """A group with state and without members."""
    joined(node, group, *topics)
    assert node.ask(beating(group, epoch=-1), principal=ADMIN).error_code == ErrorCode.NONE
