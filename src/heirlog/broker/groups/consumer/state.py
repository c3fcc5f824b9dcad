"""The state of one consumer group: what its records say, and nothing else.

    group epoch       >=   assignment epoch       >=   epoch of each member
    raised by a change     group epoch for which       assignment epoch that the member has
    of members or topics   the target was computed     reached; it follows the target in its own heartbeats

There are two of them for each group. One has applied every record in the log, and new requests are judged by it. The
other has applied only the committed ones; it is what describe and list show. Values are shared, so the second one costs
only its dictionaries.

Applying a record never fails, whatever the state is: compaction may have dropped any other record (KAFKA-17306,
KAFKA-21102), and one group that cannot be loaded must not block the others of the partition. Where two records claim
one partition, the later one has it, and the former owner no longer frees it (KAFKA-16147, KAFKA-19862).

Source: KIP-848.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from heirlog.broker.groups.consumer.records import (
    ConsumerGroupRecord,
    CurrentMember,
    GroupEpoch,
    MemberSubscription,
    OldTopicMetadata,
    RegexTopics,
    TargetEpoch,
    TargetMember,
)
from heirlog.broker.groups.consumer.values import (
    NO_PARTITIONS,
    Assignment,
    ConsumerGroupMember,
    ConsumerGroupPhase,
    MemberAssignment,
    MemberState,
    ResolvedRegex,
)
from heirlog.protocol.types import Uuid

_NEW = MemberAssignment()
_MEMBER_BYTES = 2048
_NAME_BYTES = 128
_PARTITION_BYTES = 64
T = TypeVar("T")


@dataclass(slots=True, eq=False)
class ConsumerGroupState:
    group_id: str
    epoch: int = 0
    """0: no record of the group's epoch."""
    metadata_hash: int = 0
    assignment_epoch: int = 0
    members: dict[str, ConsumerGroupMember] = field(default_factory=dict)
    targets: dict[str, Assignment] = field(default_factory=dict)
    currents: dict[str, MemberAssignment] = field(default_factory=dict)
    regexes: dict[str, ResolvedRegex] = field(default_factory=dict)
    has_old_metadata: bool = False
    """A record of key 4 exists, which Kafka wrote until 4.0."""
    static_members: dict[str, str] = field(default_factory=dict)
    """Instance id → member id."""
    owners: dict[Uuid, dict[int, str]] = field(default_factory=dict)
    """Member that has the partition or must still give it up."""
    subscribers: Counter[str] = field(default_factory=Counter)
    """Members that name the topic."""
    regex_subscribers: Counter[str] = field(default_factory=Counter)
    members_bytes: int = 0
    """Approximate memory of what the members say and have. Clients choose the size."""

    # what it says

    @property
    def exists(self) -> bool:
        return bool(self.epoch or self.members)

    @property
    def is_empty(self) -> bool:
        return not self.members

    @property
    def phase(self) -> ConsumerGroupPhase:
        if not self.exists:
            return ConsumerGroupPhase.DEAD
        if not self.members:
            return ConsumerGroupPhase.EMPTY
        if self.epoch > self.assignment_epoch:
            return ConsumerGroupPhase.ASSIGNING
        for member_id in self.members:
            current = self.current(member_id)
            if current.state is not MemberState.STABLE or current.epoch != self.assignment_epoch:
                return ConsumerGroupPhase.RECONCILING
        return ConsumerGroupPhase.STABLE

    def current(self, member_id: str) -> MemberAssignment:
        return self.currents.get(member_id, _NEW)

    def target(self, member_id: str) -> Assignment:
        return self.targets.get(member_id, NO_PARTITIONS)

    def topics_of(self, member: ConsumerGroupMember) -> frozenset[str]:
        """Names that the member subscribes to. A regular expression that is not resolved matches nothing yet."""
        resolved = self.regexes.get(member.regex or "")
        return member.topics if resolved is None else member.topics | resolved.topics

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member may read the topic."""
        return topic in self.subscribers or any(topic in resolved.topics for resolved in self.regexes.values())

    @property
    def all_classic(self) -> bool:
        """Whether there are members, and all of them use the classic protocol."""
        return bool(self.members) and all(member.classic is not None for member in self.members.values())

    # how it changes

    def apply(self, records: Iterable[ConsumerGroupRecord]) -> None:
        for record in records:
            if isinstance(record, MemberSubscription):
                self._subscribe(record.member_id, record.value)
            elif isinstance(record, CurrentMember):
                self._assign(record.member_id, record.value)
            elif isinstance(record, TargetMember):
                self._aim(record.member_id, record.value)
            elif isinstance(record, GroupEpoch):
                self.epoch, self.metadata_hash = record.epoch or 0, record.metadata_hash
            elif isinstance(record, TargetEpoch):
                self.assignment_epoch = record.epoch or 0
            elif isinstance(record, RegexTopics):
                self._resolve(record.regex, record.value)
            else:
                assert isinstance(record, OldTopicMetadata)
                self.has_old_metadata = record.exists

    def _subscribe(self, member_id: str, member: ConsumerGroupMember | None) -> None:
        before = self.members.pop(member_id, None)
        if before is not None:
            self.members_bytes -= member_bytes(before)
            _count_down(self.subscribers, before.topics)
            if before.regex is not None:
                _count_down(self.regex_subscribers, (before.regex,))
            if before.instance_id is not None and self.static_members.get(before.instance_id) == member_id:
                del self.static_members[before.instance_id]
        if member is None:
            # its other tombstones may be compacted away
            self._assign(member_id, None)
            self._aim(member_id, None)
            return
        self.members[member_id] = member
        self.members_bytes += member_bytes(member)
        self.subscribers.update(member.topics)
        if member.regex is not None:
            self.regex_subscribers[member.regex] += 1
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member_id

    def _assign(self, member_id: str, current: MemberAssignment | None) -> None:
        before = self.currents.pop(member_id, None)
        if before is not None:
            self.members_bytes -= _assignment_bytes(before.assigned, before.pending)
            for held in (before.assigned, before.pending):
                self._release(member_id, held)
        if current is not None:
            self.currents[member_id] = current
            self.members_bytes += _assignment_bytes(current.assigned, current.pending)
            for held in (current.assigned, current.pending):
                for topic_id, numbers in held.items():
                    self.owners.setdefault(topic_id, {}).update(dict.fromkeys(numbers, member_id))

    def _aim(self, member_id: str, target: Assignment | None) -> None:
        self.members_bytes += _assignment_bytes(target) - _assignment_bytes(self.targets.get(member_id))
        _put(self.targets, member_id, target)

    def _resolve(self, regex: str, resolved: ResolvedRegex | None) -> None:
        self.members_bytes += _regex_bytes(resolved) - _regex_bytes(self.regexes.get(regex))
        _put(self.regexes, regex, resolved)

    def _release(self, member_id: str, held: Assignment) -> None:
        for topic_id, numbers in held.items():
            owners = self.owners.get(topic_id, {})
            for number in numbers:
                if owners.get(number) == member_id:
                    del owners[number]
            if not owners:
                self.owners.pop(topic_id, None)

    def clean_up(self) -> None:
        """Forget what compaction left of members that do not exist; after loading."""
        for member_id in [each for each in self.currents if each not in self.members]:
            self._assign(member_id, None)
        for member_id in [each for each in self.targets if each not in self.members]:
            self._aim(member_id, None)
        for regex in [regex for regex in self.regexes if regex not in self.regex_subscribers]:
            self._resolve(regex, None)
        self.static_members = {
            member.instance_id: member_id
            for member_id, member in self.members.items()
            if member.instance_id is not None
        }
        # owners again: a record of a member that is gone may have hidden an owner
        self.owners = {}
        for member_id, current in self.currents.items():
            for held in (current.assigned, current.pending):
                for topic_id, numbers in held.items():
                    self.owners.setdefault(topic_id, {}).update(dict.fromkeys(numbers, member_id))
        epochs = [self.epoch, self.assignment_epoch, *(current.epoch for current in self.currents.values())]
        if self.members:
            self.epoch = max(epochs)
            self.assignment_epoch = max(
                self.assignment_epoch, *(current.epoch for current in self.currents.values()), 0
            )

    def copy(self) -> ConsumerGroupState:
        """The same state, to be changed separately."""
        return ConsumerGroupState(
            self.group_id,
            self.epoch,
            self.metadata_hash,
            self.assignment_epoch,
            dict(self.members),
            dict(self.targets),
            dict(self.currents),
            dict(self.regexes),
            self.has_old_metadata,
            dict(self.static_members),
            {topic_id: dict(owners) for topic_id, owners in self.owners.items()},
            Counter(self.subscribers),
            Counter(self.regex_subscribers),
            self.members_bytes,
        )


def member_bytes(member: ConsumerGroupMember) -> int:
    """Approximate memory of a member."""
    names = (member.member_id, member.instance_id, member.rack_id, member.client_id, member.regex)
    protocols = () if member.classic is None else member.classic.protocols
    return (
        _MEMBER_BYTES
        + sum(len(name) for name in names if name is not None)
        + sum(_NAME_BYTES + len(topic) for topic in member.topics)
        + sum(_NAME_BYTES + len(name) + len(metadata) for name, metadata in protocols)
    )


def _assignment_bytes(*assignments: Assignment | None) -> int:
    return _PARTITION_BYTES * sum(len(numbers) for each in assignments if each for numbers in each.values())


def _regex_bytes(resolved: ResolvedRegex | None) -> int:
    return 0 if resolved is None else sum(_NAME_BYTES + len(topic) for topic in resolved.topics)


def _count_down(counts: Counter[str], names: Iterable[str]) -> None:
    for name in names:
        counts[name] -= 1
        if not counts[name]:
            del counts[name]


def _put(known: dict[str, T], key: str, value: T | None) -> None:
    if value is None:
        known.pop(key, None)
    else:
        known[key] = value
