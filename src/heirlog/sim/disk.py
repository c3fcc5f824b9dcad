"""Disks that forget what was not flushed.

Every file has its content as the page cache shows it, and a list of the changes that a power cut may take back:

    written --flush called--> sealed --flush time passes--> durable
       +__________________________+______ power cut: a random prefix of the changes survives, the last one may be torn

A directory has the same list for its entries: creates, renames and unlinks, made durable by `sync_dir`. A directory
is an object of its own (an inode), so that undoing the rename of a directory takes along whatever was put into it.

A process that is killed loses nothing: the page cache outlives it. A flush in flight at a power cut has done a random
part of its work, which a random prefix covers. Consecutive appends are one change, whatever their number: a log that is
never flushed costs one entry, and the cut falls on any byte.

A part of a disk can break (`break_at`), until `repair`: full (nothing can be written), read (EIO where it is read),
flush (EIO, and what was to be flushed stays volatile), dead (all of these). Regions handed out before count as reads. A
process that flushes a file again after its flush failed is a mistake in the product (`FlushedAgain`).

Nothing here copies a file: appends extend a bytearray, a cut deletes its end.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar
from zlib import crc32

from heirlog.env import Buffer, File
from heirlog.sim.world import Host, Process, World

Change = TypeVar("Change")
OnFlushed: TypeAlias = Callable[[OSError | None], None]

FLUSH_US = (100, 4000)
"""How long a flush takes on a disk that no fault has touched."""
_VOLUME_BYTES = 1 << 40
"""What every volume says of itself."""


class _Append:
    """Bytes from `start` on were appended to the file. The change grows with each append until a flush seals it."""

    __slots__ = ("end", "sealed", "start")

    def __init__(self, start: int, end: int) -> None:
        self.start = start
        self.end = end
        self.sealed = False


class _Overwrite(NamedTuple):
    position: int
    before: bytes


class _Cut(NamedTuple):
    """The bytes that a truncation removed from the end: without a flush they may come back."""

    tail: bytes


class _Flushable(Generic[Change]):
    """What files and directories share: changes that are not durable, and one flush at a time."""

    __slots__ = ("changes", "failed_for", "flushing", "waiting")

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self.failed_for: Process | None = None
        """The process that got the error of a failed flush."""
        self.flushing = False
        self.waiting: list[OnFlushed] = []
        """Requested while a flush was in progress: they share the next one."""

    def seal(self) -> int:
        """How many changes a flush that begins now will make durable."""
        return len(self.changes)

    def make_durable(self, count: int) -> None:
        del self.changes[:count]

    def forget(self, random: Random) -> list[Change]:
        """The changes that are lost and must be undone, in order: all that are not durable, except a random prefix."""
        kept = _prefix(random, len(self.changes))
        lost = self.changes[kept:]
        self.changes.clear()
        return lost


class _Content(_Flushable["_Append | _Overwrite | _Cut"]):
    """A file's inode."""

    __slots__ = ("data", "modified_ms")

    def __init__(self) -> None:
        super().__init__()
        self.data = bytearray()
        self.modified_ms = 0

    def append(self, data: Buffer) -> None:
        start = len(self.data)
        self.data += data
        last = self.changes[-1] if self.changes else None
        if isinstance(last, _Append) and not last.sealed:
            last.end = len(self.data)
        else:
            self.changes.append(_Append(start, len(self.data)))

    def overwrite(self, data: Buffer, position: int) -> None:
        end = position + len(data)
        self.changes.append(_Overwrite(position, bytes(self.data[position:end])))
        self.data[position:end] = data

    def cut(self, size: int) -> None:
        self.changes.append(_Cut(bytes(self.data[size:])))
        del self.data[size:]

    def seal(self) -> int:
        if self.changes:
            last = self.changes[-1]
            if isinstance(last, _Append):
                last.sealed = True
        return super().seal()

    def lose(self, random: Random) -> bool:
        """Keep a random prefix of what is not durable; whether anything was lost."""
        lost = self.forget(random)
        if not lost:
            return False
        for change in reversed(lost[1:]):
            self._undo(change)
        first = lost[0]
        if isinstance(first, _Append):
            del self.data[first.start + _prefix(random, first.end - first.start) :]
        else:
            self._undo(first)
        return True

    def _undo(self, change: _Append | _Overwrite | _Cut) -> None:
        match change:
            case _Append():
                del self.data[change.start :]
            case _Overwrite(position, before):
                self.data[position : position + len(before)] = before
            case _Cut(tail):
                self.data += tail


class _Directory(_Flushable["list[tuple[str, _Inode | None]]"]):
    """A directory's inode. A change is what the entries it touched were before."""

    __slots__ = ("entries",)

    def __init__(self) -> None:
        super().__init__()
        self.entries: dict[str, _Inode] = {}

    def change(self, *entries: tuple[str, _Inode | None]) -> None:
        """Set or (None) remove entries in one atomic change."""
        self.changes.append([(name, self.entries.get(name)) for name, _ in entries])
        self._set(entries)

    def lose(self, random: Random) -> bool:
        lost = self.forget(random)
        for before in reversed(lost):
            self._set(before)
        return bool(lost)

    def _set(self, entries: Sequence[tuple[str, _Inode | None]]) -> None:
        for name, inode in entries:
            if inode is None:
                self.entries.pop(name, None)
            else:
                self.entries[name] = inode


