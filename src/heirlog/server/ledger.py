"""What a power cut would take: a ledger of what each file has flushed and of directory changes not yet synced.

Only tests and drills run a node with `--ledger`; without it nothing of this is imported. The page cache survives a
SIGKILL, so killing a process loses nothing that was written. The ledger, memory-mapped and shared, survives as well,
and another process can then do to the files what the power cut would have done: `apply_power_cut`.

    written to the file     not in the ledger: the file's own length
    flushed                 one number per file, moved when the flush is answered (later than in truth: stricter)
    create, rename, ...     entered before it is done, struck out when its directory was synced (`ledger_tree`)

The cut, in this order: every file is cut to a length between flushed and written; then the changes that are not durable
are undone, newest first. Removed or replaced files must still exist for that, so they are moved (a replaced file:
linked) into a folder next to the ledger until their directory is synced.

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
entered; whether it was done is then read from the directory. When the ledger is full, its state (the nodes of the tree,
parents first, then the changes) is written to a new one that replaces it. The file's blocks are allocated when it is
created: a store into a hole of a mapped file kills the process where the disk is full.

The ledger never ends the node. An error in it is written to a file next to it (`give_up`), the node continues without a
ledger, and `apply_power_cut` refuses from then on.
"""

from __future__ import annotations

import json
import mmap
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from heirlog.server.ledger_tree import DirectoryChange, Flush, Name, Tree, TreeNode, delete
from heirlog.storage.boot_mark import BOOT_FILE

MAGIC = 0x68656972_6C656468
HEADER = 16
RECORD_HEADER = 16
FIRST_SIZE = 1 << 20
KEEP_SUFFIX = ".kept"
FAILED_SUFFIX = ".failed"
DONE = 1
CHUNK = 1 << 20


