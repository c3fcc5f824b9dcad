"""How long a voter waits in each role: what restarts its timeout, and what does not."""

from __future__ import annotations

import pytest

from heirlog.raft.divergence import Position
from heirlog.raft.epoch_state import QuorumRole

from .quorum_world import World, add_request, remove_request
from .test_elections import commit, elected
from .test_epoch_requests import asked, vote, world_of_three
from .test_voter_changes import answered

LIMIT_MS = 15_000


def test_a_voter_whose_voters_are_all_gone_still_asks_the_bootstrap_servers() -> None:
    """It has missed its own removal, and nobody announces a leader to it (KAFKA-17030).

    It is cut off at its start, so it has asked for pre-votes before it can reach anyone.
    """
    world = World(voters=3)
    for node in world.controllers:
        node.joins = True
        node.start()
    first, second, missing = world.controllers

    def has_voted() -> bool:
        state = missing.quorum.state
        return state is not None and state.voted is not None and missing.quorum.durable_state == state.durable

    world.run_until(has_voted, LIMIT_MS)
    missing.kill()
    leader = elected(world)
    for _ in range(2):
        joining = world.join()
        world.run_for(1_000)
        assert answered(world, leader, add_request(joining)).error_code == 0
    for old in (missing, second, first):
        assert answered(world, elected(world), remove_request(old)).error_code == 0
        old.kill()
        world.run_for(1_000)
    leader = elected(world)
    commit(world, leader, "a")
    world.isolate(missing)
    missing.start()
    state = missing.quorum.state
    assert state is not None and state.leader_id < 0
    world.run_for(10_000)
    world.heal()
    world.run_until(lambda: missing.seen.names == ["a"], LIMIT_MS)
    assert elected(world) is leader


@pytest.mark.parametrize("pre_vote", [True, False])
def test_a_newer_epoch_restarts_no_timeout_and_a_vote_does(pre_vote: bool) -> None:
    world = world_of_three()
    other = world.controllers[1]
    roles = set()
    for epoch in range(1, 11):
        answer = asked(world, vote(world, other, epoch, Position(0, 0), pre_vote))
        assert answer.topics[0].partitions[0].vote_granted, "its log is empty too"
        world.run_for(300)
        state = world.leader.quorum.state
        assert state is not None and state.epoch == epoch
        roles.add(state.role)
    asked_for_votes = QuorumRole.PROSPECTIVE in roles
    assert asked_for_votes is pre_vote, "a granted pre-vote promises nothing"


def test_a_candidate_that_is_deposed_waits_only_for_the_rest_of_its_timeout() -> None:
    world = world_of_three()
    others = world.controllers[1:]

    def role() -> QuorumRole | None:
        state = world.leader.quorum.state
        return None if state is None else state.role

    for node in others:
        node.start()
    world.run_until(lambda: role() is QuorumRole.CANDIDATE, LIMIT_MS)
    for node in others:
        node.kill()
    began_ms = world.now_ms
    world.run_for(800)
    asked(world, vote(world, others[0], 9, Position(0, 0), pre_vote=True))
    assert role() is QuorumRole.UNATTACHED
    world.run_until(lambda: role() is QuorumRole.PROSPECTIVE, LIMIT_MS)
    assert world.now_ms - began_ms <= 2_000, "one timeout, and not a second one"
