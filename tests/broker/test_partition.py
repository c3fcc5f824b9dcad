"""Roles, epochs, ISR changes and the follower's side of a partition: what the catalogue does not already play."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from heirlog.broker.isr import CommittedPartitionState, PendingExpandIsr, PendingShrinkIsr
from heirlog.broker.partition import Partition, ReplicaRole
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.types import BrokerId

from .fakes import FakeEnv, batch, ids, partition_on, registered, state


def leader_of(replicas: list[int], isr: list[int] | None = None, min_isr: int = 1, end_offset: int = 10) -> Partition:
    partition = partition_on(FakeEnv(), end_offset=end_offset, high_watermark=0)
    partition.become_leader(state(replicas, isr), min_isr, 0)
    partition.leader_epoch_start_offset = 0
    return partition


def fetched(partition: Partition, broker: int, offset: int, now_ms: int = 0) -> object:
    return partition.follower_fetched(broker, offset, 0, 100 + broker, now_ms)


def test_the_checkpointed_watermark_is_cut_to_the_log() -> None:
    assert partition_on(FakeEnv(), end_offset=5, high_watermark=9).high_watermark == 5


def test_a_single_replica_commits_what_it_has() -> None:
    assert leader_of([1]).high_watermark == 10


def test_a_new_leader_epoch_forgets_what_followers_fetched() -> None:
    partition = leader_of([1, 2])
    fetched(partition, 2, 7)
    partition.become_leader(state([1, 2], leader_epoch=6, partition_epoch=2), 1, 0)
    assert partition.followers[BrokerId(2)].log_end_offset == -1
    assert partition.leader_epoch_start_offset == 10


def test_newer_metadata_of_the_same_leader_epoch_keeps_what_followers_fetched() -> None:
    partition = leader_of([1, 2])
    fetched(partition, 2, 7)
    partition.become_leader(state([1, 2, 3], [1, 2], partition_epoch=2), 1, 0)
    assert partition.followers[BrokerId(2)].log_end_offset == 7
    assert partition.followers[BrokerId(3)].log_end_offset == -1


def test_below_min_isr_a_follower_is_admitted_only_if_it_is_caught_up() -> None:
    partition = leader_of([1, 2], [1], min_isr=2)
    assert fetched(partition, 2, 5) is None
    assert fetched(partition, 2, 10) is not None
    assert partition.isr == PendingExpandIsr(ids([1]), BrokerId(2))


def test_with_enough_members_reaching_the_watermark_is_enough() -> None:
    partition = leader_of([1, 2, 3], [1, 2], min_isr=2)
    fetched(partition, 2, 5)
    assert partition.high_watermark == 5
    assert fetched(partition, 3, 5) is not None


@pytest.mark.parametrize(
    "known",
    [
        registered(2, fenced=True),
        registered(2, in_controlled_shutdown=True),
        registered(2, epoch=103),
    ],
    ids=["fenced", "shutting down", "another incarnation"],
)
def test_a_follower_whose_broker_is_not_fit_is_not_admitted(known: object) -> None:
    partition = leader_of([1, 2], [1])
    partition._registered_brokers.brokers = {**partition._registered_brokers.brokers, BrokerId(2): known}  # type: ignore[dict-item]  # states
    assert fetched(partition, 2, 10) is None


def test_a_follower_with_an_older_broker_epoch_is_refused() -> None:
    partition = leader_of([1, 2])
    with pytest.raises(KafkaError) as refused:
        partition.check_follower(2, 101, 5)
    assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_shrunk_isr_moves_the_watermark_only_once_the_image_has_the_change() -> None:
    partition = leader_of([1, 2])
    fetched(partition, 2, 3)
    proposal = partition.check_lag(30_001)
    assert proposal is not None and partition.isr == PendingShrinkIsr(ids([1, 2]), ids([2]))
    partition.proposal_committed(
        proposal, isr=ids([1]), leader_epoch=5, partition_epoch=2, image_has_it=False, now_ms=30_001
    )
    assert partition.isr == CommittedPartitionState(ids([1]))
    assert partition.high_watermark == 3
    partition.become_leader(state([1, 2], [1], partition_epoch=2), 1, 30_001)
    assert partition.high_watermark == 10


def test_a_min_isr_raised_behind_a_shrink_keeps_the_watermark_from_passing_the_lost_member() -> None:
    """The race of docs/internals/design.md: the answer (ISR 1) arrives before the image that says min ISR 2."""
    partition = leader_of([1, 2])
    fetched(partition, 2, 3)
    proposal = partition.check_lag(30_001)
    assert proposal is not None
    partition.proposal_committed(
        proposal, isr=ids([1]), leader_epoch=5, partition_epoch=2, image_has_it=False, now_ms=30_001
    )
    partition.append(batch(), 1, 1_700_000_000_000, 30_001)
    partition.become_leader(state([1, 2], [1], partition_epoch=2), 2, 30_002)
    assert partition.high_watermark == 3


def test_an_answer_that_the_image_lacks_counts_as_well_as_the_image() -> None:
    """The image says 1,3; answers add 2 and then leave 1 alone: 2 is in the ELR, and the watermark must not pass it."""
    partition = leader_of([1, 2, 3], [1, 3], min_isr=2)
    fetched(partition, 3, 3)
    proposal = fetched(partition, 2, 3)
    assert proposal is not None
    for isr, epoch in (([1, 3, 2], 2), ([1], 3)):
        partition.proposal_committed(
            proposal, isr=ids(isr), leader_epoch=5, partition_epoch=epoch, image_has_it=False, now_ms=30_001
        )
        watermark = partition.high_watermark
        proposal = partition.check_lag(30_001)
    fetched(partition, 3, 10, now_ms=90_000)
    assert partition.high_watermark == watermark == 3


def test_a_lower_min_isr_lets_the_watermark_move() -> None:
    partition = leader_of([1, 2], [1], min_isr=2)
    assert partition.high_watermark == 0
    partition.min_isr_changed(1, 60_000)
    assert partition.high_watermark == 10


def test_an_answer_of_an_older_leader_epoch_is_dropped() -> None:
    partition = leader_of([1, 2], [1])
    proposal = fetched(partition, 2, 10)
    partition.become_leader(state([1, 2], [1], leader_epoch=6, partition_epoch=2), 1, 0)
    partition.proposal_committed(
        proposal,  # type: ignore[arg-type]  # an IsrProposal by now
        isr=ids([1, 2]),
        leader_epoch=5,
        partition_epoch=3,
        image_has_it=True,
        now_ms=0,
    )
    assert partition.isr == CommittedPartitionState(ids([1]))


def test_an_ineligible_replica_is_not_proposed_again_by_itself() -> None:
    partition = leader_of([1, 2], [1])
    proposal = fetched(partition, 2, 10)
    assert partition.proposal_failed(proposal, ErrorCode.INELIGIBLE_REPLICA) is None  # type: ignore[arg-type]  # as above
    assert partition.isr == CommittedPartitionState(ids([1]))


def test_a_new_leader_does_not_know_its_end_before_its_own_epoch_is_reached() -> None:
    partition = partition_on(FakeEnv(), end_offset=10, high_watermark=4)
    partition.become_leader(state([1, 2]), 1, 0)
    assert not partition.knows_its_end
    fetched(partition, 2, 10)
    assert partition.knows_its_end


def test_a_followers_watermark_does_not_follow_a_leader_that_knows_less() -> None:
    partition = partition_on(FakeEnv(), end_offset=10, high_watermark=8)
    partition.become_follower(state([1, 2], leader=2), 1)
    partition.follow(5, 0)
    assert partition.high_watermark == 8


def test_truncation_takes_the_watermark_along() -> None:
    partition = partition_on(FakeEnv(), end_offset=10, high_watermark=8)
    partition.become_follower(state([1, 2], leader=2), 1)
    assert partition.truncate_for(0, 6, 10)
    assert (partition.log.log_end_offset, partition.high_watermark) == (6, 6)


def test_batches_newer_than_the_fetch_are_not_appended() -> None:
    partition = partition_on(FakeEnv(), end_offset=2)
    partition.become_follower(state([1, 2], leader=2), 1)
    partition.append_from_leader(batch(1, 2, 5) + batch(1, 3, 6), 5)
    assert partition.log.log_end_offset == 3


def test_only_a_newer_leader_epoch_restarts_a_follower() -> None:
    partition = partition_on(FakeEnv())
    assert partition.become_follower(state([1, 2], leader=2), 1)
    assert not partition.become_follower(state([1, 2], [2], leader=2, partition_epoch=2), 1)
    assert partition.become_follower(state([1, 2], [2], leader=2, leader_epoch=6, partition_epoch=3), 1)
    assert partition.role is ReplicaRole.FOLLOWER


def test_a_change_of_the_role_or_of_an_epoch_changes_the_isr_too() -> None:
    """The simulator's checker looks only at the ISR (`heirlog.sim.last_seen`)."""
    partition = partition_on(FakeEnv(), end_offset=10, high_watermark=0)

    def shrink() -> None:
        proposal = partition.check_lag(30_001)
        assert proposal is not None
        partition.proposal_committed(
            proposal, isr=ids([1]), leader_epoch=5, partition_epoch=3, image_has_it=False, now_ms=30_001
        )

    steps: list[Callable[[], object]] = [
        lambda: partition.become_leader(state([1, 2]), 1, 0),
        lambda: partition.become_leader(state([1, 2], partition_epoch=2), 1, 0),
        shrink,
        lambda: partition.become_leader(state([1, 2], leader_epoch=6, partition_epoch=4), 1, 0),
        lambda: partition.become_follower(state([1, 2], leader=2, leader_epoch=7, partition_epoch=5), 1),
        lambda: partition.become_follower(state([1, 2], leader=2, leader_epoch=7, partition_epoch=6), 1),
        lambda: partition.become_follower(state([1, 2], leader=2, leader_epoch=8, partition_epoch=7), 1),
        partition.become_idle,
        lambda: partition.become_follower(state([1, 2], leader=2, leader_epoch=8, partition_epoch=7), 1),
        lambda: partition.become_leader(state([1, 2], leader_epoch=9, partition_epoch=8), 1, 0),
        partition.become_idle,
        lambda: partition.become_leader(state([1, 2], leader_epoch=9, partition_epoch=8), 1, 0),
    ]
    for step in steps:
        before = partition.isr, partition.role, partition.leader_epoch, partition.partition_epoch
        step()
        assert (partition.role, partition.leader_epoch, partition.partition_epoch) != before[1:]
        assert partition.isr is not before[0]
