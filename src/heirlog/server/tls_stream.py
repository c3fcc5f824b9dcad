"""A `FrameStream` within TLS: bytes of the socket go through an `ssl.SSLObject` with two buffers in memory.

    socket --recv--> incoming BIO --decrypt--> frames             (`_receive`)
    socket <--send-- outgoing BIO <--encrypt-- queued parts       (`TlsSendQueue`)

    HANDSHAKE --done--> on_secured, then frames as in `stream.py`
              \\--refused by either side, or nonsense--> the alert is sent, closed

A stream without TLS has its own class and never comes here. What is sent is encrypted piece by piece
(`tls_send_queue.py`).

Fairness. A handshake costs up to a millisecond, mostly of one signature. All handshakes of a loop wait in one line
(`HandshakeTurns`) of which a few are served per turn. `READ_PER_TURN` and `WRITE_PER_TURN` hold as without TLS, and one
call reads at most `READ_AT_ONCE` bytes and `RECORDS_AT_ONCE` records: a record of one byte costs as much as one of
many, and the socket holds a hundred thousand of them.

A peer whose bytes are mostly TLS and hardly data (key updates of 27 bytes, records of one byte) is read in small
pieces, one per turn, until it has sent data again; so is each peer until it has sent some.

Limits. A peer that makes us answer within TLS (key updates) fills the queue like one that makes us answer requests, and
is read no further. `CIPHER_READ` bytes without a byte of data are no honest peer's: a record has at most a quarter of
them.

Costs. Clients make records of a thousand bytes, and each may wake the loop. So the socket becomes readable only with a
good part of what a large frame still needs (SO_RCVLOWAT), or after `LOW_WATER_S` with less: a peer that is slow is not
idle, and one that says goodbye within TLS waits for the answer. The end of the connection and a full window make it
readable in any case. To ask OpenSSL for data that it does not have raises an error that costs as much as a record, so
it is asked only where there are bytes for it.

Traps. The socket may be unreadable while decrypted bytes wait: a stream that stops reading early comes back by itself
(`_is_drained`). The handshake of a client ends before the server has judged its certificate (TLS 1.3): it learns of a
refusal with its first read. After any error of OpenSSL the object is never used again.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import monotonic
from typing import Protocol

from heirlog.env import Buffer, Region
from heirlog.server.certificate_ends import has_ended
from heirlog.server.send_queue import RegionGone
from heirlog.server.stream import READ_PER_TURN, FrameStream, Receiver
from heirlog.server.tls_send_queue import TlsSendQueue, reason_of
from heirlog.tls.ends import PEER_HAS_GONE

CIPHER_READ = 64 * 1024
UNPROVEN_READ = 4 * 1024
"""Of a peer that is not known to send data. A key update costs 7 microseconds: one millisecond."""
JUDGED_BYTES = 16 * 1024
"""Of encrypted bytes, the share of data is looked at. A record is not larger."""
DATA_SHARE = 16
"""One byte of so many has to be data."""
READ_AT_ONCE = READ_PER_TURN
RECORDS_AT_ONCE = 128
"""A third of a millisecond. Eight times what fits into `READ_AT_ONCE` where records are full."""
LARGEST_RECORD = 16 * 1024
"""Bytes of data in a record (RFC 8446, 5.1)."""
LOW_WATER_MIN, LOW_WATER_MAX = 4 * 1024, 32 * 1024
"""Bytes that a socket waits for: less saves no wake worth a system call, and more only delays decrypting."""
LOW_WATER_S = 0.2
"""Then it waits for one byte, once: a peer that has gone silent costs nothing further."""
HANDSHAKES_PER_TURN = 4
CLOSED_BY_PEER = "closed by the peer"


class TlsReceiver(Receiver, Protocol):
    def on_secured(self, certificate: bytes | None) -> None:
        """The handshake is done. certificate: the peer's, in DER; None if it showed none."""


