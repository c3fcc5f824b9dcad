"""One connection to one server: connect, TLS and SASL if wanted, agree on versions, then ask and take answers.

    Connection(...) --TLS--> --ApiVersions--> --SASL--> ready --submit, take--> ready
                             \\--time over, closed, nonsense--> broken          (every later call says so)

`request` sends one request and waits. For several requests in flight, submit them and take the answers in the same
order. After a timeout the connection is closed, because the late answer would be taken for the next one. Failures are
`OSError`s with a message: `TimeoutError`, `ConnectionError`, `Unsupported`. A failed login raises
`AuthenticationFailed`, which is not an `OSError`, so that it is not retried.
"""

from __future__ import annotations

import select
import socket
import ssl
import struct
import time
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from heirlog.client.errors import AuthenticationFailed, ClosedUnanswered, Unsupported
from heirlog.client.handshake import Authentication, Handshake, HandshakeRefused, common_version
from heirlog.env import Buffer, Region
from heirlog.protocol.frames import RequestHeader, decode_response, encode_request
from heirlog.protocol.primitives import Malformed, Message
from heirlog.tls.ends import PEER_HAS_GONE

if TYPE_CHECKING:
    from heirlog.blocking.credentials import Credentials

FRAME_SIZE = struct.Struct(">i")
MAX_CORRELATION_ID = 0x7FFFFFFF
MAX_HANDSHAKE_BYTES = 1 << 20
"""Of an answer before the connection is ready: what is longer comes from something that is no Kafka broker."""
JOINED_BYTES = 1 << 16
"""Up to this size a request is copied into one piece: cheaper than a system call more."""
SESSION_SHARE = 0.85
"""Of a session's life, after which a connection is not used for anything new (KIP-368)."""


