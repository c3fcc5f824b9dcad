"""A consumer group on its coordinator: its two states, and what is not stored.

    state       every record in the log is applied; requests are judged by it
    committed   only records below the high watermark; describe, list and fetch of offsets read it

What is not stored, sessions and lookups, starts afresh on the next coordinator.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from heirlog.broker.groups.consumer.records import ConsumerGroupRecord
from heirlog.broker.groups.consumer.state import ConsumerGroupState
from heirlog.broker.groups.offsets import Offsets
from heirlog.env import Cancel


@dataclass(slots=True)
class MemberTimers:
    session_deadline_ms: int = 0
    session_timer_at_ms: int = 0
    cancel_session: Cancel | None = None
    cancel_rebalance: Cancel | None = None
    cancel_join: Cancel | None = None
    """Of a member with the classic protocol that must join again."""

    def stop(self) -> None:
        for cancel in (self.cancel_session, self.cancel_rebalance, self.cancel_join):
            if cancel is not None:
                cancel()
        self.cancel_session = self.cancel_rebalance = self.cancel_join = None


@dataclass(slots=True, eq=False)
class ConsumerGroup:
    group_id: str
    state: ConsumerGroupState
    committed: ConsumerGroupState
    offsets: Offsets = field(default_factory=Offsets)
    timers: dict[str, MemberTimers] = field(default_factory=dict)
    writes_in_flight: int = 0
    """Batches of the group that are not committed yet."""
    metadata_is_due: bool = True
    """A subscribed topic may have changed since the group epoch was computed."""
    is_assigning: bool = False
    """The target of a large group is being computed."""
    is_resolving: bool = False
    """The group's regular expressions are being matched."""
    resolved_at_ms: int | None = None
    """Time of the last lookup of regular expressions, by this coordinator."""
    lookup_failed: bool = False
    """The result of the last lookup was not stored."""
    topics_were_created: bool = False
    """Since the last lookup."""
    unwritten: list[ConsumerGroupRecord] = field(default_factory=list)
    """Records of a group that was classic until now; they are written in front of its first other ones."""
    is_closed: bool = False
    """It is deleted or converted, or this broker no longer coordinates it."""

    @staticmethod
    def new(group_id: str, offsets: Offsets | None = None) -> ConsumerGroup:
        return ConsumerGroup(group_id, ConsumerGroupState(group_id), ConsumerGroupState(group_id), offsets or Offsets())

    @property
    def is_empty(self) -> bool:
        """Whether it has no members, whether or not that is committed."""
        return self.state.is_empty

    @property
    def exists(self) -> bool:
        """Whether it has records, committed or not. A deleted group is kept until its tombstones are committed."""
        return self.state.exists

    def is_subscribed_to(self, topic: str) -> bool:
        return self.state.is_subscribed_to(topic)

    def load(self, record: ConsumerGroupRecord) -> None:
        """Apply a record that an earlier coordinator wrote."""
        self.state.apply((record,))

    def loaded(self) -> None:
        """All records are applied, and committed."""
        self.state.clean_up()
        self.committed = self.state.copy()

    def timers_of(self, member_id: str) -> MemberTimers:
        timers = self.timers.get(member_id)
        if timers is None:
            timers = self.timers[member_id] = MemberTimers()
        return timers

    def stop_timers(self, member_id: str) -> None:
        timers = self.timers.pop(member_id, None)
        if timers is not None:
            timers.stop()

    def close(self) -> None:
        self.is_closed = True
        for member_id in list(self.timers):
            self.stop_timers(member_id)
