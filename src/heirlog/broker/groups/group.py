"""A classic consumer group: its members, the protocols that they support, and the state of the group.

    Empty ----------------> PreparingRebalance <----------------+
      ^  a member joins       |          |   ^                   |
      |                       | all have | no member is left    | a member joins, leaves or its session ends
      +-----------------------+ joined   v   |                   |
                                  CompletingRebalance ------> Stable
                                                     the leader's
                                                     assignment is stored
    any ------> Dead     deleted, expired, or this broker no longer coordinates it

A *generation* is one round of agreement. It begins when all members have joined, and every request of a member names
the generation that the member is in. The first member to join is the leader, which assigns partitions; the coordinator
never reads an assignment. The members have in common a protocol *type* ("consumer") and at least one protocol *name*
("cooperative-sticky"), which they elect by vote for each generation.

A *static* member (KIP-345) names its instance: it may come back under a new member id and take over the place of the
instance. A *pending* member (KIP-394) has received an id and has not joined with it yet.

This module changes only the group; `membership.py` has the timers, answers and records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from heirlog.broker.groups.offsets import Offsets
from heirlog.env import Cancel
from heirlog.pending import Pending
from heirlog.protocol.consumer_protocol import subscribed_topics
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.records import GroupMetadataValue

CONSUMER = "consumer"
"""The protocol type whose subscriptions the coordinator can read."""
MEMBER_BYTES = 2048
PROTOCOL_BYTES = 128
"""Approximate overhead of each protocol in addition to the client's data; above, that of a member or pending id."""


class GroupState(Enum):
    """The values are the names in ListGroups and DescribeGroups."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


_ALLOWED_BEFORE = {
    GroupState.EMPTY: (GroupState.PREPARING_REBALANCE,),
    GroupState.PREPARING_REBALANCE: (GroupState.EMPTY, GroupState.COMPLETING_REBALANCE, GroupState.STABLE),
    GroupState.COMPLETING_REBALANCE: (GroupState.PREPARING_REBALANCE,),
    GroupState.STABLE: (GroupState.COMPLETING_REBALANCE,),
    GroupState.DEAD: tuple(GroupState),
}


def protocols_bytes(protocols: Iterable[tuple[str, bytes]]) -> int:
    return sum(PROTOCOL_BYTES + len(name) + len(metadata) for name, metadata in protocols)


@dataclass(slots=True)
class MemoryUse:
    """Memory of the members of many groups, in bytes. Clients choose the size of their names and subscriptions."""

    bytes: int = 0


@dataclass(slots=True, eq=False)
class ClassicGroupMember:
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: list[tuple[str, bytes]]
    """Supported protocols in the order of its preference, each with its subscription."""
    assignment: bytes = b""
    joining: Pending[Any] | None = None
    """Its JoinGroup request that waits for the other members."""
    joining_version: int = 0
    syncing: Pending[Any] | None = None
    """Its SyncGroup request that waits for the leader's assignment."""
    is_new: bool = False
    """It has not been in a generation yet, so it cannot know that it must send heartbeats."""
    deadline_ms: int = 0
    timer_at_ms: int = 0
    cancel_timer: Cancel | None = None
    counted_bytes: int = 0
    """Its part of the group's `MemoryUse`."""

    def subscription(self, protocol: str | None) -> bytes:
        return next((metadata for name, metadata in self.protocols if name == protocol), b"")

    @property
    def is_waiting(self) -> bool:
        return self.joining is not None or self.syncing is not None


