"""The short way of a Produce with one partition gives what the generated code gives, and leaves it all others."""

from __future__ import annotations

import random
import struct
from typing import Any

import pytest

from heirlog.protocol import one_partition_produce as short
from heirlog.protocol.messages import ProduceRequest, ProduceResponse
from heirlog.protocol.primitives import Malformed, Out, decode_with_end, encode_bytes

VERSIONS = range(8, 14)


def _sent(rng: random.Random) -> ProduceRequest.PartitionProduceData:
    size = rng.choice((0, 1, 126, 127, 128, 900))
    return ProduceRequest.PartitionProduceData(index=rng.randrange(2**31), records=rng.randbytes(size))


def _topic(rng: random.Random, *sent: ProduceRequest.PartitionProduceData, **fields: Any) -> Any:
    who: dict[str, Any] = {"topic_id": rng.randbytes(16), "name": "t" * rng.choice((0, 1, 125, 126, 127, 200))}
    return ProduceRequest.TopicProduceData(**who | fields, partition_data=list(sent))


def _request(rng: random.Random, *topics: Any, **fields: Any) -> ProduceRequest:
    return ProduceRequest(acks=rng.choice((-1, 1)), timeout_ms=rng.randrange(2**31), topic_data=list(topics), **fields)


def _requests(rng: random.Random) -> list[ProduceRequest]:
    null = ProduceRequest.PartitionProduceData(index=1, records=None)
    return [
        *(_request(rng, _topic(rng, _sent(rng))) for _ in range(6)),
        _request(rng, _topic(rng, _sent(rng), name="tä")),
        _request(rng, _topic(rng, null)),
        _request(rng, _topic(rng, _sent(rng)), transactional_id="x"),
        _request(rng, _topic(rng, _sent(rng)), transactional_id=""),
        _request(rng, _topic(rng, _sent(rng), _sent(rng))),
        _request(rng, _topic(rng, _sent(rng)), _topic(rng, _sent(rng))),
        _request(rng, _topic(rng)),
        _request(rng),
    ]


def _answer(rng: random.Random, **fields: Any) -> ProduceResponse.PartitionProduceResponse:
    return ProduceResponse.PartitionProduceResponse(
        **{
            "index": rng.randrange(2**31),
            "error_code": rng.randrange(100),
            "base_offset": rng.randrange(-1, 2**63),
            "log_append_time_ms": rng.randrange(-1, 2**63),
            "log_start_offset": rng.randrange(-1, 2**63),
            **fields,
        }
    )


def _response(rng: random.Random, *answers: ProduceResponse.PartitionProduceResponse, **fields: Any) -> ProduceResponse:
    topic = ProduceResponse.TopicProduceResponse(
        topic_id=rng.randbytes(16), name="t" * rng.choice((0, 1, 126, 127, 200)), partition_responses=list(answers)
    )
    return ProduceResponse(throttle_time_ms=rng.randrange(9), **{"responses": [topic], **fields})


def _responses(rng: random.Random) -> list[ProduceResponse]:
    refused = [ProduceResponse.BatchIndexAndErrorMessage(batch_index=3)]
    leader = ProduceResponse.LeaderIdAndEpoch(leader_id=1, leader_epoch=2)
    two = [*_response(rng, _answer(rng)).responses, *_response(rng, _answer(rng)).responses]
    return [
        *(_response(rng, _answer(rng)) for _ in range(5)),
        _response(rng, _answer(rng, record_errors=refused)),
        _response(rng, _answer(rng, error_message="why")),
        _response(rng, _answer(rng, error_message="")),
        _response(rng, _answer(rng, current_leader=leader)),
        _response(rng, _answer(rng, current_leader=ProduceResponse.LeaderIdAndEpoch())),
        _response(rng, _answer(rng), node_endpoints=[ProduceResponse.NodeEndpoint(node_id=1, host="h", port=2)]),
        _response(rng, _answer(rng), _answer(rng)),
        _response(rng, responses=two),
        _response(rng),
        ProduceResponse(),
    ]


@pytest.mark.parametrize("version", VERSIONS)
def test_both_ways_read_the_same_request(version: int) -> None:
    rng = random.Random(version)
    for _ in range(20):
        for message in _requests(rng):
            data = encode_bytes(message, version)
            expected, end = short._read_any_request(memoryview(data), 0, 1, version)
            assert decode_with_end(ProduceRequest, data, version) == (expected[0], end)
            assert decode_with_end(ProduceRequest, b"\7" + data, version, 1) == (expected[0], end + 1)
            assert decode_with_end(ProduceRequest, data + b"\0\0", version) == (expected[0], end)


@pytest.mark.parametrize("version", VERSIONS)
def test_both_ways_refuse_the_same_bytes(version: int) -> None:
    rng = random.Random(version)
    for message in _requests(rng):
        valid = encode_bytes(message, version)
        for _ in range(200):
            data = bytearray(valid)
            data[rng.randrange(min(len(data), 60))] = rng.choice((0, 1, 2, 3, 13, 127, 128, 255))
            del data[rng.choice((len(data), rng.randrange(len(data)))) :]
            try:
                expected = short._read_any_request(memoryview(data), 0, 1, version)
            except (IndexError, struct.error, ValueError):  # Malformed is a ValueError
                expected = [], len(data) + 1
            if expected[1] > len(data):
                with pytest.raises(Malformed):
                    decode_with_end(ProduceRequest, data, version)
            else:
                assert decode_with_end(ProduceRequest, data, version) == (expected[0][0], expected[1])


@pytest.mark.parametrize("version", VERSIONS)
def test_both_ways_write_the_same_response(version: int) -> None:
    rng = random.Random(version)
    for _ in range(20):
        for message in _responses(rng):
            out = Out()
            short._write_any_response(out, (message,), version)
            assert encode_bytes(message, version) == b"".join(out.small)
