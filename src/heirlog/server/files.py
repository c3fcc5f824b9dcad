"""A node's disks on the operating system.

Reads and appends are plain calls into the page cache. Only a flush waits for the disk, so only flushes leave the event
loop: one thread takes all flushes requested since it last looked, flushes each file once, and passes the callbacks back
to the loop (group commit). No other code uses that thread. Where it finds many at once, as at the stop of a node with
thousands of logs, others help it: a disk, and the journal of a file system, serve several flushes together.

    flush(file) --> asked --thread takes all--> in the kernel --loop--> on_flushed(None | OSError)

Traps:

* A flush that failed is final for its file. The kernel reports a lost page once and then calls it clean, so a second
  `fdatasync` would answer success for bytes that are gone: every later flush of that file repeats the first error.
* A descriptor is closed only when no flush of it is in progress and no connection sends from it. Otherwise its number
  could be reused for another file, and that one would be flushed or sent instead.
* A file that is in use need not have a descriptor: `descriptors.py` closes those that were not used for a while.
* Appends name their position, so that a write which failed half-way is cut off again and never followed by another.

What was appended last is kept for a moment, in the buffer in which it came (`RecentAppends`): followers that wait get
it from there, and nothing is read back. Such a buffer is never changed after the append.
"""

from __future__ import annotations

import errno
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeAlias

from heirlog.env import Buffer, File
from heirlog.server.boot_id import read_boot_id
from heirlog.server.descriptors import Descriptors, Parkable
from heirlog.server.disk_errors import advised, with_advice
from heirlog.server.file_identity import file_identity

Deliver: TypeAlias = Callable[[Callable[[], None]], object]
"""Runs a function on the loop soon, called from any thread (`loop.call_soon_threadsafe`)."""

OnSynced: TypeAlias = Callable[[OSError | None], None]

FLUSHES_OF_A_THREAD = 8
"""For each so many that are to be flushed a thread is started, until there are `THREADS_MAX`."""
THREADS_MAX = 8
IOV_MAX = 1024
"""Buffers that one vectored write takes, on Linux and macOS."""


if sys.platform == "darwin":
    import fcntl

    def sync_data(fd: int) -> None:
        """`fsync` on macOS stops at the drive's cache."""
        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
else:

    def sync_data(fd: int) -> None:
        os.fdatasync(fd)


_BUFFERS = (bytes, bytearray, memoryview)

RECENT_APPENDS = 16
"""Files whose last append is kept: as many as there are partitions to which records come at the same moment."""
RECENT_BYTES = 128 * 1024
"""Of the buffer that holds an append. Larger ones are sent from the page cache, which costs less than copying them."""
RECENT_SHARE = 4
"""An append is kept if it is at least a fourth of its buffer: what waits to be sent to a slow peer keeps all of that,
and is limited by the bytes that are to be sent.
"""


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
        """Until `release` the descriptor stays, also of a file that was closed or removed meanwhile.

        Raises OSError as `fileno` does.
        """
        self.fileno()
        self._holders += 1

    def release(self) -> None:
        self._holders -= 1
        self._close_if_idle()

    def flush_begins(self) -> None:
        assert not self._closing, f"flush of the closed file {self.path}"
        # one that is parked stays so: its flush opens it, and thousands may be asked for at once
        self._holders += 1

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
    def is_held(self) -> bool:
        return self._holders > 0

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