class LedgerFailed(Exception):
    """What a power cut would take is not known: the ledger failed earlier, or cannot be read. One sentence."""


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
    """The mapped file and the state that its records add up to. Paths are absolute."""

    def __init__(self, path: str) -> None:
        """Continues an existing ledger: what an earlier process did not flush is not flushed yet."""
        self.path = path
        self.kept_dir = path + KEEP_SUFFIX
        self.tree = Tree(self.kept_dir)
        os.makedirs(self.kept_dir, exist_ok=True)
        if not os.path.exists(path):
            self._create(path, FIRST_SIZE)
        self._map()
        self._replay()

    # what happens to files

    def opened(self, path: str) -> TreeNode:
        """A file that the ledger does not know is flushed as it is."""
        node = self.tree.node(path)
        if node.cell < 0:
            self._track(node, os.stat(path).st_size)
        return node

    def flushed_length(self, node: TreeNode) -> int:
        return self._cells[node.cell]

    def flush_begins(self, node: TreeNode, size: int) -> Flush:
        flush = Flush(size)
        node.flushes += (flush,)
        return flush

    def flush_ended(self, node: TreeNode, flush: Flush, worked: bool) -> None:
        node.flushes = tuple(other for other in node.flushes if other is not flush)
        if worked and node.cell >= 0 and self._cells[node.cell] < flush.size:
            self._cells[node.cell] = flush.size

    def lost_from(self, node: TreeNode, position: int) -> None:
        """From `position` on nothing is flushed, nor will it be by a flush that began before."""
        for flush in node.flushes:
            flush.size = min(flush.size, position)
        if node.cell >= 0 and self._cells[node.cell] > position:
            self._cells[node.cell] = position

    # what happens to directories: enter a change, do it, then tell whether it was done

    def enter(self, kind: str, target: str, source: str = "") -> DirectoryChange:
        """Before it is done. `do` is how: what it takes away is moved to `kept`."""
        takes_away = kind == "remove" or (kind == "rename" and os.path.lexists(target))
        kept = f"{self.kept_dir}/{self.tree.next_number}" if takes_away else ""
        change = DirectoryChange(kind, target, source, kept, self.tree.next_number)
        self._append({"op": kind, "target": target, "source": source, "kept": kept, "number": change.number}, 0)
        return change

    def done(self, change: DirectoryChange) -> None:
        self._cells[self._newest] = DONE
        self.tree.enter(change)
        if change.kind == "create":
            self._track(self.tree.node(change.target), 0)

    def failed(self, change: DirectoryChange) -> None:
        """It was entered and could not be done: as if it had not been tried."""
        self._take_back(change, self._newest)

    def mark(self) -> int:
        """The number that the next change gets: a sync that starts now covers all below it."""
        return self.tree.next_number

    def synced(self, directory: str, mark: int) -> None:
        """`directory` was synced, as it was at `mark`."""
        self._append({"op": "sync", "directory": directory, "mark": mark}, 0)
        for doomed in self.tree.synced(directory, mark):
            delete(doomed)

    def close(self) -> None:
        self._cells.release()
        self._map_.close()

    def _track(self, node: TreeNode, flushed: int) -> None:
        cell = self._append({"op": "file", "path": node.path}, flushed)
        node.cell = cell

    # records

    @property
    def _tail(self) -> int:
        return self._cells[1]

    @_tail.setter
    def _tail(self, tail: int) -> None:
        self._cells[1] = tail

    def _append(self, entry: dict[str, Any], cell: int) -> int:
        """The index of the new record's cell."""
        data = json.dumps(entry, separators=(",", ":")).encode()
        size = RECORD_HEADER + len(data) + -len(data) % 8
        if self._tail + size > len(self._map_):
            self._compact(size)
        at = self._tail
        self._map_[at : at + 4] = len(data).to_bytes(4, "little")
        self._newest = (at + 8) // 8
        self._cells[self._newest] = cell
        self._map_[at + RECORD_HEADER : at + RECORD_HEADER + len(data)] = data
        self._tail = at + size
        return self._newest

    def _records(self) -> Iterator[tuple[int, dict[str, Any], bool]]:
        """(cell, entry, is the last) of each."""
        at, tail = HEADER, self._tail
        while at < tail:
            length = int.from_bytes(self._map_[at : at + 4], "little")
            entry = json.loads(self._map_[at + RECORD_HEADER : at + RECORD_HEADER + length])
            cell = (at + 8) // 8
            at += RECORD_HEADER + length + -length % 8
            yield cell, entry, at >= tail

    def _replay(self) -> None:
        nodes = [self.tree.root]
        for cell, entry, last in self._records():
            kind = entry.pop("op")
            if kind == "file":
                self.tree.node(entry["path"]).cell = cell
            elif kind == "sync":
                self.tree.synced(entry["directory"], entry["mark"])
            elif kind == "state":
                self.tree.next_number = entry["next"]
            elif kind == "node":
                nodes.append(self._dumped_node(nodes, entry, cell))
            elif kind == "change":
                self._dumped_change(nodes, entry)
            else:
                change = DirectoryChange(kind, **entry)
                if self._cells[cell] == DONE or was_done(change):
                    self._cells[cell] = DONE
                    self.tree.enter(change)
                else:
                    assert last, "only the newest change can have been interrupted"
                    self._take_back(change, cell)
        self._sweep_kept()

    def _take_back(self, change: DirectoryChange, cell: int) -> None:
        """The newest record's change was not done: it failed, or the process was killed before it."""
        if change.kept and os.path.lexists(change.kept):
            if os.path.lexists(change.target):
                delete(change.kept)
            else:
                os.rename(change.kept, change.target)
        self._tail = cell * 8 - 8

    def _sweep_kept(self) -> None:
        """What a killed process had no time to delete."""
        for name in os.listdir(self.kept_dir):
            if name not in self.tree.kept.children:
                delete(f"{self.kept_dir}/{name}")

    def _compact(self, needed: int) -> None:
        """Write the state to a new ledger and put it in place of this one, which a kill leaves complete."""
        nodes = list(self.tree.root.walk())
        entries = [(entry, self._cells[node.cell] if node.cell >= 0 else 0) for node, entry in self._dump(nodes)]
        room = sum(RECORD_HEADER + len(json.dumps(entry)) + 8 for entry, _ in entries) + needed + HEADER
        cells = self._cells, self._map_
        self._create(self.path + ".new", max(FIRST_SIZE, 2 * room))
        self._map(self.path + ".new")
        written = [self._append(entry, cell) for entry, cell in entries]
        # the root is not in the dump, and the state is its first record
        for node, cell in zip(nodes[1:], written[1:], strict=False):
            node.cell = cell if node.cell >= 0 else -1
        os.rename(self.path + ".new", self.path)
        cells[0].release()
        cells[1].close()

    def _dump(self, nodes: list[TreeNode]) -> Iterator[tuple[TreeNode, dict[str, Any]]]:
        """Records of the state: the next number, all nodes but the root, all changes; with the node of each."""
        ids = {node: number for number, node in enumerate(nodes)}
        root = nodes[0]
        yield root, {"op": "state", "next": self.tree.next_number}
        for node in nodes[1:]:
            assert node.parent is not None, "only the root has none"
            yield node, {"op": "node", "in": ids[node.parent], "name": node.name, "file": node.cell >= 0}
        for change in self.tree.changes.values():
            names = [[ids[n.directory], n.name, -1 if n.before is None else ids[n.before]] for n in change.names]
            yield (
                root,
                {
                    "op": "change",
                    "given": [change.kind, change.target, change.source, change.kept, change.number],
                    "names": names,
                    "unsynced": [ids[directory] for directory in change.unsynced],
                },
            )

    def _dumped_node(self, nodes: list[TreeNode], entry: dict[str, Any], cell: int) -> TreeNode:
        parent = nodes[entry["in"]]
        # the kept directory and what is above it are there already
        node = parent.children.get(entry["name"]) or TreeNode(parent, entry["name"])
        parent.children[node.name] = node
        node.cell = cell if entry["file"] else -1
        return node

    def _dumped_change(self, nodes: list[TreeNode], entry: dict[str, Any]) -> None:
        change = DirectoryChange(*entry["given"])
        self.tree.changes[change.number] = change
        for directory, name, before in entry["names"]:
            found = Name(change, nodes[directory], name, None if before < 0 else nodes[before])
            change.names.append(found)
            found.directory.changed.setdefault(name, []).append(found)
            if found.before is not None:
                found.before.wanted += 1
        change.unsynced = [nodes[directory] for directory in entry["unsynced"]]
        for directory in change.unsynced:
            directory.pending.append(change)

    def _create(self, path: str, size: int) -> None:
        size += -size % 8
        with open(path + ".tmp", "wb") as file:
            file.write(MAGIC.to_bytes(8, "little") + HEADER.to_bytes(8, "little"))
            for done in range(HEADER, size, CHUNK):
                file.write(bytes(min(CHUNK, size - done)))
        os.rename(path + ".tmp", path)

    def _map(self, path: str | None = None) -> None:
        with open(path or self.path, "r+b") as file:
            self._map_ = mmap.mmap(file.fileno(), 0)
        # native eight-byte stores: a kill finds the old number or the new one
        self._cells = memoryview(self._map_).cast("Q")
        self._newest = -1
        if self._cells[0] != MAGIC:
            raise ValueError(f"{self.path} is not a ledger of flushed lengths")


