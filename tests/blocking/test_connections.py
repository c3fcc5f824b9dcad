"""Calls of the core, carried out with sockets."""

from __future__ import annotations

import socket
import threading
import time
from typing import Any

import pytest
from blocking.test_connection import no_topics, scripted

from heirlog.blocking.connections import Connections
from heirlog.client.call import Call, Pause, Send, SendAll
from heirlog.client.errors import ClosedUnanswered, Unsupported
from heirlog.protocol.frames import RequestHeader
from heirlog.protocol.messages import DescribeClusterRequest, MetadataRequest, MetadataResponse
from heirlog.protocol.primitives import Message
from heirlog.protocol.types import Endpoint

NOBODY = Endpoint("127.0.0.1", 1)


def one(effect: Any) -> Call[Any]:
    return (yield effect)


def closing(header: RequestHeader, message: Message) -> None:
    return None


@pytest.fixture
def connections() -> Any:
    made = Connections("127.0.0.1:1")
    yield made
    made.close()


def test_an_answer_is_returned_and_its_connection_used_again(connections: Connections) -> None:
    with scripted(no_topics) as server:
        for _ in range(3):
            assert connections.run(one(Send(server.endpoint, MetadataRequest(), 30))).cluster_id == "c"
        assert [header.api_key for header in server.headers] == [18, 3, 3, 3]


def test_no_newer_version_is_spoken_than_the_call_wants(connections: Connections) -> None:
    with scripted(no_topics) as server:
        connections.run(one(Send(server.endpoint, MetadataRequest(), 30, newest=9)))
        connections.run(one(SendAll([Send(server.endpoint, MetadataRequest(), 30, newest=8)])))
        assert [header.api_version for header in server.headers[1:]] == [9, 8]


def test_a_missing_answer_is_thrown_into_the_call_which_may_go_on(connections: Connections) -> None:
    def tries(server: Endpoint) -> Call[list[Any]]:
        found: list[Any] = []
        for effect in (
            Send(NOBODY, MetadataRequest(), 30),
            Send(server, DescribeClusterRequest(), 30),
            Send(server, MetadataRequest(), 30),
        ):
            try:
                found.append((yield effect).cluster_id)
            except OSError as error:
                found.append(type(error))
        return found

    with scripted(no_topics) as server:
        assert connections.run(tries(server.endpoint)) == [ConnectionError, Unsupported, "c"]


def test_a_server_that_accepts_and_says_nothing_does_not_use_up_the_time_of_the_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As one that is paused, or that has just been started and loads its logs: the system accepts for it."""
    monkeypatch.setattr("heirlog.blocking.connections.SETUP_TIMEOUT_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent, scripted(no_topics) as server:
        port = silent.getsockname()[1]
        made = Connections(f"127.0.0.1:{port},{server.endpoint}")
        began = time.monotonic()
        answer = made.run(made.cluster.ask_any(MetadataRequest(), 600))
        assert answer.cluster_id == "c" and time.monotonic() - began < 60
        with pytest.raises(TimeoutError, match=f"127.0.0.1:{port}"):
            made.run(one(Send(Endpoint("127.0.0.1", port), MetadataRequest(), 600)))
        made.close()


def test_several_requests_are_on_their_way_at_the_same_time(connections: Connections) -> None:
    both = threading.Barrier(2, timeout=30)

    def together(header: RequestHeader, message: Message) -> Message:
        both.wait()
        return MetadataResponse(cluster_id="c")

    with scripted(together) as first, scripted(together) as second:
        sends = [Send(server.endpoint, MetadataRequest(), 30) for server in (first, second)]
        assert [answer.cluster_id for answer in connections.run(one(SendAll(sends)))] == ["c", "c"]


def test_of_several_requests_each_has_an_answer_or_a_failure_of_its_own(connections: Connections) -> None:
    with scripted(no_topics) as server, scripted(closing) as gone:
        sends = [
            Send(gone.endpoint, MetadataRequest(), 30),
            Send(NOBODY, MetadataRequest(), 30),
            Send(server.endpoint, DescribeClusterRequest(), 30),
            Send(server.endpoint, MetadataRequest(), 30),
        ]
        closed, refused, unsupported, answer = connections.run(one(SendAll(sends)))
    assert (type(closed), type(refused), type(unsupported)) == (ClosedUnanswered, ConnectionError, Unsupported)
    assert answer.cluster_id == "c"


def test_a_call_that_is_interrupted_is_closed(connections: Connections, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[bool] = []

    def interrupted() -> Call[None]:
        try:
            yield Pause(1)
        except Exception:
            raise AssertionError("an interrupt is not the call's business") from None
        finally:
            closed.append(True)

    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("heirlog.blocking.connections.time.sleep", interrupt)
    with pytest.raises(KeyboardInterrupt):
        connections.run(interrupted())
    assert closed == [True]
