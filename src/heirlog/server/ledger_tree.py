"""What a power cut would find: the tree of files as it is, and the directory changes that are not durable yet.

A file or directory is a node, however it is called: renaming a directory moves one node, and what is below it comes
along. What is removed or replaced stays, as a node in the kept directory, while a change that may still be undone wants
it back.

    change            entered, with what each name (directory, name) had before
    synced(directory) a change is durable once every directory it changed was synced after it. What it replaced for good
                      is deleted, and with a deleted directory go the changes inside it: nothing can bring them back
    undo, newest first  each name gets back what it had

Two traps. A change may outlive the one after it (they change different directories): a name whose later change is
durable keeps that, so an undone change only restores the names that are still its own. And something wanted may be
inside a directory that is deleted for good (renamed into it from elsewhere): it is moved out before.

The tree has what the ledger has seen, not everything on the disk: other nodes are added when they are named.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field


class TreeNode:
    """A file or directory. `cell`: where its flushed length is (-1: not tracked, or gone)."""

    __slots__ = ("cell", "changed", "children", "flushes", "name", "parent", "pending", "wanted")

    def __init__(self, parent: TreeNode | None, name: str) -> None:
        self.parent = parent
        self.name = name
        self.children: dict[str, TreeNode] = {}
        self.cell = -1
        self.flushes: tuple[Flush, ...] = ()
        self.pending: list[DirectoryChange] = []
        """Changes of this directory that a sync of it has still to make durable, oldest first."""
        self.changed: dict[str, list[Name]] = {}
        """By name: what was there before each change that is not durable, oldest first."""
        self.wanted = 0
        """How many of those want this node back."""

    @property
    def path(self) -> str:
        names = []
        node: TreeNode | None = self
        while node is not None and node.parent is not None:
            names.append(node.name)
            node = node.parent
        return "/" + "/".join(reversed(names))

    def move(self, parent: TreeNode, name: str) -> None:
        if self.parent is not None and self.parent.children.get(self.name) is self:
            del self.parent.children[self.name]
        self.parent, self.name = parent, name
        parent.children[name] = self

    def walk(self) -> Iterator[TreeNode]:
        """This one and all below, parents first."""
        yield self
        for child in list(self.children.values()):
            yield from child.walk()

    def outermost_wanted(self) -> Iterator[TreeNode]:
        """Below this one; what is in a wanted directory stays there."""
        for child in self.children.values():
            if child.wanted:
                yield child
            else:
                yield from child.outermost_wanted()


@dataclass(slots=True)
class Flush:
    """A flush in progress, and how many bytes of the file it will have made durable."""

    size: int


@dataclass(eq=False, slots=True)
class Name:
    """A name of a directory that a change has changed."""

    change: DirectoryChange
    directory: TreeNode
    name: str
    before: TreeNode | None


@dataclass(eq=False, slots=True)
class DirectoryChange:
    """A directory change that is not durable.

    kind: "create" (a file), "mkdir", "rename" (from `source`), "remove" (a file or a tree).
    kept: path that what it takes away is moved to; empty if it takes nothing away.
    """

    kind: str
    target: str
    source: str
    kept: str
    number: int
    names: list[Name] = field(default_factory=list)
    unsynced: list[TreeNode] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.kind} {self.source + ' -> ' if self.source else ''}{self.target}"


class Tree:
    def __init__(self, kept_dir: str) -> None:
        self.root = TreeNode(None, "")
        self.kept = self.node(kept_dir)
        self.changes: dict[int, DirectoryChange] = {}
        """By number: those that are not durable."""
        self.next_number = 0

    def node(self, path: str) -> TreeNode:
        """The node of an absolute path, entered if it is new."""
        node = self.root
        for name in path.split("/")[1:]:
            found = node.children.get(name)
            if found is None:
                found = node.children[name] = TreeNode(node, name)
            node = found
        return node

    def known(self, path: str) -> TreeNode | None:
        node: TreeNode | None = self.root
        for name in path.split("/")[1:]:
            node = node.children.get(name) if node is not None else None
        return node

    def enter(self, change: DirectoryChange) -> None:
        """A change that was done."""
        self.next_number = max(self.next_number, change.number + 1)
        self.changes[change.number] = change
        if change.kind == "remove":
            self._name(change, change.target, None)
        elif change.kind == "rename":
            moved = self.node(change.source)
            self._name(change, change.source, None)
            self._name(change, change.target, moved)
        else:
            self._name(change, change.target, TreeNode(None, ""))

    def _name(self, change: DirectoryChange, path: str, after: TreeNode | None) -> None:
        """Enter that `path` is `after` from now on."""
        directory, name = self.node(os.path.dirname(path)), os.path.basename(path)
        takes_away = bool(change.kept) and path == change.target
        before = self.node(path) if takes_away or path == change.source else None
        entry = Name(change, directory, name, before)
        change.names.append(entry)
        directory.changed.setdefault(name, []).append(entry)
        if directory not in change.unsynced:
            change.unsynced.append(directory)
            directory.pending.append(change)
        if before is not None:
            before.wanted += 1
            if takes_away:
                before.move(self.kept, os.path.basename(change.kept))
        if after is not None:
            after.move(directory, name)

    def synced(self, path: str, mark: int) -> list[str]:
        """The directory `path` was synced as it was before change `mark`; paths to delete, in this order.

        What they held and a change still wants was moved out: `_delete` does so on the disk as well.
        """
        directory = self.known(path)
        doomed: list[str] = []
        if directory is not None:
            covered = [change for change in directory.pending if change.number < mark]
            directory.pending = [change for change in directory.pending if change.number >= mark]
            for change in covered:
                self._settle(change, directory, doomed)
        return doomed

    def make_durable(self, change: DirectoryChange) -> None:
        """Whatever was synced; for a power cut that spares the oldest changes."""
        for directory in list(change.unsynced):
            self._settle(change, directory, [])

    def _settle(self, change: DirectoryChange, directory: TreeNode, doomed: list[str]) -> None:
        if directory in change.unsynced:
            change.unsynced.remove(directory)
        if change.unsynced or change.number not in self.changes:
            return
        del self.changes[change.number]
        for name in list(change.names):
            earlier = name.directory.changed.get(name.name, [])
            if name in earlier:
                # what the name had before older changes will not come back either
                for superseded in earlier[: earlier.index(name) + 1]:
                    self._drop(superseded, doomed)

    def _drop(self, name: Name, doomed: list[str]) -> None:
        """This name is not restored any more."""
        entries = name.directory.changed[name.name]
        entries.remove(name)
        if not entries:
            del name.directory.changed[name.name]
        name.change.names.remove(name)
        if not name.change.names:
            self.changes.pop(name.change.number, None)
        if name.before is not None:
            name.before.wanted -= 1
            if not name.before.wanted and name.before.parent is self.kept:
                self._delete(name.before, doomed)

    def _delete(self, node: TreeNode, doomed: list[str]) -> None:
        """Delete entries of the kept directory that are not needed any more; the changes inside them end with them."""
        for number, inner in enumerate(list(node.outermost_wanted())):
            before = inner.path
            inner.move(self.kept, f"{node.name}.{number}")
            if os.path.lexists(before):
                os.rename(before, inner.path)
        doomed.append(node.path)
        del self.kept.children[node.name]
        for inner in node.walk():
            inner.cell = -1
            for change in inner.pending:
                self._settle(change, inner, doomed)
            inner.pending = []
            for entries in list(inner.changed.values()):
                for entry in list(entries):
                    self._drop(entry, doomed)

    def undo(self, change: DirectoryChange) -> str:
        """On the disk too: each name that is still the change's gets back what it had. Only newest first."""
        for entry in reversed(change.names):
            found = entry.directory.children.get(entry.name)
            if found is not None:
                self._put(found, self.kept, f"undone-{change.number}-{len(self.kept.children)}")
        for entry in change.names:
            if entry.before is not None:
                self._put(entry.before, entry.directory, entry.name)
        return str(change)

    def _put(self, node: TreeNode, directory: TreeNode, name: str) -> None:
        source = node.path
        node.move(directory, name)
        # without it: removed by another program
        if os.path.lexists(source):
            os.rename(source, node.path)


def delete(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        import shutil  # as in `files.OsFiles.rmdir`

        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)