class Flusher:
    """The thread that waits for disks, and those that help it.

    `ask` may be called from the loop only; callbacks run on the loop, in the order asked per target.
    """

    def __init__(self, deliver: Deliver) -> None:
        self._deliver = deliver
        self._asked: dict[OsFile | str, list[OnSynced]] = {}
        self._finished: deque[FinishedFlush] = deque()
        """On their way to the loop."""
        self._wake = threading.Condition()
        self._is_flushing = False
        self._stopping = False
        self._thread: threading.Thread | None = None
        self.silent = False
        """No callbacks are called any more."""

    def ask(self, target: OsFile | str, on_synced: OnSynced) -> None:
        """`target`: a file, or the path of a directory."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="flusher", daemon=True)
            self._thread.start()
        if isinstance(target, OsFile):
            target.flush_begins()
        with self._wake:
            waiting = self._asked.setdefault(target, [])
            waiting.append(on_synced)
            self._wake.notify()

    def wait(self) -> None:
        """Until all that was asked has ended: those files are no longer held. In the loop; callbacks come later."""
        with self._wake:
            while self._asked or self._is_flushing:
                self._wake.wait()
        for finished in self._finished:
            finished.release()

    def stop(self) -> None:
        """Finish what was asked, then end the thread. Callbacks still go to `deliver`."""
        with self._wake:
            self._stopping = True
            self._wake.notify()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while True:
            with self._wake:
                self._is_flushing = False
                self._wake.notify()
                while not self._asked and not self._stopping:
                    self._wake.wait()
                asked, self._asked = self._asked, {}
                self._is_flushing = bool(asked)
            if not asked:
                return
            self._flush_all(asked)

    def _flush_all(self, asked: dict[OsFile | str, list[OnSynced]]) -> None:
        """Returns when all are flushed: no target is flushed by two threads, and its callbacks stay in order."""
        left = deque(asked.items())
        helpers: list[threading.Thread] = []
        while len(helpers) < min(len(left) // FLUSHES_OF_A_THREAD, THREADS_MAX - 1):
            helper = threading.Thread(target=self._flush_some, args=(left,), name="flusher's helper", daemon=True)
            try:
                helper.start()
            except RuntimeError:
                break  # the system grants no more of them
            helpers.append(helper)
        self._flush_some(left)
        for helper in helpers:
            helper.join()

    def _flush_some(self, left: deque[tuple[OsFile | str, list[OnSynced]]]) -> None:
        while True:
            try:
                target, callbacks = left.popleft()
            except IndexError:
                return
            error = target.flush_now() if isinstance(target, OsFile) else sync_directory(target)
            self._finished.append(FinishedFlush(target, callbacks, error))
            self._deliver(self._call_next)

    def _call_next(self) -> None:
        finished = self._finished.popleft()
        finished.release()
        for callback in finished.callbacks:
            if not self.silent:
                callback(finished.error)


class FinishedFlush:
    __slots__ = ("_target", "callbacks", "error")

    def __init__(self, target: OsFile | str, callbacks: list[OnSynced], error: OSError | None) -> None:
        self._target: OsFile | str | None = target
        self.callbacks = callbacks
        self.error = error

    def release(self) -> None:
        """Once; the loop may have waited for it."""
        if isinstance(self._target, OsFile):
            for _ in self.callbacks:
                self._target.release()
        self._target = None


def sync_directory(path: str) -> OSError | None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
    except OSError as error:
        return with_advice(error, path)
    return None


class OsFiles:
    """See `heirlog.env.Files`."""

    def __init__(self, deliver: Deliver, files_open: int | None = None) -> None:
        """files_open: how many files have a descriptor; None: half of those that the process may have."""
        self._flusher = Flusher(deliver)
        self._recent_appends = RecentAppends()
        self._descriptors = Descriptors(self._flush_to_park, self._flusher.wait, files_open)

    @property
    def boot_id(self) -> str:
        return read_boot_id()

    def identity(self, path: str) -> str:
        with advised(path):
            return file_identity(path)

    def open(self, path: str, create: bool = False) -> OsFile:
        with advised(path):
            fd = self._descriptors.open(path, os.O_RDWR | (os.O_CREAT if create else 0))
        file = OsFile(path, fd, self._recent_appends)
        self._descriptors.add(file)
        return file

    def _flush_to_park(self, file: Parkable, on_flushed: OnSynced) -> None:
        assert isinstance(file, OsFile)
        self.flush(file, on_flushed)

    def flush(self, file: File, on_flushed: OnSynced) -> None:
        assert isinstance(file, OsFile)
        self._flusher.ask(file, on_flushed)

    def sync_dir(self, path: str, on_synced: OnSynced) -> None:
        self._flusher.ask(path, on_synced)

    def rename(self, source: str, target: str) -> None:
        with advised(source), self._descriptors.renaming(source, target):
            self._rename(source, target)

    def _rename(self, source: str, target: str) -> None:
        os.rename(source, target)

    def unlink(self, path: str) -> None:
        with advised(path), self._descriptors.removing(path):
            self._unlink(path)

    def _unlink(self, path: str) -> None:
        os.unlink(path)

    def mkdirs(self, path: str) -> None:
        with advised(path):
            os.makedirs(path, exist_ok=True)

    def rmdir(self, path: str) -> None:
        # it loads compression libraries, and most nodes never delete a log: their starts take less time without it
        import shutil

        with advised(path):
            shutil.rmtree(path)

    def list(self, path: str) -> list[str]:
        with advised(path):
            return sorted(os.listdir(path))

    def exists(self, path: str) -> bool:
        return os.path.lexists(path)

    def is_dir(self, path: str) -> bool:
        return os.path.isdir(path)

    def modified_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def space(self, path: str) -> tuple[int, int]:
        volume = os.statvfs(path)
        return volume.f_blocks * volume.f_frsize, volume.f_bavail * volume.f_frsize

    def silence(self) -> None:
        """The node stopped: no callback runs from now on."""
        self._flusher.silent = True

    def stop(self) -> None:
        """Wait for flushes in progress; the node has ended, so no callbacks are called."""
        self._flusher.stop()
