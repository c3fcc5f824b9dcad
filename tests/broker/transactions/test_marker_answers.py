"""What an answer to WriteTxnMarkers, or none, leads to."""

from __future__ import annotations

import pytest

from heirlog.broker.transactions.marker_sender import (
    CHANNEL,
    REFUSED_BACKOFF_MS,
    RETRY_BACKOFF_MAX_MS,
    RETRY_BACKOFF_MS,
)
from heirlog.env import SendFailure
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import WriteTxnMarkersResponse

from ..fakes import state
from .test_coordinator import TRANSACTIONS, Coordinating, code, producer


def decided(indexes: tuple[int, ...] = (0,), **properties: str) -> tuple[Coordinating, tuple[int, int]]:
    rig = Coordinating(**properties)
    me = producer(rig.init())
    rig.add(me, *indexes)
    assert code(rig.end(me)) == "NONE"
    return rig, me


@pytest.mark.parametrize(
    ("error", "again_after_ms"),
    [
        (ErrorCode.NONE, None),
        (ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, None),
        (ErrorCode.INVALID_PRODUCER_EPOCH, None),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, RETRY_BACKOFF_MS),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, RETRY_BACKOFF_MS),
        (ErrorCode.NOT_ENOUGH_REPLICAS, RETRY_BACKOFF_MS),
        (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, RETRY_BACKOFF_MS),
        (ErrorCode.REQUEST_TIMED_OUT, RETRY_BACKOFF_MS),
        (ErrorCode.KAFKA_STORAGE_ERROR, RETRY_BACKOFF_MS),
        (ErrorCode.TRANSACTION_COORDINATOR_FENCED, REFUSED_BACKOFF_MS),
        (ErrorCode.CORRUPT_MESSAGE, REFUSED_BACKOFF_MS),
        (ErrorCode.MESSAGE_TOO_LARGE, REFUSED_BACKOFF_MS),
        (ErrorCode.RECORD_LIST_TOO_LARGE, REFUSED_BACKOFF_MS),
        (ErrorCode.INVALID_REQUIRED_ACKS, REFUSED_BACKOFF_MS),
        (ErrorCode.UNKNOWN_SERVER_ERROR, REFUSED_BACKOFF_MS),
    ],
)
def test_no_error_ends_the_sending_before_every_partition_has_its_marker(
    error: ErrorCode, again_after_ms: int | None
) -> None:
    # Apache Kafka gives the transaction up at the last six and at INVALID_PRODUCER_EPOCH: it would stay open until
    # the next coordinator loads it
    rig, _ = decided()
    rig.answer_markers(foo_0=error)
    if again_after_ms is not None:
        assert rig.state_name == "PrepareCommit"
        rig.env.advance(again_after_ms - 1)
        assert rig.markers_in_flight() == 0
        rig.env.advance(1)
        rig.answer_markers()
    assert (rig.state_name, rig.markers_in_flight()) == ("CompleteCommit", 0)


def test_retries_slow_down_while_a_partition_cannot_take_its_marker() -> None:
    rig, _ = decided()
    pauses_ms = []
    for _ in range(8):
        rig.answer_markers(foo_0=ErrorCode.NOT_ENOUGH_REPLICAS)
        began_ms = rig.env.now_ms()
        while not rig.markers_in_flight():
            rig.env.advance(1)
        pauses_ms.append(rig.env.now_ms() - began_ms)
    assert pauses_ms == [50, 100, 200, 400, 800, 800, 800, 800]
    assert pauses_ms[0] == RETRY_BACKOFF_MS and pauses_ms[-1] == RETRY_BACKOFF_MAX_MS


@pytest.mark.parametrize(
    ("error", "event"),
    [
        (ErrorCode.INVALID_PRODUCER_EPOCH, "marker-superseded"),
        (ErrorCode.TRANSACTION_COORDINATOR_FENCED, "marker-refused"),
    ],
)
def test_an_operator_is_told_of_partitions_that_refuse_a_marker_in_one_line(error: ErrorCode, event: str) -> None:
    rig, _ = decided((0, 1))
    rig.answer_markers(foo_0=error, foo_1=error)
    (line,) = [values for name, values in rig.env.events if name == event]
    assert "heirlog transactions" in str(line["consequence"])


def test_an_answer_that_does_not_name_the_producer_says_nothing() -> None:
    rig, _ = decided()
    rig.env.take(CHANNEL).on_result(WriteTxnMarkersResponse())
    assert rig.state_name == "PrepareCommit"
    rig.env.advance(RETRY_BACKOFF_MS)
    rig.answer_markers()
    assert rig.state_name == "CompleteCommit"


def test_only_what_was_refused_is_sent_again() -> None:
    rig, _ = decided((0, 1))
    rig.answer_markers(foo_1=ErrorCode.NOT_ENOUGH_REPLICAS)
    rig.env.advance(RETRY_BACKOFF_MS)
    assert [topic.partition_indexes for topic in rig.answer_markers().markers[0].topics] == [[1]]


@pytest.mark.parametrize("outcome", ["answered", "failed"])
def test_a_late_answer_after_another_coordinator_led_completes_nothing_twice(outcome: str) -> None:
    # KAFKA-16352, KAFKA-10080: the answer is to the job of the leadership before
    rig, _ = decided()
    late = rig.env.take(CHANNEL)
    rig.lead(6, leader=2)
    rig.lead(7)
    rig.env.advance(10)
    if outcome == "failed":
        late.on_result(SendFailure("timed-out"))
    else:
        answered = WriteTxnMarkersResponse
        topics = [
            answered.WritableTxnMarkerTopicResult(
                name="foo", partitions=[answered.WritableTxnMarkerPartitionResult(partition_index=0)]
            )
        ]
        markers = [answered.WritableTxnMarkerResult(producer_id=late.request.markers[0].producer_id, topics=topics)]
        late.on_result(answered(markers=markers))
    assert rig.state_name == "PrepareCommit", "the markers of this leadership are not answered"
    assert rig.answer_markers().markers[0].coordinator_epoch == 7
    end_offset = rig.partition(TRANSACTIONS).log.log_end_offset
    assert rig.state_name == "CompleteCommit"
    rig.env.advance(60_000)
    assert rig.partition(TRANSACTIONS).log.log_end_offset == end_offset, "the completion is written once"


def test_a_broker_that_left_gets_no_marker_and_the_next_leader_does() -> None:
    rig, _ = decided()
    rig.env.take(CHANNEL).on_result(SendFailure("disconnected"))
    rig.set_partition(state([2, 3], leader=3, leader_epoch=1, partition_epoch=1), "foo", 0)
    rig.publish()
    rig.env.advance(RETRY_BACKOFF_MS)
    rig.answer_markers()
    assert rig.state_name == "CompleteCommit"
