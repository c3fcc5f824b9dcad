"""A listener with TLS, spoken to in bytes through a real socket.

    input     flags | bytes

    flags     bit 0    the handshake has been done, by a real client, before the bytes come
              bit 1    and that client encrypts them: they are what a FrameStream gets
              bit 2    TLS 1.2, whose handshake has more steps
              bit 3    they come in pieces of seven bytes, with a turn of the loop after each

The client then says that it sends nothing more. Whatever it sent, the stream ends, once, and no exception leaves it:
that would end the node. What came before the end of a handshake is no frame.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from fuzz.brain import Finding
from local.authorities import authority, issued

from heirlog.client.security import Security, Store
from heirlog.protocol.frames import RequestHeader, encode_request
from heirlog.protocol.messages import ApiVersionsRequest
from heirlog.server.event_loop import new_event_loop
from heirlog.server.stream import STAGING_SIZE
from heirlog.server.tls_stream import HandshakeTurns, TlsStream
from heirlog.tls.contexts import client_context, server_context

HANDSHAKEN, ENCRYPTED, OLDER, IN_PIECES = 1, 2, 4, 8
FRAME_LIMIT = 4096
TURNS_MAX = 20_000
PIECE = 7
HOST = "127.0.0.1"


class Receiver:
    def __init__(self) -> None:
        self.secured = 0
        self.frames = 0
        self.closed: list[str] = []

    def on_secured(self, certificate: bytes | None) -> None:
        self.secured += 1

    def on_frame(self, frame: memoryview) -> bool:
        if not self.secured:
            raise Finding("a frame before the handshake is done")
        self.frames += 1
        return True

    def on_closed(self, reason: str) -> None:
        self.closed.append(reason)

    def on_read_failed(self, path: str, error: OSError) -> None:
        raise Finding(f"{path} was never to be sent") from error


class Listener:
    def __init__(self) -> None:
        trust = Store("PEM", pem=authority().certificate_pem)
        key = Store("PEM", pem=issued("node", HOST))
        self.context = server_context(Security(protocol="SSL", trust=trust, key=key), "requested")
        self.clients = [
            client_context(Security(protocol="SSL", trust=trust, tls_versions=(version,)))
            for version in ("TLSv1.3", "TLSv1.2")
        ]
        self.listening = socket.create_server((HOST, 0))
        self.loop = new_event_loop()
        self.loop.set_exception_handler(self._failed)
        self.turns = HandshakeTurns(self.loop)
        self.staging = memoryview(bytearray(STAGING_SIZE))
        self.failures: list[dict[str, Any]] = []

    def _failed(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.failures.append(context)

    def turn(self, count: int = 1) -> None:
        for _ in range(count):
            self.loop.run_until_complete(asyncio.sleep(0))

    def feed(self, data: bytes) -> None:
        """Raises Finding."""
        flags, payload = data[0], data[1:]
        receiver = Receiver()
        ours = socket.create_connection(self.listening.getsockname())
        theirs, _ = self.listening.accept()
        with theirs, ours:
            theirs.setblocking(False)
            ours.setblocking(False)
            TlsStream(self.loop, theirs, self.staging, FRAME_LIMIT, receiver, self.context, self.turns)
            client = Client(self.clients[bool(flags & OLDER)])
            if flags & HANDSHAKEN:
                client.shake_hands(ours, self)
                if not receiver.secured:
                    raise Finding(f"an honest handshake was not done: {receiver.closed}")
                if flags & ENCRYPTED:
                    payload = client.encrypted(payload)
            size = PIECE if flags & IN_PIECES else max(1, len(payload))
            for at in range(0, len(payload), size):
                with suppress(OSError):  # it is closed already, or reads no further
                    ours.send(payload[at : at + size])
                self.turn()
            with suppress(OSError):
                ours.shutdown(socket.SHUT_WR)
            for _ in range(TURNS_MAX):
                if receiver.closed:
                    break
                self.turn()
            self.turn(2)
        if self.failures:
            raise Finding(f"an exception that would end the node: {self.failures.pop()}")
        if len(receiver.closed) != 1:
            raise Finding(f"its end was said {len(receiver.closed)} times: {receiver.closed}")


class Client:
    def __init__(self, context: ssl.SSLContext) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=HOST)

    def hello(self) -> bytes:
        with suppress(ssl.SSLWantReadError):
            self._tls.do_handshake()
        return self._outgoing.read()

    def shake_hands(self, sock: socket.socket, listener: Listener) -> None:
        done = False
        while not done:
            try:
                self._tls.do_handshake()
                done = True
            except ssl.SSLWantReadError:
                pass
            sock.send(self._outgoing.read())
            listener.turn(4)
            with suppress(BlockingIOError):
                self._incoming.write(sock.recv(1 << 16))

    def encrypted(self, plain: bytes) -> bytes:
        if plain:
            self._tls.write(plain)
        return self._outgoing.read()


def seeds() -> Iterator[bytes]:
    request = ApiVersionsRequest(client_software_name="x", client_software_version="1")
    frame = b"".join(bytes(part) for part in encode_request(RequestHeader(18, 4, 1, "c"), request))  # type: ignore[arg-type]
    clients = Listener().clients
    for older, context in zip((0, OLDER), clients, strict=True):
        hello = Client(context).hello()
        for pieces in (0, IN_PIECES):
            yield bytes([older | pieces]) + hello
        yield bytes([older | HANDSHAKEN | ENCRYPTED]) + frame * 3
        yield bytes([older | HANDSHAKEN | ENCRYPTED | IN_PIECES]) + frame
        # an alert, a handshake message and data that are not encrypted
        for record in (b"\x15\x03\x03\0\2\1\0", b"\x16\x03\x03\0\4\0\0\0\0", b"\x17\x03\x03\0\1\0"):
            yield bytes([older | HANDSHAKEN]) + record
