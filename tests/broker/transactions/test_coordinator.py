"""A whole broker that coordinates transactions: the leaders of their partitions are the test."""

from __future__ import annotations

from typing import Any

import pytest

from heirlog.broker.transactions import describe
from heirlog.broker.transactions.marker_sender import CHANNEL, REFUSED_BACKOFF_MS, RETRY_BACKOFF_MAX_MS
from heirlog.broker.transactions.partition_requests import add_partitions_to_txn
from heirlog.env import SendFailure
from heirlog.protocol.batch import encode_batch
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import (
    AddPartitionsToTxnRequest,
    AllocateProducerIdsResponse,
    DescribeTransactionsRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    ListTransactionsRequest,
    WriteTxnMarkersResponse,
)

from ..fakes import Rig, answer_of, context, state

TRANSACTIONS = "__transaction_state"
TIMEOUT_MS = 60_000


class Coordinating(Rig):
    """Broker 1 leads the only partition of `__transaction_state`; broker 2 leads both partitions of foo."""

    def __init__(self, replicas: list[int] | None = None, **properties: str) -> None:
        super().__init__(**properties)
        self.started()
        self.replicas = replicas or [1]
        for index in range(2):
            self.set_partition(state([2], leader=2, leader_epoch=0), "foo", index)
        self.lead(5)
        # the first id is asked for when it is wanted
        self.init("other")
        self.env.take("forward").on_result(AllocateProducerIdsResponse(producer_id_start=5, producer_id_len=1000))

    def lead(self, epoch: int, leader: int = 1, isr: list[int] | None = None) -> None:
        to = state(self.replicas, isr, leader=leader, leader_epoch=epoch, partition_epoch=epoch)
        self.set_partition(to, TRANSACTIONS)
        self.publish()
        self.env.advance(1)

    def followed(self) -> None:
        """Broker 2 has fetched everything."""
        end = self.partition(TRANSACTIONS).log.log_end_offset
        self.fetch(end, replica=2, leader_epoch=5, last_fetched_epoch=5, topic=TRANSACTIONS)

    def init(
        self,
        name: str = "t",
        given: tuple[int, int] = (-1, -1),
        timeout_ms: int = TIMEOUT_MS,
        v: int = 5,
        *,
        two_phase: bool = False,
    ) -> Any:
        request = InitProducerIdRequest(
            transactional_id=name,
            transaction_timeout_ms=timeout_ms,
            producer_id=given[0],
            producer_epoch=given[1],
            enable2_pc=two_phase,
        )
        return self.broker.init_producer_id(request, context(v))

    def add(self, producer: tuple[int, int], *indexes: int, name: str = "t", topic: str = "foo", v: int = 3) -> Any:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=name,
            v3_and_below_producer_id=producer[0],
            v3_and_below_producer_epoch=producer[1],
            v3_and_below_topics=[
                AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=topic, partitions=list(indexes))
            ],
        )
        return add_partitions_to_txn(self.broker.transactions, self.image, request, context(v))

    def verify(self, producer: tuple[int, int], *indexes: int) -> list[str]:
        request = AddPartitionsToTxnRequest(
            transactions=[
                AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction(
                    transactional_id="t",
                    producer_id=producer[0],
                    producer_epoch=producer[1],
                    verify_only=True,
                    topics=[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name="foo", partitions=list(indexes))],
                )
            ]
        )
        answer = answer_of(add_partitions_to_txn(self.broker.transactions, self.image, request, context(5)))
        return partition_codes(answer.results_by_transaction[0].topic_results)

    def end(self, producer: tuple[int, int], *, commit: bool = True, v: int = 4) -> Any:
        request = EndTxnRequest(
            transactional_id="t", producer_id=producer[0], producer_epoch=producer[1], committed=commit
        )
        return self.broker.transactions.end_txn(request, context(v))

    def described(self, name: str = "t") -> Any:
        request = DescribeTransactionsRequest(transactional_ids=[name])
        return describe.describe_transactions(self.broker.transactions, request).transaction_states[0]

    @property
    def state_name(self) -> str:
        return str(self.described().transaction_state)

    def answer_markers(self, **codes: ErrorCode) -> Any:
        """Broker 2 answers the markers in flight: NONE, or the error of `foo_INDEX`; returns the request."""
        sent = self.env.take(CHANNEL)
        answered = WriteTxnMarkersResponse
        markers = [
            answered.WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    answered.WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            answered.WritableTxnMarkerPartitionResult(
                                partition_index=index, error_code=codes.get(f"{topic.name}_{index}", ErrorCode.NONE)
                            )
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in sent.request.markers
        ]
        sent.on_result(answered(markers=markers))
        return sent.request

    def markers_in_flight(self) -> int:
        return sum(sent.channel == CHANNEL for sent in self.env.sent)


