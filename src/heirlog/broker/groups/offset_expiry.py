"""When a committed offset is deleted.

An offset is deleted, by a tombstone, when it has been unused for `offsets.retention.minutes`. The start of that time
depends on how it was committed (KIP-211):

    with a retention of its own (OffsetCommit 2-4)   that retention, whatever the group does
    only offsets under this group id                 the commit
    a group without members                          the moment its last member left, or the commit if that was later
    a stable consumer group                          the commit, and only for topics that no member subscribes to
    a group of the consumer protocol                 the commit, and only for topics that no member subscribes to
    any other group                                  never deleted

Source: KIP-211; KIP-496 (OffsetDelete).
"""

from __future__ import annotations

from heirlog.broker.groups.consumer.group import ConsumerGroup
from heirlog.broker.groups.group import ClassicGroup
from heirlog.broker.groups.offsets import NO_EXPIRY, OffsetAndMetadata, TopicPartition


def expired_offsets(group: ClassicGroup | ConsumerGroup, wall_ms: int, retention_ms: int) -> list[TopicPartition]:
    """The offsets of the group that are to be deleted now."""
    return [
        partition
        for partition, committed in group.offsets.committed.items()
        if _is_expired(group, partition[0], committed, wall_ms, retention_ms)
    ]


def _is_expired(
    group: ClassicGroup | ConsumerGroup, topic: str, committed: OffsetAndMetadata, wall_ms: int, retention_ms: int
) -> bool:
    if committed.expire_ms != NO_EXPIRY:
        return wall_ms >= committed.expire_ms
    if isinstance(group, ConsumerGroup):
        if group.is_subscribed_to(topic):
            return False
        unneeded_since_ms = committed.commit_ms
    elif group.protocol_type is None:
        unneeded_since_ms = committed.commit_ms
    elif group.is_empty:
        unneeded_since_ms = max(committed.commit_ms, group.state_since_ms)
    elif group.state.value == "Stable" and not group.is_subscribed_to(topic):
        unneeded_since_ms = committed.commit_ms
    else:
        return False
    return wall_ms - unneeded_since_ms >= retention_ms
