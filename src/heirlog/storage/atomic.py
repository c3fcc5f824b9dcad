"""Small files that are replaced as a whole: after a crash either the old content is there or the new one.

    idle --write--> (its turn) --> tmp written --flush--> renamed --sync directory--> durable --> idle
                         ^                                                |
                         +---------------- written meanwhile -------------+

A write while another is under way waits and replaces what waits: only the newest content matters, and its callbacks are
answered together. Flushing before the rename keeps a crash from leaving the new name with an empty file.

Source of the order: Kafka's CheckpointFile (tmp, fsync, rename, fsync of the directory).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from heirlog.env import File, Files
from heirlog.storage.turns import Turns

OnDurable: TypeAlias = Callable[[OSError | None], None]

TMP_SUFFIX = ".tmp"


def read_file(files: Files, path: str) -> bytes | None:
    """The whole content, None if the file is not there. Other failures raise OSError."""
    if not files.exists(path):
        return None
    file = files.open(path)
    try:
        return file.pread(file.size, 0)
    finally:
        file.close()


class AtomicFile:
    __slots__ = ("_busy", "_closed", "_directory", "_files", "_next", "_path", "_running", "_turns", "_waiting")

    def __init__(self, files: Files, directory: str, name: str, turns: Turns | None = None) -> None:
        """turns: shared by the many files of a kind that a directory has."""
        self._files = files
        self._turns = turns or Turns()
        self._directory = directory
        self._path = f"{directory}/{name}"
        self._busy = False
        self._closed = False
        self._next: Callable[[], bytes] | None = None
        self._running: list[OnDurable] = []
        self._waiting: list[OnDurable] = []

    @property
    def durable(self) -> bool:
        """Nothing that was handed to `write` is still on its way."""
        return not self._busy

    def write(self, content: bytes, on_durable: OnDurable) -> None:
        """Raises OSError if the temporary file cannot be written; a later failure goes to `on_durable`."""
        self.write_rendered(lambda: content, on_durable)

    def write_rendered(self, render: Callable[[], bytes], on_durable: OnDurable) -> None:
        """As `write`; the content is made when its turn comes, so that many changes in a row are written once."""
        self._next = render
        self._waiting.append(on_durable)
        if not self._busy:
            self._begin()

    def when_durable(self, on_durable: OnDurable) -> None:
        """Be told when everything handed to `write` so far is durable. Only while it is not: see `durable`."""
        (self._running if self._next is None else self._waiting).append(on_durable)

    def close(self) -> None:
        """Forget what is under way: the directory is about to go, or it failed."""
        self._closed = True
        self._running.clear()
        self._waiting.clear()

    def _begin(self) -> None:
        """Raises OSError if it is its turn at once and the temporary file cannot be written."""
        self._busy = True
        if self._turns.take(self._granted):
            try:
                self._open()
            except OSError:
                self._busy = False
                self._turns.give_back()
                raise

    def _granted(self) -> None:
        if self._closed:
            self._turns.give_back()
            return
        try:
            self._open()
        except OSError as error:
            self._running, self._waiting, self._next = self._waiting, [], None
            self._turns.give_back()
            self._ended(error)

    def _open(self) -> None:
        assert self._next is not None
        content = self._next()
        tmp = self._files.open(self._path + TMP_SUFFIX, create=True)
        tmp.truncate(0)
        tmp.append(content)
        self._running, self._waiting, self._next = self._waiting, [], None
        self._files.flush(tmp, lambda error: self._flushed(tmp, error))

    def _flushed(self, tmp: File, error: OSError | None) -> None:
        tmp.close()
        self._turns.give_back()
        if self._closed:
            return
        if error is None:
            try:
                self._files.rename(self._path + TMP_SUFFIX, self._path)
            except OSError as failure:
                error = failure
        if error is None:
            self._files.sync_dir(self._directory, self._ended)
        else:
            self._ended(error)

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
