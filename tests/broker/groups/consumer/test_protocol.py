"""A whole broker and members of the consumer protocol: joining, moving, leaving, fencing, failing over."""

from __future__ import annotations

from typing import Any

import pytest

from heirlog.broker.groups import admin, coordinator
from heirlog.broker.groups.consumer import target_assignment
from heirlog.broker.groups.consumer.regular_expressions import REFRESH_MIN_MS
from heirlog.broker.groups.consumer.values import ConsumerGroupPhase, MemberState
from heirlog.metadata.state import GROUP_RESOURCE, GROUP_VERSION
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    DeleteGroupsRequest,
    ListGroupsRequest,
)

from ...fakes import answer_of, context
from .coordinating import FOO, REBALANCE_MS, SESSION_MS, Consumer, Coordinating


@pytest.fixture
def rig() -> Coordinating:
    return Coordinating()


# -- joining and moving -----------------------------------------------------------------------------------------------


def test_three_members_share_partitions_in_three_heartbeats_each(rig: Coordinating) -> None:
    a, b, c = (Consumer(rig, name) for name in "abc")
    assert a.join() == "1 foo:0,1,2,3,4,5"
    assert b.join() == "2", "the partitions are still with a"
    assert b.stored.state is MemberState.UNRELEASED_PARTITIONS
    assert a.beat() == "1 foo:0,1,2", "a keeps its epoch until it has given up the others"
    assert b.beat() == "2"
    assert a.beat(owns=True) == "2 foo:0,1,2"
    assert b.beat() == "2 foo:3,4,5"
    assert c.join() == "3"
    assert a.beat() == "2 foo:0,1" and b.beat() == "2 foo:3,4"
    assert a.beat(owns=True) == "3 foo:0,1"
    assert c.beat() == "3 foo:2"
    assert b.beat(owns=True) == "3 foo:3,4"
    assert c.beat() == "3 foo:2,5"
    assert rig.group().state.phase is ConsumerGroupPhase.STABLE


def test_a_heartbeat_without_news_writes_nothing_and_says_nothing(rig: Coordinating) -> None:
    a = Consumer(rig, "a")
    a.join()
    end = rig.log_end()
    assert a.beat() == "1 foo:0,1,2,3,4,5" and a.last.assignment is None
    assert (a.last.heartbeat_interval_ms, rig.log_end()) == (5000, end)
    # a full request is answered in full
    a.beat(owns=True, rebalance_timeout_ms=REBALANCE_MS, subscribed_topic_names=["foo"])
    assert a.last.assignment is not None and rig.log_end() == end


def test_a_lost_answer_is_repeated_and_any_other_epoch_is_fenced(rig: Coordinating) -> None:
    a, b = Consumer(rig, "a"), Consumer(rig, "b")
    a.join()
    b.join()
    a.beat()
    assert a.beat(owns=True) == "2 foo:0,1,2"
    a.epoch = 1
    assert a.beat(owns=True, rebalance_timeout_ms=1, subscribed_topic_names=["foo"]) == "2 foo:0,1,2"
    a.epoch = 1
    assert a.beat() == "FENCED_MEMBER_EPOCH", "without its partitions it could be anywhere"
    a.owned = {FOO: frozenset({5})}
    assert a.beat(owns=True) == "FENCED_MEMBER_EPOCH"
    a.epoch = 3
    assert a.beat() == "FENCED_MEMBER_EPOCH"
    assert a.join() == "2 foo:0,1,2", "epoch 0 always passes (KAFKA-19233)"


def test_a_member_that_subscribes_to_another_topic_raises_the_epoch(rig: Coordinating) -> None:
    rig.set_topic("bar", 2)
    rig.publish()
    a = Consumer(rig, "a")
    a.join()
    assert a.beat(subscribed_topic_names=["bar"]) == "1", "it gives up foo first"
    assert a.beat(owns=True) == "2 bar:0,1"
    assert a.beat(subscribed_topic_names=["bar"]) == "2 bar:0,1", "the same names change nothing"


def test_a_created_a_grown_and_a_deleted_topic_take_effect_with_the_next_heartbeat(rig: Coordinating) -> None:
    a = Consumer(rig, "a", subscribed_topic_names=["foo", "bar"])
    a.join()
    rig.set_topic("bar", 1)
    rig.publish()
    assert a.beat() == "2 bar:0 foo:0,1,2,3,4,5"
    rig.set_topic("bar", 2)
    rig.publish()
    assert a.beat() == "3 bar:0,1 foo:0,1,2,3,4,5"
    rig.delete_topic("bar")
    rig.publish()
    assert a.beat() == "3 foo:0,1,2,3,4,5"
    assert a.beat(owns=True) == "4 foo:0,1,2,3,4,5"


