"""AddRaftVoter, RemoveRaftVoter and UpdateRaftVoter on a leader: what is refused, and when they are answered."""

from __future__ import annotations

from typing import Any

import pytest

from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import ApiVersionsRequest, ApiVersionsResponse
from heirlog.protocol.types import ZERO_UUID
from heirlog.raft.epoch_state import QuorumRole

from .quorum_world import Node, World, add_request, remove_request, topic, update_request
from .test_elections import active, elected, started

LIMIT_MS = 15_000


def with_observer(voters: int = 1) -> tuple[World, Node, Node]:
    """The world, its leader, and a controller that has caught up as an observer."""
    world = started(voters)
    leader = elected(world)
    joining = world.join()
    world.run_until(lambda: joining.quorum.high_watermark >= leader.quorum.high_watermark >= 0)
    world.run_for(1_000)
    return world, leader, joining


def answered(world: World, node: Node, request: Any) -> Any:
    answers = world.ask(node, request)
    world.run_until(lambda: bool(answers), LIMIT_MS)
    return answers[0]


def code(answer: Any) -> ErrorCode:
    return ErrorCode(answer.error_code)


def ids(node: Node) -> list[int]:
    return sorted(voter.id for voter in node.quorum.voters)


def others(world: World, leader: Node) -> list[Node]:
    return [node for node in world.controllers if node is not leader]


# adding


@pytest.mark.parametrize("voters", [1, 2, 3])
def test_an_observer_becomes_a_voter(voters: int) -> None:
    world, leader, joining = with_observer(voters)
    answer = answered(world, leader, add_request(joining))
    assert (code(answer), answer.error_message) == (ErrorCode.NONE, None)
    world.run_for(1_000)
    assert all(joining.id in ids(node) and len(ids(node)) == voters + 1 for node in world.controllers)
    assert active(world) == [leader]


def test_a_voter_that_was_added_counts_for_commits_and_can_lead() -> None:
    world, leader, joining = with_observer()
    assert code(answered(world, leader, add_request(joining))) is ErrorCode.NONE
    joining.kill()
    offset = leader.quorum.append([topic("alone")])
    world.run_for(1_000)
    assert leader.quorum.high_watermark <= offset, "both must have it"
    joining.start()
    world.run_until(lambda: joining.seen.names == ["alone"], LIMIT_MS)
    third = world.join()
    world.run_for(1_000)
    now = elected(world)
    assert code(answered(world, now, add_request(third))) is ErrorCode.NONE
    now.power_cut()
    assert elected(world, epoch_above=now.quorum.epoch) is not now


def test_an_addition_may_be_answered_before_its_commit_and_stays_in_progress_until_then() -> None:
    world, leader, joining = with_observer()
    world.isolate(joining)
    world.cut.discard((leader.id, joining.id))
    world.cut.discard((joining.id, leader.id))
    request = add_request(joining, ack_when_committed=False)
    answers = world.ask(leader, request)
    world.run_until(lambda: bool(answers), LIMIT_MS)
    assert code(answers[0]) is ErrorCode.NONE
    assert leader.quorum.high_watermark < leader.quorum.log_end_offset, "the new voter has not fetched its record"
    refused = answered(world, leader, remove_request(joining))
    assert code(refused) is ErrorCode.REQUEST_TIMED_OUT
    assert "another change of the voters is in progress" in refused.error_message
    world.run_for(500)
    assert code(answered(world, leader, remove_request(joining))) is ErrorCode.NONE


def refusal(world: World, leader: Node, request: Any) -> tuple[ErrorCode, str]:
    """Refused at once or later, and nothing is appended."""
    before = leader.quorum.log_end_offset, leader.quorum.voters
    answer = answered(world, leader, request)
    assert (leader.quorum.log_end_offset, leader.quorum.voters) == before
    return code(answer), answer.error_message


def test_requests_are_refused_for_another_cluster_or_without_a_key_or_an_endpoint() -> None:
    world, leader, joining = with_observer()
    request = add_request(joining)
    request.cluster_id = "another"
    assert refusal(world, leader, request)[0] is ErrorCode.INCONSISTENT_CLUSTER_ID
    removal = remove_request(leader)
    removal.cluster_id = ""
    assert refusal(world, leader, removal)[0] is ErrorCode.INCONSISTENT_CLUSTER_ID
    for fields in ({"voter_id": -1}, {"voter_directory_id": ZERO_UUID}):
        assert refusal(world, leader, add_request(joining, **fields))[0] is ErrorCode.INVALID_REQUEST
        assert refusal(world, leader, remove_request(leader, **fields))[0] is ErrorCode.INVALID_REQUEST
    error, message = refusal(world, leader, add_request(joining, listeners=[]))
    assert (error, "no endpoint for the listener CONTROLLER" in message) == (ErrorCode.INVALID_REQUEST, True)


