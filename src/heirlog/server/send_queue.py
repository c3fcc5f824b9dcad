"""What waits to be sent on one socket, in order: bytes, and parts of files.

    add, add_region --> queued --send, as often as the socket takes something--> gone

A region that was appended a moment ago is sent from the buffer of the append. Another small one is read at once. Both
are sent with the bytes around them: one or two calls instead of five, and the peer wakes up once.
A larger one goes by sendfile, and so does every one above `OUTPUT_LIMIT`: what comes out of files is not read before
the peer takes it.

Traps. A region that cannot be sent at once holds its file, since the segment may be closed before the peer reads on. It
does not keep a descriptor: one answer may name thousands of files, and slow readers would use up all descriptors. A
file that was cut since it was promised ends the connection: the frame's size is out or about to be. So does one that
was closed while the answer waited for those before it: its log is gone. The disk is to blame only where we did not cut
the file ourselves.
"""

from __future__ import annotations

import os
import socket
from collections import deque
from typing import Protocol, cast

from heirlog.env import Region
from heirlog.server.files import cut_from_outside

OUTPUT_LIMIT = 1024 * 1024
WRITE_PER_TURN = 1024 * 1024
INLINE_REGION = 96 * 1024
"""Regions up to this size are read and sent with the bytes around them. Above it sendfile is cheaper (measured on
loopback: equal at 128 KiB)."""
IOV_MAX = 1024
MSG_MORE = getattr(socket, "MSG_MORE", 0)
FILE_TOO_SHORT = "a file is shorter than the answer that was to be sent from it"
FILE_CLOSED = "a log was removed before its records could be sent"


class RegionGone(Exception):
    """What was promised of a file is there no more, and it was us who took it away."""


class Descriptor(Protocol):
    @property
    def path(self) -> str: ...

    @property
    def size(self) -> int:
        """Size of what was written; the file is shorter if another process has truncated it."""

    @property
    def recent(self) -> memoryview | None:
        """What was appended last, if that is still in memory."""

    @property
    def recent_at(self) -> int:
        """Where that begins."""

    def fileno(self) -> int:
        """Negative once it is closed."""

    def hold(self) -> None:
        """Until `release` the file can be sent, also if it is closed meanwhile."""

    def release(self) -> None: ...


class FilePart:
    """The unsent rest of a region, whose file it holds."""

    __slots__ = ("file", "position", "size")

    def __init__(self, file: Descriptor, position: int, size: int) -> None:
        file.hold()
        self.file = file
        self.position = position
        self.size = size


class SendQueue:
    __slots__ = ("_fd", "_sock", "parts", "size")

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._fd = sock.fileno()
        self.parts: deque[memoryview | FilePart] = deque()
        self.size = 0
        """In bytes."""

    def add(self, part: memoryview) -> None:
        if len(part):
            self.parts.append(part)
            self.size += len(part)

    def add_region(self, region: Region) -> None:
        """Raises RegionGone; OSError where the disk cannot read it."""
        file = cast(Descriptor, region.file)
        if file.fileno() < 0:
            raise RegionGone(FILE_CLOSED)
        if region.size <= INLINE_REGION and self.size <= OUTPUT_LIMIT:
            recent = file.recent
            if recent is not None and region.position == file.recent_at and region.size == len(recent):
                self.add(recent)
                return
            data = region.read()
            if len(data) != region.size:
                raise RegionGone(FILE_TOO_SHORT)
            self.add(memoryview(data))
        else:
            self.parts.append(FilePart(file, region.position, region.size))
            self.size += region.size

    def send(self) -> int:
        """Send until the socket is full, or a turn's share is used up; how much that was.

        Raises RegionGone; OSError: of the disk where it is EIO and `reading` is a path, else the socket's.
        """
        before, least = self.size, self.size - WRITE_PER_TURN
        try:
            while self.parts and self.size > least:
                first = self.parts[0]
                self.size -= self._send_file(first) if isinstance(first, FilePart) else self._send_buffers()
        except (BlockingIOError, InterruptedError):
            pass
        return before - self.size

    @property
    def reading(self) -> str | None:
        """The path of the file whose part is next, if one is."""
        first = self.parts[0]
        return first.file.path if isinstance(first, FilePart) else None

    def _send_buffers(self) -> int:
        parts = self.parts
        buffers: list[memoryview] = []
        more = 0
        for part in parts:
            if isinstance(part, FilePart):
                more = MSG_MORE
                break
            if len(buffers) == IOV_MAX:
                break
            buffers.append(part)
        sent = rest = self._sock.sendmsg(buffers, (), more)
        if sent == self.size:
            parts.clear()
            return sent
        for part in buffers:
            if rest < len(part):
                parts[0] = part[rest:]
                break
            rest -= len(part)
            parts.popleft()
        return sent

    def _send_file(self, part: FilePart) -> int:
        sent = os.sendfile(self._fd, part.file.fileno(), part.position, min(part.size, WRITE_PER_TURN))
        if not sent:
            if part.file.size >= part.position + part.size:
                raise cut_from_outside(part.file.path)
            raise RegionGone(FILE_TOO_SHORT)
        part.position += sent
        part.size -= sent
        if not part.size:
            part.file.release()
            self.parts.popleft()
        return sent

    def clear(self) -> None:
        for part in self.parts:
            if isinstance(part, FilePart):
                part.file.release()
        self.parts.clear()
        self.size = 0
