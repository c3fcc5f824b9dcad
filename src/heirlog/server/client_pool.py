"""`env.send` on sockets: one ordered connection per (endpoint, channel), opened when there is something to send.

A `Channel` lives as long as the node and outlives its connections; a `OutboundConnection` is one connection.

    channel   idle --send--> connecting --connected--> greeting --versions known--> ready
                ^                |      (TLS first)       |     (SASL first)          |
                +---- resting <--+------------------------+-- closed, reset, timeout -+

Where a session has an end (KIP-368), the node logs in again on the same connection after `SESSION_SHARE` of it:
requests that are under way are answered, new ones wait for the login.

Requests wait in the channel until the link is ready, then they are pipelined; answers come in order. When a link ends,
its requests and those that wait for it fail as "disconnected". The caller decides whether to send them again, because
it knows whether the answer still matters. The next connection attempt is made at once after a connection that worked,
and after a short pause (doubling up to `MAX_BACKOFF_S`) after one that did not.

Each request fails or is answered once, always from the loop, never inside `send`.

Traps. After a timeout of a request its connection is closed, since its late answer would be taken for the next one. A
version is chosen per request: the newest that both sides speak, from the peer's ApiVersions answer.
"""

from __future__ import annotations

import asyncio
import random
import socket
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from heirlog.client.errors import AuthenticationFailed
from heirlog.client.handshake import Authentication, Handshake, HandshakeRefused, common_version
from heirlog.env import OnResult, SendFailure
from heirlog.protocol.frames import RequestHeader, decode_response, encode_request
from heirlog.protocol.primitives import Malformed
from heirlog.protocol.types import Endpoint
from heirlog.server.stream import FrameStream

if TYPE_CHECKING:
    from heirlog.server.peers import Peer

MAX_REQUESTS = 1000
"""Unanswered requests per channel; one more fails at once."""
FIRST_BACKOFF_S = 0.02
MAX_BACKOFF_S = 0.5
FRAME_LIMIT = 2**31 - 1
"""Of answers. Kafka's clients set none either: a batch may be larger than any fetch limit (KIP-74)."""
SESSION_SHARE = 0.85
"""Of a session: Kafka's clients log in again after 85 to 95 % of it."""


class QueuedRequest:
    __slots__ = ("api_key", "deadline", "message", "on_result", "version")

    def __init__(self, message: Any, on_result: OnResult, deadline: float) -> None:
        self.message = message
        self.on_result = on_result
        self.deadline = deadline
        self.api_key: int = message.API_KEY
        self.version = -1


