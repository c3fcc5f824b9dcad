"""A socket as frames in and parts out; both ends of the wire use it.

Plain non-blocking sockets on `loop.add_reader` and `add_writer`: an asyncio transport in between would own the
descriptor (no sendfile next to it) and copy what it cannot send. No task, no thread, no await.

    in     HEAD --4 bytes of size--> BODY --size bytes--> on_frame, HEAD

    out    write --all sent--> idle
             \\--EAGAIN--> queued (`send_queue.py`) --writable--> ... --empty--> idle

Reading. All streams of a loop share one staging buffer. What arrives is cut into frames there and each frame is copied
into a buffer of its own (its receiver keeps it and may write into it). A frame of which only a part has arrived gets
its buffer at once and the rest is received straight into that, so that a large frame is never copied. That buffer
grows with what arrives: an announced size costs nothing. One call receives the rest of a large frame and a little of
what follows it: more would be the start of the next large one, copied for nothing. As long as a read brings all that it
asked for there is more, and the next one follows in the same turn: what a producer has sent ahead is taken in at once,
answered in one call, and followers are notified together.

Fairness. At most `READ_PER_TURN` bytes (and what the last read brings), `FRAMES_PER_TURN` frames of one read and
`WRITE_PER_TURN` bytes per turn of the loop; the rest waits for the next turn, after all other connections.

Limits. More than `OUTPUT_LIMIT` bytes waiting to be sent stop the reading until half is gone: a peer that asks faster
than it reads holds back itself. A peer that sends nothing and takes nothing is closed by its owner (`last_active`).

`write` sends at once, except while frames are handed over (`_corked`): answers to pipelined requests then leave in one
call, when the stream is uncorked at the end of the turn.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import struct
from collections.abc import Sequence
from time import monotonic
from typing import Protocol

from heirlog.env import Buffer, Region
from heirlog.server.send_queue import OUTPUT_LIMIT, RegionGone, SendQueue

STAGING_SIZE = 64 * 1024
LARGE_FRAME = 32 * 1024
AFTER_LARGE_FRAME = 4 * 1024
FRAMES_PER_TURN = 16
READ_PER_TURN = 256 * 1024
FIRST_BUFFER = 72 * 1024
"""Of a frame of which a part has arrived, for a batch of 64 KiB. As often as it is full it grows by `BUFFER_GROWTH`."""
FIRST_SHARE = 128
"""Of the frame limit, which is low for unauthenticated clients: thousands of them may send nine bytes each."""
BUFFER_GROWTH = 4
NO_FRAME = bytearray()
FRAME_SIZE = struct.Struct(">i")


class Receiver(Protocol):
    """Who gets the frames of a stream. Called on the loop."""

    def on_frame(self, frame: memoryview) -> bool:
        """One frame without its length prefix, owned by the receiver. False: hand over no more until `resume`."""

    def on_closed(self, reason: str) -> None:
        """Called once, from the loop itself, whichever side closed; `reason` is empty if we did."""

    def on_read_failed(self, path: str, error: OSError) -> None:
        """From the loop itself: a file that was to be sent cannot be read. The stream ends, too."""


class FrameStream:
    """One connected socket. `staging` is shared by the streams of the loop and used only within one callback."""

    __slots__ = (
        "_backlog",
        "_backlog_at",
        "_backlog_is_scheduled",
        "_closed",
        "_closing",
        "_corked",
        "_fd",
        "_filled",
        "_frame",
        "_frame_size",
        "_head",
        "_loop",
        "_out",
        "_paused",
        "_reading",
        "_receiver",
        "_room",
        "_sock",
        "_staging",
        "_throttled",
        "_writing",
        "frame_limit",
        "last_active",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        sock: socket.socket,
        staging: memoryview,
        frame_limit: int,
        receiver: Receiver,
        out: SendQueue | None = None,
    ) -> None:
        """out: what sends, where it is not the usual queue on `sock`."""
        self._loop = loop
        self._sock = sock
        self._fd = sock.fileno()
        self._staging = staging
        self.frame_limit = frame_limit
        self._receiver = receiver
        self._head = b""
        self._frame = NO_FRAME
        self._frame_size = 0
        self._filled = 0
        self._room = staging
        self._backlog: memoryview | None = None
        self._backlog_at = 0
        self._backlog_is_scheduled = False
        self._out = SendQueue(sock) if out is None else out
        self._paused = False
        self._throttled = False
        self._reading = False
        self._writing = False
        self._corked = False
        self._closing = False
        self._closed = False
        self.last_active = monotonic()
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._want_reads()

    # reading

    def _want_reads(self) -> None:
        wanted = not (self._paused or self._throttled or self._closing or self._backlog is not None)
        if wanted and not self._reading:
            self._loop.add_reader(self._fd, self._readable)
        elif self._reading and not wanted:
            self._loop.remove_reader(self._fd)
        self._reading = wanted

    def _readable(self) -> None:
        share = READ_PER_TURN
        while share > 0:
            asked, count = self._read_rest_of_frame() if self._frame else self._read_new_frame()
            if count < asked or self._is_held_up:
                break
            share -= count
        if self._corked:
            self._uncork()

    @property
    def _is_held_up(self) -> bool:
        return (
            self._paused
            or self._throttled
            or self._closing
            or self._backlog is not None
            or self._out.size > OUTPUT_LIMIT
        )

    def _read_new_frame(self) -> tuple[int, int]:
        """At the beginning of a frame, or within its size. How much was asked for, and how much came."""
        target = self._room
        count = self._receive(target)
        if not count:
            return 1, 0
        self._room = self._staging
        if self._head or count < 5 or FRAME_SIZE.unpack_from(target)[0] != count - 4 or count > self.frame_limit:
            self._cut(target[:count], 0)
        else:
            # exactly one frame, as most requests come
            if not self._receiver.on_frame(memoryview(bytearray(target[4:count]))):
                self._paused = True
                self._want_reads()
        return len(target), count

    def _read_rest_of_frame(self) -> tuple[int, int]:
        """The rest of a frame that has a buffer of its own, and what follows it. As `_read_new_frame`."""
        frame = self._frame
        rest = memoryview(frame)[self._filled :]
        wanted = len(rest)
        if len(frame) < self._frame_size:
            count = self._receive(rest)
            rest.release()
            self._filled += count
            if count == wanted:
                # a new buffer: to extend the old one takes 15 times as long (measured with 1 MB)
                self._frame = bytearray(min(self._frame_size, BUFFER_GROWTH * len(frame)))
                self._frame[: len(frame)] = frame
            return wanted, count
        behind = self._staging[:AFTER_LARGE_FRAME] if len(frame) >= LARGE_FRAME else self._staging
        count = self._receive(rest, behind)
        if count < wanted:
            self._filled += count
            return wanted, count
        self._frame = NO_FRAME
        self._room = behind
        if count == wanted:
            self._hand_over(frame)
        else:
            self._corked = True
            self._hand_over(frame)
            self._cut(behind[: count - wanted], 0)
        return wanted + len(behind), count

    def _receive(self, target: memoryview, behind: memoryview | None = None) -> int:
        """How many bytes came; 0 if none did, also because the connection has ended."""
        try:
            if behind is None:
                count = self._sock.recv_into(target)
            else:
                count = self._sock.recvmsg_into((target, behind))[0]
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError as error:
            self._end(f"{error.strerror or error}")
            return 0
        if not count:
            if self._corked:
                self._send_corked()  # a peer that has closed its sending side may still read
            self._end("closed by the peer")
            return 0
        self.last_active = monotonic()
        return count

    def _hand_over(self, frame: bytearray) -> None:
        """A frame with nothing known behind it."""
        if not self._receiver.on_frame(memoryview(frame)):
            self._paused = True
            self._want_reads()

    def _cut(self, data: memoryview, at: int) -> None:
        """Hand over the frames in `data` from `at` on; keep what is left of it."""
        if self._head:
            data = memoryview(self._head + data)
            self._head = b""
        size = len(data)
        budget = FRAMES_PER_TURN
        self._corked = True
        while size - at >= 4:
            if not budget or self._paused or self._closing or self._out.size > OUTPUT_LIMIT:
                break
            (length,) = FRAME_SIZE.unpack_from(data, at)
            if not 0 < length <= self.frame_limit:
                self._refuse(length)
                return
            end = at + 4 + length
            if end > size:
                self._frame_size = length
                self._filled = size - at - 4
                first = min(FIRST_BUFFER, self.frame_limit // FIRST_SHARE) or 1
                self._frame = bytearray(min(length, max(first, BUFFER_GROWTH * self._filled)))
                self._frame[: self._filled] = data[at + 4 :]
                at = size
                break
            budget -= 1
            start, at = at + 4, end
            if not self._receiver.on_frame(memoryview(bytearray(data[start:end]))):
                self._paused = True
        self._keep(data, at)

    def _keep(self, data: memoryview, at: int) -> None:
        left = len(data) - at
        if self._closing or not left:
            self._backlog = None
        elif left < 4:
            self._head = bytes(data[at:])
            self._backlog = None
        elif data is self._backlog:
            self._backlog_at = at
        else:
            self._backlog = memoryview(bytes(data[at:]))  # all connections share staging
            self._backlog_at = 0

    def _continue_reading(self) -> None:
        """Whatever held us up may be over: take the backlog up again on the next turn, or read."""
        if self._backlog is None:
            self._want_reads()
            return
        if self._reading:
            self._want_reads()
        if not (self._backlog_is_scheduled or self._paused or self._throttled or self._closing):
            self._backlog_is_scheduled = True
            self._loop.call_soon(self._process_backlog)

    def _process_backlog(self) -> None:
        self._backlog_is_scheduled = False
        if self._backlog is not None and not (self._paused or self._throttled or self._closing):
            self._cut(self._backlog, self._backlog_at)
            self._uncork()

    def _refuse(self, length: int) -> None:
        self._corked = False
        self._end(f"a frame of {length} bytes; the limit is {self.frame_limit}")

    def pause(self) -> None:
        """Hand over nothing more until `resume`: as if `on_frame` had said False, but at any time."""
        if self._closing or self._paused:
            return
        self._paused = True
        self._want_reads()

    def resume(self) -> None:
        """After `pause`, or after `on_frame` said False: hand over again, from the next turn of the loop on."""
        if not self._paused or self._closing:
            return
        self._paused = False
        if not self._corked:
            self._continue_reading()

    # writing

    @property
    def queued_bytes(self) -> int:
        return self._out.size

    def write(self, parts: Sequence[Buffer | Region]) -> None:
        """Send `parts`, in order after what was written before. After `close` it does nothing."""
        if self._closing:
            return
        if len(parts) == 1 and not self._corked and not self._out.parts:
            only = parts[0]
            if not isinstance(only, Region):
                self._write_one(only)
                return
        for part in parts:
            if not isinstance(part, Region):
                self._out.add(memoryview(part))
                continue
            try:
                self._out.add_region(part)
            except RegionGone as gone:
                self._end_soon(str(gone))
                return
            except OSError as error:
                self._read_failed(part.file.path, error)
                return
        if self._corked:
            return
        if not self._writing:
            self._send()
        self._throttle()

    def _throttle(self) -> None:
        """Reading stops above the limit and continues below half of it, so it does not change all the time."""
        if self._throttled:
            if self._out.size <= OUTPUT_LIMIT // 2:
                self._throttled = False
                self._continue_reading()
        elif self._out.size > OUTPUT_LIMIT:
            self._throttled = True
            if not self._closed:
                self._want_reads()

    def _write_one(self, part: Buffer) -> None:
        """The usual answer: small, nothing before it."""
        try:
            sent = self._sock.send(part)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError as error:
            self._end_soon(f"{error.strerror or error}")
            return
        if sent < len(part):
            self._out.add(memoryview(part)[sent:])
            self._want_writes()

    def _send_corked(self) -> None:
        self._corked = False
        if self._out.parts and not self._writing:
            self._send()

    def _uncork(self) -> None:
        self._send_corked()
        self._throttle()
        if not self._closed:
            self._continue_reading()

    def _writable(self) -> None:
        self._send()
        self._throttle()

    def _send(self) -> None:
        try:
            sent = self._out.send()
        except RegionGone as gone:
            self._end_soon(str(gone))
            return
        except OSError as error:
            path = self._out.reading
            if error.errno == errno.EIO and path is not None:
                self._read_failed(path, error)  # a socket has other errors: this is the disk's
            else:
                self._end_soon(f"{error.strerror or error}")
            return
        if sent:
            self.last_active = monotonic()
        self._want_writes()
        if self._closing and not self._out.parts:
            self._end_soon("")

    def _want_writes(self) -> None:
        if self._out.parts and not self._writing:
            self._writing = True
            self._loop.add_writer(self._fd, self._writable)
        elif self._writing and not self._out.parts:
            self._writing = False
            self._loop.remove_writer(self._fd)

    # ending

    def close(self) -> None:
        """Read no more, send what is queued, then close."""
        if self._closing:
            return
        self._closing = True
        if self._reading:
            self._want_reads()
        if not self._out.parts:
            self._end_soon("")

    def abort(self, reason: str) -> None:
        """Close now; what is queued is lost."""
        self._end_soon(reason)

    def _read_failed(self, path: str, error: OSError) -> None:
        self._loop.call_soon(self._receiver.on_read_failed, path, error)
        self._end_soon(f"{path} cannot be read: {error.strerror or error}")

    def _end_soon(self, reason: str) -> None:
        """`on_closed` never runs within a call of the receiver's own."""
        self._release()
        if not self._closed:
            self._closed = True
            self._loop.call_soon(self._receiver.on_closed, reason)

    def _end(self, reason: str) -> None:
        self._release()
        if not self._closed:
            self._closed = True
            self._receiver.on_closed(reason)

    def _release(self) -> None:
        if self._closed:
            return
        self._closing = True
        self._backlog = None
        self._frame = NO_FRAME
        self._filled = 0
        if self._reading:
            self._loop.remove_reader(self._fd)
        if self._writing:
            self._loop.remove_writer(self._fd)
        self._reading = self._writing = False
        self._out.clear()
        self._sock.close()
