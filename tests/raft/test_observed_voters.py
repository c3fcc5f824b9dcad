"""A node that follows asks the voters that its log names now, not only those it knew when it started."""

from __future__ import annotations

import pytest

from heirlog.raft.epoch_state import QuorumRole

from .quorum_world import World, add_request, remove_request
from .test_elections import commit, elected, started
from .test_voter_changes import answered, ids


def grown(world: World) -> None:
    """From one controller to three, none of which was restarted."""
    leader = elected(world)
    for _ in range(2):
        joining = world.join()
        world.run_for(1_000)
        assert answered(world, leader, add_request(joining)).error_code == 0
        world.run_for(1_000)


def test_an_observer_finds_the_next_leader_among_voters_that_were_added_later() -> None:
    world = started(1, observers=1)
    grown(world)
    (observer,) = world.observers
    first = elected(world)
    first.kill()
    second = elected(world, epoch_above=first.quorum.epoch)
    commit(world, second, "a")
    world.run_until(lambda: observer.seen.names == ["a"], 15_000)


@pytest.mark.parametrize("seed", range(3))
def test_a_voter_that_was_removed_follows_as_an_observer_and_votes_again_once_it_is_added(seed: int) -> None:
    world = started(3, seed=seed)
    leader = elected(world)
    removed = next(node for node in world.controllers if node is not leader)
    for _ in range(2):
        assert answered(world, leader, remove_request(removed)).error_code == 0
        world.run_for(20_000)
        state = removed.quorum.state
        assert state is not None and state.role is QuorumRole.FOLLOWER and not removed.quorum.is_voter
        assert state.epoch == leader.quorum.epoch, "it does not disturb the voters"
        assert answered(world, leader, add_request(removed)).error_code == 0
        world.run_for(1_000)
        assert all(removed.id in ids(node) for node in world.controllers)
    third = next(node for node in world.controllers if node not in (leader, removed))
    leader.kill()
    second = elected(world, epoch_above=leader.quorum.epoch)
    assert second in (removed, third)
    commit(world, second, "a")
