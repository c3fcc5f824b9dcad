"""Which segments retention deletes, and how they are removed from the disk.

From the oldest on, while one of these is true and the whole segment is below the high watermark:

    its largest timestamp is older than retention.ms (without timestamps: the file's last write)
    the log without it is still at least retention.bytes large
    the next segment begins at or below the log start offset (DeleteRecords; whatever cleanup.policy says)

They are unlinked oldest first, each only after the directory was synced for the one before. A crash may undo the last
unlink. If it could undo several in any order, the log could have a gap, which recovery would treat as a loss.

Source: Kafka's UnifiedLog.deleteOldSegments.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from heirlog.env import Files
from heirlog.storage.config import LogConfig
from heirlog.storage.producers import remove_snapshots
from heirlog.storage.segment import Segment


def count_deletable(
    segments: Sequence[Segment],
    config: LogConfig,
    wall_ms: int,
    high_watermark: int,
    log_start_offset: int,
    log_end_offset: int,
) -> int:
    """How many of the oldest segments may be deleted. If all of them, the active one has to be rolled first."""
    surplus = _surplus_bytes(segments, config)
    count = 0
    for i, segment in enumerate(segments):
        upper = segments[i + 1].base_offset if i + 1 < len(segments) else log_end_offset
        if upper > high_watermark or upper == segment.base_offset:
            break
        below_start = upper <= log_start_offset
        too_large = surplus >= segment.size
        if not (below_start or too_large or _too_old(segment, config, wall_ms)):
            break
        surplus -= segment.size
        count += 1
    return count


def _surplus_bytes(segments: Sequence[Segment], config: LogConfig) -> int:
    if not config.delete_enabled or config.retention_bytes < 0:
        return -1
    return sum(segment.size for segment in segments) - config.retention_bytes


def _too_old(segment: Segment, config: LogConfig, wall_ms: int) -> bool:
    if not config.delete_enabled or config.retention_ms < 0:
        return False
    newest_ms = segment.max_timestamp if segment.max_timestamp >= 0 else segment.modified_ms()
    return wall_ms - newest_ms > config.retention_ms


class SegmentDeletion:
    """Segments that wait for deletion. Their files stay open until they are unlinked: a reader may hold a region."""

    __slots__ = ("_busy", "_closed", "_dir_path", "_files", "_on_done", "_waiting")

    def __init__(self, files: Files, dir_path: str, on_done: Callable[[OSError | None], None]) -> None:
        """`on_done` is called with the result of each directory sync."""
        self._files = files
        self._dir_path = dir_path
        self._on_done = on_done
        self._waiting: deque[Segment] = deque()
        self._busy = False
        self._closed = False

    def dispose(self, segments: Sequence[Segment], new_first_offset: int) -> None:
        """Raises OSError."""
        self._waiting.extend(segments)
        remove_snapshots(self._files, self._dir_path, lambda offset: offset < new_first_offset)
        if not self._busy:
            self._next()

    def _next(self) -> None:
        segment = self._waiting.popleft()
        segment.unlink()
        segment.close()
        self._busy = True
        self._files.sync_dir(self._dir_path, self._synced)

    def _synced(self, error: OSError | None) -> None:
        self._busy = False
        if self._closed:
            return
        if error is None and self._waiting:
            try:
                self._next()
            except OSError as failure:
                error = failure
        self._on_done(error)

    def delete_now(self) -> None:
        """Unlink all waiting segments at once, newest first. Raises OSError.

        The log starts over at another offset, and a later start must not find these segments before it."""
        while self._waiting:
            segment = self._waiting.pop()
            segment.unlink()
            segment.close()

    def close(self) -> None:
        self._closed = True
        while self._waiting:
            self._waiting.popleft().close()
