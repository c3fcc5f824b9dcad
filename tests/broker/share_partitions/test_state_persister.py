"""How the leader reaches share coordinators: order, merging, retries, what errors mean."""

from __future__ import annotations

from typing import Any

import pytest

from heirlog.broker.share_coordinator.batches import StateBatch
from heirlog.broker.share_coordinator.state import SharePartitionKey, StateWrite
from heirlog.broker.share_partitions.state_persister import ATTEMPTS, CHANNEL, StateEpochs, StatePersister, StoredState
from heirlog.env import SendFailure
from heirlog.metadata.image import Image
from heirlog.metadata.state import TopicImage
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import (
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
)
from heirlog.protocol.types import Endpoint, Uuid

from ..fakes import FakeEnv, state

STATE_TOPIC, TOPIC = Uuid(b"s" * 16), Uuid(b"t" * 16)
KEY = SharePartitionKey("g", TOPIC, 0)
ACKNOWLEDGED = 2


def accepted(first: int, last: int, start: int = 0, epoch: int = 1) -> StateWrite:
    return StateWrite(epoch, 7, start, last - first + 1, (StateBatch(first, last, ACKNOWLEDGED, 1),))


class Persisting:
    """A broker whose share coordinator is `leader`."""

    def __init__(self, leader: int = 2) -> None:
        self.env = FakeEnv()
        self.image = Image()
        journal = self.image.journal()
        self.image.set_topic(STATE_TOPIC, TopicImage("__share_group_state", STATE_TOPIC), journal)
        self.lead(leader)
        self.persister = StatePersister(
            self.env, lambda: self.image, lambda broker: Endpoint(f"b{broker}", 9092), 30_000
        )
        self.heard: list[Any] = []

    def lead(self, leader: int) -> None:
        self.image.set_partition(STATE_TOPIC, 0, state([2, 3], leader=leader, leader_epoch=1), self.image.journal())

    def write(self, write: StateWrite, key: SharePartitionKey = KEY, name: str = "") -> None:
        self.persister.write(key, write, lambda code: self.heard.append(f"{name}{code.name}"))
        self.env.advance(0)

    def read(self, key: SharePartitionKey = KEY) -> None:
        self.persister.read(key, 7, self.heard.append)
        self.env.advance(0)

    def take(self) -> Any:
        """The request in flight."""
        return self.env.take(CHANNEL)

    def answer(self, code: ErrorCode = ErrorCode.NONE, *, start: int = 5) -> Any:
        """Answers the request in flight; returns it."""
        sent = self.take()
        request, results = sent.request, []
        is_write = isinstance(request, WriteShareGroupStateRequest)
        R: Any = WriteShareGroupStateResponse if is_write else ReadShareGroupStateResponse
        Result = R.WriteStateResult if is_write else R.ReadStateResult
        more = {} if is_write else {"state_epoch": 1, "start_offset": start}
        for topic in request.topics:
            partitions = [
                R.PartitionResult(partition=each.partition, error_code=code, **more) for each in topic.partitions
            ]
            results.append(Result(topic_id=topic.topic_id, partitions=partitions))
        sent.on_result(R(results=results))
        self.env.advance(0)
        return request


def ranges(request: WriteShareGroupStateRequest) -> list[tuple[int, int]]:
    return [
        (batch.first_offset, batch.last_offset)
        for topic in request.topics
        for partition in topic.partitions
        for batch in partition.state_batches
    ]


def test_a_state_is_read_with_the_epoch_of_the_leader() -> None:
    persisting = Persisting()
    persisting.read()
    request = persisting.answer()
    assert isinstance(request, ReadShareGroupStateRequest)
    assert request.topics[0].partitions[0].leader_epoch == 7
    assert persisting.heard == [StoredState(1, 5, [])]


def test_what_is_ready_at_the_same_time_shares_a_request() -> None:
    persisting = Persisting()
    other = SharePartitionKey("g", TOPIC, 1)
    persisting.persister.write(KEY, accepted(0, 1), lambda code: persisting.heard.append(code))
    persisting.persister.write(other, accepted(5, 6), lambda code: persisting.heard.append(code))
    persisting.env.advance(0)
    assert ranges(persisting.answer()) == [(0, 1), (5, 6)]
    assert persisting.heard == [ErrorCode.NONE, ErrorCode.NONE]


