"""Share groups on a whole broker: members, sessions, initialization and what a fail-over leaves of them."""

from __future__ import annotations

from typing import Any

import pytest

from heirlog.broker.groups import admin, offset_requests
from heirlog.broker.groups.share import offset_requests as share_offsets
from heirlog.broker.groups.share.protocol import DELETE_AGAIN_MS, RESTORE_AGAIN_MS
from heirlog.broker.groups.share.state_requests import ATTEMPTS, CHANNEL
from heirlog.metadata.basis import Basis, ElectionBasis
from heirlog.metadata.state import SHARE_VERSION
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import (
    AlterShareGroupOffsetsRequest,
    ConsumerGroupHeartbeatRequest,
    DeleteGroupsRequest,
    DeleteShareGroupOffsetsRequest,
    JoinGroupRequest,
    ListGroupsRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    ShareGroupDescribeRequest,
)
from heirlog.protocol.types import BrokerId, LeaderEpoch

from ...fakes import answer_of, context, state
from .coordinating import SESSION_MS, STATES, Coordinating, ShareConsumer


def assigned(rig: Coordinating, *members: ShareConsumer) -> None:
    """The members join, and have their partitions."""
    for member in members:
        member.join()
    rig.answer_states()
    for member in (*members, *members):
        member.beat()


def test_a_member_gets_partitions_once_their_state_is_initialized() -> None:
    rig = Coordinating()
    member = ShareConsumer(rig, "a")
    assert member.join() == "1"
    assert rig.answer_states() == "Initialize foo:0,1"
    assert member.beat() == "2 foo:0,1"
    end = rig.log_end()
    assert member.beat() == "2 foo:0,1"
    assert rig.log_end() == end, "a heartbeat without news costs no record"


def test_members_share_partitions() -> None:
    rig = Coordinating()
    a, b, c = (ShareConsumer(rig, name) for name in "abc")
    assigned(rig, a, b, c)
    assert (a.beat(), b.beat(), c.beat()) == ("4 foo:0,1", "4 foo:0", "4 foo:1")


