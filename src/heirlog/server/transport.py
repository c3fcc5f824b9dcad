r"""Listening sockets and the connections accepted on them.

A connection joins a `FrameStream` to the node's `ClientConnection`: frames go up, answers come down through `send`.
The node decides the order of answers; here only bytes, limits and ends live.

    accepted --> open --peer or node closes, reset, oversize frame, idle--> closed   (`ClientConnection.closed`, once)
       \--TLS, SASL--^  (`door.py`)

A connection on which nothing moved for `connections.max.idle.ms` is closed, also one whose peer never reads its
answers. One sweep looks at all of them; no timer per connection. How many there may be: `connection_limits`.
"""

from __future__ import annotations

import asyncio
import errno
import re
import secrets
import socket
import traceback
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Any, Protocol

from heirlog.env import EventLog
from heirlog.metadata.address import without_mapping
from heirlog.protocol.frames import RequestHeader, encode_response
from heirlog.protocol.types import Endpoint
from heirlog.rate_limited_log import RateLimitedLog
from heirlog.server.connection_limits import (
    ANY_LISTENER,
    UNLIMITED,
    ConnectionLimits,
    ListenerLimits,
    descriptors_for_connections,
)
from heirlog.server.connection_rates import HELD_MAX, NODE, AcceptRates, ConnectionRates
from heirlog.server.door import OPEN, Door
from heirlog.server.stream import STAGING_SIZE
from heirlog.server.unauthenticated_connections import UnauthenticatedConnections

ACCEPTS_PER_TURN = 64
BACKLOG = 1024
"""Unless the file says otherwise. More than Kafka's 50: there a thread does nothing but accept connections."""
OUT_OF_DESCRIPTORS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
RETRY_ACCEPT_SECONDS = 0.1
TOO_LATE = "it did not authenticate in time (heirlog.authentication.timeout.ms)"
FRAME_REFUSED = re.compile(r"a frame of (\d+) bytes")
TLS_RECORD = 0x1603
"""The first bytes of a TLS handshake, which are taken for a size of 369 MB."""
LOOKS_LIKE_TLS = "this looks like TLS, which this listener does not speak"


class ConnectionHandler(Protocol):
    """The node's end of a connection: `heirlog.node.connection.ClientConnection`."""

    @property
    def paused(self) -> bool: ...

    def received_frame(self, frame: memoryview) -> None: ...

    def secured(self, certificate: bytes | None) -> None:
        """The TLS handshake is done. certificate: the client's, in DER."""

    def closed(self) -> None: ...

    def read_failed(self, path: str, error: OSError) -> None: ...


