"""The rate of connections of an address: which are too many, and what becomes of them on a real socket."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from heirlog.protocol.types import Endpoint
from heirlog.server.connection_rates import ConnectionRates
from heirlog.server.transport import Server


class Clock:
    def __init__(self) -> None:
        self.now_ms = 0

    def __call__(self) -> int:
        return self.now_ms


def test_an_address_above_its_rate_waits_one_window_at_most_and_then_gets_in() -> None:
    clock = Clock()
    rates = ConnectionRates({"10.0.0.1": 1.0}.get, clock, 11, 1000)
    assert [rates.throttle_ms("10.0.0.1") for _ in range(10)] == [0] * 10
    assert 0 < rates.throttle_ms("10.0.0.1") <= 1000
    assert rates.throttle_ms("10.0.0.2") == 0, "another address has no limit"
    clock.now_ms = 12_000
    assert rates.throttle_ms("10.0.0.1") == 0


def test_what_is_refused_does_not_count() -> None:
    limits = {"10.0.0.1": 1.0}
    rates = ConnectionRates(limits.get, Clock(), 11, 1000)
    for _ in range(100):
        rates.throttle_ms("10.0.0.1")
    limits["10.0.0.1"] = 1.2
    assert rates.throttle_ms("10.0.0.1") == 0, "ten got in, and this one is the eleventh"


def test_a_connection_above_the_rate_is_closed_without_having_been_read() -> None:
    accepted: list[Any] = []

    class Client:
        paused = False

        def received_frame(self, frame: memoryview) -> None: ...

        def closed(self) -> None: ...

        def read_failed(self, path: str, error: OSError) -> None: ...

    def connected(connection: Any) -> Client:
        accepted.append(connection)
        return Client()

    async def play() -> None:
        loop = asyncio.get_running_loop()
        rates = ConnectionRates(lambda host: 0.2, lambda: 0, 11, 1000)
        server = Server(
            loop,
            connected,  # type: ignore[arg-type]
            lambda level, event, **values: None,
            frame_limit=1000,
            max_idle_ms=-1,
            rates=rates,
        )
        endpoint = server.listen("PLAINTEXT", Endpoint("127.0.0.1", 0))
        clients = []
        for _ in range(3):
            client = socket.socket()
            client.setblocking(False)
            await loop.sock_connect(client, (endpoint.host, endpoint.port))
            clients.append(client)
        assert await loop.sock_recv(clients[2], 1) == b"", "closed"
        assert len(accepted) == 2
        server.stop()
        for client in clients:
            client.close()

    asyncio.run(asyncio.wait_for(play(), 60))
