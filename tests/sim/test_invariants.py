"""Each invariant passes on a sound state, and fires on the state that breaks it."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from heirlog.broker.isr import CommittedPartitionState, Isr, PendingExpandIsr, PendingShrinkIsr
from heirlog.broker.partition import ReplicaRole
from heirlog.metadata.state import PartitionRegistration
from heirlog.protocol.types import BrokerId, LeaderEpoch, PartitionEpoch
from heirlog.sim import invariants
from heirlog.sim.invariants import Watermark


@dataclass
class Epochs:
    starts: dict[int, int]

    def epoch_for_offset(self, offset: int) -> int:
        return max((epoch for epoch, start in self.starts.items() if start <= offset), default=-1)


@dataclass
class Log:
    log_end_offset: int
    epochs: Epochs
    log_start_offset: int = 0


@dataclass
class Replica:
    role: ReplicaRole
    leader: int
    high_watermark: int
    log: Log
    leader_epoch: int = 1


def _log(end: int, **starts: int) -> Log:
    return Log(end, Epochs({int(name[1:]): start for name, start in (starts or {"e0": 0}).items()}))


def _ids(*ids: int) -> tuple[BrokerId, ...]:
    return tuple(map(BrokerId, ids))


SOUND = PartitionRegistration(
    replicas=_ids(1, 2, 3),
    isr=_ids(1),
    elr=_ids(2),
    leader=BrokerId(1),
    leader_epoch=LeaderEpoch(4),
    partition_epoch=PartitionEpoch(9),
)


@pytest.mark.parametrize(
    ("replica", "fetched"),
    [
        (Replica(ReplicaRole.LEADER, 1, 5, _log(9)), False),
        (Replica(ReplicaRole.FOLLOWER, 2, 5, _log(9)), True),
        (Replica(ReplicaRole.FOLLOWER, -1, 5, _log(9)), False),
        (Replica(ReplicaRole.IDLE, -1, 0, _log(9)), False),
    ],
)
def test_t1_passes_on_sound_replicas(replica: Replica, fetched: bool) -> None:
    assert invariants.t1_state_is_in_its_domain(1, replica, fetched, shutting_down=False) is None


@pytest.mark.parametrize(
    ("replica", "fetched"),
    [
        (Replica(ReplicaRole.LEADER, 1, 10, _log(9)), False),
        (Replica(ReplicaRole.LEADER, 2, 5, _log(9)), False),
        (Replica(ReplicaRole.LEADER, 1, 5, _log(9)), True),
        (Replica(ReplicaRole.FOLLOWER, 1, 5, _log(9)), True),
        (Replica(ReplicaRole.FOLLOWER, 2, 5, _log(9)), False),
        (Replica(ReplicaRole.IDLE, -1, 5, _log(9)), True),
    ],
)
def test_t1_fires_on_a_state_outside_its_domain_or_a_fetcher_that_disagrees(replica: Replica, fetched: bool) -> None:
    assert invariants.t1_state_is_in_its_domain(1, replica, fetched, shutting_down=False) is not None


def test_t1_fires_on_a_leader_that_knows_it_is_fenced() -> None:
    leader = Replica(ReplicaRole.LEADER, 1, 5, _log(9))
    assert invariants.t1_fenced_broker_does_not_lead(1, True, leader) is not None
    assert invariants.t1_fenced_broker_does_not_lead(1, False, leader) is None


def test_t2_passes_on_sound_seats() -> None:
    assert invariants.t2_isr_and_elr_are_consistent(SOUND, 2, fenced=[2]) is None


@pytest.mark.parametrize(
    "broken",
    [
        SOUND._replace(elr=_ids(1, 2)),
        SOUND._replace(elr=_ids(4)),
        SOUND._replace(isr=_ids(1, 1)),
        SOUND._replace(isr=_ids(1, 3)),
        SOUND._replace(isr=_ids(3), elr=_ids(2)),
        SOUND._replace(isr=_ids(5), elr=()),
    ],
)
def test_t2_fires_on_broken_seats(broken: PartitionRegistration) -> None:
    assert invariants.t2_isr_and_elr_are_consistent(broken, 2, fenced=[]) is not None


def test_t2_fires_on_a_fenced_member() -> None:
    assert "fenced" in (invariants.t2_isr_and_elr_are_consistent(SOUND, 2, fenced=[1]) or "")


@pytest.mark.parametrize("isr", [CommittedPartitionState(_ids(1, 2)), PendingExpandIsr(_ids(1, 2), BrokerId(3))])
def test_t3_passes_on_a_leader_that_counts_everybody(isr: Isr) -> None:
    state = SOUND._replace(isr=_ids(2, 1), elr=())
    assert invariants.t3_leader_counts_isr_and_elr(1, isr, state, 2) is None


@pytest.mark.parametrize(
    "isr",
    [CommittedPartitionState(_ids(1)), CommittedPartitionState(_ids(1, 2, 3)), PendingShrinkIsr(_ids(1, 3), _ids(3))],
)
def test_t3_fires_on_a_leader_with_an_isr_of_its_own(isr: Isr) -> None:
    state = SOUND._replace(isr=_ids(1, 2), elr=())
    assert invariants.t3_leader_counts_isr_and_elr(1, isr, state, 2) is not None


def test_t3_lets_a_leader_forget_the_elr_while_nothing_commits() -> None:
    pending = PendingExpandIsr(_ids(1), BrokerId(3))
    assert invariants.t3_leader_counts_isr_and_elr(1, pending, SOUND, 2) is None
    assert invariants.t3_leader_counts_isr_and_elr(1, pending, SOUND, 1) is not None


def test_t4_fires_on_a_member_that_lacks_a_committed_record() -> None:
    true = Watermark(10, 1)
    assert invariants.t4_member_holds_what_is_committed(2, SOUND, true, _log(10, e1=0)) is None
    assert "below the high watermark" in (
        invariants.t4_member_holds_what_is_committed(2, SOUND, true, _log(9, e1=0)) or ""
    )
    assert "of epoch 0" in (invariants.t4_member_holds_what_is_committed(2, SOUND, true, _log(12, e0=0, e1=10)) or "")


def test_t4_asks_nothing_of_others() -> None:
    assert invariants.t4_member_holds_what_is_committed(3, SOUND, Watermark(10, 1), _log(0)) is None


def test_t5_fires_on_a_leader_that_ends_below_what_was_acknowledged() -> None:
    assert invariants.t5_leader_holds_what_was_acknowledged(1, 10, _log(10)) is None
    assert invariants.t5_leader_holds_what_was_acknowledged(1, 10, _log(9)) is not None


def test_t6_fires_on_another_batch_at_the_same_place() -> None:
    assert invariants.t6_batch_is_the_same(1, (7, 2, 99), (7, 2, 99)) is None
    assert "of epoch 3" in (invariants.t6_batch_is_the_same(1, (7, 2, 99), (7, 3, 99)) or "")
    assert "00000064" in (invariants.t6_batch_is_the_same(1, (7, 2, 99), (7, 2, 100)) or "")


def test_t7_fires_on_metadata_that_nobody_committed() -> None:
    assert invariants.t7_metadata_is_a_prefix("broker-1", 9, 10) is None
    assert invariants.t7_metadata_is_a_prefix("broker-1", 10, 10) is not None


def test_t8a_fires_on_a_replica_that_cuts_what_it_held() -> None:
    assert invariants.t8a_committed_records_stay(2, 10, 10) is None
    assert invariants.t8a_committed_records_stay(2, 10, 9) is not None


def test_t8b_fires_where_too_few_have_lost_data() -> None:
    assert invariants.t8b_enough_members_were_lost(3, [1, 2], needed=2, taken_out=False) is None
    assert invariants.t8b_enough_members_were_lost(3, [1], needed=2, taken_out=True) is None
    assert "after only [1] had lost data" in (invariants.t8b_enough_members_were_lost(3, [1], 2, False) or "")


def test_t10_fires_on_a_member_that_no_list_names_any_more() -> None:
    before = SOUND._replace(isr=(), elr=_ids(2), last_known_elr=_ids(1))
    assert invariants.t10_members_stay_listed(before, before._replace(elr=(), last_known_elr=_ids(1, 2)), 2) is None
    assert invariants.t10_members_stay_listed(before, before._replace(isr=_ids(2), elr=()), 2) is None
    assert invariants.t10_members_stay_listed(before, before._replace(last_known_elr=()), 2) is not None
    assert invariants.t10_members_stay_listed(before, before._replace(elr=()), 2) is not None


def test_t10_asks_nothing_once_the_isr_is_back_and_of_those_who_left_the_assignment() -> None:
    before = SOUND._replace(isr=(), elr=_ids(2), last_known_elr=_ids(1))
    back = before._replace(isr=_ids(2, 3), elr=(), last_known_elr=())
    assert invariants.t10_members_stay_listed(before, back, 2) is None
    moved = before._replace(replicas=_ids(2, 3), last_known_elr=())
    assert invariants.t10_members_stay_listed(before, moved, 2) is None


def test_t11_fires_on_an_unclean_return_into_a_seat() -> None:
    assert invariants.t11_returned_uncleanly(2, SOUND, not_caught_up=True) is not None
    assert invariants.t11_returned_uncleanly(1, SOUND, not_caught_up=True) is not None
    assert invariants.t11_returned_uncleanly(2, SOUND, not_caught_up=False) is None
    assert invariants.t11_returned_uncleanly(3, SOUND, not_caught_up=True) is None


def test_t12_fires_on_a_leader_that_speaks_or_asks_too_early() -> None:
    assert invariants.t12_latest_was_known(10, 3, 10) is None
    assert invariants.t12_latest_was_known(9, 3, 10) is not None
    assert invariants.t12_joiner_has_reached_the_epoch(1, 2, 10, 10) is None
    assert invariants.t12_joiner_has_reached_the_epoch(1, 2, 9, 10) is not None


def test_r2_fires_on_a_second_result_of_an_epoch() -> None:
    elected = SOUND._replace(leader=BrokerId(2), leader_epoch=LeaderEpoch(5))
    assert invariants.r2_one_result_per_epoch(SOUND, elected) is None
    assert invariants.r2_one_result_per_epoch(SOUND, SOUND) is None
    assert invariants.r2_one_result_per_epoch(SOUND, SOUND._replace(leader=BrokerId(2))) is not None
    assert invariants.r2_one_result_per_epoch(SOUND, elected._replace(leader_epoch=LeaderEpoch(6))) is not None
    assert invariants.r2_leads_as_elected(2, 5, 2) is None
    assert invariants.r2_leads_as_elected(2, 5, 1) is not None
    assert invariants.r2_leads_as_elected(2, 5, None) is not None


def test_r1_fires_on_committed_metadata_that_are_gone_or_changed() -> None:
    before = [(0, 11), (3, 22)]
    assert invariants.r1_committed_metadata_stays(before, {0: 11, 3: 22, 5: 33}, 0, 6) is None
    assert "are gone" in (invariants.r1_committed_metadata_stays(before, {0: 11}, 0, 3) or "")
    assert "have changed" in (invariants.r1_committed_metadata_stays(before, {0: 11, 3: 23}, 0, 5) or "")
    assert invariants.r1_committed_metadata_stays(before, {3: 22}, 3, 5) is None, "a snapshot covers what is below"


def test_compaction_may_reach_the_high_watermark_and_not_pass_it() -> None:
    assert invariants.t13_compaction_is_below_the_high_watermark(1, 10, 10) is None
    sentence = invariants.t13_compaction_is_below_the_high_watermark(1, 11, 10)
    assert sentence == "broker 1 compacted up to 11, above its high watermark 10"


def test_a_disk_holds_the_replicas_of_its_broker_and_no_others() -> None:
    mine, deleted, script_recreates_topic = ("t", 0, b"a"), ("r", 0, b"a"), ("r", 0, b"b")
    assert invariants.t14_disks_hold_what_is_assigned(1, [mine], [mine]) is None
    stays = invariants.t14_disks_hold_what_is_assigned(1, [mine, deleted], [mine])
    assert stays == "broker 1 still has logs of partitions that are not its own, or no more: [('r', 0)]"
    assert invariants.t14_disks_hold_what_is_assigned(1, [mine, deleted], [mine, script_recreates_topic]) is not None
    assert invariants.t14_disks_hold_what_is_assigned(1, [], [mine]) == "broker 1 has no log for [('t', 0)]"


def test_t15_fires_on_a_winner_with_less_than_a_disk_that_was_to_be_waited_for() -> None:
    assert invariants.t15_winner_holds_the_most(1, 10, {2: 10, 3: 4}) is None
    sentence = invariants.t15_winner_holds_the_most(1, 10, {2: 9, 3: 11}) or ""
    assert "the disk of broker 3, which was still to be waited for, has it up to 11" in sentence


def test_t16_fires_on_a_log_that_nobody_took_away_and_on_older_metadata() -> None:
    assert invariants.t16_log_was_given_up(1, "t", 0, given_up=True) is None
    assert "deleted its log of t-0" in (invariants.t16_log_was_given_up(1, "t", 0, given_up=False) or "")
    assert invariants.t16_metadata_are_not_older(1, "truncated t-0", 50, 50) is None
    assert "up to 49" in (invariants.t16_metadata_are_not_older(1, "truncated t-0", 49, 50) or "")


def test_t17_fires_on_a_success_above_the_high_watermark_or_of_records_that_are_not_there() -> None:
    assert invariants.t17_success_is_committed(1, 10, 10) is None
    assert "its high watermark is 9" in (invariants.t17_success_is_committed(1, 10, 9) or "")
    assert "not in its log" in (invariants.t17_success_is_committed(1, None, 9) or "")


def test_t18_fires_on_a_file_that_is_gone_new_or_another_one() -> None:
    before = {"/data/log/a": 1, "/data/log/b": 2}
    assert invariants.t18_start_changed_nothing(1, 1, before, dict(before)) is None
    for now in ({"/data/log/a": 1}, {**before, "/data/log/c": 3}, {**before, "/data/log/b": 9}):
        assert "have changed /data/log/" in (invariants.t18_start_changed_nothing(1, 1, before, now) or "")


def test_t19_fires_on_replicas_that_leave_a_rack_unused() -> None:
    racks = {1: "a", 2: "b", 3: "a", 4: "b", 5: "c"}
    for replicas in ((1, 2, 5), (3, 4), (5, 1), (1, 2, 5, 3), (1, 2, 3, 4, 5)):
        assert invariants.t19_replicas_use_the_racks(replicas, racks) is None
    assert "2 are in rack a, fewer in ['b', 'c']" in (invariants.t19_replicas_use_the_racks((1, 3), racks) or "")
    assert invariants.t19_replicas_use_the_racks((1, 3, 2), racks) is not None, "rack c is free"
    assert invariants.t19_replicas_use_the_racks((1, 3, 2, 5), {**racks, 6: "a"}) is None
    assert invariants.t19_replicas_use_the_racks((1, 3), {1: None, 3: None}) is None


def test_t20_fires_on_a_level_that_a_registered_node_does_not_support() -> None:
    levels = {"metadata.version": 27, "heirlog.recovery.version": 1}
    newest = {"metadata.version": (23, 29), "heirlog.recovery.version": (0, 1)}
    assert invariants.t20_levels_are_supported(levels, {"broker 1": newest, "controller 100": newest}) is None
    older = {"metadata.version": (23, 26)}
    sentence = invariants.t20_levels_are_supported(levels, {"broker 1": newest, "broker 2": older})
    assert sentence == "metadata.version is at level 27; broker 2 supports 23 to 26"
    without_recovery = {"metadata.version": (23, 29)}
    assert invariants.t20_levels_are_supported(levels, {"broker 1": without_recovery}) is None, "it may join"
    sentence = invariants.t20_levels_are_supported(levels, {"controller 100": without_recovery})
    assert sentence == "heirlog.recovery.version is at level 1; controller 100 supports 0 to 0"
