"""What the producer's transactions ask of whom, in both protocols, and what each error leaves possible."""

from __future__ import annotations

from typing import Any

import pytest
from client.driving import THREE, TWO, World, described

from heirlog.client.errors import ProducerFenced, TransactionAbortable
from heirlog.client.offsets import CommittedOffset
from heirlog.client.record_accumulator import ProducerIdAndEpoch
from heirlog.client.sender import Request, Sender
from heirlog.client.transactions import CommittingMember, ProducerTransactions, TransactionStage
from heirlog.protocol.batch import encode_batch, read_header
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    ApiVersionsRequest,
    ApiVersionsResponse,
    EndTxnRequest,
    EndTxnResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    MetadataRequest,
    ProduceRequest,
    ProduceResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from heirlog.protocol.primitives import Message
from heirlog.protocol.types import Endpoint

NONE = ErrorCode.NONE
E = ErrorCode


class Coordinator:
    """A coordinator of transactions (broker 2) and of groups (3), whose next answers the test may replace."""

    def __init__(self, level: int) -> None:
        self.level = level
        self.epoch = -1
        self.codes: dict[type[Message], list[Any]] = {}
        """Error codes, or exceptions instead of answers, of the next answers."""
        self.world = World(self._answer)
        self.cluster = self.world.cluster()
        self.transactions = ProducerTransactions(self.cluster, "id", timeout_ms=60_000, call_timeout_s=10)
        self.sender = Sender(
            self.cluster,
            idempotent=True,
            acks=-1,
            max_in_flight=5,
            request_bytes=1 << 20,
            delivery_timeout_s=10,
            transactions=self.transactions,
        )

    def _answer(self, _: Endpoint, message: Message) -> Any:
        code = next(iter(self.codes.get(type(message), [])), NONE)
        if self.codes.get(type(message)):
            self.codes[type(message)].pop(0)
        if isinstance(code, Exception):
            return code
        if isinstance(message, ApiVersionsRequest):
            feature = ApiVersionsResponse.FinalizedFeatureKey(name="transaction.version", max_version_level=self.level)
            return ApiVersionsResponse(finalized_features=[feature])
        if isinstance(message, MetadataRequest):
            return described((1, 2, 1))
        if isinstance(message, FindCoordinatorRequest):
            port = TWO if message.key_type else THREE
            return FindCoordinatorResponse(error_code=code, host=port.host, port=port.port)
        if isinstance(message, InitProducerIdRequest):
            self.epoch += not code
            return InitProducerIdResponse(error_code=code, producer_id=7, producer_epoch=self.epoch)
        if isinstance(message, AddPartitionsToTxnRequest):
            results = [
                AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult(
                    name=topic.name,
                    results_by_partition=[
                        AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult(
                            partition_index=index, partition_error_code=code
                        )
                        for index in topic.partitions
                    ],
                )
                for topic in message.v3_and_below_topics
            ]
            return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results)
        if isinstance(message, AddOffsetsToTxnRequest):
            return AddOffsetsToTxnResponse(error_code=code)
        if isinstance(message, TxnOffsetCommitRequest):
            topics = [
                TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic(
                    name=topic.name,
                    partitions=[
                        TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition(
                            partition_index=found.partition_index, error_code=code
                        )
                        for found in topic.partitions
                    ],
                )
                for topic in message.topics
            ]
            return TxnOffsetCommitResponse(topics=topics)
        assert isinstance(message, EndTxnRequest)
        if code or self.level < 2:
            return EndTxnResponse(error_code=code)
        self.epoch += 1
        return EndTxnResponse(producer_id=7, producer_epoch=self.epoch)

    def asked(self, kind: type[Message]) -> list[Any]:
        return [message for _, message in self.world.asked if isinstance(message, kind)]

    def open(self) -> Coordinator:
        self.world.run(self.transactions.initialize())
        self.transactions.begin()
        return self

    def write(self, *partitions: int) -> list[Request]:
        """What a driver would send."""
        for partition in partitions:
            self.sender.add("t", partition, encode_batch([(None, b"v", (), 0)]))
        while (call := self.sender.prepare()) is not None and self.sender.accumulator.failure is None:
            self.world.run(call)
        return self.sender.requests(everything=True)

    def acknowledge(self, requests: list[Request], code: int = 0) -> None:
        for request in requests:
            message = request.send.message
            assert isinstance(message, ProduceRequest)
            answers = [
                ProduceResponse.TopicProduceResponse(
                    topic_id=topic.topic_id,
                    name=topic.name,
                    partition_responses=[
                        ProduceResponse.PartitionProduceResponse(index=data.index, error_code=code)
                        for data in topic.partition_data
                    ],
                )
                for topic in message.topic_data
            ]
            self.sender.answered(request, ProduceResponse(responses=answers))

    def end(self, *, commit: bool) -> bool:
        return self.world.run(self.transactions.end(commit=commit))

    def send_offsets(self) -> None:
        member = CommittingMember("m", 3, "i")
        self.world.run(self.transactions.send_offsets("g", {("t", 0): CommittedOffset(5)}, member))