class ClientPool:
    """All connections that this node opens. `client_id` is what peers see in the request header."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        client_id: str,
        staging: memoryview,
        setup_timeout_ms: int = 10_000,
        peer_of: Callable[[str], Peer | None] = lambda channel: None,
        source: str = "",
    ) -> None:
        """setup_timeout_ms: socket.connection.setup.timeout.ms, of the TCP connection and again of the handshake.

        peer_of: how to log in to what a channel reaches; None: without TLS and SASL. source: the address from which to
        connect; empty: the system chooses.
        """
        self.loop = loop
        self.client_id = client_id
        self.staging = staging
        self.setup_timeout_s = setup_timeout_ms / 1000
        self.source = source
        self._peer_of = peer_of
        self._channels: dict[tuple[Endpoint, str], Channel] = {}

    def send(self, to: Endpoint, channel: str, request: Any, on_result: OnResult, timeout_ms: int) -> None:
        """See `heirlog.env.Env.send`."""
        found = self._channels.get((to, channel))
        if found is None:
            found = self._channels[to, channel] = Channel(self, to, self._peer_of(channel))
        found.send(QueuedRequest(request, on_result, self.loop.time() + timeout_ms / 1000))

    def disconnect(self, to: Endpoint) -> None:
        """See `heirlog.env.NodeEnv.disconnect`."""
        for (endpoint, _), channel in self._channels.items():
            if endpoint == to:
                self.loop.call_soon(channel.disconnect)

    def stop(self) -> None:
        """Close everything without calling back."""
        for channel in self._channels.values():
            channel.stop()
        self._channels.clear()


class Channel:
    """The queue towards one endpoint for one purpose."""

    def __init__(self, pool: ClientPool, endpoint: Endpoint, peer: Peer | None = None) -> None:
        self.pool = pool
        self.peer = peer
        self._loop = pool.loop
        self._endpoint = endpoint
        self._waiting: deque[QueuedRequest] = deque()
        self._link: OutboundConnection | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._backoff_s = 0.0
        self._retry_at = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._start_timer: asyncio.TimerHandle | None = None
        self._stopped = False

    def send(self, request: QueuedRequest) -> None:
        link = self._link
        outstanding = len(self._waiting) + (len(link.sent) if link is not None else 0)
        if outstanding >= MAX_REQUESTS:
            full = SendFailure("disconnected", f"{MAX_REQUESTS} requests to {self._endpoint} are unanswered")
            self._loop.call_soon(request.on_result, full)
            return
        self._set_timer(request.deadline)
        if link is not None and link.ready and not link.must_log_in:
            link.send(request)
            return
        self._waiting.append(request)
        if link is not None and link.ready:
            link.log_in_again()
            return
        if link is None and self._connecting is None and self._start_timer is None:
            backoff = max(0.0, self._retry_at - self._loop.time())
            if backoff:
                self._start_timer = self._loop.call_later(backoff, self._start)
            else:
                self._start()

    def stop(self) -> None:
        self._stopped = True
        self._waiting.clear()
        for timer in (self._timer, self._start_timer):
            if timer is not None:
                timer.cancel()
        if self._connecting is not None:
            self._connecting.cancel()
        if self._link is not None:
            self._link.sent.clear()
            self._link.stream.abort("the node is stopping")

    def disconnect(self) -> None:
        if self._stopped:
            return
        if self._link is not None:
            self._link.stream.abort("another peer took its place")
            return
        if self._start_timer is not None:
            self._start_timer.cancel()
            self._start_timer = None
        if self._connecting is not None:
            self._connecting.cancel()
            self._connecting = None
        self._fail_all([], "another peer took its place")

    # connecting

    def _start(self) -> None:
        self._start_timer = None
        if self._waiting:
            self._connecting = self._loop.create_task(self._connect())

    async def _connect(self) -> None:
        sock: socket.socket | None = None
        try:
            async with asyncio.timeout(self.pool.setup_timeout_s):
                sock = await connected_socket(self._loop, self._endpoint, self.pool.source)
            link = OutboundConnection(self, sock, self._endpoint.host)
        except (OSError, ValueError) as error:  # TimeoutError; UnicodeError, of a host that can be no name
            if sock is not None:
                sock.close()
            self._connecting = None
            self._connect_failed(error)
            return
        self._connecting = None
        self._link = link
        self._set_timer(self._link.begin())

    def link_ready(self, link: OutboundConnection) -> None:
        if self._stopped:
            return
        self._backoff_s = 0.0
        while self._waiting:
            link.send(self._waiting.popleft())

    def link_ended(self, link: OutboundConnection, reason: str) -> None:
        self._link = None
        if self._stopped:
            return
        if not link.ready:
            self._back_off()
        self._fail_all(list(link.sent), reason)

    def _connect_failed(self, error: OSError | ValueError) -> None:
        self._back_off()
        why = getattr(error, "strerror", None) or str(error) or "timed out while connecting"
        self._fail_all([], why, error.host if isinstance(error, NothingListens) else "")

    def _back_off(self) -> None:
        self._backoff_s = min(max(2 * self._backoff_s, FIRST_BACKOFF_S), MAX_BACKOFF_S)
        self._retry_at = self._loop.time() + self._backoff_s * random.uniform(0.5, 1)

    def _fail_all(self, requests: list[QueuedRequest], reason: str, refused_by: str = "") -> None:
        """Fail `requests` and then the waiting ones. They are removed first: a callback may send again at once."""
        requests += self._waiting
        self._waiting = deque()
        failure = SendFailure("disconnected", f"{self._endpoint}: {reason}", refused_by)
        for request in requests:
            request.on_result(failure)

    # time

    def watch(self, deadline: float) -> None:
        self._set_timer(deadline)

    def _set_timer(self, deadline: float) -> None:
        """One timer per channel, at the earliest deadline or before."""
        if self._timer is not None:
            if self._timer.when() <= deadline:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(deadline, self._check_deadlines)

    def _check_deadlines(self) -> None:
        self._timer = None
        now = self._loop.time()
        late = [request for request in self._waiting if request.deadline <= now]
        if late:
            self._waiting = deque(request for request in self._waiting if request.deadline > now)
        if self._link is not None:
            self._link.drop_late(now)
        self._watch_remaining()
        for request in late:
            request.on_result(SendFailure("timed-out", f"no connection to {self._endpoint}"))

    def _watch_remaining(self) -> None:
        deadlines = [request.deadline for request in self._waiting]
        if self._link is not None and (next_deadline := self._link.next_deadline) is not None:
            deadlines.append(next_deadline)
        if deadlines:
            self._set_timer(min(deadlines))


class OutboundConnection:
    """One connection: greets, logs in, then carries. A `tls_stream.TlsReceiver`."""

    __slots__ = (
        "_authentication",
        "_began_at",
        "_channel",
        "_correlation_id",
        "_greeted",
        "_handshake",
        "_login_at",
        "_ranges",
        "_setup_deadline",
        "_versions",
        "ready",
        "sent",
        "stream",
    )

    def __init__(self, channel: Channel, sock: socket.socket, host: str) -> None:
        self._channel = channel
        self._correlation_id = 0
        self._handshake = Handshake()
        self._authentication: Authentication | None = None
        self._ranges: dict[int, tuple[int, int]] = {}
        self._versions: dict[int, int] = {}
        """Of the requests that were sent, by API."""
        self._greeted = False
        self._began_at = 0.0
        self._login_at: float | None = None
        """When to log in again; None: never."""
        self._setup_deadline: float | None = None
        """While the TLS handshake is under way."""
        self.ready = False
        self.sent: deque[QueuedRequest] = deque()
        pool, peer = channel.pool, channel.peer
        if peer is None:
            self.stream = FrameStream(pool.loop, sock, pool.staging, FRAME_LIMIT, self)
        else:
            self.stream = peer.stream(pool.loop, sock, pool.staging, FRAME_LIMIT, self, host)

    def begin(self) -> float:
        """The deadline of the first step."""
        peer = self._channel.peer
        if peer is None or not peer.uses_tls:
            return self._send_handshake()
        pool = self._channel.pool
        self._setup_deadline = pool.loop.time() + pool.setup_timeout_s
        return self._setup_deadline

    def on_secured(self, certificate: bytes | None) -> None:
        """The TLS handshake is done; OpenSSL has checked the certificate."""
        self._setup_deadline = None
        self._send_handshake()

    @property
    def next_deadline(self) -> float | None:
        deadlines = [request.deadline for request in self.sent]
        if self._setup_deadline is not None:
            deadlines.append(self._setup_deadline)
        return min(deadlines, default=None)

    def _send_handshake(self) -> float:
        """Ask for the peer's versions; the deadline."""
        version, message = self._handshake.request()
        return self._put_setup(message, version, self._handshake_answered)

    def _put_setup(self, message: Any, version: int, on_result: OnResult) -> float:
        pool = self._channel.pool
        request = QueuedRequest(message, on_result, pool.loop.time() + pool.setup_timeout_s)
        self._put(request, version)
        self._channel.watch(request.deadline)
        return request.deadline

    @property
    def must_log_in(self) -> bool:
        return self._login_at is not None and self._channel.pool.loop.time() >= self._login_at

    def send(self, request: QueuedRequest) -> None:
        version = self._versions.get(request.api_key)
        if version is None:
            version = common_version(type(request.message), self._ranges)
            if version is not None:
                self._versions[request.api_key] = version
        if version is None:
            unknown = SendFailure(
                "unsupported", f"the peer and this node support no common version of API {request.api_key}"
            )
            self._channel.pool.loop.call_soon(request.on_result, unknown)
            return
        self._put(request, version)

    def drop_late(self, now: float) -> None:
        if self._setup_deadline is not None and self._setup_deadline <= now:
            self.stream.abort("timed out during the TLS handshake")
            return
        late = [request for request in self.sent if request.deadline <= now]
        if not late:
            return
        self.sent = deque(request for request in self.sent if request.deadline > now)
        self.stream.abort("an answer came after its timeout")  # before a callback sends again
        for request in late:
            request.on_result(SendFailure("timed-out", f"API {request.api_key} timed out"))

    def on_frame(self, frame: memoryview) -> bool:
        if not self.sent:
            self.stream.abort("a response that belongs to no request")
            return False
        request = self.sent[0]
        version = request.version
        if not self._greeted:
            version = self._handshake.answer_version(frame)
        try:
            correlation_id, response = decode_response(request.api_key, version, frame)
        except Malformed as error:
            self.stream.abort(f"an answer to API {request.api_key} cannot be decoded: {error}")
            return False
        expected = (self._correlation_id - len(self.sent) + 1) & 0x7FFFFFFF
        if correlation_id != expected:
            self.stream.abort(f"an answer with correlation id {correlation_id}, expected {expected}")
            return False
        self.sent.popleft()
        request.on_result(response)
        return True

    def on_read_failed(self, path: str, error: OSError) -> None:
        """Requests hold no regions."""
        raise AssertionError(f"a request cannot be read from {path}") from error

    def on_closed(self, reason: str) -> None:
        self._channel.link_ended(self, reason)

    def _put(self, request: QueuedRequest, version: int) -> None:
        request.version = version
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        header = RequestHeader(request.api_key, version, self._correlation_id, self._channel.pool.client_id)
        parts = encode_request(header, request.message)
        self.sent.append(request)
        self.stream.write(parts)

    def _handshake_answered(self, response: Any) -> None:
        if isinstance(response, SendFailure):
            return  # the stream is closing, and `on_closed` tells the channel
        try:
            ranges = self._handshake.answered(response)
        except HandshakeRefused as error:
            self.stream.abort(str(error))
            return
        if ranges is None:
            self._send_handshake()
            return
        self._ranges, self._versions = ranges, {}
        self._greeted = True
        self._log_in()

    def _log_in(self) -> None:
        """Also again, on a connection that is in use."""
        peer = self._channel.peer
        if peer is None or peer.mechanism_name is None:
            self._is_ready()
            return
        self.ready = False
        self._login_at = None
        self._began_at = self._channel.pool.loop.time()
        self._authentication = Authentication(peer.mechanism_name, peer.mechanism(), self._ranges)
        self._login_step(self._authentication.first)

    def log_in_again(self) -> None:
        self._log_in()

    def _login_answered(self, response: Any) -> None:
        if isinstance(response, SendFailure):
            return  # as above
        authentication = self._authentication
        assert authentication is not None, "it has asked"
        self._login_step(lambda: authentication.answered(response))

    def _login_step(self, step: Callable[[], Any]) -> None:
        authentication = self._authentication
        assert authentication is not None, "made before its first step"
        try:
            message = step()
        except AuthenticationFailed as error:
            self.stream.abort(f"this node could not log in: {error}")
            return
        if message is not None:
            version = common_version(type(message), self._ranges)
            assert version is not None, "checked by Authentication"
            self._put_setup(message, version, self._login_answered)
            return
        self._authentication = None
        if authentication.session_lifetime_ms > 0:
            self._login_at = self._began_at + SESSION_SHARE * authentication.session_lifetime_ms / 1000
        self._is_ready()

    def _is_ready(self) -> None:
        self.ready = True
        self._channel.link_ready(self)


