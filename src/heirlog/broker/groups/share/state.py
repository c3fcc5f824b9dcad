"""The state of one share group: what its records say, and nothing else.

Epochs are as in a consumer group (`consumer/state.py`), but members never wait for each other: partitions are shared,
so a member has its target with its next heartbeat. There are two states for each group, one with every record in the
log, one with the committed ones. Applying a record never fails, whatever the state is.

Source: KIP-932.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from heirlog.broker.groups.consumer.values import NO_PARTITIONS, Assignment, MemberAssignment
from heirlog.broker.groups.share.records import (
    ShareCurrentMember,
    ShareGroupEpoch,
    ShareGroupRecord,
    ShareSubscription,
    ShareTargetEpoch,
    ShareTargetMember,
    ShareTopics,
)
from heirlog.broker.groups.share.values import ShareGroupPhase, ShareSubscriber, StateTopics

T = TypeVar("T")
_NEW = MemberAssignment()
_MEMBER_BYTES = 2048
_NAME_BYTES = 128


@dataclass(slots=True, eq=False)
class ShareGroupState:
    group_id: str
    epoch: int = 0
    """0: no record of the group's epoch."""
    metadata_hash: int = 0
    assignment_epoch: int = 0
    members: dict[str, ShareSubscriber] = field(default_factory=dict)
    targets: dict[str, Assignment] = field(default_factory=dict)
    currents: dict[str, MemberAssignment] = field(default_factory=dict)
    topics: StateTopics = field(default_factory=StateTopics)
    subscribers: Counter[str] = field(default_factory=Counter)
    """Members that name the topic."""
    members_bytes: int = 0
    """Approximate memory of what the members say. Clients choose the size."""

    @property
    def exists(self) -> bool:
        return bool(self.epoch or self.members or not self.topics.is_empty)

    @property
    def is_empty(self) -> bool:
        return not self.members

    @property
    def phase(self) -> ShareGroupPhase:
        if not self.exists:
            return ShareGroupPhase.DEAD
        return ShareGroupPhase.STABLE if self.members else ShareGroupPhase.EMPTY

    def current(self, member_id: str) -> MemberAssignment:
        return self.currents.get(member_id, _NEW)

    def target(self, member_id: str) -> Assignment:
        return self.targets.get(member_id, NO_PARTITIONS)

    # how it changes

    def apply(self, records: Iterable[ShareGroupRecord]) -> None:
        for record in records:
            if isinstance(record, ShareSubscription):
                self._subscribe(record.member_id, record.value)
            elif isinstance(record, ShareCurrentMember):
                _put(self.currents, record.member_id, record.value)
            elif isinstance(record, ShareTargetMember):
                _put(self.targets, record.member_id, record.value)
            elif isinstance(record, ShareGroupEpoch):
                self.epoch, self.metadata_hash = record.value or 0, record.metadata_hash
            elif isinstance(record, ShareTargetEpoch):
                self.assignment_epoch = record.value or 0
            else:
                assert isinstance(record, ShareTopics)
                self.topics = record.value or StateTopics()

    def _subscribe(self, member_id: str, member: ShareSubscriber | None) -> None:
        before = self.members.pop(member_id, None)
        if before is not None:
            self.members_bytes -= member_bytes(before)
            self.subscribers -= Counter(before.topics)
        if member is None:
            # its other tombstones may be compacted away
            self.currents.pop(member_id, None)
            self.targets.pop(member_id, None)
            return
        self.members[member_id] = member
        self.members_bytes += member_bytes(member)
        self.subscribers.update(member.topics)

    def clean_up(self) -> None:
        """Forget what compaction left of members that do not exist; after loading."""
        for member_id in {*self.currents, *self.targets} - self.members.keys():
            self.currents.pop(member_id, None)
            self.targets.pop(member_id, None)
        if self.members:
            self.assignment_epoch = max(
                self.assignment_epoch, *(current.epoch for current in self.currents.values()), 0
            )
            self.epoch = max(self.epoch, self.assignment_epoch)

    def copy(self) -> ShareGroupState:
        """The same state, to be changed separately."""
        return ShareGroupState(
            self.group_id,
            self.epoch,
            self.metadata_hash,
            self.assignment_epoch,
            dict(self.members),
            dict(self.targets),
            dict(self.currents),
            self.topics,
            Counter(self.subscribers),
            self.members_bytes,
        )


def member_bytes(member: ShareSubscriber) -> int:
    """Approximate memory of a member."""
    names = (member.member_id, member.rack_id or "", member.client_id)
    return _MEMBER_BYTES + sum(map(len, names)) + sum(_NAME_BYTES + len(topic) for topic in member.topics)


def _put(known: dict[str, T], key: str, value: T | None) -> None:
    if value is None:
        known.pop(key, None)
    else:
        known[key] = value
