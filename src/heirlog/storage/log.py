"""One partition's log: record batches in segments, from the log start offset to the log end offset.

    log start          recovery point          log end
        |------ flushed ------|---- page cache ----|
        segment | segment | segment (active: the only one that is appended to)

Who may do what:

* a leader appends a producer's batch: validated, given offset and epoch in place, written at once (`append_as_leader`)
* a follower, and the metadata log, append batches that have both already (`append_as_follower`)
* truncation cuts at a batch boundary; epochs, producers, snapshots and indexes follow
* whatever is not flushed may be gone after a crash, in any part: `recovery.py` repairs it from the recovery point on

Order of effects. An append enters its epoch before its bytes, so that a failed write leaves at most an epoch without
records. A truncation lowers the recovery point before it cuts. The recovery point rises only in the callback of a flush
that waited for the files, the directory's entries, the epoch file and the topic id: nothing below it has to be looked
at again.

A failed flush is final: `failure` is set, and every later append or flush raises it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import NamedTuple

from heirlog.env import Buffer, File, Files, Region
from heirlog.protocol.batch import (
    NO_TIMESTAMP,
    BatchHeader,
    InvalidBatch,
    crc_matches,
    rewrite,
    rewrite_as_log_append_time,
    walk,
)
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.types import Uuid
from heirlog.storage.cleaning.records import continued_at
from heirlog.storage.cleaning.swap import Swap
from heirlog.storage.config import LogConfig
from heirlog.storage.epochs import LeaderEpochCache
from heirlog.storage.errors import LogError, OffsetOutOfRange, UnexpectedAppendOffset
from heirlog.storage.flushing import OnFlushed, PendingFlush
from heirlog.storage.identity import PartitionMetadataFile
from heirlog.storage.producers import ProducerStates, remove_snapshots, write_snapshot
from heirlog.storage.recompression import recompressed
from heirlog.storage.recovery import drop, load_segments, rebuild_producers
from heirlog.storage.retention import Disposal, count_deletable
from heirlog.storage.segment import Segment
from heirlog.storage.timestamps import TimestampOffset, first_at_or_after, largest
from heirlog.storage.validation import check_client_batch

FLUSHES_AT_ONCE = 2
"""One that the disk works on and one that covers what was appended since."""


class Appended(NamedTuple):
    first_offset: int
    last_offset: int
    """first - 1 if nothing was appended."""
    append_time_ms: int
    """-1 unless the topic's timestamps are those of the append; of a duplicate, the original's timestamp."""
    log_start_offset: int
    duplicate: bool


class ReadResult(NamedTuple):
    regions: list[Region]
    """Whole batches, valid as `Region` says."""
    size: int


_NOTHING = ReadResult([], 0)


class Log:
    """Open with `Log.open`."""

    def __init__(self, files: Files, dir_path: str, topic: str, partition: int, config: LogConfig) -> None:
        self.topic = topic
        self.partition = partition
        self.dir_path = dir_path
        self.config = config
        """May be replaced at any time."""
        self.log_start_offset = 0
        self.log_end_offset = 0
        self.recovery_point = 0
        """Everything below it is flushed."""
        self.scanned_from = 0
        """From here on every batch was read when the log was opened; the log end after a clean stop."""
        self.cut_bytes = 0
        """How much of it recovery had to cut off then."""
        self.epochs = LeaderEpochCache(files, dir_path, self._background_done)
        self.producers = ProducerStates()
        self.failure: OSError | None = None
        self.on_start_moved: Callable[[], None] | None = None
        """Told when `increment_log_start` has moved the log start."""
        self.on_failure: Callable[[OSError], None] | None = None
        """Told once when a flush in the background failed."""
        self.on_truncated: Callable[[], None] | None = None
        """Told when the recovery point went back: its checkpoint is to be written soon."""
        self.first_dirty_offset = 0
        """What lies below it the log cleaner has compacted."""
        self.cut_count = 0
        """Rises when segments are cut or go: who works through them in steps has to begin again."""
        self._swap: Swap | None = None
        self._replaced: list[Swap] = []
        self._files = files
        self._metadata_file = PartitionMetadataFile(files, dir_path)
        self._segments: list[Segment] = []
        self._bases: list[int] = []
        self._disposal = Disposal(files, dir_path, self._background_done)
        self._flushes: list[PendingFlush] = []
        self._flush_requested = 0
        self._unflushed_since_ms: int | None = None
        self._index_files: list[File] = []
        self._directory_dirty = False
        self._parent_dirty = False
        self._detached = False

    @classmethod
    def open(
        cls,
        files: Files,
        dir_path: str,
        topic: str,
        partition: int,
        config: LogConfig,
        *,
        clean: bool,
        recovery_point: int,
        log_start_offset: int,
        wall_ms: int,
    ) -> Log:
        """Load the log of an existing directory, or begin one in it.

        `clean`: the last incarnation closed it after its last append; otherwise see `recovery.py`. Damage found where
        files were trusted makes it read everything. Raises OSError.
        """
        log = cls(files, dir_path, topic, partition, config)
        try:
            log._load(clean, recovery_point, log_start_offset, wall_ms)
        except InvalidBatch:
            log.close()
            log = cls(files, dir_path, topic, partition, config)
            log._load(False, 0, log_start_offset, wall_ms)
        return log

    def _load(self, clean: bool, recovery_point: int, log_start_offset: int, wall_ms: int) -> None:
        loaded = load_segments(
            self._files,
            self.dir_path,
            self.config,
            self.epochs,
            clean=clean,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
        )
        self._set_segments(loaded.segments)
        self.log_start_offset, self.log_end_offset = loaded.log_start_offset, loaded.log_end_offset
        self.scanned_from, self.cut_bytes = loaded.scanned_from, loaded.cut_bytes
        trusted = clean and loaded.scanned_from == loaded.log_end_offset
        self.recovery_point = loaded.log_end_offset if trusted else min(recovery_point, loaded.scanned_from)
        self._flush_requested = self.recovery_point
        # without records it may have been created just now, by us or before a crash
        self._directory_dirty = self._parent_dirty = not trusted or self.log_end_offset == self.log_start_offset
        for segment in loaded.segments[:-1]:
            if segment.base_offset >= loaded.scanned_from:
                self._index_files += segment.write_indexes()
            segment.retire()
        self._rebuild_producers(loaded.scanned_from, trust_absence=trusted)
        self.producers.remove_expired(wall_ms, self.config.producer_id_expiration_ms)

    def _set_segments(self, segments: list[Segment]) -> None:
        self._segments = segments
        self._bases = [segment.base_offset for segment in segments]
        self._active = segments[-1]

    def _rebuild_producers(self, snapshot_at_most: int, *, trust_absence: bool) -> None:
        self.producers = rebuild_producers(
            self._files,
            self.dir_path,
            self._segments,
            snapshot_at_most,
            self.log_end_offset,
            trust_absence=trust_absence,
        )

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"

    @property
    def topic_id(self) -> Uuid | None:
        """From `partition.metadata`; None if it was never set."""
        return self._metadata_file.topic_id

    def set_topic_id(self, topic_id: Uuid) -> None:
        """Raises OSError, and StorageFormatError if the directory belongs to another topic id."""
        self._metadata_file.set(topic_id, self._background_done)

    @property
    def flushed_offset(self) -> int:
        return self.recovery_point

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self._segments)

    @property
    def segments(self) -> list[Segment]:
        """From the oldest to the active one; not to be changed."""
        return self._segments

    @property
    def segment_count(self) -> int:
        return len(self._segments)

    # appending

    def append_as_leader(self, records: bytearray | memoryview, leader_epoch: int, wall_ms: int) -> Appended:
        """Append one producer's batch; offset and epoch are written into `records`.

        Raises LogError or InvalidBatch with Kafka's code, or OSError; nothing was appended then.
        """
        if self.failure is not None:
            raise self.failure
        config = self.config
        header = check_client_batch(records, config, wall_ms)
        if header.producer_id >= 0:
            original = self.producers.check(header)
            if original is not None:
                return Appended(
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
        return Appended(first, self.log_end_offset - 1, append_time_ms, self.log_start_offset, False)

    def append_as_follower(self, records: Buffer, max_epoch: int) -> Appended:
        """Append batches that have their offsets and epochs and continue this log.

        A batch cut off at the end, and everything from the first batch of an epoch above `max_epoch` on, is left out:
        it belongs to a leader that this follower has not checked its log against (KAFKA-18723). Raises
        UnexpectedAppendOffset, LogError (CRC), InvalidBatch or OSError; nothing was appended then.
        """
        if self.failure is not None:
            raise self.failure
        first = expected = self.log_end_offset
        headers: list[BatchHeader] = []
        end = 0
        for position, header in walk(records, partial_tail=True):
            if header.leader_epoch > max_epoch:
                break
            if header.base_offset != expected:
                if header.base_offset < expected <= header.last_offset and header.is_filler and not headers:
                    return self.append_as_follower(continued_at(records, header, expected), max_epoch)
                raise UnexpectedAppendOffset(str(self), expected, header.base_offset)
            if not crc_matches(records, position, header):
                raise LogError(
                    ErrorCode.CORRUPT_MESSAGE, f"the CRC of the batch at offset {expected} of {self} does not match"
                )
            headers.append(header)
            expected, end = header.next_offset, position + header.size
        if headers:
            self._append(memoryview(records)[:end], headers, None)
        return Appended(first, expected - 1, NO_TIMESTAMP, self.log_start_offset, False)

    def _append(self, data: Buffer, headers: list[BatchHeader], wall_ms: int | None) -> None:
        config = self.config
        last = headers[-1]
        next_offset = last.base_offset + last.last_offset_delta + 1
        active = self._active
        max_timestamp = last.max_timestamp if len(headers) == 1 else max(header.max_timestamp for header in headers)
        # a follower's segments are rolled in record time; in wall time by `maybe_roll`
        now_ms = active.created_ms if wall_ms is None else wall_ms
        if active.must_roll(len(data), max_timestamp, next_offset - 1, now_ms, config):
            self.roll()
            active = self._active
        epochs = self.epochs
        for header in headers:
            if header.leader_epoch > epochs.latest:
                epochs.assign(header.leader_epoch, header.base_offset)
        active.append(data, headers, config.index_interval_bytes)
        self.log_end_offset = next_offset
        for header in headers:
            if header.producer_id >= 0:
                self.producers.update(header)

    def maybe_roll(self, wall_ms: int) -> None:
        """Close the active segment if it has been filled for segment.ms. Raises OSError."""
        if self._active.must_roll(0, NO_TIMESTAMP, self.log_end_offset, wall_ms, self.config):
            self.roll()

    def roll(self) -> None:
        """Begin a new segment at the log end; the old one is flushed in the background. Raises OSError."""
        if self.failure is not None:
            raise self.failure
        if self._active.base_offset == self.log_end_offset:
            return
        closed = self._active
        self._index_files += closed.write_indexes()
        write_snapshot(self._files, self.dir_path, self.log_end_offset, self.producers, self._background_done)
        self._set_segments([*self._segments, Segment.create(self._files, self.dir_path, self.log_end_offset)])
        closed.retire()
        self._directory_dirty = True
        self.flush(self._background_done)

    # reading

    def read(self, offset: int, max_bytes: int, upto_offset: int, min_one: bool = True) -> ReadResult:
        """Whole batches, from the one that holds `offset` to at most `upto_offset`, out of one segment.

        `min_one`: the first batch comes even if it is larger than `max_bytes` (KIP-74). Raises OffsetOutOfRange.
        """
        if offset < self.log_start_offset or offset > self.log_end_offset:
            raise OffsetOutOfRange(str(self), offset, self.log_start_offset, self.log_end_offset)
        if upto_offset > self.log_end_offset:
            upto_offset = self.log_end_offset
        if offset >= upto_offset:
            return _NOTHING
        segment = self._active
        segment_end = self.log_end_offset
        if offset < segment.base_offset:
            i = bisect_right(self._bases, offset) - 1
            segment = self._segments[i]
            segment_end = self._bases[i + 1]
        start = segment.position_of(offset)
        end = segment.size if upto_offset >= segment_end else segment.position_of(upto_offset)
        if end - start > max_bytes:
            end = segment.boundary_at(start, start + max_bytes)
            if end == start and min_one:
                end = segment.end_of_batch(start)
        if end <= start:
            return _NOTHING
        return ReadResult([Region(segment.log, start, end - start)], end - start)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """(epoch, end offset) of the largest epoch not above the one asked for, or (-1, -1): see `epochs.py`."""
        return self.epochs.end_offset_for(epoch, self.log_end_offset)

    def offset_for_timestamp(self, timestamp_ms: int, upto_offset: int) -> TimestampOffset | None:
        """The first record at or after a time, below `upto_offset`; None if there is none."""
        return first_at_or_after(self._segments, timestamp_ms, self.log_start_offset, upto_offset)

    def max_timestamp_offset(self, upto_offset: int) -> TimestampOffset | None:
        """The first record with the largest timestamp in the batches below `upto_offset` (KIP-734)."""
        return largest(self._segments, self.log_start_offset, min(upto_offset, self.log_end_offset))

    # cutting

    def truncate_to(self, offset: int) -> None:
        """Forget everything from the batch that holds `offset` on. At or above the log end no record goes.

        Raises OSError; recovery repairs what is left half done.
        """
        if offset >= self.log_end_offset:
            # a leader that appended nothing has an epoch that begins at its end and that nobody else knows: kept, it
            # would diverge from the next leader for ever
            self.epochs.truncate_from_end(self.log_end_offset)
            return
        if offset <= self.log_start_offset:
            self.truncate_fully_and_start_at(max(offset, 0))
            return
        keep = bisect_right(self._bases, offset)
        segment = self._segments[keep - 1]
        # a batch lies in one segment, so that of the offset never begins before this segment
        position = segment.position_of(offset)
        cut_at = segment.header_at(position).base_offset
        if cut_at < self.log_start_offset:
            self.truncate_fully_and_start_at(self.log_start_offset)
            return
        self._before_cut(cut_at)
        self._lower_recovery_point(cut_at)
        self.epochs.truncate_from_end(cut_at)
        self._drop_segments(keep)
        segment.truncate_to(position, cut_at)
        self._set_segments(self._segments)
        self.log_end_offset = cut_at
        self._rebuild_producers(cut_at, trust_absence=False)
        self._directory_dirty = True
        self.flush(self._background_done)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Begin again, empty, at `offset`. Raises OSError."""
        self._before_cut(0)
        self._lower_recovery_point(offset)
        self.epochs.clear()
        self._drop_segments(0)
        self._disposal.hurry()
        remove_snapshots(self._files, self.dir_path, lambda _: True)
        self.producers = ProducerStates()
        self._set_segments([Segment.create(self._files, self.dir_path, offset)])
        self.log_start_offset = self.log_end_offset = self.recovery_point = self._flush_requested = offset
        self._directory_dirty = True
        self.flush(self._background_done)

    def _before_cut(self, first_dirty_at_most: int) -> None:
        """Segments are about to be cut or to go: the log cleaner's swap must not bring them back."""
        self.first_dirty_offset = min(self.first_dirty_offset, first_dirty_at_most)
        self.cut_count += 1
        self._settle_swap()

    def _settle_swap(self) -> None:
        if self._swap is not None:
            self._swap.settle()
            self._swap = None
            self._directory_dirty = True

    def _drop_segments(self, first: int) -> None:
        if len(self._segments) > first:
            drop(self._segments, first)
            self._directory_dirty = True

    def _lower_recovery_point(self, offset: int) -> None:
        """Before the cut: a point above the end would let recovery trust what is written there next."""
        self._flush_requested = min(self._flush_requested, offset)
        for pending in self._flushes:
            pending.target = min(pending.target, offset)
        if offset < self.recovery_point:
            self.recovery_point = offset
            if self.on_truncated is not None:
                self.on_truncated()

    def increment_log_start(self, offset: int) -> None:
        """Records below `offset` are no longer readable; their segments go with the next retention pass.

        Nothing happens below the current start. Raises OffsetOutOfRange above the log end, and OSError.
        """
        if offset > self.log_end_offset:
            raise OffsetOutOfRange(str(self), offset, self.log_start_offset, self.log_end_offset)
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            self.epochs.truncate_from_start(offset)
            if self.on_start_moved is not None:
                self.on_start_moved()

    def delete_old_segments(self, wall_ms: int, high_watermark: int) -> int:
        """Delete what retention.ms, retention.bytes or the log start offset no longer keep; how many segments.

        Only whole segments below the high watermark; the active one only after a roll. Raises OSError.
        """
        count = count_deletable(
            self._segments, self.config, wall_ms, high_watermark, self.log_start_offset, self.log_end_offset
        )
        if count == len(self._segments):
            self.roll()
        if not count:
            return 0
        self._before_cut(self.first_dirty_offset)
        gone, kept = self._segments[:count], self._segments[count:]
        self._set_segments(kept)
        self.increment_log_start(max(self.log_start_offset, kept[0].base_offset))
        self._disposal.dispose(gone, kept[0].base_offset)
        return count

    # compaction: `cleaning/compaction.py` rewrites segments, these put the result into place, see `cleaning/swap.py`

    def prepare_swap(self, old: list[Segment], cleaned: Segment) -> None:
        """`cleaned`, durable under its `.cleaned` names, is to replace these neighbours. Raises OSError."""
        self._swap = Swap(self._files, self.dir_path, old, cleaned)

    def take_over_swap(self) -> Callable[[], None]:
        """From now on reads find the new segment. To be called after the directory was synced, as is the next one.

        Returns what removes the old files, to be called after file.delete.delay.ms. Raises OSError.
        """
        swap = self._swap
        assert swap is not None
        swap.take_over()
        at = self._segments.index(swap.old[0])
        kept = self._segments
        self._set_segments([*kept[:at], swap.cleaned, *kept[at + len(swap.old) :]])
        self._replaced.append(swap)

        def remove() -> None:
            if swap in self._replaced:
                self._replaced.remove(swap)
                swap.remove_old()

        return remove

    def complete_swap(self) -> None:
        """Give the new files their names. Raises OSError."""
        assert self._swap is not None
        self._swap.complete()
        self._swap = None

    # flushing, closing

    def needs_flush(self, wall_ms: int) -> bool:
        """Is a flush due by flush.messages or flush.ms? Ask after appends, from time to time, and when one has ended:
        while `FLUSHES_AT_ONCE` are under way none is, or a client faster than the disk would pile them up."""
        if len(self._flushes) >= FLUSHES_AT_ONCE:
            return False
        unflushed = self.log_end_offset - self._flush_requested
        if unflushed <= 0:
            return False
        if unflushed >= self.config.flush_messages:
            return True
        if self._unflushed_since_ms is None or wall_ms < self._unflushed_since_ms:
            # also where the clock was set back: waiting until it has caught up could take hours
            self._unflushed_since_ms = wall_ms
        return wall_ms - self._unflushed_since_ms >= self.config.flush_ms

    def flush(self, on_flushed: OnFlushed) -> None:
        """Make everything appended so far durable; the recovery point has moved when `on_flushed(None)` is called.

        Raises OSError if an earlier flush failed: it is never tried again. Nobody is told once the log was closed or
        deleted: its directory may have another name by then.
        """
        if self.failure is not None:
            raise self.failure
        index_files, self._index_files = self._index_files, []

        def done(pending: PendingFlush, error: OSError | None) -> None:
            for file in index_files:
                file.close()
            if not self._detached:
                self._flushed(pending, error)
                on_flushed(error)

        pending = PendingFlush(self.log_end_offset, done)
        self._flushes.append(pending)
        self._flush_requested = self.log_end_offset
        self._unflushed_since_ms = None
        for segment in self._unflushed_segments():
            self._files.flush(segment.log, pending.part())
        for file in index_files:
            self._files.flush(file, pending.part())
        if not self.epochs.durable:
            self.epochs.when_durable(pending.part())
        if not self._metadata_file.durable:
            self._metadata_file.when_durable(pending.part())
        if self._directory_dirty:
            self._directory_dirty = False
            self._files.sync_dir(self.dir_path, pending.part())
        if self._parent_dirty:
            self._parent_dirty = False
            self._files.sync_dir(self.dir_path.rpartition("/")[0], pending.part())

    def _unflushed_segments(self) -> list[Segment]:
        first = max(bisect_right(self._bases, self.recovery_point) - 1, 0)
        return self._segments[first:]

    def _flushed(self, pending: PendingFlush, error: OSError | None) -> None:
        self._flushes.remove(pending)
        if error is not None:
            self._failed(error)
        elif pending.target > self.recovery_point:
            self.recovery_point = pending.target

    def _background_done(self, error: OSError | None) -> None:
        if error is not None:
            self._failed(error)

    def _failed(self, error: OSError) -> None:
        if self.failure is None and not self._detached:
            self.failure = error
            if self.on_failure is not None:
                self.on_failure(error)

    def finish(self, on_flushed: OnFlushed) -> None:
        """Before a clean stop: write indexes and the producer snapshot, then flush everything. Raises OSError."""
        self.cut_count += 1
        self._settle_swap()
        self._index_files += self._active.write_indexes()
        write_snapshot(self._files, self.dir_path, self.log_end_offset, self.producers, self._background_done)
        self._directory_dirty = True
        self.flush(on_flushed)

    def close(self) -> None:
        """Give back the files. Writes nothing: after this alone the log was not stopped cleanly."""
        self.detach()
        for file in self._index_files:
            file.close()
        self._index_files = []
        for segment in self._segments:
            segment.close()
        for swap in self._replaced:
            for segment in swap.old:
                segment.close()
        self._replaced = []

    def detach(self) -> None:
        """The directory is about to be renamed: nothing under way is carried on. Regions given out stay readable."""
        self._detached = True
        self.cut_count += 1
        self._swap = None
        self.epochs.close()
        self._metadata_file.close()
        self._disposal.close()
