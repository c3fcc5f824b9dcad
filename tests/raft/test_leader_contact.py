"""A leader whose voters are cut off from it: a test fetches in their place, and sees what counts for the leader."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from heirlog.pending import Pending
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import (
    BeginQuorumEpochRequest,
    DescribeQuorumRequest,
    EndQuorumEpochRequest,
    FetchRequest,
    FetchSnapshotRequest,
)
from heirlog.protocol.types import METADATA_TOPIC, METADATA_TOPIC_ID, Endpoint
from heirlog.raft import epoch_messages
from heirlog.raft.divergence import Position
from heirlog.raft.epoch_state import QuorumRole
from heirlog.raft.quorum import HAND_OVER_LIMIT_MS
from heirlog.raft.replica_key import ReplicaKey

from .quorum_world import CLUSTER_ID, Node, World, handle, topic
from .test_elections import elected, started

LIMIT_MS = 15_000


def alone(voters: int = 3, **config: int) -> tuple[World, Node, list[Node]]:
    """The leader, and the voters, whose own requests do not arrive."""
    world = started(voters, **config)
    leader = elected(world)
    world.run_for(1_000)
    others = [node for node in world.controllers if node is not leader]
    for node in others:
        world.isolate(node)
    return world, leader, others


def fetch(leader: Node, node: Node, offset: int, *, max_wait_ms: int = 0, high_watermark: int = 2**63 - 1) -> Any:
    """A fetch of the replica from its log end; every record is of the leader's epoch."""
    asked = FetchRequest.FetchPartition(
        partition=0,
        current_leader_epoch=leader.quorum.epoch,
        fetch_offset=offset,
        last_fetched_epoch=leader.quorum.epoch if offset else 0,
        partition_max_bytes=1 << 20,
        high_watermark=high_watermark,
        replica_directory_id=node.directory_id,
    )
    answer = leader.quorum.fetch(
        FetchRequest(
            cluster_id=CLUSTER_ID,
            replica_state=FetchRequest.ReplicaState(replica_id=node.id),
            max_wait_ms=max_wait_ms,
            max_bytes=1 << 20,
            topics=[FetchRequest.FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=[asked])],
        )
    )
    answers: list[Any] = []
    if isinstance(answer, Pending):
        answer.then(answers.append)
    else:
        answers.append(answer)
    return answers


def partition(answers: list[Any]) -> Any:
    assert len(answers) == 1
    return answers[0].responses[0].partitions[0]


def role(node: Node) -> QuorumRole:
    state = node.quorum.state
    assert state is not None
    return state.role


def append(leader: Node, name: str) -> int:
    return leader.quorum.append([topic(name)])


# the high watermark


def test_a_voter_may_fetch_again_from_below_and_the_high_watermark_stays() -> None:
    """Its disk was restored, or it has truncated its log (KAFKA-12181)."""
    world, leader, (voter, _) = alone()
    end = append(leader, "a") + 1
    world.run_for(20)
    fetch(leader, voter, end)
    world.run_for(20)
    assert leader.quorum.high_watermark == end
    assert partition(fetch(leader, voter, 0)).error_code == ErrorCode.NONE
    world.run_for(20)
    assert leader.quorum.high_watermark == end
    nested = DescribeQuorumRequest
    asked = nested.TopicData(topic_name=METADATA_TOPIC, partitions=[nested.PartitionData(partition_index=0)])
    described = handle(leader, nested(topics=[asked])).topics[0].partitions[0]
    ends = {one.replica_id: one.log_end_offset for one in described.current_voters}
    assert (ends[voter.id], described.high_watermark) == (0, end)
    append(leader, "b")
    world.run_for(20)
    assert leader.quorum.high_watermark == end, "what it had acknowledged counts no more"


def test_voters_that_are_added_do_not_lower_the_high_watermark_and_raise_it_once_they_have_fetched() -> None:
    world, leader, _ = alone(1)
    committed = leader.quorum.high_watermark
    added = [world.join(), world.join()]
    for node in added:
        node.kill()
    leader_state: Any = leader.quorum._role
    leader_state._append_voters([leader.voter, added[0].voter])
    world.run_for(20)
    assert leader.quorum.high_watermark == committed, "two of two are needed now, and one has fetched nothing"
    fetch(leader, added[0], committed - 1)
    world.run_for(20)
    assert leader.quorum.high_watermark == committed
    fetch(leader, added[0], committed + 1)
    world.run_for(20)
    assert leader.quorum.high_watermark == committed + 1


