"""Produce within transactions: what a leader asks the coordinator before it appends."""

from __future__ import annotations

from typing import Any

import pytest

from heirlog.broker import transactional_produce
from heirlog.broker.transactions.add_partitions_manager import CHANNEL
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import AddPartitionsToTxnResponse, ProduceRequest, WriteTxnMarkersRequest

from .fakes import Rig, answer_of, batch, context, state


class Producing(Rig):
    """Broker 1 leads foo-0 and foo-1; broker 2 coordinates."""

    def __init__(self) -> None:
        super().__init__()
        self.started()
        for index in range(2):
            self.set_partition(state([1], leader_epoch=5), "foo", index)
        self.set_partition(state([2], leader=2, leader_epoch=1), "__transaction_state")
        self.publish()

    def write(self, *indexes: int, version: int = 10, **more: int) -> Any:
        return self.broker.produce(self.request(*indexes, **more), context(version))

    def request(self, *indexes: int, epoch: int = 0, sequence: int = 0, producer_id: int = 7) -> ProduceRequest:
        data = [
            ProduceRequest.PartitionProduceData(
                index=index,
                records=memoryview(
                    batch(
                        1,
                        producer_id=producer_id,
                        producer_epoch=epoch,
                        base_sequence=sequence,
                        transactional=True,
                    )
                ),
            )
            for index in indexes or (0,)
        ]
        return ProduceRequest(
            transactional_id="t",
            acks=-1,
            timeout_ms=1000,
            topic_data=[ProduceRequest.TopicProduceData(name="foo", partition_data=data)],
        )

    def confirm(self, code: ErrorCode = ErrorCode.NONE) -> Any:
        """The coordinator answers the question in flight, which is returned."""
        sent = self.env.take(CHANNEL)
        nested = AddPartitionsToTxnResponse
        (transaction,) = sent.request.transactions
        topics = [
            nested.AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=[
                    nested.AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code)
                    for index in topic.partitions
                ],
            )
            for topic in transaction.topics
        ]
        result = nested.AddPartitionsToTxnResult(transactional_id="t", topic_results=topics)
        sent.on_result(nested(results_by_transaction=[result]))
        return transaction

    def end(self, epoch: int = 0, version: int = 0) -> None:
        nested = WriteTxnMarkersRequest
        topic = nested.WritableTxnMarkerTopic(name="foo", partition_indexes=[0])
        marker = nested.WritableTxnMarker(
            producer_id=7,
            producer_epoch=epoch,
            transaction_result=True,
            coordinator_epoch=1,
            transaction_version=version,
            topics=[topic],
        )
        self.broker.write_txn_markers(nested(markers=[marker]))

    @property
    def asked(self) -> int:
        return sum(sent.channel == CHANNEL for sent in self.env.sent)


def codes(answer: Any) -> list[str] | None:
    response = answer_of(answer)
    if response is None:
        return None
    return [ErrorCode(part.error_code).name for topic in response.responses for part in topic.partition_responses]


def test_the_first_batch_waits_for_the_coordinator_and_the_next_ones_do_not() -> None:
    rig = Producing()
    first = rig.write(0, 1)
    assert codes(first) is None
    asked = rig.confirm()
    assert (asked.verify_only, asked.producer_id) == (True, 7)
    assert [(topic.name, sorted(topic.partitions)) for topic in asked.topics] == [("foo", [0, 1])]
    assert codes(first) == ["NONE", "NONE"]
    assert (codes(rig.write(0, sequence=1)), rig.asked) == (["NONE"], 0)


def test_requests_behind_one_that_is_confirmed_keep_their_order() -> None:
    rig = Producing()
    answers = [rig.write(sequence=sequence) for sequence in range(3)]
    assert rig.asked == 1
    rig.confirm()
    assert [codes(answer) for answer in answers] == [["NONE"]] * 3
    assert rig.partition().log.log_end_offset == 3


def test_a_batch_that_was_delayed_until_after_the_marker_is_refused() -> None:
    rig = Producing()
    rig.write()
    rig.confirm()
    rig.end()
    late = rig.write(sequence=1)
    rig.confirm(ErrorCode.INVALID_TXN_STATE)
    assert codes(late) == ["INVALID_TXN_STATE"]
    confirmed_before_the_marker = rig.write(sequence=1)
    rig.end()
    rig.confirm()
    assert codes(confirmed_before_the_marker) == ["INVALID_TXN_STATE"]
    assert rig.partition().last_stable_offset == rig.partition().high_watermark


