"""Reading through changes of the leader."""

from __future__ import annotations

from typing import Any

import pytest
from client.driving import ONE, TWO, World, described

from heirlog.client.call import Send
from heirlog.client.errors import LogTruncated, OffsetOutOfRange, TopicRecreated, Unsupported
from heirlog.client.fetching import NEWEST_BY_NAME, Fetched, PartitionFetch
from heirlog.client.partition_reader import (
    FIRST_BYTE_TIMEOUT_S,
    RECREATED_ANSWERS_MAX,
    SHORTEST_WAIT_S,
    PartitionReader,
)
from heirlog.protocol.batch import encode_batch
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import (
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    MetadataRequest,
)
from heirlog.protocol.primitives import Message
from heirlog.protocol.types import ZERO_UUID, Endpoint

OLD_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER


class Reading:
    """A reader of t-0 from offset 0 up to 10, whose metadata the test may replace."""

    def __init__(self, *, topic_id: bytes | None = None, last_epoch: int = -1) -> None:
        self.metadata: Any = described([1])
        self.offsets = {-2: 0, -1: 20}
        self.world = World(self._answer)
        fetch = PartitionFetch("t", 0, 0, 10, isolation=0, max_bytes=1 << 20, max_wait_ms=500, last_epoch=last_epoch)
        self.reader = PartitionReader(self.world.cluster(), fetch, topic_id, 30)

    def _answer(self, _: Endpoint, message: Message) -> Any:
        if isinstance(message, MetadataRequest):
            return self.metadata
        assert isinstance(message, ListOffsetsRequest)
        offset = self.offsets[message.topics[0].partitions[0].timestamp]
        found = ListOffsetsResponse.ListOffsetsPartitionResponse(offset=offset)
        return ListOffsetsResponse(topics=[ListOffsetsResponse.ListOffsetsTopicResponse(name="t", partitions=[found])])

    def send(self) -> Send:
        return self.world.run(self.reader.next_send())

    def looks(self) -> int:
        return len(self.world.servers(MetadataRequest))


def answer(count: int = 0, code: int = 0, offset: int = 0) -> FetchResponse:
    records = encode_batch([(None, b"v", (), 0)] * count, base_offset=offset) if count else b""
    data = FetchResponse.PartitionData(error_code=code, high_watermark=20, records=records)
    return FetchResponse(responses=[FetchResponse.FetchableTopicResponse(topic="t", partitions=[data])])


def offset_in(send: Send) -> int:
    assert isinstance(send.message, FetchRequest)
    return send.message.topics[0].partitions[0].fetch_offset


def test_the_request_after_a_part_is_there_before_the_caller_is_back() -> None:
    reading = Reading()
    first = reading.send()
    assert (first.to, offset_in(first)) == (ONE, 0)
    part = reading.reader.answered(answer(4))
    assert isinstance(part, Fetched)
    assert part.next_offset == 4
    ahead = reading.reader.ahead()
    assert ahead is not None
    assert offset_in(ahead) == 4
    reading.reader.answered(answer(6, offset=4))
    assert reading.reader.done
    assert reading.reader.ahead() is None
    assert reading.looks() == 1


@pytest.mark.parametrize("code", [0, OLD_LEADER])
def test_the_leader_is_looked_up_again_after_a_pause(code: int) -> None:
    reading = Reading()
    reading.send()
    reading.metadata = described([2], epoch=1)
    if code:
        assert reading.reader.answered(answer(code=code)) is None
    else:
        reading.reader.failed(ConnectionError("gone"))
    assert reading.reader.ahead() is None
    assert reading.send().to == TWO
    assert len(reading.world.pauses) == 1


def test_without_progress_the_failure_is_raised_when_the_time_is_over() -> None:
    reading = Reading()
    with pytest.raises(ConnectionError, match="gone"):
        while True:
            reading.send()
            reading.reader.failed(ConnectionError("gone"))
    assert 25 < reading.world.now <= 30
    empty = Reading()
    empty.send()
    assert empty.reader.answered(answer()) is None
    empty.world.now = 31
    with pytest.raises(TimeoutError, match=r"nothing came at offset 0 within 30 s, .* the high watermark is 20"):
        empty.reader.answered(answer())


def test_the_time_of_the_caller_does_not_count() -> None:
    reading = Reading()
    reading.send()
    reading.reader.answered(answer(4))
    reading.world.now = 1000
    reading.reader.reset_stall_timer()
    assert reading.reader.wait_s() == FIRST_BYTE_TIMEOUT_S
    reading.world.now += 29.5
    assert reading.reader.wait_s() == SHORTEST_WAIT_S


def test_a_topic_that_may_still_come_is_waited_for_and_one_that_is_refused_is_not() -> None:
    reading = Reading()
    reading.metadata = described(code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    with pytest.raises(KafkaError, match="topic t cannot be read"):
        reading.send()
    assert reading.world.now > 25
    denied = Reading()
    denied.metadata = described(code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    with pytest.raises(KafkaError, match="topic t cannot be read"):
        denied.send()
    assert denied.world.now == 0


def test_another_topic_of_the_same_name_is_believed_only_after_several_looks() -> None:
    reading = Reading(topic_id=b"x" * 16)
    with pytest.raises(TopicRecreated):
        reading.send()
    assert reading.looks() == RECREATED_ANSWERS_MAX
    behind = Reading()
    behind.send()
    behind.reader.failed(ConnectionError("gone"))
    recreated = described([1])
    recreated.topics[0].topic_id = b"y" * 16
    behind.metadata = recreated
    with pytest.raises(TopicRecreated):
        behind.send()


def test_brokers_without_topic_ids_are_asked_by_name() -> None:
    reading = Reading()
    reading.metadata = described([1])
    reading.metadata.topics[0].topic_id = ZERO_UUID
    assert reading.send().newest == NEWEST_BY_NAME


def test_a_broker_without_the_api_is_not_asked_again() -> None:
    reading = Reading()
    reading.metadata = Unsupported("too old")
    with pytest.raises(Unsupported):
        reading.send()
    assert reading.looks() == 1


def test_a_refused_offset_is_explained_by_the_offsets_that_exist() -> None:
    refusal = OffsetOutOfRange("t", 0, 15)
    without = Reading()
    found = without.world.run(without.reader.explained(refusal, 10))
    assert isinstance(found, OffsetOutOfRange)
    assert (found.log_start_offset, found.high_watermark) == (0, 20)
    within = Reading(last_epoch=3)
    assert isinstance(within.world.run(within.reader.explained(refusal, 10)), LogTruncated)
    within.offsets = {-2: 0, -1: 10}
    assert isinstance(within.world.run(within.reader.explained(refusal, 10)), OffsetOutOfRange)