def test_a_topic_that_came_with_a_snapshot_of_the_metadata_takes_effect(rig: Coordinating) -> None:
    a = Consumer(rig, "a", subscribed_topic_names=["foo", "bar"])
    a.join()
    rig.set_topic("bar", 1)
    rig.broker.on_image(rig.image, None)
    assert a.beat() == "2 bar:0 foo:0,1,2,3,4,5"


def test_a_topic_change_that_could_not_be_written_is_not_forgotten() -> None:
    """testSubscriptionMetadataRefreshedAgainAfterWriteFailure of Apache Kafka."""
    rig = Coordinating([1, 2], min_insync_replicas="2")
    a = Consumer(rig, "a")
    joining = a.send(**a._join_fields())
    rig.follow()
    assert a.hear(joining).startswith("1 ")
    rig.lead(5, isr=[1], partition_epoch=6)
    rig.set_topic("foo", 8)
    rig.publish()
    assert a.beat() == "COORDINATOR_NOT_AVAILABLE"
    assert rig.group().state.epoch == 1
    rig.lead(5, isr=[1, 2], partition_epoch=7)
    waiting = a.send()
    rig.follow()
    assert a.hear(waiting) == "2 foo:0,1,2,3,4,5,6,7"


# -- when state is visible --------------------------------------------------------------------------------------------


def test_answers_wait_for_the_high_watermark_and_describe_shows_what_is_committed() -> None:
    rig = Coordinating([1, 2])
    a = Consumer(rig, "a")
    joining = a.send(**a._join_fields())
    refused = a.send(member_epoch=7)
    assert answer_of(joining) is None
    assert answer_of(refused) is None, "an error says something about what is not committed, too"
    assert describe(rig).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert listed(rig) == []
    rig.follow()
    assert a.hear(joining) == "1 foo:0,1,2,3,4,5"
    assert answer_of(refused).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert describe(rig).group_epoch == 1
    assert listed(rig) == [("g", "consumer", "Stable")]


def test_a_coordinator_that_loses_its_partition_answers_and_forgets() -> None:
    rig = Coordinating([1, 2])
    a = Consumer(rig, "a")
    joining = a.send(**a._join_fields())
    rig.lead(6, leader=2)
    assert a.hear(joining) == "NOT_COORDINATOR"
    a.epoch = 1
    assert a.beat() == "NOT_COORDINATOR"
    rig.env.advance(SESSION_MS * 2)
    assert rig.broker.groups.shards() == []


def test_the_next_coordinator_loads_what_was_committed_and_members_stay(rig: Coordinating) -> None:
    a, b = Consumer(rig, "a", "i1"), Consumer(rig, "b", server_assignor="range", rack_id="r")
    a.join()
    b.join()
    a.beat()
    before = rig.group().state
    rig.lead(6)
    after = rig.group().state
    assert after is not before
    assert (after.epoch, after.assignment_epoch, after.members, after.currents, after.targets, after.owners) == (
        before.epoch,
        before.assignment_epoch,
        before.members,
        before.currents,
        before.targets,
        before.owners,
    )
    assert rig.group().committed.members == after.members
    assert a.beat(owns=True) == "2 foo:0,1,2" and b.beat() == "2 foo:3,4,5"
    # sessions restart
    rig.env.advance(SESSION_MS - 1)
    assert set(rig.group().state.members) == {"a", "b"}
    rig.env.advance(1000)
    assert rig.group().is_empty


# -- leaving and timers -----------------------------------------------------------------------------------------------


