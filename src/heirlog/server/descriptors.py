"""Which files of a node have a descriptor: not more than a share of what the process may have.

    open    has a descriptor
    parked  it was closed to save it. The next use opens the file again, by its name: it has to be the same file, of the
            same size, else the disk has failed (another directory may have taken the place of the log directory)

The file that was not used for the longest time is parked, about: each one has a second chance (`used`). So a replica
without traffic needs no descriptor, and a broker may have more replicas than descriptors.

When a file may be parked:

* No flush of it is in progress. (What sends from it opens it again for each piece.)
* No write-back of it can fail unseen. The kernel keeps a failed write-back with the file in memory, for the descriptors
  that are open and, since Linux 4.16, for the first one that is opened afterwards. With no descriptor open the kernel
  may forget the file, and the error with it; the next flush would succeed for bytes that are gone. So a file that was
  written to since its last flush (`at_risk`) is flushed before it is parked, and so is one that has content when it is
  opened: the process before this one may have written that. A flush that failed is remembered by the `OsFile`, which is
  never parked from then on.

Flushes take time, so for a while more files are open than `limit`. At `limit_while_flushing` a file is flushed at once
in the loop, and if all are being flushed, the loop waits for that (a stop flushes every log): writing to more logs than
there are descriptors is as slow as their disk.

The names of files change only through `OsFiles`, which says so here: a parked file is found under its new name, and one
that is removed or replaced while it is in use keeps a descriptor. The flusher's threads open parked files for their
flush, and names stay as they are meanwhile (`names`).
"""

from __future__ import annotations

import errno
import os
import resource
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Final, Protocol

LOOKED_AT: Final = 32
"""Files that are considered at once."""
UNLIMITED: Final = 2**31 - 1
KEPT: Final = 32
"""Descriptors for what cannot park a file first: the flusher's threads, and what a connection or a library opens."""


class Parkable(Protocol):
    path: str
    used: bool
    """Since it was last considered."""
    at_risk: bool
    """Its write-back could fail without an error for the next flush, if it was parked."""

    @property
    def is_being_flushed(self) -> bool: ...

    @property
    def is_parked(self) -> bool: ...

    def may_be_parked_by(self, descriptors: Descriptors | None) -> None: ...

    def park(self) -> None: ...

    def reopen(self) -> None:
        """Raises OSError."""

    def flush_now(self) -> OSError | None: ...


def all_descriptors() -> int:
    """How many the process may have."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return UNLIMITED if limit == resource.RLIM_INFINITY else limit


class Descriptors:
    def __init__(
        self,
        flush: Callable[[Parkable, Callable[[OSError | None], None]], None],
        wait_for_flushes: Callable[[], None],
        limit: int | None = None,
    ) -> None:
        """wait_for_flushes: those that were asked for hold no file afterwards.
        limit: files that have a descriptor; None: half of what the process may have, the rest is for connections.
        """
        if limit is None:
            limit = all_descriptors() // 2
        self._flush = flush
        self._wait_for_flushes = wait_for_flushes
        self.limit = limit
        self.limit_while_flushing = limit + limit // 2
        self._kept_from = all_descriptors() - KEPT
        self._open: OrderedDict[Parkable, None] = OrderedDict()
        """Those that may be parked, the one that was considered last at the end."""
        self._by_path: dict[str, Parkable] = {}
        """Open and parked ones."""
        self.names = threading.RLock()
        """Held while a name changes, and while another thread opens a file by its name."""

    def add(self, file: Parkable) -> None:
        """A second one of the same name is never parked: names are followed for one."""
        if file.path not in self._by_path:
            self._by_path[file.path] = file
            file.may_be_parked_by(self)
            self.opened(file)

    def opened(self, file: Parkable) -> None:
        if len(self._open) >= self.limit:
            self._park_some()
        self._open[file] = None

    def closed(self, file: Parkable) -> None:
        """For good, or its name was taken away: it keeps the descriptor that it has."""
        file.may_be_parked_by(None)
        self._open.pop(file, None)
        del self._by_path[file.path]

    def open(self, path: str, flags: int) -> int:
        """As `os.open`. Where the process has hardly a descriptor left, a file is parked for it."""
        try:
            descriptor = os.open(path, flags, 0o644)
        except OSError as error:
            if error.errno != errno.EMFILE or not self._park_at_once():
                raise
            descriptor = os.open(path, flags, 0o644)
        if descriptor >= self._kept_from:
            self._park_at_once()
        return descriptor

    # parking

    def _park_some(self) -> None:
        for _ in range(min(LOOKED_AT, len(self._open))):
            file = next(iter(self._open))
            if file.used:
                file.used = False
            elif not file.is_being_flushed:
                if not file.at_risk:
                    self._park(file)
                    if len(self._open) < self.limit:
                        return
                    continue
                self._flush_and_park(file)
            self._open.move_to_end(file)
        if len(self._open) >= self.limit_while_flushing:
            self._park_at_once()

    def _park(self, file: Parkable) -> None:
        file.park()
        del self._open[file]

    def _flush_and_park(self, file: Parkable) -> None:
        def flushed(_: OSError | None) -> None:
            idle = file in self._open and not (file.used or file.at_risk or file.is_being_flushed)
            if idle and len(self._open) > self.limit:
                self._park(file)

        self._flush(file, flushed)

    def _park_at_once(self) -> bool:
        """Whether one was parked: if none is free, when the flushes have ended that hold them."""
        if self._park_one():
            return True
        self._wait_for_flushes()
        return self._park_one()

    def _park_one(self) -> bool:
        for file in list(islice(self._open, LOOKED_AT)):
            if not file.is_being_flushed and not (file.at_risk and file.flush_now()):
                self._park(file)
                return True
            self._open.move_to_end(file)
        return False

    # names

    @contextmanager
    def removing(self, path: str) -> Iterator[None]:
        """A file whose name is removed stays usable."""
        self._keep_open(path)
        with self.names:
            yield

    @contextmanager
    def renaming(self, source: str, target: str) -> Iterator[None]:
        """Of a file, which may replace another one, or of a directory."""
        if source != target:
            self._keep_open(target)
        with self.names:
            yield
            self._follow(source, target)

    def _keep_open(self, path: str) -> None:
        """Not while the names are held: it may wait for flushes, and those open files by their names."""
        file = self._by_path.get(path)
        if file is not None:
            if file.is_parked:
                file.reopen()
            self.closed(file)

    def _follow(self, source: str, target: str) -> None:
        file = self._by_path.pop(source, None)
        if file is not None:
            file.path = target
            self._by_path[target] = file
        elif os.path.isdir(target):
            for name in os.listdir(target):
                self._follow(f"{source}/{name}", f"{target}/{name}")
