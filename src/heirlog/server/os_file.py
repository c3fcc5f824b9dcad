"""A file on the operating system, which has a descriptor or is parked (`descriptors.py`).

Traps:

* A flush that failed is final for its file. The kernel reports a lost page once and then calls it clean, so a second
  `fdatasync` would answer success for bytes that are gone: every later flush of that file repeats the first error.
* A descriptor is closed only when no flush of it is in progress: its number could be reused for another file, and that
  one would be flushed instead.
* An answer of many partitions waits to be sent from more files than there are descriptors; each piece opens its file.
* A file that was closed keeps its descriptor while something is to be sent from it: its name may be gone.
* Appends name their position, so that a write which failed half-way is cut off again and never followed by another.

What was appended last is kept for a moment, in the buffer in which it came (`RecentAppends`): followers that wait get
it from there, and nothing is read back. Such a buffer is never changed after the append.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from contextlib import suppress

from heirlog.env import Buffer
from heirlog.server.descriptors import Descriptors
from heirlog.server.disk_errors import advised, with_advice

IOV_MAX = 1024
"""Buffers that one vectored write takes, on Linux and macOS."""
_BUFFERS = (bytes, bytearray, memoryview)
RECENT_APPENDS = 16
"""Files whose last append is kept: as many as there are partitions to which records come at the same moment."""
RECENT_BYTES = 128 * 1024
"""Of the buffer that holds an append. Larger ones are sent from the page cache, which costs less than copying them."""
RECENT_SHARE = 4
"""An append is kept if it is at least a fourth of its buffer: what waits to be sent to a slow peer keeps all of that,
and is limited by the bytes that are to be sent.
"""


if sys.platform == "darwin":
    import fcntl

    def sync_data(fd: int) -> None:
        """`fsync` on macOS stops at the drive's cache."""
        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
else:

    def sync_data(fd: int) -> None:
        os.fdatasync(fd)


class RecentAppends:
    """The files of one node whose last append is kept, in the order in which that began."""

    __slots__ = ("_files",)

    def __init__(self) -> None:
        self._files: dict[OsFile, None] = {}

    def add(self, file: OsFile) -> None:
        files = self._files
        if file not in files and len(files) == RECENT_APPENDS:
            oldest = next(iter(files))
            del files[oldest]
            oldest.recent = None
        files[file] = None

    def remove(self, file: OsFile) -> None:
        self._files.pop(file, None)