def partition_codes(topics: Any) -> list[str]:
    return [ErrorCode(p.partition_error_code).name for topic in topics for p in topic.results_by_partition]


def added(answer: Any) -> list[str]:
    return partition_codes(answer_of(answer).results_by_topic_v3_and_below)


def code(answer: Any) -> str | None:
    response = answer_of(answer)
    return None if response is None else ErrorCode(response.error_code).name


def producer(answer: Any) -> tuple[int, int]:
    response = answer_of(answer)
    assert code(answer) == "NONE"
    return response.producer_id, response.producer_epoch


# a transaction from its beginning to its end


def test_a_transaction_is_complete_once_every_partition_has_its_marker() -> None:
    rig = Coordinating()
    me = producer(rig.init())
    assert added(rig.add(me, 0, 1)) == ["NONE", "NONE"]
    assert rig.verify(me, 0, 1) == ["NONE", "NONE"]
    assert code(rig.end(me)) == "NONE"
    assert rig.state_name == "PrepareCommit"
    (marker,) = rig.answer_markers(foo_1=ErrorCode.NOT_LEADER_OR_FOLLOWER).markers
    assert (marker.producer_id, marker.producer_epoch, marker.transaction_result) == (*me, True)
    assert (marker.coordinator_epoch, marker.transaction_version) == (5, 0)
    assert [(topic.topic, topic.partitions) for topic in rig.described().topics] == [("foo", [1])]
    assert code(rig.end(me)) == "CONCURRENT_TRANSACTIONS"
    rig.env.advance(50)
    assert [topic.partition_indexes for topic in rig.answer_markers().markers[0].topics] == [[1]]
    assert (rig.state_name, code(rig.end(me))) == ("CompleteCommit", "NONE")


def test_nothing_is_answered_and_no_marker_leaves_before_the_record_is_committed() -> None:
    rig = Coordinating([1, 2])
    rig.followed()
    starting = rig.init()
    assert answer_of(starting) is None
    assert rig.described().error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    rig.followed()
    me = producer(starting)
    adding = rig.add(me, 0)
    assert (answer_of(adding), rig.verify(me, 0)) == (None, ["TRANSACTION_ABORTABLE"])
    assert added(rig.add(me, 1)) == ["CONCURRENT_TRANSACTIONS"]
    rig.followed()
    ending = rig.end(me)
    assert (answer_of(ending), rig.markers_in_flight(), rig.state_name) == (None, 0, "Ongoing")
    rig.followed()
    assert (code(ending), rig.markers_in_flight()) == ("NONE", 1)
    rig.answer_markers()
    assert rig.state_name == "PrepareCommit", "the completion is not committed"
    rig.followed()
    assert rig.state_name == "CompleteCommit"


def test_an_answer_that_comes_too_late_is_given_up_and_the_change_stays_pending() -> None:
    rig = Coordinating([1, 2], request_timeout_ms="1000")
    rig.followed()
    starting = rig.init()
    rig.followed()
    me = producer(starting)
    adding = rig.add(me, 0)
    rig.followed()
    assert added(adding) == ["NONE"]
    ending = rig.end(me)
    rig.env.advance(1001)
    assert code(ending) == "COORDINATOR_NOT_AVAILABLE"
    # the commit may still be in the log of the next leader: an abort must not be decided beside it
    assert code(rig.end(me, commit=False)) == "CONCURRENT_TRANSACTIONS"
    rig.followed()
    assert (rig.state_name, rig.markers_in_flight()) == ("PrepareCommit", 1)


def test_a_change_that_is_not_written_leaves_nothing_behind() -> None:
    rig = Coordinating([1, 2])
    rig.followed()
    rig.set_config("min.insync.replicas", "2", TRANSACTIONS)
    rig.set_partition(state([1, 2], [1], leader_epoch=5, partition_epoch=6), TRANSACTIONS)
    rig.publish()
    assert code(rig.init()) == "COORDINATOR_NOT_AVAILABLE"
    assert rig.described().error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


