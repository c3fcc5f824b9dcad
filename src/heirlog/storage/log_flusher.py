"""Makes a log durable: which part of it is flushed, when the next flush is due, and what a flush consists of.

    log start          recovery point     requested     log end
        |------ flushed ------|-- under way --|-- page cache --|
        segment | segment | segment (active)

Whatever is not flushed may be missing after a crash, in any part: `recovery.py` reads and repairs it from the recovery
point on. That point rises only when a flush has ended that covered everything below it:

    segments with records above the recovery point
    index files of segments that were closed since, and new aborted transactions
    the epoch file (`epochs.py`)
    the topic id, the directory's entries, and the entry of a new directory in its parent (`partition_directory.py`)

A truncation lowers the recovery point before it cuts, and the target of every flush under way. Otherwise recovery would
trust the records that are written above the cut next.

A failed flush is final: see `log_failure.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from heirlog.env import File
from heirlog.storage.config import LogConfig
from heirlog.storage.epochs import LeaderEpochCache
from heirlog.storage.flushing import OnFlushed, PendingFlush
from heirlog.storage.log_failure import LogFailure
from heirlog.storage.log_segments import LogSegments
from heirlog.storage.partition_directory import PartitionDirectory

FLUSHES_AT_ONCE = 2
"""One that the disk works on, and one that covers what was appended since."""


class LogFlusher:
    __slots__ = (
        "_directory",
        "_epochs",
        "_failure",
        "_index_files",
        "_limit",
        "_on_truncated",
        "_pending",
        "_requested",
        "_segments",
        "_unflushed_since_ms",
        "recovery_point",
    )

    def __init__(
        self,
        directory: PartitionDirectory,
        segments: LogSegments,
        epochs: LeaderEpochCache,
        failure: LogFailure,
        *,
        recovery_point: int,
        index_files: Sequence[File] = (),
        on_truncated: Callable[[], None] = lambda: None,
    ) -> None:
        """index_files: those that were written while the log was loaded. on_truncated: the recovery point went back."""
        self._directory = directory
        self._segments = segments
        self._epochs = epochs
        self._failure = failure
        self._on_truncated = on_truncated
        self.recovery_point = recovery_point
        """Everything below this offset is flushed."""
        self._limit: int | None = None
        """The recovery point does not rise above it: damaged records were found there."""
        self._requested = recovery_point
        """Offset up to which a flush was requested."""
        self._pending: list[PendingFlush] = []
        self._unflushed_since_ms: int | None = None
        self._index_files = list(index_files)

    @property
    def has_index_files(self) -> bool:
        """Whether index files were written that the next flush includes."""
        return bool(self._index_files)

    @property
    def is_idle(self) -> bool:
        """Whether every requested flush has ended; a truncation requests one."""
        return not self._pending

    def needs_flush(self, log_end_offset: int, config: LogConfig, wall_ms: int) -> bool:
        """Whether a flush is due by flush.messages or flush.ms.

        While `FLUSHES_AT_ONCE` are under way none is due, because a client that is faster than the disk would pile them
        up. So ask again when one has ended.
        """
        if len(self._pending) >= FLUSHES_AT_ONCE:
            return False
        unflushed = log_end_offset - self._requested
        if unflushed <= 0:
            return False
        if unflushed >= config.flush_messages:
            return True
        if self._unflushed_since_ms is None or wall_ms < self._unflushed_since_ms:
            # also if the clock was set back: waiting until it has caught up could take hours
            self._unflushed_since_ms = wall_ms
        return wall_ms - self._unflushed_since_ms >= config.flush_ms

    def flush(self, log_end_offset: int, on_flushed: OnFlushed) -> None:
        """Make everything below `log_end_offset` durable; `on_flushed(None)` is called after the recovery point moved.

        Raises OSError if the log has failed. `on_flushed` is not called if the log is detached meanwhile.
        """
        self._failure.check()
        index_files, self._index_files = self._index_files, []

        def done(pending: PendingFlush, error: OSError | None) -> None:
            for file in index_files:
                file.close()
            if not self._failure.is_detached:
                self._ended(pending, error)
                on_flushed(error)

        pending = PendingFlush(log_end_offset, done)
        self._pending.append(pending)
        self._requested = log_end_offset
        self._unflushed_since_ms = None
        self._flush_segments(pending)
        for file in index_files:
            self._directory.files.flush(file, pending.part())
        if not self._epochs.durable:
            self._epochs.when_durable(pending.part())
        self._directory.flush(pending.part)

    def _flush_segments(self, pending: PendingFlush) -> None:
        for segment in self._segments.from_offset(self.recovery_point):
            self._directory.files.flush(segment.log, pending.part())

    def _ended(self, pending: PendingFlush, error: OSError | None) -> None:
        self._pending.remove(pending)
        if error is not None:
            self._failure.background_done(error)
        elif pending.target > self.recovery_point:
            self.recovery_point = pending.target if self._limit is None else min(pending.target, self._limit)

    def flush_detached(self, on_flushed: OnFlushed) -> None:
        """Of a detached log: flush its records only, because its directory may have another name by now."""
        self._flush_segments(PendingFlush(self.recovery_point, lambda _, error: on_flushed(error)))

    def add_index_files(self, written: Sequence[File]) -> None:
        """Written for a closed segment: the next flush includes and closes them."""
        self._index_files += written

    def lower_to(self, offset: int) -> None:
        """The log is about to be cut at `offset`."""
        self._requested = min(self._requested, offset)
        for pending in self._pending:
            pending.target = min(pending.target, offset)
        if offset < self.recovery_point:
            self.recovery_point = offset
            self._on_truncated()

    def distrust(self, offset: int) -> None:
        """From here on the log has to be read by the next start, whatever is flushed until then."""
        self._limit = offset
        self.recovery_point = min(self.recovery_point, offset)

    def restart_at(self, offset: int) -> None:
        """The log is empty and begins at `offset`; `lower_to` was called before the old records were removed."""
        self.recovery_point = self._requested = offset

    def close(self) -> None:
        for file in self._index_files:
            file.close()
        self._index_files = []
