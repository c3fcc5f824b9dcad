"""`env.send` over real sockets, against the real server end."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest
from server.greeted_peers import LONG_MS, Peer, all_of, echo_epoch, heartbeat, pool, run, silent

from heirlog.env import SendFailure
from heirlog.protocol.frames import RequestHeader
from heirlog.protocol.types import Endpoint
from heirlog.server import client_pool
from heirlog.server.client_pool import ClientPool


def test_requests_of_a_channel_share_a_connection_and_are_answered_in_order(fake_node: Any) -> None:
    async def scenario() -> None:
        peer, ours = Peer(fake_node, echo_epoch), pool()
        results: list[Any] = []
        for n in range(50):
            ours.send(peer.endpoint, "heartbeat", heartbeat(n), results.append, LONG_MS)
        assert results == [], "never inside send"
        answers = await all_of(results, 50)
        assert [answer.throttle_time_ms for answer in answers] == list(range(50))
        ours.send(peer.endpoint, "forward", heartbeat(1), results.append, LONG_MS)
        await all_of(results, 51)
        assert peer.greetings == [4, 4], "one connection per channel"
        ours.stop()
        peer.node.server.stop()

    run(scenario)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a machine has only one address of its own")
def test_a_node_connects_from_the_address_that_a_drill_gives_it(fake_node: Any) -> None:
    async def scenario() -> None:
        peer = Peer(fake_node, echo_epoch)
        ours = ClientPool(asyncio.get_running_loop(), "test", memoryview(bytearray(65536)), source="127.1.0.5")
        results: list[Any] = []
        ours.send(peer.endpoint, "heartbeat", heartbeat(1), results.append, LONG_MS)
        await all_of(results, 1)
        assert [client.transport.peer_host for client in peer.node.clients] == ["127.1.0.5"]
        ours.stop()
        peer.node.server.stop()

    run(scenario)


def test_nobody_there_fails_at_once_and_again_after_a_rest(fake_node: Any) -> None:
    async def scenario() -> None:
        ours = pool()
        results: list[Any] = []
        started = asyncio.get_running_loop().time()
        for n in range(1, 4):
            ours.send(Endpoint("127.0.0.1", 1), "raft", heartbeat(1), results.append, LONG_MS)
            await all_of(results, n)
        took = asyncio.get_running_loop().time() - started
        assert [result.kind for result in results] == ["disconnected"] * 3
        assert took >= client_pool.FIRST_BACKOFF_S
        ours.stop()

    run(scenario)


def test_a_request_that_times_out_takes_its_connection_along(fake_node: Any) -> None:
    def sometimes(client: Any, header: RequestHeader, request: Any) -> None:
        if request.broker_id == 9:
            echo_epoch(client, header, request)

    async def scenario() -> None:
        peer, ours = Peer(fake_node, sometimes), pool()
        results: list[tuple[int, Any]] = []
        # with a connection that is there, so that it is the answer that takes too long
        ours.send(peer.endpoint, "raft", heartbeat(9), lambda got: results.append((9, got)), LONG_MS)
        await all_of(results, 1)
        results.clear()
        ours.send(peer.endpoint, "raft", heartbeat(7), lambda got: results.append((7, got)), 50)
        ours.send(peer.endpoint, "raft", heartbeat(8), lambda got: results.append((8, got)), LONG_MS)
        await all_of(results, 2)
        assert {number: got.kind for number, got in results} == {7: "timed-out", 8: "disconnected"}
        ours.send(peer.endpoint, "raft", heartbeat(9), lambda got: results.append((9, got)), LONG_MS)
        await all_of(results, 3)
        assert results[-1][1].throttle_time_ms == 9
        assert len(peer.greetings) == 2
        ours.stop()
        peer.node.server.stop()

    run(scenario)


def test_a_request_times_out_while_the_peer_does_not_even_greet(fake_node: Any) -> None:
    async def scenario() -> None:
        node, ours = fake_node(silent), pool()
        results: list[Any] = []
        ours.send(node.endpoint, "raft", heartbeat(1), results.append, 30)
        assert (await all_of(results, 1))[0].kind == "timed-out"
        ours.stop()
        node.server.stop()

    run(scenario)


def test_a_closed_connection_is_told_at_once_and_the_next_request_opens_another(fake_node: Any) -> None:
    def close_first(client: Any, header: RequestHeader, request: Any) -> None:
        if request.broker_id == 1:
            client.transport.close()
        else:
            echo_epoch(client, header, request)

    async def scenario() -> None:
        peer, ours = Peer(fake_node, close_first), pool()
        results: list[Any] = []

        def again(got: Any) -> None:
            results.append(got)
            ours.send(peer.endpoint, "heartbeat", heartbeat(2), results.append, LONG_MS)

        ours.send(peer.endpoint, "heartbeat", heartbeat(1), again, LONG_MS)
        await all_of(results, 2)
        assert results[0].kind == "disconnected"
        assert results[1].throttle_time_ms == 2
        ours.stop()
        peer.node.server.stop()

    run(scenario)


@pytest.mark.parametrize("connected", [True, False], ids=["on a connection", "while connecting"])
def test_a_peer_that_is_left_fails_its_requests_later_and_other_peers_none(fake_node: Any, connected: bool) -> None:
    async def scenario() -> None:
        arrived: list[Any] = []
        former = Peer(fake_node, lambda client, header, request: arrived.append(request))
        other, ours = Peer(fake_node, silent), pool()
        results: list[Any] = []
        elsewhere: list[Any] = []
        for channel in ("heartbeat", "forward"):
            ours.send(former.endpoint, channel, heartbeat(1), results.append, LONG_MS)
        ours.send(other.endpoint, "heartbeat", heartbeat(2), elsewhere.append, LONG_MS)
        if connected:
            await all_of(arrived, 2)
        ours.disconnect(former.endpoint)
        assert results == [], "never inside the call"
        await all_of(results, 2)
        assert {result.kind for result in results} == {"disconnected"}
        assert elsewhere == []
        ours.stop()
        former.node.server.stop()
        other.node.server.stop()

    run(scenario)


def test_the_queue_of_a_channel_is_bounded(fake_node: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_pool, "MAX_REQUESTS", 5)

    async def scenario() -> None:
        peer, ours = Peer(fake_node, silent), pool()
        results: list[Any] = []
        for n in range(7):
            ours.send(peer.endpoint, "raft", heartbeat(n), results.append, LONG_MS)
        assert results == []
        await all_of(results, 2)
        assert all(isinstance(result, SendFailure) and "unanswered" in result.detail for result in results)
        ours.stop()
        peer.node.server.stop()

    run(scenario)


def test_after_stop_nobody_is_told(fake_node: Any) -> None:
    async def scenario() -> None:
        peer, ours = Peer(fake_node, silent), pool()
        results: list[Any] = []
        ours.send(peer.endpoint, "raft", heartbeat(1), results.append, 20)
        ours.send(Endpoint("127.0.0.1", 1), "raft", heartbeat(1), results.append, 20)
        await asyncio.sleep(0)
        ours.stop()
        await asyncio.sleep(0.05)
        assert results == []
        peer.node.server.stop()

    run(scenario)


@pytest.mark.parametrize("host", ["x" * 64 + ".example", "a\0b"])
def test_a_host_that_can_be_no_name_is_a_failure_of_its_requests(host: str) -> None:
    async def scenario() -> None:
        ours = pool()
        results: list[Any] = []
        ours.send(Endpoint(host, 9), "c", heartbeat(1), results.append, LONG_MS)
        (failure,) = await all_of(results, 1)
        assert failure.kind == "disconnected"
        ours.stop()

    run(scenario)
