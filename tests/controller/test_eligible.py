"""Who stays eligible when the ISR changes, and what LastKnownELR says in its two forms."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from heirlog.controller.eligible import all_lost_after, eligible_after, last_known_after
from heirlog.metadata.state import PartitionRegistration
from heirlog.protocol.types import BrokerId, LeaderEpoch, PartitionEpoch


def state(**more: Any) -> PartitionRegistration:
    values: dict[str, Any] = {"replicas": (1, 2, 3), "isr": (1,), "leader": BrokerId(1)}
    return PartitionRegistration(leader_epoch=LeaderEpoch(0), partition_epoch=PartitionEpoch(0), **(values | more))


IDS = st.sets(st.integers(1, 4)).map(lambda ids: tuple(sorted(BrokerId(broker) for broker in ids)))


@settings(deadline=None)
@given(IDS, IDS, IDS, st.integers(1, 4), IDS)
def test_eligible_members_left_held_everything_and_lost_nothing(
    isr: Any, elr: Any, after: Any, min_isr: int, lost: Any
) -> None:
    before = state(replicas=(1, 2, 3, 4), isr=isr, elr=elr)
    eligible = set(eligible_after(before, after, (1, 2, 3), min_isr, lost))
    if len(after) >= min_isr:
        assert not eligible
    else:
        assert eligible == ((set(isr) | set(elr)) & {1, 2, 3}) - set(after) - set(lost)


def test_the_last_known_leader_is_the_one_that_is_taken_away() -> None:
    assert last_known_after(state(), BrokerId(-1), (1, 2, 3)) == (1,)
    assert last_known_after(state(last_known_elr=(2,)), BrokerId(-1), (1, 2, 3)) == (2,)
    assert last_known_after(state(last_known_elr=(2,)), BrokerId(3), (1, 2, 3)) == ()
    assert last_known_after(state(last_known_elr=(2,)), None, (1, 3)) == ()


def test_a_leader_lost_by_the_same_record_comes_before_the_other_members() -> None:
    before = state(isr=(1, 2, 3), leader=BrokerId(2))
    assert all_lost_after(before, (), (), (1, 2, 3), 2, lost=(1, 2, 3)) == (2, 1, 3)


def test_losses_are_listed_once_and_in_the_order_in_which_they_came() -> None:
    before = state(isr=(1, 2), last_known_elr=(3, 2))
    assert all_lost_after(before, (), (), (1, 2, 3), 2, lost=(1, 2)) == (3, 2, 1)


def test_a_replica_outside_isr_and_elr_had_nothing_to_lose() -> None:
    assert all_lost_after(state(isr=(1,), elr=(2,)), (), (1, 2), (1, 2, 3), 2, lost=(3,)) == ()


def test_the_full_list_names_nobody_who_is_in_the_isr_or_the_elr_or_left_the_assignment() -> None:
    before = state(isr=(), leader=BrokerId(-1), last_known_elr=(1, 2, 3, 4))
    assert all_lost_after(before, (1,), (2,), (1, 2, 3), 2) == (3,)


def test_the_full_list_is_emptied_when_the_isr_reaches_min_isr() -> None:
    assert all_lost_after(state(last_known_elr=(3,)), (1, 2), (), (1, 2, 3), 2) == ()
