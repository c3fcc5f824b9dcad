"""The metadata log on disk: a Kafka log, the snapshots next to it, and state derived from both.

    __cluster_metadata-0/   NNN.log .index .timeindex   leader-epoch-checkpoint   partition.metadata
                            NNN-EEE.checkpoint          quorum-state              committed-offset

Opening never trusts the last stop. The log is scanned by CRC from the newest loadable snapshot on (records in the
snapshot were committed, hence flushed), and an incomplete tail is cut. If a snapshot cannot be loaded the one before it
is used, as long as the log still reaches back that far.

Raft appends differ from client appends: batches already have offsets and epochs, so leaders and followers use the same
append, which keeps them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from heirlog.env import Buffer, Env, Files, Region
from heirlog.protocol.batch import HEADER_SIZE, BatchHeader, InvalidBatch, crc_matches, read_header, walk
from heirlog.protocol.primitives import Message, records_view
from heirlog.protocol.records import VotersRecord
from heirlog.protocol.types import METADATA_TOPIC, METADATA_TOPIC_ID
from heirlog.raft import snapshot
from heirlog.raft.committed_offset import NAME as COMMITTED_OFFSET_FILE
from heirlog.raft.committed_offset import CommittedOffsetFile, read_flushed_offset
from heirlog.raft.control import Voter, decode_controls, kraft_version_of, read_voters
from heirlog.raft.divergence import Position
from heirlog.raft.replica_key import ReplicaKey
from heirlog.raft.snapshot import BOOTSTRAP, InvalidSnapshot, Snapshot, SnapshotId
from heirlog.raft.snapshot_retention import shorten
from heirlog.raft.snapshot_store import SnapshotStore
from heirlog.raft.snapshot_writer import SnapshotWriter
from heirlog.raft.voter_history import RemovedVoter, VoterHistory
from heirlog.storage.atomic import OnDurable
from heirlog.storage.config import LogConfig
from heirlog.storage.epochs import UNDEFINED_EPOCH
from heirlog.storage.errors import DamagedLog
from heirlog.storage.log import Log
from heirlog.storage.log_listener import LogListener
from heirlog.storage.log_loader import load_log
from heirlog.storage.recovery import LastStop, at_once

SCAN_BYTES = 1 << 20


class MetadataLogLost(Exception):
    """The log on disk cannot be used; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class MetadataLogConfig:
    segment_bytes: int = 1024 * 1024 * 1024
    """metadata.log.segment.bytes"""
    segment_ms: int = 7 * 24 * 3_600_000
    """metadata.log.segment.ms"""
    max_retention_bytes: int = 100 * 1024 * 1024
    """metadata.max.retention.bytes, of the log and its snapshots together; -1: no limit"""
    max_retention_ms: int = 7 * 24 * 3_600_000
    """metadata.max.retention.ms; -1: no limit"""

    def log_config(self) -> LogConfig:
        return LogConfig(
            segment_bytes=self.segment_bytes,
            segment_ms=self.segment_ms,
            retention_ms=-1,
            retention_bytes=-1,
            max_message_bytes=2**31 - 1,
            delete_enabled=True,
            file_delete_delay_ms=0,
        )


@dataclass(frozen=True, slots=True)
class CommittedBatchBytes:
    """A batch of this log that is known to be committed."""

    before: Position
    """Its base offset, and the epoch of the record below it."""
    end_offset: int
    data: bytes