class NothingListens(ConnectionRefusedError):
    """host: the address that said so."""

    def __init__(self, error: ConnectionRefusedError, host: str) -> None:
        super().__init__(*error.args)
        self.host = host


async def connected_socket(loop: asyncio.AbstractEventLoop, endpoint: Endpoint, source: str = "") -> socket.socket:
    """Connect to the first address of the endpoint that answers; raises OSError of one that did not.

    NothingListens: all addresses refused; `host` is the first one.
    """
    failure: OSError | None = None
    for family, address in await addresses(loop, endpoint):
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setblocking(False)
        try:
            if source:
                sock.bind((source, 0))
            await loop.sock_connect(sock, address)
        except ConnectionRefusedError as error:
            failure = failure or NothingListens(error, str(address[0]))
            sock.close()
        except OSError as error:
            if failure is None or isinstance(failure, NothingListens):
                failure = error
            sock.close()
        except asyncio.CancelledError:
            sock.close()
            raise
        else:
            return sock
    raise failure or OSError(f"{endpoint.host} has no address")


async def addresses(loop: asyncio.AbstractEventLoop, endpoint: Endpoint) -> list[tuple[socket.AddressFamily, Any]]:
    """Literal addresses need no resolver, and so no thread."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, endpoint.host)
        except OSError:
            continue
        return [(family, (endpoint.host, endpoint.port))]
    found = await loop.getaddrinfo(endpoint.host, endpoint.port, type=socket.SOCK_STREAM)
    return [(family, address) for family, _, _, _, address in found]
