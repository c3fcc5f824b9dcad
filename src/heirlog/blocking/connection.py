"""One connection to one server: connect, agree on versions, ask and wait for the answer.

    Connection(...) --ApiVersions--> ready --request, response--> ready
                                       \\--time over, closed, nonsense--> broken    (every later call says so)

One request at a time. After a timeout the connection is broken: the late answer would stand where the next one is
expected. All failures are `OSError`s with a sentence: `TimeoutError`, `ConnectionError`, `Unsupported`.
"""

from __future__ import annotations

import select
import socket
import struct
import time
from typing import Any, Self

from heirlog.client.handshake import Handshake, Refused, common_version
from heirlog.env import Buffer, Region
from heirlog.protocol.frames import RequestHeader, decode_response, encode_request
from heirlog.protocol.primitives import Malformed, Message

FRAME_SIZE = struct.Struct(">i")
MAX_CORRELATION_ID = 0x7FFFFFFF


class Unsupported(OSError):
    """The server speaks no version of this API that we speak."""


class Connection:
    """timeout_s: for connecting and handshake together, and for each request that names no other."""

    def __init__(self, host: str, port: int, *, timeout_s: float = 30.0, client_id: str = "heirlog") -> None:
        self.address = f"{host}:{port}"
        self._timeout_s = timeout_s
        self._client_id = client_id
        self._correlation_id = 0
        self._broken: str | None = None
        deadline = time.monotonic() + timeout_s
        try:
            self._sock = socket.create_connection((host, port), timeout_s)
        except OSError as error:
            raise type_of(error)(f"cannot connect to {self.address}: {error.strerror or error}") from error
        try:
            self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.versions = self._shake_hands(deadline)
        except BaseException:
            self._sock.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def stale(self) -> bool:
        """Broken, or closed by the server while nobody asked anything."""
        if self._broken is None:
            readable, _, _ = select.select([self._sock], [], [], 0)
            if readable:  # nothing is outstanding, so this can only be the end
                self._broken = "closed by the server"
        return self._broken is not None

    def close(self) -> None:
        self._broken = self._broken or "closed by us"
        self._sock.close()

    def version_of(self, request: type[Message]) -> int:
        """The newest version both sides speak. Raises Unsupported."""
        version = common_version(request, self.versions)
        if version is None:
            raise Unsupported(f"{self.address} speaks no version of {request.__name__} that this client speaks")
        return version

    def request(self, message: Message, *, version: int | None = None, timeout_s: float | None = None) -> Any:
        """The response to `message`; `version`: this one instead of the newest common one."""
        if version is None:
            version = self.version_of(type(message))
        frame = self._exchange(message, version, self._deadline(timeout_s))
        return self._decoded(message.API_KEY, version, frame)

    def send(self, message: Message, *, version: int | None = None, timeout_s: float | None = None) -> None:
        """Send what has no answer (Produce with acks=0)."""
        if version is None:
            version = self.version_of(type(message))
        self._send(message, version, self._deadline(timeout_s))

    def _deadline(self, timeout_s: float | None) -> float:
        return time.monotonic() + (self._timeout_s if timeout_s is None else timeout_s)

    def _shake_hands(self, deadline: float) -> dict[int, tuple[int, int]]:
        handshake = Handshake()
        while True:
            version, message = handshake.request()
            frame = self._exchange(message, version, deadline)
            response = self._decoded(message.API_KEY, handshake.answer_version(frame), frame)
            try:
                ranges = handshake.answered(response)
            except Refused as error:
                raise ConnectionError(f"{self.address}: {error}") from error
            if ranges is not None:
                return ranges

    def _exchange(self, message: Message, version: int, deadline: float) -> memoryview:
        self._send(message, version, deadline)
        try:
            (size,) = FRAME_SIZE.unpack(self._receive(4, deadline))
            if size < 4:
                raise ConnectionError(f"{self.address} sent a frame of {size} bytes")
            return memoryview(self._receive(size, deadline))
        except OSError as error:
            raise self._break(error) from error

    def _send(self, message: Message, version: int, deadline: float) -> None:
        if self._broken is not None:
            raise ConnectionError(f"the connection to {self.address} is over: {self._broken}")
        self._correlation_id = (self._correlation_id + 1) & MAX_CORRELATION_ID
        header = RequestHeader(message.API_KEY, version, self._correlation_id, self._client_id)
        parts = encode_request(header, message)
        try:
            self._sock.settimeout(remaining(deadline))
            self._sock.sendall(b"".join(map(as_buffer, parts)))
        except OSError as error:
            raise self._break(error) from error

    def _receive(self, size: int, deadline: float) -> bytearray:
        buffer = bytearray(size)
        view = memoryview(buffer)
        while view:
            self._sock.settimeout(remaining(deadline))
            count = self._sock.recv_into(view)
            if not count:
                raise ConnectionError("closed by the server")
            view = view[count:]
        return buffer

    def _decoded(self, api_key: int, version: int, frame: memoryview) -> Any:
        try:
            correlation_id, response = decode_response(api_key, version, frame)
            if correlation_id != self._correlation_id:
                raise ConnectionError(f"the answer {correlation_id} where {self._correlation_id} was expected")
        except (Malformed, ConnectionError) as error:
            raise self._break(ConnectionError(str(error))) from error
        return response

    def _break(self, error: OSError) -> OSError:
        self._broken = error.strerror or str(error) or "time is over"
        self._sock.close()
        return type_of(error)(f"{self.address}: {self._broken}")


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
