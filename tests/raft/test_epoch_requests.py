"""Vote, BeginQuorumEpoch and EndQuorumEpoch: which requests are refused, and what a request changes."""

from __future__ import annotations

from typing import Any

import pytest
from raft.quorum_world import CLUSTER_ID, Node, World, handle

from heirlog.pending import Pending
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.types import METADATA_TOPIC, ZERO_UUID
from heirlog.raft import epoch_messages
from heirlog.raft.divergence import Position
from heirlog.raft.epoch_state import QuorumRole
from heirlog.raft.quorum_state import QuorumState, decode
from heirlog.raft.replica_key import ReplicaKey

AHEAD = Position(1_000, 1)


def world_of_three() -> World:
    """The first controller runs alone: it hears of the others only what a test sends."""
    world = World(voters=3)
    world.leader.start()
    return world


def asked(world: World, request: Any) -> Any:
    answers: list[Any] = []
    response = handle(world.leader, request)
    if isinstance(response, Pending):
        response.then(answers.append)
        world.run_until(lambda: bool(answers), 1_000)
        response = answers[0]
    return response


def vote(world: World, candidate: Node, epoch: int, end: Position = AHEAD, pre_vote: bool = False) -> Any:
    me = ReplicaKey(candidate.id, candidate.directory_id)
    return epoch_messages.vote_request(CLUSTER_ID, me, world.leader.voter.key, epoch, end, pre_vote)


def begin(world: World, leader: Node, epoch: int) -> Any:
    return epoch_messages.begin_request(CLUSTER_ID, leader.voter, world.leader.voter.key, epoch)


def stored(world: World) -> QuorumState:
    """What a power cut would leave."""
    return decode(world.leader.disk.durable[f"{world.leader.log_directory}/quorum-state"].durable)


def test_a_vote_is_durable_before_its_answer_leaves() -> None:
    world = world_of_three()
    second = world.controllers[1]
    answer = asked(world, vote(world, second, 5))
    assert answer.topics[0].partitions[0].vote_granted
    assert stored(world) == QuorumState(-1, 5, second.id, second.directory_id)


def test_a_second_candidate_of_the_epoch_is_refused_and_the_first_one_gets_its_vote_again() -> None:
    world = world_of_three()
    _, second, third = world.controllers
    asked(world, vote(world, second, 5))
    assert not asked(world, vote(world, third, 5)).topics[0].partitions[0].vote_granted
    assert asked(world, vote(world, second, 5)).topics[0].partitions[0].vote_granted


def test_requests_that_arrive_while_a_vote_is_written_wait_for_it() -> None:
    world = world_of_three()
    _, second, third = world.controllers
    first = handle(world.leader, vote(world, second, 5))
    other = handle(world.leader, vote(world, third, 5))
    assert isinstance(first, Pending) and isinstance(other, Pending)
    assert not first.done and not other.done
    world.run_until(lambda: first.done and other.done, 1_000)
    granted: list[bool] = []
    for answer in (first, other):
        answer.then(lambda response: granted.append(response.topics[0].partitions[0].vote_granted))
    assert granted == [True, False]


def test_a_candidate_whose_log_is_shorter_is_refused_but_its_epoch_counts() -> None:
    world = World(voters=3)
    for node in world.controllers:
        node.start()
    world.run_until(lambda: world.leader.quorum.log_end_offset > 0, 10_000)
    for node in world.controllers[1:]:
        node.kill()
    epoch = world.leader.quorum.epoch + 3
    answer = asked(world, vote(world, world.controllers[1], epoch, Position(0, 0)))
    partition = answer.topics[0].partitions[0]
    assert (partition.vote_granted, partition.leader_epoch) == (False, epoch)
    assert stored(world).leader_epoch == epoch


def test_a_granted_pre_vote_writes_nothing() -> None:
    world = world_of_three()
    world.run_for(100)
    before = stored(world)
    answer = asked(world, vote(world, world.controllers[1], 0, Position(0, 0), pre_vote=True))
    assert answer.topics[0].partitions[0].vote_granted
    assert stored(world) == before


