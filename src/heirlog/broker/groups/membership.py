"""The protocol of a classic group: JoinGroup, SyncGroup, Heartbeat, LeaveGroup, and their timers.

    JoinGroup    waits until all members of the group have joined again, at most the longest rebalance timeout of the
                 members. A member that has not joined by then is removed (static members stay until their session
                 ends). The very first rebalance waits `group.initial.rebalance.delay.ms` longer, and again while new
                 members arrive, so that consumers that start together form one generation and not ten
    SyncGroup    the leader brings the assignment. It is stored first; only then the group is Stable and all members
                 get their part. A member that does not sync within the rebalance timeout is removed
    Heartbeat    keeps a member's session alive (`member_sessions.py`); the answer says whether to join again
    LeaveGroup   removes the member at once, instead of at its session's end

Traps.
* A client that joined without an id must come back with the id that it receives (KIP-394, JoinGroup 4). Otherwise each
  attempt of a client that gives up and retries would leave an unused member behind.
* A static member that comes back while the group is Stable takes over its old place without a rebalance, after the
  change is stored. A process that still uses the old member id gets FENCED_INSTANCE_ID (KIP-345). If the member is the
  leader, JoinGroup 9 asks it to skip the assignment; older clients see the old leader id, which has the same effect
  (KIP-814).
* A write may fail, or finish too late: the callback of a generation checks whether the group is still in it.
* Clients choose the length of ids, names and subscriptions, and members stay until their sessions end, even when their
  connections are closed. So all groups of a broker together have a limit in bytes (`has_room`). A group that a request
  created and no client joined is dropped with its last unused id (`on_unused`).

Source: KIP-62, KIP-134, KIP-345, KIP-394, KIP-559, KIP-814; KIP-389 (group.max.size).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from heirlog.broker.groups.group import MEMBER_BYTES, ClassicGroup, ClassicGroupMember, GroupState, protocols_bytes
from heirlog.broker.groups.member_answers import (
    answer_join,
    answer_sync,
    assigned,
    await_join,
    join_refusal,
    joined,
    refuse,
)
from heirlog.broker.groups.member_ids import KNOWN_ID_VERSION, new_member_id
from heirlog.broker.groups.member_sessions import NEW_MEMBER_TIMEOUT_MS, MemberSessions
from heirlog.context import Context
from heirlog.env import Env
from heirlog.pending import Pending
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)

SKIP_ASSIGNMENT_VERSION = 9
PENDING_MEMBERS_MAX = 10_000
"""Limit of a group's pending ids. Beyond it no new member is accepted until some have expired."""

Store: TypeAlias = Callable[[ClassicGroup, dict[str, bytes], Callable[[ErrorCode], None]], None]
"""Writes the group with these assignments; calls back once, when that is committed or has failed."""


@dataclass(frozen=True, slots=True)
class GroupLimits:
    """group.initial.rebalance.delay.ms, group.min/max.session.timeout.ms, group.max.size."""

    initial_rebalance_delay_ms: int
    min_session_timeout_ms: int
    max_session_timeout_ms: int
    max_size: int


