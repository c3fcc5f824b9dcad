"""What a leader keeps of share partitions, compared with what is stored when a session begins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from apis.guarded import ADMIN, Guarded
from apis.share_members import ACCEPT, RELEASE, Member, ack_code, acquired_in, partition_of, share_topic
from apis.shares import code, initializing

from heirlog.broker.share_coordinator.state import LOWEST_STATE_EPOCH
from heirlog.broker.share_partitions.share_partition_manager import SharePartitionManager
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import DeleteRecordsRequest, DeleteShareGroupStateRequest


@pytest.fixture(scope="module")
def one() -> Guarded:
    return Guarded()


@pytest.fixture
def node(one: Guarded) -> Guarded:
    """A test file has one."""
    return one


def manager(node: Guarded) -> SharePartitionManager:
    shares: SharePartitionManager = node.node.broker.shares.partitions
    return shares


def delete_state(node: Guarded, group: str, topic: bytes) -> None:
    D = DeleteShareGroupStateRequest
    parts = [D.DeleteStateData(topic_id=topic, partitions=[D.PartitionData(partition=0)])]
    assert code(node.ask(D(group_id=group, topics=parts), principal=ADMIN)) is ErrorCode.NONE


def begin(node: Guarded, group: str, topic: bytes, epoch: int, start: int) -> None:
    """The coordinator stores that the group begins at this offset."""
    assert code(node.ask(initializing(topic, group, epoch, start=start), principal=ADMIN)) is ErrorCode.NONE


class LateLooks:
    """Answers of the coordinator that say which state is stored, and come when a test wants them."""

    def __init__(self, node: Guarded, monkeypatch: pytest.MonkeyPatch) -> None:
        """From now on."""
        self.waiting: list[Callable[[], None]] = []
        self.failure: ErrorCode | None = None
        """That counts instead of them."""
        persister = manager(node)._persister
        look = persister.look

        def look_late(key: Any, on_done: Callable[[Any], None]) -> None:
            look(key, lambda result: self.waiting.append(lambda: on_done(self.failure or result)))

        monkeypatch.setattr(persister, "look", look_late)


def reset_while_it_is_kept(node: Guarded, name: str, *, is_open: bool, again: bool) -> Member:
    """A group has accepted two records, and then its offsets are set to 0. Returns a member that begins then.

    is_open: the first member has gone without ending its session. again: the group is deleted and begins again, so the
    state has the epoch that it had.
    """
    topic = share_topic(node, name, name)
    node.write(name, b"a", b"b")
    first = Member(node, name, topic, "first")
    first.fetch()
    assert ack_code(first.acknowledge((0, 1, [ACCEPT]))) == ErrorCode.NONE
    if not is_open:
        first.acknowledge(share_session_epoch=-1)
    if again:
        delete_state(node, name, topic)
    begin(node, name, topic, 1 if again else 2, 0)
    return Member(node, name, topic, "second")


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("is_open", [False, True])
def test_a_reset_is_seen_by_the_next_session_also_where_a_connection_keeps_the_group(
    node: Guarded, is_open: bool, again: bool
) -> None:
    second = reset_while_it_is_kept(node, f"kept-{is_open}-{again}", is_open=is_open, again=again)
    assert acquired_in(second.fetch()) == [(0, 1, 1)]
    assert ack_code(second.fetch((0, 1, [ACCEPT]), max_wait_ms=0)) == ErrorCode.NONE


def idle_with_two_left(node: Guarded, name: str) -> bytes:
    """A group has accepted the first of three records, and a connection keeps it. The topic's id."""
    topic = share_topic(node, name, name)
    node.write(name, b"a", b"b", b"c")
    first = Member(node, name, topic, "first")
    first.fetch(max_records=1, share_acquire_mode=1)
    assert ack_code(first.acknowledge((0, 0, [ACCEPT]))) == ErrorCode.NONE
    first.acknowledge(share_session_epoch=-1)
    return topic


def test_members_that_begin_at_the_same_time_get_nothing_from_before_a_reset(node: Guarded) -> None:
    topic = idle_with_two_left(node, "together")
    begin(node, "together", topic, 2, 2)
    second, third = Member(node, "together", topic, "second"), Member(node, "together", topic, "third")
    for member in (second, third):
        member.send(member.fetching(max_wait_ms=100))
    node.wait(lambda: second.is_answered and third.is_answered)
    assert sorted([*acquired_in(second.last_answer), *acquired_in(third.last_answer)]) == [(2, 2, 1)]


