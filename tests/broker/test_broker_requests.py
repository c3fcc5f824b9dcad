from __future__ import annotations

from typing import Any

from heirlog.broker.broker_requests import BrokerRequests
from heirlog.env import SendFailure
from heirlog.pending import Pending
from heirlog.protocol.messages import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from heirlog.protocol.types import BrokerId, Endpoint

from .fakes import FakeEnv

REQUEST = WriteTxnMarkersRequest()
ANSWER = WriteTxnMarkersResponse()


class Sending:
    """Broker 1 of 2."""

    def __init__(self, reply: Any) -> None:
        self.env = FakeEnv()
        self.handled: list[Any] = []
        self.results: list[Any] = []

        def handle(request: WriteTxnMarkersRequest) -> Any:
            self.handled.append(request)
            return reply

        endpoints = {1: Endpoint("b1", 9092), 2: Endpoint("b2", 9092)}
        self.brokers = BrokerRequests(self.env, BrokerId(1), endpoints.get, {WriteTxnMarkersRequest: handle})  # type: ignore[arg-type]

    def send(self, broker: int) -> None:
        self.brokers.send(BrokerId(broker), "markers", REQUEST, self.results.append, 1000)


def test_a_broker_asks_itself_without_a_connection_and_never_within_the_call() -> None:
    sending = Sending(ANSWER)
    sending.send(1)
    assert (sending.env.sent, sending.handled) == ([], [])
    sending.env.advance(0)
    assert (sending.handled, sending.results) == ([REQUEST], [ANSWER])


def test_an_answer_that_comes_later_comes_outside_of_what_completes_it() -> None:
    pending: Pending[Any] = Pending()
    sending = Sending(pending)
    sending.send(1)
    sending.env.advance(0)
    pending.complete(ANSWER)
    assert sending.results == []
    sending.env.advance(0)
    assert sending.results == [ANSWER]


def test_others_are_asked_over_a_connection() -> None:
    sending = Sending(ANSWER)
    sending.send(2)
    sent = sending.env.take("markers")
    assert (sent.request, sending.handled) == (REQUEST, [])
    sent.on_result(SendFailure("disconnected"))
    assert sending.results == [SendFailure("disconnected")]
    assert [sending.brokers.reaches(BrokerId(broker)) for broker in (1, 2, 3)] == [True, True, False]
