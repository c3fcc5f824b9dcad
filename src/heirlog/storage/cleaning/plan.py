"""Which part of a log may be compacted now, and whether it is worth it.

    log start        first dirty offset         uncleanable                 log end
        |------ clean ------|-------- dirty --------|-------- not cleanable ------|

Not cleanable: records above the last stable offset (they may be truncated, or aborted) or the recovery point (the new
records must be as durable as the old ones), the active segment, and segments with records younger than
min.compaction.lag.ms. Only whole segments are compacted.

A log is due when dirty / (clean + dirty) exceeds min.cleanable.dirty.ratio, or a dirty segment's first batch is older
than max.compaction.lag.ms (KIP-354). The dirtiest is next.

Source: Kafka's LogCleanerManager (cleanableOffsets, maxCompactionDelay, grabFilthiestCompactedLog) and
Cleaner.groupSegmentsBySize.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from heirlog.storage.log import Log
from heirlog.storage.segment import Segment

_MAX_RELATIVE_OFFSET = 2**31 - 1
_MAX_GROUP_BYTES = 2**31 - 1 - 64 * 1024 * 1024
"""Positions in a segment are 31 bits wide; a rewritten batch may come out larger than it was."""


@dataclass(frozen=True, slots=True)
class LogToClean:
    first_dirty_offset: int
    uncleanable_offset: int
    """Base offset of the first segment that may not be compacted."""
    clean_bytes: int
    dirty_bytes: int
    is_overdue: bool
    """max.compaction.lag.ms has passed."""

    @property
    def dirty_ratio(self) -> float:
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0


def plan_of(log: Log, last_stable_offset: int, wall_ms: int) -> LogToClean | None:
    """The plan; None if nothing dirty may be compacted."""
    segments = log.segments
    first_dirty = max(log.first_dirty_offset, log.log_start_offset)
    limit = min(last_stable_offset, log.recovery_point, segments[-1].base_offset)
    clean = dirty = 0
    overdue = False
    uncleanable = segments[0].base_offset
    for i, segment in enumerate(segments[:-1]):
        end = segments[i + 1].base_offset
        if end > limit:
            break
        if end > first_dirty:
            if _is_too_young(segment, log, wall_ms):
                break
            dirty += segment.size
            overdue = overdue or _is_overdue(segment, log, wall_ms)
        else:
            clean += segment.size
        uncleanable = end
    if not dirty:
        return None
    return LogToClean(first_dirty, uncleanable, clean, dirty, overdue)


def is_due(plan: LogToClean, log: Log) -> bool:
    return plan.is_overdue or plan.dirty_ratio > log.config.min_cleanable_dirty_ratio


def _is_too_young(segment: Segment, log: Log, wall_ms: int) -> bool:
    lag_ms = log.config.min_compaction_lag_ms
    if lag_ms <= 0:
        return False
    newest_ms = segment.max_timestamp if segment.max_timestamp >= 0 else segment.modified_ms()
    return newest_ms > wall_ms - lag_ms


def _is_overdue(segment: Segment, log: Log, wall_ms: int) -> bool:
    return 0 < segment.first_timestamp < wall_ms - log.config.max_compaction_lag_ms


def groups(segments: Sequence[Segment], end_offset: int, max_bytes: int) -> list[list[Segment]]:
    """Adjacent segments to merge into one.

    Together they are at most `max_bytes` before the pass, and within the 31 bits of an index's relative offsets.
    end_offset: the end offset of the last segment."""
    limit = min(max_bytes, _MAX_GROUP_BYTES)
    found: list[list[Segment]] = []
    size = 0
    ends = [*(segment.base_offset for segment in segments[1:]), end_offset]
    for segment, end in zip(segments, ends, strict=True):
        fits = found and size + segment.size <= limit and end - 1 - found[-1][0].base_offset <= _MAX_RELATIVE_OFFSET
        if fits:
            found[-1].append(segment)
            size += segment.size
        else:
            found.append([segment])
            size = segment.size
    return found
