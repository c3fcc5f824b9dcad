"""Requests to leaders: all at once, and again to those that moved."""

from __future__ import annotations

from typing import Any

import pytest
from client.driving import ONE, THREE, TWO, World, described

from heirlog.client.errors import EpochEnd, Unsupported
from heirlog.client.leaders import ask_leader, epoch_ends, list_offsets
from heirlog.client.offsets import LATEST, OffsetAt
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import (
    ListOffsetsRequest,
    ListOffsetsResponse,
    MetadataRequest,
    OffsetForLeaderEpochRequest,
    ProduceRequest,
    ProduceResponse,
)
from heirlog.protocol.primitives import Message
from heirlog.protocol.types import Endpoint

NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER
WANTED = {("t", 0): LATEST, ("t", 1): LATEST, ("t", 2): LATEST}


def listed(message: ListOffsetsRequest, code: int = 0) -> ListOffsetsResponse:
    """Each partition's offset is ten times its index."""
    return ListOffsetsResponse(
        topics=[
            ListOffsetsResponse.ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    ListOffsetsResponse.ListOffsetsPartitionResponse(
                        partition_index=partition.partition_index,
                        error_code=code,
                        offset=10 * partition.partition_index,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in message.topics
        ]
    )


def test_each_leader_is_asked_once_for_all_its_partitions() -> None:
    def answer(_: Endpoint, message: Message) -> Any:
        return described([1, 2, 1]) if isinstance(message, MetadataRequest) else listed(message)  # type: ignore[arg-type]

    world = World(answer)
    assert world.run(list_offsets(world.cluster(), WANTED, 10)) == {
        ("t", n): OffsetAt(10 * n, -1, -1) for n in range(3)
    }
    assert world.servers(ListOffsetsRequest) == [ONE, TWO]


@pytest.mark.parametrize("failure", [ConnectionError("gone"), TimeoutError("hangs"), None])
def test_only_partitions_without_a_result_are_asked_again_of_their_new_leader(failure: Exception | None) -> None:
    metadata = iter([described([1, 2, 3], epoch=1), described([1, 3, 3], epoch=2)])

    def answer(server: Endpoint, message: Message) -> Any:
        if isinstance(message, MetadataRequest):
            return next(metadata)
        assert isinstance(message, ListOffsetsRequest)
        if server == TWO:
            return failure or listed(message, NOT_LEADER)
        return listed(message)

    world = World(answer)
    found = world.run(list_offsets(world.cluster(), WANTED, 30))
    assert [found["t", n].offset for n in range(3)] == [0, 10, 20]
    assert world.servers(ListOffsetsRequest) == [ONE, TWO, THREE, THREE]
    last = world.asked[-1][1]
    assert isinstance(last, ListOffsetsRequest)
    assert [p.partition_index for t in last.topics for p in t.partitions] == [1]


def test_a_code_that_does_not_pass_is_raised_at_once_and_one_that_does_when_the_time_is_over() -> None:
    for code, least_s in ((ErrorCode.TOPIC_AUTHORIZATION_FAILED, 0), (NOT_LEADER, 3)):

        def answer(_: Endpoint, message: Message, code: int = code) -> Any:
            return described([1, 2, 1]) if isinstance(message, MetadataRequest) else listed(message, code)  # type: ignore[arg-type]

        world = World(answer)
        with pytest.raises(KafkaError) as failed:
            world.run(list_offsets(world.cluster(), WANTED, 5))
        assert failed.value.code is code
        assert least_s <= world.now <= 5


def test_a_broker_that_cannot_say_where_epochs_end_leaves_them_unknown() -> None:
    def answer(_: Endpoint, message: Message) -> Any:
        return described([1]) if isinstance(message, MetadataRequest) else Unsupported("too old")

    world = World(answer)
    assert world.run(epoch_ends(world.cluster(), {("t", 0): 3}, 10)) == {("t", 0): EpochEnd(-1, -1)}
    assert world.servers(OffsetForLeaderEpochRequest) == [ONE]
    with pytest.raises(Unsupported):
        world.run(list_offsets(world.cluster(), {("t", 0): LATEST}, 10))


def produce(world: World, timeout_s: float = 5) -> Any:
    def code_of(response: ProduceResponse) -> int:
        return response.responses[0].partition_responses[0].error_code

    return world.run(ask_leader(world.cluster(), "t", 0, lambda _: ProduceRequest(), timeout_s, code_of=code_of))


def produced(code: int = 0) -> ProduceResponse:
    done = ProduceResponse.PartitionProduceResponse(error_code=code)
    return ProduceResponse(responses=[ProduceResponse.TopicProduceResponse(partition_responses=[done])])


def test_one_request_follows_the_leader() -> None:
    leaders = iter([1, 2, 3])

    def answer(server: Endpoint, message: Message) -> Any:
        if isinstance(message, MetadataRequest):
            return described([next(leaders)], epoch=4 - server.port)
        return {ONE: produced(NOT_LEADER), TWO: ConnectionError("gone"), THREE: produced()}[server]

    world = World(answer)
    assert produce(world).responses[0].partition_responses[0].error_code == 0
    assert world.servers(ProduceRequest) == [ONE, TWO, THREE]


def test_the_last_answer_is_returned_when_the_time_is_over_and_without_one_the_failure_is_raised() -> None:
    def answer(_: Endpoint, message: Message) -> Any:
        return described([1]) if isinstance(message, MetadataRequest) else produced(NOT_LEADER)

    assert produce(World(answer)).responses[0].partition_responses[0].error_code == NOT_LEADER

    def gone(_: Endpoint, message: Message) -> Any:
        return described([1]) if isinstance(message, MetadataRequest) else ConnectionError("gone")

    with pytest.raises(ConnectionError, match="gone"):
        produce(World(gone))
    with pytest.raises(KafkaError, match="no leader"):
        produce(World(lambda _, __: described([-1])))
    denied = World(lambda _, __: described(code=ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    with pytest.raises(KafkaError, match="'t' cannot be used"):
        produce(denied)
    assert denied.now == 0