def test_a_controller_that_does_not_lead_names_the_leader() -> None:
    world = started(3)
    leader = elected(world)
    follower = others(world, leader)[0]
    for request in (add_request(leader), remove_request(leader)):
        error, message = refusal(world, follower, request)
        assert error is ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert f"send the request to its leader, controller {leader.id} at {leader.endpoint}" in message


def test_a_known_id_is_refused_whatever_its_disk_is() -> None:
    world = started(3)
    leader = elected(world)
    follower = others(world, leader)[0]
    error, message = refusal(world, leader, add_request(follower))
    assert (error, message) == (ErrorCode.DUPLICATE_VOTER, f"controller {follower.id} is a voter already")
    follower.replace_disk()
    error, message = refusal(world, leader, add_request(follower))
    assert (error, "remove that one first" in message) == (ErrorCode.DUPLICATE_VOTER, True)


def test_a_controller_that_does_not_answer_is_not_added() -> None:
    world, leader, joining = with_observer()
    joining.kill()
    error, message = refusal(world, leader, add_request(joining))
    assert error is ErrorCode.REQUEST_TIMED_OUT
    assert f"could not be asked for its versions at {joining.endpoint}" in message
    joining.start()
    world.run_for(1_000)
    assert code(answered(world, leader, add_request(joining))) is ErrorCode.NONE


@pytest.mark.parametrize("versions", [(0, 0), (2, 3)])
def test_a_controller_of_other_versions_is_not_added(versions: tuple[int, int]) -> None:
    world, leader, joining = with_observer()
    joining.kraft_versions = versions
    error, message = refusal(world, leader, add_request(joining))
    assert (error, "this quorum uses kraft.version 1" in message) == (ErrorCode.INVALID_REQUEST, True)


def test_a_controller_that_does_not_fetch_is_not_added() -> None:
    world, leader, joining = with_observer()
    request = add_request(joining, voter_directory_id=b"another-disk-000")
    error, message = refusal(world, leader, request)
    assert (error, "does not fetch from this leader" in message) == (ErrorCode.REQUEST_TIMED_OUT, True)


def test_a_controller_that_has_not_caught_up_is_not_added(monkeypatch: pytest.MonkeyPatch) -> None:
    world, leader, joining = with_observer()
    state = leader.quorum._role.progress._replicas[joining.voter.key]  # type: ignore[union-attr]
    monkeypatch.setattr(state, "last_caught_up_ms", -1)
    world.cut.add((joining.id, leader.id))
    world.run_for(1_000)
    world.cut.clear()
    request = add_request(joining)
    answers = world.ask(leader, request)
    state.last_caught_up_ms = -1
    world.run_until(lambda: bool(answers), LIMIT_MS)
    assert code(answers[0]) is ErrorCode.REQUEST_TIMED_OUT
    assert "has fetched only up to offset" in answers[0].error_message


def test_a_leader_that_has_committed_nothing_yet_changes_no_voters() -> None:
    world = started(3)
    first = elected(world)
    world.run_for(500)
    first.kill()
    left = others(world, first)

    def leading() -> list[Node]:
        states = [(node, node.quorum.state) for node in left]
        return [node for node, state in states if state is not None and state.role is QuorumRole.LEADER]

    world.run_until(lambda: bool(leading()), LIMIT_MS)
    (leader,) = leading()
    world.isolate(leader)
    answer = answered(world, leader, remove_request(first))
    assert code(answer) is ErrorCode.REQUEST_TIMED_OUT
    assert "has committed nothing yet" in answer.error_message
    world.heal()
    world.run_for(1_000)
    assert code(answered(world, leader, remove_request(first))) is ErrorCode.NONE


def test_the_next_change_waits_for_the_commit_of_the_one_before() -> None:
    """Also after the request of the one before has timed out."""
    world = started(3, request_timeout_ms=300)
    leader = elected(world)
    world.run_for(500)
    first, second = others(world, leader)
    world.isolate(leader)
    answers = world.ask(leader, remove_request(first))
    assert code(answered(world, leader, remove_request(second))) is ErrorCode.REQUEST_TIMED_OUT
    world.run_until(lambda: bool(answers), LIMIT_MS)
    assert code(answers[0]) is ErrorCode.REQUEST_TIMED_OUT
    assert "its record is not committed yet" in answers[0].error_message
    error, message = refusal(world, leader, remove_request(second))
    assert error is ErrorCode.REQUEST_TIMED_OUT
    assert "the previous change of the voters is not committed" in message
    world.heal()
    world.run_for(1_500)
    assert ids(second) == sorted({100, 101, 102} - {first.id})
    assert code(answered(world, leader, remove_request(first))) is ErrorCode.VOTER_NOT_FOUND, "it was committed later"
    assert code(answered(world, leader, remove_request(second))) is ErrorCode.NONE


