"""Whom a leaderless partition waits for, and who wins: strategies, quorums, windows; the rules without the manager."""

from __future__ import annotations

from controller.cluster import alter, heartbeat, state_of
from controller.fakes import Harness
from controller.recovering import STRATEGY, Cluster, back, lost

from heirlog.metadata.apply import image_of_snapshot
from heirlog.metadata.basis import Basis
from heirlog.protocol.messages import UnregisterBrokerRequest
from heirlog.protocol.records import PartitionRecord
from heirlog.protocol.types import BrokerId


def test_balanced_waits_for_its_quorum_says_for_whom_and_elects_the_longest_log() -> None:
    cluster = back(lost(), 1, 2)
    assert cluster.asked() == [] and cluster.leader() == -1
    seen = cluster.described()
    assert (seen.state, seen.strategy, seen.waits_for) == ("WaitingForQuorum", "Balanced", [3])
    assert sorted(seen.quorum) == [1, 2, 3]
    back(cluster, 3)
    assert cluster.asked() == [1, 2, 3]
    cluster.reply(1, 0, 10)
    cluster.reply(3, 0, 30)
    seen = cluster.described()
    assert (seen.state, seen.waits_for) == ("Recovering", [2])
    assert [(r.broker_id, r.is_valid, r.log_end_offset) for r in seen.replicas] == [
        (1, True, 10),
        (2, False, -1),
        (3, True, 30),
    ]
    cluster.reply(2, 0, 20)
    state = state_of(cluster.harness)
    assert (state.leader, state.isr, state.elr, state.last_known_elr) == (3, (3,), (), ())
    assert state.leader_recovery_state == 1
    assert cluster.harness.controller.elections[Basis.RECOVERED] == 1
    assert cluster.described().state == "Led"


def test_the_newer_last_written_epoch_beats_the_longer_log_and_of_equal_logs_the_first_replica_wins() -> None:
    cluster = back(lost(), 1, 2, 3)
    cluster.reply(1, 4, 900)
    cluster.reply(2, 5, 100)
    cluster.reply(3, 5, 100)
    assert cluster.leader() == 2


def test_balanced_waits_for_a_fenced_eligible_replica_and_aggressive_does_not() -> None:
    for strategy, state in (("Balanced", "WaitingForEligible"), ("None", "WaitingForEligible")):
        cluster = eligible_but_fenced(strategy)
        assert cluster.described().state == state and cluster.asked() == []
    cluster = eligible_but_fenced("Aggressive")
    assert cluster.described().state == "Recovering"


def eligible_but_fenced(strategy: str) -> Cluster:
    cluster = Cluster()
    cluster.topic(min_insync_replicas="2", unclean_recovery_strategy=strategy)
    cluster.fence(3)
    cluster.fence(2)
    cluster.reboot(1)
    return back(cluster, 1, 3)


def test_aggressive_takes_the_best_of_those_that_answer_within_the_window() -> None:
    cluster = back(lost(unclean_recovery_strategy="Aggressive"), 1, 2)
    cluster.reply(1, 0, 10)
    cluster.reply(2, 0, 20)
    assert cluster.leader() == -1 and cluster.described().wait_ends_in_ms > 0
    cluster.advance(5_000)
    assert cluster.leader() == 2


def test_balanced_waits_a_limited_time_for_replicas_outside_its_quorum() -> None:
    cluster = Cluster(unclean_recovery_timeout_ms="60000")
    cluster.topic(min_insync_replicas="2")
    alter(cluster.harness, [1, 2])
    cluster.lose_everything()
    assert state_of(cluster.harness).last_known_elr == (2, 1)
    back(cluster, 1, 2, 3)
    cluster.reply(1, 0, 10)
    cluster.reply(2, 0, 20)
    seen = cluster.described()
    assert (seen.waits_for, sorted(seen.quorum)) == ([3], [1, 2]) and 0 < seen.wait_ends_in_ms <= 60_000
    cluster.advance(60_000)
    assert cluster.leader() == 2
    basis = state_of(cluster.harness).basis
    assert basis is not None and not basis.all_answered


