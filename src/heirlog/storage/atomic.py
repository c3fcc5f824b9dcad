"""Small files that are replaced as a whole: after a crash they have either the old content or the new one.

    idle --write--> (its turn) --> tmp written --flush--> renamed --sync directory--> durable --> idle
                         ^                                                |
                         +---------------- written meanwhile -------------+

`replace_file` does it once; `publish_file` is its second half, for a file that is written in pieces. `AtomicFile` is
for a file that is replaced repeatedly. A write during another one waits, and replaces a write that waits already: only
the newest content matters, and all callbacks are answered together. The flush before the rename prevents that a crash
leaves an empty file under the new name.

Source of the order: Kafka's CheckpointFile (tmp, fsync, rename, fsync of the directory).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from heirlog.env import Buffer, File, Files
from heirlog.storage.open_files import OpenFileLimit

OnDurable: TypeAlias = Callable[[OSError | None], None]

TMP_SUFFIX = ".tmp"


def read_file(files: Files, path: str) -> bytes | None:
    """The whole content; None if the file does not exist. Other failures raise OSError."""
    if not files.exists(path):
        return None
    file = files.open(path)
    try:
        return file.pread(file.size, 0)
    finally:
        file.close()


def replace_file(
    files: Files,
    directory: str,
    name: str,
    data: Iterable[Buffer],
    on_done: OnDurable,
    suffix: str = TMP_SUFFIX,
    on_flushed: Callable[[], bool] = lambda: True,
) -> None:
    """Write `data` to directory/name through directory/name+suffix; calls `on_done` once it would survive a power cut.

    on_flushed: called when the temporary file is flushed, or that failed; if it returns False nothing more happens.
    Raises OSError if writing fails. `on_done` gets later errors; the file under `name` is then the old one.
    """
    file = files.open(f"{directory}/{name}{suffix}", create=True)
    if file.size:
        file.truncate(0)
    for piece in data:
        file.append(piece)
    publish_file(files, directory, name, file, on_done, suffix, on_flushed)


def publish_file(
    files: Files,
    directory: str,
    name: str,
    file: File,
    on_done: OnDurable,
    suffix: str = TMP_SUFFIX,
    on_flushed: Callable[[], bool] = lambda: True,
) -> None:
    """Give the open file directory/name+suffix, which is complete, the name directory/name, and close it.

    on_done, on_flushed: as of `replace_file`.
    """
    path = f"{directory}/{name}"

    def flushed(error: OSError | None) -> None:
        file.close()
        if not on_flushed():
            return
        if error is None:
            try:
                files.rename(path + suffix, path)
            except OSError as failure:
                error = failure
        if error is None:
            files.sync_dir(directory, on_done)
        else:
            on_done(error)

    files.flush(file, flushed)


class AtomicFile:
    __slots__ = ("_busy", "_closed", "_directory", "_files", "_name", "_next", "_open_files", "_running", "_waiting")

    def __init__(self, files: Files, directory: str, name: str, open_files: OpenFileLimit | None = None) -> None:
        """open_files: shared by all files of one kind in a directory."""
        self._files = files
        self._open_files = open_files or OpenFileLimit()
        self._directory = directory
        self._name = name
        self._busy = False
        self._closed = False
        self._next: Callable[[], bytes] | None = None
        self._running: list[OnDurable] = []
        self._waiting: list[OnDurable] = []

    @property
    def durable(self) -> bool:
        """Whether everything that was passed to `write` is durable."""
        return not self._busy

    def write(self, content: bytes, on_durable: OnDurable) -> None:
        """Raises OSError if the temporary file cannot be written; a later failure goes to `on_durable`."""
        self.write_rendered(lambda: content, on_durable)

    def write_rendered(self, render: Callable[[], bytes], on_durable: OnDurable) -> None:
        """As `write`, but the content is rendered when it is written: many changes in a row are written once."""
        self._next = render
        self._waiting.append(on_durable)
        if not self._busy:
            self._begin()

    def when_durable(self, on_durable: OnDurable) -> None:
        """Call back when everything passed to `write` so far is durable. Only while it is not: see `durable`."""
        (self._running if self._next is None else self._waiting).append(on_durable)

    def close(self) -> None:
        """Abandon the current write: the directory is about to be removed, or it failed."""
        self._closed = True
        self._running.clear()
        self._waiting.clear()

    def _begin(self) -> None:
        """Start a write. Raises OSError if it can start at once and the temporary file cannot be written."""
        self._busy = True
        if self._open_files.acquire(self._granted):
            try:
                self._open()
            except OSError:
                self._busy = False
                self._open_files.release()
                raise

    def _granted(self) -> None:
        if self._closed:
            self._open_files.release()
            return
        try:
            self._open()
        except OSError as error:
            self._running, self._waiting, self._next = self._waiting, [], None
            self._open_files.release()
            self._ended(error)

    def _open(self) -> None:
        assert self._next is not None
        replace_file(self._files, self._directory, self._name, [self._next()], self._ended, on_flushed=self._flushed)
        self._running, self._waiting, self._next = self._waiting, [], None

    def _flushed(self) -> bool:
        self._open_files.release()
        return not self._closed

    def _ended(self, error: OSError | None) -> None:
        if self._closed:
            return
        answered, self._running = self._running, []
        failed: list[OnDurable] = []
        self._busy = False
        failure = error
        if error is None and self._next is not None:
            try:
                self._begin()
            except OSError as begin_error:
                failure = begin_error
        if failure is not None:
            failed, self._waiting, self._next = self._waiting, [], None
        for callback in answered:
            callback(error)
        for callback in failed:
            callback(failure)
