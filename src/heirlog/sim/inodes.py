"""What a simulated disk keeps of files and directories: content, and the changes that a power cut may take back.

    written --flush called--> sealed --flush time passes--> durable
       +__________________________+______ power cut: a random prefix of the changes survives, the last one may be torn

A directory has the same list for its entries: creates, renames and unlinks, made durable by `sync_dir`. A directory
is an object of its own (an inode), so that undoing the rename of a directory takes along whatever was put into it.

Nothing here copies a file: appends extend a bytearray, a cut deletes its end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from random import Random
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from heirlog.env import Buffer
from heirlog.sim.world import Process

Change = TypeVar("Change")
OnFlushed: TypeAlias = Callable[[OSError | None], None]


class AppendedBytes:
    """Bytes from `start` on were appended to the file. The change grows with each append until a flush seals it."""

    __slots__ = ("end", "sealed", "start")

    def __init__(self, start: int, end: int) -> None:
        self.start = start
        self.end = end
        self.sealed = False


class OverwrittenBytes(NamedTuple):
    """The bytes at `position` were `before`."""

    position: int
    before: bytes


class Truncation(NamedTuple):
    """The bytes that a truncation removed from the end: without a flush they may come back."""

    tail: bytes


class Flushable(Generic[Change]):
    """What files and directories share: changes that are not durable, and one flush at a time."""

    __slots__ = ("changes", "claimed", "failed_for", "flushing", "lost_claimed", "waiting")

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self.claimed = 0
        """How many of the changes a flush has called durable that did nothing: the disk lies."""
        self.lost_claimed = False
        """A power cut has taken back such a change."""
        self.failed_for: Process | None = None
        """The process that got the error of a failed flush."""
        self.flushing = False
        self.waiting: list[OnFlushed] = []
        """Requested while a flush was in progress: they share the next one."""

    def seal(self) -> int:
        """How many changes a flush that begins now will make durable."""
        return len(self.changes)

    def make_durable(self, count: int) -> None:
        """The oldest changes survive a power cut from now on."""
        del self.changes[:count]
        self.claimed = max(0, self.claimed - count)

    def claim(self, count: int) -> None:
        """Say that the oldest changes survive a power cut, and do nothing."""
        self.claimed = max(self.claimed, count)

    def forget(self, random: Random) -> list[Change]:
        """The changes that are lost and must be undone, in order: all that are not durable, except a random prefix."""
        kept = _prefix(random, len(self.changes))
        lost = self.changes[kept:]
        self.lost_claimed = self.lost_claimed or kept < self.claimed
        self.changes.clear()
        self.claimed = 0
        return lost


class FileInode(Flushable["AppendedBytes | OverwrittenBytes | Truncation"]):
    """A file's inode."""

    __slots__ = ("data", "modified_ms")

    def __init__(self) -> None:
        super().__init__()
        self.data = bytearray()
        self.modified_ms = 0

    def append(self, data: Buffer) -> None:
        """One change, together with the append before it."""
        start = len(self.data)
        self.data += data
        last = self.changes[-1] if self.changes else None
        if isinstance(last, AppendedBytes) and not last.sealed:
            last.end = len(self.data)
        else:
            self.changes.append(AppendedBytes(start, len(self.data)))

    def overwrite(self, data: Buffer, position: int) -> None:
        """Of bytes that the file has."""
        end = position + len(data)
        self.changes.append(OverwrittenBytes(position, bytes(self.data[position:end])))
        self.data[position:end] = data

    def cut(self, size: int) -> None:
        """Truncate."""
        self.changes.append(Truncation(bytes(self.data[size:])))
        del self.data[size:]

    def rot(self, position: int, content: bytes) -> None:
        """Without any write, durably: other bytes from `position` on; none: the file ends there."""
        self.changes.clear()
        if content:
            self.data[position : position + len(content)] = content
        else:
            del self.data[position:]

    def seal(self) -> int:
        if self.changes:
            last = self.changes[-1]
            if isinstance(last, AppendedBytes):
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
        if isinstance(first, AppendedBytes):
            del self.data[first.start + _prefix(random, first.end - first.start) :]
        else:
            self._undo(first)
        return True

    def _undo(self, change: AppendedBytes | OverwrittenBytes | Truncation) -> None:
        match change:
            case AppendedBytes():
                del self.data[change.start :]
            case OverwrittenBytes(position, before):
                self.data[position : position + len(before)] = before
            case Truncation(tail):
                self.data += tail


class DirectoryInode(Flushable["list[tuple[str, Inode | None]]"]):
    """A directory's inode. A change is what the entries it touched were before."""

    __slots__ = ("entries",)

    def __init__(self) -> None:
        super().__init__()
        self.entries: dict[str, Inode] = {}

    def change(self, *entries: tuple[str, Inode | None]) -> None:
        """Set or (None) remove entries in one atomic change."""
        self.changes.append([(name, self.entries.get(name)) for name, _ in entries])
        self._set(entries)

    def lose(self, random: Random) -> bool:
        lost = self.forget(random)
        for before in reversed(lost):
            self._set(before)
        return bool(lost)

    def _set(self, entries: Sequence[tuple[str, Inode | None]]) -> None:
        for name, inode in entries:
            if inode is None:
                self.entries.pop(name, None)
            else:
                self.entries[name] = inode


Inode: TypeAlias = FileInode | DirectoryInode


def copy_of(directory: DirectoryInode) -> DirectoryInode:
    """The directory as it shows now, with everything in it, durable."""
    copied = DirectoryInode()
    for name, inode in directory.entries.items():
        if isinstance(inode, DirectoryInode):
            copied.entries[name] = copy_of(inode)
        else:
            content = copied.entries[name] = FileInode()
            content.data, content.modified_ms = bytearray(inode.data), inode.modified_ms
    return copied


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


@lru_cache(maxsize=4096)
def parts_of(path: str) -> tuple[str, ...]:
    """The names on the way to a file or directory."""
    return tuple(name for name in path.split("/") if name)
