"""A node's disks on the operating system.

Reads and appends are plain calls into the page cache (`os_file.py`). Only a flush waits for the disk, so only flushes
leave the event loop (`flusher.py`). A file that is in use need not have a descriptor: `descriptors.py` closes those
that were not used for a while.
"""

from __future__ import annotations

import os

from heirlog.env import File
from heirlog.server.boot_id import read_boot_id
from heirlog.server.descriptors import Descriptors, Parkable
from heirlog.server.disk_errors import advised
from heirlog.server.file_identity import file_identity
from heirlog.server.flusher import Deliver, Flusher, OnSynced
from heirlog.server.os_file import OsFile, RecentAppends


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