def test_a_fetch_that_knows_no_high_watermark_waits_while_the_leader_knows_none_either() -> None:
    world = started(3)

    def led() -> list[Node]:
        return [node for node in world.controllers if role(node) is QuorumRole.LEADER]

    world.run_until(lambda: bool(led()), LIMIT_MS)
    (leader,) = led()
    voter, observer = (node for node in world.controllers if node is not leader)
    for node in (voter, observer):
        world.isolate(node)
    world.run_for(20)
    end = leader.quorum.log_end_offset
    waiting = fetch(leader, observer, end, max_wait_ms=400, high_watermark=-1)
    assert waiting == []
    fetch(leader, voter, end, max_wait_ms=400, high_watermark=-1)
    world.run_for(20)
    assert partition(waiting).high_watermark == end
    assert partition(fetch(leader, voter, end, max_wait_ms=400, high_watermark=-1)).high_watermark == end
    assert fetch(leader, voter, end, max_wait_ms=400, high_watermark=end) == []


# the end of the leadership


@pytest.mark.parametrize("how", ["resigned", "deposed", "followed"])
def test_waiting_fetches_end_with_the_leadership(how: str) -> None:
    world, leader, (voter, other) = alone()
    epoch = leader.quorum.epoch
    waiting = fetch(leader, voter, leader.quorum.log_end_offset, max_wait_ms=10_000)
    assert waiting == []
    if how == "resigned":
        leader.quorum.hand_over(lambda: None)
    elif how == "deposed":
        me = ReplicaKey(other.id, other.directory_id)
        end = Position(leader.quorum.log_end_offset, epoch)
        handle(leader, epoch_messages.vote_request(CLUSTER_ID, me, leader.voter.key, epoch + 1, end, True))
    else:
        handle(leader, epoch_messages.begin_request(CLUSTER_ID, other.voter, leader.voter.key, epoch + 1))
    world.run_for(20)
    assert partition(waiting).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    expected = {"resigned": QuorumRole.RESIGNED, "deposed": QuorumRole.UNATTACHED, "followed": QuorumRole.FOLLOWER}
    assert role(leader) is expected[how]


def test_a_leader_that_has_resigned_follows_the_next_one() -> None:
    world, leader, (voter, _) = alone()
    leader.quorum.hand_over(lambda: None)
    epoch = leader.quorum.epoch + 1
    handle(leader, epoch_messages.begin_request(CLUSTER_ID, voter.voter, leader.voter.key, epoch))
    world.run_for(20)
    assert (role(leader), leader.quorum.leader_id, leader.quorum.epoch) == (QuorumRole.FOLLOWER, voter.id, epoch)


def test_a_leader_that_has_resigned_votes_in_later_epochs_only() -> None:
    world, leader, (voter, other) = alone()
    epoch, offset = leader.quorum.epoch, leader.quorum.log_end_offset
    leader.quorum.hand_over(lambda: None)

    def vote(node: Node, in_epoch: int) -> Any:
        key = ReplicaKey(node.id, node.directory_id)
        answers: list[Any] = []
        # a candidate has no records of the epoch in which it asks
        end = Position(offset, in_epoch - 1)
        request = epoch_messages.vote_request(CLUSTER_ID, key, leader.voter.key, in_epoch, end, False)
        handle(leader, request).then(answers.append)
        world.run_for(20)
        return answers[0].topics[0].partitions[0]

    same = vote(voter, epoch)
    assert (same.error_code, same.vote_granted, role(leader)) == (ErrorCode.NONE, False, QuorumRole.RESIGNED)
    assert vote(voter, epoch).leader_id == -1, "it leads no more, and nobody may fetch from it"
    assert vote(voter, epoch + 1).vote_granted
    assert not vote(other, epoch + 1).vote_granted


def test_a_leader_that_reaches_nobody_stops_after_a_time() -> None:
    world, leader, _ = alone()
    began_ms = world.now_ms
    ended_ms: list[int] = []
    leader.quorum.hand_over(lambda: ended_ms.append(world.now_ms))
    world.run_for(5_000)
    assert len(ended_ms) == 1
    assert 1_000 <= ended_ms[0] - began_ms <= HAND_OVER_LIMIT_MS


