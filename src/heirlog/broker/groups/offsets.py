"""Committed offsets of a group, one per partition. `offset_expiry.py` says when one is deleted.

An offset belongs to the topic for which it was committed. If that topic is deleted, its offsets are, too; but only a
coordinator that has loaded the group at that moment does it. The offsets of a topic that was deleted while the
coordinator was away stay in the log, and a new topic may get the name meanwhile. So each offset is stored with the id
of its topic, and does not count for another one: a group would skip what the new topic has below it.

    id of the topic that has the name now     the offset
    the stored one, or no topic has it        counts
    another one                               belonged to a deleted topic, and does not count

The second line is certain although this broker's metadata may be old: it leads the group's partition by a record that
the coordinator before had not seen yet when it stored the offset, with an id that was in its metadata.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from heirlog.protocol.primitives import ZERO_UUID
from heirlog.protocol.records import OffsetCommitValue

NO_EXPIRY = -1

TopicPartition: TypeAlias = tuple[str, int]


class OffsetAndMetadata(NamedTuple):
    offset: int
    leader_epoch: int
    metadata: str
    commit_ms: int
    """Wall time of the commit."""
    expire_ms: int = NO_EXPIRY
    """Wall time of expiry, only if the client requested a retention of its own."""
    topic_id: bytes = ZERO_UUID
    """Zeros in records of earlier versions, and in those with an expiry of their own, whose format has no place."""

    @staticmethod
    def of(value: OffsetCommitValue) -> OffsetAndMetadata:
        return OffsetAndMetadata(
            value.offset,
            value.leader_epoch,
            value.metadata,
            value.commit_timestamp,
            value.expire_timestamp,
            value.topic_id,
        )

    def as_record(self) -> OffsetCommitValue:
        return OffsetCommitValue(
            offset=self.offset,
            leader_epoch=self.leader_epoch,
            metadata=self.metadata,
            commit_timestamp=self.commit_ms,
            expire_timestamp=self.expire_ms,
            topic_id=self.topic_id,
        )

    def counts_for(self, topic_id: bytes | None) -> bool:
        """topic_id: of the topic that has the name now; None if none has."""
        return topic_id is None or self.topic_id in (ZERO_UUID, topic_id)


@dataclass(slots=True, init=False)
class Offsets:
    """The committed offsets of one group; all of them are below the high watermark."""

    committed: dict[TopicPartition, OffsetAndMetadata]

    def __init__(self) -> None:
        self.committed = {}

    def of_topics(self, topics: frozenset[str]) -> list[TopicPartition]:
        return [partition for partition in self.committed if partition[0] in topics]