def test_writes_of_one_share_partition_wait_for_each_other_and_become_one() -> None:
    persisting = Persisting()
    persisting.write(accepted(0, 1, start=0), name="a ")
    persisting.write(accepted(2, 3, start=0), name="b ")
    persisting.write(accepted(4, 5, start=2), name="c ")
    assert ranges(persisting.answer()) == [(0, 1)]
    second = persisting.answer()
    assert ranges(second) == [(2, 5)]
    assert second.topics[0].partitions[0].start_offset == 2
    assert persisting.heard == ["a NONE", "b NONE", "c NONE"]


def test_writes_of_another_state_epoch_stay_apart() -> None:
    persisting = Persisting()
    for epoch in (1, 1, 2):
        persisting.write(accepted(epoch, epoch, epoch=epoch))
    epochs = [persisting.answer().topics[0].partitions[0].state_epoch for _ in range(3)]
    assert epochs == [1, 1, 2]


def test_a_read_sees_the_writes_before_it() -> None:
    persisting = Persisting()
    persisting.write(accepted(0, 1))
    persisting.read()
    assert isinstance(persisting.answer(), WriteShareGroupStateRequest)
    assert isinstance(persisting.answer(), ReadShareGroupStateRequest)


@pytest.mark.parametrize(
    "code",
    [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE],
)
def test_a_coordinator_that_moved_is_looked_for_again(code: ErrorCode) -> None:
    persisting = Persisting()
    persisting.write(accepted(0, 1))
    persisting.lead(3)
    persisting.answer(code)
    assert persisting.heard == []
    persisting.env.advance(100)
    sent = persisting.take()
    assert sent.to == Endpoint("b3", 9092)


def test_a_later_write_does_not_overtake_one_that_is_tried_again() -> None:
    persisting = Persisting()
    persisting.write(accepted(0, 1), name="a ")
    persisting.write(accepted(2, 3), name="b ")
    persisting.take().on_result(SendFailure("timed-out"))
    persisting.env.advance(100)
    assert ranges(persisting.answer()) == [(0, 1)]
    assert ranges(persisting.answer()) == [(2, 3)]
    assert persisting.heard == ["a NONE", "b NONE"]


def test_reads_that_wait_for_an_earlier_one_become_one() -> None:
    rig = Persisting()
    for _ in range(4):
        rig.read()
    rig.answer(start=5)
    assert len(rig.heard) == 1
    rig.answer(start=6)
    assert [each.start_offset for each in rig.heard] == [5, 6, 6, 6]
    assert not rig.env.sent


def test_looking_sees_the_writes_before_it_and_fences_no_leader() -> None:
    rig = Persisting()
    rig.write(accepted(5, 9))
    for _ in range(3):
        rig.persister.look(KEY, rig.heard.append)
    rig.answer()
    sent = rig.take()
    assert isinstance(sent.request, ReadShareGroupStateSummaryRequest)
    assert sent.request.topics[0].partitions[0].leader_epoch == -1
    R = ReadShareGroupStateSummaryResponse
    found = R.PartitionResult(partition=0, state_epoch=2, leader_epoch=7, start_offset=10)
    sent.on_result(R(results=[R.ReadStateSummaryResult(topic_id=TOPIC, partitions=[found])]))
    rig.env.advance(0)
    assert rig.heard == ["NONE", *[StateEpochs(2, 7, 10)] * 3]
    assert not rig.env.sent


def test_attempts_are_limited() -> None:
    persisting = Persisting()
    persisting.write(accepted(0, 1))
    for _ in range(ATTEMPTS):
        assert persisting.heard == []
        persisting.take().on_result(SendFailure("disconnected"))
        persisting.env.advance(2_000)
    assert persisting.heard == ["COORDINATOR_NOT_AVAILABLE"]
    persisting.write(accepted(0, 1))
    persisting.answer()
    assert persisting.heard[1:] == ["NONE"]


def test_without_a_coordinator_the_attempts_are_limited_too() -> None:
    persisting = Persisting(leader=-1)
    persisting.read()
    persisting.env.advance(20_000)
    assert persisting.heard == [ErrorCode.COORDINATOR_NOT_AVAILABLE]


@pytest.mark.parametrize(
    "code", [ErrorCode.FENCED_STATE_EPOCH, ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.INVALID_REQUEST]
)
def test_what_does_not_pass_is_not_tried_again(code: ErrorCode) -> None:
    persisting = Persisting()
    persisting.write(accepted(0, 1), name="a ")
    persisting.write(accepted(2, 3), name="b ")
    persisting.answer(code)
    persisting.answer()
    assert persisting.heard == [f"a {code.name}", "b NONE"]
