"""Sessions of a classic group's members: a member without a heartbeat for its session timeout is removed.

A waiting JoinGroup or SyncGroup request keeps its member's session alive, because the client cannot send heartbeats
meanwhile. There is one exception: a new member, which may have disappeared before it learned its member id, is removed
after five minutes.

There is one timer per member, which is moved only when it fires, so a heartbeat costs one assignment.
"""

from __future__ import annotations

from collections.abc import Callable

from heirlog.broker.groups.group import ClassicGroup, ClassicGroupMember
from heirlog.env import Env

NEW_MEMBER_TIMEOUT_MS = 5 * 60_000


class MemberSessions:
    def __init__(self, env: Env, on_expired: Callable[[ClassicGroup, ClassicGroupMember], None]) -> None:
        """on_expired: this member's session has ended."""
        self._env = env
        self._on_expired = on_expired

    def begin(self, group: ClassicGroup) -> None:
        """The group was loaded: its members have a whole session timeout to find this coordinator."""
        for member in group.members.values():
            self.touch(group, member)

    def touch(self, group: ClassicGroup, member: ClassicGroupMember, timeout_ms: int | None = None) -> None:
        """The member is alive. timeout_ms: time until the next sign of life must come; None: its session timeout."""
        member.deadline_ms = self._env.now_ms() + (member.session_timeout_ms if timeout_ms is None else timeout_ms)
        if member.cancel_timer is not None:
            if member.timer_at_ms <= member.deadline_ms:
                return
            member.cancel_timer()
        self._arm(group, member)

    def end(self, member: ClassicGroupMember) -> None:
        if member.cancel_timer is not None:
            member.cancel_timer()
            member.cancel_timer = None

    def end_overdue(self, group: ClassicGroup) -> None:
        """End the sessions that have timed out although their timers have not fired.

        After a pause of the process, requests that waited in sockets are handled before timers.
        """
        for member in list(group.members.values()):
            if member.cancel_timer is not None and self._env.now_ms() >= member.deadline_ms:
                member.cancel_timer()
                self._due(group, member)

    def _arm(self, group: ClassicGroup, member: ClassicGroupMember) -> None:
        member.timer_at_ms = member.deadline_ms
        delay_ms = max(0, member.deadline_ms - self._env.now_ms())
        member.cancel_timer = self._env.call_later(delay_ms, lambda: self._due(group, member))

    def _due(self, group: ClassicGroup, member: ClassicGroupMember) -> None:
        member.cancel_timer = None
        if self._env.now_ms() < member.deadline_ms:
            self._arm(group, member)
        elif member.is_waiting and not member.is_new:
            self.touch(group, member)
        else:
            self._env.log("info", "group-member-expired", group=group.group_id, member=member.member_id)
            self._on_expired(group, member)