_Inode: TypeAlias = _Content | _Directory


def _copy(directory: _Directory) -> _Directory:
    copied = _Directory()
    for name, inode in directory.entries.items():
        if isinstance(inode, _Directory):
            copied.entries[name] = _copy(inode)
        else:
            content = copied.entries[name] = _Content()
            content.data, content.modified_ms = bytearray(inode.data), inode.modified_ms
    return copied


BREAKAGES = ("full", "read", "flush", "dead")


class FlushedAgain(Exception):
    """The kernel may have dropped what it could not write, so a second flush would report success for lost bytes."""


def _prefix(random: Random, length: int) -> int:
    """A length from 0 to `length`. The two ends are drawn more often, because most mistakes show there."""
    if length == 0:
        return 0
    choice = random.randrange(0, 4)
    if choice == 0:
        return 0
    if choice == 1:
        return length
    return random.randrange(0, length + 1)


class SimDisk:
    """What a host keeps when its processes come and go."""

    def __init__(self, world: World, host: Host, random: Random) -> None:
        self.world = world
        self.host = host
        self.random = random
        self.root = _Directory()
        self.flush_us = FLUSH_US
        """A flush takes between these."""
        self._broken: dict[str, str] = {}

    def break_at(self, path: str, how: str) -> None:
        """Everything at or below `path` is broken from now on; `how` is one of `BREAKAGES`."""
        assert how in BREAKAGES, how
        self._broken[path] = how

    @property
    def is_broken(self) -> bool:
        return bool(self._broken)

    def repair(self) -> None:
        self._broken.clear()

    @contextmanager
    def readable(self) -> Iterator[None]:
        """A checker can read what is on the disk, broken or not."""
        broken, self._broken = self._broken, {}
        try:
            yield
        finally:
            self._broken = broken

    def check(self, path: str, operation: str) -> None:
        """Raises OSError if `operation` ("write", "read" or "flush") fails there."""
        for broken, how in self._broken.items():
            if path == broken or path.startswith(f"{broken}/"):
                if how == "full" and operation == "write":
                    raise OSError(errno.ENOSPC, "no space left on device", path)
                if how in (operation, "dead"):
                    raise OSError(errno.EIO, "input/output error", path)

    def power_cut(self) -> int:
        """Lose what was not flushed; how many files and directories lost something.

        Directories lose their changes first: the content of a file that is gone no longer matters.
        """
        return sum(self._lose(self.root))

    def _lose(self, directory: _Directory) -> Iterator[bool]:
        yield directory.lose(self.random)
        self._forget_flush(directory)
        for name in sorted(directory.entries):
            inode = directory.entries[name]
            if isinstance(inode, _Directory):
                yield from self._lose(inode)
            else:
                yield inode.lose(self.random)
                self._forget_flush(inode)

    def _forget_flush(self, inode: _Flushable[Any]) -> None:
        inode.flushing = False
        inode.waiting.clear()

    def process_ended(self) -> None:
        """A process ended and the page cache stays: its flushes have no callbacks any more."""
        self._forget_flushes(self.root)

    def _forget_flushes(self, directory: _Directory) -> None:
        self._forget_flush(directory)
        for inode in directory.entries.values():
            if isinstance(inode, _Directory):
                self._forget_flushes(inode)
            else:
                self._forget_flush(inode)

    def contents(self, path: str = "/") -> Iterator[tuple[str, bytearray]]:
        """The files below `path` as the page cache shows them, with their paths. Do not change them."""
        inode: _Inode | None = self.root
        for name in _parts(path):
            inode = inode.entries.get(name) if isinstance(inode, _Directory) else None
        if isinstance(inode, _Directory):
            for name in sorted(inode.entries):
                yield from self._contents_of(inode.entries[name], f"{path.rstrip('/')}/{name}")

    def _contents_of(self, inode: _Inode, path: str) -> Iterator[tuple[str, bytearray]]:
        if isinstance(inode, _Content):
            yield path, inode.data
        else:
            for name in sorted(inode.entries):
                yield from self._contents_of(inode.entries[name], f"{path}/{name}")

    def copy_from(self, other: SimDisk) -> None:
        """Replace the whole content by what `other` shows now, and make it durable."""
        self.root = _copy(other.root)

    def settle(self) -> None:
        """Make everything durable at once, as after formatting: a `sync` of the whole disk."""
        self._settle(self.root)

    def _settle(self, directory: _Directory) -> None:
        directory.changes.clear()
        for inode in directory.entries.values():
            if isinstance(inode, _Directory):
                self._settle(inode)
            else:
                inode.changes.clear()


