"""A group's coordinator: found, remembered, and looked up again when it moved."""

from __future__ import annotations

from typing import Any

import pytest
from client.driving import ONE, THREE, TWO, World

from heirlog.client.call import Send
from heirlog.client.coordinators import commit, committed
from heirlog.client.errors import Unsupported
from heirlog.client.offsets import CommittedOffset
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from heirlog.protocol.primitives import Message
from heirlog.protocol.types import Endpoint

PLACE = ("t", 0)
COMMITTING = {PLACE: CommittedOffset(5)}


def found(endpoint: Endpoint, code: int = 0) -> FindCoordinatorResponse:
    coordinator = FindCoordinatorResponse.Coordinator(
        key="g", host=endpoint.host, port=endpoint.port, error_code=code, error_message="not now"
    )
    return FindCoordinatorResponse(coordinators=[coordinator])


def answered(code: int = 0) -> OffsetCommitResponse:
    partition = OffsetCommitResponse.OffsetCommitResponsePartition(error_code=code)
    return OffsetCommitResponse(
        topics=[OffsetCommitResponse.OffsetCommitResponseTopic(name="t", partitions=[partition])]
    )


def test_it_is_found_once_and_again_after_it_moved_or_went() -> None:
    where = iter([ONE, TWO, THREE])

    def answer(server: Endpoint, message: Message) -> Any:
        if isinstance(message, FindCoordinatorRequest):
            return found(next(where))
        return {ONE: answered(ErrorCode.NOT_COORDINATOR), TWO: ConnectionError("gone"), THREE: answered()}[server]

    world = World(answer)
    cluster = world.cluster()
    world.run(commit(cluster, "g", COMMITTING, 10))
    world.run(commit(cluster, "g", COMMITTING, 10))
    assert world.servers(OffsetCommitRequest) == [ONE, TWO, THREE, THREE]
    assert len(world.servers(FindCoordinatorRequest)) == 3


@pytest.mark.parametrize(("retention_ms", "newest", "asked_ms"), [(None, 9, -1), (5000, 4, 5000)])
def test_offsets_that_are_to_be_kept_are_committed_in_a_version_that_can_say_so(
    retention_ms: int | None, newest: int, asked_ms: int
) -> None:
    call = commit(World(lambda _, __: None).cluster(), "g", COMMITTING, 10, retention_ms)
    next(call)
    send = call.send(found(ONE))
    assert isinstance(send, Send) and isinstance(send.message, OffsetCommitRequest)
    assert (send.newest, send.message.retention_time_ms) == (newest, asked_ms)


def test_a_group_whose_coordinator_loads_is_waited_for_and_then_given_up() -> None:
    world = World(lambda _, __: found(ONE, ErrorCode.COORDINATOR_NOT_AVAILABLE))
    with pytest.raises(KafkaError, match="group g has no coordinator now: not now"):
        world.run(commit(world.cluster(), "g", COMMITTING, 5))
    assert 3 < world.now <= 5

    def loading(_: Endpoint, message: Message) -> Any:
        if isinstance(message, FindCoordinatorRequest):
            return found(ONE)
        return answered(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)

    world = World(loading)
    with pytest.raises(KafkaError) as failed:
        world.run(commit(world.cluster(), "g", COMMITTING, 5))
    assert failed.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert 3 < world.now <= 5


def test_a_refusal_is_raised_at_once_and_explained() -> None:
    world = World(lambda _, __: found(ONE, ErrorCode.GROUP_AUTHORIZATION_FAILED))
    with pytest.raises(KafkaError, match="has no coordinator"):
        world.run(commit(world.cluster(), "g", COMMITTING, 5))
    assert world.now == 0

    def answer(_: Endpoint, message: Message) -> Any:
        return found(ONE) if isinstance(message, FindCoordinatorRequest) else answered(ErrorCode.UNKNOWN_MEMBER_ID)

    world = World(answer)
    with pytest.raises(KafkaError, match="it has members now"):
        world.run(commit(world.cluster(), "g", COMMITTING, 5))
    assert world.now == 0


def test_only_what_is_committed_is_returned() -> None:
    def answer(_: Endpoint, message: Message) -> Any:
        if isinstance(message, FindCoordinatorRequest):
            return found(ONE)
        Partition = OffsetFetchResponse.OffsetFetchResponsePartitions
        partitions = [
            Partition(partition_index=0, committed_offset=5, committed_leader_epoch=2, metadata="m"),
            Partition(partition_index=1, committed_offset=-1),
        ]
        topic = OffsetFetchResponse.OffsetFetchResponseTopics(name="t", partitions=partitions)
        return OffsetFetchResponse(groups=[OffsetFetchResponse.OffsetFetchResponseGroup(topics=[topic])])

    world = World(answer)
    assert world.run(committed(world.cluster(), "g", [PLACE, ("t", 1)], 5)) == {PLACE: CommittedOffset(5, 2, "m")}
    assert world.servers(OffsetFetchRequest) == [ONE]


def test_nothing_to_commit_asks_nothing_and_an_old_broker_is_not_asked_again() -> None:
    world = World(lambda _, m: found(ONE) if isinstance(m, FindCoordinatorRequest) else Unsupported("too old"))
    world.run(commit(world.cluster(), "g", {}, 5))
    assert world.asked == []
    with pytest.raises(Unsupported):
        world.run(commit(world.cluster(), "g", COMMITTING, 5))
    assert world.servers(OffsetCommitRequest) == [ONE]
