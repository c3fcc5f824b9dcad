"""One partition's log: record batches in segments, from the log start offset to the log end offset.

Who may do what:

* a leader appends a producer's batch: validated, given offset and epoch in place, written at once (`append_as_leader`);
  and the markers with which a coordinator ends transactions (`append_marker`)
* a follower, and the metadata log, append batches that have both already (`append_as_follower`)
* every caller reads whole batches, out of one segment at a time (`read`, and for clients `read_for_client`)
* a follower truncates at the end, retention deletes at the start, the log cleaner replaces segments between (`swaps`)

An append enters its epoch before its bytes, so that a failed write leaves at most an epoch without records.

Truncation cuts at a batch boundary, in this order: a swap of the log cleaner is settled, the recovery point is lowered,
epochs are removed, segments are unlinked or cut, producers are rebuilt. With another order recovery could bring back
what was cut, or trust what is written there next.

Its parts: `log_segments.py`, `log_flusher.py` (what is durable), `log_failure.py` (no flush after a failed one),
`segment_check.py` (what is damaged), `partition_directory.py`, `epochs.py`, `producers.py`,
`cleaning/segment_swaps.py`. `log_loader.py` opens a log.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from heirlog.env import Buffer, Region
from heirlog.protocol.batch import (
    CONTROL,
    NO_TIMESTAMP,
    BatchHeader,
    InvalidBatch,
    crc_matches,
    read_header,
    rewrite,
    rewrite_as_log_append_time,
    walk,
)
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.transaction_marker import TransactionMarker, encode_marker, read_marker
from heirlog.protocol.types import Uuid
from heirlog.storage import segment_check
from heirlog.storage.cleaning.records import continued_at, end_of_empty
from heirlog.storage.cleaning.segment_swaps import SegmentSwaps
from heirlog.storage.config import NEVER, LogConfig
from heirlog.storage.epochs import LeaderEpochCache
from heirlog.storage.errors import DamagedLog, LogError, OffsetOutsideLog, UnexpectedAppendOffset
from heirlog.storage.flushing import OnFlushed
from heirlog.storage.log_failure import LogFailure
from heirlog.storage.log_flusher import LogFlusher
from heirlog.storage.log_listener import LogListener
from heirlog.storage.log_segments import LogSegments
from heirlog.storage.partition_directory import PartitionDirectory
from heirlog.storage.producers import ProducerStateManager, remove_snapshots, snapshot_offsets, write_snapshot
from heirlog.storage.recompression import recompressed
from heirlog.storage.recovery import Loaded, at_once, rebuild_producers
from heirlog.storage.retention import SegmentDeletion, count_deletable
from heirlog.storage.segment import Segment
from heirlog.storage.timestamps import TimestampOffset, first_at_or_after, largest
from heirlog.storage.transaction_index import AbortedTransaction
from heirlog.storage.validation import check_client_batch
from heirlog.storage.verification import VerificationGuard


class LogAppendInfo(NamedTuple):
    first_offset: int
    last_offset: int
    append_time_ms: int
    """-1 unless the topic's timestamps are those of the append; of a duplicate, the original's timestamp."""
    log_start_offset: int
    duplicate: bool


class FetchDataInfo(NamedTuple):
    regions: list[Region]
    """Whole batches, valid as `Region` says."""
    size: int


_NOTHING = FetchDataInfo([], 0)


class LogParts(NamedTuple):
    """The parts of a log, loaded and ready."""

    directory: PartitionDirectory
    segments: LogSegments
    epochs: LeaderEpochCache
    producers: ProducerStateManager
    flusher: LogFlusher
    failure: LogFailure


class Log:
    """Open with `log_loader.load_log`."""

    def __init__(
        self,
        topic: str,
        partition: int,
        config: LogConfig,
        loaded: Loaded,
        parts: LogParts,
        listener: LogListener,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.config = config
        """May be replaced at any time."""
        self.log_start_offset = loaded.log_start_offset
        self.log_end_offset = loaded.log_end_offset
        self.scanned_from = loaded.scanned_from
        """Offset from which on every batch was read when the log was opened; the log end after a clean stop."""
        self.cut_bytes = loaded.cut_bytes
        """Bytes that recovery removed when the log was opened."""
        self.may_lack_records = loaded.cut_bytes > 0
        """Records that were committed may be gone from this log, and no leader has decided since (`boot_mark.py`)."""
        self.epochs = parts.epochs
        self.producers = parts.producers
        self.failure = parts.failure
        self.swaps = SegmentSwaps(parts.directory, parts.segments)
        self.first_dirty_offset = 0
        """The log cleaner has compacted everything below this offset."""
        self.cut_count = 0
        """Rises when segments are cut or removed: work that goes through them in steps has to restart."""
        self._directory = parts.directory
        self._segments = parts.segments
        self._flusher = parts.flusher
        self._listener = listener
        self._as_stopped: tuple[int, int, int] | None = None
        """`_version` of what a clean stop has left on disk; None: unknown."""
        self._deletion = SegmentDeletion(parts.directory.files, parts.directory.path, parts.failure.background_done)

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"

    @property
    def dir_path(self) -> str:
        return self._directory.path

    @property
    def topic_id(self) -> Uuid | None:
        """From `partition.metadata`; None if it was never set."""
        return self._directory.topic_id

    def set_topic_id(self, topic_id: Uuid) -> None:
        """Raises OSError, and StorageFormatError if the directory belongs to another topic id."""
        self._directory.set_topic_id(topic_id, self.failure.background_done)

    @property
    def segments(self) -> list[Segment]:
        """From the oldest to the active one; not to be changed."""
        return self._segments.all

    @property
    def segment_count(self) -> int:
        return len(self._segments.all)

    @property
    def size_bytes(self) -> int:
        return self._segments.size_bytes

    # appending

    def append_as_leader(
        self,
        records: bytearray | memoryview,
        leader_epoch: int,
        wall_ms: int,
        guard: VerificationGuard | None = None,
        *,
        of_coordinator: bool = False,
    ) -> LogAppendInfo:
        """Append one producer's batch; offset and epoch are written into `records`.

        guard: what allows a transactional batch to begin a transaction here (`verification.py`). of_coordinator: a
        coordinator writes its state; the sequences of such batches mean nothing. Raises LogError or InvalidBatch with
        Kafka's code, or OSError; nothing was appended then.
        """
        if self.failure.error is not None:
            raise self.failure.error
        config = self.config
        header = check_client_batch(records, config, wall_ms)
        if of_coordinator and header.producer_id >= 0:
            self.producers.check_offsets(header, guard)
        elif header.producer_id >= 0:
            original = self.producers.check(header, guard=guard)
            if original is not None:
                return LogAppendInfo(
                    original.base_offset, original.last_offset, original.timestamp_ms, self.log_start_offset, True
                )
        if config.compression is not None and config.compression != header.compression:
            records, header = recompressed(records, header, config.compression, config)
        first = self.log_end_offset
        rewrite(records, 0, first, leader_epoch)
        append_time_ms = NO_TIMESTAMP
        max_timestamp = header.max_timestamp
        if config.log_append_time:
            rewrite_as_log_append_time(records, 0, header, wall_ms)
            append_time_ms = max_timestamp = wall_ms
        self._append(records, [header.stored_at(first, leader_epoch, max_timestamp)], wall_ms)
        return LogAppendInfo(first, self.log_end_offset - 1, append_time_ms, self.log_start_offset, False)

    def append_marker(
        self,
        marker: TransactionMarker,
        producer_id: int,
        producer_epoch: int,
        transaction_version: int,
        leader_epoch: int,
        wall_ms: int,
    ) -> LogAppendInfo:
        """Append a coordinator's transaction marker, also if the producer has no open transaction here.

        Raises LogError INVALID_PRODUCER_EPOCH or TRANSACTION_COORDINATOR_FENCED (`producers.py`), or OSError; nothing
        was appended then.
        """
        if self.failure.error is not None:
            raise self.failure.error
        self.producers.check_marker(marker, producer_id, producer_epoch, transaction_version)
        first = self.log_end_offset
        batch = encode_marker(marker, producer_id, producer_epoch, first, leader_epoch, wall_ms)
        self._append(batch, [read_header(batch)], wall_ms)
        return LogAppendInfo(first, first, NO_TIMESTAMP, self.log_start_offset, False)

    def append_as_follower(self, records: Buffer, max_epoch: int) -> None:
        """Append batches that have their offsets and epochs and continue this log.

        A batch cut off at the end, and everything from the first batch of an epoch above `max_epoch` on, is left out:
        it belongs to a leader that this follower has not checked its log against (KAFKA-18723). Raises
        UnexpectedAppendOffset, LogError (CRC, epoch), InvalidBatch or OSError; nothing was appended then.
        """
        if self.failure.error is not None:
            raise self.failure.error
        expected = self.log_end_offset
        headers: list[BatchHeader] = []
        end = 0
        leader_epoch = self.epochs.epoch_for_offset(expected - 1)
        for position, header in walk(records, partial_tail=True):
            if header.leader_epoch > max_epoch:
                break
            if header.base_offset != expected:
                if header.base_offset < expected <= header.last_offset and header.is_filler and not headers:
                    self.append_as_follower(continued_at(records, header, expected), max_epoch)
                    return
                raise UnexpectedAppendOffset(str(self), expected, header.base_offset)
            if not crc_matches(records, position, header):
                raise LogError(
                    ErrorCode.CORRUPT_MESSAGE, f"the CRC of the batch at offset {expected} of {self} does not match"
                )
            if header.leader_epoch < leader_epoch:
                # no CRC covers the epoch: appended, it would hide where this log diverges from others
                raise LogError(
                    ErrorCode.CORRUPT_MESSAGE,
                    f"the batch at offset {expected} of {self} is of leader epoch {header.leader_epoch}, after one of "
                    f"epoch {leader_epoch}",
                )
            headers.append(header)
            leader_epoch = header.leader_epoch
            expected, end = header.next_offset, position + header.size
        if headers:
            self._append(memoryview(records)[:end], headers, None)

    def _append(self, data: Buffer, headers: list[BatchHeader], wall_ms: int | None) -> None:
        config = self.config
        last = headers[-1]
        next_offset = last.base_offset + last.last_offset_delta + 1
        active = self._segments.active
        max_timestamp = last.max_timestamp if len(headers) == 1 else max(header.max_timestamp for header in headers)
        # a follower's segments are rolled in record time; in wall time by `maybe_roll`
        now_ms = active.created_ms if wall_ms is None else wall_ms
        if active.must_roll(len(data), max_timestamp, next_offset - 1, now_ms, config):
            self.roll()
            active = self._segments.active
        epochs = self.epochs
        if last.leader_epoch > epochs.latest:  # they never go down
            for header in headers:
                if header.leader_epoch > epochs.latest:
                    epochs.assign(header.leader_epoch, header.base_offset)
        active.append(data, headers, config.index_interval_bytes)
        self.log_end_offset = next_offset
        for header in headers:
            if header.producer_id >= 0:
                if header.attributes & CONTROL:
                    self._end_transaction(header)
                else:
                    self.producers.update(header)

    def _end_transaction(self, header: BatchHeader) -> None:
        active = self._segments.active
        marker = read_marker(active.read_batch(active.position_of(header.base_offset)), header)
        aborted = None if marker is None else self.producers.end_transaction(marker, header)
        if aborted is not None:
            self._segments.index_aborted(aborted)

    # reading

    def read(
        self, offset: int, max_bytes: int, upto_offset: int, min_one: bool = True, *, as_it_is: bool = False
    ) -> FetchDataInfo:
        """Whole batches, from the one that holds `offset` to at most `upto_offset`, out of one segment.

        `min_one`: the first batch comes even if it is larger than `max_bytes` (KIP-74). Raises OffsetOutsideLog, and
        DamagedLog if these bytes are read for the first time and are not what was written. as_it_is: for a reader that
        can skip what is damaged. It is raised only if the file is not a row of batches there.
        """
        if offset < self.log_start_offset or offset > self.log_end_offset:
            raise OffsetOutsideLog(str(self), offset, self.log_start_offset, self.log_end_offset)
        if upto_offset > self.log_end_offset:
            upto_offset = self.log_end_offset
        if offset >= upto_offset:
            return _NOTHING
        segment = self._segments.active
        segment_end = self.log_end_offset
        if offset < segment.base_offset:
            segment, segment_end = self._segments.closed_at(offset)
        try:
            return self._read(segment, offset, max_bytes, upto_offset, segment_end, min_one, as_it_is)
        except (InvalidBatch, DamagedLog) as error:
            return self._read_by_new_indexes(
                segment, error, offset, max_bytes, upto_offset, segment_end, min_one, as_it_is
            )

    def _read(
        self,
        segment: Segment,
        offset: int,
        max_bytes: int,
        upto_offset: int,
        segment_end: int,
        min_one: bool,
        as_it_is: bool,
    ) -> FetchDataInfo:
        start, size = segment.position_of(offset), segment.size
        if start >= size:
            # the log goes beyond `offset`, and no batch holds it
            raise segment_check.damage(segment)
        end = size if upto_offset >= segment_end else segment.position_of(upto_offset)
        if end - start > max_bytes:
            end = segment.boundary_at(start, start + max_bytes)
            if end == start and min_one:
                end = segment.end_of_batch(start)
        if end <= start:
            # the batch that holds `offset` holds `upto_offset` too, or it is damaged and only says so
            if start < segment.unchecked.end:
                segment_check.check(segment, offset, start, start + 1, self.epochs)
            return _NOTHING
        if start < segment.unchecked.end and not as_it_is:
            segment_check.check(segment, offset, start, end, self.epochs)
        return FetchDataInfo([Region(segment.log, start, end - start)], end - start)

    def _read_by_new_indexes(self, segment: Segment, error: Exception, *how: Any) -> FetchDataInfo:
        """The bytes that were found are no batches: either the index points elsewhere, or the log is damaged."""
        try:
            segment.distrust_indexes()
            return self._read(segment, *how)
        except InvalidBatch:
            if isinstance(error, DamagedLog):
                raise error from None
            raise segment_check.damage(segment) from error

    def read_for_client(self, offset: int, max_bytes: int, upto_offset: int, min_one: bool = True) -> FetchDataInfo:
        """As `read`, but never batches without records (the log cleaner's) alone where records follow them.

        To clients a batch without records is rare: kafkajs takes it for the end of the log and asks for the same offset
        again, for ever.
        """
        first = found = self.read(offset, max_bytes, upto_offset, min_one)
        while found.size and (behind := end_of_empty(found.regions[0])) is not None:
            found = self.read(behind, max_bytes, upto_offset, min_one)
        return found if found.size else first

    def aborted_transactions(self, from_offset: int, upto_offset: int) -> list[AbortedTransaction]:
        """Those with records from `from_offset` on and below `upto_offset`. Raises InvalidBatch, OSError."""
        return self._segments.aborted(from_offset, upto_offset)

    def aborted_in(self, from_offset: int, found: FetchDataInfo, upto_offset: int) -> list[AbortedTransaction]:
        """Every aborted transaction that has records in the result of a read from `from_offset` to `upto_offset`.

        Some may have their records after it. Raises InvalidBatch, OSError.
        """
        return self._segments.aborted_in(from_offset, found.regions[0], upto_offset)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """(epoch, end offset) of the largest epoch not above the one asked for, or (-1, -1): see `epochs.py`."""
        return self.epochs.end_offset_for(epoch, self.log_end_offset)

    def offset_for_timestamp(self, timestamp_ms: int, upto_offset: int) -> TimestampOffset | None:
        """The first record at or after a time, below `upto_offset`; None if there is none."""
        return first_at_or_after(self._segments.all, timestamp_ms, self.log_start_offset, upto_offset)

    def max_timestamp_offset(self, upto_offset: int) -> TimestampOffset | None:
        """The first record with the largest timestamp in the batches below `upto_offset` (KIP-734)."""
        return largest(self._segments.all, self.log_start_offset, min(upto_offset, self.log_end_offset))

    # rolling

    def maybe_roll(self, wall_ms: int) -> None:
        """Close the active segment if it has been filled for segment.ms. Raises OSError."""
        if self._segments.active.must_roll(0, NO_TIMESTAMP, self.log_end_offset, wall_ms, self.config):
            self.roll()

    def roll(self) -> None:
        """Start a new segment at the log end; the old one is flushed in the background. Raises OSError."""
        self.failure.check()
        closed = self._segments.active
        if closed.base_offset == self.log_end_offset:
            return
        # what is on disk for a segment that is complete, and what the next loading starts from
        self._flusher.add_index_files(closed.write_sparse_indexes())
        self._write_snapshot()
        self._segments.add(Segment.create(self._directory.files, self.dir_path, self.log_end_offset))
        closed.retire()
        self._directory.changed()
        self.flush(self.failure.background_done)

    def _write_snapshot(self) -> None:
        write_snapshot(
            self._directory.files, self.dir_path, self.log_end_offset, self.producers, self.failure.background_done
        )

    # truncating

    def truncate_to(self, offset: int) -> None:
        """Remove everything from the batch that holds `offset` on. At or above the log end no record is removed.

        Raises OSError; recovery repairs what is left incomplete.
        """
        if offset >= self.log_end_offset:
            # a leader that appended nothing has an epoch that begins at its end and that no other replica knows: if it
            # was kept, the log would diverge from the next leader's forever
            self.epochs.truncate_from_end(self.log_end_offset)
            return
        if offset <= self.log_start_offset:
            self.truncate_fully_and_start_at(max(offset, 0))
            return
        place = self._segments.place_of(offset)
        segment = self._segments.all[place]
        # a batch is in one segment, so that of the offset never begins before this segment
        position = segment.position_of(offset)
        cut_at = segment.header_at(position).base_offset
        if cut_at < self.log_start_offset:
            self.truncate_fully_and_start_at(self.log_start_offset)
            return
        self._before_cut(cut_at)
        self._flusher.lower_to(segment.base_offset if segment.aborts_from(cut_at) else cut_at)
        self.epochs.truncate_from_end(cut_at)
        self._segments.drop_from(place + 1)
        segment.truncate_to(position, cut_at)
        self.log_end_offset = cut_at
        self.producers = at_once(
            rebuild_producers(
                self._directory.files, self.dir_path, self._segments.all, cut_at, cut_at, trust_absence=False
            )
        )
        self._directory.changed()
        self._flush(self.failure.background_done, may_remove_aborted=False)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Restart, empty, at `offset`. Raises OSError."""
        self._before_cut(0)
        self._flusher.lower_to(offset)
        self.epochs.clear()
        self._segments.drop_from(0)
        self._deletion.delete_now()
        remove_snapshots(self._directory.files, self.dir_path, lambda _: True)
        self.producers = ProducerStateManager()
        self._segments.add(Segment.create(self._directory.files, self.dir_path, offset))
        self.log_start_offset = self.log_end_offset = offset
        self._flusher.restart_at(offset)
        self._directory.changed()
        self.flush(self.failure.background_done)

    def _before_cut(self, first_dirty_at_most: int) -> None:
        """Segments are about to be cut or removed: the log cleaner's swap must not bring them back."""
        self.first_dirty_offset = min(self.first_dirty_offset, first_dirty_at_most)
        self.cut_count += 1
        self.swaps.settle()

    # the log start

    def increment_log_start(self, offset: int) -> None:
        """Records below `offset` are no longer readable; the next retention pass deletes their segments.

        Nothing happens below the current start. Raises OffsetOutsideLog above the log end, and OSError.
        """
        if offset > self.log_end_offset:
            raise OffsetOutsideLog(str(self), offset, self.log_start_offset, self.log_end_offset)
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            self.epochs.truncate_from_start(offset)
            if (topic_id := self.topic_id) is not None:
                self._listener.on_start_moved((topic_id, self.partition))

    def delete_old_segments(self, wall_ms: int, high_watermark: int) -> int:
        """Delete what retention.ms, retention.bytes or the log start offset no longer keep; how many segments.

        Only whole segments below the high watermark; the active one only after a roll. Raises OSError.
        """
        count = count_deletable(
            self._segments.all, self.config, wall_ms, high_watermark, self.log_start_offset, self.log_end_offset
        )
        if count == len(self._segments.all):
            self.roll()
        if not count:
            return 0
        self._before_cut(self.first_dirty_offset)
        removed = self._segments.remove_oldest(count)
        first_offset = self._segments.all[0].base_offset
        self.increment_log_start(max(self.log_start_offset, first_offset))
        self._deletion.dispose(removed, first_offset)
        return count

    # flushing, closing

    @property
    def recovery_point(self) -> int:
        """Everything below this offset is flushed."""
        return self._flusher.recovery_point

    @property
    def flushed_offset(self) -> int:
        return self._flusher.recovery_point

    def needs_flush(self, wall_ms: int) -> bool:
        """Whether a flush is due. Ask after appends, from time to time, and when a flush has ended."""
        config = self.config
        if config.flush_messages == config.flush_ms == NEVER:
            return False
        return self._flusher.needs_flush(self.log_end_offset, config, wall_ms)

    def has_damage(self, error: DamagedLog) -> bool:
        """Whether what was found there is still in the log: retention or a truncation may have removed it."""
        return any(
            segment.base_offset == error.base_offset and segment_check.has_damage(segment, error.position)
            for segment in self.segments
        )

    def segment_end(self, offset: int) -> int:
        """The offset at which the segment after that of `offset` begins; in the last one, the log's end."""
        in_last = offset >= self._segments.active.base_offset
        return self.log_end_offset if in_last else self._segments.closed_at(offset)[1]

    def distrust(self, offset: int) -> None:
        """Damaged records were found in the segment that begins there: the next start has to read it."""
        self._flusher.distrust(offset)

    def flush(self, on_flushed: OnFlushed) -> None:
        """Make everything appended so far durable; `on_flushed(None)` is called after the recovery point moved.

        Raises OSError if the log has failed. `on_flushed` is not called if the log was closed or deleted meanwhile.
        """
        self._flush(on_flushed, may_remove_aborted=self._flusher.is_idle)

    def _flush(self, on_flushed: OnFlushed, *, may_remove_aborted: bool) -> None:
        self.failure.check()
        written, unwritten_from = self._segments.write_aborted(may_remove=may_remove_aborted)
        if written:
            self._flusher.add_index_files(written)
            self._directory.changed()
        upto_offset = self.log_end_offset if unwritten_from is None else unwritten_from
        self._flusher.flush(upto_offset, on_flushed)

    @property
    def _version(self) -> tuple[int, int, int]:
        """Another one whenever records, or the segments they are in, have changed."""
        return self.log_end_offset, self.cut_count, self._segments.changes

    def trust_stop(self) -> None:
        """On disk is, durably, what `finish` leaves."""
        self._as_stopped = self._version

    def distrust_stop(self) -> None:
        """That is not certain."""
        self._as_stopped = None

    @property
    def has_nothing_to_finish(self) -> bool:
        """Whether `finish` would write what is there already: the log is as the last clean stop has left it."""
        return (
            self._as_stopped == self._version
            and self.failure.error is None
            and self.swaps.is_idle
            and self._flusher.is_idle
            and not self._flusher.has_index_files
            and not any(segment.indexes_rebuilt for segment in self._segments.all)
            # of a log that was emptied, the newest epoch is all that is known (`broker/replica_log_info.py`)
            and self.epochs.lacks_no_records(self.log_end_offset)
            and (self.epochs.durable or self.log_start_offset < self.log_end_offset or not self.log_end_offset)
            and self._directory.durable
        )

    def finish(self, on_flushed: OnFlushed) -> None:
        """Before a clean stop: write indexes and the producer snapshot, then flush everything. Raises OSError."""
        self.cut_count += 1
        self.swaps.settle()
        active = self._segments.active
        for segment in self._segments.all:
            # what a start or a read has rebuilt was not flushed
            if segment.indexes_rebuilt or (segment is active and (active.size or active.has_index_files)):
                self._flusher.add_index_files(segment.write_sparse_indexes())
                self._directory.changed()
        # without one the next start takes it that there are no producers, if it finds no older one
        if self.producers.producers or snapshot_offsets(self._directory.files, self.dir_path):
            self._write_snapshot()
            self._directory.changed()
        self._flush(on_flushed, may_remove_aborted=True)

    def flush_and_close(self, on_done: OnFlushed) -> None:
        """Of a detached log: make its records durable, wherever its directory is by now, then close the files."""

        def flushed(error: OSError | None) -> None:
            self.close()
            on_done(error)

        self._flusher.flush_detached(flushed)

    def close(self) -> None:
        """Close the files. Writes nothing: after this alone the log was not stopped cleanly."""
        self.detach()
        self._flusher.close()
        self._segments.close()
        self.swaps.close()

    def detach(self) -> None:
        """The directory is about to be renamed: continue nothing that is in progress. Regions in use stay readable."""
        self.failure.detach()
        self.cut_count += 1
        self.swaps.detach()
        self.epochs.close()
        self._directory.close()
        self._deletion.close()
