"""Listening sockets and the connections accepted on them.

A connection joins a `FrameStream` to the node's `ClientConnection`: frames go up, answers come down through `send`.
The node decides the order of answers; here only bytes, limits and ends live.

    accepted --> open --peer or node closes, reset, oversize frame, idle--> closed   (`ClientConnection.closed`, once)

A connection on which nothing moved for `connections.max.idle.ms` is closed, also one whose peer never reads its
answers. One sweep looks at all of them; no timer per connection.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import traceback
from collections.abc import Callable
from typing import Any, Protocol

from heirlog.env import Log
from heirlog.protocol.frames import RequestHeader, encode_response
from heirlog.protocol.types import Endpoint
from heirlog.server.stream import STAGING_SIZE, FrameStream

ACCEPTS_PER_TURN = 64
BACKLOG = 1024
OUT_OF_DESCRIPTORS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
RETRY_ACCEPT_SECONDS = 0.1
COMPLAINT_SECONDS = 10.0


class Client(Protocol):
    """The node's end of a connection: `heirlog.node.connection.ClientConnection`."""

    @property
    def paused(self) -> bool: ...

    def received_frame(self, frame: memoryview) -> None: ...

    def closed(self) -> None: ...

    def read_failed(self, path: str, error: OSError) -> None: ...


class Connection:
    """See `heirlog.node.connection.Transport`."""

    __slots__ = ("_client", "_server", "_stream", "listener", "peer_host")

    def __init__(self, server: Server, listener: str, sock: socket.socket, peer_host: str) -> None:
        self._server = server
        self.listener = listener
        self.peer_host = peer_host
        self._stream = FrameStream(server.loop, sock, server.staging, server.frame_limit, self)
        self._client = server.connected(self)

    # for the node

    def send(self, header: RequestHeader, response: Any) -> None:
        self._stream.write(encode_response(header.api_key, header.api_version, header.correlation_id, response))

    def close(self) -> None:
        self._stream.close()

    def resume(self) -> None:
        self._stream.resume()

    def run(self, handler: Callable[[], None]) -> None:
        try:
            handler()
        except Exception:
            # as in `on_frame`
            self._server.handler_failed(self)

    # for the stream

    def on_read_failed(self, path: str, error: OSError) -> None:
        if not self._server.silent:
            self._client.read_failed(path, error)

    def on_frame(self, frame: memoryview) -> bool:
        if self._server.silent:
            return False
        try:
            self._client.received_frame(frame)
        except Exception:
            # one request that a handler cannot digest must not end the node: its client would send it to the next one
            self._server.handler_failed(self)
            return False
        return not self._client.paused

    def on_closed(self, reason: str) -> None:
        self._server.forget(self, reason)
        if not self._server.silent:
            self._client.closed()

    # for the server

    @property
    def last_active(self) -> float:
        return self._stream.last_active

    def abort(self, reason: str) -> None:
        self._stream.abort(reason)


