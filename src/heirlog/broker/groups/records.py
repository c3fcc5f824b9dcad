"""The records of `__consumer_offsets`, in Kafka's format: the newest of each key counts, one without a value deletes.

    key     int16 version | OffsetCommitKey (0, 1) or GroupMetadataKey (2)
    value   int16 version | OffsetCommitValue or GroupMetadataValue

An offset is written as version 4, which has the id of its topic (1 with an expiry of its own, which later versions
lack), and a group as version 3. Keys 3 to 8 and 16 belong to groups of the consumer protocol
(`consumer/records.py`), keys 10 to 15 to share groups (`share/records.py`). Keys of other versions (streams groups) are
skipped.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from heirlog.broker.coordinator_records import decode_message, encode_key, encode_value, prefix_of
from heirlog.broker.groups.consumer.records import ConsumerGroupRecord, read_consumer_record
from heirlog.broker.groups.offsets import NO_EXPIRY, OffsetAndMetadata, TopicPartition
from heirlog.broker.groups.share.records import ShareGroupRecord, read_share_record
from heirlog.metadata.topic_name import OFFSETS_TOPIC
from heirlog.protocol.records import GroupMetadataKey, GroupMetadataValue, OffsetCommitKey, OffsetCommitValue

OFFSET_KEY_VERSION = 1
GROUP_KEY_VERSION = 2
OFFSET_VALUE_VERSION = 4
OFFSET_VALUE_VERSION_WITH_EXPIRY = 1
GROUP_VALUE_VERSION = 3

KeyValue: TypeAlias = tuple[bytes, bytes | None]


class StoredOffset(NamedTuple):
    group: str
    partition: TopicPartition
    value: OffsetAndMetadata | None
    """None: the offset is deleted."""


class StoredGroup(NamedTuple):
    group: str
    value: GroupMetadataValue | None
    """None: the group is deleted."""


StoredRecord: TypeAlias = StoredOffset | StoredGroup | ConsumerGroupRecord | ShareGroupRecord


def offset_record(group: str, partition: TopicPartition, committed: OffsetAndMetadata | None) -> KeyValue:
    key = OffsetCommitKey(group=group, topic=partition[0], partition=partition[1])
    key_bytes = encode_key(OFFSET_KEY_VERSION, key, OFFSET_KEY_VERSION)
    if committed is None:
        return key_bytes, None
    version = OFFSET_VALUE_VERSION if committed.expire_ms == NO_EXPIRY else OFFSET_VALUE_VERSION_WITH_EXPIRY
    return key_bytes, encode_value(committed.as_record(), version)


def group_record(group: str, value: GroupMetadataValue | None) -> KeyValue:
    key_bytes = encode_key(GROUP_KEY_VERSION, GroupMetadataKey(group=group), GROUP_KEY_VERSION)
    if value is None:
        return key_bytes, None
    return key_bytes, encode_value(value, GROUP_VALUE_VERSION)


def read_record(key: bytes | None, value: bytes | None) -> StoredRecord | None:
    """None for a record of another kind of group. Raises Malformed."""
    version = prefix_of(key, OFFSETS_TOPIC)
    if key is None or version < 0:
        return None
    if version > GROUP_KEY_VERSION:
        return read_consumer_record(version, key, value) or read_share_record(version, key, value)
    if version == GROUP_KEY_VERSION:
        group = decode_message(GroupMetadataKey, key, GROUP_KEY_VERSION).group
        if value is None:
            return StoredGroup(group, None)
        return StoredGroup(group, decode_message(GroupMetadataValue, value, prefix_of(value, OFFSETS_TOPIC)))
    stored = decode_message(OffsetCommitKey, key, version)
    partition = (stored.topic, stored.partition)
    if value is None:
        return StoredOffset(stored.group, partition, None)
    committed = OffsetAndMetadata.of(decode_message(OffsetCommitValue, value, prefix_of(value, OFFSETS_TOPIC)))
    return StoredOffset(stored.group, partition, committed)
