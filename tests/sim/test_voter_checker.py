"""The rules of changes of the quorum's voters, each seen to find what it is for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from heirlog.protocol.types import BrokerId, Endpoint, Uuid
from heirlog.raft.control import Voter
from heirlog.raft.epoch_state import EpochState, QuorumRole
from heirlog.raft.replica_key import ReplicaKey
from heirlog.raft.voter_history import RemovedVoter
from heirlog.sim.voter_checker import VoterChecker

A, B, C, D = (Voter(BrokerId(n), Uuid(bytes([n]) * 16), Endpoint(f"controller-{n}", 9093)) for n in (1, 2, 3, 4))
LEADER = EpochState(QuorumRole.LEADER, 7)


@dataclass
class Log:
    """Offsets below 10 are of epoch 6, those from 10 on of epoch 7."""

    voters: tuple[Voter, ...]
    voters_offset: int
    removed: RemovedVoter | None = None

    def removed_voter(self, key: ReplicaKey) -> RemovedVoter | None:
        return self.removed if key == C.key else None

    def epoch_below(self, offset: int) -> int:
        return 6 if offset <= 10 else 7


@dataclass
class View:
    high_watermark: int = 20
    is_voter: bool = True
    key: ReplicaKey = C.key


@pytest.fixture
def found() -> list[str]:
    return []


@pytest.fixture
def checker(found: list[str]) -> VoterChecker:
    return VoterChecker(lambda rule, sentence: found.append(rule))


def observe(checker: VoterChecker, log: Any, view: View | None = None, state: EpochState = LEADER) -> None:
    checker.observe("a", view or View(), log, state)


def test_neighbouring_sets_differ_by_at_most_one_voter(checker: VoterChecker, found: list[str]) -> None:
    checker.committed(1, (A, B, C))
    checker.committed(12, (A, B))
    checker.committed(14, (A, B, D))
    assert found == []
    checker.committed(15, (A, C, B))
    assert found == []
    checker.committed(16, (A,))
    assert found == ["Q11"]


def test_the_set_in_force_is_the_one_that_the_log_names(checker: VoterChecker, found: list[str]) -> None:
    checker.committed(12, (A, B))
    observe(checker, Log((A, B), 12))
    observe(checker, Log((A, B, C), 12))
    assert found == ["Q11"]


def test_a_change_waits_for_the_one_before(checker: VoterChecker, found: list[str]) -> None:
    log = Log((A, B, C), 12)
    observe(checker, log, View(13))
    log.voters, log.voters_offset = (A, B), 14
    observe(checker, log, View(13))
    assert found == []
    log.voters, log.voters_offset = (A,), 15
    observe(checker, log, View(13))
    assert found == ["Q12"]


def test_a_change_waits_for_a_record_of_the_leaders_epoch(checker: VoterChecker, found: list[str]) -> None:
    log = Log((A, B, C), 3)
    observe(checker, log, View(10))
    log.voters, log.voters_offset = (A, B), 12
    observe(checker, log, View(10))
    assert found == ["Q12"]


def test_the_first_batch_of_an_epoch_may_name_the_voters(checker: VoterChecker, found: list[str]) -> None:
    log = Log((A, B, C), 3)
    observe(checker, log, View(2))
    log.voters_offset = 10
    observe(checker, log, View(2))
    assert found == []


def test_only_a_voter_asks_for_votes(checker: VoterChecker, found: list[str]) -> None:
    log = Log((A, B), 3)
    observe(checker, log, View(is_voter=False), EpochState(QuorumRole.FOLLOWER, 7))
    assert found == []
    observe(checker, log, View(is_voter=False), EpochState(QuorumRole.PROSPECTIVE, 7))
    assert found == ["Q13"]


def test_one_whose_removal_may_not_be_committed_may_ask_for_votes(checker: VoterChecker, found: list[str]) -> None:
    log = Log((A, B), 12, RemovedVoter(12, C))
    observe(checker, log, View(12, is_voter=False), EpochState(QuorumRole.PROSPECTIVE, 7))
    assert found == []
    observe(checker, log, View(13, is_voter=False), EpochState(QuorumRole.PROSPECTIVE, 7))
    assert found == ["Q13"]
