"""A node's disks as `heirlog.env.Files`, where everything that is written stays in memory.

    the real tree, only read  +  what was written, cut, renamed and removed since  =  what the caller sees

So recovery itself can run on the folders of a stopped node and change nothing: `doctor` lets it, and reads from
`changes` what it would have done. Flushes succeed; their callbacks run in `settle`.

Nothing real is kept open, so that a folder of many thousand segments needs no descriptors. What was written goes to a
temporary file above a megabyte (rebuilt indexes of large segments), elsewhere than the folders.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from tempfile import SpooledTemporaryFile

from heirlog.env import Buffer, File
from heirlog.server.boot_id import read_boot_id
from heirlog.server.file_identity import file_identity

IN_MEMORY_BYTES = 1 << 20


class Content:
    """A file's bytes: the first `kept` ones of a real file, then what was written."""

    def __init__(self, real: str | None, kept: int) -> None:
        self.real = real
        self.kept = kept
        self.modified_ms = 0
        self._written = 0
        self._tail: SpooledTemporaryFile[bytes] | None = None

    @property
    def size(self) -> int:
        return self.kept + self._written

    def append(self, data: Buffer) -> None:
        if self._tail is None:
            self._tail = SpooledTemporaryFile(IN_MEMORY_BYTES)  # noqa: SIM115 (closed with this content)
        self._tail.seek(self._written)
        self._tail.write(data)
        self._written += len(data)

    def truncate(self, size: int) -> None:
        if size < self.kept:
            self.kept = size
        self._written = max(size - self.kept, 0)

    def read(self, size: int, position: int) -> bytes:
        found = b""
        if position < self.kept:
            assert self.real is not None, "only a real file has bytes that were not written here"
            found = read_real(self.real, min(size, self.kept - position), position)
        missing = min(position + size, self.size) - position - len(found)
        if missing > 0 and self._tail is not None:
            self._tail.seek(position + len(found) - self.kept)
            found += self._tail.read(missing)
        return found

    def close(self) -> None:
        if self._tail is not None:
            self._tail.close()


class OverlayFile:
    """See `heirlog.env.File`."""

    def __init__(self, path: str, content: Content, on_read: Callable[[int], None]) -> None:
        self.path = path
        self._content = content
        self._on_read = on_read

    @property
    def size(self) -> int:
        return self._content.size

    def append(self, data: Buffer | Sequence[Buffer]) -> int:
        position = self.size
        for part in [data] if isinstance(data, bytes | bytearray | memoryview) else data:
            self._content.append(part)
        return position

    def pread(self, size: int, position: int) -> bytes:
        found = self._content.read(size, position)
        self._on_read(len(found))
        return found

    def pwrite(self, data: Buffer, position: int) -> None:
        rest = self._content.read(self.size - position - len(data), position + len(data))
        self._content.truncate(position)
        self._content.append(data)
        self._content.append(rest)

    def truncate(self, size: int) -> None:
        self._content.truncate(size)

    def close(self) -> None:
        """Nothing real is open."""


@dataclass(frozen=True, slots=True)
class Change:
    """What became of one file; a size is None where there is none."""

    path: str
    before: int | None
    after: int | None


class OverlayFiles:
    """See `heirlog.env.Files`. `on_read` is called with the number of bytes just read, to show the progress."""

    def __init__(self, on_read: Callable[[int], None] = lambda count: None) -> None:
        self._on_read = on_read
        self._files: dict[str, Content | None] = {}
        """What is not as in the real tree, also what was only opened; None: removed."""
        self._made: set[str] = set()
        self._due: list[tuple[Callable[[OSError | None], None], OSError | None]] = []

    def settle(self) -> None:
        """Run the callbacks of flushes, and of those that they ask for."""
        while self._due:
            due, self._due = self._due, []
            for callback, error in due:
                callback(error)

    def changes(self, under: str) -> list[Change]:
        """Files below a folder that are not any more as they are on disk, by path."""
        found = []
        for path in sorted(self._files):
            if not path.startswith(f"{under}/"):
                continue
            content = self._files[path]
            before = os.path.getsize(path) if os.path.isfile(path) else None
            if content is None:
                if before is not None:
                    found.append(Change(path, before, None))
            elif before is None or content.size != before or not self._is_as_on_disk(path, content):
                found.append(Change(path, before, content.size))
        return found

    @staticmethod
    def _is_as_on_disk(path: str, content: Content) -> bool:
        """Of a file of the same size; what is written as a whole is small."""
        if content.real == path and content.kept == content.size:
            return True
        return content.read(content.size, 0) == read_real(path, content.size, 0)

    def forget(self, under: str) -> None:
        """Let go of what was written below a folder: it reads as on disk again."""
        for path in [path for path in self._files if path.startswith(f"{under}/")]:
            content = self._files.pop(path)
            if content is not None:
                content.close()

    # heirlog.env.Files

    @property
    def boot_id(self) -> str:
        return read_boot_id()

    def identity(self, path: str) -> str:
        return file_identity(path)

    def open(self, path: str, create: bool = False) -> File:
        content = self._files.get(path) if path in self._files else self._real(path)
        if content is None:
            if not create:
                raise FileNotFoundError(2, os.strerror(2), path)
            content = Content(None, 0)
        self._files[path] = content
        return OverlayFile(path, content, self._on_read)

    def _real(self, path: str) -> Content | None:
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            return None
        try:
            found = os.fstat(descriptor)
            if os.path.isdir(path):
                raise IsADirectoryError(21, os.strerror(21), path)
            content = Content(path, found.st_size)
            content.modified_ms = found.st_mtime_ns // 1_000_000
            return content
        finally:
            os.close(descriptor)

    def flush(self, file: File, on_flushed: Callable[[OSError | None], None]) -> None:
        self._due.append((on_flushed, None))

    def sync_dir(self, path: str, on_synced: Callable[[OSError | None], None]) -> None:
        self._due.append((on_synced, None))

    def rename(self, source: str, target: str) -> None:
        assert not self.is_dir(source), "recovery renames no folders"
        self.open(source)
        self._files[target], self._files[source] = self._files[source], None

    def unlink(self, path: str) -> None:
        if not self.exists(path):
            raise FileNotFoundError(2, os.strerror(2), path)
        self._files[path] = None

    def mkdirs(self, path: str) -> None:
        self._made.add(path)

    def rmdir(self, path: str) -> None:
        for name in self.list(path):
            inner = f"{path}/{name}"
            if self.is_dir(inner):
                self.rmdir(inner)
            else:
                self.unlink(inner)

    def list(self, path: str) -> list[str]:
        names = set(os.listdir(path)) if os.path.isdir(path) or path not in self._made else set()
        for changed, content in self._files.items():
            folder, _, name = changed.rpartition("/")
            if folder == path:
                (names.discard if content is None else names.add)(name)
        return sorted(names)

    def exists(self, path: str) -> bool:
        if path in self._files:
            return self._files[path] is not None
        return path in self._made or os.path.lexists(path)

    def is_dir(self, path: str) -> bool:
        return path in self._made or os.path.isdir(path)

    def modified_ms(self, path: str) -> int:
        content = self._files.get(path)
        return content.modified_ms if content is not None else os.stat(path).st_mtime_ns // 1_000_000

    def space(self, path: str) -> tuple[int, int]:
        volume = os.statvfs(path)
        return volume.f_blocks * volume.f_frsize, volume.f_bavail * volume.f_frsize


def read_real(path: str, size: int, position: int) -> bytes:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.pread(descriptor, size, position)
    finally:
        os.close(descriptor)
