"""The records of share groups in `__consumer_offsets`, in Kafka's format.

    10  what a member says                     ShareSubscription
    11  epoch of the group                     ShareGroupEpoch
    12  epoch of the target assignment         ShareTargetEpoch
    13  target of a member                     ShareTargetMember
    14  current assignment of a member         ShareCurrentMember
    15  where the state of its topics stands   ShareTopics

A value of None is a tombstone. Compaction may drop any of a group's records and keep the others, so a reader must
accept every subset.

Source: KIP-932.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from heirlog.broker.coordinator_records import decode_message, decode_value, encode_key, encode_value
from heirlog.broker.groups.consumer.values import Assignment, MemberAssignment, MemberState, stored_assignment
from heirlog.broker.groups.share.values import NamedPartitions, ShareSubscriber, StateTopics, Topics
from heirlog.metadata.topic_name import OFFSETS_TOPIC
from heirlog.protocol.primitives import Message
from heirlog.protocol.records import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
)
from heirlog.protocol.types import Uuid

_VALUE_VERSION = 0


class ShareSubscription(NamedTuple):
    group: str
    member_id: str
    value: ShareSubscriber | None


class ShareGroupEpoch(NamedTuple):
    group: str
    value: int | None
    metadata_hash: int = 0


class ShareTargetEpoch(NamedTuple):
    group: str
    value: int | None


class ShareTargetMember(NamedTuple):
    group: str
    member_id: str
    value: Assignment | None


class ShareCurrentMember(NamedTuple):
    group: str
    member_id: str
    value: MemberAssignment | None


class ShareTopics(NamedTuple):
    group: str
    value: StateTopics | None


ShareGroupRecord: TypeAlias = (
    ShareSubscription | ShareGroupEpoch | ShareTargetEpoch | ShareTargetMember | ShareCurrentMember | ShareTopics
)


def write_share_record(record: ShareGroupRecord) -> tuple[bytes, bytes | None]:
    """Key and value."""
    key, value = as_messages(record)
    return encode_key(type(key).API_KEY, key), None if value is None else encode_value(value, _VALUE_VERSION)


def as_messages(record: ShareGroupRecord) -> tuple[Message, Message | None]:
    """Key and value."""
    return _AS_MESSAGES[type(record)](record)


def read_share_record(key_type: int, key: bytes, value: bytes | None) -> ShareGroupRecord | None:
    """None if the type is not one of a share group. Raises Malformed."""
    read = _READERS.get(key_type)
    return None if read is None else read(key, value)


# -- writing ----------------------------------------------------------------------------------------------------------


def _member(record: ShareSubscription) -> tuple[Message, Message | None]:
    key = ShareGroupMemberMetadataKey(group_id=record.group, member_id=record.member_id)
    member = record.value
    if member is None:
        return key, None
    return key, ShareGroupMemberMetadataValue(
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topics),
    )


def _group_epoch(record: ShareGroupEpoch) -> tuple[Message, Message | None]:
    key = ShareGroupMetadataKey(group_id=record.group)
    if record.value is None:
        return key, None
    return key, ShareGroupMetadataValue(epoch=record.value, metadata_hash=record.metadata_hash)


def _target_epoch(record: ShareTargetEpoch) -> tuple[Message, Message | None]:
    key = ShareGroupTargetAssignmentMetadataKey(group_id=record.group)
    if record.value is None:
        return key, None
    return key, ShareGroupTargetAssignmentMetadataValue(assignment_epoch=record.value)


def _target_member(record: ShareTargetMember) -> tuple[Message, Message | None]:
    key = ShareGroupTargetAssignmentMemberKey(group_id=record.group, member_id=record.member_id)
    if record.value is None:
        return key, None
    Topic = ShareGroupTargetAssignmentMemberValue.TopicPartition
    return key, ShareGroupTargetAssignmentMemberValue(
        topic_partitions=[
            Topic(topic_id=topic_id, partitions=sorted(numbers)) for topic_id, numbers in record.value.items()
        ]
    )


def _current_member(record: ShareCurrentMember) -> tuple[Message, Message | None]:
    key = ShareGroupCurrentMemberAssignmentKey(group_id=record.group, member_id=record.member_id)
    current = record.value
    if current is None:
        return key, None
    Topic = ShareGroupCurrentMemberAssignmentValue.TopicPartitions
    return key, ShareGroupCurrentMemberAssignmentValue(
        member_epoch=current.epoch,
        previous_member_epoch=current.previous_epoch,
        state=current.state,
        assigned_partitions=[
            Topic(topic_id=topic_id, partitions=sorted(numbers)) for topic_id, numbers in current.assigned.items()
        ],
    )


def _topics(record: ShareTopics) -> tuple[Message, Message | None]:
    key = ShareGroupStatePartitionMetadataKey(group_id=record.group)
    topics = record.value
    if topics is None:
        return key, None
    Info = ShareGroupStatePartitionMetadataValue.TopicInfo
    return key, ShareGroupStatePartitionMetadataValue(
        initializing_topics=_infos(topics.initializing),
        initialized_topics=_infos(topics.initialized),
        deleting_topics=[Info(topic_id=topic_id, topic_name=name) for topic_id, name in topics.deleting.items()],
    )


def _infos(topics: Topics) -> list[ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo]:
    return [
        ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo(
            topic_id=topic_id, topic_name=name, partitions=sorted(partitions)
        )
        for topic_id, (name, partitions) in topics.items()
    ]


_AS_MESSAGES: Final[Mapping[type[Any], Callable[[Any], tuple[Any, Any]]]] = {
    ShareSubscription: _member,
    ShareGroupEpoch: _group_epoch,
    ShareTargetEpoch: _target_epoch,
    ShareTargetMember: _target_member,
    ShareCurrentMember: _current_member,
    ShareTopics: _topics,
}


# -- reading ----------------------------------------------------------------------------------------------------------


def _read_member(key: bytes, data: bytes | None) -> ShareSubscription:
    names = decode_message(ShareGroupMemberMetadataKey, key)
    value = decode_value(ShareGroupMemberMetadataValue, data, OFFSETS_TOPIC)
    if value is None:
        return ShareSubscription(names.group_id, names.member_id, None)
    member = ShareSubscriber(
        names.member_id, value.rack_id, value.client_id, value.client_host, frozenset(value.subscribed_topic_names)
    )
    return ShareSubscription(names.group_id, names.member_id, member)


def _read_group_epoch(key: bytes, data: bytes | None) -> ShareGroupEpoch:
    group = decode_message(ShareGroupMetadataKey, key).group_id
    value = decode_value(ShareGroupMetadataValue, data, OFFSETS_TOPIC)
    return ShareGroupEpoch(group, None) if value is None else ShareGroupEpoch(group, value.epoch, value.metadata_hash)


def _read_target_epoch(key: bytes, data: bytes | None) -> ShareTargetEpoch:
    group = decode_message(ShareGroupTargetAssignmentMetadataKey, key).group_id
    value = decode_value(ShareGroupTargetAssignmentMetadataValue, data, OFFSETS_TOPIC)
    return ShareTargetEpoch(group, None if value is None else value.assignment_epoch)


def _read_target_member(key: bytes, data: bytes | None) -> ShareTargetMember:
    names = decode_message(ShareGroupTargetAssignmentMemberKey, key)
    value = decode_value(ShareGroupTargetAssignmentMemberValue, data, OFFSETS_TOPIC)
    target = None if value is None else stored_assignment(value.topic_partitions)
    return ShareTargetMember(names.group_id, names.member_id, target)


def _read_current_member(key: bytes, data: bytes | None) -> ShareCurrentMember:
    names = decode_message(ShareGroupCurrentMemberAssignmentKey, key)
    value = decode_value(ShareGroupCurrentMemberAssignmentValue, data, OFFSETS_TOPIC)
    if value is None:
        return ShareCurrentMember(names.group_id, names.member_id, None)
    current = MemberAssignment(
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=MemberState.STABLE,
        assigned=stored_assignment(value.assigned_partitions),
    )
    return ShareCurrentMember(names.group_id, names.member_id, current)


def _read_topics(key: bytes, data: bytes | None) -> ShareTopics:
    group = decode_message(ShareGroupStatePartitionMetadataKey, key).group_id
    value = decode_value(ShareGroupStatePartitionMetadataValue, data, OFFSETS_TOPIC)
    if value is None:
        return ShareTopics(group, None)
    return ShareTopics(
        group,
        StateTopics(
            _named(value.initializing_topics),
            _named(value.initialized_topics),
            {Uuid(bytes(topic.topic_id)): topic.topic_name for topic in value.deleting_topics},
        ),
    )


def _named(topics: Iterable[Any]) -> Topics:
    return {
        Uuid(bytes(topic.topic_id)): NamedPartitions(topic.topic_name, frozenset(topic.partitions)) for topic in topics
    }


_READERS: Final[Mapping[int, Callable[[bytes, bytes | None], ShareGroupRecord]]] = {
    10: _read_member,
    11: _read_group_epoch,
    12: _read_target_epoch,
    13: _read_target_member,
    14: _read_current_member,
    15: _read_topics,
}
