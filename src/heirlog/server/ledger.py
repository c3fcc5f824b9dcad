"""What a power cut would take: a ledger of what each file has flushed and of directory changes not yet synced.

Only tests and drills run a node with `--ledger`; without it nothing of this is imported. The page cache survives a
SIGKILL, so killing a process loses nothing that was written. The ledger, memory-mapped and shared, survives as well,
and another process can then do to the files what the power cut would have done: `apply_power_cut`.

    written to the file     not in the ledger: the file's own length
    flushed                 one number per file, moved when the flush is answered (later than in truth: stricter)
    create, rename, ...     entered before it is done, struck out when its directory was synced

The cut, in this order: every file is cut to a length between flushed and written; then the changes that are left in the
list are undone, newest first. What they removed or replaced must still be there to come back, so it is moved (a file
that is replaced: linked) into a folder beside the ledger until its directory is synced.

What is lost, in the cases where a disk has a choice. Without a seed: everything that may be. With a seed: each file is
cut anywhere between flushed and written, and of the directory changes the newest are undone from a random one on (file
systems journal them in order), so that a rename may survive while the content under it does not.

* A truncation not yet flushed stays: the shorter length counts from the call on.
* `pwrite` may lose what it wrote: the flushed length falls to where it wrote. Only indexes are written so.
* A file that the ledger has never seen counts as flushed as it is. Neither is the kernel's own writing back noticed.

On the file: records one behind the other, each found by walking from the first; `tail` says where they end.

    header   magic u64 | tail u64
    record   size u32 | pad u32 | cell u64 | JSON

A killed process leaves no half record: the tail moves, in one store, once the record is there. `cell` is the one number
that changes afterwards: a file's flushed length, or 1 once a change was done. Only the newest change can be undone yet
entered; whether it was done is then read from the directory. When the ledger is full, its state is written to a new one
that replaces it.
"""

from __future__ import annotations

import json
import mmap
import os
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

MAGIC = 0x68656972_6C656467
HEADER = 16
RECORD_HEADER = 16
FIRST_SIZE = 1 << 20
KEEP_SUFFIX = ".kept"
DONE = 1


@dataclass(slots=True)
class Change:
    """A directory change that is not synced. `target` is where it can be undone; `kept` holds what it took away.

    kind: "create" (a file), "mkdir", "rename" (from `source`), "remove" (a file or a tree).
    unsynced: the directories whose sync makes it durable, as they are called now.
    """

    kind: str
    target: str
    source: str
    kept: str
    unsynced: list[str]
    number: int
    cell: int = 0


@dataclass(slots=True)
class Tracked:
    """A file: where it is now, the cell of its flushed length (-1: the file is gone), and flushes under way.

    The object is the file's identity while paths change.
    """

    path: str
    cell: int
    flushes: list[Flush] = field(default_factory=list)


@dataclass(slots=True)
class Flush:
    """One under way, and how much of the file it will have made durable."""

    size: int


@dataclass(frozen=True, slots=True)
class Cut:
    """A file that lost its end; lengths in bytes."""

    path: str
    flushed: int
    written: int
    kept: int


@dataclass(slots=True)
class PowerCut:
    """What `apply_power_cut` did, for the test that reads it."""

    cuts: list[Cut] = field(default_factory=list)
    undone: list[str] = field(default_factory=list)
    """Directory changes, newest first: "create /d/f", "rename /d/a -> /d/b"."""