class HandshakeTurns:
    """The handshakes of one loop, a few per turn, in the order in which their bytes came."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[Callable[[], None]] = deque()

    def add(self, step: Callable[[], None]) -> None:
        if not self._waiting:
            self._loop.call_soon(self._serve)
        self._waiting.append(step)

    def _serve(self) -> None:
        for _ in range(min(HANDSHAKES_PER_TURN, len(self._waiting))):
            self._waiting.popleft()()
        if self._waiting:
            self._loop.call_soon(self._serve)


class TlsStream(FrameStream):
    """server_hostname: as a client, the name that the server's certificate must have; None: as a server."""

    __slots__ = (
        "_comes_back",
        "_data_bytes",
        "_dry_bytes",
        "_failure",
        "_incoming",
        "_is_drained",
        "_is_in_line",
        "_is_proven",
        "_is_secured",
        "_low_water",
        "_low_water_end",
        "_outgoing",
        "_secured",
        "_socket_is_empty",
        "_taken_bytes",
        "_tls",
        "_turns",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        sock: socket.socket,
        staging: memoryview,
        frame_limit: int,
        receiver: TlsReceiver,
        context: ssl.SSLContext,
        turns: HandshakeTurns,
        server_hostname: str | None = None,
    ) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        is_server = server_hostname is None
        self._tls = context.wrap_bio(self._incoming, self._outgoing, is_server, server_hostname)
        self._turns = turns
        self._secured = receiver.on_secured
        self._is_secured = False
        self._is_in_line = False
        self._socket_is_empty = True
        self._is_drained = True
        self._failure: str | None = None
        """Why there is nothing more to read; what came before it is still to be handed over."""
        self._comes_back = False
        self._taken_bytes = self._data_bytes = 0
        """Encrypted, and what came out of them, since the share of data was last looked at."""
        self._dry_bytes = 0
        """Encrypted, since there was data."""
        self._is_proven = False
        self._low_water = 1
        """How many bytes the socket must have before it is readable (SO_RCVLOWAT)."""
        self._low_water_end: asyncio.TimerHandle | None = None
        super().__init__(loop, sock, staging, frame_limit, receiver, TlsSendQueue(sock, self._tls, self._outgoing))
        if not is_server:
            self._wait_for_turn()

    # handshake

    def _readable(self) -> None:
        if not self._is_secured:
            self._wait_for_turn()
            return
        super()._readable()
        self._choose_low_water()
        self._come_back_if_needed()

    def _choose_low_water(self) -> None:
        """The system wakes the loop for a part of what a frame still needs, and not for each record of it.

        What OpenSSL has of a record that is not whole does not come again from the socket.
        """
        rest = self._frame_size - self._filled - LARGEST_RECORD if self._frame and self._is_proven else 0
        wanted = min(rest, LOW_WATER_MAX) if rest >= LOW_WATER_MIN else 1
        if wanted != self._low_water and not self._closed:
            self._set_low_water(wanted)
            if wanted > 1 and self._low_water_end is None:
                self._low_water_end = self._loop.call_later(LOW_WATER_S, self._end_low_water)

    def _set_low_water(self, wanted: int) -> None:
        self._low_water = wanted
        with suppress(OSError):  # it was reset, which the next read says
            self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, wanted)

    def _end_low_water(self) -> None:
        """What has come wakes the loop now; if nothing has, whatever comes next does."""
        self._low_water_end = None
        if self._low_water > 1:
            self._set_low_water(1)

    def _wait_for_turn(self) -> None:
        if not self._is_in_line:
            self._is_in_line = True
            self._want_reads()
            self._turns.add(self._shake_hands)

    def _want_reads(self) -> None:
        super()._want_reads()
        if self._is_in_line and self._reading:
            # its bytes wait in the kernel until its turn
            self._loop.remove_reader(self._fd)
            self._reading = False
        if self._is_secured:
            self._come_back_if_needed()

    def _shake_hands(self) -> None:
        self._is_in_line = False
        if self._closed:
            return
        reason = self._take_in()
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush_control_bytes()
            if reason is None:
                self._want_reads()
            else:
                self._end(f"{reason} during the TLS handshake")
            return
        except OSError as error:
            is_end = isinstance(error, PEER_HAS_GONE)  # a probe of the port, for example
            self._failure = f"{CLOSED_BY_PEER} during the TLS handshake" if is_end else reason_of(error)
            self._flush_control_bytes()
            self._end(self._failure)
            return
        if self._tls.session_reused and self._peer_has_expired():
            self._failure = "TLS: the certificate is not accepted: it has expired since the session began"
            self._end(self._failure)
            return
        self._is_secured = True
        self._is_drained = False
        self._taken_bytes = self._dry_bytes = 0
        self._flush_control_bytes()
        if self._closed:
            return
        self._secured(self._tls.getpeercert(True))
        if not self._closed:
            self._want_reads()

    def _peer_has_expired(self) -> bool:
        """OpenSSL looks at a certificate when it is shown. By TLS 1.2 a session may be continued without showing it,
        from a cache that Python cannot switch off.

        Never by the parsed form of `getpeercert()`: it raises where a name in the certificate is not UTF-8.
        """
        certificate = self._tls.getpeercert(True)
        return certificate is not None and has_ended(certificate, time.time())

    def _flush_control_bytes(self) -> None:
        out = self._out
        assert isinstance(out, TlsSendQueue), "made above"
        out.take_control_bytes()
        if out.parts and not self._writing:
            self._send()

    # reading

    def _take_in(self) -> str | None:
        """Move what the socket has into the buffer; the reason if the peer's end is reached."""
        most = CIPHER_READ if self._is_proven else UNPROVEN_READ
        try:
            data = self._sock.recv(most)
        except (BlockingIOError, InterruptedError):
            self._socket_is_empty = True
            return None
        except OSError as error:
            return error.strerror or str(error)
        if not data:
            self._incoming.write_eof()
            return CLOSED_BY_PEER
        self.last_active = monotonic()
        self._socket_is_empty = len(data) < most
        self._taken_bytes += len(data)
        self._dry_bytes += len(data)
        self._incoming.write(data)
        return None

    def _receive(self, target: memoryview, behind: memoryview | None = None) -> int:
        """Decrypt until `target` (and `behind`) is full, or there is no more for this turn."""
        count, limit = 0, min(len(target) + (0 if behind is None else len(behind)), READ_AT_ONCE)
        counted, records = 0, RECORDS_AT_ONCE
        has_taken = False
        self._is_drained = self._socket_is_empty = False
        incoming, size = self._incoming, len(target)
        read: Callable[[int, memoryview], int] = self._tls.read  # type: ignore[assignment]  # into a buffer
        while count < limit and records and self._failure is None:
            if incoming.pending or self._tls.pending():
                place = target[count:limit] if count < size else _rest(behind, count - size)
                try:
                    got = read(limit - count, place)
                except ssl.SSLWantReadError:
                    pass
                except PEER_HAS_GONE:
                    self._failure = CLOSED_BY_PEER
                    break
                except OSError as error:
                    self._failure = reason_of(error)
                    break
                else:
                    count += got
                    records -= 1
                    if not got:
                        self._failure = CLOSED_BY_PEER
                    continue
            self._count_data(count - counted)
            counted = count
            if self._socket_is_empty:
                self._is_drained = True
                break
            if self._dry_bytes >= CIPHER_READ:
                self._failure = "TLS: too many records without data"
                break
            self._judge()
            if has_taken and not self._is_proven:
                break
            self._failure = self._take_in()
            has_taken = True
        self._count_data(count - counted)
        if self._outgoing.pending:
            self._flush_control_bytes()
            self._throttle()
        if not count and self._failure is not None and not self._closed:
            if self._corked:
                self._send_corked()  # a peer that has closed its sending side may still read
            self._end(self._failure)
        return count

    def _count_data(self, size: int) -> None:
        if size:
            self._data_bytes += size
            self._dry_bytes = 0

    def _judge(self) -> None:
        """Whether the peer sends data, once there is enough to tell."""
        if self._taken_bytes >= JUDGED_BYTES:
            self._is_proven = self._data_bytes * DATA_SHARE >= self._taken_bytes
            self._taken_bytes = self._data_bytes = 0

    def _come_back_if_needed(self) -> None:
        """Decrypted bytes do not make the socket readable."""
        if self._reading and not self._is_drained and not self._comes_back:
            self._comes_back = True
            self._loop.call_soon(self._read_on)

    def _read_on(self) -> None:
        self._comes_back = False
        if self._reading:
            self._readable()

    # writing

    def write(self, parts: Sequence[Buffer | Region]) -> None:
        assert self._is_secured, "nothing is sent before the handshake is done"
        super().write(parts)

    def _write_one(self, part: Buffer) -> None:
        self._out.add(memoryview(part))
        self._send()

    # ending

    def _release(self) -> None:
        if not self._closed:
            self._say_goodbye()
        if self._low_water_end is not None:
            self._low_water_end.cancel()
        super()._release()

    def _say_goodbye(self) -> None:
        """close_notify, if the socket takes it now; its answer is not waited for."""
        out = self._out
        assert isinstance(out, TlsSendQueue), "made above"
        if not out.is_flushed:
            return
        try:
            if self._is_secured and self._failure in (None, CLOSED_BY_PEER):
                self._tls.unwrap()
        except (OSError, ValueError):
            pass
        try:
            out.take_control_bytes()
            if not out.is_flushed:
                out.send()
        except (OSError, RegionGone):
            pass


def _rest(behind: memoryview | None, at: int) -> memoryview:
    assert behind is not None, "there is room"
    return behind[at:]