def test_a_lost_leadership_ends_the_change() -> None:
    world = started(3)
    leader = elected(world)
    world.run_for(500)
    first, second = others(world, leader)
    world.isolate(leader)
    world.run_for(1_500)
    answers = world.ask(leader, remove_request(first))
    world.run_until(lambda: bool(answers), LIMIT_MS)
    assert code(answers[0]) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert ids(leader) == sorted({100, 101, 102} - {first.id}), "in force as long as its record is in the log"
    world.heal()
    world.run_for(5_000)
    assert all(ids(node) == [100, 101, 102] for node in world.controllers), "its record was truncated"
    assert ids(second) == [100, 101, 102]


# removing


def test_a_removed_follower_is_an_observer() -> None:
    world = started(3)
    leader = elected(world)
    removed, left = others(world, leader)
    world.run_for(500)
    assert code(answered(world, leader, remove_request(removed))) is ErrorCode.NONE
    world.run_for(500)
    assert all(ids(node) == sorted({leader.id, left.id}) for node in world.controllers)
    removed.kill()
    offset = leader.quorum.append([topic("a")])
    world.run_until(lambda: leader.quorum.high_watermark > offset)
    removed.start()
    world.run_until(lambda: removed.seen.names == ["a"], LIMIT_MS)


def test_a_voter_of_another_disk_or_the_last_one_cannot_be_removed() -> None:
    world = started(1)
    leader = elected(world)
    error, message = refusal(world, leader, remove_request(leader, voter_directory_id=b"another-disk-000"))
    assert (error, "is not a voter" in message) == (ErrorCode.VOTER_NOT_FOUND, True)
    error, message = refusal(world, leader, remove_request(leader))
    assert (error, "is the only voter" in message) == (ErrorCode.VOTER_NOT_FOUND, True)


@pytest.mark.parametrize("voters", [2, 3])
def test_a_leader_that_removes_itself_leads_until_the_commit_and_hands_over(voters: int) -> None:
    world = started(voters)
    leader = elected(world)
    world.run_for(3_000)
    answers = world.ask(leader, remove_request(leader))
    leader.quorum.append([topic("last")])
    assert answers == [], "a majority of the others must have it"
    world.run_until(lambda: bool(answers), LIMIT_MS)
    assert code(answers[0]) is ErrorCode.NONE
    committed_ms = world.now_ms
    following = elected(world, epoch_above=leader.quorum.epoch)
    assert following is not leader
    assert world.now_ms - committed_ms < 500, "no timeout was waited for"
    world.run_until(lambda: all(node.seen.names == ["last"] for node in world.controllers), LIMIT_MS)
    world.run_for(10_000)
    assert active(world) == [following]
    state = leader.quorum.state
    assert state is not None and state.role is QuorumRole.FOLLOWER


def test_a_leader_that_was_removed_does_not_count_itself() -> None:
    world = started(3)
    leader = elected(world)
    first, second = others(world, leader)
    world.run_for(1_000)
    world.isolate(second)
    answers = world.ask(leader, remove_request(leader))
    world.run_for(1_500)
    assert answers == [], "one of the two that are left has it, and that is no majority"
    assert first.quorum.log_end_offset == leader.quorum.log_end_offset
    world.heal()
    world.run_until(lambda: bool(answers), LIMIT_MS)
    assert code(answers[0]) is ErrorCode.NONE


# replacing a disk


def test_a_replaced_disk_counts_only_after_it_was_added() -> None:
    world = started(3)
    leader = elected(world)
    replaced, other = others(world, leader)
    world.run_for(500)
    old = remove_request(replaced)
    replaced.replace_disk()
    replaced.configured = [replaced.voter]
    replaced.start()
    world.run_for(2_000)
    assert replaced.quorum.log_end_offset == leader.quorum.log_end_offset
    world.isolate(other)
    offset = leader.quorum.append([topic("a")])
    world.run_for(500)
    assert leader.quorum.high_watermark <= offset, "the new disk is an observer's"
    world.heal()
    world.run_for(500)
    assert code(answered(world, leader, old)) is ErrorCode.NONE
    assert code(answered(world, leader, add_request(replaced))) is ErrorCode.NONE
    world.isolate(other)
    offset = leader.quorum.append([topic("b")])
    world.run_until(lambda: leader.quorum.high_watermark > offset, LIMIT_MS)


