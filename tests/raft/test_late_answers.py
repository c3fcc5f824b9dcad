"""Answers that a node no longer waits for, answers that it cannot use, and peers of older versions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from heirlog.env import SendFailure
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import FetchRequest, FetchSnapshotRequest, VoteRequest, VoteResponse
from heirlog.protocol.primitives import records_view
from heirlog.raft.epoch_state import QuorumRole

from .quorum_world import Node, World, topic
from .test_elections import commit, elected, started
from .test_leader_contact import role

LIMIT_MS = 15_000
Answer = Callable[[Any], None]


class Held:
    """The network, with the answers to some requests in the hands of the test."""

    def __init__(
        self, world: World, monkeypatch: pytest.MonkeyPatch, wanted: Callable[[Node | None, Any], bool]
    ) -> None:
        self.answers: list[tuple[Answer, Any]] = []
        send = world.send

        def held(sender: Any, to: Any, request: Any, on_result: Answer, timeout_ms: int) -> None:
            source = next((node for node in world.nodes if node.incarnation is sender), None)
            if wanted(source, request):
                send(sender, to, request, lambda result: self.answers.append((on_result, result)), timeout_ms)
            else:
                send(sender, to, request, on_result, timeout_ms)

        monkeypatch.setattr(world, "send", held)

    def deliver(self) -> None:
        for on_result, result in self.answers:
            on_result(result)
        self.answers.clear()


@pytest.mark.parametrize("later", ["candidate", "leader", "follower"])
def test_a_fetch_answer_of_an_older_role_appends_nothing(later: str, monkeypatch: pytest.MonkeyPatch) -> None:
    world = started(3)
    leader = elected(world)
    world.run_for(1_000)
    voter, other = (node for node in world.controllers if node is not leader)
    held = Held(world, monkeypatch, lambda source, request: source is voter and isinstance(request, FetchRequest))
    leader.quorum.append([topic("a")])
    world.run_until(lambda: any(not isinstance(result, SendFailure) for _, result in held.answers), LIMIT_MS)
    monkeypatch.undo()
    if later == "candidate":
        world.isolate(voter)
        world.run_until(lambda: role(voter) is QuorumRole.PROSPECTIVE, LIMIT_MS)
    else:
        leader.kill()
        if later == "leader":
            other.power_cut()
            other.start()
        second = elected(world, epoch_above=leader.quorum.epoch)
        assert (second is voter) is (later == "leader") or later == "follower"
    before = voter.quorum.log_end_offset, voter.quorum.epoch, role(voter)
    held.deliver()
    assert (voter.quorum.log_end_offset, voter.quorum.epoch, role(voter)) == before
    world.run_for(20)
    assert voter.stopped_because is None


@pytest.mark.parametrize("pre_vote", [True, False])
def test_a_vote_of_an_older_role_elects_nobody(pre_vote: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    world = started(3)
    held = Held(
        world,
        monkeypatch,
        lambda _, request: isinstance(request, VoteRequest) and request.topics[0].partitions[0].pre_vote is pre_vote,
    )
    world.run_until(lambda: bool(held.answers), LIMIT_MS)
    asking = QuorumRole.PROSPECTIVE if pre_vote else QuorumRole.CANDIDATE
    world.run_until(lambda: all(role(node) is not asking for node in world.controllers), LIMIT_MS)
    before = [node.quorum.state for node in world.controllers]
    held.deliver()
    assert [node.quorum.state for node in world.controllers] == before
    monkeypatch.undo()
    elected(world)


@pytest.mark.parametrize("says", ["no such version", "an error"])
def test_peers_without_pre_votes_are_asked_for_votes_at_once(says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(voters=3)
    send = world.send

    def old(sender: Any, to: Any, request: Any, on_result: Answer, timeout_ms: int) -> None:
        if isinstance(request, VoteRequest) and request.topics[0].partitions[0].pre_vote:
            refused = VoteResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, topics=[])
            result = refused if says == "an error" else SendFailure("unsupported")
            world.later(1, lambda: on_result(result), sender)
        else:
            send(sender, to, request, on_result, timeout_ms)

    monkeypatch.setattr(world, "send", old)
    for node in world.controllers:
        node.start()
    commit(world, elected(world), "a")


def test_voters_that_do_not_accept_this_principal_are_asked_again_and_each_is_logged_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(voters=3)
    alone = world.leader
    send = world.send

    def refused(sender: Any, to: Any, request: Any, on_result: Answer, timeout_ms: int) -> None:
        if isinstance(request, VoteRequest):
            refusal = VoteResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, topics=[])
            world.later(1, lambda: on_result(refusal), sender)
        else:
            send(sender, to, request, on_result, timeout_ms)

    monkeypatch.setattr(world, "send", refused)
    alone.start()
    world.run_until(lambda: role(alone) is QuorumRole.PROSPECTIVE, LIMIT_MS)
    world.run_for(900)
    refusals = [values for _, _, event, values in world.logged if event == "quorum-vote-refused"]
    assert [values["voter"] for values in refusals] == [101, 102]
    assert {values["error"] for values in refusals} == {"CLUSTER_AUTHORIZATION_FAILED"}
    monkeypatch.undo()
    for node in world.controllers[1:]:
        node.start()
    elected(world)


@pytest.mark.parametrize("damage", ["a flipped bit", "no records", "an offset too far", "cut in the last batch"])
def test_records_that_cannot_be_appended_are_fetched_again(damage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(observers=1)
    world.start()
    world.commit("a")
    world.run_until_all_have("a")
    observer = world.observers[0]
    end = observer.quorum.log_end_offset
    damaged: list[int] = []
    send = world.send

    def damaging(sender: Any, to: Any, request: Any, on_result: Answer, timeout_ms: int) -> None:
        def answer(result: Any) -> None:
            # also if the last committed batch is compared
            if isinstance(request, FetchRequest) and len(damaged) < 3 and not isinstance(result, SendFailure):
                partition = result.responses[0].partitions[0]
                data = bytearray(records_view(partition.records))
                if data:
                    damaged.append(observer.quorum.log_end_offset)
                    partition.records = memoryview(spoilt(data, damage))
            on_result(result)

        send(sender, to, request, answer, timeout_ms)

    monkeypatch.setattr(world, "send", damaging)
    world.append("b")
    world.append("c")
    world.run_until_all_have("a", "b", "c")
    if damage == "cut in the last batch":
        assert damaged == [end, end + 1, end + 1], "the whole batch before it was appended"
    else:
        assert damaged == [end] * 3, "nothing was appended"
    assert observer.stopped_because is None


def spoilt(data: bytearray, damage: str) -> bytes:
    match damage:
        case "a flipped bit":
            data[80] ^= 1
        case "no records":
            data[:] = bytes(len(data))
        case "an offset too far":
            data[7] += 5
        case _:
            del data[-3:]
    return bytes(data)


# downloads


@pytest.mark.parametrize("failure", ["not found", "not the leader", "newer epoch", "another snapshot", "timed out"])
def test_a_download_that_fails_leaves_no_part_and_the_next_fetch_says_what_to_do(
    failure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(observers=1)
    world.start_leader()
    world.commit("a")
    world.run_until(lambda: world.leader.seen.names == ["a"])
    last = world.leader.seen.batches[-1]
    assert world.leader.quorum.snapshot([topic("a")], last.last_offset, last.epoch)
    world.run_until(lambda: world.leader.quorum.log.snapshots[-1].end_offset == last.last_offset + 1)
    observer = world.observers[0]
    pieces: list[Any] = []
    parts: list[bool] = []
    send = world.send

    def failing(sender: Any, to: Any, request: Any, on_result: Answer, timeout_ms: int) -> None:
        def answer(result: Any) -> None:
            pieces.append(request)
            on_result(spoil(result) if len(pieces) == 1 else result)
            parts.append(any(name.endswith(".part") for name in observer.disk.list(observer.log_directory)))

        send(sender, to, request, answer if isinstance(request, FetchSnapshotRequest) else on_result, timeout_ms)

    def spoil(result: Any) -> Any:
        partition = result.topics[0].partitions[0]
        match failure:
            case "not found":
                partition.error_code = ErrorCode.SNAPSHOT_NOT_FOUND
            case "not the leader":
                partition.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
            case "newer epoch":
                partition.error_code = ErrorCode.FENCED_LEADER_EPOCH
                partition.current_leader.leader_epoch = 9
            case "another snapshot":
                partition.snapshot_id.end_offset += 1
            case _:
                return SendFailure("timed-out")
        return result

    monkeypatch.setattr(world, "send", failing)
    observer.start()
    world.run_until_all_have("a")
    assert len(pieces) == 2 and parts[0] is False
    assert observer.seen.snapshot is not None