def test_a_member_that_leaves_frees_its_partitions_at_once(rig: Coordinating) -> None:
    a, b = Consumer(rig, "a"), Consumer(rig, "b")
    a.join()
    b.join()
    assert a.beat(member_epoch=-1) == "-1 foo:0,1,2,3,4,5"
    assert b.beat() == "3 foo:0,1,2,3,4,5"
    assert a.beat(member_epoch=-1) == "UNKNOWN_MEMBER_ID"
    assert b.beat(member_epoch=-1).startswith("-1")
    assert rig.group().committed.phase is ConsumerGroupPhase.EMPTY
    assert Consumer(rig, "c").beat(member_epoch=5) == "UNKNOWN_MEMBER_ID"
    assert Consumer(rig, "c").send(group_id="other", member_epoch=5).error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_silent_member_is_removed_when_its_session_ends_and_not_before(rig: Coordinating) -> None:
    """G12; a heartbeat that is refused does not count."""
    a, b = Consumer(rig, "a"), Consumer(rig, "b")
    a.join()
    b.join()
    rig.env.advance(SESSION_MS - 1000)
    b.beat()
    a.beat(member_epoch=9)
    assert a.epoch == 1
    rig.env.advance(999)
    assert set(rig.group().state.members) == {"a", "b"}
    rig.env.advance(1)
    assert set(rig.group().state.members) == {"b"}
    assert b.beat() == "3 foo:0,1,2,3,4,5"


def test_the_session_and_the_interval_are_those_of_the_group(rig: Coordinating) -> None:
    a = Consumer(rig, "a")
    a.join()
    for name, value in (("consumer.session.timeout.ms", "50000"), ("consumer.heartbeat.interval.ms", "7000")):
        rig.image.set_config(GROUP_RESOURCE, "g", name, value, rig.journal)
    rig.publish()
    a.beat()
    assert a.last.heartbeat_interval_ms == 7000
    rig.env.advance(49_999)
    assert not rig.group().is_empty
    rig.env.advance(2)
    assert rig.group().is_empty


