from __future__ import annotations

from heirlog.protocol.types import BrokerId, Endpoint, Uuid
from heirlog.raft import replica_states
from heirlog.raft.control import Voter
from heirlog.raft.replica_key import ReplicaKey
from heirlog.raft.replica_states import OBSERVER_SESSION_MS, ReplicaStates

FORMER, NEW = Uuid(b"\1" * 16), Uuid(b"\2" * 16)
VOTER = Voter(BrokerId(101), FORMER, Endpoint("controller-101", 9093))


def test_a_fetch_from_another_disk_of_the_node_does_not_count_as_the_voters() -> None:
    states = ReplicaStates()
    states.fetched(ReplicaKey(101, FORMER), 5, 9, 1000)
    states.fetched(ReplicaKey(101, NEW), 9, 9, 1001)
    assert states.of_voter(VOTER).end_offset == 5
    assert [key for key, _ in states.observers([VOTER], 1001)] == [ReplicaKey(101, NEW)]


def test_a_fetch_that_moves_no_end_says_so() -> None:
    states = ReplicaStates()
    first, second = ReplicaKey(101, FORMER), ReplicaKey(101, NEW)
    fetches = [(first, 5), (first, 5), (first, 6), (second, 6), (first, 6), (first, 6)]
    assert [states.fetched(key, end, 9, 0) for key, end in fetches] == [True, False, True, True, True, False]


def test_a_voter_that_has_not_fetched_has_no_end() -> None:
    assert ReplicaStates().of_voter(VOTER).end_offset == -1


def test_an_observer_that_is_silent_for_long_is_forgotten_and_may_come_back() -> None:
    states = ReplicaStates()
    states.fetched(ReplicaKey(7, NEW), 5, 9, 0)
    assert states.observers([VOTER], OBSERVER_SESSION_MS + 1) == []
    states.fetched(ReplicaKey(7, NEW), 6, 9, OBSERVER_SESSION_MS + 2)
    ((key, state),) = states.observers([VOTER], OBSERVER_SESSION_MS + 2)
    assert (key, state.end_offset) == (ReplicaKey(7, NEW), 6)


def test_the_replica_that_has_been_silent_for_longest_makes_room() -> None:
    states = ReplicaStates()
    for node in range(replica_states.MAX_REPLICAS + 1):
        states.fetched(ReplicaKey(node, NEW), node, 9, 0)
    known = [key.id for key, _ in states.observers([], 0)]
    assert len(known) == replica_states.MAX_REPLICAS
    assert known[0] == 1