class SimFile:
    """An open file: a name that was resolved once. Renames and unlinks do not touch it."""

    __slots__ = ("_closed", "_content", "_disk", "_path")

    def __init__(self, disk: SimDisk, path: str, content: _Content) -> None:
        self._disk = disk
        self._path = path
        self._content = content
        self._closed = False

    @property
    def path(self) -> str:
        return self._path

    @property
    def size(self) -> int:
        return len(self._content.data)

    @property
    def content(self) -> _Content:
        if self._closed:
            raise OSError(errno.EBADF, "the file is closed", self._path)
        return self._content

    def append(self, data: Buffer | Sequence[Buffer]) -> int:
        content = self.content
        self._disk.check(self._path, "write")
        start = len(content.data)
        if isinstance(data, bytes | bytearray | memoryview):
            self._append(content, data)
        else:
            for part in data:
                self._append(content, part)
        content.modified_ms = self._disk.host.wall_ms()
        return start

    def _append(self, content: _Content, data: Buffer) -> None:
        content.append(data)
        host = self._disk.host
        host.fingerprint = crc32(data, host.fingerprint)

    def pread(self, size: int, position: int) -> bytes:
        self._disk.check(self._path, "read")
        with memoryview(self.content.data) as view:
            return bytes(view[position : position + size])

    def pwrite(self, data: Buffer, position: int) -> None:
        content = self.content
        self._disk.check(self._path, "write")
        if position < 0 or position + len(data) > len(content.data):
            raise OSError(errno.EINVAL, "pwrite never extends a file", self._path)
        content.overwrite(data, position)
        content.modified_ms = self._disk.host.wall_ms()
        self._disk.host.fingerprint = crc32(data, self._disk.host.fingerprint ^ position)

    def truncate(self, size: int) -> None:
        content = self.content
        if size < 0 or size > len(content.data):
            raise OSError(errno.EINVAL, "truncate never extends a file", self._path)
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

    def open(self, path: str, create: bool = False) -> SimFile:
        directory, name = self._parent(path)
        inode = directory.entries.get(name)
        if inode is None:
            if not create:
                raise FileNotFoundError(errno.ENOENT, "no such file", path)
            self._disk.check(path, "write")
            inode = _Content()
            inode.modified_ms = self._disk.host.wall_ms()
            directory.change((name, inode))
        if isinstance(inode, _Directory):
            raise IsADirectoryError(errno.EISDIR, "is a directory", path)
        return SimFile(self._disk, path, inode)

    def flush(self, file: File, on_flushed: OnFlushed) -> None:
        assert isinstance(file, SimFile)
        self._flush(file.content, file.path, f"flushed {file.path}", on_flushed)

    def sync_dir(self, path: str, on_synced: OnFlushed) -> None:
        self._flush(self._directory(path), path, f"synced {path}", on_synced)

    def _flush(self, inode: _Content | _Directory, path: str, label: str, on_flushed: OnFlushed) -> None:
        if inode.failed_for is self._process:
            raise FlushedAgain(f"{path} was flushed again after a flush of it had failed")
        inode.waiting.append(on_flushed)
        if not inode.flushing:
            self._begin_flush(inode, path, label)

    def _begin_flush(self, inode: _Content | _Directory, path: str, label: str) -> None:
        inode.flushing = True
        count = inode.seal()
        served, inode.waiting = inode.waiting, []

        def done() -> None:
            failure: OSError | None = None
            try:
                self._disk.check(path, "flush")
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
                if self._process.alive:
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
        if isinstance(replaced, _Directory) and replaced.entries:
            raise OSError(errno.ENOTEMPTY, "the target is a directory with entries", target)
        if name != target_name:
            directory.change((name, None), (target_name, inode))

    def unlink(self, path: str) -> None:
        directory, name = self._parent(path)
        inode = directory.entries.get(name)
        if inode is None:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        if isinstance(inode, _Directory):
            raise IsADirectoryError(errno.EISDIR, "is a directory", path)
        directory.change((name, None))

    def mkdirs(self, path: str) -> None:
        directory = self._disk.root
        for name in _parts(path):
            found = directory.entries.get(name)
            if found is None:
                found = _Directory()
                directory.change((name, found))
            if not isinstance(found, _Directory):
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
        return isinstance(self._find(path), _Directory)

    def modified_ms(self, path: str) -> int:
        inode = self._find(path)
        if not isinstance(inode, _Content):
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        return inode.modified_ms

    def space(self, path: str) -> tuple[int, int]:
        self._directory(path)
        return _VOLUME_BYTES, _VOLUME_BYTES

    def _find(self, path: str) -> _Inode | None:
        inode: _Inode | None = self._disk.root
        for name in _parts(path):
            if not isinstance(inode, _Directory):
                return None
            inode = inode.entries.get(name)
        return inode

    def _directory(self, path: str) -> _Directory:
        found = self._find(path)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, "no such directory", path)
        if not isinstance(found, _Directory):
            raise NotADirectoryError(errno.ENOTDIR, "not a directory", path)
        return found

    def _parent(self, path: str) -> tuple[_Directory, str]:
        parent, _, name = path.rstrip("/").rpartition("/")
        return self._directory(parent), name


def _parts(path: str) -> list[str]:
    return [name for name in path.split("/") if name]
