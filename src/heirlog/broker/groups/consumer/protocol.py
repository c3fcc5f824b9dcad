"""Consumer groups of one partition of `__consumer_offsets`: writes what `heartbeats` decides, and keeps the timers.

    heartbeat --refused--> the error
        |
        +--nothing changes--> answered
        |
        +--records--> in the log: applied to the group's state, timers follow --committed--> answered

*When state is visible.* A group's state changes as soon as its records are in the log of this broker, so requests that
follow each other quickly build on each other. No answer of the group, error or not, leaves before everything that is
written of the group is committed. So a client never learns of an epoch or an assignment that a later coordinator could
lack. If the coordinator loses its partition, the state is dropped with the records that were not committed, and the
waiting clients get NOT_COORDINATOR. This differs from classic groups, whose state changes when its record is committed:
there a generation has one writer at a time, here each heartbeat may write.

*Timers* (not stored; a new coordinator starts them with their full length):
    session      restarted by each accepted heartbeat, not by a static member's leave. Its end removes the member
    rebalance    runs while the member must give up partitions. Its end removes the member if it is still at that epoch

A timer that fires while the log cannot be written (below min ISR) is tried again.

*Slices.* The target of a large group, and the topics of regular expressions, are computed a slice per turn of the
event loop, from the state at their start. Members are answered with the earlier target meanwhile; the result is
written as a change of its own, and the next heartbeats follow it.

Source: KIP-848.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from heirlog.broker.groups.consumer.group import ConsumerGroup
from heirlog.broker.groups.consumer.heartbeats import (
    HeartbeatPlan,
    Surroundings,
    check_static,
    heartbeat_answer,
    heartbeat_plan,
    is_unchanged,
    removal_records,
    static_leave_record,
)
from heirlog.broker.groups.consumer.records import ConsumerGroupRecord, CurrentMember, GroupEpoch, RegexTopics
from heirlog.broker.groups.consumer.regular_expressions import REFRESH_INTERVAL_MS, REFRESH_MIN_MS, matches
from heirlog.broker.groups.consumer.state import member_bytes
from heirlog.broker.groups.consumer.subscriptions import known_topics, metadata_hash, subscribed_topics_of
from heirlog.broker.groups.consumer.target_assignment import (
    target_records,
    targets_later,
)
from heirlog.broker.groups.consumer.values import (
    LEAVING_EPOCH,
    STATIC_LEAVING_EPOCH,
    Assignment,
    MemberState,
    ResolvedRegex,
)
from heirlog.broker.groups.session_timers import RETRY_MS, SessionTimers
from heirlog.context import Context
from heirlog.env import Env
from heirlog.metadata.image import Image
from heirlog.metadata.survey import Survey
from heirlog.pending import Pending
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from heirlog.protocol.types import uuid_text

T = TypeVar("T")
STEPS_PER_TURN = 4
"""Steps of a sliced computation per turn of the event loop; one step takes up to a millisecond."""


@dataclass(frozen=True, slots=True)
class ConsumerGroupConfig:
    assignors: Sequence[str]
    max_size: int
    migration_policy: str
    """In lower case."""


@dataclass(frozen=True, slots=True)
class GroupTimes:
    """consumer.session.timeout.ms and consumer.heartbeat.interval.ms of a group."""

    session_ms: int
    interval_ms: int


def heartbeat_refusal(code: ErrorCode, message: str | None = None) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=code, error_message=message)


class ConsumerGroupProtocol:
    def __init__(
        self,
        env: Env,
        config: ConsumerGroupConfig,
        image: Callable[[], Image],
        times_of: Callable[[str], GroupTimes],
        write: Callable[
            [ConsumerGroup, Sequence[ConsumerGroupRecord], Callable[[], None], Callable[[ErrorCode], None]], None
        ],
        after_writes: Callable[[Callable[[ErrorCode], None]], None],
        downgrade: Callable[[ConsumerGroup, Sequence[str], Callable[[ErrorCode], None]], bool],
        has_room: Callable[[int], bool],
    ) -> None:
        """write: appends records of the group, calls the first function once they are in the log and applied to its
        state, the second once they are committed, or refused, or late. downgrade: turns the group into a classic one,
        without these members, if it may, and says whether it does.
        has_room: whether the groups of this broker may use that many bytes more.
        """
        self._env = env
        self._config = config
        self._image = image
        self._times_of = times_of
        self._write = write
        self.after_writes = after_writes
        self._downgrade = downgrade
        self._has_room = has_room
        self._sessions: SessionTimers[ConsumerGroup] = SessionTimers(env, self._expire)

    # -- requests -----------------------------------------------------------------------------------------------

    def unchanged_heartbeat(
        self, group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, context: Context
    ) -> ConsumerGroupHeartbeatResponse | Pending[Any] | None:
        """The answer to a heartbeat that changes nothing; None for any other one."""
        if group.metadata_is_due or not is_unchanged(group.state, request, context):
            return None
        times = self._times_of(group.group_id)
        self._sessions.touch(group, request.member_id, times.session_ms)
        if group.state.regex_subscribers:
            self._resolve_if_due(group, context.refuses, had_regexes=bool(group.state.regexes))
        answer = ConsumerGroupHeartbeatResponse(
            member_id=request.member_id,
            member_epoch=request.member_epoch,
            heartbeat_interval_ms=times.interval_ms,
        )
        return self.once_committed(group, answer, heartbeat_refusal) if group.writes_in_flight else answer

    def heartbeat(
        self, group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, context: Context
    ) -> ConsumerGroupHeartbeatResponse | Pending[Any]:
        """Of one that changes something. The group exists, possibly new: then the request joins it."""
        times = self._times_of(group.group_id)
        client = (context.client_id, f"/{context.client_host}")
        try:
            member_id = request.member_id or uuid_text(self._env.random.randbytes(16))
            plan = heartbeat_plan(group.state, member_id, request, client, self.surroundings(group))
            self.check_room(group, plan)
        except KafkaError as error:
            return self.once_committed(group, heartbeat_refusal(error.code, str(error)), heartbeat_refusal)
        answer = heartbeat_answer(plan, times.interval_ms)
        return self.carry_out(
            group, plan, times.session_ms, answer, heartbeat_refusal, resolves=True, refuses=context.refuses
        )

    def carry_out(
        self,
        group: ConsumerGroup,
        plan: HeartbeatPlan,
        session_ms: int,
        answer: T,
        refusal: Callable[[ErrorCode], T],
        *,
        resolves: bool,
        refuses: Callable[[str], bool] | None = None,
    ) -> T | Pending[Any]:
        """Write what a member's request changes; the answer follows once that is committed.

        resolves: whether regular expressions are matched if they are due, with the topics that the client may describe.
        refuses: whether it may not describe a topic; None: it may describe every topic.
        """

        # one that the member has just replaced counts, too: that its successor is looked up waits for a next heartbeat
        had_regexes = bool(group.state.regexes)

        def applied() -> None:
            self._follow_plan(group, plan, session_ms)
            self._assign_if_due(group, plan)
            if resolves:
                self._resolve_if_due(group, refuses, had_regexes=had_regexes)

        if not plan.records:
            applied()
            return self.once_committed(group, answer, refusal)
        pending: Pending[Any] = Pending()
        self._write(
            group,
            plan.records,
            applied,
            lambda code: pending.complete(answer if code is ErrorCode.NONE else refusal(code)),
        )
        return pending

    def check_room(self, group: ConsumerGroup, plan: HeartbeatPlan) -> None:
        """Raises KafkaError if the member would be larger than before, and there is no room for that."""
        known = group.state.members.get(plan.member.member_id)
        if known is plan.member:
            return
        more_bytes = member_bytes(plan.member) - (0 if known is None else member_bytes(known))
        if more_bytes > 0 and not self._has_room(more_bytes):
            raise KafkaError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                "the members of all groups of this broker use as much memory as they may; try again later",
            )

    def surroundings(self, group: ConsumerGroup) -> Surroundings:
        return Surroundings(self._image(), self._config.assignors, self._config.max_size, group.metadata_is_due)

    def once_committed(self, group: ConsumerGroup, answer: T, refusal: Callable[[ErrorCode], T]) -> T | Pending[Any]:
        """An answer says nothing that a later coordinator may not know."""
        if not group.writes_in_flight:
            return answer
        pending: Pending[Any] = Pending()

        def committed(code: ErrorCode) -> None:
            pending.complete(answer if code is ErrorCode.NONE else refusal(code))

        self.after_writes(committed)
        return pending

    def leave(
        self, group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest
    ) -> ConsumerGroupHeartbeatResponse | Pending[Any]:
        state, member_id = group.state, request.member_id
        try:
            if request.instance_id is not None:
                check_static(state, member_id, request.instance_id)
            elif member_id not in state.members:
                raise KafkaError(
                    ErrorCode.UNKNOWN_MEMBER_ID, f"group {group.group_id} has no member {member_id}: it has left"
                )
        except KafkaError as error:
            return self.once_committed(group, heartbeat_refusal(error.code, str(error)), heartbeat_refusal)
        answer = ConsumerGroupHeartbeatResponse(member_id=member_id, member_epoch=request.member_epoch)
        pending: Pending[Any] = Pending()

        def committed(code: ErrorCode) -> None:
            pending.complete(answer if code is ErrorCode.NONE else heartbeat_refusal(code))

        if request.member_epoch == STATIC_LEAVING_EPOCH:

            def away() -> None:
                self._stop_rebalance(group, member_id)

            self._write(group, [static_leave_record(state, member_id)], away, committed)
        else:
            assert request.member_epoch == LEAVING_EPOCH
            self.remove(group, [member_id], "leaves", committed)
        return pending

    def remove(
        self, group: ConsumerGroup, member_ids: Sequence[str], why: str, answer: Callable[[ErrorCode], None]
    ) -> None:
        """Remove members of the group; its epoch rises once. If only classic members are left, it becomes classic."""

        def downgraded(code: ErrorCode) -> None:
            if code is ErrorCode.UNKNOWN_SERVER_ERROR and not group.is_closed:
                # the classic group would be too large for a batch: it stays a consumer group of classic members
                self._remove(group, [each for each in member_ids if each in group.state.members], why, answer)
            else:
                answer(code)

        if not self._downgrade(group, member_ids, downgraded):
            self._remove(group, member_ids, why, answer)

    def _remove(
        self, group: ConsumerGroup, member_ids: Sequence[str], why: str, answer: Callable[[ErrorCode], None]
    ) -> None:
        def applied() -> None:
            for member_id in member_ids:
                group.stop_timers(member_id)
            self._env.log(
                "info",
                "group-member-removed",
                group=group.group_id,
                members=", ".join(member_ids),
                why=why,
                epoch=group.state.epoch,
            )

        self._write(group, removal_records(group.state, member_ids, self._image()), applied, answer)

    # -- timers -------------------------------------------------------------------------------------------------

    def begin(self, group: ConsumerGroup) -> None:
        """The group was loaded: its members have their whole timeouts."""
        for member_id in group.state.members:
            self.touch(group, member_id, self.session_ms(group, member_id))
            self._watch_rebalance(group, member_id)

    def session_ms(self, group: ConsumerGroup, member_id: str) -> int:
        classic = group.state.members[member_id].classic
        return self._times_of(group.group_id).session_ms if classic is None else classic.session_timeout_ms

    def touch(self, group: ConsumerGroup, member_id: str, session_ms: int) -> None:
        """The member is alive."""
        self._sessions.touch(group, member_id, session_ms)

    def _expire(self, group: ConsumerGroup, member_id: str, settled: Callable[[ErrorCode], None]) -> None:
        if member_id in group.state.members:
            self.remove(group, [member_id], "sent no heartbeat in time", settled)

    def _follow_plan(self, group: ConsumerGroup, plan: HeartbeatPlan, session_ms: int) -> None:
        if plan.looked_at_topics:
            group.metadata_is_due = False
        if plan.replaced is not None:
            group.stop_timers(plan.replaced)
        member_id = plan.member.member_id
        self.touch(group, member_id, session_ms)
        if any(isinstance(each, CurrentMember) and each.member_id == member_id for each in plan.records):
            # it acknowledged; if a newer target asks it for more, it has the whole time for that
            self._stop_rebalance(group, member_id)
        self._watch_rebalance(group, member_id)

    def _watch_rebalance(self, group: ConsumerGroup, member_id: str) -> None:
        """A member that must give up partitions has its rebalance timeout for that."""
        member, current = group.state.members[member_id], group.state.current(member_id)
        timers = group.timers_of(member_id)
        if current.state is not MemberState.UNREVOKED_PARTITIONS:
            self._stop_rebalance(group, member_id)
        elif timers.cancel_rebalance is None and member.classic is None and member.rebalance_timeout_ms >= 0:
            timers.cancel_rebalance = self._env.call_later(
                member.rebalance_timeout_ms, partial(self._rebalance_due, group, member_id, current.epoch)
            )

    def _stop_rebalance(self, group: ConsumerGroup, member_id: str) -> None:
        timers = group.timers.get(member_id)
        if timers is not None and timers.cancel_rebalance is not None:
            timers.cancel_rebalance()
            timers.cancel_rebalance = None

    def _rebalance_due(self, group: ConsumerGroup, member_id: str, epoch: int) -> None:
        timers = group.timers.get(member_id)
        if timers is None or group.is_closed:
            return
        timers.cancel_rebalance = None
        current = group.state.currents.get(member_id)
        if current is None or current.epoch != epoch or current.state is not MemberState.UNREVOKED_PARTITIONS:
            return

        def settled(code: ErrorCode) -> None:
            if code is not ErrorCode.NONE and member_id in group.timers and not group.is_closed:
                timers.cancel_rebalance = self._env.call_later(
                    RETRY_MS, partial(self._rebalance_due, group, member_id, epoch)
                )

        self.remove(group, [member_id], "did not give up its partitions in time", settled)

    # -- timers of members with the classic protocol ------------------------------------------------------------

    def await_next_request(self, group: ConsumerGroup, member_id: str) -> None:
        """The member must join again, or sync, within its rebalance timeout."""
        timers, member = group.timers_of(member_id), group.state.members[member_id]
        if timers.cancel_join is None:
            timers.cancel_join = self._env.call_later(
                max(0, member.rebalance_timeout_ms), partial(self._join_due, group, member_id)
            )

    def stop_join(self, group: ConsumerGroup, member_id: str) -> None:
        timers = group.timers_of(member_id)
        if timers.cancel_join is not None:
            timers.cancel_join()
            timers.cancel_join = None

    def _join_due(self, group: ConsumerGroup, member_id: str) -> None:
        timers = group.timers.get(member_id)
        if timers is None or group.is_closed:
            return
        timers.cancel_join = None

        def settled(code: ErrorCode) -> None:
            if code is not ErrorCode.NONE and member_id in group.timers and not group.is_closed:
                timers.cancel_join = self._env.call_later(RETRY_MS, partial(self._join_due, group, member_id))

        if member_id in group.state.members:
            self.remove(group, [member_id], "did not join again in time", settled)

    # -- what is computed in slices -----------------------------------------------------------------------------

    def _sliced(self, group: ConsumerGroup, survey: Survey[T], then: Callable[[T], None]) -> None:
        def turn() -> None:
            if group.is_closed:
                return
            try:
                for _ in range(STEPS_PER_TURN):
                    next(survey)
            except StopIteration as done:
                then(done.value)
                return
            self._env.call_later(0, turn)

        self._env.call_later(0, turn)

    def _assign_if_due(self, group: ConsumerGroup, plan: HeartbeatPlan) -> None:
        state = group.state
        if not plan.needs_assignment or group.is_assigning or state.epoch <= state.assignment_epoch:
            return
        group.is_assigning = True
        epoch, members, before = state.epoch, dict(state.members), dict(state.targets)
        topics = known_topics(self._image(), subscribed_topics_of(state))

        def computed(targets: dict[str, Assignment]) -> None:
            if not state.assignment_epoch < epoch <= state.epoch:
                # the group was deleted, or has a newer target
                settled(ErrorCode.NONE)
                return
            for member_id in [each for each in targets if each not in state.members]:
                # a static member came back under another id, which keeps the place
                instance_id = members[member_id].instance_id
                successor = state.static_members.get(instance_id) if instance_id is not None else None
                target = targets.pop(member_id)
                if successor is not None and successor not in targets:
                    targets[successor] = target
            records = target_records(state, targets, epoch, state.targets)
            self._write(group, records, lambda: None, settled)

        def settled(code: ErrorCode) -> None:
            group.is_assigning = False

        survey = targets_later(state, members, before, topics, self._config.assignors)
        self._sliced(group, survey, computed)  # type: ignore[arg-type]

    def _resolve_if_due(
        self, group: ConsumerGroup, refuses: Callable[[str], bool] | None, *, had_regexes: bool
    ) -> None:
        """had_regexes: whether the topics of an expression were known when the request came."""
        state, now_ms, image = group.state, self._env.now_ms(), self._image()
        if not state.regex_subscribers or group.is_resolving:
            return
        since_ms = None if group.resolved_at_ms is None else now_ms - group.resolved_at_ms
        # the first expression of a group does not wait
        may_wait = had_regexes or group.lookup_failed
        if may_wait and since_ms is not None and since_ms <= REFRESH_MIN_MS:
            return
        is_old = since_ms is None or since_ms > REFRESH_INTERVAL_MS
        is_incomplete = state.regexes.keys() != state.regex_subscribers.keys()
        if not (is_incomplete or group.topics_were_created or is_old):
            return
        group.is_resolving, group.resolved_at_ms, group.topics_were_created = True, now_ms, False
        wall_ms, version = self._env.wall_ms(), image.offset

        def matched(found: Any) -> None:
            changed = {
                regex: ResolvedRegex(topics, version, wall_ms)
                for regex, topics in found.items()
                if regex in state.regex_subscribers
            }
            records: list[ConsumerGroupRecord] = [
                RegexTopics(group.group_id, regex, resolved) for regex, resolved in changed.items()
            ]
            # an expression that is new and matches nothing moves no partition
            is_other = any(
                resolved.topics != (state.regexes[regex].topics if regex in state.regexes else frozenset())
                for regex, resolved in changed.items()
            )
            names = set(state.subscribers).union(*(each.topics for each in changed.values()))
            new_hash = metadata_hash(known_topics(self._image(), names))
            if records and (is_other or new_hash != state.metadata_hash):
                records.append(GroupEpoch(group.group_id, state.epoch + 1, new_hash))
            if records:
                self._write(group, records, lambda: None, settled)
            else:
                settled(ErrorCode.NONE)

        def settled(code: ErrorCode) -> None:
            group.is_resolving = False
            group.lookup_failed = code is not ErrorCode.NONE
            group.topics_were_created |= group.lookup_failed

        names = [topic.name for topic in image.topics.values()]
        self._sliced(group, matches(list(state.regex_subscribers), names, refuses), matched)
