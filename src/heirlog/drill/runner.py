"""Runs a drill so that a signal can end it at any moment and nothing is left behind.

    main thread    waits for the drill or for a signal
    drill thread   imports, starts a cluster, runs, checks, cleans up

    the drill ends     its folder is removed; what it returned or raised arrives in the main thread
    a signal comes     the drill can write no verdict any more; every process below this one is killed, the folder
                       removed, and this process ends: 130

A drill spends most of its time in calls of librdkafka that no signal interrupts. An exception in the middle of its
clean-up (or in an import) could leave a process behind or be lost. So the drill gets no signals: it is ended from
outside, at any point. All of its files, and those of its children, are in one temporary folder. On Linux, orphans of
its children become children of this process, so that a JVM whose driver was killed is found too. Further signals have
no effect.

After SIGKILL this process cannot clean up: its nodes notice that and end, and a shell removes the folder.
"""

from __future__ import annotations

import ctypes
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Generic, NoReturn, TypeVar

from heirlog.ending_signals import SIGNALS
from heirlog.local.processes import cancel_run, run_when_we_end

T = TypeVar("T")

INTERRUPTED = 128 + signal.SIGINT.value
"""Exit code of a drill that a signal ended, as a shell reports it."""
ORPHANS_END_S = 20
"""After this time, nodes without their parent have ended (`heirlog.local.node_command`)."""
KILL_TIMEOUT_S = 10.0
"""For killed processes to be gone: those that the kernel holds in a call take longer."""
POLL_S = 0.01
SIGNAL_POLL_S = 0.2
"""How often the main thread looks for signals: one that the system gave to another thread does not wake it."""
_SET_CHILD_SUBREAPER = 36
"""Of Linux's prctl: orphans below this process become its children instead of those of process 1."""


class DrillRunner(Generic[T]):
    """For one drill. folder: temporary; Python's `tempfile` and the children's TMPDIR point there meanwhile."""

    def __init__(
        self, on_signal: Callable[[], None] = lambda: None, on_stopped: Callable[[], None] = lambda: None
    ) -> None:
        """on_signal: called when a signal has come, before anything of the drill is ended: whatever the drill finds
        broken afterwards was broken by that. on_stopped: called when it is ended, before this process ends.
        """
        self._on_signal, self._on_stopped = on_signal, on_stopped
        self.folder = Path(tempfile.gettempdir(), f"heirlog-drill-{os.getpid()}-{secrets.token_hex(4)}")
        self._exit_code = INTERRUPTED
        self._ended = threading.Event()
        self._result: list[T] = []
        self._failure: BaseException | None = None

    def run(self, drill: Callable[[], T]) -> T:
        """What the drill returns; raises what it raises. Call it in the main thread."""
        with _interrupted_once(), _temporary_files_in(self.folder):
            try:
                remover = run_when_we_end(f'sleep {ORPHANS_END_S}; rm -rf -- "$0"', str(self.folder))
                self.folder.mkdir(mode=0o700)
                _adopt_orphans()
                threading.Thread(target=self._run, args=(drill,), name="drill", daemon=True).start()
                while not self._ended.wait(SIGNAL_POLL_S):
                    pass
                shutil.rmtree(self.folder, ignore_errors=True)
                cancel_run(remover)
            except KeyboardInterrupt:
                # (inside the block: the drill thread continues, and must not create files elsewhere)
                self._end()
        if self._failure is not None:
            raise self._failure
        return self._result[0]

    def hold(self, exit_code: int) -> NoReturn:
        """Keep everything running until a signal, which ends the process with this code. Used in the drill thread."""
        self._exit_code = exit_code
        while True:
            threading.Event().wait()

    def _run(self, drill: Callable[[], T]) -> None:
        try:
            self._result.append(drill())
        except BaseException as failure:
            self._failure = failure
        self._ended.set()

    def _end(self) -> NoReturn:
        self._on_signal()
        deadline = time.monotonic() + KILL_TIMEOUT_S
        # again where the drill thread has started a process or made a folder meanwhile: without the folder it cannot
        while (self.folder.exists() or below(os.getpid(), parents())) and time.monotonic() < deadline:
            end_below(os.getpid())
            shutil.rmtree(self.folder, ignore_errors=True)
        self._on_stopped()
        # the drill thread may hold a lock for which a normal exit would wait
        os._exit(self._exit_code)


def _ignore_signal(number: int, frame: FrameType | None) -> None:
    """A further signal."""


@contextmanager
def _interrupted_once() -> Iterator[None]:
    """The first signal raises KeyboardInterrupt; further ones do not interrupt its handler."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        # not SIG_IGN: for a signal that has just arrived Python would then print a traceback
        for each in SIGNALS:
            signal.signal(each, _ignore_signal)
        raise KeyboardInterrupt

    # an ignored signal stays ignored: a shell starts background commands that way
    handled = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = [signal.signal(number, interrupt) for number in handled]
    try:
        yield
    finally:
        for number, handler in zip(handled, before, strict=True):
            signal.signal(number, handler)


@contextmanager
def _temporary_files_in(folder: Path) -> Iterator[None]:
    before = tempfile.tempdir, os.environ.get("TMPDIR")
    tempfile.tempdir = os.environ["TMPDIR"] = str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = before[0]
        if before[1] is None:
            del os.environ["TMPDIR"]
        else:
            os.environ["TMPDIR"] = before[1]


def _adopt_orphans() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1)


def end_below(ancestor: int) -> None:
    """Kill every process that comes from this one, until none is left; not this one itself."""
    deadline = time.monotonic() + KILL_TIMEOUT_S
    while (alive := below(ancestor, parents())) and time.monotonic() < deadline:
        for pid in alive:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(POLL_S)


def below(ancestor: int, parents: Mapping[int, int]) -> set[int]:
    """All processes that come from this one. parents: process -> its parent.

    Numbers start over at some point, so a child's may be smaller than its parent's.
    """
    found: set[int] = set()
    latest = {ancestor}
    while latest := {pid for pid, parent in parents.items() if parent in latest} - found:
        found |= latest
    return found


def parents() -> dict[int, int]:
    """Of every living process (zombies do not count), except the one that lists them."""
    found = {}
    # a session of its own: a further Ctrl-C would end it before it has listed everything
    command = ["ps", "-A", "-o", "pid=,ppid=,stat="]
    listing = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    out, _ = listing.communicate()
    for line in out.splitlines():
        pid, parent, state = line.split()
        if not state.startswith("Z") and int(pid) != listing.pid:
            found[int(pid)] = int(parent)
    return found


def cpu_seconds(pids: Iterable[int]) -> dict[int, float]:
    """What each of these processes has used, as far as it is alive."""
    listing = subprocess.run(["ps", "-A", "-o", "pid=,time="], capture_output=True, text=True)
    wanted, found = set(pids), {}
    for line in listing.stdout.splitlines():
        pid, used = line.split()
        if int(pid) in wanted:
            days, _, clock = used.rpartition("-")
            hours, minutes, seconds = ["0", "0", *clock.split(":")][-3:]
            found[int(pid)] = ((int(days or 0) * 24 + int(hours)) * 60 + int(minutes)) * 60 + float(seconds)
    return found
