"""Calls of the product's client on virtual time and a simulated network."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

import pytest
from sim.toys import SERVER, Pair

from heirlog.client.call import Call, Effect, Pause, Send, SendAll
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import MetadataRequest, MetadataResponse
from heirlog.protocol.types import Endpoint
from heirlog.sim.clients.driver import Driver

NOBODY = Endpoint("nobody", 9092)


class Ran:
    """A driver beside a server, and what became of the calls that it ran."""

    def __init__(self, *bootstrap: Endpoint) -> None:
        self.pair = Pair()
        self.driver = Driver(self.pair.caller.env, bootstrap or (SERVER,))
        self.ends: list[Any] = []

    def run(self, call: Call[Any]) -> None:
        self.driver.run(call, self.ends.append, self.ends.append)

    def for_ms(self, milliseconds: int) -> None:
        self.pair.world.run_for(milliseconds)


def ask(to: Endpoint = SERVER, timeout_s: float = 1.0, newest: int | None = None) -> Send:
    return Send(to, MetadataRequest(topics=[]), timeout_s, newest)


def one(effect: Effect) -> Generator[Effect, Any, Any]:
    return (yield effect)


def test_a_call_gets_its_answers_and_returns_its_result() -> None:
    def twice() -> Call[list[int]]:
        first = yield ask()
        second = yield ask()
        return [first.controller_id, second.controller_id]

    ran = Ran()
    ran.run(twice())
    ran.for_ms(100)
    assert ran.ends == [[1, 2]]


def test_a_pause_takes_virtual_time() -> None:
    ran = Ran()
    ran.run(one(Pause(0.5)))
    ran.for_ms(490)
    assert ran.ends == []
    ran.for_ms(20)
    assert ran.ends == [None]


@pytest.mark.parametrize(("to", "error"), [(SERVER, TimeoutError), (NOBODY, ConnectionError)])
def test_a_request_without_an_answer_raises_inside_the_call(to: Endpoint, error: type[OSError]) -> None:
    def survives() -> Call[str]:
        try:
            yield ask(to)
        except OSError as raised:
            return type(raised).__name__
        return "answered"

    ran = Ran()
    ran.pair.server.silent = True
    ran.run(survives())
    ran.for_ms(1500)
    assert ran.ends == [error.__name__]


def test_a_call_that_fails_reports_its_error() -> None:
    def refused() -> Call[None]:
        yield ask()
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "no")

    ran = Ran()
    ran.run(refused())
    ran.run(one(ask(NOBODY)))
    ran.for_ms(100)
    assert sorted(type(end).__name__ for end in ran.ends) == ["ConnectionError", "KafkaError"]


def test_several_requests_at_once_come_back_in_their_order_with_failures_in_their_places() -> None:
    ran = Ran()
    ran.run(one(SendAll([ask(NOBODY), ask(), ask(NOBODY)])))
    ran.for_ms(100)
    ((first, second, third),) = ran.ends
    assert isinstance(first, ConnectionError) and isinstance(third, ConnectionError)
    assert isinstance(second, MetadataResponse)


def test_a_call_does_not_wait_behind_another_ones_long_poll() -> None:
    ran = Ran()
    ran.pair.server.silent = True
    ran.run(one(ask(timeout_s=10)))
    ran.for_ms(50)
    ran.pair.server.silent = False
    ran.run(one(ask()))
    ran.for_ms(50)
    assert [type(end) for end in ran.ends] == [MetadataResponse]


def test_the_newest_version_that_a_call_allows_is_on_the_request() -> None:
    ran = Ran()
    ran.run(one(ask(newest=5)))
    ran.run(one(ask()))
    ran.for_ms(100)
    assert ran.pair.server.versions == [5, MetadataRequest.MAX_VERSION]


def test_who_follows_a_call_sees_each_request_as_it_is_sent() -> None:
    def sends() -> Call[None]:
        yield ask()
        yield SendAll([ask(), ask()])

    ran, seen = Ran(), list[Any]()
    ran.driver.run(sends(), ran.ends.append, ran.ends.append, seen.append)
    ran.for_ms(100)
    assert [type(message) for message in seen] == [MetadataRequest] * 3


def test_clients_begin_with_different_brokers_and_chance_is_the_runs() -> None:
    def first_asked(seed: int) -> Sequence[Endpoint]:
        pair = Pair(seed)
        order = [Endpoint(f"broker-{number}", 9092) for number in range(5)]
        call = Driver(pair.caller.env, order).cluster.ask_any(MetadataRequest(topics=[]), 1.0)
        effect = next(call)
        assert isinstance(effect, Send)
        return [effect.to]

    assert len({tuple(first_asked(seed)) for seed in range(1, 20)}) > 1
    assert first_asked(3) == first_asked(3)
