"""The recovery manager is switched on and off: its level, and what becomes of LastKnownELR."""

from __future__ import annotations

from typing import Any

import pytest
from controller.cluster import alter, heartbeat, register, state_of, topic_request
from controller.recovering import FLAG, STRATEGY, Cluster, back, lost

from heirlog.controller.recovery.decision import quorum_members
from heirlog.metadata.apply import image_of_snapshot
from heirlog.metadata.basis import Basis
from heirlog.metadata.state import ELR_VERSION, RECOVERY_VERSION
from heirlog.protocol.messages import UpdateFeaturesRequest
from heirlog.protocol.records import (
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
)


def last_batch(cluster: Cluster) -> list[Any]:
    return list(cluster.harness.quorum.log[-1].records)


def restarted(cluster: Cluster, *, without_level: bool = False, **config: str) -> Cluster:
    """Another process leads, with `config` in its file, from a snapshot of the image."""
    left_out = RECOVERY_VERSION if without_level else None
    records = [record for record in cluster.image.records() if getattr(record, "name", "") != left_out]
    after = Cluster(brokers=0, **config)
    after.harness.lose()
    after.harness.controller.follow(image_of_snapshot(records, cluster.image.offset, 1))
    after.harness.quorum.log_end_offset = cluster.image.offset + 1
    after.lives = dict(cluster.lives)
    after.harness.lead()
    after.harness.commit()
    return after


# the level


def test_the_level_counts_and_a_configuration_that_disagrees_is_logged_once() -> None:
    for manager in (True, False):
        cluster = restarted(lost(), unclean_recovery_manager_enabled=str(manager).lower())
        back(cluster, 1, 2, 3)
        assert cluster.described().state == "Recovering"
        ignored = [more for event, more in cluster.env.events if event == "recovery-manager-config-ignored"]
        assert ignored == ([] if manager else [{"configured": 0, "finalized": 1}])


@pytest.mark.parametrize("manager", [True, False])
def test_the_first_controller_of_a_cluster_without_the_level_writes_what_its_configuration_says(manager: bool) -> None:
    cluster = restarted(lost(), without_level=True, unclean_recovery_manager_enabled=str(manager).lower())
    assert cluster.image.features[RECOVERY_VERSION] == int(manager)
    assert cluster.describe().manager_enabled is manager
    other = restarted(cluster, unclean_recovery_manager_enabled=str(not manager).lower())
    assert other.describe().manager_enabled is manager


def test_an_upgrade_that_turns_the_manager_off_does_not_elect_a_lost_follower() -> None:
    cluster = restarted(follower_lost(), without_level=True, unclean_recovery_manager_enabled="false")
    assert state_of(cluster.harness).last_known_elr == ()
    cluster.reboot(1)
    back(cluster, 2)
    assert cluster.leader() == -1


def test_an_upgrade_that_turns_the_manager_on_does_not_trust_a_list_of_one_leader() -> None:
    cluster = Cluster(manager=False)
    cluster.topic(min_insync_replicas="1")
    cluster.fence(2)
    cluster.fence(3)
    cluster.reboot(1)
    assert state_of(cluster.harness).last_known_elr == (1,)
    cluster = restarted(cluster, without_level=True, unclean_recovery_manager_enabled="true")
    assert set(state_of(cluster.harness).last_known_elr) == {1, 2, 3}


def test_once_the_elr_is_on_an_adding_replica_that_left_the_isr_before_is_not_taken_for_a_new_one() -> None:
    cluster = Cluster(brokers=4)
    cluster.topic(min_insync_replicas="2")
    cluster.switch(False, ELR_VERSION)
    assert cluster.reassign([1, 4]) == "NONE"
    cluster.harness.lose()
    state = state_of(cluster.harness)
    record = PartitionRecord(
        partition_id=0,
        topic_id=cluster.image.topic_ids["foo"],
        replicas=list(state.replicas),
        isr=[1, 4],
        leader=1,
        leader_epoch=state.leader_epoch + 1,
        partition_epoch=state.partition_epoch + 1,
        directories=list(state.directories),
        adding_replicas=list(state.adding),
        removing_replicas=list(state.removing),
    )
    cluster.harness.load([record])
    cluster.harness.lead()
    cluster.harness.commit()
    cluster.fence(4)
    assert state_of(cluster.harness).isr == (1,)
    cluster.switch(True, ELR_VERSION)
    cluster.reboot(1)
    assert 4 in quorum_members(state_of(cluster.harness), 2)
    assert cluster.reassign(None) != "NONE"


def test_a_level_of_zero_survives_a_snapshot_and_a_failover() -> None:
    cluster = Cluster()
    assert cluster.switch(False) == ("NONE", "")
    read = image_of_snapshot(list(cluster.image.records()), cluster.image.offset, 1)
    assert read.features[RECOVERY_VERSION] == 0
    cluster.harness.lose()
    cluster.harness.lead()
    cluster.harness.commit()
    assert cluster.describe().manager_enabled is False