class InboundConnection:
    """See `heirlog.node.connection.Transport`."""

    __slots__ = ("_client", "_server", "_stream", "deadline", "listener", "peer_host")

    def __init__(self, server: Server, listener: str, sock: socket.socket, peer_host: str) -> None:
        self._server = server
        self.listener = listener
        self.peer_host = peer_host
        door = server.doors.get(listener, OPEN)
        self.deadline: float | None = None
        """By when the client must have proved who it is; None: it has, or need not."""
        if door is not OPEN:
            self.deadline = server.loop.time() + door.timeout_s
        self._stream = door.stream(server.loop, sock, server.staging, server.frame_limit, self)
        self._client = server.connected(self)

    # for the node

    def send(self, header: RequestHeader, response: Any) -> None:
        self._stream.write(encode_response(header.api_key, header.api_version, header.correlation_id, response))

    def send_token(self, token: bytes) -> None:
        self._stream.write([len(token).to_bytes(4, "big") + token])

    def authenticated(self) -> None:
        self.deadline = None
        self._stream.frame_limit = self._server.frame_limit
        self._server.has_authenticated(self)

    def random_bytes(self, count: int) -> bytes:
        return secrets.token_bytes(count)

    def close(self) -> None:
        self._stream.close()

    def pause(self) -> None:
        self._stream.pause()

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

    def on_secured(self, certificate: bytes | None) -> None:
        if not self._server.silent:
            self.run(lambda: self._client.secured(certificate))

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
    limits, listener_limits: asked for newcomers. exempt: listeners that are open also beyond `max.connections`. doors:
    of the listeners with TLS or SASL. backlog: connections of a listener that the system accepts for it meanwhile.
    rates: of addresses. accept_rates: of the node and its listeners.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        connected: Callable[[InboundConnection], ConnectionHandler],
        log: EventLog,
        *,
        frame_limit: int,
        max_idle_ms: int,
        limits: Callable[[], ConnectionLimits] = lambda: UNLIMITED,
        listener_limits: Callable[[str], ListenerLimits] = lambda listener: ANY_LISTENER,
        exempt: Collection[str] = (),
        staging: memoryview | None = None,
        doors: Mapping[str, Door] | None = None,
        backlog: int = BACKLOG,
        rates: ConnectionRates | None = None,
        accept_rates: AcceptRates | None = None,
    ) -> None:
        self.loop = loop
        self.doors = doors or {}
        self.connected = connected
        self.frame_limit = frame_limit
        self.staging = memoryview(bytearray(STAGING_SIZE)) if staging is None else staging
        self.silent = False
        """The node gets no events any more."""
        self._log = log
        self._max_idle = max_idle_ms / 1000
        self._listening: dict[str, socket.socket] = {}
        # a dict, not a set: its order is the order of arrival
        self._connections: dict[InboundConnection, None] = {}
        self._per_host: Counter[str] = Counter()
        self._per_listener: Counter[str] = Counter()
        self._limits = limits
        self._listener_limits = listener_limits
        self._backlog = backlog
        self._rates = rates
        self._accept_rates = accept_rates
        self._unauthenticated = UnauthenticatedConnections(self.doors, exempt)
        self._held: set[socket.socket] = set()
        """Connections above a rate, which are closed soon."""
        self._exempt = exempt
        self._without_room: set[str] = set()
        """Listeners that accept nothing until there are fewer connections in all."""
        self._full_listeners: set[str] = set()
        self._late_listeners: set[str] = set()
        """Those that accept nothing until a rate is down again, or there are descriptors."""
        self._log_limited = RateLimitedLog(log, lambda: loop.time() * 1000)
        self._sweep = loop.call_later(self._sweep_every(), self._close_idle)

    @property
    def connection_count(self) -> int:
        return len(self._connections)

    def connections_by_listener(self) -> dict[str, int]:
        found = Counter(connection.listener for connection in self._connections)
        return {name: found[name] for name in self._listening}

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
            sock.listen(self._backlog)
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

    def silence(self) -> None:
        """The node stopped: from now on no frame and no closed connection is reported."""
        self.silent = True

    def stop(self) -> None:
        """Close everything now. Unless `silence` was called, the node is notified in the next turn of the loop."""
        self.stop_listening()
        self._sweep.cancel()
        for connection in list(self._connections):
            connection.abort("the node is stopping")
        for held in list(self._held):
            self._let_go(held)

    def forget(self, connection: InboundConnection, reason: str) -> None:
        self._unauthenticated.remove(connection)
        if connection in self._connections:
            del self._connections[connection]
            self._per_listener[connection.listener] -= 1
            self._connection_ended(connection.peer_host)
        if reason:
            self._log("debug", "connection-closed", listener=connection.listener, peer=connection.peer_host, why=reason)
        if reason.startswith("a frame of"):
            size = FRAME_REFUSED.match(reason)
            is_tls = size is not None and int(size[1]) >> 16 == TLS_RECORD
            why = f"{reason} ({LOOKS_LIKE_TLS})" if is_tls else reason
            self._log_limited(
                "warning", "frame-refused", listener=connection.listener, peer=connection.peer_host, why=why
            )
        elif reason.startswith(("TLS:", TOO_LATE)):
            # also a client that has closed because it does not trust this node
            peer = connection.peer_host
            self._log_limited.of_client(
                "info", "authentication-failed", peer, listener=connection.listener, peer=peer, why=reason
            )
        if self._without_room:
            self._accept_if_room()
        if connection.listener in self._full_listeners:
            self._accept_if_listener_has_room(connection.listener)

    def handler_failed(self, connection: InboundConnection) -> None:
        self._log_limited(
            "error",
            "request-failed",
            listener=connection.listener,
            peer=connection.peer_host,
            trace=traceback.format_exc(),
        )
        connection.abort("its request failed")

    # accepting

    def _accept(self, name: str, sock: socket.socket) -> None:
        limits, own = self._limits(), self._listener_limits(name)
        descriptors = descriptors_for_connections(between_nodes=name in self._exempt)
        for _ in range(ACCEPTS_PER_TURN):
            is_full = len(self._connections) >= limits.total and name not in self._exempt
            if is_full and not self._unauthenticated.any_like(name):
                self._has_no_room(name, limits.total)
                return
            if self._per_listener[name] >= own.total and not self._unauthenticated.any_at(name):
                self._listener_is_full(name, own.total)
                return
            try:
                accepted, address = sock.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in OUT_OF_DESCRIPTORS:
                    raise
                # the waiting peer keeps the socket readable, so look again only after a while
                self._log_limited("error", "accept-failed", listener=name, why=str(error))
                self._accept_later(name, RETRY_ACCEPT_SECONDS)
                return
            host = without_mapping(str(address[0]))
            if accepted.fileno() >= descriptors:
                accepted.close()
                why = f"file descriptors from {descriptors} on are for files: raise `ulimit -n` or set max.connections"
                self._log_limited("error", "accept-failed", listener=name, why=why)
                self._unauthenticated.replace_like(name, host)
                self._accept_later(name, RETRY_ACCEPT_SECONDS)
                return
            if self._add_connection(name, accepted, host, limits, own):
                wait_ms = self._wait_ms(name, limits, own)
                if wait_ms:
                    self._accept_later(name, wait_ms / 1000)
                    return

    def _wait_ms(self, name: str, limits: ConnectionLimits, own: ListenerLimits) -> int:
        if self._accept_rates is None:
            return 0
        counted = {name: own.rate} if name in self._exempt else {name: own.rate, NODE: limits.rate}
        return self._accept_rates.wait_ms(counted)

    def _add_connection(
        self, name: str, accepted: socket.socket, host: str, limits: ConnectionLimits, own: ListenerLimits
    ) -> bool:
        """Whether it is served."""
        if self._per_host[host] >= limits.of_host(host):
            accepted.close()
            why = f"this address has {self._per_host[host]} connections, the limit of max.connections.per.ip"
            self._log_limited("warning", "connection-refused", listener=name, peer=host, why=why)
            self._forget_host_without_connections(host)
            return False
        if self._rates is not None and name not in self._exempt:
            throttle_ms = self._rates.throttle_ms(host)
            if throttle_ms:
                self._hold(name, accepted, host, throttle_ms)
                return False
        try:
            connection = InboundConnection(self, name, accepted, host)
        except OSError:  # reset before we could look at it
            accepted.close()
            self._forget_host_without_connections(host)
            return False
        self._connections[connection] = None
        self._per_host[host] += 1
        self._per_listener[name] += 1
        # one at most: what is closed is counted until the next turn
        if self._per_listener[name] > own.total:
            self._unauthenticated.replace_at(name, host)
        elif len(self._connections) > limits.total:
            if name in self._exempt:
                self._make_room(connection)
            else:
                self._unauthenticated.replace_like(name, host)
        if connection.deadline is not None:
            self._unauthenticated.add(connection)
        return True

    def _hold(self, name: str, accepted: socket.socket, host: str, throttle_ms: int) -> None:
        """Above the rate of its address: it is closed later, and nothing is read from it."""
        self._forget_host_without_connections(host)
        why = "this address opens more connections than the quota connection_creation_rate allows"
        self._log_limited("warning", "connection-refused", listener=name, peer=host, why=why)
        if len(self._held) >= HELD_MAX:
            accepted.close()
            return
        self._held.add(accepted)
        self.loop.call_later(throttle_ms / 1000, self._let_go, accepted)

    def _let_go(self, held: socket.socket) -> None:
        self._held.discard(held)
        held.close()

    def _connection_ended(self, host: str) -> None:
        self._per_host[host] -= 1
        self._forget_host_without_connections(host)

    def _forget_host_without_connections(self, host: str) -> None:
        if not self._per_host[host]:
            del self._per_host[host]

    def has_authenticated(self, connection: InboundConnection) -> None:
        self._unauthenticated.remove(connection)
        if connection.listener in self._exempt and len(self._connections) > self._limits().total:
            self._make_room(connection)

    def _make_room(self, newcomer: InboundConnection) -> None:
        """A peer is at an exempt listener: the client that was quiet for longest goes, before those that have
        proved who they are one that has not. Who has not proved to be a node only takes the place of its like."""
        clients = [
            one
            for one in self._connections
            if one.listener not in self._exempt and (newcomer.deadline is None or one.deadline is not None)
        ]
        if clients:
            min(clients, key=lambda one: (one.deadline is None, one.last_active)).abort(
                "max.connections is reached, and this connection was idle longest"
            )

    def _has_no_room(self, name: str, total: int) -> None:
        """New connections wait in the kernel's queue."""
        self._without_room.add(name)
        self._log_limited("warning", "connections-full", why=f"the limit is reached: max.connections={total}")
        self.loop.remove_reader(self._listening[name].fileno())

    def _listener_is_full(self, name: str, total: int) -> None:
        self._full_listeners.add(name)
        why = f"the limit is reached: max.connections={total} of this listener"
        self._log_limited("warning", "connections-full", listener=name, why=why)
        self.loop.remove_reader(self._listening[name].fileno())

    def _accept_if_listener_has_room(self, name: str) -> None:
        if self._per_listener[name] < self._listener_limits(name).total:
            self._full_listeners.discard(name)
            self._accept_again(name)

    def _accept_if_room(self) -> None:
        if len(self._connections) >= self._limits().total:
            return
        waiting, self._without_room = self._without_room, set()
        for name in waiting:
            self._accept_again(name)

    def _accept_later(self, name: str, seconds: float) -> None:
        self._late_listeners.add(name)
        self.loop.remove_reader(self._listening[name].fileno())
        self.loop.call_later(seconds, self._is_time, name)

    def _is_time(self, name: str) -> None:
        self._late_listeners.discard(name)
        self._accept_again(name)

    def _accept_again(self, name: str) -> None:
        """If nothing else holds it up."""
        sock = self._listening.get(name)
        is_held_up = name in self._full_listeners | self._late_listeners | self._without_room
        if sock is not None and not is_held_up:
            self.loop.add_reader(sock.fileno(), self._accept, name, sock)

    def _sweep_every(self) -> float:
        limits = [door.timeout_s for door in self.doors.values()]
        if self._max_idle >= 0:
            limits.append(self._max_idle)
        return min([10.0, *(max(limit / 4, 0.01) for limit in limits)])

    def _close_idle(self) -> None:
        self._sweep = self.loop.call_later(self._sweep_every(), self._close_idle)
        if self._without_room:
            self._accept_if_room()  # the limit may have been raised
        for name in list(self._full_listeners):
            self._accept_if_listener_has_room(name)
        now = self.loop.time()
        for connection in [one for one in self._connections if one.deadline is not None and one.deadline < now]:
            connection.abort(TOO_LATE)
        if self._max_idle < 0:
            return
        oldest = now - self._max_idle
        for connection in [one for one in self._connections if one.last_active < oldest]:
            connection.abort("idle")
