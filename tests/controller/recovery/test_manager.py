"""What begins a recovery, what ends it, and what is forgotten with the controller."""

from __future__ import annotations

import pytest
from controller.cluster import state_of
from controller.recovering import Cluster, back, lost

from heirlog.controller.recovery import manager
from heirlog.metadata.basis import Basis
from heirlog.protocol.messages.alter_partition import AlterPartitionRequest
from heirlog.protocol.messages.delete_topics import DeleteTopicsRequest
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
    assert cluster.harness.controller.recovery.book.recoveries == {}


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
    cluster.harness.controller.recovery.book.recoveries.clear()
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


def test_the_way_back_from_a_reassignment_elects_nobody_before_logs_are_compared() -> None:
    cluster = Cluster(brokers=4)
    cluster.topic(min_insync_replicas="1", unclean_recovery_strategy="Aggressive")
    cluster.lose_everything()
    assert cluster.reassign([1, 2, 4]) == "NONE"
    back(cluster, 1, 2, 3)
    assert cluster.reassign(None) == "INVALID_REPLICA_ASSIGNMENT"
    assert cluster.leader() == -1
    for broker, end in ((1, 1), (2, 3), (3, 2)):
        cluster.reply(broker, 0, end)
    cluster.advance(5_000)
    assert cluster.leader() == 2
    assert cluster.reassign(None) == "NONE"
    assert state_of(cluster.harness).replicas == (1, 2, 3)