class Ledger:
    """The mapped file and the state that its records add up to."""

    def __init__(self, path: str) -> None:
        """Goes on with an existing ledger: what an earlier process did not flush is not flushed yet."""
        self.path = path
        self.kept_dir = path + KEEP_SUFFIX
        self.files: dict[str, Tracked] = {}
        self.changes: list[Change] = []
        self._next_number = 0
        os.makedirs(self.kept_dir, exist_ok=True)
        if not os.path.exists(path):
            self._create(path, FIRST_SIZE)
        self._map()
        self._replay()

    # what happens to files

    def opened(self, path: str) -> Tracked:
        """A file that the ledger does not know is flushed as it is."""
        return self.files.get(path) or self._track(path, os.stat(path).st_size)

    def flushed_length(self, path: str) -> int:
        return self._cells[self.files[path].cell]

    def flush_begins(self, tracked: Tracked, size: int) -> Flush:
        flush = Flush(size)
        tracked.flushes.append(flush)
        return flush

    def flush_ended(self, tracked: Tracked, flush: Flush, worked: bool) -> None:
        tracked.flushes = [other for other in tracked.flushes if other is not flush]
        if worked and tracked.cell >= 0 and self._cells[tracked.cell] < flush.size:
            self._cells[tracked.cell] = flush.size

    def lost_from(self, tracked: Tracked, position: int) -> None:
        """From `position` on nothing is flushed, nor will it be by a flush that began before."""
        for flush in tracked.flushes:
            flush.size = min(flush.size, position)
        if tracked.cell >= 0 and self._cells[tracked.cell] > position:
            self._cells[tracked.cell] = position

    # what happens to directories

    def create(self, path: str, do: Callable[[], None]) -> None:
        self._change(Change("create", path, "", "", [os.path.dirname(path)], 0), do)
        self._track(path, 0)

    def mkdir(self, path: str, do: Callable[[], None]) -> None:
        self._change(Change("mkdir", path, "", "", [os.path.dirname(path)], 0), do)

    def rename(self, source: str, target: str) -> None:
        replaces = os.path.lexists(target)
        if source == target or (replaces and os.path.isdir(target) and os.listdir(target)):
            os.rename(source, target)  # nothing to do, or nothing that can be done
            return
        kept = self._keep_name() if replaces else ""

        def do() -> None:
            if kept and os.path.isdir(target):
                os.rename(target, kept)  # an empty one; a directory cannot be linked
            elif kept:
                os.link(target, kept)
            os.rename(source, target)

        directories = list(dict.fromkeys([os.path.dirname(source), os.path.dirname(target)]))
        self._change(Change("rename", target, source, kept, directories, 0), do)

    def remove(self, path: str) -> None:
        """A file or a whole tree: it is moved aside."""
        kept = self._keep_name()
        self._change(Change("remove", path, "", kept, [os.path.dirname(path)], 0), lambda: os.rename(path, kept))

    def mark(self) -> int:
        """The number that the next change gets: a sync that starts now covers all below it."""
        return self._next_number

    def synced(self, directory: str, mark: int) -> None:
        """`directory` was synced, as it was at `mark`."""
        self._append({"op": "sync", "directory": directory, "mark": mark}, 0)
        self._sync(directory, mark, clean=True)

    def close(self) -> None:
        self._cells.release()
        self._map_.close()

    # state

    def _change(self, change: Change, do: Callable[[], None]) -> None:
        change.number = self._next_number
        change.cell = self._append({"op": change.kind, **_fields(change)}, 0)
        try:
            do()
        except OSError:
            self._take_back(change)
            raise
        self._cells[change.cell] = DONE
        self._apply(change)

    def _apply(self, change: Change) -> None:
        """Take a change that was done into the state: who is called how now."""
        self._next_number = max(self._next_number, change.number + 1)
        if change.kind == "rename":
            if change.kept:
                self._moved(change.target, change.kept)
            self._moved(change.source, change.target)
        elif change.kind == "remove":
            self._moved(change.target, change.kept)
        self.changes.append(change)

    def _moved(self, source: str, target: str) -> None:
        for path in [path for path in self.files if within(path, source)]:
            tracked = self.files.pop(path)
            tracked.path = renamed(path, source, target)
            self.files[tracked.path] = tracked
        for change in self.changes:
            change.unsynced = [renamed(directory, source, target) for directory in change.unsynced]

    def _sync(self, directory: str, mark: int, clean: bool) -> None:
        left: list[Change] = []
        for change in self.changes:
            if change.number < mark and directory in change.unsynced:
                change.unsynced.remove(directory)
            if change.unsynced:
                left.append(change)
                continue
            if change.kind == "rename":
                # those before it will be undone after it came to stay
                for earlier in left:
                    earlier.target = renamed(earlier.target, change.source, change.target)
                    earlier.source = renamed(earlier.source, change.source, change.target)
            self._forget(change, clean)
        self.changes = left

    def _forget(self, change: Change, clean: bool) -> None:
        if not change.kept:
            return
        for path in [path for path in self.files if within(path, change.kept)]:
            self.files.pop(path).cell = -1
        if clean:
            delete(change.kept)

    def _track(self, path: str, flushed: int) -> Tracked:
        tracked = self.files[path] = Tracked(path, self._append({"op": "file", "path": path}, flushed))
        return tracked

    def _keep_name(self) -> str:
        return f"{self.kept_dir}/{self._next_number}"

    # records

    @property
    def _tail(self) -> int:
        return self._cells[1]

    @_tail.setter
    def _tail(self, tail: int) -> None:
        self._cells[1] = tail

    def _cell_of(self, position: int) -> int:
        return (position + 8) // 8

    def _append(self, entry: dict[str, Any], cell: int) -> int:
        """The index of the new record's cell."""
        data = json.dumps(entry, separators=(",", ":")).encode()
        size = RECORD_HEADER + len(data) + -len(data) % 8
        if self._tail + size > len(self._map_):
            self._compact(size)
        at = self._tail
        self._map_[at : at + 4] = len(data).to_bytes(4, "little")
        self._cells[self._cell_of(at)] = cell
        self._map_[at + RECORD_HEADER : at + RECORD_HEADER + len(data)] = data
        self._tail = at + size
        return self._cell_of(at)

    def _records(self) -> Iterator[tuple[int, dict[str, Any], bool]]:
        """(cell, entry, is the last) of each."""
        at, tail = HEADER, self._tail
        while at < tail:
            length = int.from_bytes(self._map_[at : at + 4], "little")
            entry = json.loads(self._map_[at + RECORD_HEADER : at + RECORD_HEADER + length])
            cell = self._cell_of(at)
            at += RECORD_HEADER + length + -length % 8
            yield cell, entry, at >= tail

    def _replay(self) -> None:
        last_change: Change | None = None
        for cell, entry, last in self._records():
            kind = entry.pop("op")
            if kind == "file":
                self.files[entry["path"]] = Tracked(entry["path"], cell)
            elif kind == "sync":
                self._sync(entry["directory"], entry["mark"], clean=False)
            else:
                applied = entry.pop("applied", False)
                change = Change(kind, **entry, cell=cell)
                if applied:
                    self.changes.append(change)
                    self._next_number = max(self._next_number, change.number + 1)
                elif self._cells[cell] == DONE or was_done(change):
                    self._cells[cell] = DONE
                    self._apply(change)
                else:
                    assert last, "only the newest change can have been interrupted"
                    last_change = change
        if last_change is not None:
            self._take_back(last_change)
        self._sweep_kept()

    def _take_back(self, change: Change) -> None:
        """The newest record's change was not done: it failed, or the process was killed before it."""
        if change.kept and os.path.lexists(change.kept):
            if os.path.lexists(change.target):
                delete(change.kept)
            else:
                os.rename(change.kept, change.target)
        self._tail = change.cell * 8 - 8

    def _sweep_kept(self) -> None:
        """What a killed process had no time to delete."""
        wanted = {os.path.basename(change.kept) for change in self.changes if change.kept}
        for name in os.listdir(self.kept_dir):
            if name not in wanted:
                delete(f"{self.kept_dir}/{name}")

    def _compact(self, needed: int) -> None:
        """Write the state to a new ledger and put it in place of this one, which a kill leaves whole."""
        entries: list[tuple[Tracked | Change, dict[str, Any], int]] = []
        for path, tracked in sorted(self.files.items()):
            entries.append((tracked, {"op": "file", "path": path}, self._cells[tracked.cell]))
        for change in self.changes:
            entries.append((change, {"op": change.kind, "applied": True, **_fields(change)}, DONE))
        number = self._next_number
        room = sum(len(json.dumps(entry)) + RECORD_HEADER + 8 for _, entry, _ in entries) + needed + HEADER
        self.close()
        self._create(self.path + ".new", max(FIRST_SIZE, 2 * room))
        self._map(self.path + ".new")
        for owner, entry, cell in entries:
            owner.cell = self._append(entry, cell)
        self._next_number = number
        os.rename(self.path + ".new", self.path)

    def _create(self, path: str, size: int) -> None:
        with open(path + ".tmp", "wb") as file:
            file.write(MAGIC.to_bytes(8, "little") + HEADER.to_bytes(8, "little"))
            file.truncate(size)
        os.rename(path + ".tmp", path)

    def _map(self, path: str | None = None) -> None:
        with open(path or self.path, "r+b") as file:
            self._map_ = mmap.mmap(file.fileno(), 0)
        # native eight-byte stores: a kill finds the old number or the new one
        self._cells = memoryview(self._map_).cast("Q")
        if self._cells[0] != MAGIC:
            raise ValueError(f"{self.path} is not a ledger of flushed lengths")