def test_what_the_share_coordinator_refuses_is_asked_again_by_a_later_heartbeat() -> None:
    rig = Coordinating()
    member = ShareConsumer(rig, "a")
    member.join()
    rig.answer_states(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert rig.group().state.topics.is_empty
    assert member.beat() == "1"
    assert rig.answer_states() == "Initialize foo:0,1"
    assert member.beat() == "2 foo:0,1"


def test_a_state_of_a_newer_epoch_is_used_as_it_is() -> None:
    """An election of `__consumer_offsets` on a lossy basis takes epochs of the group back."""
    rig = Coordinating()
    member = ShareConsumer(rig, "a")
    member.join()
    rig.answer_states(ErrorCode.FENCED_STATE_EPOCH)
    assert member.beat() == "2 foo:0,1"


def test_a_share_coordinator_that_moves_is_looked_for_again() -> None:
    rig = Coordinating()
    member = ShareConsumer(rig, "a")
    member.join()
    for _ in range(ATTEMPTS - 1):
        rig.answer_states(ErrorCode.NOT_COORDINATOR)
        rig.env.advance(5000)
    assert rig.answer_states() == "Initialize foo:0,1"
    assert member.beat() == "2 foo:0,1"


def test_new_partitions_are_initialized_and_assigned() -> None:
    rig = Coordinating(partitions=1)
    member = ShareConsumer(rig, "a")
    assigned(rig, member)
    rig.set_topic("foo", 3)
    rig.publish()
    assert member.beat() == "3 foo:0"
    assert rig.answer_states() == "Initialize foo:1,2"
    assert member.beat() == "4 foo:0,1,2"


def test_a_deleted_topic_leaves_the_group() -> None:
    rig = Coordinating()
    member = ShareConsumer(rig, "a")
    assigned(rig, member)
    rig.delete_topic("foo")
    rig.publish()
    assert rig.group().state.topics.is_empty
    assert member.beat() == "3"


def test_epochs_fence_and_lost_answers_do_not() -> None:
    rig = Coordinating()
    member = ShareConsumer(rig, "a")
    assigned(rig, member)
    assert member.epoch == 2
    assert member.beat(member_epoch=1) == "2 foo:0,1", "the answer with 2 was lost"
    assert member.beat(member_epoch=3) == "FENCED_MEMBER_EPOCH"
    assert member.join() == "2 foo:0,1", "epoch 0 is always accepted"
    assert ShareConsumer(rig, "b").beat(member_epoch=1) == "UNKNOWN_MEMBER_ID"
    assert ShareConsumer(rig, "b", group="other").beat(member_epoch=1) == "GROUP_ID_NOT_FOUND"


def test_a_member_that_missed_an_answer_gets_its_assignment_with_the_next() -> None:
    rig = Coordinating()
    member = ShareConsumer(rig, "a")
    member.join()
    rig.answer_states()
    lost = answer_of(member.send())
    assert (lost.member_epoch, len(lost.assignment.topic_partitions)) == (2, 1)
    assert member.beat() == "2 foo:0,1"


def test_a_member_that_leaves_or_is_silent_gives_its_partitions_to_the_others() -> None:
    rig = Coordinating()
    a, b, c = (ShareConsumer(rig, name) for name in "abc")
    assigned(rig, a, b, c)
    assert c.beat(member_epoch=-1) == "-1 foo:1"
    assert c.beat(member_epoch=-1) == "UNKNOWN_MEMBER_ID"
    assert (a.beat(), b.beat()) == ("5 foo:0", "5 foo:1")
    rig.env.advance(SESSION_MS - 1)
    a.beat()
    rig.env.advance(2)
    assert a.beat() == "6 foo:0,1"
    assert b.beat() == "UNKNOWN_MEMBER_ID"


def test_a_removal_that_cannot_be_written_is_tried_again() -> None:
    rig = Coordinating(replicas=[1, 2], min_insync_replicas="2")
    member = ShareConsumer(rig, "a")
    member.send(subscribed_topic_names=["foo"])
    rig.follow()
    rig.set_isr([1])
    rig.env.advance(SESSION_MS + 10)
    assert member.id in rig.group().state.members
    rig.set_isr([1, 2])
    rig.env.advance(1000)
    assert member.id not in rig.group().state.members


def test_no_answer_says_more_than_is_committed() -> None:
    rig = Coordinating(replicas=[1, 2])
    member = ShareConsumer(rig, "a")
    joining = member.send(subscribed_topic_names=["foo"])
    beating = member.send(member_epoch=1)
    assert answer_of(joining) is answer_of(beating) is None
    assert described(rig, "g").error_code == ErrorCode.GROUP_ID_NOT_FOUND
    rig.follow()
    assert (member.hear(joining), member.hear(beating)) == ("1", "1")
    assert described(rig, "g").group_state == "Stable"


def test_the_next_coordinator_continues() -> None:
    rig = Coordinating()
    a, b = ShareConsumer(rig, "a"), ShareConsumer(rig, "b")
    assigned(rig, a, b)
    before = rig.group().state
    rig.lead(6)
    rig.env.advance(10)
    after = rig.group().state
    assert (after.members, after.targets, after.currents, after.topics) == (
        before.members, before.targets, before.currents, before.topics,
    )  # fmt: skip
    assert (a.beat(), b.beat()) == ("3 foo:0", "3 foo:1")
    rig.env.advance(SESSION_MS + 1)
    assert a.beat() == "UNKNOWN_MEMBER_ID", "sessions start afresh and end"


def test_the_next_coordinator_takes_up_an_initialization() -> None:
    rig = Coordinating()
    member = ShareConsumer(rig, "a")
    member.join()
    rig.env.advance(1)
    rig.env.take(CHANNEL)
    rig.lead(6)
    rig.env.advance(10)
    assert member.beat() == "1"
    assert rig.answer_states() == "Initialize foo:0,1"
    assert member.beat() == "2 foo:0,1"


def test_a_state_is_initialized_once_even_if_members_join_before_that_is_committed() -> None:
    """The later request could arrive when members have got somewhere."""
    rig = Coordinating(replicas=[1, 2])
    a, b = ShareConsumer(rig, "a"), ShareConsumer(rig, "b")
    joining = [member.send(subscribed_topic_names=["foo"]) for member in (a, b)]
    rig.follow()
    assert (a.hear(joining[0]), b.hear(joining[1])) == ("1", "2")
    assert rig.answer_states() == "Initialize foo:0,1"
    rig.env.advance(1)
    assert [sent for sent in rig.env.sent if sent.channel == CHANNEL] == []


def test_states_that_a_lossy_election_may_have_lost_are_initialized_again_and_no_others() -> None:
    rig = Coordinating()
    member = ShareConsumer(rig, "a")
    assigned(rig, member)

    def lose(leader_epoch: int) -> None:
        basis = ElectionBasis(Basis.RECOVERED, BrokerId(3), LeaderEpoch(leader_epoch))
        rig.set_partition(state([3], leader=3, leader_epoch=leader_epoch, basis=basis), STATES)
        rig.publish()
        rig.env.advance(1)

    lose(1)
    asked: Any = rig.env.sent[-1].request
    assert {each.state_epoch for each in asked.topics[0].partitions} == {0}, "fenced where the state exists"
    assert rig.answer_states(ErrorCode.FENCED_STATE_EPOCH) == "Initialize foo:0,1"
    assert member.beat() == "2 foo:0,1"
    rig.lead(6)
    rig.env.advance(10)
    assert rig.answer_states() == "Initialize foo:0,1", "the election may have been before this coordinator's time"
    lose(2)
    for _ in range(ATTEMPTS):
        rig.answer_states(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        rig.env.advance(2000)
    rig.env.advance(RESTORE_AGAIN_MS)
    assert rig.answer_states() == "Initialize foo:0,1"


def test_limits_of_members_and_requests() -> None:
    rig = Coordinating(group_share_max_size="1")
    a, b = ShareConsumer(rig, "a"), ShareConsumer(rig, "b")
    assert a.join() == "1"
    assert b.join() == "GROUP_MAX_SIZE_REACHED"
    assert a.join() == "1", "a member that is there may join again"
    for wrong in ({"member_id": ""}, {"member_id": "x" * 37}, {"group_id": " "}, {"rack_id": ""}, {"member_epoch": -2}):
        assert a.beat(**wrong) == "INVALID_REQUEST"
    assert a.beat(member_epoch=0) == "INVALID_REQUEST", "it says what it subscribes to when it joins"
    assert a.beat(subscribed_topic_names=["y" * 9000]) == "INVALID_REQUEST"


def test_below_the_feature_there_are_no_share_groups() -> None:
    rig = Coordinating()
    rig.image.set_feature(SHARE_VERSION, 0, rig.journal)
    assert ShareConsumer(rig, "a").join() == "UNSUPPORTED_VERSION"
    assert described(rig, "g").error_code == ErrorCode.UNSUPPORTED_VERSION


def test_an_id_is_of_one_kind_of_group() -> None:
    rig = Coordinating()
    a = ShareConsumer(rig, "a")
    assigned(rig, a)
    groups = rig.broker.groups
    joining = ConsumerGroupHeartbeatRequest(
        group_id="g", member_id="m", rebalance_timeout_ms=5, topic_partitions=[], subscribed_topic_names=["foo"]
    )
    rig.image.set_feature("group.version", 1, rig.journal)
    rig.publish()
    refused: Any = groups.consumer_group_heartbeat(joining, context(1))
    assert refused.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert refused.error_message == "Group g is not a consumer group."
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"")
    classic = JoinGroupRequest(
        group_id="g", session_timeout_ms=10_000, protocol_type="consumer", protocols=[protocol], rebalance_timeout_ms=5
    )
    for classic.member_id in ("", "x"):
        joined = answer_of(groups.join_group(classic, context(3)))
        assert (joined.error_code, joined.member_id) == (ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "")
    Topic = OffsetCommitRequest.OffsetCommitRequestTopic
    part = OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    commit = OffsetCommitRequest(
        group_id="g", generation_id_or_member_epoch=-1, topics=[Topic(name="foo", partitions=[part])]
    )
    for version in (2, 9):
        for commit.generation_id_or_member_epoch in (3, -1):
            answer = answer_of(offset_requests.commit(groups, rig.env, commit, context(version)))
            assert answer.topics[0].partitions[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND
    Group, Topics = OffsetFetchRequest.OffsetFetchRequestGroup, OffsetFetchRequest.OffsetFetchRequestTopics
    asked = Group(group_id="g", member_id="a", member_epoch=1, topics=[Topics(name="foo", partition_indexes=[0])])
    (fetched,) = offset_requests.fetch(groups, OffsetFetchRequest(groups=[asked]), context(9)).groups
    assert (fetched.error_code, fetched.topics[0].partitions[0].committed_offset) == (ErrorCode.NONE, -1)
    commit.group_id = "simple"
    assert (
        answer_of(offset_requests.commit(groups, rig.env, commit, context(9))).topics[0].partitions[0].error_code == 0
    )
    assert ShareConsumer(rig, "b", group="simple").join() == "GROUP_ID_NOT_FOUND"


def described(rig: Coordinating, group: str) -> Any:
    (found,) = admin.describe_share_groups(
        rig.broker.groups, ShareGroupDescribeRequest(group_ids=[group]), context(1)
    ).groups
    return found


def test_groups_are_listed_and_described() -> None:
    rig = Coordinating()
    a = ShareConsumer(rig, "a")
    assigned(rig, a)
    found = described(rig, "g")
    assert (found.group_state, found.group_epoch, found.assignment_epoch, found.assignor_name) == (
        "Stable",
        2,
        2,
        "simple",
    )
    (member,) = found.members
    assert (member.member_id, member.member_epoch, member.subscribed_topic_names) == ("a", 2, ["foo"])
    assert [(each.topic_name, each.partitions) for each in member.assignment.topic_partitions] == [("foo", [0, 1])]
    listed = admin.list_groups(rig.broker.groups, ListGroupsRequest(types_filter=["SHARE"])).groups
    assert [(each.group_id, each.group_type, each.protocol_type, each.group_state) for each in listed] == [
        ("g", "share", "share", "Stable")
    ]
    assert admin.list_groups(rig.broker.groups, ListGroupsRequest(types_filter=["classic"])).groups == []
    a.beat(member_epoch=-1)
    assert described(rig, "g").group_state == "Empty"


def deleted(answer: Any) -> ErrorCode:
    answer = answer_of(answer)
    assert answer is not None
    return ErrorCode(answer.results[0].error_code)


def test_a_group_is_deleted_after_its_state() -> None:
    rig = Coordinating()
    a = ShareConsumer(rig, "a")
    assigned(rig, a)
    request = DeleteGroupsRequest(groups_names=["g"])
    assert deleted(admin.delete_groups(rig.broker.groups, request)) is ErrorCode.NON_EMPTY_GROUP
    a.beat(member_epoch=-1)
    refused = admin.delete_groups(rig.broker.groups, request)
    rig.answer_states(ErrorCode.UNKNOWN_SERVER_ERROR)
    assert deleted(refused) is ErrorCode.UNKNOWN_SERVER_ERROR
    answer = admin.delete_groups(rig.broker.groups, request)
    assert rig.answer_states() == "Delete foo:0,1"
    assert deleted(answer) is ErrorCode.NONE
    assert described(rig, "g").error_code == ErrorCode.GROUP_ID_NOT_FOUND
    rig.lead(6)
    rig.env.advance(10)
    assert described(rig, "g").error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_member_that_joins_during_a_deletion_keeps_the_group() -> None:
    rig = Coordinating()
    a = ShareConsumer(rig, "a")
    assigned(rig, a)
    a.beat(member_epoch=-1)
    answer = admin.delete_groups(rig.broker.groups, DeleteGroupsRequest(groups_names=["g"]))
    assert a.join() == "4", "nothing is assigned while its state is being deleted"
    assert rig.answer_states() == "Delete foo:0,1"
    assert deleted(answer) is ErrorCode.NON_EMPTY_GROUP
    assert a.beat() == "4"
    assert rig.answer_states() == "Initialize foo:0,1"
    assert a.beat() == "5 foo:0,1"


def test_the_next_coordinator_finishes_a_deletion() -> None:
    rig = Coordinating()
    a = ShareConsumer(rig, "a")
    assigned(rig, a)
    a.beat(member_epoch=-1)
    admin.delete_groups(rig.broker.groups, DeleteGroupsRequest(groups_names=["g"]))
    rig.env.advance(1)
    rig.env.take(CHANNEL)
    rig.lead(6)
    rig.env.advance(10)
    assert rig.answer_states() == "Delete foo:0,1"
    assert rig.group().state.topics.is_empty and described(rig, "g").group_state == "Empty"


def test_a_deletion_that_failed_is_tried_again() -> None:
    """Members would wait for the topic until the next coordinator."""
    rig = Coordinating()
    a = ShareConsumer(rig, "a")
    assigned(rig, a)
    a.beat(member_epoch=-1)
    admin.delete_groups(rig.broker.groups, DeleteGroupsRequest(groups_names=["g"]))
    rig.answer_states(ErrorCode.UNKNOWN_SERVER_ERROR)
    assert a.join() == "4"
    rig.env.advance(DELETE_AGAIN_MS)
    assert rig.answer_states() == "Delete foo:0,1"
    assert a.beat() == "4"
    assert rig.answer_states() == "Initialize foo:0,1"
    assert a.beat() == "5 foo:0,1"


def test_a_deletion_that_another_one_has_done_is_not_tried_again() -> None:
    """It would delete the state that members use by then."""
    rig = Coordinating()
    a = ShareConsumer(rig, "a")
    assigned(rig, a)
    a.beat(member_epoch=-1)
    request = DeleteGroupsRequest(groups_names=["g"])
    admin.delete_groups(rig.broker.groups, request)
    rig.answer_states(ErrorCode.NOT_COORDINATOR)
    admin.delete_groups(rig.broker.groups, request)
    assert rig.answer_states() == "Delete foo:0,1"
    a.join()
    assert rig.answer_states() == "Initialize foo:0,1"
    rig.env.advance(DELETE_AGAIN_MS)
    assert not [sent for sent in rig.env.sent if sent.channel == CHANNEL]


def alter(rig: Coordinating, offset: int = 5, group: str = "g", topic: str = "foo", partition: int = 0) -> Any:
    R = AlterShareGroupOffsetsRequest
    part = R.AlterShareGroupOffsetsRequestPartition(partition_index=partition, start_offset=offset)
    topics = [R.AlterShareGroupOffsetsRequestTopic(topic_name=topic, partitions=[part])]
    return share_offsets.alter(rig.broker.groups, R(group_id=group, topics=topics))


def altered(answer: Any) -> str:
    answer = answer_of(answer)
    assert answer is not None
    return ErrorCode(answer.error_code or answer.responses[0].partitions[0].error_code).name


def test_offsets_are_altered_while_the_group_has_no_members() -> None:
    rig = Coordinating()
    a = ShareConsumer(rig, "a")
    assigned(rig, a)
    assert altered(alter(rig)) == "NON_EMPTY_GROUP"
    a.beat(member_epoch=-1)
    epoch = rig.group().state.epoch
    answer = alter(rig)
    rig.env.advance(1)
    sent: Any = rig.env.sent[-1].request
    assert (sent.topics[0].partitions[0].state_epoch, sent.topics[0].partitions[0].start_offset) == (epoch + 1, 5)
    rig.answer_states()
    assert altered(answer) == "NONE"
    assert altered(alter(rig, offset=-1)) == "INVALID_REQUEST"
    assert altered(alter(rig, topic="none")) == "UNKNOWN_TOPIC_OR_PARTITION"
    assert altered(alter(rig, partition=9)) == "UNKNOWN_TOPIC_OR_PARTITION"
    assert altered(alter(rig, group="")) == "INVALID_GROUP_ID"
    answer = alter(rig, group="new")
    rig.answer_states()
    assert (altered(answer), described(rig, "new").group_state) == ("NONE", "Empty")


def test_a_member_that_joins_before_altered_offsets_are_committed_does_not_undo_them() -> None:
    rig = Coordinating(replicas=[1, 2], partitions=1)
    a = ShareConsumer(rig, "a")
    altering, joining = alter(rig), a.send(subscribed_topic_names=["foo"])
    rig.follow()
    a.hear(joining)
    rig.env.advance(1)
    asked = [sent.request.topics[0].partitions[0].start_offset for sent in rig.env.sent if sent.channel == CHANNEL]
    assert asked == [5]
    rig.answer_states()
    rig.follow()
    assert altered(altering) == "NONE"


@pytest.mark.parametrize("code", [ErrorCode.NONE, ErrorCode.FENCED_STATE_EPOCH])
def test_offsets_of_a_topic_are_deleted_while_the_group_has_no_members(code: ErrorCode) -> None:
    rig = Coordinating()
    a = ShareConsumer(rig, "a")
    assigned(rig, a)
    R = DeleteShareGroupOffsetsRequest
    Topic = R.DeleteShareGroupOffsetsRequestTopic
    request = R(group_id="g", topics=[Topic(topic_name="foo"), Topic(topic_name="bar")])
    refused: Any = share_offsets.delete(rig.broker.groups, request)
    assert refused.error_code == ErrorCode.NON_EMPTY_GROUP
    a.beat(member_epoch=-1)
    answer = share_offsets.delete(rig.broker.groups, request)
    assert rig.answer_states(code) == "Delete foo:0,1"
    assert [each.error_code for each in answer_of(answer).responses] == [code, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert rig.group().state.topics.is_empty == (code is ErrorCode.NONE)