# updating


def test_a_voter_that_moved_updates_its_endpoint() -> None:
    world = started(3)
    leader = elected(world)
    follower = others(world, leader)[0]
    world.run_for(500)
    epoch = leader.quorum.epoch
    end = leader.quorum.log_end_offset
    answer = answered(world, leader, update_request(follower, epoch))
    assert code(answer) is ErrorCode.NONE
    assert leader.quorum.log_end_offset == end, "nothing was to change"
    listeners = [type(update_request(follower, epoch).listeners[0])(name="CONTROLLER", host="moved", port=1)]
    answer = answered(world, leader, update_request(follower, epoch, listeners=listeners))
    assert code(answer) is ErrorCode.REQUEST_TIMED_OUT, "nothing answers there"
    named = answer.current_leader
    assert (named.leader_id, named.leader_epoch, named.host) == (leader.id, epoch, leader.endpoint.host)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"epoch": -1}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"epoch": 1}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ({"cluster_id": "another"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"voter_id": -1}, ErrorCode.INVALID_REQUEST),
        ({"voter_directory_id": ZERO_UUID}, ErrorCode.INVALID_REQUEST),
        ({"voter_directory_id": b"another-disk-000"}, ErrorCode.VOTER_NOT_FOUND),
        ({"listeners": []}, ErrorCode.INVALID_REQUEST),
        ({"versions": (1, 0)}, ErrorCode.INVALID_REQUEST),
        ({"versions": (2, 3)}, ErrorCode.INVALID_REQUEST),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else value.name,
)
def test_an_update_that_is_refused_changes_nothing(fields: dict[str, Any], expected: ErrorCode) -> None:
    world = started(3)
    leader = elected(world)
    follower = others(world, leader)[0]
    world.run_for(500)
    request = update_request(follower, leader.quorum.epoch)
    for name, value in fields.items():
        if name == "epoch":
            request.current_leader_epoch += value
        elif name == "versions":
            feature = request.k_raft_version_feature
            feature.min_supported_version, feature.max_supported_version = value
        else:
            setattr(request, name, value)
    before = leader.quorum.log_end_offset
    answer = answered(world, leader, request)
    assert (code(answer), answer.current_leader.leader_id) == (expected, leader.id)
    assert leader.quorum.log_end_offset == before
    to_follower = answered(world, follower, update_request(follower, leader.quorum.epoch))
    assert code(to_follower) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert to_follower.current_leader.leader_id == leader.id


@pytest.mark.parametrize("ends_by", ["timeout", "resignation"])
def test_a_late_answer_of_a_new_voter_adds_nothing_once_the_change_has_ended(ends_by: str) -> None:
    world, leader, joining = with_observer(2)
    end, voters = leader.quorum.log_end_offset, leader.quorum.voters
    late: list[Any] = []
    send = world.send

    def held(sender: Any, to: Any, request: Any, on_result: Any, timeout_ms: int) -> None:
        is_first = isinstance(request, ApiVersionsRequest) and not late
        send(sender, to, request, late.append if is_first else on_result, timeout_ms)
        if is_first:
            late.append(on_result)

    world.send = held  # type: ignore[method-assign]
    answers = world.ask(leader, add_request(joining))
    world.run_for(20)
    on_result, answer = late
    if ends_by == "resignation":
        leader.quorum.hand_over(lambda: None)
    world.run_until(lambda: bool(answers), LIMIT_MS)
    expected = {"timeout": ErrorCode.REQUEST_TIMED_OUT, "resignation": ErrorCode.NOT_LEADER_OR_FOLLOWER}
    assert code(answers[0]) is expected[ends_by]
    on_result(answer)
    assert (leader.quorum.log_end_offset, leader.quorum.voters) == (end, voters)
    world.run_for(3_000)
    assert all(len(node.quorum.voters) == 2 for node in world.controllers)


def test_an_endpoint_that_takes_no_votes_is_not_added(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker's listener, for example."""
    world, leader, joining = with_observer()
    monkeypatch.setattr("raft.quorum_world.VOTE_API", ApiVersionsResponse.ApiVersion(api_key=0))
    error, message = refusal(world, leader, add_request(joining))
    assert (error, "is not a controller's listener" in message) == (ErrorCode.INVALID_REQUEST, True)
