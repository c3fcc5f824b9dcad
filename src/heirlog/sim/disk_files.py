"""How an incarnation reads and writes its simulated disk: `heirlog.env.Files` on `heirlog.sim.disk`."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from zlib import crc32

from heirlog.env import Buffer, File
from heirlog.sim.disk import SimDisk
from heirlog.sim.inodes import DirectoryInode, FileInode, Inode, OnFlushed, parts_of
from heirlog.sim.world import Process

_BUFFERS = (bytes, bytearray, memoryview)
_VOLUME_BYTES = 1 << 40
"""What every volume says of itself."""


class FlushedAgain(Exception):
    """The kernel may have dropped what it could not write, so a second flush would report success for lost bytes."""


class SimFile:
    """An open file: a name that was resolved once. Renames and unlinks do not touch it."""

    __slots__ = ("_closed", "_content", "_disk", "path")

    def __init__(self, disk: SimDisk, path: str, content: FileInode) -> None:
        self._disk = disk
        self.path = path
        self._content = content
        self._closed = False

    @property
    def size(self) -> int:
        return len(self._content.data)

    @property
    def content(self) -> FileInode:
        if self._closed:
            raise self._is_closed()
        return self._content

    def _is_closed(self) -> OSError:
        return OSError(errno.EBADF, "the file is closed", self.path)

    def append(self, data: Buffer | Sequence[Buffer]) -> int:
        if self._closed:
            raise self._is_closed()
        content, disk = self._content, self._disk
        if disk.is_broken:
            disk.check(self.path, "write")
        start, host = len(content.data), disk.host
        for part in [data] if isinstance(data, _BUFFERS) else data:
            content.append(part)
            host.fingerprint = crc32(part, host.fingerprint)
        content.modified_ms = host.wall_ms()
        return start

    def pread(self, size: int, position: int) -> bytes:
        if self._closed:
            raise self._is_closed()
        if self._disk.is_broken:
            self._disk.check(self.path, "read")
        # `bytes` of a slice would copy twice
        return memoryview(self._content.data)[position : position + size].tobytes()

    def pwrite(self, data: Buffer, position: int) -> None:
        content = self.content
        self._disk.check(self.path, "write")
        if position < 0 or position + len(data) > len(content.data):
            raise OSError(errno.EINVAL, "pwrite never extends a file", self.path)
        content.overwrite(data, position)
        content.modified_ms = self._disk.host.wall_ms()
        self._disk.host.fingerprint = crc32(data, self._disk.host.fingerprint ^ position)

    def truncate(self, size: int) -> None:
        content = self.content
        if size < 0 or size > len(content.data):
            raise OSError(errno.EINVAL, "truncate never extends a file", self.path)
        if size == len(content.data):
            return
        content.cut(size)
        content.modified_ms = self._disk.host.wall_ms()
        self._disk.host.fingerprint = crc32(size.to_bytes(8, "big"), self._disk.host.fingerprint)

    def close(self) -> None:
        self._closed = True


class SimFiles:
    """The `Files` of one incarnation: its flushes come back to that incarnation only."""

    def __init__(self, disk: SimDisk, process: Process) -> None:
        self._disk = disk
        self._process = process

    @property
    def boot_id(self) -> str:
        """A killed process keeps it, as it keeps the page cache."""
        return f"{self._disk.host.name} boot {self._disk.host.power_cuts}"

    def identity(self, path: str) -> str:
        """No fault puts another file in the place of one within a start of the machine."""
        return path

    def open(self, path: str, create: bool = False) -> SimFile:
        directory, name = self._parent(path)
        inode = directory.entries.get(name)
        if inode is None:
            if not create:
                raise FileNotFoundError(errno.ENOENT, "no such file", path)
            self._disk.check(path, "write")
            inode = FileInode()
            inode.modified_ms = self._disk.host.wall_ms()
            directory.change((name, inode))
        if isinstance(inode, DirectoryInode):
            raise IsADirectoryError(errno.EISDIR, "is a directory", path)
        return SimFile(self._disk, path, inode)

    def flush(self, file: File, on_flushed: OnFlushed) -> None:
        assert isinstance(file, SimFile)
        self._flush(file.content, file.path, f"flushed {file.path}", on_flushed)

    def sync_dir(self, path: str, on_synced: OnFlushed) -> None:
        self._flush(self._directory(path), path, f"synced {path}", on_synced)

    def _flush(self, inode: FileInode | DirectoryInode, path: str, label: str, on_flushed: OnFlushed) -> None:
        if inode.failed_for is self._process:
            raise FlushedAgain(f"{path} was flushed again after a flush of it had failed")
        inode.waiting.append(on_flushed)
        if not inode.flushing:
            self._begin_flush(inode, path, label)

    def _begin_flush(self, inode: FileInode | DirectoryInode, path: str, label: str) -> None:
        inode.flushing = True
        count = inode.seal()
        served, inode.waiting = inode.waiting, []

        def done() -> None:
            failure: OSError | None = None
            try:
                if self._disk.is_broken:
                    self._disk.check(path, "flush")
                if self._disk.lies:
                    inode.claim(count)
                else:
                    inode.make_durable(count)
            except OSError as error:
                failure = error
                inode.failed_for = self._process
                # asked for meanwhile: the same answer
                served.extend(inode.waiting)
                inode.waiting = []
            inode.flushing = False
            if inode.waiting:
                self._begin_flush(inode, path, label)
            for on_flushed in served:
                if self._process.exit is None:
                    on_flushed(failure)

        low_us, high_us = self._disk.flush_us
        self._disk.world.schedule(self._disk.random.randrange(low_us, high_us), self._process, label, done)

    def rename(self, source: str, target: str) -> None:
        directory, name = self._parent(source)
        target_directory, target_name = self._parent(target)
        if directory is not target_directory:
            raise OSError(errno.EXDEV, "the simulated disk renames within one directory only", source, None, target)
        inode = directory.entries.get(name)
        if inode is None:
            raise FileNotFoundError(errno.ENOENT, "no such file", source)
        replaced = directory.entries.get(target_name)
        if isinstance(replaced, DirectoryInode) and replaced.entries:
            raise OSError(errno.ENOTEMPTY, "the target is a directory with entries", target)
        if name != target_name:
            directory.change((name, None), (target_name, inode))

    def unlink(self, path: str) -> None:
        directory, name = self._parent(path)
        inode = directory.entries.get(name)
        if inode is None:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        if isinstance(inode, DirectoryInode):
            raise IsADirectoryError(errno.EISDIR, "is a directory", path)
        directory.change((name, None))

    def mkdirs(self, path: str) -> None:
        directory = self._disk.root
        for name in parts_of(path):
            found = directory.entries.get(name)
            if found is None:
                found = DirectoryInode()
                directory.change((name, found))
            if not isinstance(found, DirectoryInode):
                raise NotADirectoryError(errno.ENOTDIR, f"{name} is a file", path)
            directory = found

    def rmdir(self, path: str) -> None:
        self._directory(path)
        for listener in self._disk.world.rmdir_listeners:
            listener(self._disk.host.name, path)
        directory, name = self._parent(path)
        directory.change((name, None))

    def list(self, path: str) -> list[str]:
        return sorted(self._directory(path).entries)

    def exists(self, path: str) -> bool:
        return self._find(path) is not None

    def is_dir(self, path: str) -> bool:
        return isinstance(self._find(path), DirectoryInode)

    def modified_ms(self, path: str) -> int:
        inode = self._find(path)
        if not isinstance(inode, FileInode):
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        return inode.modified_ms

    def space(self, path: str) -> tuple[int, int]:
        self._directory(path)
        return _VOLUME_BYTES, _VOLUME_BYTES

    def _find(self, path: str) -> Inode | None:
        inode: Inode | None = self._disk.root
        for name in parts_of(path):
            if not isinstance(inode, DirectoryInode):
                return None
            inode = inode.entries.get(name)
        return inode

    def _directory(self, path: str) -> DirectoryInode:
        found = self._find(path)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, "no such directory", path)
        if not isinstance(found, DirectoryInode):
            raise NotADirectoryError(errno.ENOTDIR, "not a directory", path)
        return found

    def _parent(self, path: str) -> tuple[DirectoryInode, str]:
        parent, _, name = path.rstrip("/").rpartition("/")
        return self._directory(parent), name