def without_the_first_lost(**configs: str) -> Cluster:
    """Replica 3 left an ISR that was still at min ISR: no list names it. Then 1 and 2 were lost; nobody is back."""
    cluster = Cluster(unclean_recovery_timeout_ms="60000", **configs)
    cluster.topic(min_insync_replicas="2")
    cluster.lose_everything()
    assert state_of(cluster.harness).last_known_elr == (2, 1)
    return cluster


def test_balanced_waits_for_a_replica_that_boots_late_and_elects_it_where_it_has_the_longest_log() -> None:
    cluster = back(without_the_first_lost(), 1, 2)
    cluster.reply(1, 0, 10)
    cluster.reply(2, 0, 20)
    seen = cluster.described()
    assert (cluster.leader(), seen.waits_for, seen.wait_ends_in_ms) == (-1, [3], 60_000)
    waits = [more for event, more in cluster.env.events if event == "recovery-waits"]
    assert waits == [{"topic": "foo", "partition": 0, "waits_for": [3], "ends_in_ms": 60_000}]
    cluster.advance(59_000)
    back(cluster, 3)
    cluster.reply(3, 0, 3000)
    assert cluster.leader() == 3


def test_a_replica_that_is_gone_for_good_delays_balanced_by_the_time_limit_and_no_longer() -> None:
    for broker in (None, 3):
        cluster = back(without_the_first_lost(), 1, 2)
        if broker is not None:
            request = UnregisterBrokerRequest(broker_id=broker)
            assert cluster.harness.ask("unregister_broker", request, 0).error_code == 0
        cluster.reply(1, 0, 10)
        cluster.reply(2, 0, 20)
        cluster.advance(59_999)
        assert cluster.leader() == -1
        cluster.advance(1)
        assert cluster.leader() == 2


def test_a_replica_whose_directory_is_offline_is_waited_for_like_a_fenced_one() -> None:
    cluster = back(without_the_first_lost(), 1, 2, 3)
    state = state_of(cluster.harness)
    heartbeat(cluster.harness, 3, offline_log_dirs=[state.directory_of(BrokerId(3))])
    cluster.reply(1, 0, 10)
    cluster.reply(2, 0, 20)
    assert (cluster.leader(), cluster.described().waits_for) == (-1, [3])


def test_a_replica_that_has_answered_and_gone_is_waited_for_only_where_its_log_is_better() -> None:
    for end, leader in ((15, 2), (25, -1)):
        cluster = back(without_the_first_lost(), 1, 2, 3)
        cluster.reply(3, 0, end)
        cluster.fence(3)
        cluster.reply(1, 0, 10)
        cluster.reply(2, 0, 20)
        assert cluster.leader() == leader
    assert cluster.described().waits_for == [3]
    back(cluster, 3)
    assert cluster.leader() == 3


def test_the_wait_is_counted_from_the_beginning_of_the_recovery_also_where_the_quorum_answers_late() -> None:
    cluster = back(without_the_first_lost(), 1)
    cluster.advance(200_000)
    back(cluster, 2)
    assert cluster.described().runs_for_ms == 0
    cluster.reply(1, 0, 10)
    cluster.fence(2)
    cluster.advance(70_000)
    back(cluster, 2)
    cluster.reply(2, 0, 20)
    assert cluster.leader() == 2


def test_another_controller_waits_anew() -> None:
    cluster = back(without_the_first_lost(), 1, 2)
    cluster.reply(1, 0, 10)
    cluster.reply(2, 0, 20)
    cluster.advance(50_000)
    cluster.harness.lose()
    cluster.env.sent.clear()
    cluster.harness.lead()
    cluster.harness.commit()
    cluster.reply(1, 0, 10)
    cluster.reply(2, 0, 20)
    assert (cluster.leader(), cluster.described().wait_ends_in_ms) == (-1, 60_000)