def sent(world: World, monkeypatch: pytest.MonkeyPatch, kind: type) -> list[tuple[str, Any]]:
    """(host, request) of each request of a kind from now on."""
    found: list[tuple[str, Any]] = []
    send = world.send

    def noted(sender: Any, to: Any, request: Any, on_result: Callable[[Any], None], timeout_ms: int) -> None:
        if isinstance(request, kind):
            found.append((to.host, request))
        send(sender, to, request, on_result, timeout_ms)

    monkeypatch.setattr(world, "send", noted)
    return found


def test_the_voter_with_the_longest_log_is_the_first_successor_and_silent_voters_are_notified_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, leader, (shorter, longer) = alone(request_timeout_ms=200)
    end = append(leader, "a") + 1
    fetch(leader, longer, end)
    fetch(leader, shorter, end - 1)
    requests = sent(world, monkeypatch, EndQuorumEpochRequest)
    leader.quorum.hand_over(lambda: None)
    world.run_for(900)
    assert role(leader) is QuorumRole.RESIGNED
    for node in (shorter, longer):
        assert 3 <= sum(host == node.endpoint.host for host, _ in requests) <= 5
    for _, request in requests:
        asked = request.topics[0].partitions[0]
        assert [one.candidate_id for one in asked.preferred_candidates] == [longer.id, shorter.id]
        assert asked.leader_epoch == leader.quorum.epoch


# the majority that fetches, and announcements to the voters that do not


def fetch_snapshot(leader: Node, node: Node) -> None:
    nested = FetchSnapshotRequest
    asked = nested.PartitionSnapshot(
        partition=0,
        current_leader_epoch=leader.quorum.epoch,
        snapshot_id=nested.SnapshotId(end_offset=1, epoch=1),
        position=0,
        replica_directory_id=node.directory_id,
    )
    topics = [nested.TopicSnapshot(name=METADATA_TOPIC, partitions=[asked])]
    leader.quorum.fetch_snapshot(nested(cluster_id=CLUSTER_ID, replica_id=node.id, max_bytes=1, topics=topics))


def run(world: World, leader: Node, present: list[Node], *, by_snapshots: bool = False) -> None:
    """Ten seconds in which these nodes fetch twice a second."""
    for _ in range(20):
        for node in present if role(leader) is QuorumRole.LEADER else []:
            if by_snapshots:
                fetch_snapshot(leader, node)
            else:
                fetch(leader, node, leader.quorum.log_end_offset)
        world.run_for(500)


@pytest.mark.parametrize("by_snapshots", [False, True])
@pytest.mark.parametrize(("voters", "present", "leads"), [(3, 0, False), (3, 1, True), (5, 1, False), (5, 2, True)])
def test_a_leader_needs_a_majority_that_fetches(voters: int, present: int, leads: bool, by_snapshots: bool) -> None:
    world, leader, others = alone(voters)
    run(world, leader, others[:present], by_snapshots=by_snapshots)
    assert (role(leader) is QuorumRole.LEADER) is leads


def test_an_observer_that_fetches_is_no_part_of_the_majority_and_the_voters_are_those_of_now() -> None:
    world, leader, (voter, silent) = alone()
    added = [world.join(), world.join()]
    for node in added:
        node.kill()
    leader_state: Any = leader.quorum._role
    run(world, leader, [voter, added[0]])
    assert role(leader) is QuorumRole.LEADER
    leader_state._append_voters([leader.voter, voter.voter, added[0].voter])
    run(world, leader, [added[0]])
    assert role(leader) is QuorumRole.LEADER, "it is a voter now, and was an observer before"
    leader_state._append_voters([leader.voter, voter.voter, added[1].voter])
    run(world, leader, [added[0], silent])
    assert role(leader) is not QuorumRole.LEADER, "neither is a voter any more"


def test_a_leader_announces_itself_to_the_voters_that_do_not_fetch(monkeypatch: pytest.MonkeyPatch) -> None:
    world, leader, (voter, silent) = alone(request_timeout_ms=500)
    run(world, leader, [voter])
    requests = sent(world, monkeypatch, BeginQuorumEpochRequest)
    run(world, leader, [voter])
    assert {host for host, _ in requests} == {silent.endpoint.host}
    assert 9 <= len(requests) <= 11, "every half fetch timeout"
    for _, request in requests:
        assert request.topics[0].partitions[0].leader_epoch == leader.quorum.epoch
        assert [Endpoint(one.host, one.port) for one in request.leader_endpoints] == [leader.endpoint]
