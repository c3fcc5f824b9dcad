from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from heirlog.apis.common.api import Role
from heirlog.context import CLOSE, NO_ANSWER
from heirlog.node.connection import LARGE_ANSWER_COST, QUEUE_LIMIT, ClientConnection, ReadAhead
from heirlog.node.request_metrics import RequestMetrics, quantiles_ms
from heirlog.node.router import ListenerRoutes
from heirlog.pending import Pending
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.frames import RequestHeader, encode_request
from heirlog.protocol.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FetchRequest,
    FetchResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    MetadataRequest,
)
from heirlog.protocol.types import Endpoint

ADDRESS = Endpoint("localhost", 9092)
PRODUCE, FETCH, HEARTBEAT = 0, 1, 12
LISTENER = ListenerRoutes("PLAINTEXT", ADDRESS, ADDRESS, Role.BROKER)


class Wire:
    """The body's end: remembers what left."""

    peer_host = "here"

    def __init__(self) -> None:
        self.sent: list[tuple[int, Any]] = []
        self.closed = False
        self.resumed = 0
        self.paused = 0

    def send(self, header: RequestHeader, response: Any) -> None:
        self.sent.append((header.correlation_id, response))

    def close(self) -> None:
        self.closed = True

    def pause(self) -> None:
        self.paused += 1

    def resume(self) -> None:
        self.resumed += 1


class Brain:
    """Answers each request with what the test put under its correlation id."""

    def __init__(self) -> None:
        self.ticks_ns = count(0, 1_000_000)
        self.requests: Any = RequestMetrics(lambda: next(self.ticks_ns))
        self.answers: dict[int, Any] = {}
        self.refused: list[str] = []
        self.gone: list[ClientConnection] = []
        self.read_ahead = ReadAhead(500)
        self.holds_requests = False
        self.client_quotas = None

    def handle(self, listener: ListenerRoutes, header: RequestHeader, request: Any, context: Any) -> Any:
        return self.answers[header.correlation_id]

    def refused_frame(self, connection: ClientConnection, reason: str) -> None:
        self.refused.append(reason)

    def disconnected(self, connection: ClientConnection) -> None:
        self.gone.append(connection)


@pytest.fixture
def brain() -> Brain:
    return Brain()


@pytest.fixture
def wire() -> Wire:
    return Wire()


@pytest.fixture
def connection(brain: Brain, wire: Wire) -> ClientConnection:
    return ClientConnection(brain, LISTENER, wire)  # type: ignore[arg-type]


def ask(connection: ClientConnection, number: int, api_key: int = HEARTBEAT, size: int = 0) -> None:
    request = FetchRequest() if api_key == FETCH else HeartbeatRequest()
    connection.received(RequestHeader(api_key, 4, number, "test"), request, size)


def said(number: int) -> HeartbeatResponse:
    """An answer that differs from others."""
    return HeartbeatResponse(throttle_time_ms=number)


def test_an_answer_that_is_ready_early_waits_for_those_before_it(
    connection: ClientConnection, brain: Brain, wire: Wire
) -> None:
    slow: Pending[Any] = Pending()
    brain.answers = {1: slow, 2: said(2), 3: NO_ANSWER, 4: said(4)}
    for number in (1, 2, 3, 4):
        ask(connection, number)
    assert wire.sent == []
    slow.complete(said(1))
    assert wire.sent == [(1, said(1)), (2, said(2)), (4, said(4))]


def test_a_pending_that_is_complete_already_is_sent_at_once(
    connection: ClientConnection, brain: Brain, wire: Wire
) -> None:
    done: Pending[Any] = Pending()
    done.complete(said(1))
    brain.answers = {1: done}
    ask(connection, 1)
    assert wire.sent == [(1, said(1))]


