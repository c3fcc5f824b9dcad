"""Whether a leader may lack records, and how long that is known. Ids in doubt: transactions/test_entry.py."""

from __future__ import annotations

from typing import Any

import pytest

from heirlog.metadata.basis import Basis, ElectionBasis, ReplicaAnswer
from heirlog.metadata.state import RECOVERING
from heirlog.protocol.types import BrokerEpoch, BrokerId, LeaderEpoch

from .fakes import FakeEnv, ids, partition_on, state


def test_a_leader_whose_log_lacks_committed_records_is_doubtful_from_then_on() -> None:
    whole, lacking, copying = (partition_on(FakeEnv(), end_offset=5, high_watermark=end) for end in (5, 9, 9))
    for partition in (whole, lacking):
        partition.become_leader(state([1, 2], leader_epoch=6), 1, 0)
        partition.become_leader(state([1, 2], leader_epoch=7, partition_epoch=2), 1, 0)
    assert (whole.doubts.epoch, lacking.doubts.epoch) == (-1, 6)
    copying.become_follower(state([1, 2], leader=2, leader_epoch=6), 1)
    copying.become_leader(state([1, 2], leader_epoch=7, partition_epoch=2), 1, 0)
    assert copying.doubts.epoch == -1, "it has what the leader of epoch 6 had"


def test_a_log_may_lack_records_until_it_leads_or_is_in_an_isr() -> None:
    leading, following = (partition_on(FakeEnv(), end_offset=5) for _ in range(2))
    for partition in (leading, following):
        partition.log.may_lack_records = True
        partition.become_follower(state([1, 2], leader=-1, leader_epoch=6), 1)
        assert partition.log.may_lack_records, "without a leader nothing is decided"
    leading.become_leader(state([1, 2], leader_epoch=7, partition_epoch=2), 1, 0)
    following.become_follower(state([1, 2], [2], leader=2, leader_epoch=7, partition_epoch=2), 1)
    assert following.log.may_lack_records, "the leader may have failed already"
    following.become_follower(state([1, 2], leader=2, leader_epoch=7, partition_epoch=3), 1)
    assert (leading.log.may_lack_records, following.log.may_lack_records) == (False, False)
    assert leading.doubts.epoch == 7


def test_a_follower_that_gives_up_committed_records_knows_what_its_leader_lacked() -> None:
    """That leader may fail before it has recorded it."""
    behind, ahead = (partition_on(FakeEnv(), end_offset=9, high_watermark=end) for end in (9, 5))
    for partition in (behind, ahead):
        partition.become_follower(state([1, 2], leader=2, leader_epoch=6), 1)
        partition.truncate_to(5)
        partition.become_leader(state([1, 2], leader_epoch=7, partition_epoch=2), 1, 0)
    assert (behind.doubts.epoch, behind.doubts.is_recorded) == (6, False)
    assert (ahead.doubts.epoch, ahead.doubts.is_recorded) == (-1, True), "what was not committed is no loss"


@pytest.mark.parametrize(
    ("basis", "written_in", "doubtful_epoch"),
    [(Basis.LAST_KNOWN, 5, 6), (Basis.LAST_KNOWN, 6, -1), (Basis.ISR, 5, -1)],
)
def test_a_replica_that_was_not_asked_either_may_lack_what_the_last_known_leader_lacks(
    basis: Basis, written_in: int, doubtful_epoch: int
) -> None:
    """All machines have stopped, nobody was asked, and the leader fails after the other one has joined its ISR, and
    before its doubts are recorded.
    """
    election = None if basis is Basis.ISR else ElectionBasis(basis, BrokerId(2), LeaderEpoch(6))
    partition = partition_on(FakeEnv(), end_offset=5)
    partition.log.epochs.assign(written_in, 4)
    partition.log.may_lack_records = True
    for isr in ([2], [1, 2]):
        partition.become_follower(state([1, 2], isr, leader=2, leader_epoch=6, basis=election), 1)
    assert not partition.log.may_lack_records
    partition.become_leader(state([1, 2], leader_epoch=7, partition_epoch=2, basis=election), 1, 0)
    assert partition.doubts.epoch == doubtful_epoch
    assert partition.doubts.is_recorded is (doubtful_epoch == -1)


ANSWER = ReplicaAnswer(BrokerId(1), BrokerEpoch(101), 5, 5, may_lack_records=True)
RECORDED = ElectionBasis(Basis.RECOVERED, BrokerId(1), LeaderEpoch(6), replicas=(ANSWER,))


@pytest.mark.parametrize("basis", [None, RECORDED])
def test_where_no_record_says_it_a_log_of_transactions_may_lack_records_until_the_coordinator_has_written_so(
    basis: ElectionBasis | None,
) -> None:
    """A start in between would know nothing of it."""
    partition = partition_on(FakeEnv(), end_offset=5)
    partition.topic = "__transaction_state"
    partition.log.may_lack_records = True
    partition.become_leader(state([1, 2], leader_epoch=6, basis=basis), 1, 0)
    assert partition.log.may_lack_records is (basis is None)
    partition.become_leader(state([1, 2], leader_epoch=7, partition_epoch=2, basis=basis), 1, 0)
    assert partition.log.may_lack_records is (basis is None)
    assert partition.doubts.epoch == (7 if basis is None else 6)
    partition.doubts.are_recorded()
    partition.become_leader(state([1, 2], leader_epoch=8, partition_epoch=3, basis=basis), 1, 0)
    assert not partition.log.may_lack_records and partition.doubts.epoch == (7 if basis is None else 6)


LOSSY = ElectionBasis(Basis.LAST_KNOWN, BrokerId(1), LeaderEpoch(7))


@pytest.mark.parametrize(
    ("seen", "elected", "doubts"),
    [
        ({"isr": [2]}, {}, False),
        ({"isr": [2]}, {"isr": [1]}, False),
        ({"isr": []}, {}, False),
        # by these it may lead without a leader that has admitted it
        ({"isr": [1, 2], "leader": -1}, {}, True),
        ({"isr": [], "leader": -1, "elr": ids([1])}, {"isr": [1]}, True),
        ({"isr": [2]}, {"isr": [1], "leader_recovery_state": RECOVERING}, True),
        ({"isr": [2]}, {"isr": [1], "basis": LOSSY}, True),
        (None, {}, True),
    ],
)
def test_a_replica_that_joins_the_isr_and_leads_in_one_image_has_everything(
    seen: dict[str, Any] | None, elected: dict[str, Any], doubts: bool
) -> None:
    partition = partition_on(FakeEnv(), end_offset=5)
    partition.log.may_lack_records = True
    if seen is not None:
        partition.become_follower(state([1, 2], **({"leader": 2, "leader_epoch": 6} | seen)), 1)
    partition.become_leader(state([1, 2], **({"leader_epoch": 7, "partition_epoch": 3} | elected)), 1, 0)
    assert not partition.log.may_lack_records
    assert partition.doubts.is_recorded is not doubts
    assert partition.doubts.epoch == (7 if doubts else -1)


def test_a_replica_that_led_before_it_was_left_out_joins_again() -> None:
    partition = partition_on(FakeEnv(), end_offset=5)
    partition.become_follower(state([1, 2], [2], leader=2, leader_epoch=6), 1)
    partition.become_leader(state([1, 2], leader_epoch=7, partition_epoch=2), 1, 0)
    partition.log.may_lack_records = True
    partition.become_leader(state([1, 2], leader_epoch=8, partition_epoch=3), 1, 0)
    assert partition.doubts.epoch == 8, "it was not left out when it last followed an image"
