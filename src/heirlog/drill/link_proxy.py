"""A TCP proxy between the nodes of a cluster, as a process of its own: it delays, holds, closes and refuses links.

    a node or client --> port of the proxy --> listener of a node
                            |
                            the first request names its sender (client id `heirlog-<node>`), so the link is known;
                            where it is encrypted, the node connects from its own address (`address_of`)

A link is a pair (from, to) of node ids, `CLIENTS` for everything that is no node. It has one direction: what `from`
sends to `to`, on connections that either of them has opened.

    hold        bytes wait, as in a network that loses packets: they arrive after `heal`, or their sender gives up
    delay       every read of at most 64 KiB arrives later
    cut         connections end with a reset, and new ones too
    half-close  the receiver reads the end of the stream; what is sent afterwards is lost; `heal` resets the connection
    reset       connections end with a reset, once

A new connection is accepted before it is known who opened it. So a node on a held link believes that it is connected,
and times out later, with its request instead of with the connection.

Commands and answers are lines of JSON on standard input and output. The process ends with its standard input.
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
import struct
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

CLIENTS = 0
"""In the place of a node id: every client that is no node."""
HOST = "127.0.0.1"
READ_BYTES = 1 << 16
CLIENT_ID_BYTES_MAX = 1_000
"""A longer client id is not waited for: these bytes are no request."""
_SENDER = re.compile(rb"heirlog-(\d+)")
_TLS = b"\x16\x03"
"""Would be a request of 369 MB."""
_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER without time: close() sends a reset."""
_HEADER_BYTES = 14
"""Size, api key, api version, correlation id and the length of the client id."""

Name = tuple[int, int]


def address_of(node: int) -> str:
    """From which a node connects whose requests cannot be read. Linux has all of them, other systems do not."""
    high, low = divmod(node, 256)
    return f"127.1.{high}.{low}"


def node_at(address: str) -> int | None:
    """The reverse; None: any other address."""
    parts = address.split(".")
    return int(parts[2]) * 256 + int(parts[3]) if parts[:2] == ["127", "1"] else None


def sender_of(request: bytes) -> int | None:
    """The node that sent this first request; None while its client id has not arrived.

    A client that is no node counts as CLIENTS, and so does what is no request, as the beginning of TLS.
    """
    if request.startswith(_TLS):
        return CLIENTS
    if len(request) < _HEADER_BYTES:
        return None
    length = int.from_bytes(request[_HEADER_BYTES - 2 : _HEADER_BYTES], "big", signed=True)
    end = _HEADER_BYTES + max(length, 0)
    if len(request) < end and length <= CLIENT_ID_BYTES_MAX:
        return None
    found = _SENDER.fullmatch(request[_HEADER_BYTES:end])
    return int(found[1]) if found else CLIENTS


class Link:
    """One direction between two nodes."""

    def __init__(self) -> None:
        self.delay_ms = 0
        self.is_cut = False
        self._passable = asyncio.Event()
        self._passable.set()

    def hold(self) -> None:
        self._passable.clear()

    def heal(self) -> None:
        self.delay_ms, self.is_cut = 0, False
        self._passable.set()

    async def pass_through(self) -> None:
        """Returns when bytes that were sent now arrive."""
        if self.delay_ms:
            await asyncio.sleep(self.delay_ms / 1000)
        await self._passable.wait()