class OsFile:
    """See `heirlog.env.File`. `fileno` is for sendfile, within the body only."""

    __slots__ = (
        "_closing",
        "_descriptors",
        "_fd",
        "_flush_error",
        "_flushes",
        "_holders",
        "_parked_as",
        "_recent_appends",
        "_size",
        "at_risk",
        "path",
        "recent",
        "recent_at",
        "used",
    )

    def __init__(self, path: str, fd: int, recent_appends: RecentAppends | None = None) -> None:
        self.path = path
        self._fd = fd
        self._size = os.fstat(fd).st_size
        self._recent_appends = recent_appends
        self.recent: memoryview | None = None
        """What was appended last, while it is kept."""
        self.recent_at = 0
        self._flushes = 0
        """In progress."""
        self._holders = 0
        """Flushes in progress, and responses that are being sent from it."""
        self._flush_error: OSError | None = None
        self._closing = False
        self._parked_as = (0, 0)
        """Device and inode, while it is parked."""
        self._descriptors: Descriptors | None = None
        self.used = True
        self.at_risk = self._size > 0

    @property
    def size(self) -> int:
        return self._size

    def fileno(self) -> int:
        """Raises OSError where it was parked and cannot be opened again."""
        if self._fd < 0:
            self.reopen()
        self.used = True
        return self._fd

    def append(self, data: Buffer | Sequence[Buffer]) -> int:
        if self._fd < 0:
            self.reopen()
        self.used = True
        position = self._size
        if isinstance(data, _BUFFERS):
            length = len(data)
            try:
                written = os.pwrite(self._fd, data, position) if length else 0
            except OSError as error:
                raise with_advice(error, self.path) from None
            if written != length:
                self._append_rest([memoryview(data)], written, position)
            if self._recent_appends is not None:
                self._keep(memoryview(data), position)
        else:
            length = sum(len(part) for part in data)
            self._append_rest([memoryview(part) for part in data], 0, position)
            self.recent = None
        self._size = position + length
        # after the write: a flush that begins in between clears it, and need not cover the write
        self.at_risk = True
        return position

    def _keep(self, data: memoryview, position: int) -> None:
        assert self._recent_appends is not None
        if len(data.obj) > min(RECENT_BYTES, RECENT_SHARE * len(data)):  # type: ignore[arg-type]  # a Buffer
            self.recent = None
            return
        if self.recent is None:
            self._recent_appends.add(self)
        self.recent = data
        self.recent_at = position

    def _append_rest(self, parts: list[memoryview], done: int, position: int) -> None:
        """Write `parts` from byte `done` on; on failure the file is as long as before and the error is raised.

        A short write (disk full, file size limit) is followed by one that names the cause.
        """
        rest = drop(parts, done)
        at = position + done
        try:
            while rest:
                written = os.pwritev(self._fd, rest[:IOV_MAX], at)
                at += written
                rest = drop(rest, written)
        except OSError as error:
            os.ftruncate(self._fd, position)
            self.at_risk = True
            raise with_advice(error, self.path) from None

    def pread(self, size: int, position: int) -> bytes:
        """Raises OSError also where the file has become shorter than what was written to it."""
        recent = self.recent
        if recent is not None and position == self.recent_at and size == len(recent):
            return bytes(recent)
        if self._fd < 0:
            self.reopen()
        self.used = True
        try:
            data = os.pread(self._fd, size, position)
            while len(data) < size and position + len(data) < self._size:
                # the system may return less than it has: a network's file system, or for more than 2 GiB
                more = os.pread(self._fd, size - len(data), position + len(data))
                if not more:
                    break
                data += more
        except OSError as error:
            raise with_advice(error, self.path) from None
        if len(data) < size and position + len(data) < self._size:
            raise cut_from_outside(self.path)
        return data

    def pwrite(self, data: Buffer, position: int) -> None:
        assert position + len(data) <= self._size, "pwrite never extends a file"
        fd = self.fileno()
        self.recent = None
        rest = memoryview(data)
        try:
            while rest:
                written = os.pwrite(fd, rest, position)
                position += written
                rest = rest[written:]
        except OSError as error:
            raise with_advice(error, self.path) from None
        finally:
            self.at_risk = True

    def truncate(self, size: int) -> None:
        fd = self.fileno()
        self.recent = None
        try:
            os.ftruncate(fd, size)
        except OSError as error:
            raise with_advice(error, self.path) from None
        self._size = size
        self.at_risk = True

    def close(self) -> None:
        if self._holders and self._fd < 0:
            with suppress(OSError):  # the flush that waits will find out why
                self.reopen()
        self._closing = True
        if self._descriptors is not None:
            self._descriptors.closed(self)
        self._close_if_idle()

    def hold(self) -> None:
        """Until `release` the file can be sent, also if it is closed or removed meanwhile."""
        self._holders += 1

    def release(self) -> None:
        self._holders -= 1
        self._close_if_idle()

    def flush_begins(self) -> None:
        assert not self._closing, f"flush of the closed file {self.path}"
        # one that is parked stays so: its flush opens it, and thousands may be asked for at once
        self._flushes += 1
        self._holders += 1

    def flush_ended(self) -> None:
        self._flushes -= 1
        self.release()

    def flush_now(self) -> OSError | None:
        """In the flusher's thread. Only the first failure is asked of the kernel."""
        if self._flush_error is None:
            self.at_risk = False
            try:
                self._sync()
            except OSError as error:
                self.at_risk = True
                self._flush_error = with_advice(error, self.path)
        return self._flush_error

    def _sync(self) -> None:
        descriptors = self._descriptors
        if descriptors is None or self._fd >= 0:
            sync_data(self._fd)
            return
        with descriptors.names:
            parked = self._fd < 0
            fd = self._same(os.open(self.path, os.O_RDWR)) if parked else self._fd
        try:
            sync_data(fd)
        finally:
            if parked:
                os.close(fd)

    def _close_if_idle(self) -> None:
        if self._closing and not self._holders:
            self.recent = None
            if self._recent_appends is not None:
                self._recent_appends.remove(self)
            if self._fd >= 0:
                os.close(self._fd)
                self._fd = -1

    # parking, see `descriptors.py`

    @property
    def is_being_flushed(self) -> bool:
        return self._flushes > 0

    @property
    def is_parked(self) -> bool:
        return self._fd < 0

    def may_be_parked_by(self, descriptors: Descriptors | None) -> None:
        self._descriptors = descriptors

    def park(self) -> None:
        found = os.fstat(self._fd)
        self._parked_as = found.st_dev, found.st_ino
        os.close(self._fd)
        self._fd = -1

    def reopen(self) -> None:
        """Not of a closed file: its next call fails as a call on a closed descriptor does."""
        if self._closing or self._descriptors is None:
            return
        with advised(self.path):
            fd = self._same(self._descriptors.open(self.path, os.O_RDWR))
        if os.fstat(fd).st_size < self._size:
            os.close(fd)
            raise cut_from_outside(self.path)
        self._fd = fd
        self.used = True
        self._descriptors.opened(self)

    def _same(self, fd: int) -> int:
        """`fd`, if it is of the file that was parked. Raises OSError."""
        found = os.fstat(fd)
        if (found.st_dev, found.st_ino) == self._parked_as:
            return fd
        os.close(fd)
        raise OSError(errno.ESTALE, "another file has taken the place of the one that this node has opened", self.path)


def cut_from_outside(path: str) -> OSError:
    """Another process, or the disk, has shortened a file of ours: its other content cannot be trusted either."""
    return OSError(errno.EIO, "the file is shorter than what was written to it", path)


def drop(parts: list[memoryview], count: int) -> list[memoryview]:
    """`parts` without their first `count` bytes, and without empty parts."""
    for index, part in enumerate(parts):
        if count < len(part):
            return [part[count:], *(later for later in parts[index + 1 :] if len(later))]
        count -= len(part)
    return []