def test_a_broker_that_does_not_support_the_feature_registers_and_does_not_keep_it_from_being_switched_on() -> None:
    cluster = Cluster()
    assert register(cluster.harness, 9).error_code == 0, "as a broker of Apache Kafka registers"
    assert cluster.switch(False)[0] == "NONE"
    assert cluster.switch(True)[0] == "NONE"


def test_types_two_to_four_of_elections_follow_the_level() -> None:
    cluster = lost()
    assert cluster.outcome(2)[0] == "ELIGIBLE_LEADERS_NOT_AVAILABLE"
    cluster.switch(False)
    for kind in (2, 3, 4):
        assert cluster.outcome(kind)[0] == "INVALID_REQUEST"
    cluster.switch(True)
    assert cluster.outcome(2)[0] == "ELIGIBLE_LEADERS_NOT_AVAILABLE"


# from on to off


def follower_lost() -> Cluster:
    """1 led last and is away, fenced; 2 was eligible and has stopped uncleanly."""
    cluster = Cluster()
    cluster.topic(min_insync_replicas="2")
    for broker in (3, 2, 1):
        cluster.fence(broker)
    cluster.reboot(2)
    state = state_of(cluster.harness)
    assert (state.leader, state.isr, state.elr, state.last_known_elr, state.last_leader) == (-1, (), (1,), (2,), 1)
    return cluster


def test_a_lost_follower_is_not_elected_as_the_last_known_leader() -> None:
    cluster = follower_lost()
    assert cluster.switch(False) == ("NONE", "")
    level, change = last_batch(cluster)
    assert isinstance(level, FeatureLevelRecord) and (level.name, level.feature_level) == (RECOVERY_VERSION, 0)
    assert isinstance(change, PartitionChangeRecord) and change.last_known_elr == []
    back(cluster, 2)
    assert cluster.leader() == -1
    cluster.reboot(1)
    back(cluster, 1)
    assert cluster.leader() == -1, "1 came back uncleanly, after the list had been emptied"


def test_the_last_leader_stays_on_the_list_and_leads_when_it_is_back() -> None:
    cluster = lost()
    assert state_of(cluster.harness).last_known_elr == (3, 2, 1) and state_of(cluster.harness).last_leader == 1
    assert cluster.switch(False) == ("NONE", "")
    assert state_of(cluster.harness).last_known_elr == (1,)
    back(cluster, 2, 3)
    assert cluster.leader() == -1 and cluster.described().state == "WaitingForLastKnownLeader"
    back(cluster, 1)
    assert cluster.leader() == 1
    assert cluster.harness.controller.elections[Basis.LAST_KNOWN] == 1


def test_what_the_shipped_rules_elect_is_elected_by_the_switch_itself() -> None:
    cluster = back(lost(), 1, 2)
    assert cluster.leader() == -1
    assert cluster.switch(False) == ("NONE", "")
    assert cluster.leader() == 1
    cluster = back(lost(**{FLAG.replace(".", "_"): "true", STRATEGY.replace(".", "_"): "None"}), 3)
    assert cluster.leader() == -1
    cluster.switch(False)
    assert (cluster.leader(), state_of(cluster.harness).leader_recovery_state) == (3, 1)


def test_who_led_last_is_known_after_a_snapshot_too_and_where_it_is_not_an_operator_decides() -> None:
    cluster = restarted(lost())
    cluster.switch(False)
    assert state_of(cluster.harness).last_known_elr == (1,)
    cluster = restarted(lost())
    unknown = state_of(cluster.harness)
    record = PartitionRecord(
        partition_id=0,
        topic_id=cluster.image.topic_ids["foo"],
        replicas=[1, 2, 3],
        isr=[],
        leader=-1,
        leader_epoch=unknown.leader_epoch,
        partition_epoch=unknown.partition_epoch,
        directories=list(unknown.directories),
        last_known_elr=[1],
    )
    cluster.harness.lose()
    cluster.harness.load([record])
    cluster.harness.lead()
    cluster.harness.commit()
    before = cluster.harness.quorum.log_end_offset
    code, sentence = cluster.switch(False, validate_only=True)
    assert code == "NONE" and "foo-0" in sentence and "An operator has to decide" in sentence
    assert cluster.harness.quorum.log_end_offset == before
    assert cluster.switch(False) == ("NONE", sentence)
    assert state_of(cluster.harness).last_known_elr == ()
    back(cluster, 1, 2, 3)
    assert cluster.leader() == -1 and cluster.described().state == "ManualElectionRequired"
    assert cluster.outcome(1) == ("NONE", "") and cluster.leader() == 1


