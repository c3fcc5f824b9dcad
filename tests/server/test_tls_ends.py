"""Clients that cut TLS where it hurts: within a handshake, a record or a frame, in one direction, in records of a byte.

By hand: an SSLObject in memory, whose bytes the test sends as it likes.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from server.secured_nodes import HOST, Secured, correlation, echo, read_frame, run, trusting

from heirlog.server import tls_stream
from heirlog.server.tls_stream import TlsStream

CLOSE_NOTIFY = b"\x15\x03\x03\0\2\1\0"
FATAL = b"\x15\x03\x03\0\2\2\x28"


class ByHand:
    """A client of TLS whose bytes are in its hands."""

    def __init__(self, sock: socket.socket, context: ssl.SSLContext) -> None:
        self.sock = sock
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self._in, self._out, server_hostname=HOST)
        self._loop = asyncio.get_running_loop()

    async def shake_hands(self) -> None:
        while True:
            try:
                self.tls.do_handshake()
            except ssl.SSLWantReadError:
                await self.send(self._out.read())
                self._in.write(await self._loop.sock_recv(self.sock, 65_536))
            else:
                await self.send(self._out.read())
                return

    def records(self, data: bytes, size: int = 16_384) -> bytes:
        for at in range(0, len(data), size):
            self.tls.write(data[at : at + size])
        return self._out.read()

    def goodbye(self) -> bytes:
        """close_notify, encrypted."""
        with pytest.raises(ssl.SSLWantReadError):
            self.tls.unwrap()
        return self._out.read()

    async def send(self, data: bytes) -> None:
        await self._loop.sock_sendall(self.sock, data)

    async def rest(self) -> bytes:
        """What the server says until it closes."""
        said = b""
        try:
            while data := await self._loop.sock_recv(self.sock, 65_536):
                said += data
        except ConnectionError:
            pass
        return said

    def decrypted(self, data: bytes) -> bytes:
        self._in.write(data)
        return self.tls.read(65_536)


@asynccontextmanager
async def by_hand(node: Secured, version: str = "TLSv1.3") -> AsyncIterator[ByHand]:
    with socket.socket() as sock:
        sock.setblocking(False)
        endpoint = node.node.endpoint
        await asyncio.get_running_loop().sock_connect(sock, (endpoint.host, endpoint.port))
        yield ByHand(sock, trusting(tls_versions=(version,)))


async def is_served(node: Secured, framed: Any) -> None:
    reader, writer = await node.connect()
    writer.write(framed(9))
    assert correlation(await read_frame(reader)) == 9
    writer.close()


@pytest.mark.parametrize(
    "sent", [CLOSE_NOTIFY, FATAL, CLOSE_NOTIFY * 100, b"\x16\x03\x01\x40\0\1", b"\x14\x03\x03\0\1\1"]
)
def test_a_handshake_that_is_given_up_is_closed_at_once(
    fake_node: Any, framed: Any, eventually: Any, sent: bytes
) -> None:
    async def scenario() -> None:
        node = Secured(fake_node, echo)
        async with by_hand(node) as client:
            await client.send(sent)
            client.sock.shutdown(socket.SHUT_WR)
            await client.rest()
            await eventually(lambda: not node.node.server.connection_count)
        await is_served(node, framed)
        node.stop()

    run(scenario)


WAYS: dict[str, Callable[[ByHand], bytes]] = {
    "close_notify": ByHand.goodbye,
    "an alert in clear": lambda client: FATAL,
    "nonsense": lambda client: b"\x17\x03\x03\0\x20" + bytes(32),
    "a record that is cut": lambda client: client.records(bytes(5000))[:-1],
    "a record that is too large": lambda client: b"\x17\x03\x03\xff\xff" + bytes(65_535),
    "nothing": lambda client: b"",
}


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
@pytest.mark.parametrize("way", WAYS)
def test_the_end_within_a_frame_ends_the_connection_and_hands_nothing_over(
    fake_node: Any, framed: Any, eventually: Any, version: str, way: str
) -> None:
    async def scenario() -> None:
        node = Secured(fake_node, echo)
        async with by_hand(node, version) as client:
            await client.shake_hands()
            await client.send(client.records(framed(1, 100_000)[:50_000]) + WAYS[way](client))
            client.sock.shutdown(socket.SHUT_WR)
            await client.rest()
            await eventually(lambda: not node.node.server.connection_count)
            assert [one.frames for one in node.node.clients] == [[]]
            assert [one.closed_times for one in node.node.clients] == [1]
        await is_served(node, framed)
        node.stop()

    run(scenario)


@pytest.mark.parametrize("way", ["close_notify", "nothing"])
def test_who_says_goodbye_behind_a_request_still_gets_its_answer(fake_node: Any, framed: Any, way: str) -> None:
    async def scenario() -> None:
        node = Secured(fake_node, echo)
        async with by_hand(node) as client:
            await client.shake_hands()
            await client.send(client.records(framed(5)) + WAYS[way](client))
            client.sock.shutdown(socket.SHUT_WR)
            assert correlation(client.decrypted(await client.rest())[4:]) == 5
        node.stop()

    run(scenario)


def test_records_of_one_byte_leave_time_for_others(
    fake_node: Any, framed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stranger may send them before it has logged in. A socket holds so many that one turn would take a second."""
    taken: list[int] = []
    receive = TlsStream._receive

    def counted(stream: TlsStream, *places: Any) -> int:
        taken.append(receive(stream, *places))
        return taken[-1]

    monkeypatch.setattr(TlsStream, "_receive", counted)

    async def scenario() -> None:
        node = Secured(fake_node, echo)
        async with by_hand(node) as client:
            await client.shake_hands()
            size = 20_000
            sending = asyncio.ensure_future(client.send(client.records(framed(1, size), 1)))
            while not (node.node.clients and node.node.clients[0].frames):
                await asyncio.sleep(0)
            await sending
            assert len(node.node.clients[0].frames[0]) == size + 10
        assert max(taken) <= tls_stream.RECORDS_AT_ONCE
        node.stop()

    run(scenario)
