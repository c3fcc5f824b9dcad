"""The records of `__share_group_state`, in Kafka's format.

    key     int16 type 0 | ShareSnapshotKey          value  int16 version 0 | ShareSnapshotValue; none: deleted
    key     int16 type 1 | ShareUpdateKey            value  int16 version 0 | ShareUpdateValue

The topic is not compacted: a state is its newest snapshot and the updates behind it, and what is older is deleted
(`shard.py`). Keys of other types are of later kinds of records and are skipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from heirlog.broker.coordinator_records import decode_message, decode_value, encode_key, encode_value, prefix_of
from heirlog.broker.share_coordinator.batches import StateBatch
from heirlog.broker.share_coordinator.state import SharePartitionKey, ShareRecord, ShareState, ShareUpdate
from heirlog.metadata.topic_name import SHARE_STATE_TOPIC
from heirlog.protocol.records import ShareSnapshotKey, ShareSnapshotValue, ShareUpdateKey, ShareUpdateValue
from heirlog.protocol.types import Uuid

ShareKey: TypeAlias = ShareSnapshotKey | ShareUpdateKey
ShareValue: TypeAlias = ShareSnapshotValue | ShareUpdateValue

SNAPSHOT_KEY, UPDATE_KEY = 0, 1
_VALUE_VERSION = 0


def write_record(record: ShareRecord) -> tuple[bytes, bytes | None]:
    """Key and value."""
    key, value = record.key, record.value
    if isinstance(value, ShareUpdate):
        update_key = ShareUpdateKey(group_id=key.group, topic_id=key.topic_id, partition=key.partition)
        return encode_key(UPDATE_KEY, update_key), encode_value(
            ShareUpdateValue(
                snapshot_epoch=value.snapshot_epoch,
                leader_epoch=value.leader_epoch,
                start_offset=value.start_offset,
                delivery_complete_count=value.delivery_complete_count,
                state_batches=[ShareUpdateValue.StateBatch(**batch._asdict()) for batch in value.batches],
            ),
            _VALUE_VERSION,
        )
    snapshot_key = ShareSnapshotKey(group_id=key.group, topic_id=key.topic_id, partition=key.partition)
    key_bytes = encode_key(SNAPSHOT_KEY, snapshot_key)
    if value is None:
        return key_bytes, None
    return key_bytes, encode_value(
        ShareSnapshotValue(
            snapshot_epoch=value.snapshot_epoch,
            state_epoch=value.state_epoch,
            leader_epoch=value.leader_epoch,
            start_offset=value.start_offset,
            delivery_complete_count=value.delivery_complete_count,
            create_timestamp=value.create_ms,
            write_timestamp=value.write_ms,
            state_batches=[ShareSnapshotValue.StateBatch(**batch._asdict()) for batch in value.batches],
        ),
        _VALUE_VERSION,
    )


def read_record(key: bytes | None, value: bytes | None) -> ShareRecord | None:
    """None for a record of a kind that is not known. Raises Malformed."""
    found = read_messages(key, value)
    if found is None:
        return None
    names, content = found
    if isinstance(content, ShareUpdateValue):
        return ShareRecord(
            _key(names),
            ShareUpdate(
                content.snapshot_epoch,
                content.leader_epoch,
                content.start_offset,
                content.delivery_complete_count,
                _batches(content.state_batches),
            ),
        )
    if content is not None:
        return ShareRecord(_key(names), _snapshot(content))
    return ShareRecord(_key(names), None) if isinstance(names, ShareSnapshotKey) else None


def read_messages(key: bytes | None, value: bytes | None) -> tuple[ShareKey, ShareValue | None] | None:
    """Key and value; None for a record of a kind that is not known. Raises Malformed."""
    kind = prefix_of(key, SHARE_STATE_TOPIC)
    assert key is not None
    if kind == SNAPSHOT_KEY:
        return decode_message(ShareSnapshotKey, key), decode_value(ShareSnapshotValue, value, SHARE_STATE_TOPIC)
    if kind == UPDATE_KEY:
        return decode_message(ShareUpdateKey, key), decode_value(ShareUpdateValue, value, SHARE_STATE_TOPIC)
    return None


def _snapshot(value: ShareSnapshotValue) -> ShareState:
    return ShareState(
        value.snapshot_epoch,
        value.state_epoch,
        value.leader_epoch,
        value.start_offset,
        value.delivery_complete_count,
        _batches(value.state_batches),
        value.create_timestamp,
        value.write_timestamp,
    )


def _key(names: ShareKey) -> SharePartitionKey:
    return SharePartitionKey(names.group_id, Uuid(bytes(names.topic_id)), names.partition)


def _batches(batches: Sequence[Any]) -> tuple[StateBatch, ...]:
    return tuple(
        StateBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count) for each in batches
    )
