"""A minimal disk in memory: files know how much of them is flushed, and a crash cuts the rest.

Callbacks wait in `pending` until `run` is called. Renames, creates and unlinks are durable at once; the simulated disk
of `heirlog.sim` is the one that takes those back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from heirlog.env import Buffer


class Inode:
    def __init__(self) -> None:
        self.data = bytearray()
        self.flushed = 0
        self.modified_ms = 0


class MemoryFile:
    def __init__(self, disk: MemoryFiles, path: str, inode: Inode) -> None:
        self.disk, self.path, self.inode = disk, path, inode

    @property
    def size(self) -> int:
        return len(self.inode.data)

    def append(self, data: Buffer | Sequence[Buffer]) -> int:
        self.disk.fail_if_due(self.path)
        position = len(self.inode.data)
        self.inode.modified_ms = self.disk.wall_ms
        for part in [data] if isinstance(data, (bytes, bytearray, memoryview)) else data:
            self.inode.data += part
        return position

    def pread(self, size: int, position: int) -> bytes:
        return bytes(self.inode.data[position : position + size])

    def pwrite(self, data: Buffer, position: int) -> None:
        self.inode.data[position : position + len(data)] = data

    def truncate(self, size: int) -> None:
        del self.inode.data[size:]
        self.inode.flushed = min(self.inode.flushed, size)

    def close(self) -> None:
        pass


class MemoryFiles:
    def __init__(self) -> None:
        self.inodes: dict[str, Inode] = {}
        self.directories = {""}
        self.pending: list[Callable[[], None]] = []
        self.wall_ms = 0
        self.boot_id = "boot-1"
        self.identities: dict[str, str] = {}
        """Other than the path."""
        self.failing_appends: set[str] = set()
        self.flush_error: OSError | None = None
        self.operations: list[str] = []

    def identity(self, path: str) -> str:
        return self.identities.get(path, path)

    def fail_if_due(self, path: str) -> None:
        if any(path.endswith(suffix) for suffix in self.failing_appends):
            raise OSError(28, "No space left on device")

    def run(self) -> None:
        while self.pending:
            self.pending.pop(0)()

    def crash(self, kept: Callable[[int, int], int] = lambda flushed, written: flushed) -> None:
        """Cut every file to `kept(flushed, written)` bytes; the callbacks of the dead process never run."""
        self.pending.clear()
        for path in sorted(self.inodes):
            inode = self.inodes[path]
            del inode.data[kept(inode.flushed, len(inode.data)) :]
            inode.flushed = len(inode.data)

    def open(self, path: str, create: bool = False) -> MemoryFile:
        if path not in self.inodes:
            if not create:
                raise FileNotFoundError(path)
            self.inodes[path] = Inode()
            self.inodes[path].modified_ms = self.wall_ms
        return MemoryFile(self, path, self.inodes[path])

    def flush(self, file: MemoryFile, on_flushed: Callable[[OSError | None], None]) -> None:
        size = file.size

        def flushed() -> None:
            if self.flush_error is None:
                file.inode.flushed = max(file.inode.flushed, min(size, len(file.inode.data)))
            self.operations.append(f"flush {file.path.rpartition('/')[2]}")
            on_flushed(self.flush_error)

        self.pending.append(flushed)

    def sync_dir(self, path: str, on_synced: Callable[[OSError | None], None]) -> None:
        self.operations.append(f"sync {path}")
        self.pending.append(lambda: on_synced(None))

    def rename(self, source: str, target: str) -> None:
        self.operations.append(f"rename {source.rpartition('/')[2]} {target.rpartition('/')[2]}")
        if source in self.inodes:
            self.inodes[target] = self.inodes.pop(source)
            return
        if source not in self.directories:
            raise FileNotFoundError(source)
        for path in sorted(p for p in self.inodes if p.startswith(source + "/")):
            self.inodes[target + path[len(source) :]] = self.inodes.pop(path)
        self.directories.discard(source)
        self.directories.add(target)

    def unlink(self, path: str) -> None:
        self.operations.append(f"unlink {path.rpartition('/')[2]}")
        if path not in self.inodes:
            raise FileNotFoundError(path)
        del self.inodes[path]

    def mkdirs(self, path: str) -> None:
        while path:
            self.directories.add(path)
            path = path.rpartition("/")[0]

    def rmdir(self, path: str) -> None:
        for name in [p for p in self.inodes if p.startswith(path + "/")]:
            del self.inodes[name]
        self.directories.discard(path)

    def list(self, path: str) -> list[str]:
        if path not in self.directories:
            raise FileNotFoundError(path)
        prefix = path + "/"
        names = {p[len(prefix) :].partition("/")[0] for p in [*self.inodes, *self.directories] if p.startswith(prefix)}
        return sorted(names)

    def exists(self, path: str) -> bool:
        return path in self.inodes or path in self.directories

    def space(self, path: str) -> tuple[int, int]:
        return 1 << 30, 1 << 29

    def is_dir(self, path: str) -> bool:
        return path in self.directories

    def modified_ms(self, path: str) -> int:
        return self.inodes[path].modified_ms