@dataclass(slots=True, eq=False)
class ClassicGroup:
    group_id: str
    state: GroupState = GroupState.EMPTY
    state_since_ms: int = -1
    """Wall time of the last change of state; -1 if unknown."""
    protocol_type: str | None = None
    """None: only offsets have been stored under this id."""
    generation: int = 0
    protocol: str | None = None
    leader: str | None = None
    members: dict[str, ClassicGroupMember] = field(default_factory=dict)
    supported_protocols: dict[str, int] = field(default_factory=dict)
    """Number of members that support each protocol, so that a join is checked without looking at every member."""
    static_members: dict[str, str] = field(default_factory=dict)
    """Instance id → member id."""
    pending_members: dict[str, Cancel] = field(default_factory=dict)
    """Ids that were given to clients and not used yet, with the timers that expire them."""
    not_synced: dict[str, None] = field(default_factory=dict)
    """Members of this generation whose SyncGroup request has not come yet."""
    offsets: Offsets = field(default_factory=Offsets)
    memory_use: MemoryUse = field(default_factory=MemoryUse)
    """Shared by the groups of one shard."""
    new_member_added: bool = False
    """A member joined during the delay of the first rebalance."""
    in_first_delay: bool = False
    assigning: bool = False
    """The leader's assignment of this generation is being stored."""
    records_written: int = 0
    """Records written since the group was loaded: distinguishes an old tombstone from later records."""
    cancel_join_timer: Cancel | None = None
    cancel_sync_timer: Cancel | None = None

    # state

    def transition_to(self, state: GroupState, wall_ms: int) -> None:
        assert self.state in _ALLOWED_BEFORE[state], f"{self.group_id}: {self.state} is not followed by {state}"
        self.state = state
        self.state_since_ms = wall_ms

    @property
    def is_empty(self) -> bool:
        return self.state is GroupState.EMPTY

    @property
    def exists(self) -> bool:
        """A classic group exists as long as it is known; one of the consumer protocol while it has records."""
        return True

    @property
    def is_unused(self) -> bool:
        """The group has no members, no offsets and no pending ids."""
        return self.is_empty and not self.offsets.committed and not self.pending_members

    @property
    def has_no_record(self) -> bool:
        """The group was created for a request that failed: there is no record of it."""
        return self.is_unused and self.protocol_type is None and self.generation == 0

    # members

    def check_member(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """NONE, UNKNOWN_MEMBER_ID, or FENCED_INSTANCE_ID if another process has taken over the instance."""
        if instance_id is not None:
            owner = self.static_members.get(instance_id)
            if owner is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if owner != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def add(self, member: ClassicGroupMember, protocol_type: str) -> None:
        if not self.members:
            self.protocol_type = protocol_type
        self.members[member.member_id] = member
        self._count(member, 1)
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        if self.leader is None:
            self.leader = member.member_id

    def remove(self, member: ClassicGroupMember) -> None:
        if self.members.pop(member.member_id, None) is not None:
            self._count(member, -1)
        self.not_synced.pop(member.member_id, None)
        if member.instance_id is not None and self.static_members.get(member.instance_id) == member.member_id:
            del self.static_members[member.instance_id]
        if self.leader == member.member_id:
            self.leader = next(iter(self.members), None)

    def rename(self, member: ClassicGroupMember, member_id: str) -> None:
        """A static member came back under another id: it keeps its place, assignment and leadership."""
        old = member.member_id
        self.members = {member_id if known == old else known: each for known, each in self.members.items()}
        self.not_synced.pop(old, None)
        member.member_id = member_id
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member_id
        if self.leader == old:
            self.leader = member_id

    def add_pending_member(self, member_id: str, cancel: Cancel) -> None:
        """The id was given to a client; `cancel` stops the timer that expires it."""
        self.pending_members[member_id] = cancel
        self.memory_use.bytes += self._pending_bytes

    def remove_pending_member(self, member_id: str) -> bool:
        """Remove a pending id; False if it was not pending."""
        cancel = self.pending_members.pop(member_id, None)
        if cancel is None:
            return False
        cancel()
        self.memory_use.bytes -= self._pending_bytes
        return True

    @property
    def _pending_bytes(self) -> int:
        # the group may exist only for this id
        return MEMBER_BYTES + len(self.group_id)

    def assign(self, member: ClassicGroupMember, assignment: bytes) -> None:
        more_bytes = len(assignment) - len(member.assignment)
        member.assignment = assignment
        member.counted_bytes += more_bytes
        self.memory_use.bytes += more_bytes

    def change_protocols(self, member: ClassicGroupMember, protocols: list[tuple[str, bytes]]) -> None:
        self._count(member, -1)
        member.protocols = protocols
        self._count(member, 1)

    def _count(self, member: ClassicGroupMember, by: int) -> None:
        if by > 0:
            names_bytes = len(self.group_id) + len(member.instance_id or "") + len(member.client_id)
            member.counted_bytes = (
                MEMBER_BYTES + names_bytes + protocols_bytes(member.protocols) + len(member.assignment)
            )
        self.memory_use.bytes += by * member.counted_bytes
        # a client may name a protocol twice
        for name in dict.fromkeys(name for name, _ in member.protocols):
            left = self.supported_protocols.get(name, 0) + by
            if left:
                self.supported_protocols[name] = left
            else:
                del self.supported_protocols[name]

    # the vote

    def supports(self, protocol_type: str, names: Iterable[str]) -> bool:
        """Whether a member with these protocols could be in one generation with the others."""
        if not protocol_type:
            return False
        if not self.members:
            return any(True for _ in names)
        member_count = len(self.members)
        return protocol_type == self.protocol_type and any(
            self.supported_protocols.get(name) == member_count for name in names
        )

    def select_protocol(self) -> str:
        """Each member votes for the first of its protocols that all support; the earliest member breaks a tie."""
        member_count = len(self.members)
        votes: dict[str, int] = {}
        for member in self.members.values():
            vote = next(name for name, _ in member.protocols if self.supported_protocols[name] == member_count)
            votes[vote] = votes.get(vote, 0) + 1
        return max(votes, key=lambda name: votes[name])

    # rounds

    @property
    def all_have_joined(self) -> bool:
        return not self.pending_members and all(member.joining is not None for member in self.members.values())

    @property
    def joined_count(self) -> int:
        return sum(member.joining is not None for member in self.members.values())

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def elect_joined_leader(self) -> bool:
        """Replace a leader that did not join (a static member that is away). False if no member joined."""
        leader = self.members.get(self.leader or "")
        if leader is not None and leader.joining is not None:
            return True
        joined = next((member for member in self.members.values() if member.joining is not None), None)
        if joined is not None:
            self.leader = joined.member_id
        return joined is not None

    def next_generation(self, wall_ms: int) -> None:
        """Start the next generation: all its members have joined (or no member is left)."""
        self.generation += 1
        self.not_synced = {}
        self.assigning = False
        if self.members:
            self.protocol = self.select_protocol()
            self.transition_to(GroupState.COMPLETING_REBALANCE, wall_ms)
        else:
            self.protocol = None
            self.transition_to(GroupState.EMPTY, wall_ms)

    def subscriptions(self) -> list[tuple[str, str | None, bytes]]:
        """(member id, instance id, subscription) of all members, for the leader."""
        return [(m.member_id, m.instance_id, m.subscription(self.protocol)) for m in self.members.values()]

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member may read the topic; also true if a subscription cannot be parsed."""
        if not self.members:
            return False
        if self.protocol_type != CONSUMER or self.protocol is None:
            return True
        for member in self.members.values():
            topics = subscribed_topics(member.subscription(self.protocol))
            if topics is None or topic in topics:
                return True
        return False

    # records

    def as_record(self, assignments: dict[str, bytes]) -> GroupMetadataValue:
        """The stored form of the group, with these assignments by member id."""
        return GroupMetadataValue(
            protocol_type=self.protocol_type or "",
            generation=self.generation,
            protocol=self.protocol,
            leader=self.leader,
            current_state_timestamp=self.state_since_ms,
            members=[
                GroupMetadataValue.MemberMetadata(
                    member_id=member.member_id,
                    group_instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    rebalance_timeout=member.rebalance_timeout_ms,
                    session_timeout=member.session_timeout_ms,
                    subscription=member.subscription(self.protocol),
                    assignment=assignments.get(member.member_id, b""),
                )
                for member in self.members.values()
            ],
        )

    def load(self, value: GroupMetadataValue) -> None:
        """Take the state of the record; only for a group that is being loaded."""
        self.protocol_type = value.protocol_type or None
        self.generation = value.generation
        self.protocol = value.protocol
        self.leader = value.leader
        self.state_since_ms = value.current_state_timestamp
        self.state = GroupState.STABLE if value.members else GroupState.EMPTY
        self.memory_use.bytes -= sum(member.counted_bytes for member in self.members.values())
        self.members, self.supported_protocols, self.static_members = {}, {}, {}
        for stored in value.members:
            member = ClassicGroupMember(
                member_id=stored.member_id,
                instance_id=stored.group_instance_id,
                client_id=stored.client_id,
                client_host=stored.client_host,
                session_timeout_ms=stored.session_timeout,
                rebalance_timeout_ms=(
                    stored.rebalance_timeout if stored.rebalance_timeout >= 0 else stored.session_timeout
                ),
                protocols=[(value.protocol or "", stored.subscription)],
                assignment=stored.assignment,
            )
            self.members[member.member_id] = member
            self._count(member, 1)
            if member.instance_id is not None:
                self.static_members[member.instance_id] = member.member_id

    # the end

    def mark_dead(self, wall_ms: int, answer: Callable[[ClassicGroupMember], None]) -> None:
        """Stop all timers; `answer` is called for every member whose request still waits."""
        self.transition_to(GroupState.DEAD, wall_ms)
        for cancel in (self.cancel_join_timer, self.cancel_sync_timer):
            if cancel is not None:
                cancel()
        self.cancel_join_timer = self.cancel_sync_timer = None
        for member_id in list(self.pending_members):
            self.remove_pending_member(member_id)
        for member in list(self.members.values()):
            if member.cancel_timer is not None:
                member.cancel_timer()
                member.cancel_timer = None
            answer(member)