@pytest.fixture(params=[0, 2])
def coordinator(request: pytest.FixtureRequest) -> Coordinator:
    return Coordinator(request.param).open()


def headers(requests: list[Request]) -> list[tuple[int, int, bool]]:
    """Epoch, sequence, and whether it is transactional, of each batch."""
    found = [read_header(batch.data) for request in requests for batch in request.batches.values()]
    return [(header.producer_epoch, header.base_sequence, header.is_transactional) for header in found]


def test_partitions_are_added_first_below_level_2_and_never_twice() -> None:
    coordinator = Coordinator(0).open()
    requests = coordinator.write(0, 1)
    (added,) = coordinator.asked(AddPartitionsToTxnRequest)
    assert [(topic.name, topic.partitions) for topic in added.v3_and_below_topics] == [("t", [0, 1])]
    assert {request.send.newest for request in requests} == {11}
    assert {request.send.message.transactional_id for request in requests} == {"id"}  # type: ignore[attr-defined]
    assert headers(requests) == [(0, 0, True), (0, 0, True)]
    coordinator.acknowledge(requests)
    coordinator.acknowledge(coordinator.write(0))
    assert len(coordinator.asked(AddPartitionsToTxnRequest)) == 1


def test_level_2_adds_nothing_and_writes_in_the_newest_version() -> None:
    coordinator = Coordinator(2).open()
    requests = coordinator.write(0, 1)
    coordinator.send_offsets()
    assert not coordinator.asked(AddPartitionsToTxnRequest)
    assert not coordinator.asked(AddOffsetsToTxnRequest)
    assert {request.send.newest for request in requests} == {None}
    (offsets,) = coordinator.asked(TxnOffsetCommitRequest)
    assert (offsets.generation_id, offsets.member_id, offsets.group_instance_id) == (3, "m", "i")


def test_offsets_go_to_the_coordinator_of_the_group_after_the_group_was_added() -> None:
    coordinator = Coordinator(0).open()
    coordinator.send_offsets()
    coordinator.send_offsets()
    assert coordinator.world.servers(AddOffsetsToTxnRequest) == [TWO]
    assert coordinator.world.servers(TxnOffsetCommitRequest) == [THREE, THREE]


def test_after_a_commit_sequences_continue_below_level_2_and_start_again_at_level_2() -> None:
    for level, expected in ((0, (0, 1, True)), (2, (1, 0, True))):
        coordinator = Coordinator(level).open()
        coordinator.acknowledge(coordinator.write(0))
        if coordinator.end(commit=True):
            coordinator.sender.start_over()
        coordinator.transactions.begin()
        assert headers(coordinator.write(0)) == [expected]
        assert len(coordinator.asked(AddPartitionsToTxnRequest)) == (2 if level == 0 else 0)


def test_an_abort_always_leads_to_a_new_epoch(coordinator: Coordinator) -> None:
    coordinator.write(0)
    assert coordinator.end(commit=False)
    coordinator.sender.start_over()
    coordinator.transactions.begin()
    assert headers(coordinator.write(0)) == [(1, 0, True)]