def test_the_leader_of_begin_quorum_epoch_is_followed() -> None:
    world = world_of_three()
    second = world.controllers[1]
    answer = asked(world, begin(world, second, 4))
    assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE
    assert world.leader.quorum.leader_id == second.id
    assert world.leader.quorum.leader_endpoint == second.endpoint
    assert stored(world) == QuorumState(second.id, 4)


def test_a_follower_asks_for_votes_at_once_when_its_leader_resigns_and_prefers_it() -> None:
    world = world_of_three()
    _, second, third = world.controllers
    asked(world, begin(world, second, 4))
    successors = [world.leader.voter.key, third.voter.key]
    asked(world, epoch_messages.end_request(CLUSTER_ID, second.voter, 4, successors))
    world.run_for(10)
    state = world.leader.quorum.state
    assert state is not None and state.role is QuorumRole.PROSPECTIVE


@pytest.mark.parametrize("kind", ["vote", "begin", "end"])
@pytest.mark.parametrize("wrong", ["cluster", "topic", "older epoch"])
def test_requests_that_are_not_for_this_quorum_change_nothing(kind: str, wrong: str) -> None:
    world = world_of_three()
    second = world.controllers[1]
    asked(world, begin(world, second, 4))
    before = stored(world)
    epoch = 3 if wrong == "older epoch" else 9
    requests = {
        "vote": vote(world, second, epoch),
        "begin": begin(world, second, epoch),
        "end": epoch_messages.end_request(CLUSTER_ID, second.voter, epoch, []),
    }
    request = requests[kind]
    if wrong == "cluster":
        request.cluster_id = "another"
    elif wrong == "topic":
        request.topics[0].topic_name = "orders"
    answer = asked(world, request)
    if wrong == "cluster":
        assert answer.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
    elif wrong == "topic":
        assert answer.error_code == ErrorCode.INVALID_REQUEST
    else:
        assert answer.topics[0].partitions[0].error_code == ErrorCode.FENCED_LEADER_EPOCH
        assert answer.topics[0].partitions[0].leader_id == second.id
    assert stored(world) == before


@pytest.mark.parametrize(
    ("end", "replica_id"), [(Position(-1, 0), 101), (Position(0, -1), 101), (Position(0, 9), 101), (AHEAD, -1)]
)
def test_numbers_that_cannot_be_are_refused(end: Position, replica_id: int) -> None:
    world = world_of_three()
    request = vote(world, world.controllers[1], 9, end)
    request.topics[0].partitions[0].replica_id = replica_id
    assert asked(world, request).topics[0].partitions[0].error_code == ErrorCode.INVALID_REQUEST
    assert world.leader.quorum.epoch == 0


def test_a_request_for_another_voter_is_refused_after_its_epoch_took_effect() -> None:
    world = world_of_three()
    request = vote(world, world.controllers[1], 9)
    request.topics[0].partitions[0].voter_directory_id = b"\x01" * 16
    assert asked(world, request).topics[0].partitions[0].error_code == ErrorCode.INVALID_VOTER_KEY
    assert world.leader.quorum.epoch == 9
    request.topics[0].partitions[0].voter_directory_id = ZERO_UUID
    assert asked(world, request).topics[0].partitions[0].vote_granted


def test_a_leader_that_names_another_voter_is_refused_after_it_is_followed() -> None:
    world = world_of_three()
    second = world.controllers[1]
    request = begin(world, second, 4)
    request.topics[0].partitions[0].voter_directory_id = b"\x01" * 16
    assert asked(world, request).topics[0].partitions[0].error_code == ErrorCode.INVALID_VOTER_KEY
    assert (world.leader.quorum.leader_id, world.leader.quorum.epoch) == (second.id, 4)
    request = begin(world, second, 4)
    request.voter_id = -1
    assert asked(world, request).topics[0].partitions[0].error_code == ErrorCode.NONE, "version 0 names no voter"


def test_a_leader_that_names_no_endpoint_is_followed_where_the_voters_say_that_it_listens() -> None:
    """Version 0 has no endpoints. Without any, the leader is known and cannot be followed: votes are refused."""
    world = world_of_three()
    second, third = world.controllers[1:]
    request = begin(world, second, 4)
    request.leader_endpoints = []
    asked(world, request)
    assert world.leader.quorum.leader_endpoint == second.endpoint
    request = begin(world, Node(world, 7, True), 5)
    request.leader_endpoints = []
    asked(world, request)
    state = world.leader.quorum.state
    assert state is not None and (state.role, state.leader_id) == (QuorumRole.UNATTACHED, 7)
    assert not asked(world, vote(world, third, 5)).topics[0].partitions[0].vote_granted
    assert asked(world, vote(world, third, 5, pre_vote=True)).topics[0].partitions[0].vote_granted