def test_a_recovery_under_way_ends_with_the_manager() -> None:
    cluster = back(lost(), 2, 3)
    cluster.outcome(2)
    back(cluster, 1)
    cluster.switch(False)
    assert cluster.leader() == 1
    cluster.advance(10_000)
    cluster.env.sent.clear()
    cluster.advance(10_000)
    assert cluster.asked() == [] and not cluster.harness.controller.recovery.open_recoveries.recoveries


# from off to on


def off_with_losses() -> Cluster:
    """The manager is off, and all of foo-0 was lost, 1 last: the list names 1 alone."""
    cluster = Cluster(manager=False)
    cluster.topic(min_insync_replicas="1")
    cluster.lose_everything()
    assert state_of(cluster.harness).last_known_elr == (1,)
    return cluster


def test_every_assigned_replica_has_to_answer_for_what_was_lost_before_the_manager_was_on() -> None:
    cluster = off_with_losses()
    assert cluster.switch(True) == ("NONE", "")
    level, change = last_batch(cluster)
    assert (level.name, level.feature_level) == (RECOVERY_VERSION, 1)
    assert change.last_known_elr == [1, 2, 3]
    back(cluster, 1, 2)
    assert cluster.leader() == -1 and cluster.described().state == "WaitingForQuorum"
    back(cluster, 3)
    for broker, end in ((1, 10), (2, 30), (3, 20)):
        cluster.reply(broker, 0, end)
    assert cluster.leader() == 2


def test_losses_of_before_count_until_the_isr_has_been_at_min_isr() -> None:
    cluster = Cluster(manager=False)
    cluster.topic(min_insync_replicas="2")
    alter(cluster.harness, [1])
    assert state_of(cluster.harness).elr == (2, 3)
    cluster.reboot(3)
    assert (state_of(cluster.harness).elr, state_of(cluster.harness).last_known_elr) == ((2,), ())
    cluster.switch(True)
    assert state_of(cluster.harness).last_known_elr == (3,)
    cluster.reboot(2)
    cluster.reboot(1)
    assert sorted(state_of(cluster.harness).last_known_elr) == [1, 2, 3]
    back(cluster, 1, 2)
    assert cluster.described().state == "WaitingForQuorum" and cluster.described().waits_for == [3]


def test_a_partition_at_min_isr_has_nothing_to_remember() -> None:
    cluster = Cluster(manager=False)
    cluster.topic(min_insync_replicas="2")
    alter(cluster.harness, [1])
    cluster.reboot(3)
    cluster.switch(True)
    back(cluster, 3)
    alter(cluster.harness, [1, 3])
    assert state_of(cluster.harness).last_known_elr == ()
    cluster.switch(False)
    cluster.switch(True)
    assert [type(record) for record in last_batch(cluster)] == [FeatureLevelRecord]


# many partitions, and the other feature


def test_a_switch_of_more_than_a_batch_holds_is_one_metadata_transaction() -> None:
    cluster = Cluster()
    cluster.topic(9990, min_insync_replicas="3")
    received = cluster.harness.ask("create_topics", topic_request("bar", 20, 3, min_insync_replicas="3"), 7)
    assert received.topics[0].error_code == 0
    cluster.lose_everything()
    cluster.switch(False)
    written = [record for batch in cluster.harness.quorum.log for record in batch.records]
    begin = max(index for index, record in enumerate(written) if isinstance(record, BeginTransactionRecord))
    assert isinstance(written[-1], EndTransactionRecord) and len(written) - begin == 10_010 + 3
    assert all(
        state.last_known_elr == (state.last_leader,)
        for partitions in cluster.image.partitions.values()
        for state in partitions.values()
    )


def test_without_the_elr_feature_no_list_is_written() -> None:
    cluster = off_with_losses()
    cluster.harness.controller.image.set_feature("eligible.leader.replicas.version", None)
    cluster.switch(True)
    assert [type(record) for record in last_batch(cluster)] == [FeatureLevelRecord]


def test_a_request_that_switches_both_features_off_leaves_no_list_behind() -> None:
    cluster = lost()
    updates = [
        UpdateFeaturesRequest.FeatureUpdateKey(feature=name, max_version_level=0, upgrade_type=2)
        for name in (RECOVERY_VERSION, "eligible.leader.replicas.version")
    ]
    received = cluster.harness.ask("update_features", UpdateFeaturesRequest(feature_updates=updates), 2)
    assert (
        received.error_code == 0 and "An operator has to decide (an unclean election): foo-0" in received.error_message
    )
    assert state_of(cluster.harness).last_known_elr == ()
    for broker in (1, 2, 3):
        heartbeat(cluster.harness, broker)
    assert cluster.leader() == -1
