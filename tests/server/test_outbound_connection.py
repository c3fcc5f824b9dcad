"""One connection to a peer: the greeting, versions, and answers that are none."""

from __future__ import annotations

import asyncio
from typing import Any

from server.greeted_peers import LONG_MS, Peer, all_of, echo_epoch, heartbeat, pool, run

from heirlog.protocol.frames import RequestHeader
from heirlog.protocol.messages import (
    EnvelopeRequest,
)
from heirlog.server.client_pool import ClientPool


def test_a_peer_that_knows_only_an_older_greeting_is_greeted_again(fake_node: Any) -> None:
    async def scenario() -> None:
        peer, ours = Peer(fake_node, echo_epoch, newest_greeting=2), pool()
        results: list[Any] = []
        ours.send(peer.endpoint, "heartbeat", heartbeat(3), results.append, LONG_MS)
        assert (await all_of(results, 1))[0].throttle_time_ms == 3
        assert peer.greetings == [4, 2]
        ours.stop()
        peer.node.server.stop()

    run(scenario)


def test_what_the_peer_does_not_serve_is_unsupported(fake_node: Any) -> None:
    async def scenario() -> None:
        peer, ours = Peer(fake_node, echo_epoch), pool()
        results: list[Any] = []
        ours.send(peer.endpoint, "forward", EnvelopeRequest(request_data=b""), results.append, LONG_MS)
        ours.send(peer.endpoint, "forward", heartbeat(1), results.append, LONG_MS)
        await all_of(results, 2)
        assert {getattr(result, "kind", "answered") for result in results} == {"unsupported", "answered"}
        ours.stop()
        peer.node.server.stop()

    run(scenario)


def test_a_peer_that_does_not_answer_the_handshake_in_time_is_given_up(fake_node: Any) -> None:
    async def scenario() -> None:
        peer = fake_node(lambda client, header, frame: None)
        ours = ClientPool(asyncio.get_running_loop(), "test", memoryview(bytearray(65536)), setup_timeout_ms=50)
        results: list[Any] = []
        started = asyncio.get_running_loop().time()
        ours.send(peer.endpoint, "raft", heartbeat(1), results.append, LONG_MS)
        await all_of(results, 1)
        assert results[0].kind == "disconnected"
        assert 0.05 <= asyncio.get_running_loop().time() - started < LONG_MS / 1000
        ours.stop()
        peer.server.stop()

    run(scenario)


def test_an_answer_that_is_none_ends_the_connection(fake_node: Any) -> None:
    def garble(client: Any, header: RequestHeader, request: Any) -> None:
        client.transport._stream.write([b"\x00\x00\x00\x06" + b"\xff" * 6])

    async def scenario() -> None:
        peer, ours = Peer(fake_node, garble), pool()
        results: list[Any] = []
        ours.send(peer.endpoint, "raft", heartbeat(1), results.append, LONG_MS)
        assert (await all_of(results, 1))[0].kind == "disconnected"
        ours.stop()
        peer.node.server.stop()

    run(scenario)


def test_an_answer_out_of_order_ends_the_connection(fake_node: Any) -> None:
    def second_first(client: Any, header: RequestHeader, request: Any) -> None:
        if request.broker_id == 2:
            echo_epoch(client, header, request)

    async def scenario() -> None:
        peer, ours = Peer(fake_node, second_first), pool()
        results: list[Any] = []
        ours.send(peer.endpoint, "raft", heartbeat(1), results.append, LONG_MS)
        ours.send(peer.endpoint, "raft", heartbeat(2), results.append, LONG_MS)
        assert [result.kind for result in await all_of(results, 2)] == ["disconnected"] * 2
        ours.stop()
        peer.node.server.stop()

    run(scenario)
