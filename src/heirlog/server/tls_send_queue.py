"""What a `TlsStream` has to send: plain parts, of which the first ones become records of TLS.

A stream without TLS sends its files by sendfile. Here they are read in pieces of `PIECE` bytes, and small parts are
joined, because each record of TLS costs a call. What is encrypted cannot be taken back, so a piece is encrypted only
once the one before it is sent.

Trap: a descriptor of such a stream must never be given to sendfile, which would send clear text.
"""

from __future__ import annotations

import os
import socket
import ssl

from heirlog.env import Buffer
from heirlog.server.os_file import cut_from_outside
from heirlog.server.send_queue import FILE_TOO_SHORT, WRITE_PER_TURN, FilePart, RegionGone, SendQueue

PIECE = 64 * 1024
"""Of plain bytes that are encrypted at once. Pieces of 32 to 256 KiB cost the same, 1 MiB a quarter more (measured)."""


class TlsSendQueue(SendQueue):
    """The first `_encrypted` parts are records already, the others are plain."""

    __slots__ = ("_encrypted", "_outgoing", "_tls")

    def __init__(self, sock: socket.socket, tls: ssl.SSLObject, outgoing: ssl.MemoryBIO) -> None:
        super().__init__(sock)
        self._tls = tls
        self._outgoing = outgoing
        self._encrypted = 0

    def send(self) -> int:
        """As `SendQueue.send`."""
        sent, most = 0, WRITE_PER_TURN
        try:
            while self.parts and sent < most:
                if not self._encrypted:
                    self._encrypt_piece()
                sent += self._send_first()
        except (BlockingIOError, InterruptedError):
            pass
        return sent

    def take_control_bytes(self) -> None:
        """What TLS itself has to say: handshake, alerts, key updates. Before what is still plain."""
        if not self._outgoing.pending:
            return
        data = self._outgoing.read()
        self.parts.insert(self._encrypted, memoryview(data))
        self._encrypted += 1
        self.size += len(data)

    def _send_first(self) -> int:
        first = self.parts[0]
        assert isinstance(first, memoryview), "it is encrypted"
        sent = self._sock.send(first)
        self.size -= sent
        if sent == len(first):
            self.parts.popleft()
            self._encrypted -= 1
        else:
            self.parts[0] = first[sent:]
        return sent

    def _encrypt_piece(self) -> None:
        """The next `PIECE` bytes become records."""
        first = self.parts[0]
        piece = self._read_file(first) if isinstance(first, FilePart) else self._join()
        view = memoryview(piece)
        try:
            while view:
                view = view[self._tls.write(view) :]
        except ssl.SSLError as error:
            # its number would be taken for one of the disk
            raise ConnectionError(reason_of(error)) from error
        self.size -= len(piece)
        self.take_control_bytes()

    def _join(self) -> Buffer:
        first = self.parts[0]
        assert isinstance(first, memoryview), "the caller has looked"
        if len(first) >= PIECE:
            self.parts[0] = first[PIECE:]
            if len(first) == PIECE:
                self.parts.popleft()
            return first[:PIECE]
        joined = bytearray()
        while self.parts:
            part = self.parts[0]
            if isinstance(part, FilePart) or len(joined) + len(part) > PIECE:
                break
            joined += part
            self.parts.popleft()
        return joined

    def _read_file(self, part: FilePart) -> bytes:
        data = os.pread(part.file.fileno(), min(part.size, PIECE), part.position)
        if not data:
            if part.file.size >= part.position + part.size:
                raise cut_from_outside(part.file.path)
            raise RegionGone(FILE_TOO_SHORT)
        part.position += len(data)
        part.size -= len(data)
        if not part.size:
            part.file.release()
            self.parts.popleft()
        return data

    def clear(self) -> None:
        super().clear()
        self._encrypted = 0

    @property
    def reading(self) -> str | None:
        return super().reading if self.parts else None

    @property
    def is_flushed(self) -> bool:
        """Whether everything that was encrypted is sent."""
        return not self._encrypted


def reason_of(error: OSError) -> str:
    """Why TLS failed, for the log."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"TLS: the certificate is not accepted: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        reason = (error.reason or str(error)).replace("_", " ").lower()
        if "wrong version number" in reason or "http request" in reason:
            return "TLS: the peer does not speak TLS"
        return f"TLS: {reason}"
    return error.strerror or str(error)
