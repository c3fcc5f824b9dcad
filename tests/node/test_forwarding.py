"""What a broker forwards is bounded, and goes with the client that asked."""

from __future__ import annotations

from typing import Any

import pytest
from broker.fakes import FakeEnv

from heirlog.apis.common.envelopes import seal
from heirlog.env import SendFailure
from heirlog.node import forwarding
from heirlog.node.forwarding import FORWARDED_CLIENT, Forwarder
from heirlog.pending import Pending
from heirlog.protocol.frames import RequestHeader
from heirlog.protocol.messages import CreateDelegationTokenRequest, DeleteTopicsRequest, DeleteTopicsResponse
from heirlog.protocol.types import Endpoint

CONTROLLER = Endpoint("localhost", 9093)
VERSION = 6
LIMIT_MS = 30_000


class Broker:
    def __init__(self) -> None:
        self.env = FakeEnv()
        self.controller: Endpoint | None = CONTROLLER
        self.forwarder = Forwarder(self.env, lambda: self.controller, LIMIT_MS)  # type: ignore[arg-type]

    def forward(self, name: str = "t") -> Pending[Any]:
        topics = [DeleteTopicsRequest.DeleteTopicState(name=name)]
        return self.forwarder.forward(
            DeleteTopicsRequest(topics=topics, timeout_ms=1000), VERSION, lambda code: f"refused: {code.name}"
        )

    def answer(self) -> None:
        header = RequestHeader(DeleteTopicsRequest.API_KEY, VERSION, 0, FORWARDED_CLIENT)
        self.env.take("forward").on_result(seal(header, DeleteTopicsResponse()))

    @property
    def kept(self) -> tuple[int, int]:
        return len(self.forwarder._under_way), self.forwarder._under_way_bytes


@pytest.fixture
def broker() -> Broker:
    return Broker()


def test_the_token_that_a_repeated_request_creates_has_one_id(broker: Broker) -> None:
    broker.forwarder.forward(CreateDelegationTokenRequest(), 3, lambda code: code)
    first = broker.env.take("forward")
    first.on_result(SendFailure("disconnected"))
    broker.env.advance(forwarding.FIRST_BACKOFF_MS)
    again = broker.env.take("forward")
    assert first.request.new_token_id == again.request.new_token_id
    assert len(first.request.new_token_id) == 22
    broker.forwarder.forward(CreateDelegationTokenRequest(), 3, lambda code: code)
    assert broker.env.take("forward").request.new_token_id != first.request.new_token_id
    broker.forward()
    assert broker.env.take("forward").request.new_token_id is None


def refused(pending: Pending[Any]) -> bool:
    heard: list[Any] = []
    pending.then(heard.append)
    return heard == ["refused: REQUEST_TIMED_OUT"]


@pytest.mark.parametrize("controller", [CONTROLLER, None], ids=["that does not answer", "that nobody knows"])
def test_one_request_more_than_may_be_under_way_is_refused_as_if_its_time_were_up(
    broker: Broker, controller: Endpoint | None
) -> None:
    broker.controller = controller
    waiting = [broker.forward() for _ in range(forwarding.UNDER_WAY_MAX)]
    assert not any(one.done for one in waiting)
    assert refused(broker.forward())
    assert len(broker.env.sent) == (forwarding.UNDER_WAY_MAX if controller else 0)
    if controller is None:
        broker.env.advance(LIMIT_MS + forwarding.MAX_BACKOFF_MS)
        assert all(refused(one) for one in waiting)
    else:
        for one in waiting:
            broker.answer()
            assert one.done
    assert broker.kept == (0, 0)
    assert not broker.forward().done, "there is room again"


def test_large_requests_are_bounded_by_their_bytes_and_one_alone_is_always_taken(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forwarding, "UNDER_WAY_BYTES_MAX", 100_000)
    large = broker.forward("x" * 200_000)
    assert not large.done
    assert refused(broker.forward())
    broker.answer()
    assert large.done
    few = [broker.forward("x" * 30_000) for _ in range(4)]
    assert [one.done for one in few] == [False, False, False, True]


def test_a_client_that_goes_away_takes_its_waiting_request_along(broker: Broker) -> None:
    broker.controller = None
    for _ in range(3 * forwarding.UNDER_WAY_MAX):
        broker.forward().abandon()
    assert broker.kept == (0, 0)
    broker.controller = CONTROLLER
    broker.env.advance(LIMIT_MS)
    assert broker.env.sent == []


def test_a_request_that_was_sent_for_a_client_that_went_away_is_kept_until_its_answer(broker: Broker) -> None:
    answered, failed = broker.forward(), broker.forward()
    answered.abandon()
    failed.abandon()
    assert broker.kept[0] == 2
    broker.answer()
    broker.env.take("forward").on_result(SendFailure("disconnected", "gone"))
    assert broker.kept == (0, 0)
    broker.env.advance(LIMIT_MS)
    assert broker.env.sent == []
