"""Writing a snapshot in slices, so that a leader with many partitions still answers its followers.

    NAME.part opened --batch, turn, batch, turn ...--> complete --flush--> renamed --sync directory--> written
           |                                              |
           +------------------- close --------------------+--> NAME.part removed

A batch has at most `snapshot.RECORDS_PER_BATCH` records: some ten milliseconds of work. All of 100,000 partitions in
one turn would take some seconds, and after controller.quorum.fetch.timeout.ms the followers would elect another leader.

Source: KIP-630. Apache Kafka writes snapshots in a thread of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

from heirlog.env import Buffer, Env, File
from heirlog.raft import snapshot
from heirlog.raft.snapshot import SnapshotId
from heirlog.storage.atomic import OnDurable, publish_file


class SnapshotWriter:
    def __init__(
        self, env: Env, directory: str, snapshot_id: SnapshotId, batches: Iterator[Buffer], on_done: OnDurable
    ) -> None:
        """batches: the whole file, read on in later turns. on_done: when it would survive a power cut."""
        self._env = env
        self._directory = directory
        self._id = snapshot_id
        self._batches = batches
        self._on_done = on_done
        self._closed = False
        self._file: File | None = None
        """Open until it is complete."""

    def start(self) -> None:
        """Write the first batch. Raises OSError."""
        self._file = self._env.files.open(self._part, create=True)
        if self._file.size:
            self._file.truncate(0)
        self._write(self._file)

    def close(self) -> None:
        """Write no more; `on_done` is not called."""
        if self._closed:
            return
        self._closed = True
        if self._file is not None:
            self._file.close()
            self._remove()

    @property
    def _part(self) -> str:
        return f"{self._directory}/{self._id.file_name}{snapshot.PART}"

    def _write(self, file: File) -> None:
        batch = next(self._batches, None)
        if batch is not None:
            file.append(batch)
            self._env.call_later(0, self._continue)
            return
        self._file = None
        publish_file(
            self._env.files, self._directory, self._id.file_name, file, self._done, snapshot.PART, self._flushed
        )

    def _continue(self) -> None:
        if self._closed or self._file is None:
            return
        try:
            self._write(self._file)
        except OSError as error:
            self._done(error)

    def _flushed(self) -> bool:
        if self._closed:
            self._remove()
        return not self._closed

    def _done(self, error: OSError | None) -> None:
        if not self._closed:
            self._closed = True
            self._on_done(error)

    def _remove(self) -> None:
        try:
            self._env.files.unlink(self._part)
        except OSError:
            # the next start removes it
            return
