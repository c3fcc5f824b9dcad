"""A node that is none: connections whose answers the test decides."""

from __future__ import annotations

import asyncio
import os
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from server.inbox import Inbox

from heirlog.protocol.frames import RequestHeader, parse_header
from heirlog.protocol.types import Endpoint
from heirlog.server.event_loop import new_event_loop
from heirlog.server.files import OsFiles
from heirlog.server.transport import InboundConnection, Server

API_VERSIONS_V0 = struct.Struct(">ihhih")


@pytest.fixture(autouse=True)
def on_the_loop_of_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """`asyncio.run` and `asyncio.new_event_loop` make such loops as nodes have."""
    monkeypatch.setattr(asyncio, "new_event_loop", new_event_loop)
    monkeypatch.setattr(asyncio.events, "new_event_loop", new_event_loop)


class FakeClient:
    """Collects what comes up; `answer(self, header, frame)` is called for every frame."""

    def __init__(
        self, transport: InboundConnection, answer: Callable[[FakeClient, RequestHeader, memoryview], None]
    ) -> None:
        self.transport = transport
        self.paused = False
        self.frames: list[bytes] = []
        self.closed_times = 0
        self.certificate: bytes | None = None
        self._answer = answer

    def received_frame(self, frame: memoryview) -> None:
        self.frames.append(bytes(frame))
        header, _ = parse_header(frame)
        self._answer(self, header, frame)

    def secured(self, certificate: bytes | None) -> None:
        self.certificate = certificate
        self.transport.authenticated()

    def closed(self) -> None:
        self.closed_times += 1


class FakeNode:
    """`Server` with fake clients, listening on a free loopback port."""

    def __init__(self, answer: Callable[[FakeClient, RequestHeader, memoryview], None], **options: Any) -> None:
        self.clients: list[FakeClient] = []
        self.logged: list[tuple[str, str, dict[str, object]]] = []
        self._answer = answer
        options = {"frame_limit": 100_000_000, "max_idle_ms": 60_000, **options}
        self.server = Server(asyncio.get_running_loop(), self._connected, self._log, **options)
        self.endpoint = self.server.listen("PLAINTEXT", Endpoint("127.0.0.1", 0))

    def _connected(self, transport: InboundConnection) -> FakeClient:
        self.clients.append(FakeClient(transport, self._answer))
        return self.clients[-1]

    def _log(self, level: str, event: str, /, **values: object) -> None:
        self.logged.append((level, event, values))

    def events(self, level: str) -> list[str]:
        return [event for at, event, _ in self.logged if at == level]


@pytest.fixture
def fake_node() -> type[FakeNode]:
    return FakeNode


def request(correlation_id: int, padding: int = 0) -> bytes:
    """A framed request of API 18 v0 with `padding` bytes behind its header."""
    return API_VERSIONS_V0.pack(10 + padding, 18, 0, correlation_id, -1) + bytes(padding)


@pytest.fixture
def framed() -> Callable[..., bytes]:
    return request


async def until(condition: Callable[[], object], timeout_s: float = 30.0) -> None:
    async with asyncio.timeout(timeout_s):
        while not condition():
            await asyncio.sleep(0.001)


def opened(file: Path) -> int:
    """How many descriptors of this process are of that file; of others, any thread may open and close some."""
    found = []
    for number in os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else ():
        with suppress(FileNotFoundError):
            found.append(os.readlink(f"/proc/self/fd/{number}"))
    return found.count(str(file.resolve()))


@pytest.fixture
def descriptors_of() -> Callable[[Path], int]:
    return opened


@pytest.fixture
def eventually() -> Any:
    return until


@pytest.fixture
def inbox() -> Inbox:
    return Inbox()


@pytest.fixture
def files(inbox: Inbox) -> OsFiles:
    return OsFiles(inbox)
