"""The roles of a quorum's node: one test per rule of `epoch_state`, then histories that chance draws."""

from __future__ import annotations

from collections.abc import Callable

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
STATES = {
    "unattached": UNATTACHED,
    "unattached-voted": VOTED,
    "unattached-with-leader": KNOWS_LEADER,
    "prospective": PROSPECTIVE,
    "prospective-voted": EpochState(QuorumRole.PROSPECTIVE, 5, voted=TWO),
    "prospective-with-leader": EpochState(QuorumRole.PROSPECTIVE, 5, 2, ADDRESSES[2]),
    "prospective-no-endpoint": EpochState(QuorumRole.PROSPECTIVE, 5, 2),
    "candidate": CANDIDATE,
    "leader": LEADER,
    "resigned": RESIGNED,
    "follower": FOLLOWER,
    "follower-fetched": FETCHED,
}
"""Of node 1 in epoch 5; the leader is 2, and the vote was given to 2."""


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


# who gets the vote, if voter 3 asks; "behind": its log is the shorter one

VOTES = """
                               vote  behind  pre-vote  behind
    unattached                 yes   no      yes       no
    unattached-voted           no    no      yes       no
    unattached-with-leader     no    no      yes       no
    prospective                yes   no      yes       no
    prospective-voted          no    no      yes       no
    prospective-with-leader    no    no      yes       no
    prospective-no-endpoint    no    no      yes       no
    candidate                  no    no      yes       no
    leader                     no    no      no        no
    resigned                   no    no      yes       no
    follower                   no    no      yes       no
    follower-fetched           no    no      no        no
"""


def cells(table: str) -> list[tuple[str, str, str]]:
    """(row, column, what the cell says)"""
    head, *rows = [line.split() for line in table.strip().splitlines()]
    return [(row[0], column, cell) for row in rows for column, cell in zip(head, row[1:], strict=True)]


@pytest.mark.parametrize("row", [line.split() for line in VOTES.strip().splitlines()[1:]], ids=lambda row: row[0])
def test_who_grants_what(row: list[str]) -> None:
    asked = [(pre_vote, is_current) for pre_vote in (False, True) for is_current in (True, False)]
    granted = [
        epoch_state.grants(STATES[row[0]], THREE, log_is_current=is_current, pre_vote=pre_vote)
        for pre_vote, is_current in asked
    ]
    assert ["yes" if one else "no" for one in granted] == row[1:]


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


# every transition from every state: role, epoch, /leader, v and whom it has voted for; "-" raises
# by what it learns of other nodes, and by its own timeouts, elections and votes

BY_OTHERS = """
                             u4  f4  u5    u5/2    u5/3    u6  u6/2  f5/2    f5/3    f6/2
    unattached               -   -   U5    U5/2    U5/3    U6  U6/2  F5/2    F5/3    F6/2
    unattached-voted         -   -   U5v2  U5/2v2  U5/3v2  U6  U6/2  F5/2v2  F5/3v2  F6/2
    unattached-with-leader   -   -   U5/2  U5/2    -       U6  U6/2  F5/2    -       F6/2
    prospective              -   -   U5    U5/2    U5/3    U6  U6/2  F5/2    F5/3    F6/2
    prospective-voted        -   -   U5v2  U5/2v2  U5/3v2  U6  U6/2  F5/2v2  F5/3v2  F6/2
    prospective-with-leader  -   -   U5/2  U5/2    -       U6  U6/2  F5/2    -       F6/2
    prospective-no-endpoint  -   -   U5/2  U5/2    -       U6  U6/2  F5/2    -       F6/2
    candidate                -   -   -     -       -       U6  U6/2  F5/2v1  F5/3v1  F6/2
    leader                   -   -   -     -       -       U6  U6/2  -       -       F6/2
    resigned                 -   -   -     -       -       U6  U6/2  -       -       F6/2
    follower                 -   -   U5/2  U5/2    -       U6  U6/2  F5/2    -       F6/2
    follower-fetched         -   -   U5/2  U5/2    -       U6  U6/2  F5/2    -       F6/2
"""
OF_ITS_OWN = """
                             p     lost  c     l       r       v2    v3
    unattached               P5    -     -     -       -       U5v2  U5v3
    unattached-voted         P5v2  -     -     -       -       U5v2  -
    unattached-with-leader   P5/2  -     -     -       -       -     -
    prospective              -     U5    C6v1  -       -       P5v2  P5v3
    prospective-voted        -     U5v2  C6v1  -       -       P5v2  -
    prospective-with-leader  -     F5/2  C6v1  -       -       -     -
    prospective-no-endpoint  -     U5/2  C6v1  -       -       -     -
    candidate                P5v1  -     -     L5/1v1  -       -     -
    leader                   -     -     -     -       R5/1v1  -     -
    resigned                 -     -     -     -       -       -     -
    follower                 P5/2  -     -     -       -       -     -
    follower-fetched         P5/2  -     -     -       -       -     -
"""
DO: dict[str, Callable[[EpochState], EpochState]] = {
    "u4": lambda state: epoch_state.unattached(state, 4),
    "f4": lambda state: epoch_state.follower(state, 4, 2, ADDRESSES[2], ME),
    "u5": lambda state: epoch_state.unattached(state, 5),
    "u5/2": lambda state: epoch_state.unattached(state, 5, 2),
    "u5/3": lambda state: epoch_state.unattached(state, 5, 3),
    "u6": lambda state: epoch_state.unattached(state, 6),
    "u6/2": lambda state: epoch_state.unattached(state, 6, 2),
    "f5/2": lambda state: epoch_state.follower(state, 5, 2, ADDRESSES[2], ME),
    "f5/3": lambda state: epoch_state.follower(state, 5, 3, ADDRESSES[3], ME),
    "f6/2": lambda state: epoch_state.follower(state, 6, 2, ADDRESSES[2], ME),
    "p": epoch_state.prospective,
    "lost": epoch_state.not_elected,
    "c": lambda state: epoch_state.candidate(state, ME),
    "l": lambda state: epoch_state.leader(state, ME, ADDRESSES[1]),
    "r": epoch_state.resigned,
    "v2": lambda state: epoch_state.vote(state, TWO),
    "v3": lambda state: epoch_state.vote(state, THREE),
}


def shown(state: EpochState) -> str:
    leader = "" if state.leader_id == NOBODY else f"/{state.leader_id}"
    vote = "" if state.voted is None else f"v{state.voted.id}"
    return f"{state.role.name[0]}{state.epoch}{leader}{vote}"


@pytest.mark.parametrize(("before", "event", "after"), [*cells(BY_OTHERS), *cells(OF_ITS_OWN)])
def test_each_transition_from_each_state(before: str, event: str, after: str) -> None:
    if after == "-":
        with pytest.raises(IllegalTransition):
            DO[event](STATES[before])
    else:
        state = DO[event](STATES[before])
        assert shown(state) == after
        assert not state.has_fetched, "a new role has no answer of its leader yet"
        assert (state.leader_endpoint is not None) == (state.role in (QuorumRole.FOLLOWER, QuorumRole.LEADER)) or (
            state.role is QuorumRole.PROSPECTIVE and state.leader_endpoint == STATES[before].leader_endpoint
        )


def test_a_node_does_not_follow_itself() -> None:
    for state in STATES.values():
        with pytest.raises(IllegalTransition):
            epoch_state.follower(state, 6, 1, ADDRESSES[1], ME)


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
