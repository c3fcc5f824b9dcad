"""The files of one partition's log: segments as they are loaded, begun, made durable and given back.

    log start          recovery point          log end
        |------ flushed ------|---- page cache ----|
        segment | segment | segment (active: the only one that is appended to)

Whatever is not flushed may be gone after a crash, in any part: `recovery.py` repairs it from the recovery point on.
That point rises only in the callback of a flush that waited for the files, the directory's entries, the epoch file and
the topic id: nothing below it has to be looked at again.

A failed flush is final: `failure` is set, and every later append or flush raises it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Self

from heirlog.env import File, Files
from heirlog.protocol.batch import NO_TIMESTAMP, InvalidBatch
from heirlog.protocol.types import PartitionKey, Uuid
from heirlog.storage.cleaning.swap import Swap
from heirlog.storage.config import LogConfig
from heirlog.storage.epochs import LeaderEpochCache
from heirlog.storage.flushing import OnFlushed, PendingFlush
from heirlog.storage.identity import PartitionMetadataFile
from heirlog.storage.open_files import OpenFileLimit
from heirlog.storage.producers import ProducerStateManager, write_snapshot
from heirlog.storage.recovery import Slices, at_once, load_segments, rebuild_producers
from heirlog.storage.retention import SegmentDeletion
from heirlog.storage.segment import Segment

FLUSHES_AT_ONCE = 2
"""One that the disk works on and one that covers what was appended since."""


@dataclass(frozen=True, slots=True)
class LogListener:
    """Notified of what happens to a log beyond the call that changed it."""

    on_failure: Callable[[OSError], None] = lambda error: None
    """Once, when a flush in the background has failed."""
    on_truncated: Callable[[], None] = lambda: None
    """The recovery point went back: its checkpoint is to be written soon."""
    on_start_moved: Callable[[PartitionKey], None] = lambda key: None
    """`increment_log_start` has moved the log start."""


IGNORED: Final = LogListener()


class LogFiles:
    """What `Log` stands on: opened with `Log.open`."""

    def __init__(
        self,
        files: Files,
        dir_path: str,
        topic: str,
        partition: int,
        config: LogConfig,
        open_files: OpenFileLimit | None = None,
        listener: LogListener = IGNORED,
    ) -> None:
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
        self.epochs = LeaderEpochCache(files, dir_path, self._background_done, open_files)
        self.producers = ProducerStateManager()
        self.failure: OSError | None = None
        self._listener = listener
        self.first_dirty_offset = 0
        """What lies below it the log cleaner has compacted."""
        self.cut_count = 0
        """Rises when segments are cut or go: who works through them in steps has to begin again."""
        self._swap: Swap | None = None
        self._replaced: list[Swap] = []
        self._files = files
        self._metadata_file = PartitionMetadataFile(files, dir_path, open_files)
        self._segments: list[Segment] = []
        self._bases: list[int] = []
        self._disposal = SegmentDeletion(files, dir_path, self._background_done)
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
        open_files: OpenFileLimit | None = None,
        listener: LogListener = IGNORED,
    ) -> Self:
        """Load the log of an existing directory, or begin one in it. open_files: those of all logs of a log directory.

        `clean`: the last incarnation closed it after its last append; otherwise see `recovery.py`. Damage found where
        files were trusted makes it read everything. Raises OSError.
        """
        return at_once(
            cls.opening(
                files,
                dir_path,
                topic,
                partition,
                config,
                clean=clean,
                recovery_point=recovery_point,
                log_start_offset=log_start_offset,
                wall_ms=wall_ms,
                open_files=open_files,
                listener=listener,
            )
        )

    @classmethod
    def opening(
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
        open_files: OpenFileLimit | None = None,
        listener: LogListener = IGNORED,
    ) -> Slices[Self]:
        """As `open`, with a pause after each slice of a long log."""
        log = cls(files, dir_path, topic, partition, config, open_files, listener)
        try:
            yield from log._load(clean, recovery_point, log_start_offset, wall_ms)
        except InvalidBatch:
            log.close()
            log = cls(files, dir_path, topic, partition, config, open_files, listener)
            yield from log._load(False, 0, log_start_offset, wall_ms)
        return log

    def _load(self, clean: bool, recovery_point: int, log_start_offset: int, wall_ms: int) -> Slices[None]:
        loaded = yield from load_segments(
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
        yield from self._rebuild_producers(loaded.scanned_from, trust_absence=trusted)
        self.producers.remove_expired(wall_ms, self.config.producer_id_expiration_ms)

    def _set_segments(self, segments: list[Segment]) -> None:
        self._segments = segments
        self._bases = [segment.base_offset for segment in segments]
        self._active = segments[-1]

    def _rebuild_producers(self, snapshot_at_most: int, *, trust_absence: bool) -> Slices[None]:
        self.producers = yield from rebuild_producers(
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
            self._listener.on_failure(error)

    def finish(self, on_flushed: OnFlushed) -> None:
        """Before a clean stop: write indexes and the producer snapshot, then flush everything. Raises OSError."""
        self.cut_count += 1
        self._settle_swap()
        self._index_files += self._active.write_indexes()
        write_snapshot(self._files, self.dir_path, self.log_end_offset, self.producers, self._background_done)
        self._directory_dirty = True
        self.flush(on_flushed)

    def flush_and_close(self, on_done: OnFlushed) -> None:
        """Of a detached log: make its records durable, wherever its directory is by now, then give back the files."""

        def flushed(pending: PendingFlush, error: OSError | None) -> None:
            self.close()
            on_done(error)

        pending = PendingFlush(self.log_end_offset, flushed)
        for segment in self._unflushed_segments():
            self._files.flush(segment.log, pending.part())

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

    def _settle_swap(self) -> None:
        if self._swap is not None:
            self._swap.settle()
            self._swap = None
            self._directory_dirty = True