# fencing and time limits


def test_a_second_producer_aborts_the_transaction_of_the_first() -> None:
    rig = Coordinating()
    first = producer(rig.init())
    rig.add(first, 0)
    assert code(rig.init()) == "CONCURRENT_TRANSACTIONS"
    marker = rig.answer_markers().markers[0]
    assert (marker.producer_epoch, marker.transaction_result) == (first[1] + 1, False)
    second = producer(rig.init())
    assert second == (first[0], first[1] + 2)
    assert code(rig.end(first)) == "PRODUCER_FENCED"
    assert code(rig.end(first, v=1)) == "INVALID_PRODUCER_EPOCH", "the version does not know the other one"
    assert added(rig.add(first, 0)) == ["PRODUCER_FENCED"]


def test_a_transaction_that_is_open_for_too_long_is_aborted() -> None:
    rig = Coordinating()
    me = producer(rig.init(timeout_ms=15_000))
    rig.add(me, 0)
    rig.env.advance(15_000)
    assert rig.state_name == "Ongoing"
    rig.env.advance(10_000)
    assert rig.state_name == "PrepareAbort"
    assert rig.answer_markers().markers[0].transaction_result is False
    assert code(rig.end(me)) == "PRODUCER_FENCED"


def test_a_clock_that_is_set_back_does_not_keep_a_transaction_open(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Coordinating()
    me = producer(rig.init(timeout_ms=15_000))
    rig.add(me, 0)
    monkeypatch.setattr(rig.env, "wall_ms", lambda: 1_600_000_000_000 + rig.env.now_ms())
    rig.env.advance(15_000)
    assert rig.state_name == "Ongoing"
    rig.env.advance(10_000)
    assert rig.state_name == "PrepareAbort"


def test_a_transaction_of_two_phase_commit_is_never_timed_out() -> None:
    rig = Coordinating(
        transaction_two_phase_commit_enable="true",
        transaction_abort_timed_out_transaction_cleanup_interval_ms="86400000",
        transaction_max_timeout_ms=str(2**31 - 2),
    )
    me = producer(rig.init(v=6, two_phase=True))
    rig.add(me, 0)
    limited = producer(rig.init("limited", timeout_ms=2**31 - 2))
    rig.add(limited, 0, name="limited")
    # the next coordinator reads the same from the log
    rig.lead(6)
    for _ in range(30):
        rig.env.advance(86_400_000)
    assert (rig.state_name, rig.described("limited").transaction_state) == ("Ongoing", "PrepareAbort")
    assert code(rig.end(me)) == "NONE"


def test_an_administrator_ends_a_transaction_of_two_phase_commit() -> None:
    """As `kafka-transactions.sh forceTerminateTransaction` asks: the id has a time limit afterwards."""
    rig = Coordinating(transaction_two_phase_commit_enable="true")
    me = producer(rig.init(v=6, two_phase=True))
    rig.add(me, 0)
    assert code(rig.init(timeout_ms=30_000)) == "CONCURRENT_TRANSACTIONS"
    assert rig.answer_markers().markers[0].transaction_result is False
    assert producer(rig.init(timeout_ms=30_000)) == (me[0], me[1] + 2)
    assert (rig.state_name, rig.described().transaction_timeout_ms) == ("Empty", 30_000)
    assert code(rig.end(me)) == "PRODUCER_FENCED"


def test_a_producer_that_returns_aborts_what_it_prepared() -> None:
    """A transaction cannot be kept: as on Apache Kafka 4.2, InitProducerId aborts it."""
    rig = Coordinating(transaction_two_phase_commit_enable="true")
    me = producer(rig.init(v=6, two_phase=True))
    rig.add(me, 0)
    assert code(rig.init(v=6, two_phase=True)) == "CONCURRENT_TRANSACTIONS"
    rig.answer_markers()
    assert producer(rig.init(v=6, two_phase=True)) == (me[0], me[1] + 2)
    assert rig.described().transaction_timeout_ms == 2**31 - 1


def test_ids_that_nobody_uses_are_deleted() -> None:
    rig = Coordinating(transactional_id_expiration_ms="3600000")
    me = producer(rig.init())
    rig.add(me, 0)
    producer(rig.init("idle"))
    rig.env.advance(3_600_000)
    rig.env.advance(3_600_000)
    assert rig.described("idle").error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert rig.described("t").error_code == ErrorCode.NONE, "its markers are not written"
    assert added(rig.add(me, 0, name="idle")) == ["INVALID_PRODUCER_ID_MAPPING"]


# markers


def test_markers_are_sent_again_until_they_are_answered() -> None:
    rig = Coordinating()
    me = producer(rig.init())
    rig.add(me, 0)
    rig.end(me)
    rig.env.take(CHANNEL).on_result(SendFailure("disconnected"))
    rig.env.advance(50)
    rig.answer_markers(foo_0=ErrorCode.NOT_ENOUGH_REPLICAS)
    rig.env.advance(100)
    rig.answer_markers(foo_0=ErrorCode.TRANSACTION_COORDINATOR_FENCED)
    rig.env.advance(REFUSED_BACKOFF_MS - 1)
    assert rig.markers_in_flight() == 0
    rig.env.advance(1)
    rig.answer_markers()
    assert rig.state_name == "CompleteCommit"


def test_a_deleted_topic_needs_no_marker_and_one_without_a_leader_is_waited_for() -> None:
    rig = Coordinating()
    me = producer(rig.init())
    rig.set_partition(state([1], leader_epoch=0), "bar")
    rig.publish()
    rig.add(me, 0)
    rig.add(me, 0, topic="bar")
    rig.set_partition(state([1], [], leader=-1, leader_epoch=1, partition_epoch=1), "bar")
    rig.publish()
    rig.end(me)
    rig.answer_markers()
    rig.env.advance(500)
    assert (rig.state_name, rig.markers_in_flight()) == ("PrepareCommit", 0)
    assert rig.broker.transactions.unknown_destinations == 1
    rig.delete_topic("bar")
    rig.publish()
    rig.env.advance(RETRY_BACKOFF_MAX_MS)
    assert (rig.state_name, rig.broker.transactions.unknown_destinations) == ("CompleteCommit", 0)


def test_a_completion_that_cannot_be_written_is_counted_and_tried_again() -> None:
    rig = Coordinating([1, 2])
    rig.set_config("min.insync.replicas", "2", TRANSACTIONS)
    rig.publish()
    rig.followed()
    starting = rig.init()
    rig.followed()
    me = producer(starting)
    for step in (lambda: rig.add(me, 0), lambda: rig.end(me)):
        step()
        rig.followed()
    rig.set_partition(state([1, 2], [1], leader_epoch=5, partition_epoch=6), TRANSACTIONS)
    rig.publish()
    rig.answer_markers()
    assert (rig.state_name, rig.broker.transactions.waiting_completions) == ("PrepareCommit", 1)
    rig.set_partition(state([1, 2], leader_epoch=5, partition_epoch=7), TRANSACTIONS)
    rig.publish()
    rig.env.advance(1000)
    rig.followed()
    assert (rig.state_name, rig.broker.transactions.waiting_completions) == ("CompleteCommit", 0)


def test_markers_of_several_transactions_share_a_request() -> None:
    rig = Coordinating()
    first, second = producer(rig.init()), producer(rig.init("u"))
    third = producer(rig.init("v"))
    rig.add(first, 0)
    for name, who in (("u", second), ("v", third)):
        rig.add(who, 1, name=name)
    rig.end(first)
    for name, who in (("u", second), ("v", third)):
        request = EndTxnRequest(transactional_id=name, producer_id=who[0], producer_epoch=who[1], committed=False)
        rig.broker.transactions.end_txn(request, context(4))
    assert len(rig.answer_markers().markers) == 1
    assert {marker.producer_id for marker in rig.answer_markers().markers} == {second[0], third[0]}
    assert [rig.described(name).transaction_state for name in "tuv"] == [
        "CompleteCommit",
        "CompleteAbort",
        "CompleteAbort",
    ]


# the partition comes and goes


def test_the_next_coordinator_continues_where_the_last_one_was() -> None:
    rig = Coordinating()
    me = producer(rig.init())
    rig.add(me, 0)
    rig.end(me)
    late = rig.env.take(CHANNEL)
    rig.lead(6, leader=2)
    assert code(rig.end(me)) == "NOT_COORDINATOR"
    rig.lead(7)
    rig.env.advance(10)
    assert rig.state_name == "PrepareCommit"
    late.on_result(SendFailure("disconnected"))
    rig.env.advance(1000)
    assert rig.markers_in_flight() == 1, "the sending of the leadership before has ended"
    assert rig.answer_markers().markers[0].coordinator_epoch == 7
    assert (rig.state_name, code(rig.end(me))) == ("CompleteCommit", "NONE")


def test_loading_is_timed() -> None:
    rig = Coordinating([1, 2])
    rig.init()
    rig.lead(6)
    rig.env.advance(400)
    rig.fetch(rig.partition(TRANSACTIONS).log.log_end_offset, replica=2, leader_epoch=6, topic=TRANSACTIONS)
    rig.env.advance(10)
    _, longest = rig.broker.transactions.load_times.average_and_max_ms(rig.env.now_ms())
    assert 400 <= longest <= 411


def test_who_waits_for_an_answer_hears_that_the_coordinator_is_another_one() -> None:
    rig = Coordinating([1, 2])
    rig.followed()
    starting = rig.init()
    rig.lead(6, leader=2)
    assert code(starting) == "NOT_COORDINATOR"


def test_a_record_that_cannot_be_read_closes_the_partition_to_clients() -> None:
    rig = Coordinating()
    me = producer(rig.init())
    partition = rig.partition(TRANSACTIONS)
    partition.append(encode_batch([(b"\x00\x00\x00\x01t", b"\x00\x63", (), 0)]), 1, 0, rig.env.now_ms())
    rig.lead(6)
    rig.env.advance(10)
    assert code(rig.init()) == "COORDINATOR_NOT_AVAILABLE"
    assert code(rig.end(me)) == "COORDINATOR_NOT_AVAILABLE"


# refused requests


def test_all_partitions_are_added_or_none() -> None:
    rig = Coordinating()
    me = producer(rig.init())
    assert added(rig.add(me, 0, 9)) == ["OPERATION_NOT_ATTEMPTED", "UNKNOWN_TOPIC_OR_PARTITION"]
    assert added(rig.add(me, 0, topic=TRANSACTIONS)) == ["TOPIC_AUTHORIZATION_FAILED"]
    assert rig.state_name == "Empty"
    assert added(rig.add(me)) == [], "a topic without partitions has no result"


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"name": ""}, "INVALID_REQUEST"),
        ({"name": "x" * 8192}, "INVALID_REQUEST"),
        ({"given": (5, -1)}, "INVALID_REQUEST"),
        ({"timeout_ms": 0}, "INVALID_TRANSACTION_TIMEOUT"),
        ({"timeout_ms": 900_001}, "INVALID_TRANSACTION_TIMEOUT"),
    ],
)
def test_a_producer_that_asks_wrongly_is_refused(more: dict[str, Any], expected: str) -> None:
    assert code(Coordinating().init(**more)) == expected