class ReceiveBuffer:
    """Memory that is filled again and again: what was decoded from it is gone with the next answer."""

    def __init__(self) -> None:
        self._memory = bytearray()

    def view(self, size: int) -> memoryview:
        if len(self._memory) < size:
            self._memory = bytearray(size + size // 8)  # a new one: the caller may still use the old one
        return memoryview(self._memory)[:size]


class InFlightRequest(NamedTuple):
    """An answer that has not come yet."""

    api_key: int
    version: int
    correlation_id: int


class Connection:
    """timeout_s: for connecting and handshake together, and for each request that names no other.

    setup_timeout_s: a shorter limit of connecting and handshake. The system accepts connections for a process that
    hangs, is paused, or loads its logs; another server may answer meanwhile.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        timeout_s: float = 30.0,
        setup_timeout_s: float = float("inf"),
        client_id: str = "heirlog",
        credentials: Credentials | None = None,
    ) -> None:
        self.address = f"{host}:{port}"
        self.versions: dict[int, tuple[int, int]] = {}
        self._timeout_s = timeout_s
        self._client_id = client_id
        self._correlation_id = 0
        self._in_flight: deque[InFlightRequest] = deque()
        self._broken: str | None = None
        self._expires_at = float("inf")
        self._frame_bytes_max = MAX_HANDSHAKE_BYTES
        self._has_answered = False
        """Something beyond the greeting."""
        setup_s = min(timeout_s, setup_timeout_s)
        deadline = time.monotonic() + setup_s
        try:
            self._sock: socket.socket = socket.create_connection((host, port), setup_s)
        except OSError as error:
            raise type_of(error)(f"cannot connect to {self.address}: {error.strerror or error}") from error
        try:
            self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._establish(host, credentials, deadline)
        except BaseException:
            self._sock.close()
            raise
        self._frame_bytes_max = MAX_CORRELATION_ID

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def fileno(self) -> int:
        """For `readable_of`; see `readable` for what TLS may hold back."""
        return self._sock.fileno()

    @property
    def in_flight(self) -> int:
        """Requests whose answers are due."""
        return len(self._in_flight)

    def stale(self) -> bool:
        """Whether it is broken, closed by the server while idle, or its session is about to end."""
        if self._broken is None and not self._in_flight and not self._alive():
            self._broken = "closed by the server"
        return self._broken is not None or time.monotonic() >= self._expires_at

    def close(self) -> None:
        self._broken = self._broken or "closed by us"
        self._sock.close()

    def version_of(self, request: type[Message], newest: int | None = None) -> int:
        """The newest version that both sides speak; newest: none above this. Raises Unsupported."""
        version = common_version(request, self.versions)
        if version is None:
            raise Unsupported(f"{self.address} speaks no version of {request.__name__} that this client speaks")
        return version if newest is None else min(version, newest)

    def request(self, message: Message, *, version: int | None = None, timeout_s: float | None = None) -> Any:
        """The response to `message`; `version`: this one instead of the newest common one."""
        deadline = self._deadline(timeout_s)
        self._submit(message, version, deadline)
        return self._take(None, deadline)

    def submit(self, message: Message, *, version: int | None = None, timeout_s: float | None = None) -> None:
        """Send `message`; its answer is to be taken after those of all requests before it."""
        self._submit(message, version, self._deadline(timeout_s))

    def take(self, *, into: ReceiveBuffer | None = None, timeout_s: float | None = None) -> Any:
        """The answer to the oldest request whose answer is due. into: what receives it, for large ones."""
        return self._take(into, self._deadline(timeout_s))

    def readable(self, timeout_s: float = 0) -> bool:
        """Whether something of an answer has come."""
        if isinstance(self._sock, ssl.SSLSocket) and self._sock.pending():
            return True
        return bool(readable_of([self], timeout_s))

    def send(self, message: Message, *, version: int | None = None, timeout_s: float | None = None) -> None:
        """Send what has no answer (Produce with acks=0)."""
        if version is None:
            version = self.version_of(type(message))
        self._send(message, version, self._deadline(timeout_s))

    # the way in

    def _establish(self, host: str, credentials: Credentials | None, deadline: float) -> None:
        try:
            if credentials is not None:
                self._sock.settimeout(remaining(deadline))
                self._sock = credentials.wrap(self._sock, host)
            self.versions = self._handshake(deadline)
            if credentials is not None and credentials.mechanism_name is not None:
                self._authenticate(credentials.mechanism_name, credentials, deadline)
        except AuthenticationFailed as error:
            if self._broken is not None:
                raise
            raise AuthenticationFailed(f"{self.address}: {error.message}", error.code) from error
        except OSError as error:
            raise self._break(error) from error

    def _handshake(self, deadline: float) -> dict[int, tuple[int, int]]:
        handshake = Handshake()
        while True:
            version, message = handshake.request()
            self._send(message, version, deadline)
            frame = self._frame(None, deadline)
            in_flight_request = InFlightRequest(message.API_KEY, handshake.answer_version(frame), self._correlation_id)
            try:
                ranges = handshake.answered(self._decoded(in_flight_request, frame))
            except HandshakeRefused as error:
                raise ConnectionError(str(error)) from error
            if ranges is not None:
                return ranges

    def _authenticate(self, name: str, credentials: Credentials, deadline: float) -> None:
        began = time.monotonic()
        authentication = Authentication(name, credentials.mechanism(), self.versions)
        message: Message | None = authentication.first()
        while message is not None:
            self._submit(message, None, deadline)
            message = authentication.answered(self._take(None, deadline))
        if authentication.session_lifetime_ms > 0:
            self._expires_at = began + SESSION_SHARE * authentication.session_lifetime_ms / 1000

    # plumbing

    def _deadline(self, timeout_s: float | None) -> float:
        return time.monotonic() + (self._timeout_s if timeout_s is None else timeout_s)

    def _alive(self) -> bool:
        """With nothing due only the end can be read, and in TLS what the peer sends by itself."""
        if not readable_of([self], 0):
            return True
        if not isinstance(self._sock, ssl.SSLSocket):
            return False
        try:
            self._sock.settimeout(0)
            self._sock.recv(1)
        except ssl.SSLWantReadError:
            return True
        except OSError:
            return False
        return False

    def _submit(self, message: Message, version: int | None, deadline: float) -> None:
        if version is None:
            version = self.version_of(type(message))
        self._send(message, version, deadline)
        self._in_flight.append(InFlightRequest(message.API_KEY, version, self._correlation_id))

    def _take(self, into: ReceiveBuffer | None, deadline: float) -> Any:
        self._check_usable()
        frame = self._frame(into, deadline)
        self._has_answered = True
        return self._decoded(self._in_flight.popleft(), frame)

    def _frame(self, into: ReceiveBuffer | None, deadline: float) -> memoryview:
        try:
            (size,) = FRAME_SIZE.unpack(self._receive(memoryview(bytearray(4)), deadline))
            if not 4 <= size <= self._frame_bytes_max:
                raise ConnectionError(f"sent a frame of {size} bytes")
            return self._receive(memoryview(bytearray(size)) if into is None else into.view(size), deadline)
        except OSError as error:
            raise self._break(error) from error

    def _check_usable(self) -> None:
        if self._broken is not None:
            raise ConnectionError(f"the connection to {self.address} is over: {self._broken}")

    def _send(self, message: Message, version: int, deadline: float) -> None:
        self._check_usable()
        self._correlation_id = (self._correlation_id + 1) & MAX_CORRELATION_ID
        header = RequestHeader(message.API_KEY, version, self._correlation_id, self._client_id)
        parts = [as_buffer(part) for part in encode_request(header, message)]
        if sum(map(len, parts)) <= JOINED_BYTES:
            parts = [b"".join(parts)]
        try:
            for part in parts:
                self._sock.settimeout(remaining(deadline))
                self._sock.sendall(part)
        except OSError as error:
            raise self._break(error) from error

    def _receive(self, view: memoryview, deadline: float) -> memoryview:
        """Fills all of `view`, and returns it."""
        left = view
        while left:
            self._sock.settimeout(remaining(deadline))
            count = self._sock.recv_into(left)
            if not count:
                raise ConnectionError("closed by the server")
            left = left[count:]
        return view

    def _decoded(self, in_flight_request: InFlightRequest, frame: memoryview) -> Any:
        try:
            correlation_id, response = decode_response(in_flight_request.api_key, in_flight_request.version, frame)
            if correlation_id != in_flight_request.correlation_id:
                raise ConnectionError(
                    f"the answer {correlation_id} where {in_flight_request.correlation_id} was expected"
                )
        except (Malformed, ConnectionError) as error:
            raise self._break(ConnectionError(str(error))) from error
        return response

    def _break(self, error: OSError) -> Exception:
        """The exception to raise for `error`, after which the connection is over."""
        if isinstance(error, Unsupported) or self._broken is not None:
            return error
        if isinstance(error, ssl.SSLError) and not isinstance(error, PEER_HAS_GONE):
            failure = tls_failure(error)
            self._broken = failure.message
            self._sock.close()
            return AuthenticationFailed(f"{self.address}: {failure.message}", failure.code)
        self._broken = error.strerror or str(error) or "timed out"
        self._sock.close()
        if isinstance(error, ConnectionError) and not self._has_answered:
            self._broken += " (is this the right port: does it want TLS, or SASL?)"
            return ClosedUnanswered(f"{self.address}: {self._broken}")
        return type_of(error)(f"{self.address}: {self._broken}")


def readable_of(connections: Sequence[Connection], timeout_s: float) -> list[Connection]:
    """Those with something to read, or that ended; waits for the first. Works for file descriptors of any number."""
    poll = select.poll()
    by_descriptor = {connection.fileno(): connection for connection in connections}
    for descriptor in by_descriptor:
        poll.register(descriptor, select.POLLIN)
    return [by_descriptor[descriptor] for descriptor, _ in poll.poll(timeout_s * 1000)]


_DATES: Final = "replace it on the broker, or set the clock of this machine"
_NAMES: Final = "connect to a name or an address that it has"
_ADVICE: Final = {9: _DATES, 10: _DATES, 62: _NAMES, 64: _NAMES}
"""By OpenSSL's number: not valid yet, expired, another host, another address."""


def tls_failure(error: ssl.SSLError) -> AuthenticationFailed:
    """OpenSSL's reason in a sentence."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return AuthenticationFailed(
            f"TLS: the broker's certificate is not accepted: {error.verify_message}; "
            + _ADVICE.get(error.verify_code, "ssl.truststore.location names the authorities that are trusted")
        )
    reason = (error.reason or "handshake failed").replace("_", " ").lower()
    if "wrong version number" in reason:
        return AuthenticationFailed("TLS: the broker does not speak TLS on this port")
    return AuthenticationFailed(f"TLS: {reason}")


def type_of(error: OSError) -> type[OSError]:
    """Which of the two kinds that callers tell apart: no answer in time, or no connection."""
    return TimeoutError if isinstance(error, TimeoutError) else ConnectionError


def remaining(deadline: float) -> float:
    """Seconds until `deadline`. Raises TimeoutError: a socket timeout of 0 would mean "do not block"."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("timed out")
    return left


def as_buffer(part: Buffer | Region) -> Buffer:
    return part.read() if isinstance(part, Region) else part