def test_a_transaction_in_which_nothing_was_sent_ends_without_a_request(coordinator: Coordinator) -> None:
    coordinator.end(commit=True)
    coordinator.transactions.begin()
    coordinator.end(commit=False)
    assert not coordinator.asked(EndTxnRequest)


def test_an_abort_is_not_confused_by_a_coordinator_that_never_got_the_partitions() -> None:
    coordinator = Coordinator(0).open()
    coordinator.codes[AddPartitionsToTxnRequest] = [TimeoutError()] * 100
    coordinator.write(0)
    failure = coordinator.sender.accumulator.failure
    assert isinstance(failure, TransactionAbortable)
    coordinator.codes = {EndTxnRequest: [E.INVALID_TXN_STATE]}
    coordinator.end(commit=False)
    assert coordinator.transactions.state is TransactionStage.READY


ABORTABLE, IS_FENCED, FAILED = TransactionAbortable, ProducerFenced, KafkaError


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (E.TRANSACTION_ABORTABLE, ABORTABLE),
        (E.TOPIC_AUTHORIZATION_FAILED, ABORTABLE),
        (E.UNKNOWN_PRODUCER_ID, ABORTABLE),
        (E.CONCURRENT_TRANSACTIONS, ABORTABLE),
        (E.PRODUCER_FENCED, IS_FENCED),
        (E.INVALID_PRODUCER_EPOCH, IS_FENCED),
        (E.INVALID_PRODUCER_ID_MAPPING, IS_FENCED),
        (E.INVALID_TXN_STATE, FAILED),
        (E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, FAILED),
    ],
)
def test_a_refused_partition(code: ErrorCode, expected: type[KafkaError]) -> None:
    coordinator = Coordinator(0).open()
    coordinator.codes[AddPartitionsToTxnRequest] = [code] * 1000
    coordinator.write(0)
    failure = coordinator.sender.accumulator.failure
    assert failure is not None
    failure = coordinator.transactions.produce_failed(failure)
    assert type(failure) is expected
    stages = {
        ABORTABLE: TransactionStage.ABORTABLE,
        IS_FENCED: TransactionStage.FENCED,
        FAILED: TransactionStage.FAILED,
    }
    assert coordinator.transactions.state is stages[expected]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (E.INVALID_PRODUCER_EPOCH, ABORTABLE),
        (E.INVALID_TXN_STATE, ABORTABLE),
        (E.TRANSACTION_ABORTABLE, ABORTABLE),
        (E.OUT_OF_ORDER_SEQUENCE_NUMBER, ABORTABLE),
        (E.MESSAGE_TOO_LARGE, ABORTABLE),
        (E.TOPIC_AUTHORIZATION_FAILED, ABORTABLE),
        (E.PRODUCER_FENCED, IS_FENCED),
        (E.INVALID_PRODUCER_ID_MAPPING, IS_FENCED),
        (E.CLUSTER_AUTHORIZATION_FAILED, FAILED),
        (E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, FAILED),
    ],
)
def test_a_refused_batch(coordinator: Coordinator, code: ErrorCode, expected: type[KafkaError]) -> None:
    coordinator.acknowledge(coordinator.write(0), code)
    failure = coordinator.sender.accumulator.failure
    assert failure is not None
    assert type(coordinator.transactions.produce_failed(failure)) is expected


@pytest.mark.parametrize("code", [E.CONCURRENT_TRANSACTIONS, E.NOT_ENOUGH_REPLICAS, E.NOT_COORDINATOR])
def test_a_batch_that_may_pass_later_is_sent_again(coordinator: Coordinator, code: ErrorCode) -> None:
    coordinator.acknowledge(coordinator.write(0), code)
    coordinator.world.now += 1
    again = coordinator.write()
    assert headers(again) == [(0, 0, True)]


@pytest.mark.parametrize("code", [E.UNKNOWN_MEMBER_ID, E.ILLEGAL_GENERATION, E.FENCED_INSTANCE_ID])
def test_offsets_of_a_replaced_member_leave_only_the_abort(coordinator: Coordinator, code: ErrorCode) -> None:
    coordinator.codes[TxnOffsetCommitRequest] = [code]
    with pytest.raises(TransactionAbortable):
        coordinator.send_offsets()
    with pytest.raises(ValueError, match="abort it"):
        coordinator.end(commit=True)
    coordinator.end(commit=False)


