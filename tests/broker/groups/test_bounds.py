"""What groups keep for clients is bounded: reached here, with what happens there and what is left of it."""

from __future__ import annotations

from typing import Any

import pytest

from heirlog.broker import internal_topic_writer
from heirlog.broker.groups import coordinator
from heirlog.broker.groups.group import GroupState
from heirlog.broker.groups.member_ids import MEMBER_ID_PREFIX_CHARACTERS
from heirlog.broker.groups.membership import PENDING_MEMBERS_MAX
from heirlog.pending import Pending
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import JoinGroupRequest, LeaveGroupRequest, SyncGroupRequest

from ..fakes import answer_of, context
from .coordinating import OFFSETS, Coordinating, codes
from .play import Play

MB = 1024 * 1024
SESSION_MS = 10_000


def ask(rig: Coordinating, group: str = "g", version: int = 9, metadata: bytes = b"", **more: Any) -> Any:
    """JoinGroup without letting time pass."""
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=metadata)
    request = JoinGroupRequest(
        group_id=group,
        **{
            "session_timeout_ms": SESSION_MS,
            "rebalance_timeout_ms": 60_000,
            "protocol_type": "consumer",
            "protocols": [protocol],
            **more,
        },
    )
    return rig.broker.groups.join_group(request, context(version))


def code_of(answer: Any) -> str:
    return ErrorCode(answer_of(answer).error_code).name


def only_shard(rig: Coordinating) -> Any:
    return rig.broker.groups.shards()[0]


def test_of_ids_that_nobody_uses_a_group_hands_out_ten_thousand_and_then_waits_until_some_have_expired() -> None:
    rig = Coordinating()
    assert {code_of(ask(rig)) for _ in range(PENDING_MEMBERS_MAX)} == {"MEMBER_ID_REQUIRED"}
    assert code_of(ask(rig)) == "GROUP_MAX_SIZE_REACHED"
    assert len(only_shard(rig).groups["g"].pending_members) == PENDING_MEMBERS_MAX
    assert code_of(ask(rig, "another")) == "MEMBER_ID_REQUIRED"
    rig.env.advance(SESSION_MS)
    assert (only_shard(rig).groups, only_shard(rig).memory_use.bytes) == ({}, 0)
    assert code_of(ask(rig)) == "MEMBER_ID_REQUIRED", "there is room again"


def test_a_group_that_a_refused_request_named_is_not_kept() -> None:
    rig = Coordinating()
    nothing: list[JoinGroupRequest.JoinGroupRequestProtocol] = []
    for number in range(100):
        ask(rig, f"no-protocols-{number}", protocols=nothing)
        ask(rig, f"no-such-member-{number}", member_id="x")
        ask(rig, f"bad-session-{number}", session_timeout_ms=1)
        rig.heartbeat(("x", 1), f"heartbeat-{number}")
        rig.described(f"described-{number}")
        assert rig.committed(f"offsets-{number}") == -1
        assert codes(rig.commit(1, f"commit-{number}", metadata="x" * 4097)) == ["OFFSET_METADATA_TOO_LARGE"]
        assert codes(rig.commit(1, f"missing-{number}", topic="missing")) == ["UNKNOWN_TOPIC_OR_PARTITION"]
    assert (only_shard(rig).groups, only_shard(rig).memory_use.bytes) == ({}, 0)


def test_a_group_that_was_made_for_an_id_goes_when_the_id_is_given_back() -> None:
    rig = Coordinating()
    member_id = answer_of(ask(rig)).member_id
    leaving = LeaveGroupRequest(group_id="g", members=[LeaveGroupRequest.MemberIdentity(member_id=member_id)])
    assert answer_of(rig.broker.groups.leave_group(leaving, context(5))).members[0].error_code == 0
    assert (only_shard(rig).groups, only_shard(rig).memory_use.bytes) == ({}, 0)