class Server:
    """The listeners of one node.

    frame_limit: `socket.request.max.bytes`. max_idle_ms: `connections.max.idle.ms`, negative for never.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        connected: Callable[[Connection], Client],
        log: Log,
        *,
        frame_limit: int,
        max_idle_ms: int,
        staging: memoryview | None = None,
    ) -> None:
        self.loop = loop
        self.connected = connected
        self.frame_limit = frame_limit
        self.staging = memoryview(bytearray(STAGING_SIZE)) if staging is None else staging
        self.silent = False
        """The node hears nothing any more."""
        self._log = log
        self._max_idle = max_idle_ms / 1000
        self._listening: dict[str, socket.socket] = {}
        # a dict, not a set: its order is the order of arrival
        self._connections: dict[Connection, None] = {}
        self._complained_at = -COMPLAINT_SECONDS
        self._untold = 0
        self._sweep = loop.call_later(self._sweep_every(), self._close_idle)

    @property
    def connection_count(self) -> int:
        return len(self._connections)

    def listen(self, name: str, endpoint: Endpoint, reuse_port: bool = False) -> Endpoint:
        """Bind and listen; where it listens in fact (port 0: any free one). Raises OSError."""
        family, kind, protocol, _, address = socket.getaddrinfo(
            endpoint.host or None, endpoint.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        sock = socket.socket(family, kind, protocol)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if reuse_port:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            sock.bind(address)
            sock.listen(BACKLOG)
        except OSError:
            sock.close()
            raise
        sock.setblocking(False)
        self._listening[name] = sock
        self.loop.add_reader(sock.fileno(), self._accept, name, sock)
        return Endpoint(endpoint.host, sock.getsockname()[1])

    def stop_listening(self) -> None:
        listening, self._listening = self._listening, {}
        for sock in listening.values():
            self.loop.remove_reader(sock.fileno())
            sock.close()

    def hush(self) -> None:
        """The node stopped: no frame and no closed connection is told from now on."""
        self.silent = True

    def stop(self) -> None:
        """Close everything now. Unless hushed, the node hears of it on the next turn of the loop."""
        self.stop_listening()
        self._sweep.cancel()
        for connection in list(self._connections):
            connection.abort("the node stops")

    def forget(self, connection: Connection, reason: str) -> None:
        self._connections.pop(connection, None)
        if reason:
            self._log("debug", "connection-closed", listener=connection.listener, peer=connection.peer_host, why=reason)
        if reason.startswith("a frame of"):
            self._complain("frame-refused", connection, reason)

    def handler_failed(self, connection: Connection) -> None:
        self._log(
            "error",
            "request-failed",
            listener=connection.listener,
            peer=connection.peer_host,
            trace=traceback.format_exc(),
        )
        connection.abort("its request failed")

    def _accept(self, name: str, sock: socket.socket) -> None:
        for _ in range(ACCEPTS_PER_TURN):
            try:
                accepted, address = sock.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in OUT_OF_DESCRIPTORS:
                    raise
                self._accept_later(name, sock, error)
                return
            self._welcome(name, accepted, address)

    def _welcome(self, name: str, accepted: socket.socket, address: tuple[Any, ...]) -> None:
        try:
            connection = Connection(self, name, accepted, str(address[0]))
        except OSError:  # reset before we could look at it
            accepted.close()
            return
        self._connections[connection] = None

    def _accept_later(self, name: str, sock: socket.socket, error: OSError) -> None:
        """Out of descriptors: the waiting peer keeps the socket readable, so look again only after a while."""
        self._log("error", "accept-failed", listener=name, why=str(error))
        self.loop.remove_reader(sock.fileno())
        self.loop.call_later(RETRY_ACCEPT_SECONDS, self._accept_again, name, sock)

    def _accept_again(self, name: str, sock: socket.socket) -> None:
        if self._listening.get(name) is sock:
            self.loop.add_reader(sock.fileno(), self._accept, name, sock)

    def _sweep_every(self) -> float:
        if self._max_idle < 0:
            return 3600.0
        return min(max(self._max_idle / 4, 0.01), 10.0)

    def _close_idle(self) -> None:
        self._sweep = self.loop.call_later(self._sweep_every(), self._close_idle)
        if self._max_idle < 0:
            return
        oldest = self.loop.time() - self._max_idle
        for connection in [one for one in self._connections if one.last_active < oldest]:
            connection.abort("idle")

    def _complain(self, event: str, connection: Connection, reason: str) -> None:
        """One line in ten seconds, however many strangers knock."""
        now = self.loop.time()
        if now - self._complained_at < COMPLAINT_SECONDS:
            self._untold += 1
            return
        self._log(
            "warning", event, listener=connection.listener, peer=connection.peer_host, why=reason, untold=self._untold
        )
        self._complained_at = now
        self._untold = 0
