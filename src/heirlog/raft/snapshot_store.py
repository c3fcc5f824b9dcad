"""The snapshots that a node keeps, and their files.

    kept  --no longer needed-->  NAME.deleted  --60 s-->  unlinked

A follower may have received a piece of a snapshot that is removed now: the file stays open and on disk until the piece
is certainly sent. It is no longer listed, so the follower's next request gets SNAPSHOT_NOT_FOUND, and its next Fetch
names a newer snapshot. A crash may leave files under either name; the next start removes those below the log start.

A file is opened by its first reader, and stays open until the snapshot is removed: a `Region` is valid only as long as
its file, and an answer may have to wait for others on its connection. Followers read only the newest snapshot.

Source: KIP-630; the delay is that of Kafka's KafkaMetadataLog.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from heirlog.env import Env, File
from heirlog.raft.snapshot import InvalidSnapshot, SnapshotId, read_last_contained_ms

DELETED = ".deleted"
DELETE_DELAY_MS = 60_000


class _Facts(NamedTuple):
    """What a file says about itself; it never changes."""

    size_bytes: int
    last_contained_ms: int


class SnapshotStore:
    def __init__(
        self, env: Env, directory: str, ids: Iterable[SnapshotId], on_failure: Callable[[OSError], None]
    ) -> None:
        """on_failure: called if a removed file cannot be unlinked."""
        self._env = env
        self._directory = directory
        self._on_failure = on_failure
        self._ids = sorted(ids)
        self._files: dict[SnapshotId, File] = {}
        self._facts: dict[SnapshotId, _Facts] = {}
        self._closed = False

    @property
    def ids(self) -> list[SnapshotId]:
        """Oldest first, the bootstrap one included; not to be changed."""
        return self._ids

    def open(self, snapshot_id: SnapshotId) -> File:
        """The file of a kept snapshot, to be read only. Raises OSError."""
        file = self._files.get(snapshot_id)
        if file is None:
            file = self._files[snapshot_id] = self._env.files.open(self._path(snapshot_id))
        return file

    def size_bytes(self) -> int:
        """Of all files that are kept. Raises OSError."""
        return sum(self._facts_of(snapshot_id).size_bytes for snapshot_id in self._ids)

    def last_contained_ms(self, snapshot_id: SnapshotId) -> int:
        """When the last record in the snapshot was appended; 0 if the file is damaged. Raises OSError."""
        return self._facts_of(snapshot_id).last_contained_ms

    def _facts_of(self, snapshot_id: SnapshotId) -> _Facts:
        known = self._facts.get(snapshot_id)
        if known is None:
            file = self._env.files.open(self._path(snapshot_id))
            try:
                known = self._facts[snapshot_id] = _Facts(file.size, _last_contained_ms(file))
            finally:
                file.close()
        return known

    def add(self, snapshot_id: SnapshotId) -> None:
        """A file that is complete and durable under its name."""
        if snapshot_id not in self._ids:
            self._ids = sorted([*self._ids, snapshot_id])

    def remove_below(self, end_offset: int) -> None:
        """Remove the snapshots that end below this offset. Raises OSError."""
        for removed in [snapshot_id for snapshot_id in self._ids if snapshot_id.end_offset < end_offset]:
            path = self._path(removed)
            self._env.files.rename(path, path + DELETED)
            self._ids = [snapshot_id for snapshot_id in self._ids if snapshot_id != removed]
            self._facts.pop(removed, None)
            self._unlink_later(path + DELETED, self._files.pop(removed, None))

    def close(self) -> None:
        """What waits to be unlinked is left to the next start."""
        self._closed = True
        for file in self._files.values():
            file.close()
        self._files.clear()

    def _unlink_later(self, path: str, file: File | None) -> None:
        def unlink() -> None:
            if file is not None:
                file.close()
            if self._closed:
                return
            try:
                self._env.files.unlink(path)
            except OSError as error:
                self._on_failure(error)

        self._env.call_later(DELETE_DELAY_MS, unlink)

    def _path(self, snapshot_id: SnapshotId) -> str:
        return f"{self._directory}/{snapshot_id.file_name}"


def _last_contained_ms(file: File) -> int:
    try:
        return read_last_contained_ms(file)
    except InvalidSnapshot:
        # nothing can start from it: the oldest one of several need not be kept
        return 0