def test_all_members_of_a_broker_have_a_bound_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinator, "MEMBERS_BYTES_MAX", 3 * MB)
    rig = Coordinating()
    subscription = bytes(MB // 2)
    joined = [ask(rig, f"g{number}", 3, subscription) for number in range(9)]
    refused = [each for each in joined if not isinstance(each, Pending)]
    assert (len(refused), {code_of(each) for each in refused}) == (4, {"GROUP_MAX_SIZE_REACHED"})
    assert set(only_shard(rig).groups) == {f"g{number}" for number in range(5)}, "nothing is kept of who was refused"
    assert only_shard(rig).memory_use.bytes <= 3 * MB
    rig.env.advance(1)
    member_id = answer_of(joined[0]).member_id
    assert code_of(ask(rig, "g0", 3, bytes(2 * MB), member_id=member_id)) == "GROUP_MAX_SIZE_REACHED"
    again = ask(rig, "g0", 3, subscription, member_id=member_id)
    assert isinstance(again, Pending) or code_of(again) == "NONE", "who is in stays in"
    rig.env.advance(400_000)
    assert only_shard(rig).memory_use.bytes == 0
    assert isinstance(ask(rig, "late", 3, subscription), Pending), "there is room again"


def test_assignments_count_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Coordinating()
    rig.member()
    monkeypatch.setattr(coordinator, "MEMBERS_BYTES_MAX", only_shard(rig).memory_use.bytes + MB // 2)
    joined = answer_of(rig.join("h"))
    part = SyncGroupRequest.SyncGroupRequestAssignment(member_id=joined.member_id, assignment=bytes(MB))
    request = SyncGroupRequest(
        group_id="h", generation_id=joined.generation_id, member_id=joined.member_id, assignments=[part]
    )
    end = rig.partition(OFFSETS).log.log_end_offset
    assert code_of(rig.broker.groups.sync_group(request, context(3))) == "COORDINATOR_NOT_AVAILABLE"
    assert rig.partition(OFFSETS).log.log_end_offset == end, "and nothing was written"
    assert only_shard(rig).groups["h"].state is GroupState.PREPARING_REBALANCE


def test_what_is_counted_is_what_is_there_whatever_happens_to_members() -> None:
    rig = Coordinating()
    rig.member("g")
    static = answer_of(rig.join("s", 5, group_instance_id="i"))
    rig.join("s", 5, group_instance_id="i")
    part = SyncGroupRequest.SyncGroupRequestAssignment(member_id=static.member_id, assignment=b"x" * 100)
    rig.broker.groups.sync_group(
        SyncGroupRequest(group_id="s", generation_id=1, member_id=static.member_id, assignments=[part]), context(3)
    )
    ask(rig, "p")
    held = only_shard(rig).memory_use.bytes
    assert held > 0
    rig.lead(6)
    loaded = only_shard(rig)
    members = [member for group in loaded.groups.values() for member in group.members.values()]
    assert loaded.memory_use.bytes == sum(member.counted_bytes for member in members)
    rig.env.advance(400_000)
    assert loaded.memory_use.bytes == 0


def test_a_member_has_a_bound_and_names_have_one() -> None:
    rig = Coordinating()
    long = "x" * (coordinator.NAME_MAX_CHARACTERS + 1)
    Protocol = JoinGroupRequest.JoinGroupRequestProtocol
    many = [Protocol(name=f"p{number}", metadata=b"") for number in range(100_000)]
    for refused, why in (
        (ask(rig, metadata=bytes(coordinator.MEMBER_BYTES_MAX)), "INVALID_REQUEST"),
        (ask(rig, protocols=many), "INVALID_REQUEST"),
        (ask(rig, protocols=[Protocol(name=long, metadata=b"")]), "INVALID_REQUEST"),
        (ask(rig, protocol_type=long), "INVALID_REQUEST"),
        (ask(rig, group_instance_id=long), "INVALID_REQUEST"),
        (ask(rig, long), "INVALID_GROUP_ID"),
        (ask(rig, long, 3), "INVALID_GROUP_ID"),
    ):
        assert code_of(refused) == why
    assert codes(rig.commit(1, long)) == ["INVALID_GROUP_ID"]
    assert rig.heartbeat(("x", 1), long) == "INVALID_GROUP_ID"
    assert (only_shard(rig).groups, only_shard(rig).memory_use.bytes) == ({}, 0)


def test_a_member_id_begins_with_no_more_than_the_head_of_a_long_name() -> None:
    rig = Coordinating()
    joined = answer_of(rig.join("g", 5, group_instance_id="\U0001f600" * coordinator.NAME_MAX_CHARACTERS))
    assert len(joined.member_id) == MEMBER_ID_PREFIX_CHARACTERS + len("-") + 36


def test_of_one_member_one_join_and_one_sync_wait() -> None:
    play = Play()
    play.run("join a v=3\njoin b v=3\nadvance 7000\n")
    waiting = [play.group.members[member_id] for member_id in play.group.members]
    assert not any(member.is_waiting for member in waiting)
    received: list[str] = []
    for _ in range(50):
        play.run("sync b\n")
        received += play.heard
    assert received == ["b cannot sync: REBALANCE_IN_PROGRESS"] * 49, "the newer one ends the older one's wait"
    assert sum(member.is_waiting for member in waiting) == 1
    play.run("sync a a=x b=y\n")
    received = []
    for _ in range(50):
        play.run("join a v=3 protocols=range,other\n")
        received += play.heard
    assert received.count("a cannot join: REBALANCE_IN_PROGRESS") == 49
    assert sum(member.is_waiting for member in waiting) == 1
    play.run("heartbeat b\n")
    assert play.heard == ["b: REBALANCE_IN_PROGRESS"], "a heartbeat never waits"


def test_writes_that_wait_for_the_watermark_are_bounded_and_nothing_more_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(internal_topic_writer, "WRITES_MAX", 5)
    rig = Coordinating([1, 2])
    rig.followed()
    rig.env.advance(1)
    waiting = [rig.commit(number) for number in range(5)]
    assert not any(one.done for one in waiting)
    end = rig.partition(OFFSETS).log.log_end_offset
    assert codes(rig.commit(9)) == ["COORDINATOR_NOT_AVAILABLE"]
    leaving = LeaveGroupRequest(group_id="g", members=[])
    assert code_of(rig.broker.groups.leave_group(leaving, context(5))) == "COORDINATOR_NOT_AVAILABLE"
    assert rig.partition(OFFSETS).log.log_end_offset == end
    rig.followed()
    assert [codes(one) for one in waiting] == [["NONE"]] * 5
    assert rig.committed() == 4
    assert not rig.commit(5).done, "there is room again"
