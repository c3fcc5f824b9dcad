"""The bounds of a quorum that can work, each seen to find what it is for."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from heirlog.raft import epoch_state
from heirlog.raft.epoch_driver import EpochDriver
from heirlog.raft.epoch_state import EpochState
from heirlog.raft.replica_key import ReplicaKey
from heirlog.raft.resignation import Resignation
from heirlog.raft.voter_changes import VoterChanges
from heirlog.raft.voter_contact import VoterContact
from heirlog.sim import healed_quorum
from heirlog.sim.healed_quorum import HealedQuorum
from heirlog.sim.oracle import Violation
from heirlog.sim.plan import RunPlan
from heirlog.sim.quorum_liveness import (
    ISOLATED_LIMIT_MS,
    UNSEEN_MS,
    IsolationChecker,
    l3_no_epoch_begins,
    l5_behind,
    l6_change_has_ended,
    l7_no_broker_is_fenced,
)
from heirlog.sim.quorum_script import QuorumScript
from heirlog.sim.run import run_seed
from heirlog.sim.simulation import Simulation

STEP_MS = 500


@pytest.fixture
def found() -> list[str]:
    return []


@pytest.fixture
def checker(found: list[str]) -> IsolationChecker:
    return IsolationChecker(lambda rule, sentence: found.append(rule))


def lead(checker: IsolationChecker, begin_ms: int, end_ms: int, missing: tuple[int, ...], voters: int = 3) -> None:
    for now_ms in range(begin_ms, end_ms, STEP_MS):
        checker.observe("a", 7, now_ms, missing, voters)


def test_a_leader_that_no_majority_reaches_stops_leading(checker: IsolationChecker, found: list[str]) -> None:
    lead(checker, 0, ISOLATED_LIMIT_MS, (2, 3))
    assert found == []
    lead(checker, ISOLATED_LIMIT_MS, ISOLATED_LIMIT_MS + 2 * STEP_MS, (2, 3))
    assert found == ["L2"]


def test_a_majority_is_enough(checker: IsolationChecker, found: list[str]) -> None:
    lead(checker, 0, 3 * ISOLATED_LIMIT_MS, (3,))
    lead(checker, 3 * ISOLATED_LIMIT_MS, 6 * ISOLATED_LIMIT_MS, (4, 5), voters=5)
    assert found == []


def test_a_fetch_that_was_under_way_counts_and_one_of_the_others_does_not(
    checker: IsolationChecker, found: list[str]
) -> None:
    lead(checker, 0, ISOLATED_LIMIT_MS, (2, 3))
    checker.answers("a", 2, ISOLATED_LIMIT_MS)
    lead(checker, ISOLATED_LIMIT_MS, 2 * ISOLATED_LIMIT_MS, (2, 3))
    assert found == []
    checker.answers("a", 1, 2 * ISOLATED_LIMIT_MS)
    lead(checker, 2 * ISOLATED_LIMIT_MS, 2 * ISOLATED_LIMIT_MS + 2 * STEP_MS, (2, 3))
    assert found == ["L2"]


def test_a_voter_that_reaches_the_leader_again_may_complete_a_majority(
    checker: IsolationChecker, found: list[str]
) -> None:
    lead(checker, 0, 2000, (2, 3, 4, 5), voters=5)
    lead(checker, 2000, 2000 + ISOLATED_LIMIT_MS, (2, 3, 4), voters=5)
    assert found == []
    lead(checker, 2000 + ISOLATED_LIMIT_MS, 2000 + ISOLATED_LIMIT_MS + 2 * STEP_MS, (2, 3, 4), voters=5)
    assert found == ["L2"]


def test_a_leader_that_was_paused_notices_it_later(checker: IsolationChecker, found: list[str]) -> None:
    lead(checker, 0, 1000, (2, 3))
    lead(checker, 1000 + UNSEEN_MS, 1000 + UNSEEN_MS + ISOLATED_LIMIT_MS, (2, 3))
    assert found == []


def test_no_epoch_begins_in_a_quiet_quorum() -> None:
    assert l3_no_epoch_begins(7, 7) is None
    assert l3_no_epoch_begins(7, 8) is not None


def test_every_node_applies_what_is_committed() -> None:
    assert l5_behind({"controller-1": 9, "broker-1": 12}, 10) is None
    assert "broker-1" in (l5_behind({"controller-1": 9, "broker-1": 8}, 10) or "")


def test_a_change_of_the_voters_is_committed_in_the_end() -> None:
    assert l6_change_has_ended(9, 10) is None
    assert l6_change_has_ended(10, 10) is not None


def test_no_broker_is_fenced() -> None:
    assert l7_no_broker_is_fenced(3, 3) is None
    assert l7_no_broker_is_fenced(3, 4) is not None


# in a run


@pytest.fixture
def running() -> Simulation:
    """Three controllers and a broker, which clients use."""
    plan = RunPlan(brokers=1, controllers=3, partitions=1, min_isr=1, idempotent=False, leader_acks=False)
    simulation = Simulation(1, plan)
    simulation.begin()
    return simulation


def rule_of(act: Callable[[], object]) -> str:
    with pytest.raises(Violation) as broken:
        act()
    return broken.value.rule


def test_voters_that_elect_no_leader_break_l1(running: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EpochDriver, "_ask_for_votes", lambda self, me: None)
    running.cluster.kill(running.cluster.controller.name)
    assert rule_of(running.heal) == "L1"


def test_a_leader_that_overlooks_its_isolation_breaks_l2(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(VoterContact, "_check", VoterContact._expect_majority)
    assert broken_by("leader-cut-off", 1) == "L2"


def test_another_election_breaks_l3(running: Simulation) -> None:
    quorum = HealedQuorum(running.checker)
    quorum.is_quiet()
    quorum.check_quiet()
    running.cluster.kill(running.cluster.controller.name)
    running.cluster.run_for(3000)
    assert rule_of(quorum.check_quiet) == "L3"


def test_pre_votes_that_are_never_refused_break_l3(monkeypatch: pytest.MonkeyPatch) -> None:
    by_the_rules = epoch_state.grants

    def grants(state: EpochState, candidate: ReplicaKey, *, log_is_current: bool, pre_vote: bool) -> bool:
        return pre_vote or by_the_rules(state, candidate, log_is_current=log_is_current, pre_vote=pre_vote)

    monkeypatch.setattr(epoch_state, "grants", grants)
    assert broken_by("split-followers", 4) == "L3"


def test_a_leader_that_stops_without_a_word_breaks_l4(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Resignation, "start", lambda self: self._on_done())
    monkeypatch.setattr(EpochDriver, "leader_is_gone", lambda self: None)
    assert broken_by("leader-failure", 3) == "L4"


def test_a_broker_that_receives_nothing_breaks_l5(running: Simulation) -> None:
    for name in running.cluster.controller_names:
        running.cluster.block(name, "broker-1")
    running.cluster.run_for(1000)
    assert rule_of(running.heal) == "L5"


def test_a_change_of_the_voters_that_sticks_breaks_l6(running: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
    # before the others elect another leader, which truncates the change
    monkeypatch.setattr(healed_quorum, "CHANGE_LIMIT_MS", 500)
    script = QuorumScript(running, "test")
    leader = script.until_active()
    others = script.others_than(leader)
    script.block(*((leader, other) for other in others))
    script.remove_voter(others[0], at=leader)
    script.run_for(1, 2)
    assert rule_of(running.heal) == "L6"


def test_a_change_of_the_voters_that_is_not_answered_breaks_l6(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(VoterChanges, "_end", lambda self, change, outcome: None)
    assert broken_by("two-voter-changes", 1) == "L6"


def test_a_broker_that_is_fenced_breaks_l7(running: Simulation) -> None:
    quorum = HealedQuorum(running.checker)
    quorum.is_quiet()
    running.cluster.block("broker-1", running.cluster.controller.name)
    running.cluster.run_for(4000)
    assert rule_of(quorum.check_quiet) == "L7"


def test_an_image_that_is_not_what_was_committed_breaks_q8(running: Simulation) -> None:
    node, committed = running.cluster.machine("broker-1").running, running.checker.committed
    assert node is not None
    running.cluster.run_until(lambda: node.image.offset == committed.image.offset, 1000)
    running.checker.sweep()
    node.image.next_producer_id += 1
    assert rule_of(running.checker.sweep) == "Q8"


def test_before_the_first_record_there_is_no_image() -> None:
    simulation = Simulation(1, RunPlan(brokers=1, controllers=3))
    simulation.cluster.format()
    simulation.cluster.start_all()
    simulation.cluster.run_for(500)
    simulation.checker.sweep()


def test_a_leader_whose_disk_cannot_be_read_is_judged(running: Simulation) -> None:
    committed = running.checker.committed
    running.cluster.machines.disk(running.cluster.controller.name).break_at("/data", "read")
    end = committed.end
    running.cluster.run_for(1500)
    assert committed.end > end


def broken_by(scenario: str, seed: int) -> str | None:
    violation = run_seed(seed, scenario=scenario).violation
    return None if violation is None else violation.check
