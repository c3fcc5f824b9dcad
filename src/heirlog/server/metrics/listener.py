r"""A small HTTP server on the node's loop, for `GET /metrics` alone.

    head --read, 8 KiB and 10 s at most--> refused (400, 404, 405, 431), closed
      \--GET /metrics--> loading (first request only) --> answering --all written--> closed

Bounds. A scrape must not hold up the node's clients: the text is made in slices of `SLICE_S`, each followed by a pause
of three times what it took, one connection after the other, so that any number of scrapers together take a quarter of
the loop at most. A slow reader is waited for without making more text; after `ANSWER_TIMEOUT_S` it is closed. More than
`CONNECTIONS_MAX` connections are closed as they come.

prometheus-client is imported in a thread, at the first request: it takes 80 ms and 7 MiB, which a node without scrapes,
and a starting node, should not spend.

One connection has one request: scrapers come every some seconds, and open connections would count for the bound.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from typing import TypeAlias, cast

from heirlog.env import EventLog
from heirlog.protocol.types import Endpoint
from heirlog.rate_limited_log import RateLimitedLog

PATH = "/metrics"
HEAD_BYTES_MAX = 8192
HEAD_TIMEOUT_S = 10.0
ANSWER_TIMEOUT_S = 60.0
CONNECTIONS_MAX = 16
BACKLOG = 16
SLICE_S = 0.002
PAUSE_RATIO = 3
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Text: TypeAlias = Callable[[], Iterator[bytes]]
"""What is true now, in pieces; an empty one where others may have their turn."""


class MetricsListener:
    """load: imports what is needed and gives what makes the text; called once, in a thread, after the first request."""

    def __init__(self, loop: asyncio.AbstractEventLoop, load: Callable[[], Text], log: EventLog) -> None:
        self.loop = loop
        self._load = load
        self._log_limited = RateLimitedLog(log, lambda: loop.time() * 1000)
        self._server: asyncio.Server | None = None
        self.text: Text | None = None
        self._loading = False
        self._waiting: deque[_Connection] = deque()
        self._next_slice: asyncio.TimerHandle | None = None
        self.connections: dict[_Connection, None] = {}

    def listen(self, endpoint: Endpoint) -> Endpoint:
        """Where it listens in fact (port 0: any free one). Before the loop runs. Raises OSError."""
        # one address: a name may have several, and port 0 would be another port at each
        family, kind, protocol, _, address = socket.getaddrinfo(
            endpoint.host, endpoint.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        sock = socket.socket(family, kind, protocol)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind(address)
        except OSError:
            sock.close()
            raise
        made = self.loop.create_server(lambda: _Connection(self), sock=sock, backlog=BACKLOG)
        self._server = self.loop.run_until_complete(made)
        return Endpoint(endpoint.host, sock.getsockname()[1])

    def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        if self._next_slice is not None:
            self._next_slice.cancel()
        for connection in list(self.connections):
            connection.abort()

    # for connections

    def answer(self, connection: _Connection) -> None:
        """It may write now, and wants to."""
        self._waiting.append(connection)
        if self.text is None:
            self._begin_to_load()
        elif self._next_slice is None:
            self._next_slice = self.loop.call_later(0, self._serve_slice)

    def _begin_to_load(self) -> None:
        if not self._loading:
            self._loading = True
            threading.Thread(target=self._load_in_thread, name="metrics-import", daemon=True).start()

    def _load_in_thread(self) -> None:
        text = self._load()
        try:
            self.loop.call_soon_threadsafe(self._loaded, text)
        except RuntimeError:
            pass  # the node has stopped meanwhile

    def _loaded(self, text: Text) -> None:
        self.text = text
        self._serve_slice()

    def _serve_slice(self) -> None:
        """Serve one connection for a slice; then the others."""
        self._next_slice = None
        if not self._waiting:
            return
        began = self.loop.time()
        connection = self._waiting.popleft()
        try:
            connection.write_until(began + SLICE_S)
        except Exception:
            # a failure of the metrics must not end the node
            self._log_limited("error", "metrics-failed", trace=traceback.format_exc())
            connection.abort()
        if connection.wants_more:
            self._waiting.append(connection)
        self._next_slice = self.loop.call_later(PAUSE_RATIO * (self.loop.time() - began), self._serve_slice)


class _Connection(asyncio.Protocol):
    def __init__(self, listener: MetricsListener) -> None:
        self._listener = listener
        self._transport: asyncio.Transport | None = None
        self._head = b""
        self._is_http_1_1 = False
        self._body_wanted = True
        self._text: Iterator[bytes] | None = None
        self._answering = False
        self._paused = False
        self._timeout: asyncio.TimerHandle | None = None

    # for the loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        listener = self._listener
        if len(listener.connections) >= CONNECTIONS_MAX:
            self.abort()
            return
        listener.connections[self] = None
        self._expire_after(HEAD_TIMEOUT_S)

    def data_received(self, data: bytes) -> None:
        if self._answering or self._transport is None:
            return  # nothing that comes behind the request is read
        self._head += data
        if b"\r\n\r\n" in self._head or b"\n\n" in self._head:
            self._answering = True
            self._expire_after(ANSWER_TIMEOUT_S)
            self._handle(self._head.split(b"\n", 1)[0].decode("latin-1").split())
        elif len(self._head) > HEAD_BYTES_MAX:
            self._refuse("431 Request Header Fields Too Large", f"a request has at most {HEAD_BYTES_MAX} bytes")

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        if self._text is not None:
            self._listener.answer(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._text = None
        self._listener.connections.pop(self, None)
        if self._timeout is not None:
            self._timeout.cancel()

    # for the listener

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    @property
    def wants_more(self) -> bool:
        return self._text is not None and not self._paused

    def write_until(self, deadline: float) -> None:
        """Write what can be made until then; the first time with the head of the answer before it."""
        if self._transport is None:
            return
        written: list[bytes] = []
        if self._text is None:
            assert self._listener.text is not None, "turns begin when it is loaded"
            self._text = self._listener.text()
            chunked = "Transfer-Encoding: chunked\r\n" if self._is_http_1_1 else ""
            written.append(_head("200 OK", f"Content-Type: {CONTENT_TYPE}\r\n{chunked}"))
        is_over = not self._body_wanted
        while not is_over and self._listener.loop.time() < deadline:
            piece = next(self._text, None)
            is_over = piece is None
            if piece:
                written.append(b"%x\r\n%b\r\n" % (len(piece), piece) if self._is_http_1_1 else piece)
        if is_over:
            self._text = None
            if self._body_wanted and self._is_http_1_1:
                written.append(b"0\r\n\r\n")
        if written:
            self._transport.write(b"".join(written))
        if is_over:
            self._transport.close()

    # requests

    def _handle(self, line: list[str]) -> None:
        if len(line) != 3 or not line[2].startswith("HTTP/1."):
            self._refuse("400 Bad Request", "this is an HTTP/1.1 server")
            return
        method, target, version = line
        if target.partition("?")[0] != PATH:
            self._refuse("404 Not Found", f"metrics are at {PATH}")
        elif method not in ("GET", "HEAD"):
            self._refuse("405 Method Not Allowed", "GET it", "Allow: GET, HEAD\r\n")
        else:
            self._is_http_1_1 = version == "HTTP/1.1"
            self._body_wanted = method == "GET"
            self._listener.answer(self)

    def _refuse(self, status: str, sentence: str, headers: str = "") -> None:
        assert self._transport is not None, "a request came on it"
        self._answering = True
        body = f"{sentence}\n".encode()
        headers += f"Content-Type: text/plain\r\nContent-Length: {len(body)}\r\n"
        self._transport.write(_head(status, headers) + body)
        self._transport.close()

    def _expire_after(self, seconds: float) -> None:
        if self._timeout is not None:
            self._timeout.cancel()
        self._timeout = self._listener.loop.call_later(seconds, self.abort)


def _head(status: str, headers: str) -> bytes:
    return f"HTTP/1.1 {status}\r\n{headers}Connection: close\r\n\r\n".encode()
