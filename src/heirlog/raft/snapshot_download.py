"""Fetching a leader's snapshot piece by piece (KIP-630).

    ask for bytes from the end of the part file on -> append -> ... -> complete -> check -> flush -> rename -> sync

Pieces may end anywhere, even inside a batch, so the file is only checked after the last one. After any failure the part
file is deleted: the next Fetch says which snapshot is the right one by then.

A download belongs to the observer that started it. Once that has ended, nothing is installed, even if the file has its
name already: by then this node may lead, with a log of its own. The next start uses the file if it is ahead of the log.
"""

from __future__ import annotations

from collections.abc import Callable

from heirlog.env import Env, File, SendFailure
from heirlog.protocol.errors import error_code
from heirlog.protocol.messages import FetchSnapshotRequest, FetchSnapshotResponse
from heirlog.protocol.primitives import records_view
from heirlog.protocol.types import METADATA_TOPIC, Endpoint
from heirlog.raft import snapshot
from heirlog.raft.local_replica import LocalReplica
from heirlog.raft.snapshot import InvalidSnapshot, Snapshot, SnapshotId
from heirlog.storage.atomic import publish_file

CHANNEL = "raft"
"""Shared with the Fetch that asked for the snapshot: one ordered connection to the leader."""
PIECE_BYTES = 1 << 20
TIMEOUT_MS = 5_000

OnDownloaded = Callable[[Snapshot | str | OSError], None]
"""The snapshot, durable under its name; or the error: after a str retry, an OSError is this node's own disk."""


class SnapshotDownload:
    def __init__(
        self, env: Env, replica: LocalReplica, source: Endpoint, leader_epoch: int, on_piece: Callable[[], None]
    ) -> None:
        """on_piece: called whenever the leader has answered with bytes of the snapshot."""
        self._env = env
        self._replica = replica
        self._directory = replica.log_directory
        self._source = source
        self._leader_epoch = leader_epoch
        self._on_piece = on_piece
        self._file: File | None = None
        """Open until all bytes are there."""
        self._closed = False

    def start(self, snapshot_id: SnapshotId, on_done: OnDownloaded) -> None:
        self._id = snapshot_id
        self._on_done = on_done
        self._part = f"{self._directory}/{snapshot_id.file_name}{snapshot.PART}"
        files = self._env.files
        try:
            if files.exists(self._part):
                files.unlink(self._part)
            self._file = files.open(self._part, create=True)
        except OSError as error:
            self._fail(error)
            return
        self._ask(self._file)

    def close(self) -> None:
        """Stop the download: this node has another role, or follows in another epoch. `on_done` is not called."""
        self._closed = True
        if self._file is not None:
            self._drop(self._file)

    def _ask(self, file: File) -> None:
        nested = FetchSnapshotRequest
        asked = nested.PartitionSnapshot(
            partition=0,
            current_leader_epoch=self._leader_epoch,
            snapshot_id=nested.SnapshotId(end_offset=self._id.end_offset, epoch=self._id.epoch),
            position=file.size,
            replica_directory_id=self._replica.directory_id,
        )
        request = nested(
            cluster_id=self._replica.cluster_id,
            replica_id=self._replica.node_id,
            max_bytes=PIECE_BYTES,
            topics=[nested.TopicSnapshot(name=METADATA_TOPIC, partitions=[asked])],
        )
        self._env.send(self._source, CHANNEL, request, self._answered, TIMEOUT_MS)

    def _answered(self, result: FetchSnapshotResponse | SendFailure) -> None:
        file = self._file
        if file is None:
            return
        refused = self._refused(result)
        if refused is not None or isinstance(result, SendFailure):
            self._fail(refused or "")
            return
        piece = result.topics[0].partitions[0]
        data = records_view(piece.unaligned_records)
        if SnapshotId(piece.snapshot_id.end_offset, piece.snapshot_id.epoch) != self._id:
            self._fail(f"bytes of the snapshot {piece.snapshot_id} where {self._id.file_name} was asked for")
            return
        if piece.position != file.size or not data:
            self._fail(f"{len(data)} bytes at position {piece.position} where {file.size} was asked for")
            return
        try:
            file.append(data)
        except OSError as error:
            self._fail(error)
            return
        self._on_piece()
        if file.size < piece.size:
            self._ask(file)
        else:
            self._complete(file)

    def _refused(self, result: FetchSnapshotResponse | SendFailure) -> str | None:
        if isinstance(result, SendFailure):
            return f"{result.kind} {result.detail}".strip()
        if result.error_code or not result.topics or not result.topics[0].partitions:
            return error_code(result.error_code).name
        code = result.topics[0].partitions[0].error_code
        return error_code(code).name if code else None

    def _complete(self, file: File) -> None:
        try:
            downloaded = snapshot.check(self._id, file.pread(file.size, 0))
        except InvalidSnapshot as error:
            self._fail(str(error))
            return
        except OSError as error:
            self._fail(error)
            return
        self._file = None

        def durable(error: OSError | None) -> None:
            # after a change of roles the log must not be replaced
            if not self._closed:
                self._on_done(downloaded if error is None else error)

        publish_file(
            self._env.files,
            self._directory,
            self._id.file_name,
            file,
            durable,
            snapshot.PART,
            on_flushed=self._flushed,
        )

    def _fail(self, why: str | OSError) -> None:
        if self._file is not None:
            self._drop(self._file)
        self._on_done(why)

    def _flushed(self) -> bool:
        if self._closed:
            self._remove()
        return not self._closed

    def _drop(self, file: File) -> None:
        self._file = None
        file.close()
        self._remove()

    def _remove(self) -> None:
        try:
            self._env.files.unlink(self._part)
        except OSError:
            # the next start removes it
            return
