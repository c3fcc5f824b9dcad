"""Small requests whose answers, or whose work, could be without bound: against a whole node in memory."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from fuzz.brain import Brain

from heirlog.protocol.batch import HEADER_SIZE, encode_batch, put_varint, read_header
from heirlog.protocol.checksum import crc32c
from heirlog.protocol.compression import GZIP, MAX_DECOMPRESSED_BYTES, ZSTD, compress
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.frames import decode_response
from heirlog.protocol.messages import (
    CreateTopicsRequest,
    DescribeConfigsRequest,
    DescribeGroupsRequest,
    DescribeProducersRequest,
    ListOffsetsRequest,
    MetadataRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    ProduceRequest,
)

MB = 1024 * 1024
WALL_MS = 1_700_000_000_000


@pytest.fixture(scope="module")
def brain() -> Brain:
    return Brain()


def ask(brain: Brain, request: Any, version: int | None = None) -> Any:
    version = request.MAX_VERSION if version is None else version
    return decode_response(request.API_KEY, version, brain.ask(request, version)[4:])[1]


@contextmanager
def at_most(mb: float) -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < mb * MB
    finally:
        tracemalloc.stop()


def produced(brain: Brain, topic: str, batch: bytes) -> Any:
    data = ProduceRequest.PartitionProduceData(index=0, records=batch)
    topics = [ProduceRequest.TopicProduceData(name=topic, partition_data=[data])]
    answer = ask(brain, ProduceRequest(acks=1, timeout_ms=1000, topic_data=topics), 12)
    return answer.responses[0].partition_responses[0]


def bomb(codec: int, payload: bytes, count: int) -> bytes:
    """A batch with these records, whatever they are, that claims to have `count` of them."""
    batch = bytearray(encode_batch([(b"k", b"v", (), WALL_MS)], compression=codec))
    del batch[HEADER_SIZE:]
    batch += compress(codec, payload)
    batch[8:12] = (len(batch) - 12).to_bytes(4, "big")
    batch[23:27] = (count - 1).to_bytes(4, "big")
    batch[57:61] = count.to_bytes(4, "big")
    batch[17:21] = crc32c(memoryview(batch)[21:]).to_bytes(4, "big")
    assert read_header(batch).record_count == count
    return bytes(batch)


def many_records(count: int, keyless: bool) -> bytes:
    payload = bytearray()
    for delta in range(count):
        body = bytearray(1)
        put_varint(body, 0)
        put_varint(body, delta)
        body += b"\x01\x01\x00" if keyless else b"\x02k\x01\x00"
        put_varint(payload, len(body))
        payload += body
    return bytes(payload)


@pytest.mark.parametrize("topic", ["c", "z"], ids=["compacted", "another codec"])
@pytest.mark.parametrize("codec", [GZIP, ZSTD])
def test_what_a_broker_has_to_open_may_not_be_larger_than_the_bound(brain: Brain, topic: str, codec: int) -> None:
    batch = bomb(codec, bytes(MAX_DECOMPRESSED_BYTES + 1), 1)
    assert len(batch) < MB
    with at_most(3 * MAX_DECOMPRESSED_BYTES / MB):
        answer = produced(brain, topic, batch)
    assert answer.error_code == ErrorCode.CORRUPT_MESSAGE


def test_a_bomb_that_nobody_opened_is_refused_when_it_is_searched(brain: Brain) -> None:
    assert produced(brain, "t", bomb(GZIP, bytes(MAX_DECOMPRESSED_BYTES + 1), 1)).error_code == 0
    partition = ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=WALL_MS)
    request = ListOffsetsRequest(topics=[ListOffsetsRequest.ListOffsetsTopic(name="t", partitions=[partition])])
    with at_most(3 * MAX_DECOMPRESSED_BYTES / MB):
        answer = ask(brain, request, 7).topics[0].partitions[0]
    assert answer.error_code == ErrorCode.CORRUPT_MESSAGE


def test_very_many_records_are_searched_without_being_kept(brain: Brain) -> None:
    count = 200_000
    payload = many_records(count, keyless=True)
    assert produced(brain, "l", bomb(ZSTD, payload, count)).error_code == 0
    partition = ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=2**62)
    request = ListOffsetsRequest(topics=[ListOffsetsRequest.ListOffsetsTopic(name="l", partitions=[partition])])
    with at_most(4 * len(payload) / MB):
        assert ask(brain, request, 7).topics[0].partitions[0].error_code == 0


def test_of_very_many_records_without_a_key_the_first_are_named(brain: Brain) -> None:
    answer = produced(brain, "c", bomb(ZSTD, many_records(50_000, keyless=True), 50_000))
    assert answer.error_code == ErrorCode.INVALID_RECORD
    assert [error.batch_index for error in answer.record_errors] == list(range(1000))


def test_what_is_named_many_times_is_told_once(brain: Brain) -> None:
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=4, resource_name="1", configuration_keys=None
    )
    assert len(ask(brain, DescribeConfigsRequest(resources=[resource] * 10_000)).results) == 1
    for topic in (
        MetadataRequest.MetadataRequestTopic(name="t"),
        MetadataRequest.MetadataRequestTopic(name=None, topic_id=brain.topic_ids["t"]),
    ):
        assert len(ask(brain, MetadataRequest(topics=[topic] * 10_000)).topics) == 1
    assert len(ask(brain, DescribeGroupsRequest(groups=["g"] * 10_000)).groups) == 1
    group = OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", topics=None)
    assert len(ask(brain, OffsetFetchRequest(groups=[group] * 10_000), 8).groups) == 1
    producers = DescribeProducersRequest.TopicRequest(name="t", partition_indexes=[0] * 1000)
    (received,) = ask(brain, DescribeProducersRequest(topics=[producers] * 100)).topics
    assert len(received.partitions) == 1


def test_topics_of_very_many_partitions_are_refused_before_they_are_placed(brain: Brain) -> None:
    before = set(brain.node.image.topic_ids)

    def create(validate_only: bool, *partitions: int) -> list[int]:
        topics = [
            CreateTopicsRequest.CreatableTopic(name=f"many-{n}", num_partitions=count, replication_factor=1)
            for n, count in enumerate(partitions)
        ]
        request = CreateTopicsRequest(topics=topics, timeout_ms=5000, validate_only=validate_only)
        return [topic.error_code for topic in ask(brain, request).topics]

    assert create(False, 1_000_000) == [ErrorCode.POLICY_VIOLATION]
    started = time.process_time()
    codes = create(True, *[2500] * 1000)
    assert codes[0] == 0 and codes.count(ErrorCode.POLICY_VIOLATION) >= 996
    assert time.process_time() - started < 10
    assert set(brain.node.image.topic_ids) == before


def test_metadata_of_a_partition_commit_is_at_most_offset_metadata_max_bytes(brain: Brain) -> None:
    def commit(size: int) -> int:
        partition = OffsetCommitRequest.OffsetCommitRequestPartition(
            partition_index=0, committed_offset=1, committed_metadata="x" * size
        )
        topics = [OffsetCommitRequest.OffsetCommitRequestTopic(name="t", partitions=[partition])]
        answer = ask(brain, OffsetCommitRequest(group_id="g", topics=topics), 8)
        return int(answer.topics[0].partitions[0].error_code)

    wait_for_coordinator(brain)
    assert commit(4096) == 0
    assert commit(4097) == ErrorCode.OFFSET_METADATA_TOO_LARGE


def wait_for_coordinator(brain: Brain) -> None:
    from heirlog.protocol.messages import FindCoordinatorRequest

    for _ in range(20):
        if ask(brain, FindCoordinatorRequest(key="g", coordinator_keys=["g"]), 4).coordinators[0].error_code == 0:
            brain.world.run_for(1000)
            return
        brain.world.run_for(500)
    raise AssertionError("there is no coordinator")


def test_names_that_do_not_exist_are_asked_for_a_thousand_at_a_time(brain: Brain) -> None:
    connection = brain.connect()
    names = [MetadataRequest.MetadataRequestTopic(name=f"missing.{n}") for n in range(5000)]
    brain.node._missing_topics._asked.clear()
    brain.receive_request(connection, MetadataRequest(topics=names), 9)
    assert len(brain.node._missing_topics._asked) == 1000
    brain.hang_up(connection)
