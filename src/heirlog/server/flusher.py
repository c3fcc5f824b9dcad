"""Flushes, which wait for the disk: they leave the event loop, and nothing else does.

One thread takes all flushes requested since it last looked, flushes each file once, and passes the callbacks back to
the loop (group commit). No other code uses that thread. Where it finds many at once, as at the stop of a node with
thousands of logs, others help it: a disk, and the journal of a file system, serve several flushes together.

    flush(file) --> asked --thread takes all--> in the kernel --loop--> on_flushed(None | OSError)
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from typing import TypeAlias

from heirlog.server.disk_errors import with_advice
from heirlog.server.os_file import OsFile

Deliver: TypeAlias = Callable[[Callable[[], None]], object]
"""Runs a function on the loop soon, called from any thread (`loop.call_soon_threadsafe`)."""

OnSynced: TypeAlias = Callable[[OSError | None], None]

FLUSHES_OF_A_THREAD = 8
"""For each so many that are to be flushed a thread is started, until there are `THREADS_MAX`."""
THREADS_MAX = 8


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
                self._target.flush_ended()
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