def test_a_commit_without_an_answer_may_be_repeated_and_is_in_doubt_until_then(coordinator: Coordinator) -> None:
    coordinator.acknowledge(coordinator.write(0))
    coordinator.codes[EndTxnRequest] = [TimeoutError("lost")] * 1000
    with pytest.raises(TimeoutError):
        coordinator.end(commit=True)
    assert coordinator.transactions.is_in_doubt
    with pytest.raises(ValueError, match="commit again"):
        coordinator.end(commit=False)
    coordinator.codes = {EndTxnRequest: [E.CONCURRENT_TRANSACTIONS, E.NOT_COORDINATOR]}
    coordinator.end(commit=True)
    assert not coordinator.transactions.is_in_doubt
    assert coordinator.transactions.state is TransactionStage.READY


@pytest.mark.parametrize("code", [E.PRODUCER_FENCED, E.INVALID_TXN_STATE, E.INVALID_PRODUCER_ID_MAPPING])
def test_a_commit_that_is_refused_as_fenced_leaves_a_way_back_by_a_new_epoch(
    coordinator: Coordinator, code: ErrorCode
) -> None:
    coordinator.acknowledge(coordinator.write(0))
    coordinator.codes[EndTxnRequest] = [code]
    with pytest.raises(ProducerFenced, match="initialise again"):
        coordinator.end(commit=True)
    assert coordinator.transactions.is_in_doubt
    coordinator.world.run(coordinator.transactions.initialize())
    assert not coordinator.transactions.is_in_doubt
    assert coordinator.transactions.state is TransactionStage.READY


def test_a_commit_that_can_only_be_aborted_is_not_in_doubt(coordinator: Coordinator) -> None:
    coordinator.acknowledge(coordinator.write(0))
    coordinator.codes[EndTxnRequest] = [E.TRANSACTION_ABORTABLE]
    with pytest.raises(TransactionAbortable):
        coordinator.end(commit=True)
    assert not coordinator.transactions.is_in_doubt
    coordinator.end(commit=False)


def test_an_undecided_transaction_of_an_earlier_producer_is_waited_for() -> None:
    coordinator = Coordinator(0)
    coordinator.codes[InitProducerIdRequest] = [E.CONCURRENT_TRANSACTIONS] * 5
    coordinator.open()
    assert len(coordinator.asked(InitProducerIdRequest)) == 6


def test_the_epoch_after_an_abort_names_the_producer_so_that_a_zombie_fences_nobody() -> None:
    coordinator = Coordinator(0).open()
    coordinator.write(0)
    coordinator.end(commit=False)
    first, second = coordinator.asked(InitProducerIdRequest)
    assert (first.producer_id, first.producer_epoch) == (-1, -1)
    assert (second.producer_id, second.producer_epoch) == (7, 0)


def test_a_participant_writes_with_the_epoch_of_the_transaction_and_needs_no_epoch_of_its_own() -> None:
    coordinator = Coordinator(0).open()
    opened = coordinator.transactions.opened
    task = Coordinator(0)
    task.transactions = ProducerTransactions(task.cluster, "id", timeout_ms=1, call_timeout_s=10, opened=opened)
    task.sender = Sender(
        task.cluster,
        idempotent=True,
        acks=-1,
        max_in_flight=5,
        request_bytes=1 << 20,
        delivery_timeout_s=10,
        transactions=task.transactions,
    )
    assert headers(task.write(2)) == [(0, 0, True)]
    assert not task.asked(InitProducerIdRequest)
    assert task.transactions.producer == ProducerIdAndEpoch(7, 0)


def test_calls_that_the_state_does_not_allow_are_refused() -> None:
    coordinator = Coordinator(2)
    with pytest.raises(ValueError, match="is not initialised"):
        coordinator.transactions.begin()
    coordinator.open()
    with pytest.raises(ValueError, match="has an open transaction"):
        coordinator.transactions.begin()
    with pytest.raises(ValueError, match="must not be empty"):
        ProducerTransactions(coordinator.cluster, "", timeout_ms=1, call_timeout_s=1)
