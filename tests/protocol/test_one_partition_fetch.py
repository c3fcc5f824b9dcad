"""The short way of a Fetch with one partition gives what the generated code gives, and leaves it all other messages."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from typing import Any

import pytest

from heirlog.protocol import one_partition_fetch as short
from heirlog.protocol.messages import FetchRequest, FetchResponse
from heirlog.protocol.primitives import Malformed, Message, Out, decode_with_end, encode_bytes

VERSIONS = range(12, 19)


def _asked(rng: random.Random) -> FetchRequest.FetchPartition:
    return FetchRequest.FetchPartition(
        partition=rng.randrange(2**31),
        current_leader_epoch=rng.randrange(-1, 2**31),
        fetch_offset=rng.randrange(2**63),
        last_fetched_epoch=rng.randrange(-1, 9),
        log_start_offset=rng.randrange(-1, 9),
        partition_max_bytes=rng.randrange(2**31),
    )


def _request(rng: random.Random, **fields: Any) -> FetchRequest:
    message = FetchRequest(
        max_wait_ms=rng.randrange(2**31),
        min_bytes=1,
        max_bytes=rng.randrange(2**31),
        isolation_level=rng.randrange(2),
        session_id=rng.randrange(2**31),
        session_epoch=rng.randrange(-1, 2**31),
        topics=[FetchRequest.FetchTopic(topic_id=rng.randbytes(16), partitions=[_asked(rng)])],
    )
    for name, value in fields.items():
        setattr(message, name, value)
    return message


def _data(rng: random.Random, **fields: Any) -> FetchResponse.PartitionData:
    return FetchResponse.PartitionData(
        **{
            "partition_index": rng.randrange(2**31),
            "error_code": rng.randrange(100),
            "high_watermark": rng.randrange(-1, 2**63),
            "last_stable_offset": rng.randrange(-1, 2**63),
            "log_start_offset": rng.randrange(2**63),
            "aborted_transactions": None,
            "preferred_read_replica": -1,
            "records": rng.randbytes(rng.choice((0, 1, 126, 127, 128, 900))),
            **fields,
        }
    )


def _response(rng: random.Random, *partitions: FetchResponse.PartitionData, **fields: Any) -> FetchResponse:
    topic = FetchResponse.FetchableTopicResponse(topic_id=rng.randbytes(16), partitions=list(partitions))
    return FetchResponse(
        throttle_time_ms=rng.randrange(9), session_id=rng.randrange(2**31), responses=[topic], **fields
    )


def _messages(rng: random.Random) -> list[Message]:
    state = FetchRequest.ReplicaState(replica_id=rng.randrange(-1, 9), replica_epoch=rng.randrange(-1, 9))
    directory, watermark, two, no_topic = _request(rng), _request(rng), _request(rng), _request(rng, topics=[])
    directory.topics[0].partitions[0].replica_directory_id = rng.randbytes(16)
    watermark.topics[0].partitions[0].high_watermark = 5
    two.topics[0].partitions.append(_asked(rng))
    of_no_partition = _request(rng, topics=[FetchRequest.FetchTopic(topic_id=rng.randbytes(16))])
    forgotten = [FetchRequest.ForgottenTopic(topic_id=rng.randbytes(16), partitions=[1])]
    aborted = [FetchResponse.AbortedTransaction(producer_id=1, first_offset=2)]
    diverging = FetchResponse.EpochEndOffset(epoch=1, end_offset=2)
    return [
        _request(rng),
        _request(rng, replica_state=state),
        *(directory, watermark, two, no_topic, of_no_partition),
        _request(rng, forgotten_topics_data=forgotten),
        _request(rng, rack_id="r"),
        _request(rng, cluster_id="c"),
        _request(rng, cluster_id="c", replica_state=state),
        _response(rng, _data(rng)),
        _response(rng, _data(rng, records=None)),
        _response(rng, _data(rng, aborted_transactions=[])),
        _response(rng, _data(rng, aborted_transactions=aborted)),
        _response(rng, _data(rng, diverging_epoch=diverging)),
        _response(rng, _data(rng, diverging_epoch=FetchResponse.EpochEndOffset())),
        _response(rng, _data(rng, current_leader=FetchResponse.LeaderIdAndEpoch(leader_id=1, leader_epoch=2))),
        _response(rng, _data(rng, snapshot_id=FetchResponse.SnapshotId(end_offset=1, epoch=2))),
        _response(rng, _data(rng), _data(rng)),
        _response(rng),
        FetchResponse(error_code=70),
        _response(rng, _data(rng), node_endpoints=[FetchResponse.NodeEndpoint(node_id=1, host="h", port=2)]),
    ]


def _generated(message: Message) -> tuple[Callable[..., Any], Callable[..., Any]]:
    if isinstance(message, FetchRequest):
        return short._read_any_request, short._write_any_request
    return short._read_any_response, short._write_any_response


@pytest.mark.parametrize("version", VERSIONS)
def test_both_ways_write_the_same_bytes_and_read_the_same_message(version: int) -> None:
    rng = random.Random(version)
    for _ in range(20):
        for message in _messages(rng):
            read, write = _generated(message)
            out = Out()
            write(out, (message,), version)
            data = b"".join(out.small)
            assert encode_bytes(message, version) == data
            expected, end = read(memoryview(data), 0, 1, version)
            assert decode_with_end(type(message), data, version) == (expected[0], end)
            assert decode_with_end(type(message), b"\7" + data, version, 1) == (expected[0], end + 1)
            behind, end = read(memoryview(data + b"\0\0"), 0, 1, version)
            assert decode_with_end(type(message), data + b"\0\0", version) == (behind[0], end)


@pytest.mark.parametrize("version", VERSIONS)
def test_both_ways_refuse_the_same_bytes(version: int) -> None:
    rng = random.Random(version)
    for message in _messages(rng):
        read, _ = _generated(message)
        valid = encode_bytes(message, version)
        for _ in range(200):
            data = bytearray(valid)
            data[rng.randrange(len(data))] = rng.choice((0, 1, 2, 3, 13, 127, 128, 255))
            try:
                expected = read(memoryview(data), 0, 1, version)
            except (IndexError, struct.error, ValueError):  # Malformed is a ValueError
                expected = [], len(data) + 1
            if expected[1] > len(data):
                with pytest.raises(Malformed):
                    decode_with_end(type(message), data, version)
            else:
                assert decode_with_end(type(message), data, version) == (expected[0][0], expected[1])
