"""Which batches go to which leader, and what happens without an answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from client.driving import ONE, TWO, World, described

from heirlog.client.errors import Unsupported
from heirlog.client.sender import NEWEST_BY_NAME, RETRY_PAUSE_S, WORTH_A_REQUEST_BYTES, Request, Sender
from heirlog.protocol.batch import encode_batch, read_header
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    MetadataRequest,
    ProduceRequest,
    ProduceResponse,
)
from heirlog.protocol.primitives import Message
from heirlog.protocol.types import ZERO_UUID, Endpoint

Place = tuple[str, int]


def batch(size: int = 10) -> bytearray:
    return encode_batch([(None, bytes(size), (), 0)])


class Producing:
    """A sender on three brokers whose answers to Metadata and InitProducerId the test may replace."""

    def __init__(self, leaders: tuple[int, ...] = (1, 2, 1), **options: Any) -> None:
        self.metadata: Any = described(leaders)
        self.producer: Any = InitProducerIdResponse(producer_id=7, producer_epoch=0)
        self.world = World(self._answer)
        self.cluster = self.world.cluster()
        given = {"idempotent": True, "acks": -1, "max_in_flight": 2, "request_bytes": 1 << 20}
        self.sender = Sender(self.cluster, **{**given, "delivery_timeout_s": 10, **options})

    def _answer(self, _: Endpoint, message: Message) -> Any:
        return self.metadata if isinstance(message, MetadataRequest) else self.producer

    def add(self, *partitions: int, size: int = 10) -> None:
        for partition in partitions:
            self.sender.add("t", partition, batch(size))

    def take(self, *, everything: bool = True) -> list[Request]:
        """What a driver would send now."""
        call = self.sender.prepare()
        if call is not None:
            self.world.run(call)
        made: list[Request] = []
        while more := self.sender.requests(everything=everything):
            made += more
        return made

    def pause(self) -> None:
        self.world.now += 2 * RETRY_PAUSE_S + 0.1


def answer(request: Request, codes: Mapping[int, int] | None = None) -> ProduceResponse:
    """As a broker does that speaks topic ids. Offset: ten times the partition."""
    message = request.send.message
    assert isinstance(message, ProduceRequest)
    return ProduceResponse(
        responses=[
            ProduceResponse.TopicProduceResponse(
                topic_id=topic.topic_id,
                name=topic.name if topic.topic_id == ZERO_UUID else "",
                partition_responses=[
                    ProduceResponse.PartitionProduceResponse(
                        index=data.index, error_code=(codes or {}).get(data.index, 0), base_offset=10 * data.index
                    )
                    for data in topic.partition_data
                ],
            )
            for topic in message.topic_data
        ]
    )


def partitions(request: Request) -> list[int]:
    return [partition for _, partition in request.batches]


def test_each_leader_gets_one_request_with_a_batch_of_each_of_its_partitions() -> None:
    producing = Producing()
    producing.add(0, 1, 2)
    requests = producing.take()
    assert [(r.send.to, partitions(r)) for r in requests] == [(ONE, [0, 2]), (TWO, [1])]
    delivered = [one for r in requests for one in producing.sender.answered(r, answer(r))]
    assert [(d.batch.partition[1], d.base_offset) for d in delivered] == [(0, 0), (2, 20), (1, 10)]
    assert producing.sender.accumulator.empty
    assert producing.sender.prepare() is None, "nothing waits for anything"
    assert len(producing.world.servers(InitProducerIdRequest)) == 1
    assert len(producing.world.servers(MetadataRequest)) == 1


def test_a_request_is_no_larger_than_its_limit_unless_one_batch_is() -> None:
    producing = Producing((1, 1, 1), request_bytes=2500, max_in_flight=9)
    producing.add(0, 1, 2, size=1000)
    assert [partitions(r) for r in producing.take()] == [[0, 1], [2]]
    large = Producing((1,), request_bytes=10)
    large.add(0)
    assert [partitions(r) for r in large.take()] == [[0]]


def test_small_batches_are_gathered_while_the_leader_has_a_request_to_answer() -> None:
    producing = Producing((1, 1))
    producing.add(0)
    (first,) = producing.take(everything=False)
    producing.add(1)
    producing.add(1)
    assert producing.take(everything=False) == []
    producing.add(0, size=WORTH_A_REQUEST_BYTES)
    (second,) = producing.take(everything=False)
    assert sorted(partitions(second)) == [0, 1]
    assert producing.take() == [], "two requests are the limit"
    producing.sender.answered(first, answer(first))
    assert [partitions(r) for r in producing.take()] == [[1]]


def test_without_an_answer_batches_go_again_after_a_pause_to_the_leader_of_then() -> None:
    producing = Producing((1,))
    producing.add(0)
    (request,) = producing.take()
    producing.metadata = described((2,), epoch=1)
    producing.sender.failed(request, ConnectionError("gone"))
    assert producing.take() == []
    producing.pause()
    (again,) = producing.take()
    assert again.send.to == TWO
    (one,) = again.batches.values()
    assert read_header(one.data).base_sequence == 0, "that is how the broker knows it again"
    assert producing.sender.answered(again, answer(again))[0].batch is one


@pytest.mark.parametrize("code", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_ENOUGH_REPLICAS])
def test_a_code_that_may_pass_asks_for_newer_metadata(code: ErrorCode) -> None:
    producing = Producing((1,))
    producing.add(0)
    (request,) = producing.take()
    assert producing.sender.answered(request, answer(request, {0: code})) == []
    producing.pause()
    assert [partitions(r) for r in producing.take()] == [[0]]
    assert len(producing.world.servers(MetadataRequest)) == 2


def test_a_partition_that_an_answer_leaves_out_is_sent_again() -> None:
    producing = Producing((1,))
    producing.add(0)
    (request,) = producing.take()
    assert producing.sender.answered(request, ProduceResponse()) == []
    producing.pause()
    assert len(producing.take()) == 1


def test_a_repeat_that_the_broker_knows_is_delivered_at_an_unknown_offset() -> None:
    producing = Producing((1,))
    producing.add(0)
    (request,) = producing.take()
    (delivered,) = producing.sender.answered(request, answer(request, {0: ErrorCode.DUPLICATE_SEQUENCE_NUMBER}))
    assert delivered.base_offset == -1
    assert producing.sender.accumulator.empty


def test_a_forgotten_producer_gets_another_id() -> None:
    producing = Producing((1, 1))
    producing.add(0, 1)
    (request,) = producing.take()
    producing.sender.answered(request, answer(request, {0: ErrorCode.UNKNOWN_PRODUCER_ID}))
    producing.producer = InitProducerIdResponse(producer_id=8, producer_epoch=0)
    producing.pause()
    (again,) = producing.take()
    (one,) = again.batches.values()
    assert read_header(one.data).producer_id == 8
    assert len(producing.world.servers(InitProducerIdRequest)) == 2


def test_a_refused_batch_topic_or_producer_id_ends_everything() -> None:
    producing = Producing((1,))
    producing.add(0)
    (request,) = producing.take()
    producing.sender.answered(request, answer(request, {0: ErrorCode.MESSAGE_TOO_LARGE}))
    assert "MESSAGE_TOO_LARGE" in str(producing.sender.accumulator.failure)
    denied = Producing()
    denied.metadata = described(code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    denied.add(0)
    assert denied.take() == []
    assert "topic t cannot be written" in str(denied.sender.accumulator.failure)
    nobody = Producing()
    nobody.producer = InitProducerIdResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    nobody.add(0)
    assert nobody.take() == []
    assert "idempotent=False" in str(nobody.sender.accumulator.failure)


def test_what_may_come_is_waited_for_until_the_delivery_times_out() -> None:
    producing = Producing()
    producing.metadata = described(code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    producing.add(0)
    assert producing.take() == []
    producing.sender.expire()
    assert producing.sender.accumulator.failure is None
    producing.world.now += 10
    producing.sender.expire()
    with pytest.raises(TimeoutError, match=r"did not acknowledge a batch within 10 s; last: .* cannot be written"):
        raise producing.sender.accumulator.failure or AssertionError


def test_a_producer_id_that_is_not_there_yet_is_asked_for_again_after_a_pause() -> None:
    producing = Producing()
    producing.producer = InitProducerIdResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    producing.add(0)
    producing.take()
    producing.take()
    assert len(producing.world.servers(InitProducerIdRequest)) == 1
    producing.producer = InitProducerIdResponse(producer_id=7)
    producing.pause()
    assert len(producing.take()) == 1


def test_while_a_preparation_is_under_way_there_is_no_second_one() -> None:
    producing = Producing()
    producing.add(0)
    call = producing.sender.prepare()
    assert call is not None
    next(call)
    assert producing.sender.prepare() is None
    call.close()
    assert producing.sender.prepare() is not None, "the driver gave the first one up"


def test_brokers_without_topic_ids_are_asked_by_name() -> None:
    producing = Producing()
    found = described((1,))
    found.topics[0].topic_id = ZERO_UUID
    producing.metadata = found
    producing.add(0)
    (request,) = producing.take()
    assert request.send.newest == NEWEST_BY_NAME
    assert len(producing.sender.answered(request, answer(request))) == 1


def test_without_acknowledgements_a_batch_is_gone_once_it_is_sent() -> None:
    producing = Producing((1,), idempotent=False, acks=0)
    producing.add(0)
    (request,) = producing.take()
    producing.sender.sent(request)
    assert producing.sender.accumulator.empty
    assert producing.world.servers(InitProducerIdRequest) == []
    with pytest.raises(ValueError, match="needs acks=-1"):
        Producing(acks=1)


def test_a_broker_without_the_api_ends_everything() -> None:
    producing = Producing((1,))
    producing.add(0)
    (request,) = producing.take()
    producing.sender.failed(request, Unsupported("too old"))
    assert isinstance(producing.sender.accumulator.failure, Unsupported)
    unknown = Producing()
    unknown.producer = Unsupported("too old")
    unknown.add(0)
    unknown.take()
    assert isinstance(unknown.sender.accumulator.failure, Unsupported)


def test_the_first_failure_is_the_one_that_is_raised() -> None:
    producing = Producing((1, 2))
    producing.add(0, 1)
    one, two = producing.take()
    producing.sender.answered(one, answer(one, {0: ErrorCode.MESSAGE_TOO_LARGE}))
    producing.sender.answered(two, answer(two, {1: ErrorCode.TOPIC_AUTHORIZATION_FAILED}))
    assert isinstance(producing.sender.accumulator.failure, KafkaError)
    assert producing.sender.accumulator.failure.code is ErrorCode.MESSAGE_TOO_LARGE