def apply_power_cut(ledger_path: str, seed: int | None = None) -> PowerCut:
    """Do to the files of a killed node what a power cut does; afterwards the ledger is gone: what is left is durable.

    The node must not run. Raises FileNotFoundError if there is no such ledger.
    """
    if not os.path.exists(ledger_path):
        raise FileNotFoundError(f"{ledger_path}: no ledger; was the node started with --ledger?")
    chance = None if seed is None else random.Random(seed)
    ledger = Ledger(os.path.abspath(ledger_path))
    report = PowerCut()
    for path in sorted(ledger.files):
        cut = cut_file(path, ledger.flushed_length(path), chance)
        if cut is not None:
            report.cuts.append(cut)
    survivors = 0 if chance is None else chance.randint(0, len(ledger.changes))
    for change in reversed(ledger.changes[survivors:]):
        report.undone.append(undo(change))
    ledger.close()
    os.unlink(ledger_path)
    shutil.rmtree(ledger.kept_dir)
    return report


def cut_file(path: str, flushed: int, chance: random.Random | None) -> Cut | None:
    try:
        written = os.stat(path).st_size
    except FileNotFoundError:
        return None  # deleted by somebody else
    if written <= flushed:
        return None
    kept = flushed if chance is None else chance.randint(flushed, written)
    os.truncate(path, kept)
    return Cut(path, flushed, written, kept)


def undo(change: Change) -> str:
    """What was undone, in words."""
    if change.kind == "rename":
        os.rename(change.target, change.source)
    elif change.kind in ("create", "mkdir"):
        delete(change.target)
    if change.kept:
        os.rename(change.kept, change.target)
    return f"{change.kind} {change.source + ' -> ' if change.source else ''}{change.target}"


def _fields(change: Change) -> dict[str, Any]:
    return {
        "target": change.target,
        "source": change.source,
        "kept": change.kept,
        "unsynced": change.unsynced,
        "number": change.number,
    }


def was_done(change: Change) -> bool:
    """Whether the newest change was done before the process died, read from the directory."""
    if change.kind == "rename":
        return not os.path.lexists(change.source)
    if change.kind == "remove":
        return not os.path.lexists(change.target)
    return os.path.lexists(change.target)


def within(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory + "/")


def renamed(path: str, source: str, target: str) -> str:
    """`path` after `source`, itself or one of its parents, was renamed to `target`."""
    return target + path[len(source) :] if source and within(path, source) else path


def delete(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)