def test_a_candidate_that_this_node_does_not_know_as_a_voter_gets_its_vote() -> None:
    """This node's set of voters may be the older one of the two."""
    world = world_of_three()
    unknown = Node(world, 7, True)
    assert asked(world, vote(world, unknown, 5, pre_vote=True)).topics[0].partitions[0].vote_granted
    assert asked(world, vote(world, unknown, 5)).topics[0].partitions[0].vote_granted
    assert stored(world) == QuorumState(-1, 5, unknown.id, unknown.directory_id)


def silent(node: Node) -> Node:
    """It runs, and answers nothing: a refused connection would shorten the timeout."""
    node.world.isolate(node)
    node.start()
    return node


@pytest.mark.parametrize(
    ("named", "delay_ms"), [("first", 0), ("second of two", 500), ("not", 1_000), ("with another disk", 1_000)]
)
def test_a_follower_waits_for_its_turn_when_its_leader_resigns(named: str, delay_ms: int) -> None:
    world = world_of_three()
    me, _, third = (node.voter.key for node in world.controllers)
    successors = {
        "first": [me, third],
        "second of two": [third, me],
        "not": [third],
        "with another disk": [me._replace(directory_id=third.directory_id), third],
    }
    leader = silent(world.controllers[1])
    asked(world, begin(world, leader, 4))
    world.run_for(100)
    ended_ms = world.now_ms
    asked(world, epoch_messages.end_request(CLUSTER_ID, leader.voter, 4, successors[named]))

    def is_asking() -> bool:
        state = world.leader.quorum.state
        return state is not None and state.role is QuorumRole.PROSPECTIVE

    world.run_until(is_asking, 3_000)
    assert 0 <= world.now_ms - ended_ms - delay_ms <= 5


def test_the_resignation_of_a_leader_that_was_not_known_counts_too() -> None:
    world = world_of_three()
    leader = silent(world.controllers[1])
    asked(world, epoch_messages.end_request(CLUSTER_ID, leader.voter, 4, [world.leader.voter.key]))
    world.run_for(5)
    state = world.leader.quorum.state
    assert state is not None
    assert (state.role, state.epoch, state.leader_id) == (QuorumRole.PROSPECTIVE, 4, leader.id)


def test_below_version_1_a_resigning_leader_names_its_successors_by_their_ids() -> None:
    world = world_of_three()
    leader, third = world.controllers[1:]
    asked(world, begin(world, silent(leader), 4))
    request = epoch_messages.end_request(CLUSTER_ID, leader.voter, 4, [third.voter.key, world.leader.voter.key])
    request.topics[0].partitions[0].preferred_candidates = []
    asked(world, request)
    world.run_for(490)
    state = world.leader.quorum.state
    assert state is not None and state.role is QuorumRole.FOLLOWER
    world.run_for(20)
    state = world.leader.quorum.state
    assert state is not None and state.role is QuorumRole.PROSPECTIVE


def test_a_second_leader_of_an_epoch_is_refused_and_this_node_runs_on() -> None:
    world = world_of_three()
    _, second, third = world.controllers
    asked(world, begin(world, second, 4))
    answer = asked(world, begin(world, third, 4))
    assert answer.topics[0].partitions[0].error_code == ErrorCode.INVALID_REQUEST
    assert world.leader.stopped_because is None
    assert any(event == "two-leaders-claimed" for _, _, event, _ in world.logged)


def test_answers_name_the_leader_and_where_it_listens() -> None:
    world = world_of_three()
    second, third = world.controllers[1:]
    asked(world, begin(world, second, 4))
    answer = asked(world, vote(world, third, 4, pre_vote=True))
    assert (answer.topics[0].topic_name, answer.topics[0].partitions[0].leader_id) == (METADATA_TOPIC, second.id)
    assert [(node.node_id, node.host) for node in answer.node_endpoints] == [(second.id, second.endpoint.host)]