class Membership:
    """The protocol for all groups of one partition; a group has its own timers."""

    def __init__(
        self,
        env: Env,
        limits: GroupLimits,
        store: Store,
        has_room: Callable[[int], bool],
        on_unused: Callable[[ClassicGroup], None],
        on_completed: Callable[[], None],
    ) -> None:
        """has_room: whether the groups of this broker may use that many bytes more.

        on_unused: a pending id expired; the group may have existed only for it. on_completed: a group is stable again.
        """
        self._env = env
        self._limits = limits
        self._store = store
        self._has_bytes = has_room
        self._on_unused = on_unused
        self._on_completed = on_completed
        self.sessions = MemberSessions(env, self._session_expired)

    def take_over(self, group: ClassicGroup, why: str) -> None:
        """A stable group that used another protocol until now: its members are asked to join again."""
        self.sessions.begin(group)
        self._rebalance(group, why)

    # -- JoinGroup ----------------------------------------------------------------------------------------------

    def join(self, group: ClassicGroup, request: JoinGroupRequest, context: Context) -> Any:
        """Returns a response, or `Pending` until the generation is complete. The group exists, possibly new."""
        member_id, instance_id = request.member_id, request.group_instance_id
        refuse = partial(join_refusal, version=context.api_version, member_id=member_id)
        if not self._has_room(group, member_id):
            return refuse(ErrorCode.GROUP_MAX_SIZE_REACHED)
        if not group.supports(request.protocol_type, [protocol.name for protocol in request.protocols]):
            return refuse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        known = group.members.get(member_id or group.static_members.get(instance_id or "", ""))
        more_bytes = request_bytes(request) - (0 if known is None else known.counted_bytes)
        if more_bytes > 0 and not self._has_bytes(more_bytes):
            return refuse(ErrorCode.GROUP_MAX_SIZE_REACHED)
        if not member_id:
            return self._join_unknown(group, request, context)
        if member_id in group.pending_members and instance_id is None:
            return self._add(group, member_id, request, context)
        code = group.check_member(member_id, instance_id)
        if code is not ErrorCode.NONE:
            return refuse(code)
        return self._join_again(group, group.members[member_id], request, context)

    def _has_room(self, group: ClassicGroup, member_id: str) -> bool:
        size_max = self._limits.max_size
        if group.state is GroupState.PREPARING_REBALANCE:
            member = group.members.get(member_id)
            return (member is not None and member.joining is not None) or group.joined_count < size_max
        return group.is_empty or member_id in group.members or len(group.members) < size_max

    def _join_unknown(self, group: ClassicGroup, request: JoinGroupRequest, context: Context) -> Any:
        instance_id = request.group_instance_id
        member_id = new_member_id(self._env, instance_id or context.client_id)
        if instance_id is not None:
            known = group.members.get(group.static_members.get(instance_id, ""))
            if known is not None:
                return self._replace(group, known, member_id, request, context)
        elif context.api_version >= KNOWN_ID_VERSION:
            if len(group.pending_members) >= PENDING_MEMBERS_MAX:
                return join_refusal(ErrorCode.GROUP_MAX_SIZE_REACHED, context.api_version)
            timeout_ms = request.session_timeout_ms
            group.add_pending_member(
                member_id, self._env.call_later(timeout_ms, lambda: self._forget_pending(group, member_id))
            )
            return join_refusal(ErrorCode.MEMBER_ID_REQUIRED, context.api_version, member_id)
        return self._add(group, member_id, request, context)

    def _add(self, group: ClassicGroup, member_id: str, request: JoinGroupRequest, context: Context) -> Pending[Any]:
        member = ClassicGroupMember(
            member_id=member_id,
            instance_id=request.group_instance_id,
            client_id=context.client_id,
            client_host=f"/{context.client_host}",
            session_timeout_ms=request.session_timeout_ms,
            rebalance_timeout_ms=_rebalance_timeout_ms(request),
            protocols=[(protocol.name, bytes(protocol.metadata)) for protocol in request.protocols],
            is_new=True,
        )
        group.remove_pending_member(member_id)
        if group.state is GroupState.PREPARING_REBALANCE and group.generation == 0:
            group.new_member_added = True
        pending = await_join(member, context.api_version)
        group.add(member, request.protocol_type)
        self.sessions.touch(group, member, NEW_MEMBER_TIMEOUT_MS)
        self._rebalance(group, f"{member_id} joins")
        return pending

    def _join_again(
        self, group: ClassicGroup, member: ClassicGroupMember, request: JoinGroupRequest, context: Context
    ) -> Any:
        protocols = [(protocol.name, bytes(protocol.metadata)) for protocol in request.protocols]
        changed = protocols != member.protocols
        if group.state is GroupState.COMPLETING_REBALANCE and not changed:
            # the answer to its JoinGroup was lost
            return joined(group, member)
        if group.state is GroupState.STABLE and not changed and member.member_id != group.leader:
            return joined(group, member)
        if group.is_empty:
            return join_refusal(ErrorCode.UNKNOWN_MEMBER_ID, context.api_version, member.member_id)
        group.change_protocols(member, protocols)
        member.session_timeout_ms = request.session_timeout_ms
        member.rebalance_timeout_ms = _rebalance_timeout_ms(request)
        answer_join(member, join_refusal(ErrorCode.REBALANCE_IN_PROGRESS, member.joining_version))
        pending = await_join(member, context.api_version)
        self._rebalance(group, f"{member.member_id} joins again")
        return pending

    # -- a static member comes back -----------------------------------------------------------------------------

    def _replace(
        self,
        group: ClassicGroup,
        member: ClassicGroupMember,
        member_id: str,
        request: JoinGroupRequest,
        context: Context,
    ) -> Pending[Any]:
        old_id, old_leader, old_protocols = member.member_id, group.leader, member.protocols
        refuse(member, ErrorCode.FENCED_INSTANCE_ID)
        group.rename(member, member_id)
        member.client_id, member.client_host = context.client_id, f"/{context.client_host}"
        group.change_protocols(member, [(protocol.name, bytes(protocol.metadata)) for protocol in request.protocols])
        member.session_timeout_ms = request.session_timeout_ms
        member.rebalance_timeout_ms = _rebalance_timeout_ms(request)
        pending = await_join(member, context.api_version)
        self.sessions.touch(group, member)
        if group.state is not GroupState.STABLE or group.select_protocol() != group.protocol:
            self._rebalance(group, f"{request.group_instance_id} comes back as {member_id}")
            return pending

        def stored(code: ErrorCode) -> None:
            if member.joining is not pending or member.member_id != member_id:
                return
            if code is ErrorCode.NONE and group.state is GroupState.STABLE:
                answer = joined(group, member)
                if context.api_version >= SKIP_ASSIGNMENT_VERSION:
                    answer.skip_assignment = member_id == group.leader
                else:
                    answer.leader, answer.members = old_leader or "", []
                answer_join(member, answer)
            elif code is not ErrorCode.NONE:
                group.rename(member, old_id)
                group.change_protocols(member, old_protocols)
                answer_join(member, join_refusal(code, context.api_version, member_id))
            # otherwise a rebalance has begun meanwhile, and this JoinGroup takes part in it

        self._store(group, {m.member_id: m.assignment for m in group.members.values()}, stored)
        return pending

    # -- rebalance ----------------------------------------------------------------------------------------------

    def _rebalance(self, group: ClassicGroup, why: str) -> None:
        """Ask all members to join again, or check whether all have."""
        if group.state is GroupState.PREPARING_REBALANCE:
            self._complete_join_if_all_joined(group)
            return
        if group.state is GroupState.COMPLETING_REBALANCE:
            self._fail_syncs(group, ErrorCode.REBALANCE_IN_PROGRESS)
        first = group.is_empty
        group.transition_to(GroupState.PREPARING_REBALANCE, self._env.wall_ms())
        group.assigning = False
        self._cancel_sync_timer(group)
        self._env.log("info", "group-rebalance", group=group.group_id, generation=group.generation, why=why)
        if first:
            delay_ms = self._limits.initial_rebalance_delay_ms
            group.new_member_added, group.in_first_delay = False, True
            self._first_delay(group, delay_ms, max(0, group.rebalance_timeout_ms - delay_ms))
        else:
            self._wait_for_joins(group)
            self._complete_join_if_all_joined(group)

    def _first_delay(self, group: ClassicGroup, delay_ms: int, left_ms: int) -> None:
        def over() -> None:
            group.cancel_join_timer = None
            if group.new_member_added and left_ms > 0:
                group.new_member_added = False
                more_ms = min(self._limits.initial_rebalance_delay_ms, left_ms)
                self._first_delay(group, more_ms, left_ms - more_ms)
            else:
                self._complete_join(group)

        group.cancel_join_timer = self._env.call_later(max(0, delay_ms), over)

    def _wait_for_joins(self, group: ClassicGroup) -> None:
        def over() -> None:
            group.cancel_join_timer = None
            self._complete_join(group)

        group.cancel_join_timer = self._env.call_later(group.rebalance_timeout_ms, over)

    def _complete_join_if_all_joined(self, group: ClassicGroup) -> None:
        if not group.in_first_delay and group.all_have_joined:
            self._complete_join(group)

    def _complete_join(self, group: ClassicGroup) -> None:
        """All have joined, or the timeout has passed: the members that joined are the next generation."""
        if group.cancel_join_timer is not None:
            group.cancel_join_timer()
            group.cancel_join_timer = None
        group.in_first_delay = False
        for member in list(group.members.values()):
            if member.joining is None and member.instance_id is None:
                self._drop(group, member)
        if group.members and not group.elect_joined_leader():
            # only static members are left, and none of them has joined: wait until one joins or their sessions end
            self._wait_for_joins(group)
            return
        group.next_generation(self._env.wall_ms())
        if group.is_empty:
            self._store(group, {}, partial(self._emptied, group))
            return
        for member in list(group.members.values()):
            has_joined = member.joining is not None
            member.is_new = False
            group.not_synced[member.member_id] = None
            self.sessions.touch(group, member)
            if has_joined:
                answer_join(member, joined(group, member))
        generation = group.generation
        if group.state is GroupState.COMPLETING_REBALANCE and group.generation == generation:
            group.cancel_sync_timer = self._env.call_later(
                group.rebalance_timeout_ms, lambda: self._sync_timed_out(group, generation)
            )

    def _emptied(self, group: ClassicGroup, code: ErrorCode) -> None:
        if code is not ErrorCode.NONE:
            # harmless: a coordinator that loads the previous record finds members whose sessions then end
            self._env.log("warning", "empty-group-not-stored", group=group.group_id, error=code.name)

    # -- SyncGroup ----------------------------------------------------------------------------------------------

    def sync(self, group: ClassicGroup, request: SyncGroupRequest) -> Any:
        """A response, or `Pending` until the leader's assignment is stored."""
        code = group.check_member(request.member_id, request.group_instance_id)
        if code is not ErrorCode.NONE:
            return SyncGroupResponse(error_code=code)
        if request.generation_id != group.generation:
            return SyncGroupResponse(error_code=ErrorCode.ILLEGAL_GENERATION)
        if (request.protocol_type is not None and request.protocol_type != group.protocol_type) or (
            request.protocol_name is not None and request.protocol_name != group.protocol
        ):
            return SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        member = group.members[request.member_id]
        if group.state is GroupState.PREPARING_REBALANCE:
            return SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
        group.not_synced.pop(member.member_id, None)
        if group.state is GroupState.STABLE:
            self.sessions.touch(group, member)
            return assigned(group, member)
        if group.state is not GroupState.COMPLETING_REBALANCE:
            return SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
        answer_sync(member, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
        pending: Pending[Any] = Pending()
        member.syncing = pending
        if member.member_id == group.leader and not group.assigning:
            self._assign(group, {part.member_id: bytes(part.assignment) for part in request.assignments})
        return pending

    def _assign(self, group: ClassicGroup, given: dict[str, bytes]) -> None:
        assignments = {member_id: given.get(member_id, b"") for member_id in group.members}
        generation = group.generation
        group.assigning = True

        def stored(code: ErrorCode) -> None:
            if group.state is not GroupState.COMPLETING_REBALANCE or group.generation != generation:
                return
            group.assigning = False
            if code is not ErrorCode.NONE:
                self._fail_syncs(group, code)
                self._rebalance(group, f"the assignment was not stored: {code.name}")
                return
            group.transition_to(GroupState.STABLE, self._env.wall_ms())
            self._on_completed()
            for member in list(group.members.values()):
                group.assign(member, assignments.get(member.member_id, b""))
            for member in list(group.members.values()):
                if member.syncing is not None:
                    self.sessions.touch(group, member)
                    answer_sync(member, assigned(group, member))

        more_bytes = sum(len(assignments[each.member_id]) - len(each.assignment) for each in group.members.values())
        if more_bytes > 0 and not self._has_bytes(more_bytes):
            stored(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        else:
            self._store(group, assignments, stored)

    def _fail_syncs(self, group: ClassicGroup, code: ErrorCode) -> None:
        for member in list(group.members.values()):
            group.assign(member, b"")
            if member.syncing is not None:
                self.sessions.touch(group, member)
                answer_sync(member, SyncGroupResponse(error_code=code))

    def _sync_timed_out(self, group: ClassicGroup, generation: int) -> None:
        group.cancel_sync_timer = None
        late = [group.members[member_id] for member_id in group.not_synced if member_id in group.members]
        if group.generation != generation or not late:
            return
        for member in late:
            self._drop(group, member)
        self._rebalance(group, f"{', '.join(member.member_id for member in late)} did not sync in time")

    def _cancel_sync_timer(self, group: ClassicGroup) -> None:
        if group.cancel_sync_timer is not None:
            group.cancel_sync_timer()
            group.cancel_sync_timer = None

    # -- Heartbeat, LeaveGroup ----------------------------------------------------------------------------------

    def heartbeat(self, group: ClassicGroup, request: HeartbeatRequest) -> ErrorCode:
        code = group.check_member(request.member_id, request.group_instance_id)
        if code is not ErrorCode.NONE:
            return code
        if request.generation_id != group.generation:
            return ErrorCode.ILLEGAL_GENERATION
        if group.is_empty:
            return ErrorCode.UNKNOWN_MEMBER_ID
        self.sessions.touch(group, group.members[request.member_id])
        preparing = group.state is GroupState.PREPARING_REBALANCE
        return ErrorCode.REBALANCE_IN_PROGRESS if preparing else ErrorCode.NONE

    def committed(self, group: ClassicGroup, member_id: str) -> None:
        """A commit of offsets keeps the member's session alive."""
        member = group.members.get(member_id)
        if member is not None:
            self.sessions.touch(group, member)

    def leave(self, group: ClassicGroup, request: LeaveGroupRequest) -> list[LeaveGroupResponse.MemberResponse]:
        """The result for each member that the request names."""
        return [
            LeaveGroupResponse.MemberResponse(
                member_id=leaving.member_id,
                group_instance_id=leaving.group_instance_id,
                error_code=self._leave_one(group, leaving.member_id, leaving.group_instance_id, leaving.reason),
            )
            for leaving in request.members
        ]

    def _leave_one(self, group: ClassicGroup, member_id: str, instance_id: str | None, reason: str | None) -> ErrorCode:
        if not member_id and instance_id is not None:
            # an operator knows only the instance
            member_id = group.static_members.get(instance_id, "")
        if member_id in group.pending_members:
            self._forget_pending(group, member_id)
            return ErrorCode.NONE
        code = group.check_member(member_id, instance_id)
        if code is ErrorCode.NONE:
            self._remove(group, group.members[member_id], f"{member_id} leaves: {reason or 'no reason given'}")
        return code

    def _remove(self, group: ClassicGroup, member: ClassicGroupMember, why: str) -> None:
        self._drop(group, member)
        if group.state is not GroupState.EMPTY:
            self._rebalance(group, why)

    def _session_expired(self, group: ClassicGroup, member: ClassicGroupMember) -> None:
        self._remove(group, member, f"{member.member_id} sent no heartbeat in time")

    def _drop(self, group: ClassicGroup, member: ClassicGroupMember) -> None:
        """Remove the member; its waiting requests are answered so that it joins as a new member."""
        self.sessions.end(member)
        group.remove(member)
        refuse(member, ErrorCode.UNKNOWN_MEMBER_ID)

    def _forget_pending(self, group: ClassicGroup, member_id: str) -> None:
        group.remove_pending_member(member_id)
        if group.state is GroupState.PREPARING_REBALANCE:
            self._complete_join_if_all_joined(group)
        self._on_unused(group)


def request_bytes(request: JoinGroupRequest) -> int:
    """Approximate memory of a member that joins with this request."""
    return MEMBER_BYTES + protocols_bytes((protocol.name, protocol.metadata) for protocol in request.protocols)


def _rebalance_timeout_ms(request: JoinGroupRequest) -> int:
    """The rebalance timeout; version 0 has only the session timeout, which serves for both."""
    return request.rebalance_timeout_ms if request.rebalance_timeout_ms >= 0 else request.session_timeout_ms
