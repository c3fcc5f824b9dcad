"""The roles of a quorum's node: one test per rule of `epoch_state`, then histories that chance draws."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heirlog.protocol.types import ZERO_UUID, Endpoint, Uuid
from heirlog.raft import epoch_state
from heirlog.raft.epoch_state import EpochState, IllegalTransition, QuorumRole
from heirlog.raft.quorum_state import NOBODY, QuorumState
from heirlog.raft.replica_key import ReplicaKey

DISK = Uuid(b"\x01" * 16)
ME = ReplicaKey(1, DISK)
TWO = ReplicaKey(2, DISK)
THREE = ReplicaKey(3, DISK)
ADDRESSES = {number: Endpoint(f"controller-{number}", 9093) for number in (1, 2, 3)}

UNATTACHED = EpochState(QuorumRole.UNATTACHED, 5)
VOTED = EpochState(QuorumRole.UNATTACHED, 5, voted=TWO)
KNOWS_LEADER = EpochState(QuorumRole.UNATTACHED, 5, leader_id=2)
FOLLOWER = EpochState(QuorumRole.FOLLOWER, 5, 2, ADDRESSES[2])
FETCHED = EpochState(QuorumRole.FOLLOWER, 5, 2, ADDRESSES[2], has_fetched=True)
PROSPECTIVE = EpochState(QuorumRole.PROSPECTIVE, 5)
CANDIDATE = EpochState(QuorumRole.CANDIDATE, 5, voted=ME)
LEADER = EpochState(QuorumRole.LEADER, 5, 1, ADDRESSES[1], ME)
RESIGNED = EpochState(QuorumRole.RESIGNED, 5, 1, None, ME)


def started(stored: QuorumState, log_end_epoch: int = 0, is_voter: bool = True) -> EpochState:
    return epoch_state.initial(stored, log_end_epoch, ME, is_voter, ADDRESSES.get)


# after a start


def test_without_a_file_a_node_is_unattached_in_epoch_0() -> None:
    assert started(QuorumState()) == EpochState(QuorumRole.UNATTACHED, 0)


def test_a_file_older_than_the_log_is_not_believed() -> None:
    assert started(QuorumState(2, 4, 3, DISK), log_end_epoch=7) == EpochState(QuorumRole.UNATTACHED, 7)


def test_a_leader_starts_as_resigned_since_its_epoch_has_records_already() -> None:
    assert started(QuorumState(1, 5, 1, DISK)).role is QuorumRole.RESIGNED


def test_a_candidate_asks_for_votes_again() -> None:
    assert started(QuorumState(NOBODY, 5, 1, DISK)).role is QuorumRole.CANDIDATE


def test_a_candidate_that_was_removed_meanwhile_does_not() -> None:
    assert started(QuorumState(NOBODY, 5, 1, DISK), is_voter=False).role is QuorumRole.UNATTACHED


def test_a_vote_for_this_id_with_another_disk_is_a_vote_for_another_voter() -> None:
    state = started(QuorumState(NOBODY, 5, 1, Uuid(b"\x09" * 16)))
    assert state.role is QuorumRole.UNATTACHED
    assert not epoch_state.grants(state, ME, log_is_current=True, pre_vote=False)


def test_a_follower_keeps_its_vote() -> None:
    assert started(QuorumState(2, 5, 3, DISK)) == EpochState(QuorumRole.FOLLOWER, 5, 2, ADDRESSES[2], THREE)


def test_a_leader_without_address_cannot_be_followed_yet() -> None:
    assert started(QuorumState(9, 5)) == EpochState(QuorumRole.UNATTACHED, 5, 9)


# who gets the vote: (state, log is current) -> standard vote, pre-vote

VOTES = [
    (UNATTACHED, True, True, True),
    (UNATTACHED, False, False, False),
    (KNOWS_LEADER, True, False, True),
    (FOLLOWER, True, False, True),
    (FOLLOWER, False, False, False),
    (FETCHED, True, False, False),
    (PROSPECTIVE, True, True, True),
    (CANDIDATE, True, False, True),
    (LEADER, True, False, False),
    (RESIGNED, True, False, True),
]


@pytest.mark.parametrize(("state", "current", "standard", "pre_vote"), VOTES)
def test_who_grants_what(state: EpochState, current: bool, standard: bool, pre_vote: bool) -> None:
    assert epoch_state.grants(state, THREE, log_is_current=current, pre_vote=False) is standard
    assert epoch_state.grants(state, THREE, log_is_current=current, pre_vote=True) is pre_vote


def test_a_vote_is_repeated_for_the_same_candidate_only() -> None:
    assert epoch_state.grants(VOTED, TWO, log_is_current=False, pre_vote=False)
    assert not epoch_state.grants(VOTED, THREE, log_is_current=True, pre_vote=False)
    assert not epoch_state.grants(
        VOTED, TWO._replace(directory_id=Uuid(b"\x07" * 16)), log_is_current=True, pre_vote=False
    )


def test_a_vote_for_a_candidate_without_directory_counts_for_its_id() -> None:
    state = EpochState(QuorumRole.UNATTACHED, 5, voted=ReplicaKey(2, ZERO_UUID))
    assert epoch_state.grants(state, TWO, log_is_current=True, pre_vote=False)


# transitions


def test_an_election_from_the_timeout_to_the_leadership() -> None:
    state = epoch_state.prospective(FETCHED)
    assert (state.role, state.epoch, state.leader_id) == (QuorumRole.PROSPECTIVE, 5, 2)
    assert state.durable == FETCHED.durable, "asking for pre-votes writes nothing"
    state = epoch_state.candidate(state, ME)
    assert state == EpochState(QuorumRole.CANDIDATE, 6, voted=ME)
    state = epoch_state.leader(state, ME, ADDRESSES[1])
    assert state.durable == QuorumState(1, 6, 1, DISK)
    assert epoch_state.resigned(state).durable == state.durable


def test_a_node_that_is_not_elected_returns_to_its_leader() -> None:
    assert epoch_state.not_elected(epoch_state.prospective(FETCHED)) == FOLLOWER
    assert epoch_state.not_elected(epoch_state.prospective(VOTED)) == VOTED


def test_a_higher_epoch_clears_the_vote() -> None:
    for state in (VOTED, FOLLOWER, CANDIDATE, LEADER, RESIGNED):
        assert epoch_state.unattached(state, 6) == EpochState(QuorumRole.UNATTACHED, 6)
        assert epoch_state.follower(state, 6, 2, ADDRESSES[2], ME) == EpochState(
            QuorumRole.FOLLOWER, 6, 2, ADDRESSES[2]
        )


def test_a_candidate_follows_the_winner_of_its_epoch_and_keeps_its_own_vote() -> None:
    assert epoch_state.follower(CANDIDATE, 5, 2, ADDRESSES[2], ME).voted == ME


@pytest.mark.parametrize(
    "forbidden",
    [
        lambda: epoch_state.unattached(UNATTACHED, 4),
        lambda: epoch_state.unattached(LEADER, 5),
        lambda: epoch_state.unattached(RESIGNED, 5),
        lambda: epoch_state.unattached(CANDIDATE, 5),
        lambda: epoch_state.unattached(FOLLOWER, 5, 3),
        lambda: epoch_state.follower(FOLLOWER, 5, 3, ADDRESSES[3], ME),
        lambda: epoch_state.follower(LEADER, 5, 3, ADDRESSES[3], ME),
        lambda: epoch_state.follower(UNATTACHED, 6, 1, ADDRESSES[1], ME),
        lambda: epoch_state.follower(UNATTACHED, 4, 2, ADDRESSES[2], ME),
        lambda: epoch_state.prospective(LEADER),
        lambda: epoch_state.prospective(RESIGNED),
        lambda: epoch_state.candidate(UNATTACHED, ME),
        lambda: epoch_state.candidate(FOLLOWER, ME),
        lambda: epoch_state.leader(PROSPECTIVE, ME, ADDRESSES[1]),
        lambda: epoch_state.resigned(CANDIDATE),
        lambda: epoch_state.vote(VOTED, THREE),
        lambda: epoch_state.vote(KNOWS_LEADER, TWO),
        lambda: epoch_state.vote(CANDIDATE, TWO),
        lambda: epoch_state.not_elected(UNATTACHED),
    ],
)
def test_what_may_never_happen_raises(forbidden: object) -> None:
    with pytest.raises(IllegalTransition):
        forbidden()  # type: ignore[operator]


# histories

STEPS = st.lists(st.tuples(st.integers(0, 9), st.integers(1, 3), st.booleans()), max_size=30)


@given(STEPS)
def test_epochs_never_fall_votes_never_change_and_no_node_leads_an_epoch_twice(
    steps: list[tuple[int, int, bool]],
) -> None:
    """Any order of transitions and restarts; those that are refused change nothing."""
    state = EpochState(QuorumRole.UNATTACHED, 0)
    votes: dict[int, ReplicaKey] = {}
    led: list[int] = []
    for step, number, flag in steps:
        key = ReplicaKey(number, DISK)
        before = state
        try:
            match step:
                case 0:
                    state = epoch_state.unattached(state, state.epoch + int(flag), NOBODY if flag else number)
                case 1:
                    state = epoch_state.follower(state, state.epoch + int(flag), number, ADDRESSES[number], ME)
                case 2:
                    state = epoch_state.prospective(state)
                case 3:
                    state = epoch_state.candidate(state, ME)
                case 4:
                    state = epoch_state.leader(state, ME, ADDRESSES[1])
                    led.append(state.epoch)
                case 5:
                    state = epoch_state.resigned(state)
                case 6:
                    if epoch_state.grants(state, key, log_is_current=flag, pre_vote=False):
                        state = epoch_state.vote(state, key)
                case 7:
                    state = epoch_state.not_elected(state)
                case 8:
                    state = epoch_state.fetched(state) if state.role is QuorumRole.FOLLOWER else state
                case _:
                    state = epoch_state.initial(state.durable, state.epoch, ME, flag, ADDRESSES.get)
        except IllegalTransition:
            assert state == before
        assert state.epoch >= before.epoch
        if state.voted is not None:
            assert votes.setdefault(state.epoch, state.voted) == state.voted
    assert len(led) == len(set(led))
