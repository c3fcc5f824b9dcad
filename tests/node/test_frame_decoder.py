"""The decoder of a connection keeps the last header; what it decodes is what a new one decodes."""

from __future__ import annotations

import random
from typing import Any

from heirlog.apis.common.api import Role
from heirlog.node import wire
from heirlog.node.router import ListenerRoutes
from heirlog.protocol.frames import RequestHeader, encode_request
from heirlog.protocol.messages import ApiVersionsRequest, FetchRequest, MetadataRequest
from heirlog.protocol.types import Endpoint

ADDRESS = Endpoint("localhost", 9092)
LISTENER = ListenerRoutes("PLAINTEXT", ADDRESS, ADDRESS, Role.BROKER)


def frame_of(request: Any, version: int, number: int, client_id: str | None) -> bytes:
    header = RequestHeader(request.API_KEY, version, number, client_id)
    return b"".join(map(bytes, encode_request(header, request)))[4:]  # type: ignore[arg-type]


def frames() -> list[bytes]:
    requests = [(FetchRequest(max_bytes=7), 12), (FetchRequest(), 13), (FetchRequest(), 11), (MetadataRequest(), 12)]
    valid = [
        frame_of(request, version, number, client_id)
        for number in range(3)
        for client_id in (None, "", "a", "b", "ab")
        for request, version in requests
    ]
    unknown = bytearray(frame_of(ApiVersionsRequest(), 4, 1, "a"))
    unknown[2:4] = b"\x7f\xff"
    tagged = bytearray(frame_of(FetchRequest(), 12, 5, "a"))
    tagged[11:12] = b"\1\7\2hi"
    return [*valid, bytes(unknown), bytes(tagged), b"", b"\0\1", b"\x7f\0" * 8]


def test_each_frame_is_decoded_as_without_those_before_it() -> None:
    rng = random.Random(1)
    decoder = wire.FrameDecoder(LISTENER)
    kept = frames()
    for _ in range(2_000):
        frame = rng.choice(kept)
        if rng.random() < 0.1:
            frame = frame[: rng.randrange(len(frame) + 1)]
        for _ in range(rng.choice((1, 1, 3))):
            assert decoder.decode(memoryview(frame)) == wire.decode(LISTENER, memoryview(frame))


def test_a_header_that_comes_again_has_its_own_correlation_id() -> None:
    decoder = wire.FrameDecoder(LISTENER)
    for number in range(3):
        decoded = decoder.decode(memoryview(frame_of(FetchRequest(), 12, number, "a")))
        assert not isinstance(decoded, wire.RefusedFrame)
        assert decoded[0] == RequestHeader(1, 12, number, "a")
