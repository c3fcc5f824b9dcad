"""A node whose listener speaks TLS, and clients of it."""

from __future__ import annotations

import asyncio
import ssl
import struct
from collections.abc import Callable
from typing import Any

from local.authorities import authority, issued

from heirlog.client.security import Security, Store
from heirlog.protocol.messages import ApiVersionsResponse
from heirlog.server.door import Door
from heirlog.server.tls_stream import HandshakeTurns
from heirlog.tls.contexts import client_context, server_context

HOST = "127.0.0.1"


def store(pem: str) -> Store:
    return Store("PEM", pem=pem)


def settings(name: str = "node", **more: Any) -> Security:
    given = {"trust": store(authority().certificate_pem), "key": store(issued(name, HOST))}
    return Security(protocol="SSL", **(given | more))


def trusting(**more: Any) -> ssl.SSLContext:
    return client_context(Security(protocol="SSL", trust=store(authority().certificate_pem), **more))


class Secured:
    """A fake node whose listener speaks TLS."""

    def __init__(self, fake_node: Any, answer: Any, client_auth: str = "none", **more: Any) -> None:
        timeout_s = more.pop("timeout_s", 30.0)
        loop = asyncio.get_running_loop()
        self.certificates: list[bytes | None] = []
        door = Door(timeout_s, None, server_context(settings(**more), client_auth), HandshakeTurns(loop))
        self.door = door
        self.node = fake_node(answer, doors={"PLAINTEXT": door})

    async def connect(self, context: ssl.SSLContext | None = None) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        endpoint = self.node.endpoint
        return await asyncio.open_connection(endpoint.host, endpoint.port, ssl=context or trusting())

    def stop(self) -> None:
        self.node.server.stop()


def echo(client: Any, header: Any, frame: memoryview) -> None:
    client.transport.send(header, ApiVersionsResponse())


async def read_frame(reader: asyncio.StreamReader) -> bytes:
    async with asyncio.timeout(60):
        (size,) = struct.unpack(">i", await reader.readexactly(4))
        return await reader.readexactly(size)


def correlation(frame: bytes) -> int:
    return int.from_bytes(frame[:4], "big")


def run(scenario: Callable[[], Any]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(60):
            await scenario()

    asyncio.run(bounded())
