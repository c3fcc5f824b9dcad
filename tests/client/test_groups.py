"""What a group member sends, and what each answer means to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from heirlog.client.groups import COORDINATOR_LOST, JOIN_MARGIN_MS, NO_GENERATION, GroupMember, State, Step
from heirlog.client.offsets import CommittedOffset
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    OffsetCommitResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)

REJOINING = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.REBALANCE_IN_PROGRESS)
REBALANCE_MS = 9000


def everyone_one_byte(protocol: str, members: Mapping[str, bytes]) -> Mapping[str, bytes]:
    assert protocol == "range"
    return {member: bytes([index]) for index, member in enumerate(sorted(members))}


def member() -> GroupMember:
    return GroupMember(
        "g",
        protocol_type="consumer",
        protocols=lambda: {"range": b"topics"},
        assign=everyone_one_byte,
        session_timeout_ms=3000,
        rebalance_timeout_ms=REBALANCE_MS,
    )


def joined(generation: int = 4, *, leader: str = "other", me: str = "me", skip: bool = False) -> JoinGroupResponse:
    names = sorted({leader, me}) if leader == me else [leader, me]
    return JoinGroupResponse(
        error_code=0,
        generation_id=generation,
        protocol_type="consumer",
        protocol_name="range",
        leader=leader,
        member_id=me,
        skip_assignment=skip,
        members=[JoinGroupResponse.JoinGroupResponseMember(member_id=name, metadata=b"topics") for name in names]
        if leader == me
        else [],
    )


def exchange(one: GroupMember, response: Any) -> Step | None:
    return one.answered(one.request(), response)


def stable(generation: int = 4) -> GroupMember:
    one = member()
    assert exchange(one, joined(generation)) is Step.SEND
    assert exchange(one, SyncGroupResponse(assignment=b"\x01")) is Step.HEARTBEAT
    return one


def commit_answer(*codes: int) -> OffsetCommitResponse:
    partitions = [
        OffsetCommitResponse.OffsetCommitResponsePartition(partition_index=index, error_code=code)
        for index, code in enumerate(codes)
    ]
    return OffsetCommitResponse(
        topics=[OffsetCommitResponse.OffsetCommitResponseTopic(name="t", partitions=partitions)]
    )


def test_a_member_joins_receives_its_assignment_and_sends_heartbeats() -> None:
    one = member()
    join = one.request()
    assert isinstance(join, JoinGroupRequest)
    assert (join.member_id, join.session_timeout_ms, join.rebalance_timeout_ms) == ("", 3000, REBALANCE_MS)
    assert [(each.name, bytes(each.metadata)) for each in join.protocols] == [("range", b"topics")]
    assert one.answered(join, joined(4)) is Step.SEND
    sync = one.request()
    assert isinstance(sync, SyncGroupRequest)
    assert (sync.generation_id, sync.member_id, sync.protocol_name, sync.assignments) == (4, "me", "range", [])
    assert one.answered(sync, SyncGroupResponse(assignment=b"\x02")) is Step.HEARTBEAT
    assert (one.state, one.assignment) == (State.STABLE, b"\x02")
    beat = one.request()
    assert isinstance(beat, HeartbeatRequest)
    assert (beat.generation_id, beat.member_id) == (4, "me")
    assert one.answered(beat, HeartbeatResponse()) is Step.HEARTBEAT


def test_the_leader_assigns_to_every_member() -> None:
    one = member()
    answer = joined(leader="me")
    answer.members.append(JoinGroupResponse.JoinGroupResponseMember(member_id="you", metadata=b""))
    exchange(one, answer)
    sync = one.request()
    assert isinstance(sync, SyncGroupRequest)
    assert {each.member_id: bytes(each.assignment) for each in sync.assignments} == {"me": b"\x00", "you": b"\x01"}


def test_the_leader_assigns_nothing_where_the_assignment_stays() -> None:
    one = member()
    exchange(one, joined(leader="me", skip=True))
    sync = one.request()
    assert isinstance(sync, SyncGroupRequest)
    assert sync.assignments == []


def test_a_new_member_joins_at_once_with_the_id_that_it_receives() -> None:
    one = member()
    assert exchange(one, JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id="given")) is Step.SEND
    join = one.request()
    assert isinstance(join, JoinGroupRequest)
    assert join.member_id == "given"


@pytest.mark.parametrize("code", REJOINING)
def test_a_heartbeat_without_a_place_rejoins_and_keeps_the_id_unless_it_is_unknown(code: ErrorCode) -> None:
    one = stable()
    assert exchange(one, HeartbeatResponse(error_code=code)) is Step.SEND
    assert (one.state, one.generation, one.assignment) == (State.JOINING, NO_GENERATION, b"")
    assert one.member_id == ("" if code is ErrorCode.UNKNOWN_MEMBER_ID else "me")


@pytest.mark.parametrize("code", REJOINING)
def test_a_refused_sync_rejoins(code: ErrorCode) -> None:
    one = member()
    exchange(one, joined())
    assert exchange(one, SyncGroupResponse(error_code=code)) is Step.SEND
    assert isinstance(one.request(), JoinGroupRequest)


@pytest.mark.parametrize("code", REJOINING)
def test_a_refused_join_is_repeated_after_a_pause(code: ErrorCode) -> None:
    one = member()
    exchange(one, JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id="given"))
    assert exchange(one, JoinGroupResponse(error_code=code)) is Step.PAUSE
    assert one.member_id == ("" if code is ErrorCode.UNKNOWN_MEMBER_ID else "given")


@pytest.mark.parametrize("code", sorted(COORDINATOR_LOST))
def test_another_coordinator_knows_the_member_too(code: ErrorCode) -> None:
    one = stable()
    assert exchange(one, HeartbeatResponse(error_code=code)) is Step.FIND_COORDINATOR
    assert one.unanswered(one.request()) is Step.FIND_COORDINATOR
    beat = one.request()
    assert isinstance(beat, HeartbeatRequest)
    assert (beat.generation_id, beat.member_id) == (4, "me")


def test_a_coordinator_that_loads_is_asked_again_after_a_pause() -> None:
    one = member()
    assert exchange(one, JoinGroupResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)) is Step.PAUSE
    assert isinstance(one.request(), JoinGroupRequest)


@pytest.mark.parametrize("code", [ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.INCONSISTENT_GROUP_PROTOCOL])
def test_an_error_that_stays_is_raised_with_the_name_of_the_group(code: ErrorCode) -> None:
    with pytest.raises(KafkaError, match="group g refused") as raised:
        exchange(member(), JoinGroupResponse(error_code=code))
    assert raised.value.code is code


def test_an_answer_to_a_former_generation_changes_nothing() -> None:
    one = stable()
    beat, commit = one.request(), one.commit({("t", 0): CommittedOffset(5)})
    assert one.answered(beat, HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)) is Step.SEND
    join = one.request()
    assert one.committed(commit, commit_answer(ErrorCode.UNKNOWN_MEMBER_ID)) is None
    assert one.answered(beat, HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)) is None
    assert one.unanswered(beat) is None
    assert one.member_id == "me"
    assert one.answered(join, joined(5)) is Step.SEND
    assert one.committed(commit, commit_answer(ErrorCode.ILLEGAL_GENERATION)) is None
    assert one.state is State.SYNCING


def test_a_commit_names_the_place_of_the_member() -> None:
    request = stable().commit({("t", 1): CommittedOffset(5, 2, "note")})
    assert (request.group_id, request.generation_id_or_member_epoch, request.member_id) == ("g", 4, "me")
    (topic,) = request.topics
    (partition,) = topic.partitions
    assert (topic.name, partition.partition_index, partition.committed_offset) == ("t", 1, 5)
    assert (partition.committed_leader_epoch, partition.committed_metadata) == (2, "note")


@pytest.mark.parametrize(
    ("codes", "step"),
    [
        ((0, 0), Step.HEARTBEAT),
        ((0, ErrorCode.OFFSET_METADATA_TOO_LARGE), Step.HEARTBEAT),
        ((ErrorCode.NOT_COORDINATOR, 0), Step.FIND_COORDINATOR),
        ((ErrorCode.NOT_COORDINATOR, ErrorCode.REBALANCE_IN_PROGRESS), Step.SEND),
        ((0, ErrorCode.UNKNOWN_MEMBER_ID), Step.SEND),
    ],
)
def test_the_answer_to_a_commit_may_end_a_membership(codes: tuple[int, ...], step: Step) -> None:
    one = stable()
    request = one.commit({("t", index): CommittedOffset(5) for index in range(len(codes))})
    assert one.committed(request, commit_answer(*codes)) is step
    assert (one.state is State.STABLE) == (step in (Step.HEARTBEAT, Step.FIND_COORDINATOR))


def test_who_leaves_joins_as_a_new_member() -> None:
    one = stable()
    beat = one.request()
    leave = one.leave()
    assert [each.member_id for each in leave.members] == ["me"]
    assert one.answered(beat, HeartbeatResponse()) is None
    join = one.request()
    assert isinstance(join, JoinGroupRequest)
    assert join.member_id == ""


def test_the_answer_to_a_join_may_take_as_long_as_a_rebalance() -> None:
    one = member()
    assert one.answer_within_ms == REBALANCE_MS + JOIN_MARGIN_MS
    exchange(one, joined())
    assert one.answer_within_ms == REBALANCE_MS
    assert stable().answer_within_ms == 0
