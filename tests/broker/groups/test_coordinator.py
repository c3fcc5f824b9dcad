"""A whole broker that coordinates groups: commits, and what is asked of groups."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from heirlog.broker.groups import admin, offset_requests
from heirlog.broker.internal_topic_shards import partition_for
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import (
    JoinGroupRequest,
    LeaveGroupRequest,
    ListGroupsRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
)

from ..fakes import TOPIC_IDS, answer_of, context, state
from .coordinating import OFFSETS, Coordinating, codes


@pytest.mark.parametrize(
    ("group", "java_hash"),
    [
        ("", 0),
        ("g", 103),
        ("hello", 99162322),
        ("polygenelubricants", -(2**31)),
        ("ß漢😀", None),
        ("consumer-1", None),
        ("ß漢😀" * 200, None),
    ],
)
def test_a_group_belongs_to_the_partition_of_javas_hash(group: str, java_hash: int | None) -> None:
    if java_hash is None:
        java_hash = 0
        data = group.encode("utf-16-be")
        for (unit,) in struct.iter_unpack(">H", data):
            java_hash = (java_hash * 31 + unit + 2**31) % 2**32 - 2**31
    expected = 0 if java_hash == -(2**31) else abs(java_hash) % 50
    assert partition_for(group, 50) == expected


def test_no_partition_is_named_while_the_topic_does_not_exist() -> None:
    rig = Coordinating()
    assert rig.broker.groups.partition_of("g") == 0
    rig.delete_topic(OFFSETS)
    rig.publish()
    assert rig.broker.groups.partition_of("g") is None, "it would be looked for instead of being created again"
    rig.lead(7)
    assert rig.broker.groups.partition_of("g") == 0


# -- commits ----------------------------------------------------------------------------------------------------------


def test_below_min_isr_a_new_coordinator_answers_what_is_committed() -> None:
    rig = Coordinating([1, 2], min_insync_replicas="2")
    rig.commit(5)
    rig.followed()
    assert rig.committed() == 5
    rig.commit(9, "g2")  # not committed: broker 2 has not fetched it
    rig.lead(7, isr=[1])
    assert rig.committed() == 5
    assert rig.committed("another") == "COORDINATOR_LOAD_IN_PROGRESS", "its first commit may be in what is not loaded"
    stable = OffsetFetchRequest(
        group_id="g",
        topics=[OffsetFetchRequest.OffsetFetchRequestTopic(name="foo", partition_indexes=[0])],
        require_stable=True,
    )
    loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert offset_requests.fetch(rig.broker.groups, stable, context(7)).error_code == loading
    answer = answer_of(rig.commit(6))
    assert answer.topics[0].partitions[0].error_code == loading
    rig.lead(8, isr=[1, 2])
    assert rig.committed() == "COORDINATOR_LOAD_IN_PROGRESS", "the newest commit is about to be known"
    end = rig.partition(OFFSETS).log.log_end_offset
    rig.fetch(end, replica=2, leader_epoch=8, last_fetched_epoch=5, topic=OFFSETS)
    rig.env.advance(1)
    assert (rig.committed(), rig.committed("g2")) == (5, 9)


def test_below_min_isr_a_commit_that_an_earlier_leader_may_have_committed_is_waited_for() -> None:
    rig = Coordinating([1, 2], min_insync_replicas="2")
    rig.commit(5)
    rig.followed()
    rig.commit(9)  # broker 2 has not fetched it
    rig.lead(7, isr=[1])
    assert rig.committed() == "COORDINATOR_LOAD_IN_PROGRESS", "with 5 a consumer might read records again"


def test_a_commit_is_answered_and_seen_when_it_is_replicated() -> None:
    rig = Coordinating([1, 2])
    rig.followed()
    pending = rig.commit(7)
    assert (answer_of(pending), rig.committed()) == (None, -1)
    rig.followed()
    assert (codes(pending), rig.committed()) == (["NONE"], 7)


def test_a_commit_that_takes_too_long_is_given_up_but_counts_when_it_is_replicated() -> None:
    rig = Coordinating([1, 2])
    rig.followed()
    first = rig.commit(7)
    rig.env.advance(3000)
    second = rig.commit(8)
    rig.env.advance(2001)
    assert (codes(first), answer_of(second)) == (["COORDINATOR_NOT_AVAILABLE"], None)
    rig.followed()
    assert (codes(second), rig.committed()) == (["NONE"], 8)


def test_below_min_isr_nothing_is_committed() -> None:
    rig = Coordinating([1, 2])
    rig.followed()
    rig.set_config("min.insync.replicas", "2", OFFSETS)
    rig.lead(5, isr=[1])
    rig.set_partition(state([1, 2], [1], leader_epoch=5, partition_epoch=6), OFFSETS)
    rig.publish()
    assert codes(rig.commit(7)) == ["COORDINATOR_NOT_AVAILABLE"]
    assert rig.committed() == -1


def test_each_partition_of_a_commit_is_judged_alone() -> None:
    rig = Coordinating()
    assert codes(rig.commit(1, index=9)) == ["UNKNOWN_TOPIC_OR_PARTITION"]
    assert codes(rig.commit(1, topic="bar")) == ["UNKNOWN_TOPIC_OR_PARTITION"]
    assert codes(rig.commit(1, metadata="x" * 4097)) == ["OFFSET_METADATA_TOO_LARGE"]
    assert codes(rig.commit(1, topic="", topic_id=b"nobody knows it!", version=10)) == ["UNKNOWN_TOPIC_ID"]
    assert codes(rig.commit(4, topic="", topic_id=TOPIC_IDS["foo"], version=10)) == ["NONE"]
    assert rig.committed() == 4


def test_only_members_of_this_generation_commit_for_a_group_that_has_members() -> None:
    rig = Coordinating()
    gone = {"generation_id_or_member_epoch": 3, "member_id": "m"}
    assert codes(rig.commit(1, **gone, version=8)) == ["ILLEGAL_GENERATION"]
    assert codes(rig.commit(1, **gone)) == ["GROUP_ID_NOT_FOUND"]
    assert codes(rig.commit(1, **gone, topic="bar")) == ["UNKNOWN_TOPIC_OR_PARTITION"], "that comes before the group"
    member_id, generation = rig.member()
    assert codes(rig.commit(2)) == ["UNKNOWN_MEMBER_ID"]
    assert codes(rig.commit(2, generation_id_or_member_epoch=generation, member_id="m")) == ["UNKNOWN_MEMBER_ID"]
    mine = {"member_id": member_id}
    assert codes(rig.commit(2, generation_id_or_member_epoch=generation - 1, **mine)) == ["ILLEGAL_GENERATION"]
    assert codes(rig.commit(2, generation_id_or_member_epoch=generation, **mine)) == ["NONE"]
    assert rig.committed() == 2


def test_a_commit_keeps_the_session_of_its_member() -> None:
    rig = Coordinating()
    member = rig.member()
    for _ in range(4):
        rig.env.advance(9000)
        rig.commit(1, generation_id_or_member_epoch=member[1], member_id=member[0])
    assert rig.heartbeat(member) == "NONE"
    rig.env.advance(10_001)
    assert rig.heartbeat(member) == "UNKNOWN_MEMBER_ID"


@pytest.mark.parametrize("named", [{}, {"protocol_type": "consumer"}, {"protocol_name": "range"}])
def test_who_syncs_without_the_protocol_that_its_version_names_is_refused(named: dict[str, str]) -> None:
    groups = Coordinating().broker.groups
    request = SyncGroupRequest(group_id="g", member_id="m", **{"protocol_type": None, "protocol_name": None} | named)
    assert answer_of(groups.sync_group(request, context(5))).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert answer_of(groups.sync_group(request, context(4))).error_code == ErrorCode.UNKNOWN_MEMBER_ID


# -- what is asked of groups ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"session_timeout_ms": 5999}, "INVALID_SESSION_TIMEOUT"),
        ({"session_timeout_ms": 1_800_001}, "INVALID_SESSION_TIMEOUT"),
        ({"member_id": "m"}, "UNKNOWN_MEMBER_ID"),
        ({"protocols": []}, "INCONSISTENT_GROUP_PROTOCOL"),
        ({"protocol_type": ""}, "INCONSISTENT_GROUP_PROTOCOL"),
        ({"group": ""}, "INVALID_GROUP_ID"),
    ],
)
def test_a_join_that_cannot_be_leaves_no_group_behind(more: dict[str, Any], code: str) -> None:
    rig = Coordinating()
    assert ErrorCode(answer_of(rig.join(**more)).error_code).name == code
    assert rig.broker.groups.shards()[0].groups == {}


def test_a_member_whose_subscription_cannot_be_read_is_a_member() -> None:
    """Only its leader reads it. Apache Kafka fails to complete the rebalance, and answers nobody."""
    unreadable = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"nonsense")
    joined = answer_of(Coordinating().join(protocols=[unreadable]))
    assert (joined.error_code, joined.generation_id, joined.leader) == (ErrorCode.NONE, 1, joined.member_id)
    assert joined.members[0].metadata == b"nonsense"


def test_leaving_is_answered_when_the_empty_group_is_stored() -> None:
    rig = Coordinating([1, 2])
    rig.followed()
    joined = answer_of(rig.join())
    request = LeaveGroupRequest(group_id="g", member_id=joined.member_id)
    pending = rig.broker.groups.leave_group(request, context(2))
    assert answer_of(pending) is None
    rig.followed()
    assert answer_of(pending).error_code == ErrorCode.NONE
    assert answer_of(rig.broker.groups.leave_group(request, context(2))).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_groups_are_listed_by_state_and_type() -> None:
    rig = Coordinating()
    rig.commit(1, "simple")
    rig.member("full")

    def listed(**filters: list[str]) -> list[tuple[str, str, str]]:
        found = admin.list_groups(rig.broker.groups, ListGroupsRequest(**filters)).groups
        return [(group.group_id, group.protocol_type, group.group_state) for group in found]

    assert listed() == [("simple", "", "Empty"), ("full", "consumer", "Stable")]
    assert listed(states_filter=["stable"]) == [("full", "consumer", "Stable")]
    assert listed(types_filter=["Classic"], states_filter=["Empty"]) == [("simple", "", "Empty")]
    assert listed(types_filter=["share"]) == []
