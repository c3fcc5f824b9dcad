"""The small HTTP server beside a node: what it answers, and what it bears."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from heirlog.protocol.types import Endpoint
from heirlog.server.metrics import listener as module
from heirlog.server.metrics.listener import CONNECTIONS_MAX, HEAD_BYTES_MAX, MetricsListener

HOST = "127.0.0.1"
GET = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
ONE = [b"# TYPE a gauge\n", b"", b"a 1.0\n"]


class Place:
    """A listener on a loop that runs in this test alone."""

    def __init__(self, text: Callable[[], Iterator[bytes]]) -> None:
        self.loop = asyncio.new_event_loop()
        self.logged: list[str] = []
        self.loads: list[threading.Thread] = []
        self.texts = 0
        self._text = text
        self.listener = MetricsListener(self.loop, self._load, self._log)
        self.endpoint = self.listener.listen(Endpoint(HOST, 0))

    def _load(self) -> Callable[[], Iterator[bytes]]:
        self.loads.append(threading.current_thread())

        def text() -> Iterator[bytes]:
            self.texts += 1
            return self._text()

        return text

    def _log(self, level: str, event: str, /, **values: object) -> None:
        self.logged.append(event)

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(self.endpoint.host, self.endpoint.port)

    async def ask(self, request: bytes = GET) -> bytes:
        """Everything that comes until the connection ends."""
        reader, writer = await self.connect()
        writer.write(request)
        try:
            async with asyncio.timeout(30):
                return await reader.read()
        finally:
            writer.close()


Run = Callable[..., Any]


@pytest.fixture
def run() -> Iterator[Run]:
    places: list[Place] = []

    def go(scenario: Callable[[Place], Any], text: Callable[[], Iterator[bytes]] = lambda: iter(ONE)) -> Place:
        place = Place(text)
        places.append(place)
        place.loop.run_until_complete(scenario(place))
        return place

    yield go
    for place in places:
        place.listener.stop()
        place.loop.run_until_complete(asyncio.sleep(0))
        place.loop.close()


async def _until_closed(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""


def body_of(answer: bytes) -> bytes:
    """Of a chunked answer."""
    head, _, rest = answer.partition(b"\r\n\r\n")
    assert b"Transfer-Encoding: chunked" in head
    body = b""
    while True:
        size, _, rest = rest.partition(b"\r\n")
        if not int(size, 16):
            assert rest == b"\r\n"
            return body
        body += rest[: int(size, 16)]
        rest = rest[int(size, 16) + 2 :]


def test_a_scrape_is_answered_and_the_connection_closed(run: Run) -> None:
    async def scenario(place: Place) -> None:
        answer = await place.ask()
        assert answer.startswith(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n")
        assert body_of(answer) == b"".join(ONE)

    run(scenario)


def test_what_it_needs_is_loaded_once_at_the_first_request_and_not_on_the_loop(run: Run) -> None:
    async def scenario(place: Place) -> None:
        await place.ask(b"GET / HTTP/1.1\r\n\r\n")
        assert place.loads == []
        answers = await asyncio.gather(*(place.ask() for _ in range(5)))
        assert len({body_of(answer) for answer in answers}) == 1
        await place.ask()
        assert len(place.loads) == 1
        assert place.loads[0] is not threading.current_thread()
        assert place.texts == 6

    run(scenario)


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", b"404"),
        (b"GET /metrics/x HTTP/1.1\r\n\r\n", b"404"),
        (b"POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", b"405"),
        (b"GET /metrics\r\n\r\n", b"400"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n", b"400"),
        (b"GET /metrics HTTP/2.0\r\n\r\n", b"400"),
        (b"GET /metrics?" + b"x" * HEAD_BYTES_MAX, b"431"),
    ],
)
def test_what_is_no_scrape_is_told_so(run: Run, request_: bytes, status: bytes) -> None:
    async def scenario(place: Place) -> None:
        answer = await place.ask(request_)
        assert answer.split()[1] == status
        assert place.texts == 0

    run(scenario)


@pytest.mark.parametrize(
    "request_", [b"GET /metrics HTTP/1.1\n\n", b"GET /metrics?name[]=a HTTP/1.1\r\nAccept: x\r\n\r\n"]
)
def test_forms_that_scrapers_use_are_taken(run: Run, request_: bytes) -> None:
    async def scenario(place: Place) -> None:
        assert b"".join(ONE) == body_of(await place.ask(request_))

    run(scenario)


def test_a_request_may_come_byte_by_byte(run: Run) -> None:
    async def scenario(place: Place) -> None:
        reader, writer = await place.connect()
        for byte in GET:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0)
        assert body_of(await reader.read()) == b"".join(ONE)
        writer.close()

    run(scenario)


def test_head_and_http_1_0_have_no_chunks(run: Run) -> None:
    async def scenario(place: Place) -> None:
        head = await place.ask(b"HEAD /metrics HTTP/1.1\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200") and head.endswith(b"\r\n\r\n")
        old = await place.ask(b"GET /metrics HTTP/1.0\r\n\r\n")
        assert b"chunked" not in old
        assert old.partition(b"\r\n\r\n")[2] == b"".join(ONE)

    run(scenario)


def test_one_connection_more_than_the_bound_is_closed_and_others_are_served(run: Run) -> None:
    async def scenario(place: Place) -> None:
        silent = [await place.connect() for _ in range(CONNECTIONS_MAX)]
        async with asyncio.timeout(30):
            while len(place.listener.connections) < CONNECTIONS_MAX:
                await asyncio.sleep(0.001)
        reader, writer = await place.connect()
        writer.write(GET)
        assert await _until_closed(reader) == b""
        writer.close()
        silent[0][1].close()
        async with asyncio.timeout(30):
            while len(place.listener.connections) == CONNECTIONS_MAX:
                await asyncio.sleep(0.001)
        assert body_of(await place.ask()) == b"".join(ONE)
        for _, writer in silent:
            writer.close()

    run(scenario)


def test_who_says_nothing_is_closed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HEAD_TIMEOUT_S", 0.02)

    async def scenario(place: Place) -> None:
        reader, writer = await place.connect()
        writer.write(GET[:-2])
        async with asyncio.timeout(30):
            assert await _until_closed(reader) == b""
        writer.close()

    run(scenario)


def test_for_a_slow_reader_no_more_text_is_made_until_it_reads_and_in_the_end_it_is_closed(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = 0

    def endless() -> Iterator[bytes]:
        nonlocal made
        while True:
            made += 1
            yield b"x" * 100_000

    async def scenario(place: Place) -> None:
        monkeypatch.setattr(module, "ANSWER_TIMEOUT_S", 0.3)
        sock = socket.create_connection((place.endpoint.host, place.endpoint.port))
        sock.setblocking(False)
        await place.loop.sock_sendall(sock, GET)
        async with asyncio.timeout(30):
            while not place.listener.connections:
                await asyncio.sleep(0.001)
            while place.listener.connections:
                await asyncio.sleep(0.01)
        sock.close()

    run(scenario, endless)
    assert 0 < made < 500, "50 MB would have been made for a reader that took nothing"


def test_making_the_text_leaves_the_loop_to_others(run: Run) -> None:
    """Ten slices of work each, three scrapers: in between, everybody else is served."""

    def long() -> Iterator[bytes]:
        for _ in range(10):
            until = time.perf_counter() + module.SLICE_S
            while time.perf_counter() < until:
                pass
            yield b"a 1\n"

    async def scenario(place: Place) -> None:
        turns = 0

        async def others() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0)
                turns += 1

        other = asyncio.ensure_future(others())
        answers = await asyncio.gather(*(place.ask() for _ in range(3)))
        other.cancel()
        assert all(body_of(answer) == 10 * b"a 1\n" for answer in answers)
        assert turns > 3 * 10, "at least one turn between two slices"

    run(scenario, long)


def test_a_reading_that_fails_is_logged_and_ends_nothing(run: Run) -> None:
    broken = True

    def text() -> Iterator[bytes]:
        yield b"a 1\n"
        if broken:
            raise ZeroDivisionError

    async def scenario(place: Place) -> None:
        nonlocal broken
        with pytest.raises((ConnectionResetError, AssertionError, ValueError)):
            body_of(await place.ask())
        assert place.logged == ["metrics-failed"]
        broken = False
        assert body_of(await place.ask()) == b"a 1\n"

    run(scenario, text)


def test_a_port_that_is_taken_is_refused(run: Run) -> None:
    async def scenario(place: Place) -> None:
        pass

    place = run(scenario)
    other = asyncio.new_event_loop()
    with pytest.raises(OSError):
        MetricsListener(other, place._load, place._log).listen(place.endpoint)
    other.close()
