"""Sessions of members of consumer and share groups: a member without a heartbeat for its session timeout is removed.

There is one timer per member, which moves only when it fires, so a heartbeat costs one assignment. Timers are not
stored: a new coordinator starts them with their full length. A removal that cannot be written is tried again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Generic, Protocol, TypeAlias, TypeVar

from heirlog.broker.groups.consumer.group import MemberTimers
from heirlog.env import Env
from heirlog.protocol.errors import ErrorCode

RETRY_MS = 500
"""Time until a removal is tried again that could not be written."""

Settled: TypeAlias = Callable[[ErrorCode], None]


class HasSessions(Protocol):
    """A group with members that have sessions."""

    @property
    def is_closed(self) -> bool: ...

    @property
    def timers(self) -> Mapping[str, MemberTimers]: ...

    def timers_of(self, member_id: str) -> MemberTimers: ...


Owner = TypeVar("Owner", bound=HasSessions)


class SessionTimers(Generic[Owner]):
    def __init__(self, env: Env, expire: Callable[[Owner, str, Settled], None]) -> None:
        """expire: removes the member, if it is there, and calls the function once that is committed or refused."""
        self._env = env
        self._expire = expire

    def touch(self, group: Owner, member_id: str, session_ms: int) -> None:
        """The member is alive."""
        timers = group.timers.get(member_id) or group.timers_of(member_id)
        timers.session_deadline_ms = self._env.now_ms() + session_ms
        if timers.cancel_session is not None:
            if timers.session_timer_at_ms <= timers.session_deadline_ms:
                return
            timers.cancel_session()
        self._arm(group, member_id)

    def _arm(self, group: Owner, member_id: str) -> None:
        timers = group.timers_of(member_id)
        timers.session_timer_at_ms = timers.session_deadline_ms
        delay_ms = max(0, timers.session_deadline_ms - self._env.now_ms())
        timers.cancel_session = self._env.call_later(delay_ms, partial(self._due, group, member_id))

    def _due(self, group: Owner, member_id: str) -> None:
        timers = group.timers.get(member_id)
        if timers is None or group.is_closed:
            return
        timers.cancel_session = None
        if self._env.now_ms() < timers.session_deadline_ms:
            self._arm(group, member_id)
            return

        def settled(code: ErrorCode) -> None:
            if code is not ErrorCode.NONE and member_id in group.timers and not group.is_closed:
                timers.session_deadline_ms = self._env.now_ms() + RETRY_MS
                self._arm(group, member_id)

        self._expire(group, member_id, settled)