def test_a_member_that_does_not_give_up_partitions_in_time_is_removed(rig: Coordinating) -> None:
    a, b = Consumer(rig, "a"), Consumer(rig, "b")
    a.join()
    b.join()
    a.beat()
    for _ in range(6):
        rig.env.advance(REBALANCE_MS // 6 - 1)
        a.beat()
        b.beat()
    assert set(rig.group().state.members) == {"a", "b"}
    rig.env.advance(6)
    assert set(rig.group().state.members) == {"b"}
    assert a.beat() == "UNKNOWN_MEMBER_ID"


def test_the_rebalance_timer_stops_when_the_partitions_are_given_up(rig: Coordinating) -> None:
    a, b = Consumer(rig, "a"), Consumer(rig, "b")
    a.join()
    b.join()
    a.beat()
    a.beat(owns=True)
    for _ in range(10):
        rig.env.advance(REBALANCE_MS // 4)
        assert a.beat() == "2 foo:0,1,2" and b.beat() == "2 foo:3,4,5"


def test_a_member_that_is_asked_for_more_has_the_whole_time_again(rig: Coordinating) -> None:
    a, b, c = (Consumer(rig, name) for name in "abc")
    a.join()
    b.join()
    assert a.beat() == "1 foo:0,1,2"
    rig.env.advance(REBALANCE_MS // 2)
    b.beat()
    c.join()
    assert a.beat(owns=True) == "1 foo:0,1"
    for _ in range(2):
        rig.env.advance(REBALANCE_MS // 2 - 1)
        a.beat(), b.beat(), c.beat()
    assert "a" in rig.group().state.members
    rig.env.advance(2)
    assert "a" not in rig.group().state.members


def test_a_removal_that_cannot_be_written_is_tried_again() -> None:
    rig = Coordinating([1, 2], min_insync_replicas="2")
    a = Consumer(rig, "a")
    joining = a.send(**a._join_fields())
    rig.follow()
    a.hear(joining)
    rig.lead(5, isr=[1], partition_epoch=6)
    rig.env.advance(SESSION_MS + 3000)
    assert not rig.group().is_empty
    rig.lead(5, isr=[1, 2], partition_epoch=7)
    rig.env.advance(1000)
    rig.follow()
    assert rig.group().committed.is_empty


# -- static members ---------------------------------------------------------------------------------------------------


def test_a_static_member_that_comes_back_gets_the_same_partitions_without_a_new_epoch(rig: Coordinating) -> None:
    """G14."""
    a, b = Consumer(rig, "a", "i1"), Consumer(rig, "b", "i2")
    a.join()
    b.join()
    a.beat()
    a.beat(owns=True)
    b.beat()
    assert a.beat(member_epoch=-2) == "-2 foo:0,1,2"
    assert b.beat() == "2 foo:3,4,5"
    again = Consumer(rig, "a-again", "i1")
    assert again.join() == "2 foo:0,1,2"
    assert set(rig.group().state.members) == {"b", "a-again"} and rig.group().state.epoch == 2
    assert a.beat() == "FENCED_INSTANCE_ID"
    assert again.beat(member_epoch=-2).startswith("-2")
    assert again.join() == "2 foo:0,1,2", "under the same id, too"


def test_an_instance_in_use_is_not_taken_over(rig: Coordinating) -> None:
    a = Consumer(rig, "a", "i1")
    a.join()
    assert Consumer(rig, "x", "i1").join() == "UNRELEASED_INSTANCE_ID"
    assert a.join() == "UNRELEASED_INSTANCE_ID", "nor by the same id"
    assert Consumer(rig, "x", "i1").beat(member_epoch=3) == "FENCED_INSTANCE_ID"
    assert Consumer(rig, "x", "i9").beat(member_epoch=3) == "UNKNOWN_MEMBER_ID"
    a.instance, a.epoch = None, 1
    assert a.beat() == "1 foo:0,1,2,3,4,5", "librdkafka names it only in full requests"


def test_a_static_member_that_stays_away_is_removed_when_its_session_ends(rig: Coordinating) -> None:
    a = Consumer(rig, "a", "i1")
    a.join()
    rig.env.advance(SESSION_MS - 10)
    a.beat(member_epoch=-2)
    rig.env.advance(20)
    assert rig.group().is_empty, "the leave does not begin the session anew"


# -- offsets ----------------------------------------------------------------------------------------------------------


def test_only_a_member_in_its_epoch_commits(rig: Coordinating) -> None:
    """G9."""
    a, b = Consumer(rig, "a"), Consumer(rig, "b")
    a.join()
    assert rig.commit(a, 5) == "NONE"
    assert rig.commit(a, 6, version=8) == "UNSUPPORTED_VERSION"
    assert rig.commit(a, 6, epoch=2) == rig.commit(a, 6, epoch=0) == "STALE_MEMBER_EPOCH"
    assert rig.commit(b, 6, epoch=-1) == rig.commit(b, 6) == "UNKNOWN_MEMBER_ID"
    assert rig.committed() == rig.committed(epoch=-3) == rig.committed(a) == 5
    assert rig.committed(epoch=1) == "UNKNOWN_MEMBER_ID"
    assert rig.committed(b) == "UNKNOWN_MEMBER_ID"
    a.epoch = 3
    assert rig.committed(a) == "STALE_MEMBER_EPOCH"
    a.epoch = 1
    a.beat(member_epoch=-1)
    assert rig.commit(b, 9, epoch=-1) == "NONE", "an operator, once the group is empty"
    assert rig.committed() == 9


# -- regular expressions ----------------------------------------------------------------------------------------------


def test_topics_of_a_regular_expression_are_assigned_after_they_are_looked_up(rig: Coordinating) -> None:
    a = Consumer(rig, "a", subscribed_topic_names=None, subscribed_topic_regex="fo+")
    assert a.join() == "1"
    rig.env.advance(10)
    assert a.beat() == "2 foo:0,1,2,3,4,5"
    b = Consumer(rig, "b", subscribed_topic_names=None, subscribed_topic_regex="fo+")
    assert b.join() == "3", "the expression is known"
    assert b.beat(subscribed_topic_regex="(") == "INVALID_REGULAR_EXPRESSION"
    assert rig.group().state.members["b"].regex == "fo+", "nothing of a refused heartbeat is kept"


def test_an_expression_is_looked_up_at_once_if_the_group_has_no_other(rig: Coordinating) -> None:
    a = Consumer(rig, "a", subscribed_topic_names=None, subscribed_topic_regex="fo+")
    a.join()
    rig.env.advance(10)
    a.beat()
    a.beat(member_epoch=-1)
    b = Consumer(rig, "b", subscribed_topic_names=None, subscribed_topic_regex="fo.*")
    b.join()
    rig.env.advance(10)
    assert b.beat().partition(" ")[2] == "foo:0,1,2,3,4,5"
    c = Consumer(rig, "c", subscribed_topic_names=None, subscribed_topic_regex="fo")
    c.join()
    rig.env.advance(10)
    assert "fo" not in rig.group().state.regexes, "the group has just looked at all topics"


def test_an_expression_that_replaces_the_only_one_is_looked_up_with_the_next_heartbeat(rig: Coordinating) -> None:
    a = Consumer(rig, "a", subscribed_topic_names=None, subscribed_topic_regex="fo+")
    a.join()
    rig.env.advance(10)
    a.beat()
    a.beat(subscribed_topic_regex="f.*")
    rig.env.advance(10)
    assert rig.group().state.regexes == {}
    a.beat()
    rig.env.advance(10)
    assert rig.group().state.regexes.keys() == {"f.*"}


def test_a_lookup_that_cannot_be_written_is_repeated_after_a_while() -> None:
    rig = Coordinating([1, 2], min_insync_replicas="2")
    a = Consumer(rig, "a", subscribed_topic_names=None, subscribed_topic_regex="fo+")
    joining = a.send(**a._join_fields())
    rig.follow()
    a.hear(joining)
    rig.lead(5, isr=[1], partition_epoch=6)
    rig.env.advance(10)
    looked_at_ms = rig.group().resolved_at_ms
    assert not rig.group().state.regexes, "below min ISR nothing is written"
    a.beat()
    assert rig.group().resolved_at_ms == looked_at_ms
    rig.env.advance(10_000)
    a.beat()
    assert rig.group().resolved_at_ms != looked_at_ms


def test_an_expression_that_matches_nothing_moves_no_member(rig: Coordinating) -> None:
    a = Consumer(rig, "a", subscribed_topic_regex="nothing")
    assert a.join() == "1 foo:0,1,2,3,4,5"
    rig.env.advance(10)
    assert rig.group().state.regexes["nothing"].topics == frozenset(), "it is looked up"
    assert a.beat() == "1 foo:0,1,2,3,4,5"


def test_a_created_topic_that_matches_is_found_after_ten_seconds(rig: Coordinating) -> None:
    """G16."""
    a = Consumer(rig, "a", subscribed_topic_names=None, subscribed_topic_regex=".*")
    a.join()
    rig.env.advance(10)
    assert "foo" in a.beat()
    rig.set_topic("bar", 1)
    rig.publish()
    rig.env.advance(1000)
    a.beat()
    rig.env.advance(10)
    assert "bar" not in a.beat()
    rig.env.advance(REFRESH_MIN_MS)
    a.beat()
    rig.env.advance(10)
    assert "bar:0" in a.beat()
    a.beat(subscribed_topic_regex="", subscribed_topic_names=["bar"])
    assert "foo" not in a.beat(owns=True) and rig.group().state.regexes == {}


# -- memory -----------------------------------------------------------------------------------------------------------


def test_what_members_have_and_what_expressions_match_is_counted(
    monkeypatch: pytest.MonkeyPatch, rig: Coordinating
) -> None:
    a = Consumer(rig, "a", subscribed_topic_names=None, subscribed_topic_regex="fo+")
    a.join()
    (shard,) = rig.broker.groups.shards()
    without = shard.memory_use.bytes
    rig.env.advance(10)
    assert a.beat() == "2 foo:0,1,2,3,4,5"
    assert shard.memory_use.bytes >= without + 2 * 6 * 64 + 128, "target, assignment and a name"
    monkeypatch.setattr(coordinator, "MEMBERS_BYTES_MAX", without + 2500)
    assert Consumer(rig, "b").join() == "GROUP_MAX_SIZE_REACHED"
    a.beat(member_epoch=-1)
    assert shard.memory_use.bytes == 0


# -- large groups -----------------------------------------------------------------------------------------------------


def test_a_large_group_is_assigned_in_slices_and_members_are_answered_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(target_assignment, "INLINE_MAX", 5)
    rig = Coordinating()
    a, b = Consumer(rig, "a"), Consumer(rig, "b")
    assert a.join() == "1 foo:0,1,2,3,4,5"
    assert b.join() == "1", "at the epoch of the target so far, with nothing"
    assert rig.group().committed.phase is ConsumerGroupPhase.ASSIGNING
    assert a.beat() == "1 foo:0,1,2,3,4,5"
    rig.env.advance(50)
    assert a.beat() == "1 foo:0,1,2"
    assert a.beat(owns=True) == "2 foo:0,1,2" and b.beat() == "2 foo:3,4,5"


def test_a_static_member_that_comes_back_during_an_assignment_gets_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target_assignment, "INLINE_MAX", 5)
    rig = Coordinating()
    a, b = Consumer(rig, "a", "i1"), Consumer(rig, "b")
    a.join()
    a.beat(member_epoch=-2)
    b.join()
    again = Consumer(rig, "c", "i1")
    assert again.join() == "1 foo:0,1,2,3,4,5"
    rig.env.advance(50)
    assert again.beat() == "1 foo:0,1,2"
    assert again.beat(owns=True) == "2 foo:0,1,2" and b.beat() == "2 foo:3,4,5"


def test_a_group_that_was_deleted_during_an_assignment_stays_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target_assignment, "INLINE_MAX", 5)
    rig = Coordinating([1, 2])
    members = [Consumer(rig, "a"), Consumer(rig, "b")]
    for member in members:
        joining = member.send(**member._join_fields())
        rig.follow()
        member.hear(joining)
    for member in members:
        member.send(member_epoch=-1)
    rig.follow()
    admin.delete_groups(rig.broker.groups, DeleteGroupsRequest(groups_names=["g"]))
    end = rig.log_end()
    rig.env.advance(50)
    assert rig.log_end() == end, "the target of a group that is gone is not written"


def test_a_member_that_joins_again_during_an_assignment_has_a_target(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target_assignment, "INLINE_MAX", 5)
    rig = Coordinating()
    rig.set_topic("bar", 1)
    rig.publish()
    a, b, c = Consumer(rig, "a"), Consumer(rig, "b"), Consumer(rig, "c", subscribed_topic_names=["bar"])
    a.join()
    b.join()
    rig.env.advance(50)
    c.join()
    b.beat(member_epoch=-1)
    b.join()
    rig.env.advance(50)
    assert rig.group().state.assignment_epoch == 3
    assert rig.group().state.target("b") == {FOO: frozenset({3, 4, 5})}


# -- operators --------------------------------------------------------------------------------------------------------


def describe(rig: Coordinating, group: str = "g") -> Any:
    request = ConsumerGroupDescribeRequest(group_ids=[group])
    (answer,) = admin.describe_consumer_groups(rig.broker.groups, request, context(1)).groups
    return answer


def listed(rig: Coordinating, **filters: Any) -> list[tuple[str, str, str]]:
    answer = admin.list_groups(rig.broker.groups, ListGroupsRequest(**filters))
    return [(group.group_id, group.group_type, group.group_state) for group in answer.groups]


def delete(rig: Coordinating) -> str:
    answer = answer_of(admin.delete_groups(rig.broker.groups, DeleteGroupsRequest(groups_names=["g"])))
    return ErrorCode(answer.results[0].error_code).name


def test_a_group_is_described_with_epochs_members_and_both_assignments(rig: Coordinating) -> None:
    a, b = Consumer(rig, "a", "i1", rack_id="r"), Consumer(rig, "b", server_assignor="range")
    a.join()
    b.join()
    group = describe(rig)
    assert (group.group_state, group.group_epoch, group.assignment_epoch, group.assignor_name) == (
        "Reconciling",
        2,
        2,
        "range",
    )
    first, second = group.members
    assert (first.member_id, first.instance_id, first.rack_id, first.member_epoch) == ("a", "i1", "r", 1)
    assert (first.client_host, first.member_type) == ("/host", 1)
    assert first.assignment.topic_partitions[0].topic_name == "foo"
    assert first.target_assignment.topic_partitions[0].partitions == [0, 1, 2]
    assert second.assignment.topic_partitions == []
    assert listed(rig, types_filter=["Consumer"], states_filter=["RECONCILING"]) == [("g", "consumer", "Reconciling")]
    assert listed(rig, types_filter=["classic"]) == []


def test_an_empty_group_is_deleted_with_its_offsets_and_may_come_back(rig: Coordinating) -> None:
    a = Consumer(rig, "a")
    a.join()
    rig.commit(a, 5)
    assert delete(rig) == "NON_EMPTY_GROUP"
    a.beat(member_epoch=-1)
    assert delete(rig) == "NONE"
    assert delete(rig) == "GROUP_ID_NOT_FOUND"
    assert rig.committed() == -1
    rig.lead(6)
    assert describe(rig).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert a.join() == "1 foo:0,1,2,3,4,5"


def test_offsets_alone_keep_a_group_and_members_take_it_over(rig: Coordinating) -> None:
    a = Consumer(rig, "a")
    assert rig.commit(a, 5, epoch=-1) == "NONE"
    assert listed(rig) == [("g", "classic", "Empty")]
    a.join()
    assert listed(rig) == [("g", "consumer", "Stable")] and rig.committed() == 5
    rig.lead(6)
    assert rig.committed() == 5 and a.beat() == "1 foo:0,1,2,3,4,5"


# -- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"member_id": ""}, "INVALID_REQUEST"),
        ({"group_id": " "}, "INVALID_REQUEST"),
        ({"instance_id": ""}, "INVALID_REQUEST"),
        ({"rack_id": ""}, "INVALID_REQUEST"),
        ({"rebalance_timeout_ms": -1}, "INVALID_REQUEST"),
        ({"rebalance_timeout_ms": -2}, "INVALID_REQUEST"),
        ({"member_epoch": 1, "rebalance_timeout_ms": -2}, "INVALID_REQUEST"),
        ({"topic_partitions": None}, "INVALID_REQUEST"),
        ({"topic_partitions": [ConsumerGroupHeartbeatRequest.TopicPartitions()]}, "INVALID_REQUEST"),
        ({"subscribed_topic_names": None}, "INVALID_REQUEST"),
        ({"member_epoch": -2}, "INVALID_REQUEST"),
        ({"member_epoch": -3}, "INVALID_REQUEST"),
        ({"server_assignor": "sticky"}, "UNSUPPORTED_ASSIGNOR"),
        ({"subscribed_topic_names": ["x" * 9000]}, "INVALID_REQUEST"),
        ({"subscribed_topic_regex": "("}, "INVALID_REGULAR_EXPRESSION"),
    ],
)
def test_a_heartbeat_that_can_mean_nothing_is_refused(rig: Coordinating, fields: Any, code: str) -> None:
    a = Consumer(rig, "a")
    assert a.hear(a.send(**(a._join_fields() | fields))) == code
    assert a.last.error_message


