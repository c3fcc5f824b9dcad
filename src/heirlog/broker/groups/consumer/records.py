"""The records of consumer groups in `__consumer_offsets`, in Kafka's format. `broker/groups/records.py` has the others.

    3   epoch of the group                     GroupEpoch
    4   metadata of its topics (until 4.0)     OldTopicMetadata; read and deleted, never written
    5   what a member says                     MemberSubscription
    6   epoch of the target assignment         TargetEpoch
    7   target of a member                     TargetMember
    8   current assignment of a member         CurrentMember
    16  topics of a regular expression         RegexTopics

A value of None is a tombstone. Compaction may drop any of a group's records and keep the others, so a reader must
accept every subset.

Source: KIP-848, KIP-1101 (a hash of the topics instead of key 4).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from heirlog.broker.coordinator_records import decode_message, decode_value, encode_key, encode_value
from heirlog.broker.groups.consumer.values import (
    Assignment,
    ClassicProtocols,
    ConsumerGroupMember,
    MemberAssignment,
    MemberState,
    ResolvedRegex,
    stored_assignment,
)
from heirlog.metadata.topic_name import OFFSETS_TOPIC
from heirlog.protocol.primitives import Message
from heirlog.protocol.records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)

_VALUE_VERSION = 0
_KNOWN_STATES = frozenset(state.value for state in MemberState)


class GroupEpoch(NamedTuple):
    group: str
    epoch: int | None
    metadata_hash: int = 0


class OldTopicMetadata(NamedTuple):
    group: str
    exists: bool = False


class MemberSubscription(NamedTuple):
    group: str
    member_id: str
    value: ConsumerGroupMember | None


class TargetEpoch(NamedTuple):
    group: str
    epoch: int | None


class TargetMember(NamedTuple):
    group: str
    member_id: str
    value: Assignment | None


class CurrentMember(NamedTuple):
    group: str
    member_id: str
    value: MemberAssignment | None


class RegexTopics(NamedTuple):
    group: str
    regex: str
    value: ResolvedRegex | None


ConsumerGroupRecord: TypeAlias = (
    GroupEpoch | OldTopicMetadata | MemberSubscription | TargetEpoch | TargetMember | CurrentMember | RegexTopics
)


def is_tombstone(record: ConsumerGroupRecord) -> bool:
    if isinstance(record, OldTopicMetadata):
        return not record.exists
    return (record.epoch if isinstance(record, GroupEpoch | TargetEpoch) else record.value) is None


def write_consumer_record(record: ConsumerGroupRecord) -> tuple[bytes, bytes | None]:
    """Key and value."""
    key, value = as_messages(record)
    return encode_key(type(key).API_KEY, key), None if value is None else encode_value(value, _VALUE_VERSION)


def as_messages(record: ConsumerGroupRecord) -> tuple[Message, Message | None]:
    """Key and value."""
    return _AS_MESSAGES[type(record)](record)


def read_consumer_record(key_type: int, key: bytes, value: bytes | None) -> ConsumerGroupRecord | None:
    """None if the type is not one of a consumer group. Raises Malformed."""
    read = _READERS.get(key_type)
    return None if read is None else read(key, value)


# -- writing ----------------------------------------------------------------------------------------------------------


def _group_epoch(record: GroupEpoch) -> tuple[Message, Message | None]:
    value = (
        None
        if record.epoch is None
        else ConsumerGroupMetadataValue(epoch=record.epoch, metadata_hash=record.metadata_hash)
    )
    return ConsumerGroupMetadataKey(group_id=record.group), value


def _old_topic_metadata(record: OldTopicMetadata) -> tuple[Message, Message | None]:
    assert not record.exists, "versions of Kafka that heirlog follows do not write it"
    return ConsumerGroupPartitionMetadataKey(group_id=record.group), None


def _member_subscription(record: MemberSubscription) -> tuple[Message, Message | None]:
    key = ConsumerGroupMemberMetadataKey(group_id=record.group, member_id=record.member_id)
    member = record.value
    if member is None:
        return key, None
    classic = member.classic
    return key, ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topics),
        subscribed_topic_regex=member.regex or "",
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.server_assignor,
        classic_member_metadata=None
        if classic is None
        else ConsumerGroupMemberMetadataValue.ClassicMemberMetadata(
            session_timeout_ms=classic.session_timeout_ms,
            supported_protocols=[
                ConsumerGroupMemberMetadataValue.ClassicProtocol(name=name, metadata=metadata)
                for name, metadata in classic.protocols
            ],
        ),
    )


def _target_epoch(record: TargetEpoch) -> tuple[Message, Message | None]:
    key = ConsumerGroupTargetAssignmentMetadataKey(group_id=record.group)
    if record.epoch is None:
        return key, None
    return key, ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=record.epoch)


def _target_member(record: TargetMember) -> tuple[Message, Message | None]:
    key = ConsumerGroupTargetAssignmentMemberKey(group_id=record.group, member_id=record.member_id)
    if record.value is None:
        return key, None
    Topic = ConsumerGroupTargetAssignmentMemberValue.TopicPartition
    return key, ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=[
            Topic(topic_id=topic_id, partitions=sorted(numbers)) for topic_id, numbers in record.value.items()
        ]
    )


def _current_member(record: CurrentMember) -> tuple[Message, Message | None]:
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id=record.group, member_id=record.member_id)
    current = record.value
    if current is None:
        return key, None
    Topic = ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions
    return key, ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=current.epoch,
        previous_member_epoch=current.previous_epoch,
        state=current.state,
        assigned_partitions=[
            Topic(topic_id=topic_id, partitions=sorted(numbers)) for topic_id, numbers in current.assigned.items()
        ],
        partitions_pending_revocation=[
            Topic(topic_id=topic_id, partitions=sorted(numbers)) for topic_id, numbers in current.pending.items()
        ],
    )


def _regex_topics(record: RegexTopics) -> tuple[Message, Message | None]:
    key = ConsumerGroupRegularExpressionKey(group_id=record.group, regular_expression=record.regex)
    resolved = record.value
    if resolved is None:
        return key, None
    return key, ConsumerGroupRegularExpressionValue(
        topics=sorted(resolved.topics), version=resolved.version, timestamp=resolved.timestamp_ms
    )


_AS_MESSAGES: Final[Mapping[type[Any], Callable[[Any], tuple[Any, Any]]]] = {
    GroupEpoch: _group_epoch,
    OldTopicMetadata: _old_topic_metadata,
    MemberSubscription: _member_subscription,
    TargetEpoch: _target_epoch,
    TargetMember: _target_member,
    CurrentMember: _current_member,
    RegexTopics: _regex_topics,
}


# -- reading ----------------------------------------------------------------------------------------------------------


def _read_group_epoch(key: bytes, data: bytes | None) -> GroupEpoch:
    group = decode_message(ConsumerGroupMetadataKey, key).group_id
    value = decode_value(ConsumerGroupMetadataValue, data, OFFSETS_TOPIC)
    return GroupEpoch(group, None) if value is None else GroupEpoch(group, value.epoch, value.metadata_hash)


def _read_old_topic_metadata(key: bytes, data: bytes | None) -> OldTopicMetadata:
    return OldTopicMetadata(decode_message(ConsumerGroupPartitionMetadataKey, key).group_id, data is not None)


def _read_member_subscription(key: bytes, data: bytes | None) -> MemberSubscription:
    names = decode_message(ConsumerGroupMemberMetadataKey, key)
    value = decode_value(ConsumerGroupMemberMetadataValue, data, OFFSETS_TOPIC)
    if value is None:
        return MemberSubscription(names.group_id, names.member_id, None)
    classic = value.classic_member_metadata
    member = ConsumerGroupMember(
        member_id=names.member_id,
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        topics=frozenset(value.subscribed_topic_names),
        regex=value.subscribed_topic_regex or None,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        server_assignor=value.server_assignor,
        classic=None
        if classic is None
        else ClassicProtocols(
            classic.session_timeout_ms, tuple((each.name, bytes(each.metadata)) for each in classic.supported_protocols)
        ),
    )
    return MemberSubscription(names.group_id, names.member_id, member)


def _read_target_epoch(key: bytes, data: bytes | None) -> TargetEpoch:
    group = decode_message(ConsumerGroupTargetAssignmentMetadataKey, key).group_id
    value = decode_value(ConsumerGroupTargetAssignmentMetadataValue, data, OFFSETS_TOPIC)
    return TargetEpoch(group, None if value is None else value.assignment_epoch)


def _read_target_member(key: bytes, data: bytes | None) -> TargetMember:
    names = decode_message(ConsumerGroupTargetAssignmentMemberKey, key)
    value = decode_value(ConsumerGroupTargetAssignmentMemberValue, data, OFFSETS_TOPIC)
    return TargetMember(
        names.group_id, names.member_id, None if value is None else stored_assignment(value.topic_partitions)
    )


def _read_current_member(key: bytes, data: bytes | None) -> CurrentMember:
    names = decode_message(ConsumerGroupCurrentMemberAssignmentKey, key)
    value = decode_value(ConsumerGroupCurrentMemberAssignmentValue, data, OFFSETS_TOPIC)
    if value is None:
        return CurrentMember(names.group_id, names.member_id, None)
    current = MemberAssignment(
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=MemberState(value.state) if value.state in _KNOWN_STATES else MemberState.UNKNOWN,
        assigned=stored_assignment(value.assigned_partitions),
        pending=stored_assignment(value.partitions_pending_revocation),
    )
    return CurrentMember(names.group_id, names.member_id, current)


def _read_regex_topics(key: bytes, data: bytes | None) -> RegexTopics:
    names = decode_message(ConsumerGroupRegularExpressionKey, key)
    value = decode_value(ConsumerGroupRegularExpressionValue, data, OFFSETS_TOPIC)
    resolved = None if value is None else ResolvedRegex(frozenset(value.topics), value.version, value.timestamp)
    return RegexTopics(names.group_id, names.regular_expression, resolved)


_READERS: Final[Mapping[int, Callable[[bytes, bytes | None], ConsumerGroupRecord]]] = {
    3: _read_group_epoch,
    4: _read_old_topic_metadata,
    5: _read_member_subscription,
    6: _read_target_epoch,
    7: _read_target_member,
    8: _read_current_member,
    16: _read_regex_topics,
}