def test_an_operator_may_skip_the_wait_for_replicas_outside_the_quorum() -> None:
    cluster = Cluster()
    cluster.topic(min_insync_replicas="2")
    alter(cluster.harness, [1, 2])
    cluster.lose_everything()
    back(cluster, 1, 2, 3)
    cluster.reply(1, 0, 10)
    cluster.reply(2, 0, 20)
    assert cluster.outcome(2)[0] == "ELIGIBLE_LEADERS_NOT_AVAILABLE"
    assert cluster.outcome(2, skip_wait=True) == ("NONE", "")
    assert cluster.leader() == 2


def test_a_short_list_of_losses_proves_nothing_and_every_replica_must_answer() -> None:
    cluster = Cluster()
    cluster.topic(min_insync_replicas="2")
    cluster.lose_everything()
    record = PartitionRecord(
        partition_id=0,
        topic_id=cluster.image.topic_ids["foo"],
        replicas=[1, 2, 3],
        isr=[],
        leader=-1,
        leader_epoch=50,
        partition_epoch=50,
        directories=list(state_of(cluster.harness).directories),
        last_known_elr=[1],
    )
    cluster.harness.lose()
    cluster.harness.load([record])
    cluster.harness.lead()
    cluster.harness.commit()
    back(cluster, 1, 2)
    assert cluster.described().state == "WaitingForQuorum"
    assert sorted(cluster.described().quorum) == [1, 2, 3]
    assert "all assigned replicas" in cluster.described().quorum_reason


def test_a_member_that_goes_while_the_others_are_asked_is_waited_for_and_its_answer_is_kept() -> None:
    cluster = back(lost(), 1, 2, 3)
    cluster.reply(1, 0, 1000)
    cluster.fence(1)
    cluster.reply(2, 0, 20)
    cluster.reply(3, 0, 5)
    assert cluster.leader() == -1 and cluster.described().waits_for == [1]
    assert cluster.described().runs_for_ms >= 0
    back(cluster, 1)
    assert cluster.leader() == 1


def test_with_the_elr_feature_off_the_last_in_sync_replica_is_waited_for() -> None:
    cluster = Cluster()
    cluster.topic(min_insync_replicas="2")
    image = cluster.image
    cluster.harness.lose()
    records = [
        record for record in image.records() if getattr(record, "name", "") != "eligible.leader.replicas.version"
    ]
    fresh = Harness(cluster.harness.static)
    fresh.env = cluster.env  # type: ignore[assignment]
    fresh.controller = type(fresh.controller)(cluster.env, fresh.static, fresh.quorum, cluster_id="cluster")
    fresh.controller.follow(image_of_snapshot(records, image.offset, 1))
    fresh.quorum.log_end_offset = image.offset + 1
    cluster.harness = fresh
    fresh.lead()
    fresh.commit()
    for broker in (3, 2, 1):
        cluster.fence(broker)
    assert state_of(fresh).isr == (1,)
    back(cluster, 2, 3)
    assert cluster.described().state == "WaitingForEligible"
    cluster.set(**{"min.insync.replicas": "2", STRATEGY: "Aggressive"})
    cluster.reply(2, 0, 10)
    cluster.reply(3, 0, 20)
    cluster.advance(5_000)
    state = state_of(fresh)
    assert (state.leader, state.isr) == (3, (3,))


def test_lists_that_a_downgrade_left_behind_decide_nothing() -> None:
    cluster = lost()
    state = state_of(cluster.harness)._replace(elr=(2,), last_known_elr=(2,))
    topic_id = cluster.image.topic_ids["foo"]
    back(cluster, 1, 2, 3)
    cluster.image.set_partition(topic_id, 0, state)
    cluster.image.set_feature("eligible.leader.replicas.version", None)
    seen = cluster.described()
    assert (seen.state, sorted(seen.waits_for)) == ("Recovering", [1, 2, 3])