class Relay:
    """One connection through the proxy."""

    def __init__(self, proxy: Proxy, node: int, port: int, opened: socket.socket) -> None:
        self._proxy = proxy
        self._node = node
        self._port = port
        self._opened = opened
        self._sockets = [opened]
        self._swallows: set[Name] = set()
        self.sender: int | None = None
        self.task = asyncio.get_running_loop().create_task(self._run())

    def uses(self, name: Name) -> bool:
        return self.sender is not None and name in ((self.sender, self._node), (self._node, self.sender))

    def is_half_closed(self, name: Name) -> bool:
        return self.uses(name) and bool(self._swallows)

    def reset(self) -> None:
        self._close_with_reset()
        self.task.cancel()

    def _close_with_reset(self) -> None:
        for each in self._sockets:
            with suppress(OSError):
                each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)

    def half_close(self, name: Name) -> None:
        """The receiver of this direction reads an end."""
        if len(self._sockets) == 2 and name not in self._swallows:
            self._swallows.add(name)
            receiver = self._sockets[1] if name[1] == self._node else self._opened
            with suppress(OSError):
                receiver.shutdown(socket.SHUT_WR)

    async def _run(self) -> None:
        try:
            await self._relay()
        except OSError:
            self._close_with_reset()
        finally:
            self._proxy.relays.discard(self)
            for each in self._sockets:
                each.close()

    async def _relay(self) -> None:
        loop = asyncio.get_running_loop()
        first, sender = b"", node_at(self._opened.getpeername()[0])
        while sender is None:
            more = await loop.sock_recv(self._opened, READ_BYTES)
            if not more:
                return
            first += more
            sender = sender_of(first)
        self.sender = sender
        there, back = (sender, self._node), (self._node, sender)
        if self._proxy.link(there).is_cut:
            raise ConnectionResetError
        await self._proxy.link(there).pass_through()
        target = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        target.setblocking(False)
        self._sockets.append(target)
        await loop.sock_connect(target, (HOST, self._port))
        for each in self._sockets:
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if first:
            await loop.sock_sendall(target, first)
        pumps = [
            loop.create_task(self._pump(there, self._opened, target)),
            loop.create_task(self._pump(back, target, self._opened)),
        ]
        try:
            await asyncio.gather(*pumps)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)

    async def _pump(self, name: Name, source: socket.socket, target: socket.socket) -> None:
        loop, link = asyncio.get_running_loop(), self._proxy.link(name)
        while True:
            data = await loop.sock_recv(source, READ_BYTES)
            await link.pass_through()
            if name in self._swallows:
                if not data:
                    return
                continue
            if not data:
                target.shutdown(socket.SHUT_WR)
                return
            await loop.sock_sendall(target, data)


class Proxy:
    """All links and connections. Each method is a command; `run` reads commands."""

    def __init__(self) -> None:
        self.relays: set[Relay] = set()
        self._links: dict[Name, Link] = {}
        self._accepting: list[asyncio.Task[None]] = []

    def link(self, name: Name) -> Link:
        return self._links.setdefault(name, Link())

    def listen(self, node: int, port: int) -> int:
        """Where to connect instead of to this listener of the node."""
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listening.bind((HOST, 0))
        listening.listen(256)
        listening.setblocking(False)
        self._accepting.append(asyncio.get_running_loop().create_task(self._accept(node, port, listening)))
        bound: int = listening.getsockname()[1]
        return bound

    def hold(self, names: Iterable[Name]) -> None:
        for name in names:
            self.link(name).hold()

    def delay(self, names: Iterable[Name], delay_ms: int) -> None:
        for name in names:
            self.link(name).delay_ms = delay_ms

    def cut(self, names: Iterable[Name]) -> None:
        for name in names:
            self.link(name).is_cut = True
            self.reset([name])

    def reset(self, names: Iterable[Name]) -> None:
        for name in names:
            for relay in [one for one in self.relays if one.uses(name)]:
                relay.reset()

    def half_close(self, names: Iterable[Name]) -> None:
        for name in names:
            for relay in [one for one in self.relays if one.uses(name)]:
                relay.half_close(name)

    def heal(self, names: Iterable[Name]) -> None:
        for name in names:
            self.link(name).heal()
            for relay in [one for one in self.relays if one.is_half_closed(name)]:
                relay.reset()

    async def _accept(self, node: int, port: int, listening: socket.socket) -> None:
        while True:
            opened, _ = await asyncio.get_running_loop().sock_accept(listening)
            opened.setblocking(False)
            self.relays.add(Relay(self, node, port, opened))

    def obey(self, command: dict[str, Any]) -> dict[str, Any]:
        """Carry out one command: `do` and its arguments."""
        do = command.pop("do")
        if do == "listen":
            return {"port": self.listen(**command)}
        names = [(int(source), int(target)) for source, target in command.pop("links")]
        if do == "delay":
            self.delay(names, **command)
            return {}
        {"hold": self.hold, "cut": self.cut, "reset": self.reset, "half-close": self.half_close, "heal": self.heal}[do](
            names
        )
        return {}

    async def run(self) -> None:
        """Until standard input ends."""
        loop = asyncio.get_running_loop()
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            print(json.dumps(self.obey(json.loads(line))), flush=True)


if __name__ == "__main__":
    asyncio.run(Proxy().run())