@dataclass(slots=True)
class MetadataLog:
    """Open with `open_log`."""

    env: Env
    directory: str
    log: Log
    config: MetadataLogConfig
    loaded: Snapshot | None
    """The snapshot to load at start; None once it was delivered, or if there is none."""
    store: SnapshotStore
    _committed: CommittedOffsetFile
    _on_failure: Callable[[OSError], None]
    _voter_history: VoterHistory = field(default_factory=VoterHistory)
    _static_voters: tuple[Voter, ...] = ()
    _writer: SnapshotWriter | None = field(default=None)

    @property
    def snapshots(self) -> list[SnapshotId]:
        """Oldest first, the bootstrap one included."""
        return self.store.ids

    @property
    def voters(self) -> tuple[Voter, ...]:
        """The newest set named by a snapshot or by the log, committed or not (KIP-853); else the configured one."""
        return self._voter_history.latest

    @property
    def kraft_version(self) -> int:
        """The level in force, committed or not."""
        return kraft_version_of(self.voters)

    @property
    def voters_offset(self) -> int:
        """Offset of the batch that names `voters`; -1 if it is a snapshot or the bootstrap checkpoint."""
        return self._voter_history.latest_offset

    def removed_voter(self, key: ReplicaKey) -> RemovedVoter | None:
        """Where the log has removed the voter; None if it is in `voters`, or in no set that is known."""
        return self._voter_history.removed(key)

    @property
    def start_offset(self) -> int:
        return self.log.log_start_offset

    @property
    def end_offset(self) -> int:
        return self.log.log_end_offset

    @property
    def flushed_offset(self) -> int:
        return self.log.flushed_offset

    @property
    def end(self) -> Position:
        """The end offset and the epoch of the last record, in the log or, if that is empty, in the snapshot."""
        end_offset, epoch = self.log.log_end_offset, self.log.epochs.latest
        if epoch < 0:
            epoch = next((i.epoch for i in reversed(self.snapshots) if i.end_offset == end_offset), 0)
        return Position(end_offset, epoch)

    @property
    def committed_offset(self) -> int:
        """Exclusive: all records below it are known to be committed, perhaps by an earlier incarnation."""
        return max(self._committed.offset, self.snapshots[-1].end_offset if self.snapshots else 0)

    def may_lack_flushed(self) -> str | None:
        """At the start: why the log may lack records that were committed and flushed here; None: it does not."""
        flushed = read_flushed_offset(self.env.files, self.directory)
        if flushed is None:
            return f"{COMMITTED_OFFSET_FILE} cannot be read, which says how far it must reach"
        if self.end_offset < flushed:
            return f"it ends at offset {self.end_offset}; records up to {flushed} were committed and flushed"
        return None

    def committed_to(self, offset: int) -> None:
        self._committed.advance(offset)

    def remember_committed(self, changed_offset: int, on_durable: OnDurable) -> None:
        """Write `committed_offset` to disk soon; records from `changed_offset` on change nothing."""
        self._committed.remember(changed_offset, on_durable)

    def finish(self, on_done: OnDurable) -> None:
        """Before a stop: make the log and the committed offset durable."""
        self.flush(lambda error: self._committed.finish(on_done) if error is None else on_done(error))

    def epoch_below(self, offset: int) -> int:
        """The epoch of the last record below `offset`, from the log or a snapshot; 0 if unknown."""
        known = next((s.epoch for s in reversed(self.snapshots) if s.end_offset <= offset), 0)
        in_log = self._epoch_of(min(offset, self.end_offset) - 1) if offset > self.start_offset else None
        return max(known, in_log or 0)

    def last_committed_batch(self) -> CommittedBatchBytes | None:
        """The last batch of the log that ends at or below `committed_offset`. Raises OSError, InvalidBatch.

        None: the log has none; a snapshot does not have the batches as the leader wrote them.
        """
        committed = min(self.committed_offset, self.end_offset)
        if committed <= self.start_offset:
            return None
        try:
            data = memoryview(self.read_bytes(committed - 1, 1, self.end_offset))
        except DamagedLog as error:
            raise InvalidBatch(str(error)) from error
        position, header = next(walk(data), (0, None))
        if header is None or not crc_matches(data, position, header):
            raise InvalidBatch(f"the batch with offset {committed - 1} cannot be read back as it was written")
        if header.base_offset < self.start_offset or header.next_offset > committed:
            return None
        return CommittedBatchBytes(
            Position(header.base_offset, self.epoch_below(header.base_offset)),
            header.next_offset,
            bytes(data[: header.size]),
        )

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """(epoch, its end): the largest epoch in the log that is not above the one asked for."""
        end = self.end
        if epoch >= end.epoch:
            return (end.epoch, end.offset) if epoch == end.epoch else (-1, -1)
        return self.log.end_offset_for_epoch(epoch)

    def append(self, batches: Buffer, epoch: int) -> None:
        """Batches that continue the log, with their offsets and epochs (none above `epoch`).

        Raises LogError, and then the log is unchanged.
        """
        view = memoryview(batches)
        self.log.append_as_follower(view, epoch)
        self._learn_voters(view)

    def read(self, offset: int, max_bytes: int, upto_offset: int) -> list[Region]:
        """Whole batches, at least one if there is one. Raises OffsetOutsideLog."""
        return self.log.read(offset, max_bytes, upto_offset).regions

    def read_failed(self, error: OSError) -> None:
        """A request could not be read from the disk: notify the owner of the log, as for a failed flush."""
        self._on_failure(error)

    def read_bytes(self, offset: int, max_bytes: int, upto_offset: int) -> bytes:
        return bytes(records_view(list(self.read(offset, max_bytes, upto_offset))))

    def flush(self, on_flushed: OnDurable) -> None:
        """Make everything appended so far durable. If the log had failed before, `on_flushed` gets that error."""
        try:
            self.log.flush(on_flushed)
        except OSError as error:
            failure = error
            self.env.call_later(0, lambda: on_flushed(failure))

    def truncate_to(self, offset: int) -> None:
        self.log.truncate_to(offset)
        self._voter_history.truncate_to(self.end_offset)

    def scan_voters(self) -> None:
        """Read the voter sets that the log names after the snapshot that was loaded, which has those before."""
        offset = self.loaded.id.end_offset if self.loaded else self.start_offset
        while offset < self.end_offset:
            data = self.read_bytes(offset, SCAN_BYTES, self.end_offset)
            self._learn_voters(memoryview(data))
            for _, header in walk(data):
                offset = header.next_offset

    def _learn_voters(self, batches: memoryview) -> None:
        for position, header in walk(batches):
            if header.is_control:
                for record in decode_controls(batches, position):
                    if isinstance(record, VotersRecord) and header.base_offset > self.voters_offset:
                        self._voter_history.add(header.base_offset, read_voters(record))

    # snapshots

    def write_snapshot(self, records: Iterable[Message], snapshot_id: SnapshotId, on_done: OnDurable) -> bool:
        """Write the state at `snapshot_id`, which is committed; `records` are read over several turns.

        False if a snapshot is being written, or if this one or a newer one exists. Raises OSError, and ValueError if
        the log has no batch that ends there, or another epoch: the next start would reject the log.
        """
        if self._writer is not None or (self.snapshots and snapshot_id <= self.snapshots[-1]):
            return False
        last = self._last_batch_below(snapshot_id.end_offset)
        if last.leader_epoch != snapshot_id.epoch:
            raise ValueError(f"the record below offset {snapshot_id.end_offset} is not of epoch {snapshot_id.epoch}")
        # a newer set may not be committed
        voters = self._voter_history.at(snapshot_id.end_offset)

        def written(error: OSError | None) -> None:
            self._writer = None
            if error is None:
                self.store.add(snapshot_id)
            on_done(error)

        batches = snapshot.encode(records, snapshot_id.epoch, last.max_timestamp, voters)
        self._writer = SnapshotWriter(self.env, self.directory, snapshot_id, batches, written)
        self._writer.start()
        return True

    def stop_writing_snapshot(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _last_batch_below(self, end_offset: int) -> BatchHeader:
        """The header of the batch that ends at `end_offset`. Raises ValueError if none does."""
        if self.start_offset < end_offset <= self.end_offset:
            region = self.read(end_offset - 1, 1, self.end_offset)[0]
            header = read_header(region.file.pread(HEADER_SIZE, region.position))
            if header.next_offset == end_offset:
                return header
        raise ValueError(f"no batch of the metadata log ends at offset {end_offset}")

    def _epoch_of(self, offset: int) -> int | None:
        epoch = self.log.epochs.epoch_for_offset(offset)
        return None if epoch == UNDEFINED_EPOCH else epoch

    def install_snapshot(self, downloaded: Snapshot) -> None:
        """Restart the log at the end of a snapshot that is durable under its name."""
        self.stop_writing_snapshot()
        self.store.add(downloaded.id)
        self.log.truncate_fully_and_start_at(downloaded.id.end_offset)
        self._voter_history = VoterHistory(downloaded.voters or self._static_voters)
        self.store.remove_below(downloaded.id.end_offset)

    # retention

    def shorten(self, high_watermark: int) -> None:
        """Remove the snapshots, and the log before them, that need not be kept. Raises OSError."""
        config = self.config
        shorten(self, high_watermark, config.max_retention_bytes, config.max_retention_ms, self.env.wall_ms())

    def size_with_snapshots(self) -> int:
        return self.log.size_bytes + self.store.size_bytes()

    def last_contained_ms(self, snapshot_id: SnapshotId) -> int:
        return self.store.last_contained_ms(snapshot_id)

    def start_at_snapshot(self, snapshot_id: SnapshotId) -> None:
        end_offset = snapshot_id.end_offset
        self.log.increment_log_start(end_offset)
        self._voter_history.trim_to(end_offset)
        self.log.delete_old_segments(self.env.wall_ms(), end_offset)
        self.store.remove_below(end_offset)

    def close(self) -> None:
        self.stop_writing_snapshot()
        self.store.close()
        self.log.close()
        self._committed.close()


def open_log(
    env: Env,
    directory: str,
    config: MetadataLogConfig,
    on_failure: Callable[[OSError], None] = lambda error: None,
    static_voters: tuple[Voter, ...] = (),
) -> MetadataLog:
    """Create or recover the log in `directory`. Raises OSError, StorageFormatError or MetadataLogLost.

    on_failure: called when the disk has failed in the background, or for a reader.
    static_voters: those of the configuration, without directory ids; in force while the log names none.
    """
    files = env.files
    files.mkdirs(directory)
    _remove_leftovers(files, directory)
    snapshots = snapshot.list_snapshots(files, directory)
    loaded, damaged = _newest_loadable(env, directory, snapshots)
    snapshots = [s for s in snapshots if s not in damaged]
    base = loaded.id.end_offset if loaded else 0
    log = at_once(
        load_log(
            files,
            directory,
            METADATA_TOPIC,
            0,
            config.log_config(),
            LastStop(recovery_point=base),
            wall_ms=env.wall_ms(),
            listener=LogListener(on_failure=on_failure),
        )
    )
    if log.cut_bytes:
        env.log("error", "metadata-log-cut-by-recovery", end_offset=log.log_end_offset, bytes=log.cut_bytes)
    log.set_topic_id(METADATA_TOPIC_ID)
    if loaded is not None and not _continues(log, loaded.id):
        # the node crashed after a downloaded snapshot was durable, and before the log that restarted at its end was
        env.log("warning", "metadata-log-replaced", snapshot=loaded.id.file_name, end_offset=log.log_end_offset)
        log.truncate_fully_and_start_at(base)
    if log.log_start_offset > base:
        raise MetadataLogLost(
            f"the metadata log in {directory} starts at offset {log.log_start_offset} and no readable snapshot reaches "
            f"that far{_naming(damaged)}: delete the directory's contents so that this node fetches everything again, "
            "or, if it is the only controller, move it away and run `heirlog recover controller "
            "--config <server.properties> --from <broker-log-dir>`"
        )
    store = SnapshotStore(env, directory, snapshots, on_failure)
    opened = MetadataLog(
        env,
        directory,
        log,
        config,
        loaded,
        store,
        CommittedOffsetFile(env, directory, lambda: log.flushed_offset),
        on_failure,
        VoterHistory((loaded.voters if loaded else ()) or static_voters),
        static_voters,
    )
    store.remove_below(log.log_start_offset)
    opened.scan_voters()
    return opened


def _continues(log: Log, snapshot_id: SnapshotId) -> bool:
    """Whether the log has the last records of the snapshot, or starts at its end."""
    if log.log_end_offset < snapshot_id.end_offset:
        return False
    if snapshot_id == BOOTSTRAP or log.log_start_offset >= snapshot_id.end_offset:
        return True
    epoch, end_offset = log.end_offset_for_epoch(snapshot_id.epoch)
    return epoch == snapshot_id.epoch and end_offset >= snapshot_id.end_offset


def _newest_loadable(env: Env, directory: str, snapshots: list[SnapshotId]) -> tuple[Snapshot | None, list[SnapshotId]]:
    damaged: list[SnapshotId] = []
    for snapshot_id in reversed(snapshots):
        try:
            return snapshot.load(env.files, directory, snapshot_id), damaged
        except InvalidSnapshot as error:
            damaged.append(snapshot_id)
            env.log("error", "metadata-snapshot-damaged", file=snapshot_id.file_name, reason=str(error))
    return None, damaged


def _naming(damaged: list[SnapshotId]) -> str:
    if not damaged:
        return ""
    return " (damaged: " + ", ".join(snapshot_id.file_name for snapshot_id in damaged) + ")"


def _remove_leftovers(files: Files, directory: str) -> None:
    """Remove unfinished files of the previous incarnation, which nothing uses."""
    for name in files.list(directory):
        if name.endswith((snapshot.PART, ".checkpoint.deleted", ".checkpoint.tmp")):
            files.unlink(f"{directory}/{name}")
