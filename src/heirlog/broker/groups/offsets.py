"""How far a group has read: one committed offset per partition, and when one is forgotten.

An offset is forgotten, by a tombstone, when nobody has needed it for `offsets.retention.minutes`. Since when nobody
needs it depends on who committed it (KIP-211):

    with a time of its own (OffsetCommit 2-4)   that time, whatever the group does
    only offsets under this group id            the commit
    a group without members                     the moment its last member left, or the commit if that was later
    a stable consumer group                     the commit, and only for topics that no member subscribes to
    any other group                             never

Source: KIP-211; KIP-496 (OffsetDelete).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from heirlog.protocol.records import OffsetCommitValue

if TYPE_CHECKING:
    from heirlog.broker.groups.group import Group

NO_EXPIRY = -1

TopicPartition: TypeAlias = tuple[str, int]


class CommittedOffset(NamedTuple):
    offset: int
    leader_epoch: int
    metadata: str
    commit_ms: int
    """Wall time."""
    expire_ms: int = NO_EXPIRY
    """Wall time, only from clients that asked for a retention of their own."""

    @staticmethod
    def of(value: OffsetCommitValue) -> CommittedOffset:
        return CommittedOffset(
            value.offset, value.leader_epoch, value.metadata, value.commit_timestamp, value.expire_timestamp
        )

    def as_record(self) -> OffsetCommitValue:
        return OffsetCommitValue(
            offset=self.offset,
            leader_epoch=self.leader_epoch,
            metadata=self.metadata,
            commit_timestamp=self.commit_ms,
            expire_timestamp=self.expire_ms,
        )


@dataclass(slots=True, init=False)
class Offsets:
    """The committed offsets of one group; all of them are below the high watermark."""

    committed: dict[TopicPartition, CommittedOffset]

    def __init__(self) -> None:
        self.committed = {}

    def expired(self, group: Group, wall_ms: int, retention_ms: int) -> list[TopicPartition]:
        """What is to be forgotten now."""
        return [
            partition
            for partition, committed in self.committed.items()
            if _is_expired(group, partition[0], committed, wall_ms, retention_ms)
        ]

    def of_topics(self, topics: frozenset[str]) -> list[TopicPartition]:
        return [partition for partition in self.committed if partition[0] in topics]


def _is_expired(group: Group, topic: str, committed: CommittedOffset, wall_ms: int, retention_ms: int) -> bool:
    if committed.expire_ms != NO_EXPIRY:
        return wall_ms >= committed.expire_ms
    if group.protocol_type is None:
        unneeded_since_ms = committed.commit_ms
    elif group.is_empty:
        unneeded_since_ms = max(committed.commit_ms, group.state_since_ms)
    elif group.state.value == "Stable" and not group.is_subscribed_to(topic):
        unneeded_since_ms = committed.commit_ms
    else:
        return False
    return wall_ms - unneeded_since_ms >= retention_ms