def do(change: DirectoryChange) -> None:
    """The changes that take something away; a file or directory is made by its caller. Raises OSError."""
    if change.kind == "remove":
        os.rename(change.target, change.kept)
        return
    if change.kept and os.path.isdir(change.target):
        os.rename(change.target, change.kept)  # an empty one; a directory cannot be linked
    elif change.kept:
        os.link(change.target, change.kept)
    os.rename(change.source, change.target)


def give_up(ledger_path: str, error: Exception) -> str:
    """From now on `apply_power_cut` refuses; the sentence that says so."""
    sentence = (
        f"the ledger {ledger_path} failed ({type(error).__name__}: {error}): what was flushed since is not known, so a "
        "power cut cannot be played on this node; use a new cluster"
    )
    with open(ledger_path + FAILED_SUFFIX, "w", encoding="utf-8") as file:
        file.write(sentence)
    return sentence


def forget(ledger_path: str) -> None:
    """What the files are now counts as flushed. No node of theirs may run."""
    # a kill may have left a ledger that was about to replace this one
    for suffix in ("", ".tmp", ".new", ".new.tmp", KEEP_SUFFIX, FAILED_SUFFIX):
        delete(ledger_path + suffix)


def has_failed(ledger_path: str) -> bool:
    return os.path.exists(ledger_path + FAILED_SUFFIX)


def apply_power_cut(ledger_path: str, seed: int | None = None) -> PowerCut:
    """Do to the files of a killed node what a power cut does; afterwards the ledger is gone: what is left is durable.

    The node must not run. Raises FileNotFoundError if there is no such ledger; LedgerFailed, with nothing changed, if
    it does not know.
    """
    ledger_path = os.path.abspath(ledger_path)
    if has_failed(ledger_path):
        with open(ledger_path + FAILED_SUFFIX, encoding="utf-8") as file:
            raise LedgerFailed(file.read())
    if not os.path.exists(ledger_path):
        raise FileNotFoundError(f"{ledger_path}: no ledger; was the node started with --ledger?")
    chance = None if seed is None else random.Random(seed)
    try:
        ledger = Ledger(ledger_path)
    except Exception as error:  # whatever is wrong with it
        raise LedgerFailed(give_up(ledger_path, error)) from error
    report = PowerCut()
    tracked = sorted((node.path, node) for node in ledger.tree.root.walk() if node.cell >= 0)
    for path, node in tracked:
        cut = cut_file(path, ledger.flushed_length(node), chance)
        if cut is not None:
            report.cuts.append(cut)
    changes = sorted(ledger.tree.changes.values(), key=lambda change: change.number)
    survivors = 0 if chance is None else chance.randint(0, len(changes))
    for change in changes[:survivors]:
        ledger.tree.make_durable(change)
    for change in reversed(changes[survivors:]):
        if change.number in ledger.tree.changes:
            report.undone.append(ledger.tree.undo(change))
    for path, _ in tracked:
        if os.path.basename(path) == BOOT_FILE and os.path.exists(path):
            # the machine has the same boot id as before: no name, no proof that the page cache is still there
            os.unlink(path)
    ledger.close()
    forget(ledger_path)
    return report


def cut_file(path: str, flushed: int, chance: random.Random | None) -> Cut | None:
    try:
        written = os.stat(path).st_size
    except FileNotFoundError:
        return None  # deleted by another program
    if written <= flushed:
        return None
    kept = flushed if chance is None else chance.randint(flushed, written)
    os.truncate(path, kept)
    return Cut(path, flushed, written, kept)


def was_done(change: DirectoryChange) -> bool:
    """Whether the newest change was done before the process died, read from the directory."""
    if change.kind == "rename":
        return not os.path.lexists(change.source)
    if change.kind == "remove":
        return not os.path.lexists(change.target)
    return os.path.lexists(change.target)
