"""What begins a recovery, what ends it, and what is forgotten with the controller."""

from __future__ import annotations

import pytest
from controller.cluster import alter, state_of
from controller.recovering import Cluster, back, lost

from heirlog.controller.recovery import manager
from heirlog.metadata.basis import Basis
from heirlog.protocol.messages import AlterPartitionRequest, DeleteTopicsRequest
from heirlog.protocol.types import BrokerId


def test_everybody_lost_is_remembered_in_the_order_of_the_losses() -> None:
    assert state_of(lost().harness).last_known_elr == (3, 2, 1)


def test_a_clean_candidate_ends_a_recovery() -> None:
    cluster = Cluster()
    cluster.topic(min_insync_replicas="2", unclean_recovery_strategy="Aggressive")
    cluster.fence(3)
    cluster.fence(2)
    assert state_of(cluster.harness).elr == (2,)
    cluster.reboot(1)
    back(cluster, 3)
    assert cluster.described().state == "Recovering"
    back(cluster, 2)
    assert cluster.leader() == 2
    assert cluster.harness.controller.elections[Basis.ELR] == 1
    assert cluster.harness.controller.elections[Basis.RECOVERED] == 0
    for broker in cluster.asked():
        cluster.reply(broker, 9, 9000)
    assert cluster.leader() == 2


def test_a_topic_that_is_made_anew_under_its_name_has_nothing_to_do_with_the_old_recovery() -> None:
    cluster = back(lost(), 1, 2, 3)
    late = [cluster.take(broker) for broker in (1, 2, 3)]
    request = DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name="foo")])
    cluster.harness.ask("delete_topics", request, 6)
    cluster.topic()
    before = state_of(cluster.harness)
    for question in late:
        cluster.env.sent.append(question)
        cluster.reply(question.broker, 9, 900)
    assert state_of(cluster.harness) == before
    assert cluster.harness.controller.recovery.open_recoveries.recoveries == {}


def test_a_new_controller_begins_anew_and_answers_to_the_old_one_are_nobodys() -> None:
    cluster = back(lost(), 1, 2, 3)
    cluster.reply(1, 0, 1000)
    old = [cluster.take(broker) for broker in (2, 3)]
    cluster.harness.lose()
    cluster.harness.lead()
    cluster.harness.commit()
    assert cluster.asked() == [1, 2, 3]
    new, cluster.env.sent = cluster.env.sent, old
    cluster.reply(2, 0, 5)
    cluster.reply(3, 0, 5)
    assert cluster.leader() == -1
    cluster.env.sent = new
    for broker, end in ((1, 1), (2, 2), (3, 3)):
        cluster.reply(broker, 0, end)
    assert cluster.leader() == 3


def test_a_recovery_that_got_lost_is_begun_again_by_a_heartbeat() -> None:
    cluster = back(lost(), 1, 2, 3)
    cluster.env.sent.clear()
    cluster.harness.controller.recovery.open_recoveries.recoveries.clear()
    cluster.harness.controller.recovery.sender.stop()
    cluster.advance(2_000)
    cluster.unfence(1)
    assert cluster.asked() == [1, 2, 3]


def test_followers_join_again_once_the_elections_are_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manager, "MANY_ELECTIONS", 2)
    cluster = back(lost(partitions=2), 1, 2, 3)
    for broker in (1, 2, 3):
        cluster.reply(broker)
    leader = BrokerId(cluster.leader())
    state, image = state_of(cluster.harness), cluster.image
    asked = AlterPartitionRequest.PartitionData(
        leader_epoch=state.leader_epoch,
        partition_epoch=state.partition_epoch,
        new_isr_with_epochs=[
            AlterPartitionRequest.BrokerState(broker_id=broker, broker_epoch=image.brokers[broker].epoch)
            for broker in (1, 2, 3)
        ],
    )
    topic = AlterPartitionRequest.TopicData(topic_id=image.topic_ids["foo"], partitions=[asked])
    request = AlterPartitionRequest(broker_id=leader, broker_epoch=image.brokers[leader].epoch, topics=[topic])
    answer = cluster.harness.leave("alter_partition", request, 3)
    cluster.advance(manager.MANY_ELECTIONS_MS - 1)
    assert not answer.is_there and state_of(cluster.harness).isr == (leader,)
    cluster.advance(manager.MANY_ELECTIONS_MS)
    assert answer.get().topics[0].partitions[0].error_code == 0
    assert set(state_of(cluster.harness).isr) == {1, 2, 3}