def test_a_comparison_from_before_a_reset_does_not_count_for_a_later_session(
    node: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = idle_with_two_left(node, "compared")
    late = LateLooks(node, monkeypatch)
    second = Member(node, "compared", topic, "second")
    second.fetch(max_wait_ms=0)
    node.wait(lambda: len(late.waiting) == 1)
    second.acknowledge(share_session_epoch=-1)
    begin(node, "compared", topic, 2, 2)
    third = Member(node, "compared", topic, "third")
    third.send(third.fetching(max_wait_ms=10_000))
    node.wait(lambda: len(late.waiting) == 2)
    for answer in late.waiting:
        assert not third.is_answered
        answer()
    node.wait(lambda: third.is_answered)
    assert acquired_in(third.last_answer) == [(2, 2, 1)]


def test_a_group_that_was_not_reset_continues_with_what_its_leader_keeps(node: Guarded) -> None:
    topic = share_topic(node, "continued", "continued")
    for value in (b"a", b"b", b"c"):
        node.write("continued", value)
    first = Member(node, "continued", topic, "first")
    assert acquired_in(first.fetch(max_records=1)) == [(0, 0, 1)]
    assert acquired_in(first.fetch((0, 0, [ACCEPT]), max_records=1)) == [(1, 1, 1)]
    first.acknowledge(share_session_epoch=-1)
    loads = manager(node).loads
    second = Member(node, "continued", topic, "second")
    assert acquired_in(second.fetch(max_wait_ms=300_000)) == [(1, 1, 2), (2, 2, 1)], "as soon as that is known"
    assert manager(node).loads == loads, "it was not loaded again"


def test_a_member_that_holds_records_keeps_them_when_another_one_begins(node: Guarded) -> None:
    topic = share_topic(node, "held", "held")
    node.write("held", b"a", b"b")
    first, second = Member(node, "held", topic, "first"), Member(node, "held", topic, "second")
    assert acquired_in(first.fetch(max_records=1, share_acquire_mode=1)) == [(0, 0, 1)]
    assert acquired_in(second.fetch()) == [(1, 1, 1)]
    assert ack_code(first.fetch((0, 0, [ACCEPT]), max_wait_ms=0)) == ErrorCode.NONE


def test_a_member_of_a_deleted_group_takes_nothing_from_the_group_that_begins_again(node: Guarded) -> None:
    """Neither by what it accepts late, nor by what it still holds."""
    topic = share_topic(node, "reborn", "reborn")
    node.write("reborn", b"a", b"b", b"c")
    paused = Member(node, "reborn", topic, "paused")
    assert acquired_in(paused.fetch()) == [(0, 2, 1)]
    assert ack_code(paused.acknowledge((0, 0, [ACCEPT]))) == ErrorCode.NONE
    delete_state(node, "reborn", topic)
    begin(node, "reborn", topic, 1, 0)
    assert ack_code(paused.acknowledge((1, 1, [ACCEPT]))) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert acquired_in(Member(node, "reborn", topic, "second").fetch()) == [(0, 2, 1)]


def test_a_member_of_a_deleted_group_that_holds_records_keeps_none_from_the_next_group(node: Guarded) -> None:
    topic = share_topic(node, "held-on", "held-on")
    node.write("held-on", b"a", b"b", b"c")
    paused = Member(node, "held-on", topic, "paused")
    assert acquired_in(paused.fetch(max_records=1, share_acquire_mode=1)) == [(0, 0, 1)]
    assert ack_code(paused.acknowledge((0, 0, [ACCEPT]))) == ErrorCode.NONE
    assert acquired_in(paused.fetch(max_records=1, share_acquire_mode=1)) == [(1, 1, 1)]
    delete_state(node, "held-on", topic)
    begin(node, "held-on", topic, 1, 0)
    second = Member(node, "held-on", topic, "second")
    second.fetch(max_records=1, share_acquire_mode=1, max_wait_ms=0)
    node.wait(lambda: acquired_in(second.fetch(max_wait_ms=0)) == [(0, 2, 1)])
    assert ack_code(paused.acknowledge((1, 1, [ACCEPT]))) == ErrorCode.INVALID_RECORD_STATE


@pytest.mark.parametrize("stored", ["restored", "written"])
def test_a_leader_continues_with_what_it_knows_when_an_election_has_lost_the_state(node: Guarded, stored: str) -> None:
    """The group coordinator restores the state with the lowest epoch, and without an offset."""
    name = f"lossy-{stored}"
    topic = idle_with_two_left(node, name)
    delete_state(node, name, topic)
    begin(node, name, topic, LOWEST_STATE_EPOCH, -1)
    second = Member(node, name, topic, "second")
    assert acquired_in(second.fetch()) == [(1, 2, 1)]
    if stored == "written":
        assert ack_code(second.acknowledge((1, 1, [ACCEPT]))) == ErrorCode.NONE
        second.acknowledge(share_session_epoch=-1)
        assert acquired_in(Member(node, name, topic, "third").fetch()) == [(2, 2, 2)]


def test_a_group_that_was_deleted_meanwhile_gets_an_error(node: Guarded) -> None:
    topic = share_topic(node, "forsaken", "gone")
    node.write("forsaken", b"a")
    first = Member(node, "forsaken", topic, "first")
    first.fetch()
    first.acknowledge(share_session_epoch=-1)
    delete_state(node, "forsaken", topic)
    answer = partition_of(Member(node, "forsaken", topic, "second").fetch())
    assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR, "as for a group that never had a state"


def test_records_that_a_former_group_of_that_name_had_delivered_were_not_delivered(node: Guarded) -> None:
    topic = share_topic(node, "counted", "counted")
    node.write("counted", b"a")
    first = Member(node, "counted", topic, "first")
    assert acquired_in(first.fetch()) == [(0, 0, 1)]
    assert ack_code(first.acknowledge((0, 0, [RELEASE]))) == ErrorCode.NONE
    first.acknowledge(share_session_epoch=-1)
    delete_state(node, "counted", topic)
    begin(node, "counted", topic, 1, 0)
    assert acquired_in(Member(node, "counted", topic, "second").fetch()) == [(0, 0, 1)]


def test_a_reset_to_where_the_group_is_counts_too(node: Guarded) -> None:
    """Its coordinator takes no change of what is kept."""
    topic = idle_with_two_left(node, "same-place")
    begin(node, "same-place", topic, 2, 1)
    second = Member(node, "same-place", topic, "second")
    assert acquired_in(second.fetch()) == [(1, 2, 1)]
    assert ack_code(second.acknowledge((1, 2, [ACCEPT]))) == ErrorCode.NONE


def test_records_that_the_log_has_deleted_make_no_difference(node: Guarded) -> None:
    topic = share_topic(node, "shortened", "shortened")
    node.write("shortened", b"a", b"b")
    first = Member(node, "shortened", topic, "first")
    first.fetch(max_records=1, share_acquire_mode=1)
    assert ack_code(first.acknowledge((0, 0, [ACCEPT]))) == ErrorCode.NONE
    T, P = DeleteRecordsRequest.DeleteRecordsTopic, DeleteRecordsRequest.DeleteRecordsPartition
    everything = [T(name="shortened", partitions=[P(partition_index=0, offset=2)])]
    node.ask(DeleteRecordsRequest(topics=everything, timeout_ms=1000), principal=ADMIN)
    loads = manager(node).loads
    assert acquired_in(Member(node, "shortened", topic, "second").fetch()) == []
    assert manager(node).loads == loads, "it was not loaded again"


@pytest.mark.parametrize("failure", [None, ErrorCode.COORDINATOR_NOT_AVAILABLE])
def test_what_a_member_acquires_during_a_comparison_stays_its_own(
    node: Guarded, monkeypatch: pytest.MonkeyPatch, failure: ErrorCode | None
) -> None:
    name = f"meanwhile-{failure is None}"
    topic = share_topic(node, name, name)
    Member(node, name, topic, "first").fetch()
    node.write(name, b"a", b"b")
    late = LateLooks(node, monkeypatch)
    second = Member(node, name, topic, "second")
    assert acquired_in(second.fetch()) == [(0, 1, 1)], "another session has used what is here"
    node.wait(lambda: len(late.waiting) == 1)
    late.failure = failure
    late.waiting.pop()()
    assert ack_code(second.acknowledge((0, 1, [ACCEPT]))) == ErrorCode.NONE


def test_what_a_member_gives_back_during_a_comparison_is_not_forgotten(
    node: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = share_topic(node, "returned", "returned")
    Member(node, "returned", topic, "first").fetch()
    node.write("returned", b"a")
    late = LateLooks(node, monkeypatch)
    second = Member(node, "returned", topic, "second")
    assert acquired_in(second.fetch()) == [(0, 0, 1)]
    node.wait(lambda: len(late.waiting) == 1)
    assert ack_code(second.acknowledge((0, 0, [RELEASE]))) == ErrorCode.NONE
    late.waiting.pop()()
    assert acquired_in(second.fetch()) == [(0, 0, 2)]
