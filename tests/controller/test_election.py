"""The election order, and the rule of who stays eligible."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from heirlog.controller.election import NOBODY, Candidates, Elected, Election, elect
from heirlog.controller.eligible import eligible_after, last_known_after
from heirlog.metadata.basis import Basis
from heirlog.metadata.state import PartitionState
from heirlog.protocol.types import BrokerId, LeaderEpoch, PartitionEpoch


def candidates(alive: set[int], **more: Any) -> Candidates:
    values: dict[str, Any] = {"replicas": (1, 2, 3), "leader": -1, "isr": (), "elr": (), "last_known": ()}
    return Candidates(**(values | more), acceptable=lambda broker: broker in alive)


def state(**more: Any) -> PartitionState:
    values: dict[str, Any] = {"replicas": (1, 2, 3), "isr": (1,), "leader": BrokerId(1)}
    return PartitionState(leader_epoch=LeaderEpoch(0), partition_epoch=PartitionEpoch(0), **(values | more))


def test_the_current_leader_goes_on_if_it_can() -> None:
    assert elect(Election.ONLINE, candidates({1, 2}, leader=2, isr=(1, 2))) == Elected(BrokerId(2), None)


def test_a_preferred_election_moves_to_the_first_replica() -> None:
    chosen = elect(Election.PREFERRED, candidates({1, 2}, leader=2, isr=(1, 2)))
    assert chosen == Elected(BrokerId(1), Basis.PREFERRED)


def test_an_elr_member_may_lead_only_while_the_isr_is_empty() -> None:
    assert elect(Election.ONLINE, candidates({2}, isr=(1,), elr=(2,))) == NOBODY
    assert elect(Election.ONLINE, candidates({2}, elr=(2,))) == Elected(BrokerId(2), Basis.ELR)


def test_a_fenced_elr_member_keeps_the_last_known_leader_waiting() -> None:
    assert elect(Election.ONLINE, candidates({1}, elr=(2,), last_known=(1,))) == NOBODY


def test_the_last_known_leader_comes_before_other_live_replicas() -> None:
    chosen = elect(Election.UNCLEAN, candidates({1, 3}, last_known=(3,)))
    assert chosen == Elected(BrokerId(3), Basis.LAST_KNOWN)


def test_two_last_known_names_elect_nobody_by_themselves() -> None:
    assert elect(Election.ONLINE, candidates({1, 3}, last_known=(1, 3))) == NOBODY


def test_an_unclean_election_prefers_a_clean_ground() -> None:
    assert elect(Election.UNCLEAN, candidates({1, 3}, elr=(3,))) == Elected(BrokerId(3), Basis.ELR)
    assert elect(Election.UNCLEAN, candidates({2, 3})) == Elected(BrokerId(2), Basis.UNCLEAN)


def test_only_the_last_four_bases_are_lossy() -> None:
    assert [basis.value for basis in Basis if basis.is_lossy] == ["last-known", "recovered", "unclean", "designated"]


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
