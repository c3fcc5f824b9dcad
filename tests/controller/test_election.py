"""The election order."""

from __future__ import annotations

from typing import Any

from heirlog.controller.election import NO_LEADER_ELECTED, Candidates, Election, ElectionResult, elect
from heirlog.metadata.basis import Basis
from heirlog.protocol.types import BrokerId


def candidates(alive: set[int], **more: Any) -> Candidates:
    values: dict[str, Any] = {"replicas": (1, 2, 3), "leader": -1, "isr": (), "elr": (), "last_known": ()}
    return Candidates(**(values | more), acceptable=lambda broker: broker in alive)


def test_the_current_leader_goes_on_if_it_can() -> None:
    assert elect(Election.ONLINE, candidates({1, 2}, leader=2, isr=(1, 2))) == ElectionResult(BrokerId(2), None)


def test_a_preferred_election_moves_to_the_first_replica() -> None:
    chosen = elect(Election.PREFERRED, candidates({1, 2}, leader=2, isr=(1, 2)))
    assert chosen == ElectionResult(BrokerId(1), Basis.PREFERRED)


def test_an_elr_member_may_lead_only_while_the_isr_is_empty() -> None:
    assert elect(Election.ONLINE, candidates({2}, isr=(1,), elr=(2,))) == NO_LEADER_ELECTED
    assert elect(Election.ONLINE, candidates({2}, elr=(2,))) == ElectionResult(BrokerId(2), Basis.ELR)


def test_a_fenced_elr_member_keeps_the_last_known_leader_waiting() -> None:
    assert elect(Election.ONLINE, candidates({1}, elr=(2,), last_known=(1,))) == NO_LEADER_ELECTED


def test_the_last_known_leader_comes_before_other_live_replicas() -> None:
    chosen = elect(Election.UNCLEAN, candidates({1, 3}, last_known=(3,)))
    assert chosen == ElectionResult(BrokerId(3), Basis.LAST_KNOWN)


def test_two_last_known_names_elect_nobody_by_themselves() -> None:
    assert elect(Election.ONLINE, candidates({1, 3}, last_known=(1, 3))) == NO_LEADER_ELECTED


def test_an_unclean_election_prefers_a_clean_ground() -> None:
    assert elect(Election.UNCLEAN, candidates({1, 3}, elr=(3,))) == ElectionResult(BrokerId(3), Basis.ELR)
    assert elect(Election.UNCLEAN, candidates({2, 3})) == ElectionResult(BrokerId(2), Basis.UNCLEAN)


def test_only_the_last_four_bases_are_lossy() -> None:
    assert [basis.value for basis in Basis if basis.is_lossy] == ["last-known", "recovered", "unclean", "designated"]
