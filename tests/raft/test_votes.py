"""The arithmetic of majorities."""

from __future__ import annotations

import pytest

from heirlog.protocol.types import Uuid
from heirlog.raft.replica_key import ReplicaKey
from heirlog.raft.resignation import successor_delay_ms
from heirlog.raft.votes import Votes, majority


def keys(count: int) -> list[ReplicaKey]:
    return [ReplicaKey(number, Uuid(bytes([number]) * 16)) for number in range(1, count + 1)]


@pytest.mark.parametrize(("voters", "needed"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3)])
def test_a_majority_is_more_than_half(voters: int, needed: int) -> None:
    assert majority(voters) == needed


def test_the_only_voter_has_won_before_it_asks() -> None:
    assert Votes(keys(1), keys(1)[0]).won


@pytest.mark.parametrize("voters", [2, 3, 4, 5])
def test_votes_are_won_and_lost_at_the_first_answer_that_decides(voters: int) -> None:
    me, *others = keys(voters)
    granted, refused = Votes([me, *others], me), Votes([me, *others], me)
    for count, other in enumerate(others, 1):
        granted.record(other, True)
        refused.record(other, False)
        assert granted.won is (count + 1 >= majority(voters))
        assert refused.lost is (voters - count < majority(voters))
        assert not (granted.lost or refused.won)


def test_a_voter_that_contradicts_itself_is_an_error() -> None:
    me, other, _ = keys(3)
    votes = Votes(keys(3), me)
    votes.record(other, False)
    votes.record(other, False)
    with pytest.raises(ValueError, match="voter 2 has changed its vote"):
        votes.record(other, True)


def test_the_first_successor_does_not_wait_and_later_ones_wait_longer() -> None:
    successors = keys(4)
    assert [successor_delay_ms(successors, key, 1_000) for key in successors] == [0, 125, 250, 500]
    assert successor_delay_ms(successors, ReplicaKey(9, Uuid(bytes(16))), 1_000) == 1_000
    assert successor_delay_ms(keys(2), keys(2)[1], 1_000) == 500


def test_a_candidate_that_is_not_a_voter_needs_a_majority_of_the_voters() -> None:
    me, *voters = keys(3)
    votes = Votes(voters, me)
    votes.record(voters[0], True)
    assert not votes.won, "one of two"
    votes.record(voters[1], True)
    assert votes.won
    assert votes.granting == voters
