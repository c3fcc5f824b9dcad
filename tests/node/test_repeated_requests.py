"""Requests that come again byte for byte: one is decoded, and answered as often as it comes."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from heirlog.apis.common.api import Role
from heirlog.context import Context
from heirlog.node import wire
from heirlog.node.connection import ClientConnection, ReadAhead
from heirlog.node.request_metrics import RequestMetrics
from heirlog.node.router import ListenerRoutes
from heirlog.protocol.frames import RequestHeader, encode_request
from heirlog.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    HeartbeatRequest,
    HeartbeatResponse,
    MetadataRequest,
    ShareGroupHeartbeatRequest,
)
from heirlog.protocol.types import Endpoint

ADDRESS = Endpoint("localhost", 9092)
LISTENER = ListenerRoutes("PLAINTEXT", ADDRESS, ADDRESS, Role.BROKER)
CONSUMER_GROUP_HEARTBEAT = 68


class Wire:
    peer_host = "here"

    def __init__(self) -> None:
        self.answered: list[int] = []

    def send(self, header: RequestHeader, response: Any) -> None:
        self.answered.append(header.correlation_id)


class Brain:
    """Remembers what its handlers get."""

    def __init__(self) -> None:
        self.ticks_ns = count(0, 1_000_000)
        self.requests: Any = RequestMetrics(lambda: next(self.ticks_ns))
        self.read_ahead = ReadAhead(500)
        self.holds_requests = False
        self.client_quotas = None
        self.handled: list[tuple[Any, Context]] = []

    def handle(self, listener: ListenerRoutes, header: RequestHeader, request: Any, context: Context) -> Any:
        self.handled.append((request, context))
        return HeartbeatResponse()

    def refused_frame(self, connection: ClientConnection, reason: str) -> None:
        raise AssertionError(reason)


class Client:
    def __init__(self) -> None:
        self.brain = Brain()
        self.wire = Wire()
        self.connection = ClientConnection(self.brain, LISTENER, self.wire)  # type: ignore[arg-type]
        self.numbers = count(1)

    def sends(self, request: Any, version: int, client_id: str | None = "a") -> Any:
        """What the handler gets."""
        header = RequestHeader(request.API_KEY, version, next(self.numbers), client_id)
        frame = bytearray(b"".join(map(bytes, encode_request(header, request)))[4:])  # type: ignore[arg-type]
        self.connection.received_frame(memoryview(frame))
        # what is kept must be a copy: whoever has read the frame uses the buffer again
        frame[:] = bytes(len(frame))
        return self.brain.handled[-1][0]


@pytest.fixture
def client() -> Client:
    return Client()


def consumer_heartbeat(**fields: Any) -> ConsumerGroupHeartbeatRequest:
    who: dict[str, Any] = {"group_id": "g", "member_id": "m", "member_epoch": 3, "rebalance_timeout_ms": -1}
    return ConsumerGroupHeartbeatRequest(**who | fields)


@pytest.mark.parametrize(
    ("request_", "version"),
    [
        (consumer_heartbeat(), 1),
        (ShareGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=3), 1),
        (HeartbeatRequest(group_id="g", generation_id=3, member_id="m"), 4),
    ],
)
def test_a_heartbeat_that_says_the_same_is_decoded_once_and_answered_each_time(
    client: Client, request_: Any, version: int
) -> None:
    first = client.sends(request_, version)
    assert first == request_
    assert client.sends(request_, version) is first
    assert client.sends(request_, version) is first
    assert client.wire.answered == [1, 2, 3]
    assert first == request_


@pytest.mark.parametrize(
    "changed",
    [
        {"member_epoch": 4},
        {"member_id": "n"},
        {"group_id": "h"},
        {"subscribed_topic_names": ["t"]},
        {"subscribed_topic_names": []},
        {"topic_partitions": []},
        {"instance_id": ""},
    ],
)
def test_a_heartbeat_that_differs_in_anything_is_decoded(client: Client, changed: dict[str, Any]) -> None:
    first = client.sends(consumer_heartbeat(), 1)
    other = client.sends(consumer_heartbeat(**changed), 1)
    assert other is not first and other == consumer_heartbeat(**changed)
    again = client.sends(consumer_heartbeat(), 1)
    assert again == consumer_heartbeat()
    assert client.wire.answered == [1, 2, 3]


def test_the_same_body_under_another_name_or_version_is_another_request(client: Client) -> None:
    request = HeartbeatRequest(group_id="g", generation_id=3, member_id="m")
    first = client.sends(request, 1)
    assert client.sends(request, 2) is not first, "versions 1 and 2 have the same bytes"
    client.sends(request, 2, client_id="b")
    client.sends(request, 2, client_id=None)
    assert [(context.api_version, context.client_id) for _, context in client.brain.handled] == [
        (1, "a"),
        (2, "a"),
        (2, "b"),
        (2, ""),
    ]


def test_each_request_counts_although_it_is_not_decoded(client: Client) -> None:
    for _ in range(3):
        client.sends(consumer_heartbeat(), 1)
    assert client.brain.requests.received(CONSUMER_GROUP_HEARTBEAT, 1, consumer_heartbeat()).done == 3


def test_it_is_served_to_whom_the_connection_belongs_by_then(client: Client) -> None:
    client.sends(consumer_heartbeat(), 1)
    client.connection.principal = "User:b"
    client.sends(consumer_heartbeat(), 1)
    assert [context.principal for _, context in client.brain.handled] == ["User:ANONYMOUS", "User:b"]


def test_a_long_request_and_one_of_another_api_are_not_kept(client: Client) -> None:
    long = consumer_heartbeat(subscribed_topic_names=["t" * 60] * 10)
    assert client.sends(long, 1) is not client.sends(long, 1)
    short = client.sends(consumer_heartbeat(), 1)
    client.sends(MetadataRequest(topics=[]), 12)
    client.sends(long, 1)
    assert client.sends(consumer_heartbeat(), 1) is short, "what is not kept replaces nothing"


def test_a_frame_that_ends_within_its_header_is_not_taken_for_it() -> None:
    request = consumer_heartbeat()
    header = RequestHeader(CONSUMER_GROUP_HEARTBEAT, 1, 7, "a")
    frame = memoryview(b"".join(map(bytes, encode_request(header, request)))[4:])  # type: ignore[arg-type]
    kept = wire.RepeatedRequest(header, request, frame)
    for size in range(len(frame)):
        assert kept.header_in(frame[:size]) is None
    assert kept.header_in(frame) == header