def test_a_client_without_an_id_gets_one_in_version_0_only(rig: Coordinating) -> None:
    a = Consumer(rig, "")
    answer = answer_of(rig.beat(ConsumerGroupHeartbeatRequest(group_id="g", **a._join_fields()), 0))
    assert answer.error_code == 0 and len(answer.member_id) == 22
    assert set(rig.group().state.members) == {answer.member_id}


def test_a_member_without_topics_is_a_member(rig: Coordinating) -> None:
    a = Consumer(rig, "a", subscribed_topic_names=[])
    assert a.join() == "1"
    assert Consumer(rig, "b").join() == "2 foo:0,1,2,3,4,5"


def test_a_member_without_topics_that_joins_takes_nothing_from_the_others(rig: Coordinating) -> None:
    a, b = Consumer(rig, "a"), Consumer(rig, "b")
    a.join(), b.join()
    a.beat(), a.beat(owns=True), b.beat()
    b.beat(member_epoch=-1)
    assert Consumer(rig, "0", subscribed_topic_names=[]).join() == "3", "the group is assigned with its heartbeat"
    assert a.beat() == "3 foo:0,1,2,3,4,5"


def test_a_member_that_changes_its_instance_id_keeps_its_partitions(rig: Coordinating) -> None:
    a = Consumer(rig, "a", "i1")
    assert a.join() == "1 foo:0,1,2,3,4,5"
    a.instance = "i2"
    assert a.join() == "1 foo:0,1,2,3,4,5"
    assert dict(rig.group().state.static_members) == {"i2": "a"}


def test_a_full_group_takes_no_more_members() -> None:
    rig = Coordinating(group_consumer_max_size="1")
    a = Consumer(rig, "a")
    a.join()
    assert Consumer(rig, "b").join() == "GROUP_MAX_SIZE_REACHED"
    assert a.join() == "1 foo:0,1,2,3,4,5"


@pytest.mark.parametrize("protocols", ["classic", "classic,consumer"])
def test_the_protocol_needs_the_feature_and_the_configuration(protocols: str) -> None:
    rig = Coordinating(group_coordinator_rebalance_protocols=protocols)
    rig.image.set_feature(GROUP_VERSION, 0, rig.journal)
    rig.publish()
    assert Consumer(rig, "a").join() == "UNSUPPORTED_VERSION"
    assert describe(rig).error_code == ErrorCode.UNSUPPORTED_VERSION
    rig.image.set_feature(GROUP_VERSION, 1, rig.journal)
    rig.publish()
    assert (Consumer(rig, "a").join() == "UNSUPPORTED_VERSION") == (protocols == "classic")