@pytest.mark.parametrize(
    ("code", "version", "expected"),
    [
        (ErrorCode.TRANSACTION_ABORTABLE, 10, "INVALID_TXN_STATE"),
        (ErrorCode.TRANSACTION_ABORTABLE, 11, "TRANSACTION_ABORTABLE"),
        (ErrorCode.PRODUCER_FENCED, 11, "INVALID_PRODUCER_EPOCH"),
        (ErrorCode.NOT_COORDINATOR, 11, "NOT_ENOUGH_REPLICAS"),
        (ErrorCode.CONCURRENT_TRANSACTIONS, 11, "NOT_ENOUGH_REPLICAS"),
        (ErrorCode.INVALID_PRODUCER_ID_MAPPING, 11, "INVALID_PRODUCER_ID_MAPPING"),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 12, "UNKNOWN_TOPIC_OR_PARTITION"),
        (ErrorCode.OPERATION_NOT_ATTEMPTED, 12, "NOT_ENOUGH_REPLICAS"),
    ],
)
def test_what_the_coordinator_refuses_is_said_as_the_client_knows_it(
    code: ErrorCode, version: int, expected: str
) -> None:
    rig = Producing()
    answer = rig.write(version=version)
    rig.confirm(code)
    assert (codes(answer), rig.partition().log.log_end_offset) == ([expected], 0)


def test_from_version_12_on_the_broker_adds_the_partition_and_waits_for_the_markers_before() -> None:
    rig = Producing()
    answer = rig.write(version=12)
    assert rig.confirm(ErrorCode.CONCURRENT_TRANSACTIONS).verify_only is False
    rig.env.advance(20)
    rig.confirm()
    assert codes(answer) == ["NONE"]
    rig = Producing()
    answer = rig.write(version=12)
    for _ in range(6):
        rig.confirm(ErrorCode.CONCURRENT_TRANSACTIONS)
        rig.env.advance(20)
    assert codes(answer) == ["CONCURRENT_TRANSACTIONS"]


def test_a_transaction_of_a_raised_epoch_begins_at_sequence_0() -> None:
    rig = Producing()
    answer = rig.write(version=12, sequence=3)
    rig.confirm()
    assert codes(answer) == ["OUT_OF_ORDER_SEQUENCE_NUMBER"]


def test_without_verification_nobody_is_asked() -> None:
    rig = Producing()
    rig.image.set_config(4, "", "transaction.partition.verification.enable", "false", rig.journal)
    rig.publish()
    assert (codes(rig.write()), rig.asked) == (["NONE"], 0)


def test_a_batch_that_waits_for_its_confirmation_while_verification_ends_is_appended_first() -> None:
    rig = Producing()
    first = rig.write()
    rig.image.set_config(4, "", "transaction.partition.verification.enable", "false", rig.journal)
    rig.publish()
    second = rig.write(sequence=1)
    assert codes(second) is None
    rig.confirm()
    assert (codes(first), codes(second), rig.asked) == (["NONE"], ["NONE"], 0)
    assert rig.partition().log.producers.guards.get(7) is None


def test_a_batch_that_is_refused_before_the_log_has_no_log_start_offset() -> None:
    rig = Producing()
    answer = rig.write()
    rig.confirm(ErrorCode.TRANSACTION_ABORTABLE)
    (refused,) = answer_of(answer).responses[0].partition_responses
    assert (refused.error_code, refused.log_start_offset) == (ErrorCode.INVALID_TXN_STATE, -1)


def test_a_batch_for_a_partition_that_does_not_exist_says_nothing_of_the_producer() -> None:
    rig = Producing()
    request = rig.request(9, epoch=5)
    request.topic_data[0].partition_data += rig.request(0).topic_data[0].partition_data
    answer = rig.broker.produce(request, context(11))
    rig.confirm()
    assert codes(answer) == ["UNKNOWN_TOPIC_OR_PARTITION", "NONE"]


def test_an_old_epoch_is_refused_without_a_question() -> None:
    rig = Producing()
    rig.write(epoch=3)
    rig.confirm()
    assert (codes(rig.write(epoch=2)), rig.asked) == (["INVALID_PRODUCER_EPOCH"], 0)


def test_records_that_wait_for_coordinators_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Producing()
    monkeypatch.setattr(transactional_produce, "WAITING_BYTES_MAX", 100)
    waiting = rig.write()
    assert codes(rig.write(sequence=1)) == ["NOT_ENOUGH_REPLICAS"]
    rig.confirm()
    assert codes(waiting) == ["NONE"]
    assert codes(rig.write(sequence=1)) == ["NONE"]


def test_a_batch_without_a_transactional_id_begins_no_transaction() -> None:
    rig = Producing()
    data = batch(1, producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    assert codes(rig.produce(-1, data)) == ["INVALID_TXN_STATE"]


def test_a_batch_that_cannot_be_read_is_refused_as_without_a_transaction() -> None:
    rig = Producing()
    damaged = batch(1, producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    damaged[16] = 9
    data = ProduceRequest.PartitionProduceData(index=0, records=memoryview(damaged))
    topic = ProduceRequest.TopicProduceData(name="foo", partition_data=[data])
    request = ProduceRequest(transactional_id="t", acks=-1, timeout_ms=1000, topic_data=[topic])
    assert codes(rig.broker.produce(request, context(10))) == ["CORRUPT_MESSAGE"]
    assert rig.asked == 0
