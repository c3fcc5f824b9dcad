"""Committed offsets of a group, one per partition. `offset_expiry.py` says when one is deleted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

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

    @staticmethod
    def of(value: OffsetCommitValue) -> OffsetAndMetadata:
        return OffsetAndMetadata(
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

    committed: dict[TopicPartition, OffsetAndMetadata]

    def __init__(self) -> None:
        self.committed = {}

    def of_topics(self, topics: frozenset[str]) -> list[TopicPartition]:
        return [partition for partition in self.committed if partition[0] in topics]
