"""Replica fetchers, with the test as the leader."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from heirlog.env import SendFailure
from heirlog.metadata.survey import at_once
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import FetchResponse, ListOffsetsResponse

from .fakes import TOPIC_IDS, Rig, Sent, batch, state


def follower(leader_epoch: int = 5) -> Rig:
    rig = Rig().started()
    rig.show(state([1, 2], leader=2, leader_epoch=leader_epoch))
    return rig


def taken(rig: Rig) -> Sent:
    return rig.env.take("replica-fetch-0")


def asked(sent: Sent) -> Any:
    return sent.request.topics[0].partitions[0]


def answer(sent: Sent, session_id: int = 0, **data: Any) -> None:
    data.setdefault("high_watermark", 0)
    sent.on_result(
        FetchResponse(
            session_id=session_id,
            responses=[
                FetchResponse.FetchableTopicResponse(
                    topic_id=TOPIC_IDS["foo"], partitions=[FetchResponse.PartitionData(partition_index=0, **data)]
                )
            ],
        )
    )


def test_a_fetch_names_epochs_and_goes_to_the_leader() -> None:
    sent = taken(follower())
    assert sent.to.host == "broker2"
    assert (sent.request.replica_state.replica_id, sent.request.replica_state.replica_epoch) == (1, 101)
    assert (asked(sent).current_leader_epoch, asked(sent).fetch_offset, asked(sent).last_fetched_epoch) == (5, 0, -1)


def test_records_are_appended_and_the_next_fetch_follows_at_once() -> None:
    rig = follower()
    answer(taken(rig), records=batch(3, 0, 5), high_watermark=2)
    assert (rig.partition().log.log_end_offset, rig.partition().high_watermark) == (3, 2)
    assert (asked(taken(rig)).fetch_offset, rig.partition().log.epochs.latest) == (3, 5)


def test_a_diverging_log_is_truncated() -> None:
    rig = follower()
    answer(taken(rig), records=batch(1, 0, 4) + batch(1, 1, 4))
    answer(taken(rig), diverging_epoch=FetchResponse.EpochEndOffset(epoch=4, end_offset=1))
    assert rig.partition().log.log_end_offset == 1
    assert asked(taken(rig)).fetch_offset == 1


def test_an_answer_of_an_older_leader_epoch_is_dropped() -> None:
    rig = follower()
    late = taken(rig)
    rig.show(state([1, 2], leader=2, leader_epoch=6, partition_epoch=2))
    answer(late, records=batch(3, 0, 5))
    assert rig.partition().log.log_end_offset == 0
    assert asked(taken(rig)).current_leader_epoch == 6


def fetches(rig: Rig) -> list[Sent]:
    return [sent for sent in rig.env.sent if sent.channel == "replica-fetch-0"]


def refuse(rig: Rig) -> None:
    answer(taken(rig), error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)


def disconnect(rig: Rig) -> None:
    taken(rig).on_result(SendFailure("disconnected"))


@pytest.mark.parametrize("fail", [refuse, disconnect])
def test_the_back_off_doubles_up_to_its_configuration(fail: Callable[[Rig], None]) -> None:
    rig = follower()
    for wait_ms in (20, 40, 80, 160, 320, 640, 1000, 1000):
        fail(rig)
        rig.env.advance(wait_ms - 1)
        assert not fetches(rig)
        rig.env.advance(1)
        assert fetches(rig)


@pytest.mark.parametrize("fail", [refuse, disconnect])
def test_success_begins_the_back_off_anew(fail: Callable[[Rig], None]) -> None:
    rig = follower()
    fail(rig)
    rig.env.advance(20)
    answer(taken(rig))
    fail(rig)
    rig.env.advance(20)
    assert asked(taken(rig)).fetch_offset == 0


def failed(rig: Rig) -> int:
    return at_once(rig.broker.fetchers.lags())[1]


def test_a_partition_has_failed_from_its_first_error_to_its_next_success() -> None:
    rig = follower()
    assert failed(rig) == 0
    answer(taken(rig), records=batch(3, 1, 5))  # offset 0 is missing
    assert failed(rig) == 1
    rig.env.advance(20)
    again = taken(rig)
    assert failed(rig) == 1, "no answer yet"
    answer(again, records=batch(3, 0, 5))
    assert failed(rig) == 0


def test_a_new_leader_epoch_is_fetched_at_once() -> None:
    rig = follower()
    disconnect(rig)
    rig.show(state([1, 2], leader=2, leader_epoch=6, partition_epoch=2))
    assert asked(taken(rig)).current_leader_epoch == 6


def test_a_fenced_leader_epoch_waits_for_newer_metadata() -> None:
    rig = follower()
    answer(taken(rig), error_code=ErrorCode.FENCED_LEADER_EPOCH)
    rig.env.advance(1900)
    assert not fetches(rig)
    rig.show(state([1, 2], leader=2, leader_epoch=6, partition_epoch=2))
    assert asked(taken(rig)).current_leader_epoch == 6


def offset(rig: Rig, value: int) -> None:
    sent = taken(rig)
    partition = ListOffsetsResponse.ListOffsetsPartitionResponse(partition_index=0, offset=value)
    sent.on_result(
        ListOffsetsResponse(topics=[ListOffsetsResponse.ListOffsetsTopicResponse(name="foo", partitions=[partition])])
    )


def test_a_follower_longer_than_its_leader_is_cut_to_the_leaders_end() -> None:
    rig = follower()
    answer(taken(rig), records=batch(1, 0, 5) + batch(1, 1, 5))
    answer(taken(rig), error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
    offset(rig, 1)
    assert asked(taken(rig)).fetch_offset == 1


def test_a_follower_behind_its_leaders_log_start_starts_over() -> None:
    rig = follower()
    answer(taken(rig), error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
    offset(rig, 50)
    offset(rig, 40)
    assert asked(taken(rig)).fetch_offset == 40
    assert rig.partition().high_watermark == 40


def test_records_of_an_epoch_above_the_leaders_are_cut() -> None:
    """The leader does not know the epoch, and its log has our end: without a cut we would ask for ever."""
    rig = follower()
    answer(taken(rig), records=batch(1, 0, 4) + batch(1, 1, 4))
    rig.partition().log.epochs.assign(1 << 30, 1)  # as a start reads it from a damaged batch
    answer(taken(rig), error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
    offset(rig, 7)
    offset(rig, 0)
    again = asked(taken(rig))
    assert (again.fetch_offset, again.last_fetched_epoch) == (1, 4)


def beyond_its_leader() -> Rig:
    """A follower with offsets 40 and 41; its leader, elected on a lossy basis, has less."""
    rig = follower()
    answer(taken(rig), error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
    offset(rig, 50)
    offset(rig, 40)
    answer(taken(rig), records=batch(1, 40, 4) + batch(1, 41, 4))
    return rig


def test_a_follower_whose_log_starts_beyond_its_leaders_end_takes_the_leaders_whole_log() -> None:
    rig = beyond_its_leader()
    answer(taken(rig), error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
    offset(rig, 30)
    # from its own end it would sit in the ISR without what its leader still has below
    offset(rig, 10)
    assert asked(taken(rig)).fetch_offset == 10


def test_a_divergence_below_the_followers_log_start_starts_over_at_the_leaders() -> None:
    rig = beyond_its_leader()
    diverging = FetchResponse.EpochEndOffset(epoch=3, end_offset=30)
    answer(taken(rig), diverging_epoch=diverging, log_start_offset=10)
    assert asked(taken(rig)).fetch_offset == 10


def test_a_partition_that_is_no_longer_followed_is_not_fetched() -> None:
    rig = follower()
    sent = taken(rig)
    rig.show(state([1, 2], leader=1, leader_epoch=6, partition_epoch=2))
    answer(sent, records=batch(1, 0, 5))
    assert rig.partition().log.log_end_offset == 0
    assert not fetches(rig)


# fetch sessions


def begun(rig: Rig, session_id: int = 7, **data: Any) -> Sent:
    """Answer the full request; the first incremental one."""
    sent = taken(rig)
    assert (sent.request.session_epoch, sent.request.max_wait_ms) == (0, 0)
    answer(sent, session_id, **data)
    return taken(rig)


def named(sent: Sent) -> list[tuple[int, int]]:
    """(partition, fetch offset) of what a request says."""
    return [(each.partition, each.fetch_offset) for topic in sent.request.topics for each in topic.partitions]


def forgotten(sent: Sent) -> list[int]:
    return [index for topic in sent.request.forgotten_topics_data for index in topic.partitions]


def numbers(sent: Sent) -> tuple[int, int]:
    return sent.request.session_id, sent.request.session_epoch


def test_a_session_says_only_what_has_changed() -> None:
    rig = follower()
    first = begun(rig)
    assert (numbers(first), named(first), first.request.max_wait_ms) == ((7, 1), [], 500)
    answer(first, 7, records=batch(3, 0, 5))
    second = taken(rig)
    assert (numbers(second), named(second)) == ((7, 2), [(0, 3)])
    second.on_result(FetchResponse(session_id=7))
    assert (numbers(taken(rig)), rig.partition().log.log_end_offset) == ((7, 3), 3)


def test_a_leader_without_sessions_is_asked_in_full_and_long_polled() -> None:
    rig = follower()
    answer(taken(rig))
    sent = taken(rig)
    assert (numbers(sent), named(sent), sent.request.max_wait_ms) == ((0, 0), [(0, 0)], 500)
    answer(sent, 7)
    assert numbers(taken(rig)) == (7, 1)


@pytest.mark.parametrize(
    ("error", "named_again"),
    [
        (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0),
        (ErrorCode.INVALID_FETCH_SESSION_EPOCH, 7),
        (ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, 7),
    ],
)
def test_a_lost_session_is_begun_anew_at_once(error: ErrorCode, named_again: int) -> None:
    rig = follower()
    begun(rig).on_result(FetchResponse(error_code=error))
    again = taken(rig)
    assert (numbers(again), named(again)) == ((named_again, 0), [(0, 0)])


def test_after_a_lost_answer_the_session_is_ended_by_the_next_full_request() -> None:
    rig = follower()
    begun(rig).on_result(SendFailure("disconnected"))
    rig.env.advance(20)
    assert numbers(taken(rig)) == (7, 0)


def test_a_partition_that_backs_off_leaves_the_session_and_comes_back() -> None:
    rig = follower()
    rig.show(state([1, 2], leader=2), index=1)
    sent = begun(rig)
    answer(sent, 7, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    sent = taken(rig)
    assert (named(sent), forgotten(sent)) == ([], [0])
    rig.env.advance(20)
    assert named(taken(rig)) == [(0, 0)]


def test_a_new_partition_is_asked_for_while_a_long_poll_is_out() -> None:
    rig = follower()
    polling = begun(rig)
    rig.show(state([1, 2], leader=2), index=1)
    interrupting = taken(rig)
    assert (numbers(interrupting), named(interrupting)) == ((7, 2), [(1, 0)])
    rig.show(state([1, 2], leader=2), index=2)
    assert not fetches(rig)
    polling.on_result(FetchResponse(session_id=7))
    assert (numbers(sent := taken(rig)), named(sent)) == ((7, 3), [(2, 0)])


def test_records_that_two_answers_carry_are_appended_once() -> None:
    rig = follower()
    first = begun(rig)
    rig.show(state([1, 2], leader=2), index=1)
    second = taken(rig)
    answer(first, 7, records=batch(3, 0, 5))
    third = taken(rig)
    assert named(third) == [(0, 3)]
    # the leader had not yet heard of offset 3 when it answered this
    answer(second, 7, records=batch(5, 0, 5))
    assert rig.partition().log.log_end_offset == 3
    answer(third, 7, records=batch(2, 3, 5))
    assert rig.partition().log.log_end_offset == 5


def test_a_partition_that_is_no_longer_followed_is_forgotten() -> None:
    rig = follower()
    rig.show(state([1, 2], leader=2), index=1)
    polling = begun(rig)
    rig.show(state([1, 2], leader=1, leader_epoch=6, partition_epoch=2))
    polling.on_result(FetchResponse(session_id=7))
    assert forgotten(taken(rig)) == [0]


def test_a_log_start_that_the_leader_told_is_told_back() -> None:
    rig = follower()
    answer(begun(rig), 7, records=batch(1, 0, 5) + batch(1, 1, 5), high_watermark=2)
    answer(taken(rig), 7, high_watermark=2, log_start_offset=1)
    assert (asked(sent := taken(rig)).log_start_offset, named(sent)) == (1, [(0, 2)])


def test_nothing_is_asked_for_while_everything_rests() -> None:
    rig = follower()
    answer(begun(rig), 7, error_code=ErrorCode.FENCED_LEADER_EPOCH)
    rig.env.advance(1900)
    assert not fetches(rig)
