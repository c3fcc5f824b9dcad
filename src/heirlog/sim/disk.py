"""Disks that forget what was not flushed.

Every file has its content as the page cache shows it, and a list of the changes that a power cut may take back
(`heirlog.sim.inodes`). `heirlog.sim.disk_files` is how an incarnation reads and writes.

A process that is killed loses nothing: the page cache outlives it. A flush in flight at a power cut has done a random
part of its work, which a random prefix covers. Consecutive appends are one change, whatever their number: a log that is
never flushed costs one entry, and the cut falls on any byte.

A part of a disk can break (`break_at`), until `repair`: full (nothing can be written), read (EIO where it is read),
flush (EIO, and what was to be flushed stays volatile), dead (all of these). Regions handed out before count as reads. A
process that flushes a file again after its flush failed is a mistake in the product (`FlushedAgain`).

A file can be damaged (`damage`), while no process runs: a bit is flipped, its end is zeros, or missing. No error tells.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from typing import Any

from heirlog.sim.inodes import DirectoryInode, FileInode, Flushable, Inode, copy_of, parts_of
from heirlog.sim.world import Host, World

FLUSH_US = (100, 4000)
"""How long a flush takes on a disk that no fault has touched."""
BREAKAGES = ("full", "read", "flush", "dead")
DAMAGED_TAIL_BYTES = 512
"""A sector: a write that did not get to its end leaves so much of zeros, or of nothing."""
DAMAGES = ("bit-flip", "zeros", "truncation")


@dataclass(frozen=True, slots=True)
class Damage:
    """What happened to a file, durably: from `position` on it has `content` since, or (truncation) ends there."""

    path: str
    how: str
    position: int
    content: bytes
    inode: FileInode

    def __str__(self) -> str:
        return f"{self.how} at byte {self.position} of {self.path}"

    @property
    def is_there(self) -> bool:
        """Whether the bytes are still in the file, so that a process could read them."""
        end = self.position + len(self.content)
        return bool(self.content) and self.inode.data[self.position : end] == self.content


class _Least(Random):
    def randrange(self, start: int, *_: int) -> int:  # type: ignore[override]
        return start


class SimDisk:
    """What a host keeps when its processes come and go."""

    def __init__(self, world: World, host: Host, random: Random) -> None:
        self.world = world
        self.host = host
        self.random = random
        self.root = DirectoryInode()
        self.flush_us = FLUSH_US
        """A flush takes between these."""
        self.lies = False
        """A flush succeeds and does nothing, as on a volatile cache that ignores the command to write it back."""
        self.has_lost_flushed = False
        """A power cut took back what such a flush had called durable."""
        self.keeps_least = False
        """A power cut takes back everything that was not flushed, and not only a random part."""
        self.is_broken = False
        """A part of it is, at least."""
        self._broken: dict[str, str] = {}
        self.damages: list[Damage] = []
        """Oldest first."""

    def break_at(self, path: str, how: str) -> None:
        """Everything at or below `path` is broken from now on; `how` is one of `BREAKAGES`."""
        assert how in BREAKAGES, how
        self._broken[path] = how
        self.is_broken = True

    def repair(self) -> None:
        self._broken.clear()
        self.is_broken = False

    @contextmanager
    def readable(self) -> Iterator[None]:
        """A checker can read what is on the disk, broken or not."""
        is_broken, self.is_broken = self.is_broken, False
        try:
            yield
        finally:
            self.is_broken = is_broken

    def check(self, path: str, operation: str) -> None:
        """Raises OSError if `operation` ("write", "read" or "flush") fails there. No caller needs to ask unless
        `is_broken`.
        """
        if not self.is_broken:
            return
        for broken, how in self._broken.items():
            if path == broken or path.startswith(f"{broken}/"):
                if how == "full" and operation == "write":
                    raise OSError(errno.ENOSPC, "no space left on device", path)
                if how in (operation, "dead"):
                    raise OSError(errno.EIO, "input/output error", path)

    def damage(self, path: str, how: str) -> Damage:
        """Damage a file that is not empty; how: one of `DAMAGES`. Which bit, or how much of the end, is random."""
        inode: Inode = self.root
        for name in parts_of(path):
            assert isinstance(inode, DirectoryInode), path
            inode = inode.entries[name]
        assert isinstance(inode, FileInode) and inode.data, path
        size = len(inode.data)
        if how == "bit-flip":
            position = self.random.randrange(0, size)
            content = bytes([inode.data[position] ^ 1 << self.random.randrange(0, 8)])
        else:
            position = size - self.random.randrange(1, min(size, DAMAGED_TAIL_BYTES) + 1)
            content = bytes(size - position) if how == "zeros" else b""
        inode.rot(position, content)
        made = Damage(path, how, position, content, inode)
        self.damages.append(made)
        return made

    def is_damaged(self, path: str) -> bool:
        """Whether damage is still in a file below `path`."""
        below = f"{path.rstrip('/')}/"
        return any(damage.path.startswith(below) and damage.is_there for damage in self.damages)

    def power_cut(self) -> int:
        """Lose what was not flushed; how many files and directories lost something.

        Directories lose their changes first: the content of a file that is gone no longer matters.
        """
        self.host.power_cuts += 1
        return sum(self._lose(self.root, _Least() if self.keeps_least else self.random))

    def _lose(self, directory: DirectoryInode, random: Random) -> Iterator[bool]:
        yield directory.lose(random)
        self._forget_flush(directory)
        for name in sorted(directory.entries):
            inode = directory.entries[name]
            if isinstance(inode, DirectoryInode):
                yield from self._lose(inode, random)
            else:
                yield inode.lose(random)
                self._forget_flush(inode)

    def _forget_flush(self, inode: Flushable[Any]) -> None:
        self.has_lost_flushed = self.has_lost_flushed or inode.lost_claimed
        inode.flushing = False
        inode.waiting.clear()

    def process_ended(self) -> None:
        """A process ended and the page cache stays: its flushes have no callbacks any more."""
        self._forget_flushes(self.root)

    def _forget_flushes(self, directory: DirectoryInode) -> None:
        self._forget_flush(directory)
        for inode in directory.entries.values():
            if isinstance(inode, DirectoryInode):
                self._forget_flushes(inode)
            else:
                self._forget_flush(inode)

    def contents(self, path: str = "/") -> Iterator[tuple[str, bytearray]]:
        """The files below `path` as the page cache shows them, with their paths. Do not change them."""
        inode: Inode | None = self.root
        for name in parts_of(path):
            inode = inode.entries.get(name) if isinstance(inode, DirectoryInode) else None
        if isinstance(inode, DirectoryInode):
            for name in sorted(inode.entries):
                yield from self._contents_of(inode.entries[name], f"{path.rstrip('/')}/{name}")

    def _contents_of(self, inode: Inode, path: str) -> Iterator[tuple[str, bytearray]]:
        if isinstance(inode, FileInode):
            yield path, inode.data
        else:
            for name in sorted(inode.entries):
                yield from self._contents_of(inode.entries[name], f"{path}/{name}")

    def copy_from(self, other: SimDisk) -> None:
        """Replace the whole content by what `other` shows now, and make it durable."""
        self.root = copy_of(other.root)

    def settle(self) -> None:
        """Make everything durable at once, as after formatting: a `sync` of the whole disk."""
        self._settle(self.root)

    def _settle(self, directory: DirectoryInode) -> None:
        directory.changes.clear()
        for inode in directory.entries.values():
            if isinstance(inode, DirectoryInode):
                self._settle(inode)
            else:
                inode.changes.clear()