def growing(*targets: int, minimum: str = "2") -> Cluster:
    """foo-0 is on broker 1 alone, on its way to `targets`; the last of them is dead. Then 1 stops uncleanly."""
    cluster = Cluster(brokers=4, unclean_recovery_timeout_ms="60000")
    cluster.topic(replicas=[1], min_insync_replicas=minimum)
    cluster.fence(targets[-1])
    assert cluster.reassign([*targets]) == "NONE"
    return cluster


def test_an_adding_replica_that_never_held_anything_does_not_block_balanced_for_ever() -> None:
    cluster = growing(1, 4)
    cluster.reboot(1)
    state = state_of(cluster.harness)
    assert (state.leader, state.adding, state.last_known_elr) == (-1, (4,), (1,))
    back(cluster, 1)
    assert list(cluster.described().quorum) == [1]
    cluster.reply(1, 0, 10)
    seen = cluster.described()
    assert (cluster.leader(), seen.waits_for, seen.wait_ends_in_ms) == (-1, [4], 60_000)
    cluster.advance(60_000)
    assert cluster.leader() == 1


def test_an_adding_replica_that_was_in_the_isr_has_to_answer() -> None:
    cluster = growing(1, 2, 4, minimum="3")
    alter(cluster.harness, [1, 2])
    cluster.reboot(2)
    cluster.reboot(1)
    state = state_of(cluster.harness)
    assert (state.adding, state.last_known_elr) == ((2, 4), (2, 1))
    back(cluster, 1)
    seen = cluster.described()
    assert (sorted(seen.quorum), seen.waits_for) == ([1, 2], [2])
    assert cluster.reassign(None) == "INVALID_REPLICA_ASSIGNMENT", "2 may be the only one that has everything"


def test_where_no_list_says_who_was_a_member_every_adding_replica_has_to_answer_and_stays() -> None:
    cluster = growing(1, 4)
    cluster.reboot(1)
    topic_id = cluster.image.topic_ids["foo"]
    cluster.image.set_partition(topic_id, 0, state_of(cluster.harness)._replace(last_known_elr=()))
    assert sorted(cluster.described().quorum) == [1, 4]
    assert cluster.reassign(None) == "INVALID_REPLICA_ASSIGNMENT"


def test_a_reassignment_to_a_dead_broker_is_cancelled_without_a_leader_and_the_recovery_ends() -> None:
    cluster = growing(1, 4)
    cluster.reboot(1)
    assert cluster.reassign(None) == "NONE"
    state = state_of(cluster.harness)
    assert (state.replicas, state.adding, state.leader, state.last_known_elr) == ((1,), (), -1, (1,))
    back(cluster, 1)
    cluster.reply(1, 0, 10)
    assert cluster.leader() == 1


def test_a_cancellation_without_a_leader_keeps_waiting_for_the_eligible_replica() -> None:
    cluster = growing(1, 4)
    cluster.fence(1)
    assert (state_of(cluster.harness).elr, cluster.leader()) == ((1,), -1)
    assert cluster.reassign(None) == "NONE"
    assert (state_of(cluster.harness).elr, cluster.leader()) == ((1,), -1)
    back(cluster, 1)
    assert (cluster.leader(), state_of(cluster.harness).leader_recovery_state) == (1, 0)


def test_the_way_back_from_a_reassignment_elects_nobody_before_logs_are_compared() -> None:
    cluster = Cluster(brokers=4)
    cluster.topic(min_insync_replicas="1", unclean_recovery_strategy="Aggressive")
    cluster.lose_everything()
    assert cluster.reassign([1, 2, 4]) == "NONE"
    back(cluster, 1, 2, 3)
    assert cluster.reassign(None) == "NONE"
    assert cluster.leader() == -1 and set(state_of(cluster.harness).replicas) == {1, 2, 3}
    for broker, end in ((1, 1), (2, 3), (3, 2)):
        cluster.reply(broker, 0, end)
    cluster.advance(5_000)
    assert cluster.leader() == 2


def test_partitions_that_can_be_decided_come_before_those_that_are_only_asked_about(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(manager, "ROUND_PARTITIONS_MAX", 2)
    cluster = back(lost(partitions=6), 1, 2, 3)
    recovery = cluster.harness.controller.recovery
    last = [question for question in cluster.env.sent if question.request.topic_partitions[0].partitions == [4, 5]]
    assert sorted(question.broker for question in last) == [1, 2, 3]
    cluster.env.sent = last
    recovery.judge_all()
    with monkeypatch.context() as patch:
        patch.setattr(recovery, "settle", lambda: None)
        for broker in (1, 2, 3):
            cluster.reply(broker)
    recovery.settle()
    assert [partition for partition in range(6) if cluster.leader(partition) >= 0] == [4, 5]
