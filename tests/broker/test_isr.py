"""The ISR as a leader holds it: who joins, who leaves, and what counts until the controller has answered."""

from __future__ import annotations

from typing import Any

import pytest

from heirlog.broker.followers import Follower, RegisteredBrokers
from heirlog.broker.isr import (
    CommittedPartitionState,
    PendingExpandIsr,
    PendingShrinkIsr,
    may_expand,
    out_of_sync,
    with_epochs,
)
from heirlog.protocol.types import BrokerEpoch, BrokerId

from .fakes import ids, registered

LAG_MAX_MS = 30_000


def registered_brokers(**of_broker_2: Any) -> RegisteredBrokers:
    known = RegisteredBrokers(BrokerId(1), {BrokerId(1): registered(1), BrokerId(2): registered(2, **of_broker_2)})
    known.broker_epoch = BrokerEpoch(101)
    return known


def fetched(offset: int, *, broker: int = 2, epoch: int = 102, leader_end: int = 10, at_ms: int = 0) -> Follower:
    follower = Follower(BrokerId(broker))
    follower.fetched(offset, 0, epoch, leader_end, at_ms)
    return follower


def expands(follower: Follower, isr: Any = None, **given: Any) -> bool:
    values = {
        "isr": CommittedPartitionState(ids([1])) if isr is None else isr,
        "min_isr": 1,
        "registered_brokers": registered_brokers(),
        "high_watermark": 8,
        "epoch_start_offset": 6,
        "leader_end_offset": 10,
        "lag_limit_ms": -LAG_MAX_MS,
    }
    return may_expand(follower, **(values | given))


def test_a_follower_joins_at_the_high_watermark_and_not_below_it() -> None:
    assert expands(fetched(8))
    assert not expands(fetched(7))


def test_a_follower_joins_only_after_the_start_of_the_leader_epoch() -> None:
    assert not expands(fetched(8), epoch_start_offset=9)
    assert expands(fetched(9), epoch_start_offset=9)


def test_below_min_isr_a_follower_must_be_caught_up_as_well() -> None:
    assert not expands(fetched(8), min_isr=2)
    assert expands(fetched(10), min_isr=2)


def test_a_member_does_not_join_again() -> None:
    assert not expands(fetched(10), CommittedPartitionState(ids([1, 2])))


def test_nothing_is_asked_for_while_a_change_is_in_flight() -> None:
    assert not expands(fetched(10), PendingExpandIsr(ids([1]), BrokerId(3)))
    assert not expands(fetched(10), PendingShrinkIsr(ids([1, 3]), ids([3])))


@pytest.mark.parametrize("known", [{"fenced": True}, {"in_controlled_shutdown": True}, {"epoch": 202}])
def test_a_broker_that_is_fenced_stopping_or_restarted_does_not_join(known: dict[str, Any]) -> None:
    assert not expands(fetched(10), registered_brokers=registered_brokers(**known))


def test_a_member_leaves_when_it_was_caught_up_too_long_ago() -> None:
    followers = {BrokerId(2): fetched(10), BrokerId(3): fetched(9, broker=3)}
    followers[BrokerId(3)].last_caught_up_ms = 0
    isr = CommittedPartitionState(ids([1, 2, 3]))
    assert out_of_sync(isr, followers, 10, 0) == ()
    assert out_of_sync(isr, followers, 10, 1) == (3,)


def test_a_member_at_the_log_end_stays_however_long_it_does_not_fetch() -> None:
    assert out_of_sync(CommittedPartitionState(ids([1, 2])), {BrokerId(2): fetched(10)}, 10, 10**9) == ()


def test_nobody_leaves_while_a_change_is_in_flight() -> None:
    isr = PendingExpandIsr(ids([1, 2]), BrokerId(3))
    assert out_of_sync(isr, {BrokerId(2): fetched(0)}, 10, 10**9) == ()


def test_the_maximal_isr_holds_everyone_whom_the_controller_may_have_confirmed() -> None:
    assert CommittedPartitionState(ids([1, 2])).maximal == (1, 2)
    expand = PendingExpandIsr(ids([1, 2]), BrokerId(3))
    assert (expand.committed, expand.maximal, expand.proposed) == ((1, 2), (1, 2, 3), (1, 2, 3))
    shrink = PendingShrinkIsr(ids([1, 2, 3]), ids([2]))
    assert (shrink.committed, shrink.maximal, shrink.proposed) == ((1, 2, 3), (1, 2, 3), (1, 3))


def test_a_proposal_names_the_broker_epochs_of_the_fetches_and_its_own() -> None:
    followers = {BrokerId(2): fetched(10, epoch=77), BrokerId(3): Follower(BrokerId(3))}
    assert with_epochs(ids([1, 2, 3]), followers, registered_brokers()) == ((1, 101), (2, 77), (3, -1))
