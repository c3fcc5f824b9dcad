"""`OsFiles` that tells a `Ledger` what is flushed, what gets shorter, and what changes in directories."""

from __future__ import annotations

import os

from heirlog.env import Buffer, File
from heirlog.server.files import Deliver, OnSynced, OsFile, OsFiles
from heirlog.server.ledger import Ledger, Tracked


class LedgerFile(OsFile):
    __slots__ = ("_ledger", "tracked")

    def __init__(self, ledger: Ledger, tracked: Tracked, path: str, fd: int) -> None:
        super().__init__(path, fd)
        self._ledger = ledger
        self.tracked = tracked

    def pwrite(self, data: Buffer, position: int) -> None:
        super().pwrite(data, position)
        self._ledger.lost_from(self.tracked, position)

    def truncate(self, size: int) -> None:
        super().truncate(size)
        self._ledger.lost_from(self.tracked, size)


class LedgerFiles(OsFiles):
    """The ledger at `ledger_path` must be on the file system of the node's directories: what is removed moves there."""

    def __init__(self, deliver: Deliver, ledger_path: str) -> None:
        super().__init__(deliver)
        self._ledger = Ledger(os.path.abspath(ledger_path))

    def open(self, path: str, create: bool = False) -> OsFile:
        if create and not os.path.lexists(path):
            self._ledger.create(path, lambda: os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)))
        fd = os.open(path, os.O_RDWR)
        return LedgerFile(self._ledger, self._ledger.opened(path), path, fd)

    def flush(self, file: File, on_flushed: OnSynced) -> None:
        assert isinstance(file, LedgerFile)
        tracked = file.tracked
        flush = self._ledger.flush_begins(tracked, file.size)

        def answered(error: OSError | None) -> None:
            self._ledger.flush_ended(tracked, flush, worked=error is None)
            on_flushed(error)

        super().flush(file, answered)

    def sync_dir(self, path: str, on_synced: OnSynced) -> None:
        mark = self._ledger.mark()

        def answered(error: OSError | None) -> None:
            if error is None:
                self._ledger.synced(path, mark)
            on_synced(error)

        super().sync_dir(path, answered)

    def rename(self, source: str, target: str) -> None:
        self._ledger.rename(source, target)

    def unlink(self, path: str) -> None:
        self._ledger.remove(path)

    def rmdir(self, path: str) -> None:
        self._ledger.remove(path)

    def mkdirs(self, path: str) -> None:
        if os.path.isdir(path):
            return
        parent = os.path.dirname(path)
        if parent != path:
            self.mkdirs(parent)
        self._ledger.mkdir(path, lambda: os.mkdir(path))
