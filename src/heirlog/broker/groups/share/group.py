"""A share group on its coordinator: its two states, and what is not stored. `consumer/group.py` has more of both."""

from __future__ import annotations

from dataclasses import dataclass, field

from heirlog.broker.groups.consumer.group import MemberTimers
from heirlog.broker.groups.share.records import ShareGroupRecord
from heirlog.broker.groups.share.state import ShareGroupState
from heirlog.broker.groups.share.values import NO_TOPICS, Topics


@dataclass(slots=True, eq=False)
class ShareGroup:
    group_id: str
    state: ShareGroupState
    """Every record in the log is applied; requests are judged by it."""
    committed: ShareGroupState
    """Only records below the high watermark; describe and list show it."""
    timers: dict[str, MemberTimers] = field(default_factory=dict)
    writes_in_flight: int = 0
    """Batches of the group that are not committed yet."""
    is_due: bool = True
    """A subscribed topic, or the state of its partitions, may have changed since the group was looked at."""
    in_progress: Topics = field(default_factory=lambda: NO_TOPICS)
    """What this coordinator is initializing."""
    deletes_later: bool = False
    """A deletion failed, and is tried again soon."""
    is_closed: bool = False
    """It is deleted, or this broker no longer coordinates it."""

    @staticmethod
    def new(group_id: str) -> ShareGroup:
        return ShareGroup(group_id, ShareGroupState(group_id), ShareGroupState(group_id))

    @property
    def is_empty(self) -> bool:
        """Whether it has no members, whether or not that is committed."""
        return self.state.is_empty

    @property
    def exists(self) -> bool:
        """Whether it has records, committed or not. A deleted group is kept until its tombstones are committed."""
        return self.state.exists

    def load(self, record: ShareGroupRecord) -> None:
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
