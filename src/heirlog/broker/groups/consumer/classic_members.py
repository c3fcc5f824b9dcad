"""Members of the classic protocol in a consumer group: JoinGroup, SyncGroup, Heartbeat and LeaveGroup of the old kind.

To such a member the group looks like a classic one whose generation is the member's epoch. It joins alone, and is
answered at once: it is reconciled like any member (`heartbeats.py`), and SyncGroup brings what it has now.

    Heartbeat --REBALANCE_IN_PROGRESS--> JoinGroup --its epoch--> SyncGroup --what it has--> Heartbeat ...

Heartbeat says so when the group has a newer epoch, when the member must give up partitions, and when all that it waits
for is free. An eager member has given up everything when it joins; a cooperative one names what it has, is given less,
gives up the rest and joins again. If the next request does not come within the member's rebalance timeout, the member
is removed.

Source: KIP-848, "Supporting online consumer group upgrade"; KIP-429.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

from heirlog.broker.groups.consumer.conversion import assignment_by_id, assignment_by_name
from heirlog.broker.groups.consumer.group import ConsumerGroup
from heirlog.broker.groups.consumer.heartbeats import check_static, follow
from heirlog.broker.groups.consumer.protocol import ConsumerGroupProtocol
from heirlog.broker.groups.consumer.state import ConsumerGroupState
from heirlog.broker.groups.consumer.subscriptions import known_topics
from heirlog.broker.groups.consumer.values import ClassicProtocols, ConsumerGroupMember, MemberAssignment, MemberState
from heirlog.broker.groups.member_answers import join_refusal, no_protocol
from heirlog.broker.groups.member_ids import KNOWN_ID_VERSION, new_member_id
from heirlog.context import Context
from heirlog.env import Env
from heirlog.metadata.image import Image
from heirlog.pending import Pending
from heirlog.protocol.consumer_protocol import CONSUMER, assignment, read_subscription, version_of
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)

Left: TypeAlias = LeaveGroupResponse.MemberResponse


class ClassicMembers:
    """For all consumer groups of one partition of `__consumer_offsets`."""

    def __init__(self, env: Env, image: Callable[[], Image], protocol: ConsumerGroupProtocol) -> None:
        self._env = env
        self._image = image
        self._protocol = protocol

    # -- JoinGroup ----------------------------------------------------------------------------------------------

    def join(
        self, group: ConsumerGroup, request: JoinGroupRequest, context: Context
    ) -> JoinGroupResponse | Pending[Any]:
        version, state = context.api_version, group.state

        def refused(code: ErrorCode, member_id: str = "") -> JoinGroupResponse:
            # unlike a classic group, this one does not repeat the id in an error
            return join_refusal(code, version, member_id)

        around = self._protocol.surroundings(group)
        if len(state.members) >= around.max_size and request.member_id not in state.members:
            return self._protocol.once_committed(group, refused(ErrorCode.GROUP_MAX_SIZE_REACHED), refused)
        if not _has_common_protocol(state, request):
            return self._protocol.once_committed(group, refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL), refused)
        instance_id, member_id = request.group_instance_id, request.member_id
        if not member_id:
            member_id = new_member_id(self._env, instance_id or context.client_id)
            if instance_id is None and version >= KNOWN_ID_VERSION:
                return refused(ErrorCode.MEMBER_ID_REQUIRED, member_id)
        try:
            if instance_id is not None and request.member_id:
                check_static(state, member_id, instance_id)
            former = state.static_members.get(instance_id) if instance_id is not None else member_id
            before = state.members.get(former or "")
            after, owned_names = _as_it_says(before, member_id, request, context)
            replaced = before.member_id if before is not None and before.member_id != member_id else None
            current = state.current(former or "")
            if replaced is not None:
                current = MemberAssignment(assigned=current.assigned)
            owned = assignment_by_id(self._image(), owned_names)
            plan = follow(state, before, after, current, owned, around, replaced=replaced)
            self._protocol.check_room(group, plan)
        except KafkaError as error:
            return self._protocol.once_committed(group, refused(error.code), refused)
        answer = JoinGroupResponse(
            generation_id=plan.current.epoch,
            protocol_type=CONSUMER,
            protocol_name=request.protocols[0].name or no_protocol(version),
            member_id=member_id,
        )
        done = self._protocol.carry_out(group, plan, request.session_timeout_ms, answer, refused, resolves=False)
        if member_id in state.members and not group.is_closed:
            # it is to sync now
            self._protocol.stop_join(group, member_id)
            self._protocol.await_next_request(group, member_id)
        return done

    # -- SyncGroup, Heartbeat -----------------------------------------------------------------------------------

    def sync(self, group: ConsumerGroup, request: SyncGroupRequest) -> SyncGroupResponse | Pending[Any]:
        state, member_id = group.state, request.member_id

        def refused(code: ErrorCode) -> SyncGroupResponse:
            return SyncGroupResponse(error_code=code)

        try:
            member = _checked(state, member_id, request.group_instance_id, request.generation_id)
        except KafkaError as error:
            return self._protocol.once_committed(group, refused(error.code), refused)
        assert member.classic is not None, "it was checked"
        protocol, subscription = member.classic.protocols[0]
        if request.protocol_type not in (None, CONSUMER) or request.protocol_name not in (None, protocol):
            return self._protocol.once_committed(group, refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL), refused)
        current = state.current(member_id)
        if current.epoch < state.epoch and current.state is not MemberState.UNREVOKED_PARTITIONS:
            self._protocol.await_next_request(group, member_id)
            return self._protocol.once_committed(group, refused(ErrorCode.REBALANCE_IN_PROGRESS), refused)
        self._protocol.stop_join(group, member_id)
        self._protocol.touch(group, member_id, member.classic.session_timeout_ms)
        has = assignment_by_name(self._image(), current.assigned)
        answer = SyncGroupResponse(
            protocol_type=CONSUMER, protocol_name=protocol, assignment=assignment(has, version_of(subscription))
        )
        return self._protocol.once_committed(group, answer, refused)

    def heartbeat(self, group: ConsumerGroup, request: HeartbeatRequest) -> HeartbeatResponse | Pending[Any]:
        state, member_id = group.state, request.member_id

        def refused(code: ErrorCode) -> HeartbeatResponse:
            return HeartbeatResponse(error_code=code)

        try:
            member = _checked(state, member_id, request.group_instance_id, request.generation_id)
        except KafkaError as error:
            return self._protocol.once_committed(group, refused(error.code), refused)
        assert member.classic is not None, "it was checked"
        self._protocol.touch(group, member_id, member.classic.session_timeout_ms)
        code = ErrorCode.NONE
        if self._must_join_again(state, member):
            self._protocol.await_next_request(group, member_id)
            code = ErrorCode.REBALANCE_IN_PROGRESS
        return self._protocol.once_committed(group, refused(code), refused)

    def _must_join_again(self, state: ConsumerGroupState, member: ConsumerGroupMember) -> bool:
        """Whether the member would get something else if it joined again."""
        current = state.current(member.member_id)
        if current.epoch < state.epoch or current.state is MemberState.UNREVOKED_PARTITIONS:
            return True
        if current.state is not MemberState.UNRELEASED_PARTITIONS:
            return False
        subscribed = {topic.topic_id for topic in known_topics(self._image(), state.topics_of(member)).values()}
        return not any(
            state.owners.get(topic_id, {}).get(number, member.member_id) != member.member_id
            for topic_id, numbers in state.target(member.member_id).items()
            if topic_id in subscribed
            for number in numbers
        )

    # -- LeaveGroup ---------------------------------------------------------------------------------------------

    def leave(
        self, group: ConsumerGroup, request: LeaveGroupRequest, answer: Callable[[ErrorCode, Sequence[Left]], None]
    ) -> None:
        """Members of both protocols; those that may leave raise the group epoch once."""
        results, leaving = [], []
        for each in request.members:
            member_id, code = each.member_id, ErrorCode.NONE
            try:
                if each.group_instance_id is not None:
                    # an operator knows only the instance
                    member_id = member_id or group.state.static_members.get(each.group_instance_id, "")
                    check_static(group.state, member_id, each.group_instance_id)
                elif member_id not in group.state.members:
                    code = ErrorCode.UNKNOWN_MEMBER_ID
            except KafkaError as error:
                code = error.code
            if code is ErrorCode.NONE and member_id not in leaving:
                leaving.append(member_id)
            results.append(Left(member_id=each.member_id, group_instance_id=each.group_instance_id, error_code=code))
        if leaving:
            self._protocol.remove(group, leaving, "leaves", partial(_settled, answer, results))
        else:
            self._protocol.after_writes(partial(_settled, answer, results))


def _settled(answer: Callable[[ErrorCode, Sequence[Left]], None], results: Sequence[Left], code: ErrorCode) -> None:
    answer(code, results)


def _has_common_protocol(state: ConsumerGroupState, request: JoinGroupRequest) -> bool:
    """Whether the classic members of the group support a protocol of the request; they count this one as it was so far,
    as on Apache Kafka.
    """
    if request.protocol_type != CONSUMER or not request.protocols:
        return False
    common = {each.name for each in request.protocols}
    for member in state.members.values():
        if member.classic is not None:
            common &= {name for name, _ in member.classic.protocols}
    return bool(common)


def _as_it_says(
    before: ConsumerGroupMember | None, member_id: str, request: JoinGroupRequest, context: Context
) -> tuple[ConsumerGroupMember, dict[str, list[int]]]:
    """The member, and what it says that it has, by topic. Raises KafkaError."""
    try:
        says = read_subscription(bytes(request.protocols[0].metadata))
    except ValueError as error:
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, str(error)) from error
    timeout_ms = request.rebalance_timeout_ms if request.rebalance_timeout_ms >= 0 else request.session_timeout_ms
    known = before or ConsumerGroupMember(member_id)
    member = replace(
        known,
        member_id=member_id,
        # older versions of the request and of the subscription cannot say these
        instance_id=known.instance_id if request.group_instance_id is None else request.group_instance_id,
        rack_id=known.rack_id if says.rack_id is None else says.rack_id,
        client_id=context.client_id,
        client_host=f"/{context.client_host}",
        topics=says.topics,
        regex=None,
        rebalance_timeout_ms=timeout_ms,
        classic=ClassicProtocols(
            request.session_timeout_ms, tuple((each.name, bytes(each.metadata)) for each in request.protocols)
        ),
    )
    return member, says.owned


def _checked(
    state: ConsumerGroupState, member_id: str, instance_id: str | None, generation: int
) -> ConsumerGroupMember:
    """The classic member in this generation. Raises KafkaError."""
    if instance_id is not None:
        check_static(state, member_id, instance_id)
    member = state.members.get(member_id)
    if member is None or member.classic is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"group {state.group_id} has no classic member {member_id}")
    if generation != state.current(member_id).epoch:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION, f"the member is in generation {state.current(member_id).epoch}")
    return member
