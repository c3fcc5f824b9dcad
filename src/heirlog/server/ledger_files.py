"""`OsFiles` that notifies a `Ledger` of what is flushed, what gets shorter, and what changes in directories.

Whatever fails in the ledger ends the ledger only: the files then work as `OsFiles`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from heirlog.env import Buffer, File
from heirlog.server.files import OsFiles
from heirlog.server.flusher import Deliver, OnSynced
from heirlog.server.ledger import Ledger, do, give_up, has_failed
from heirlog.server.ledger_tree import DirectoryChange, TreeNode
from heirlog.server.os_file import OsFile, RecentAppends

T = TypeVar("T")


class LedgerGuard:
    """The ledger as long as it works."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._ledger: Ledger | None = None
        if not has_failed(path):
            try:
                self._ledger = Ledger(path)
            except Exception as error:  # the node runs without
                self._give_up(error)

    def call(self, operation: Callable[[Ledger], T]) -> T | None:
        """What the ledger answers; None from its failure on."""
        if self._ledger is None:
            return None
        try:
            return operation(self._ledger)
        except Exception as error:  # the node runs without
            self._give_up(error)
            return None

    def change(
        self,
        enter: Callable[[Ledger], DirectoryChange],
        plain: Callable[[], None],
        keeping: Callable[[DirectoryChange], None] | None,
    ) -> None:
        """Enter a change, do it, say that it was done. Raises what `plain` raises.

        keeping: how it is done with a ledger, where that is another way than `plain`.
        """
        change = self.call(enter)
        if change is None:
            plain()
            return
        try:
            keeping(change) if keeping is not None else plain()
        except OSError as error:
            self.call(lambda ledger: ledger.failed(change))
            if keeping is None:
                raise
            plain()  # raises too, unless only the ledger's way is at fault
            self._give_up(error)
            return
        self.call(lambda ledger: ledger.done(change))

    def _give_up(self, error: Exception) -> None:
        self._ledger = None
        try:
            sentence = give_up(self._path, error)
        except OSError as other:
            sentence = f"the ledger {self._path} failed ({error}), and this cannot be written there ({other})"
            with suppress(OSError):
                # better none than one that does not know everything
                os.unlink(self._path)
        print(f"heirlog: {sentence}", file=sys.stderr, flush=True)


class LedgerFile(OsFile):
    __slots__ = ("_guard", "node")

    def __init__(self, guard: LedgerGuard, path: str, fd: int, recent_appends: RecentAppends | None = None) -> None:
        super().__init__(path, fd, recent_appends)
        self._guard = guard
        self.node: TreeNode | None = guard.call(lambda ledger: ledger.opened(os.path.abspath(path)))

    def pwrite(self, data: Buffer, position: int) -> None:
        super().pwrite(data, position)
        self._lost_from(position)

    def truncate(self, size: int) -> None:
        super().truncate(size)
        self._lost_from(size)

    def _lost_from(self, position: int) -> None:
        node = self.node
        if node is not None:
            self._guard.call(lambda ledger: ledger.lost_from(node, position))


class LedgerFiles(OsFiles):
    """The ledger at `ledger_path` must be on the file system of the node's directories: what is removed moves there."""

    def __init__(self, deliver: Deliver, ledger_path: str) -> None:
        super().__init__(deliver)
        self._guard = LedgerGuard(os.path.abspath(ledger_path))

    def open(self, path: str, create: bool = False) -> OsFile:
        if create and not os.path.lexists(path):
            self._guard.change(
                lambda ledger: ledger.enter("create", os.path.abspath(path)),
                lambda: os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)),
                None,
            )
        file = self._opened(self._guard, path, self._descriptors.open(path, os.O_RDWR))
        self._descriptors.add(file)
        return file

    def _opened(self, guard: LedgerGuard, path: str, fd: int) -> LedgerFile:
        return LedgerFile(guard, path, fd, self._recent_appends)

    def flush(self, file: File, on_flushed: OnSynced) -> None:
        assert isinstance(file, LedgerFile)
        node, size = file.node, file.size
        flush = None if node is None else self._guard.call(lambda ledger: ledger.flush_begins(node, size))

        def answered(error: OSError | None) -> None:
            if node is not None and flush is not None:
                self._guard.call(lambda ledger: ledger.flush_ended(node, flush, worked=error is None))
            on_flushed(error)

        super().flush(file, answered)

    def sync_dir(self, path: str, on_synced: OnSynced) -> None:
        mark = self._guard.call(lambda ledger: ledger.mark())

        def answered(error: OSError | None) -> None:
            if error is None and mark is not None:
                self._guard.call(lambda ledger: ledger.synced(os.path.abspath(path), mark))
            on_synced(error)

        super().sync_dir(path, answered)

    def _rename(self, source: str, target: str) -> None:
        occupied = os.path.isdir(target) and os.listdir(target)
        if source == target or occupied:
            super()._rename(source, target)  # nothing to do, or nothing that can be done
            return
        self._guard.change(
            lambda ledger: ledger.enter("rename", os.path.abspath(target), os.path.abspath(source)),
            lambda: super(LedgerFiles, self)._rename(source, target),
            do,
        )

    def _unlink(self, path: str) -> None:
        self._guard.change(
            lambda ledger: ledger.enter("remove", os.path.abspath(path)),
            lambda: super(LedgerFiles, self)._unlink(path),
            do,
        )

    def rmdir(self, path: str) -> None:
        """A file or a whole tree: it is moved aside."""
        self._guard.change(
            lambda ledger: ledger.enter("remove", os.path.abspath(path)),
            lambda: super(LedgerFiles, self).rmdir(path),
            do,
        )

    def mkdirs(self, path: str) -> None:
        if os.path.isdir(path):
            return
        parent = os.path.dirname(path)
        if parent and parent != path:
            self.mkdirs(parent)
        self._guard.change(lambda ledger: ledger.enter("mkdir", os.path.abspath(path)), lambda: os.mkdir(path), None)
