"""One connection to a peer: it greets, logs in, then carries requests.

Where a session has an end (KIP-368), the node logs in again on the same connection after `SESSION_SHARE` of it:
requests that are under way are answered, new ones wait for the login.

A version is chosen per request: the newest that both sides speak, from the peer's ApiVersions answer.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from heirlog.client.errors import AuthenticationFailed
from heirlog.client.handshake import Authentication, Handshake, HandshakeRefused, common_version
from heirlog.env import OnResult, SendFailure
from heirlog.protocol.frames import RequestHeader, decode_response, encode_request
from heirlog.protocol.primitives import Malformed
from heirlog.server.stream import FrameStream

if TYPE_CHECKING:
    from heirlog.server.peers import Peer

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


@dataclass(frozen=True, slots=True)
class OutboundSettings:
    loop: asyncio.AbstractEventLoop
    client_id: str
    """What peers see in the request header."""
    staging: memoryview
    setup_timeout_s: float
    """Of each step until the connection is ready."""


class RequestQueue(Protocol):
    """The channel of the connection, where requests wait for it."""

    def watch(self, deadline: float) -> None:
        """Call `drop_late` then, or before."""

    def link_ready(self, link: OutboundConnection) -> None: ...

    def link_ended(self, link: OutboundConnection, reason: str) -> None: ...


class OutboundConnection:
    """A `tls_stream.TlsReceiver`."""

    __slots__ = (
        "_authentication",
        "_began_at",
        "_channel",
        "_correlation_id",
        "_greeted",
        "_handshake",
        "_login_at",
        "_peer",
        "_ranges",
        "_settings",
        "_setup_deadline",
        "_versions",
        "ready",
        "sent",
        "stream",
    )

    def __init__(
        self, channel: RequestQueue, settings: OutboundSettings, peer: Peer | None, sock: socket.socket, host: str
    ) -> None:
        """peer: how to log in; None: without TLS and SASL. host: the name that the peer has to prove."""
        self._channel = channel
        self._settings = settings
        self._peer = peer
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
        if peer is None:
            self.stream = FrameStream(settings.loop, sock, settings.staging, FRAME_LIMIT, self)
        else:
            self.stream = peer.stream(settings.loop, sock, settings.staging, FRAME_LIMIT, self, host)

    def begin(self) -> float:
        """The deadline of the first step."""
        if self._peer is None or not self._peer.uses_tls:
            return self._send_handshake()
        self._setup_deadline = self._settings.loop.time() + self._settings.setup_timeout_s
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
        settings = self._settings
        request = QueuedRequest(message, on_result, settings.loop.time() + settings.setup_timeout_s)
        self._put(request, version)
        self._channel.watch(request.deadline)
        return request.deadline

    @property
    def must_log_in(self) -> bool:
        return self._login_at is not None and self._settings.loop.time() >= self._login_at

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
            self._settings.loop.call_soon(request.on_result, unknown)
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
        header = RequestHeader(request.api_key, version, self._correlation_id, self._settings.client_id)
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
        peer = self._peer
        if peer is None or peer.mechanism_name is None:
            self._is_ready()
            return
        self.ready = False
        self._login_at = None
        self._began_at = self._settings.loop.time()
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
