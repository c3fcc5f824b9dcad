"""A controller that follows keeps its own entry among the voters correct: its address, and with auto-join itself."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import (
    AddRaftVoterRequest,
    RemoveRaftVoterRequest,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
)
from heirlog.raft.control import Voter
from heirlog.raft.quorum_config import QuorumConfig
from heirlog.raft.voter_history import changed_voters

from .quorum_world import Node, World, add_request, remove_request, topic
from .test_elections import active, elected
from .test_voter_changes import answered, ids

LIMIT_MS = 30_000
OWN = (AddRaftVoterRequest, RemoveRaftVoterRequest, UpdateRaftVoterRequest)


def started(voters: int, *, auto_join: bool = False) -> World:
    """Each controller knows its own address by its configuration, as on a real node."""
    world = World(voters=voters)
    for node in world.controllers:
        node.quorum_config = QuorumConfig(auto_join=auto_join)
        node.configured = [node.voter]
        node.start()
    return world


def joined(world: World, *, auto_join: bool) -> Node:
    node = world.join()
    node.kill()
    node.quorum_config = QuorumConfig(auto_join=auto_join)
    node.start()
    return node


def known(world: World) -> set[tuple[Voter, ...]]:
    """The sets of voters by the logs of all running controllers."""
    nodes = [node for node in world.controllers if node.incarnation.alive]
    return {node.quorum.log.voters for node in nodes if node.quorum.log is not None}


def own_requests(world: World) -> list[object]:
    return [request for request, _ in world.sent if isinstance(request, OWN)]


def test_a_correct_set_causes_no_request() -> None:
    world = started(3, auto_join=True)
    elected(world)
    world.run_for(20_000)
    assert own_requests(world) == []


@pytest.mark.parametrize("index", [0, 1, 2])
def test_the_others_learn_the_new_port_of_a_voter(index: int) -> None:
    world = started(3)
    leader = elected(world)
    world.run_for(1_000)
    moved = world.controllers[index]
    moved.kill()
    moved.port = 9200
    moved.configured = [moved.voter]
    if moved is leader:
        elected(world, epoch_above=leader.quorum.epoch)
    moved.start()
    expected = tuple(node.voter for node in world.controllers)
    world.run_until(lambda: known(world) == {expected}, LIMIT_MS)
    world.run_for(LIMIT_MS)
    assert known(world) == {expected}
    assert len([one for one in own_requests(world) if isinstance(one, UpdateRaftVoterRequest)]) == 1
    assert len(active(world)) == 1


def test_a_lone_controller_that_has_moved_writes_its_new_port() -> None:
    world = started(1)
    elected(world)
    moved = world.leader
    moved.kill()
    moved.port = 9200
    moved.configured = [moved.voter]
    moved.start()
    elected(world)
    world.run_for(1_000)
    assert known(world) == {(moved.voter,)}


@pytest.mark.parametrize("voters", [1, 2, 3])
def test_a_controller_with_auto_join_becomes_a_voter_once_it_has_caught_up(voters: int) -> None:
    world = started(voters)
    leader = elected(world)
    leader.quorum.append([topic("a")])
    joining = joined(world, auto_join=True)
    world.run_until(lambda: all(joining.id in ids(node) for node in world.controllers), LIMIT_MS)
    offset = leader.quorum.append([topic("b")])
    world.run_until(lambda: joining.quorum.high_watermark > offset, LIMIT_MS)
    assert active(world) == [leader]


def test_a_controller_without_auto_join_remains_an_observer() -> None:
    world = started(1)
    elected(world)
    joining = joined(world, auto_join=False)
    world.run_for(LIMIT_MS)
    assert ids(joining) == [100] and own_requests(world) == []


def test_a_voter_with_auto_join_whose_disk_was_lost_replaces_itself() -> None:
    world = started(3, auto_join=True)
    leader = elected(world)
    leader.quorum.append([topic("a")])
    world.run_for(1_000)
    lost = next(node for node in world.controllers if node is not leader)
    old = lost.voter
    lost.replace_disk()
    lost.quorum_config = QuorumConfig(auto_join=True)
    lost.configured = [lost.voter]
    lost.start()
    seen: list[tuple[Voter, ...]] = [leader.quorum.voters]

    def is_back() -> bool:
        if leader.quorum.voters != seen[-1]:
            seen.append(leader.quorum.voters)
        return known(world) == {tuple(sorted((n.voter for n in world.controllers), key=lambda voter: voter.id))}

    world.run_until(is_back, LIMIT_MS)
    assert [len(voters) for voters in seen] == [3, 2, 3] and old not in seen[-1]
    assert all(changed_voters(before, after) == 1 for before, after in pairwise(seen))
    assert lost.seen.names == ["a"]


def test_a_controller_with_auto_join_that_was_removed_comes_back_unless_it_is_stopped() -> None:
    world = started(3)
    leader = elected(world)
    joining = joined(world, auto_join=True)
    world.run_until(lambda: joining.id in ids(leader), LIMIT_MS)
    world.run_for(1_000)
    answered(world, leader, remove_request(joining))
    world.run_until(lambda: joining.id in ids(leader), LIMIT_MS)
    world.run_for(1_000)
    joining.kill()
    answered(world, leader, remove_request(joining))
    world.run_for(LIMIT_MS)
    assert joining.id not in ids(leader)


def test_a_refused_addition_is_tried_again() -> None:
    world = started(3)
    leader = elected(world)
    joining = joined(world, auto_join=True)
    other = world.join()
    world.run_for(1_000)
    # the leader needs both for a commit, and one of them does not answer: the change does not end
    silent = next(node for node in world.controllers[:3] if node is not leader)
    second = next(node for node in world.controllers[:3] if node not in (leader, silent))
    silent.kill()
    assert answered(world, leader, add_request(other)).error_code == 0
    other.kill()
    world.run_until(lambda: bool(own_requests(world)), LIMIT_MS)
    assert joining.id not in ids(second)
    silent.start()
    other.start()
    world.run_until(lambda: all(joining.id in ids(node) for node in world.controllers), LIMIT_MS)


def test_the_epoch_in_an_answer_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The leader that is asked may know a newer one."""
    world = started(3)
    leader = elected(world)
    world.run_for(1_000)
    moved, third = (node for node in world.controllers if node is not leader)
    moved.kill()
    moved.port = 9200
    moved.configured = [moved.voter]
    moved.start()
    send = world.send

    def answered_by_a_newer_leader(sender: Any, to: Any, request: Any, on_result: Any, timeout_ms: int) -> None:
        if not isinstance(request, UpdateRaftVoterRequest) or request.current_leader_epoch > 1:
            send(sender, to, request, on_result, timeout_ms)
            return
        named = UpdateRaftVoterResponse.CurrentLeader(
            leader_id=third.id, leader_epoch=7, host=third.endpoint.host, port=third.endpoint.port
        )
        result = UpdateRaftVoterResponse(error_code=ErrorCode.FENCED_LEADER_EPOCH, current_leader=named)
        world.later(1, lambda: on_result(result), sender)

    monkeypatch.setattr(world, "send", answered_by_a_newer_leader)
    world.run_until(lambda: moved.quorum.epoch == 7, LIMIT_MS)
    assert (moved.quorum.leader_id, moved.quorum.leader_endpoint) == (third.id, third.endpoint)


def test_without_auto_join_a_lost_disk_stays_an_observer() -> None:
    world = started(3)
    leader = elected(world)
    world.run_for(1_000)
    lost = next(node for node in world.controllers if node is not leader)
    lost.replace_disk()
    lost.configured = [lost.voter]
    lost.start()
    world.run_for(10_000)
    assert own_requests(world) == [] and not lost.quorum.is_voter
