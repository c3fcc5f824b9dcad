"""A node that does not know that it is a voter: it asks for no votes, and it must give its own when it is asked.

The voters may be ahead of it: the record that made it one of them has not reached it (KAFKA-16526, and etcd's script
`campaign_learner_must_vote`).
"""

from __future__ import annotations

import pytest

from heirlog.raft.epoch_state import QuorumRole

from .quorum_world import Node, World, add_request
from .test_elections import commit, elected, started
from .test_voter_changes import ids

LIMIT_MS = 15_000


def added_without_its_knowledge() -> tuple[World, Node, Node, Node]:
    """Two voters, and a third one that has not received the record that adds it: leader, voter, added one."""
    world = started(2)
    leader = elected(world)
    commit(world, leader, "a")
    added = world.join()
    world.run_for(1_000)
    (voter,) = (node for node in world.controllers if node not in (leader, added))
    world.ask(leader, add_request(added))
    world.run_until(lambda: added.id in ids(leader), LIMIT_MS)
    world.isolate(added)
    world.run_until(lambda: added.id in ids(voter), LIMIT_MS)
    assert added.id not in ids(added)
    return world, leader, voter, added


@pytest.mark.parametrize("how", ["kill", "partition"])
def test_an_observer_that_was_added_without_its_knowledge_votes_when_it_is_asked(how: str) -> None:
    world, leader, voter, added = added_without_its_knowledge()
    world.heal()
    epoch = leader.quorum.epoch
    if how == "kill":
        leader.kill()
    else:
        world.isolate(leader)
    assert elected(world, epoch_above=epoch) is voter
    commit(world, voter, "b")
    world.run_until(lambda: added.seen.names == ["a", "b"], LIMIT_MS)
    assert ids(added) == ids(voter)


def test_an_observer_never_asks_for_votes() -> None:
    world, leader, voter, added = added_without_its_knowledge()
    leader.kill()
    voter.kill()
    world.heal()
    for _ in range(20):
        world.run_for(1_000)
        state = added.quorum.state
        assert state is not None and state.role in (QuorumRole.FOLLOWER, QuorumRole.UNATTACHED)
    assert added.quorum.epoch == leader.quorum.epoch