# descriptions


def listed(rig: Coordinating, **filters: Any) -> Any:
    answer = describe.list_transactions(rig.broker.transactions, ListTransactionsRequest(**filters), rig.env.wall_ms())
    if answer.error_code:
        return ErrorCode(answer.error_code).name
    names = sorted(each.transactional_id for each in answer.transaction_states)
    return (names, answer.unknown_state_filters) if answer.unknown_state_filters else names


def test_transactions_are_listed_by_state_producer_duration_and_name() -> None:
    rig = Coordinating()
    me = producer(rig.init())
    producer(rig.init("idle"))
    rig.add(me, 0)
    rig.env.advance(1000)
    assert listed(rig) == ["idle", "t"]
    assert listed(rig, state_filters=["Ongoing"]) == ["t"]
    assert listed(rig, state_filters=["Gone"]) == ([], ["Gone"])
    assert listed(rig, producer_id_filters=[me[0]]) == ["t"]
    assert listed(rig, duration_filter=2000) == ["idle"], "without a start, as on Apache Kafka"
    assert listed(rig, transactional_id_pattern="i.*") == ["idle"]
    assert listed(rig, transactional_id_pattern="(") == "INVALID_REGULAR_EXPRESSION"


def test_while_a_partition_is_loading_nothing_is_listed() -> None:
    rig = Coordinating([1, 2])
    rig.init()
    rig.lead(6)
    assert listed(rig) == "COORDINATOR_LOAD_IN_PROGRESS"
    assert rig.described().error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