def test_a_failed_request_without_answer_closes_the_connection_in_its_turn(
    connection: ClientConnection, brain: Brain, wire: Wire
) -> None:
    first: Pending[Any] = Pending()
    second: Pending[Any] = Pending()
    brain.answers = {1: first, 2: second}
    ask(connection, 1)
    ask(connection, 2)
    second.complete(CLOSE)
    assert not wire.closed
    first.complete(said(1))
    assert wire.sent == [(1, said(1))]
    assert wire.closed


def test_reading_stops_at_the_bound_and_goes_on_when_half_is_answered(
    connection: ClientConnection, brain: Brain, wire: Wire
) -> None:
    waits: list[Pending[Any]] = [Pending() for _ in range(QUEUE_LIMIT)]
    brain.answers = dict(enumerate(waits))
    for number in range(QUEUE_LIMIT):
        assert not connection.paused
        ask(connection, number)
    assert connection.paused
    for number in range(QUEUE_LIMIT // 2):
        assert wire.resumed == 0
        waits[number].complete(said(number))
    assert wire.resumed == 1
    assert not connection.paused


def test_few_requests_wait_whose_answers_may_be_large(connection: ClientConnection, brain: Brain, wire: Wire) -> None:
    first: Pending[Any] = Pending()
    brain.answers = {1: first, 2: FetchResponse()}
    ask(connection, 1, FETCH)
    assert not connection.paused
    ask(connection, 2, FETCH)
    assert connection.paused
    assert 2 * LARGE_ANSWER_COST == QUEUE_LIMIT
    first.complete(FetchResponse())
    assert wire.resumed == 1


def test_few_large_requests_wait_but_the_records_of_a_produce_request_are_in_the_log(
    connection: ClientConnection, brain: Brain
) -> None:
    brain.answers = {number: Pending() for number in range(20)}
    for number in range(10):
        ask(connection, number, PRODUCE, 10_000_000)
    assert not connection.paused
    ask(connection, 10, HEARTBEAT, 10_000_000)
    assert connection.paused


def test_a_broker_that_is_not_ready_holds_requests_by_their_size(connection: ClientConnection, brain: Brain) -> None:
    brain.holds_requests = True
    brain.answers = {1: Pending()}
    ask(connection, 1, PRODUCE, 10_000_000)
    assert connection.paused


def test_all_connections_together_are_ahead_by_queued_max_requests_and_then_each_has_one_request_at_a_time(
    brain: Brain,
) -> None:
    brain.read_ahead.limit = 10
    brain.answers = {number: Pending() for number in range(100)}
    eager, late, next_wire = Wire(), Wire(), Wire()
    first = ClientConnection(brain, LISTENER, eager)  # type: ignore[arg-type]
    for number in range(11):
        assert not first.paused
        ask(first, number)
    assert first.paused
    second = ClientConnection(brain, LISTENER, late)  # type: ignore[arg-type]
    ask(second, 20)  # every connection may have one
    assert second.paused
    brain.answers[20].complete(said(1))
    assert late.sent == [(20, said(1))]
    assert not second.paused
    first.closed()
    assert brain.read_ahead.count == 0
    third = ClientConnection(brain, LISTENER, next_wire)  # type: ignore[arg-type]
    ask(third, 30)
    ask(third, 31)
    assert not third.paused


def test_with_queued_max_request_bytes_in_memory_each_connection_has_one_request_at_a_time(brain: Brain) -> None:
    brain.read_ahead.bytes_limit = 1000
    brain.answers = {number: Pending() for number in range(6)}
    first, second, third = (ClientConnection(brain, LISTENER, Wire()) for _ in range(3))  # type: ignore[arg-type]
    ask(first, 1, PRODUCE, 5000)  # its records are in the log
    ask(first, 2, size=999)
    assert not first.paused
    ask(second, 3, size=1)
    assert second.paused
    ask(third, 4, size=1)  # every connection may have one
    assert third.paused
    brain.answers[1].complete(NO_ANSWER)
    brain.answers[2].complete(said(2))
    ask(first, 5, size=900)
    assert not first.paused, "902 bytes wait now"
    for connection in (first, second, third):
        connection.closed()
    assert brain.read_ahead.bytes == 0


def test_closing_abandons_every_wait_once_and_later_answers_go_nowhere(
    connection: ClientConnection, brain: Brain, wire: Wire
) -> None:
    forgotten: list[bool] = []
    wait: Pending[Any] = Pending(lambda: forgotten.append(True))
    brain.answers = {1: wait}
    ask(connection, 1)
    connection.closed()
    connection.closed()
    wait.complete(said(1))
    assert forgotten == [True]
    assert wire.sent == []
    assert brain.gone == [connection]


def test_an_unknown_version_of_api_versions_is_answered_in_version_0_with_the_ranges(
    connection: ClientConnection, wire: Wire
) -> None:
    parts = encode_request(RequestHeader(18, 4, 7, "new"), ApiVersionsRequest())
    frame = bytearray(b"".join(parts)[4:])  # type: ignore[arg-type]
    frame[2:4] = (99).to_bytes(2, "big")
    connection.received_frame(memoryview(frame))
    ((correlation, response),) = wire.sent
    assert correlation == 7
    assert isinstance(response, ApiVersionsResponse)
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    ranges = {key.api_key: (key.min_version, key.max_version) for key in response.api_keys}
    assert ranges[18] == (0, 4)
    assert ranges[0] == (0, 13)


@pytest.mark.parametrize(
    ("key", "version"),
    [(999, 0), (3, 99), (0, 2), (56, 3)],
    ids=["unknown key", "unknown version", "Produce below 3", "a controller's API on a broker's listener"],
)
def test_what_cannot_be_served_closes_the_connection(
    connection: ClientConnection, brain: Brain, wire: Wire, key: int, version: int
) -> None:
    frame = key.to_bytes(2, "big") + version.to_bytes(2, "big") + bytes(4) + b"\xff\xff" + bytes(20)
    connection.received_frame(memoryview(bytearray(frame)))
    assert wire.closed
    assert len(brain.refused) == 1


def test_a_truncated_body_closes_the_connection(connection: ClientConnection, brain: Brain, wire: Wire) -> None:
    frame = b"".join(encode_request(RequestHeader(3, 12, 1, "x"), MetadataRequest()))[4:-1]  # type: ignore[arg-type]
    connection.received_frame(memoryview(bytearray(frame)))
    assert wire.closed
    assert brain.refused


def test_a_waiting_request_is_measured_from_its_coming_to_its_answer_and_the_wait_for_others_apart(
    connection: ClientConnection, brain: Brain
) -> None:
    """Each look at the clock is a millisecond later than the one before."""
    slow: Pending[Any] = Pending()
    brain.answers = {1: slow, 2: said(2)}
    ask(connection, 1)  # begun 0, handled 1
    ask(connection, 2)  # begun 2, handled 3
    slow.complete(said(1))  # ready 4, sent 5; the second: taken 6, sent 7
    (api,) = brain.requests.all()
    assert api.done == 2
    assert (sum(api.remote), sum(api.response_queue)) == (1, 1)
    waited = [quantiles_ms(times, 0, (1.0,))[0] for times in (api.remote, api.response_queue, api.total)]
    assert waited == [pytest.approx(ms, rel=0.125) for ms in (3, 3, 5)]


def test_where_nobody_asks_nothing_is_measured(wire: Wire) -> None:
    brain = Brain()
    brain.requests = None
    connection = ClientConnection(brain, LISTENER, wire)  # type: ignore[arg-type]
    wait: Pending[Any] = Pending()
    brain.answers = {1: said(1), 2: wait, 3: NO_ANSWER, 4: said(4)}
    for number in (1, 2, 3, 4):
        ask(connection, number)
    wait.complete(said(2))
    assert wire.sent == [(1, said(1)), (2, said(2)), (4, said(4))]
    assert next(brain.ticks_ns) == 0
