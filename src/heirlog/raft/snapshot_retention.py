"""How much of the metadata log, and of its snapshots, is kept (KIP-630).

Every 60 s, and after each new snapshot, while there are at least two snapshots:

    the log and all snapshots are larger than metadata.max.retention.bytes        -> the oldest snapshot is removed
    the last record in the oldest one is older than metadata.max.retention.ms     -> the oldest snapshot is removed

The log then starts at the end of the next snapshot, and whole segments below that are deleted. So the log never starts
anywhere else than at the end of a kept snapshot: who asks for records below it can be given that state. The newest
snapshot is always kept, whatever its size.

The log start never passes the high watermark. A snapshot has committed state only, but after a restart this node may
not know yet that it is committed.

Apache Kafka checks every 60 s only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from heirlog.env import Cancel, Env
from heirlog.raft.snapshot import SnapshotId

CHECK_INTERVAL_MS = 60_000


class RetainedLog(Protocol):
    """`metadata_log.MetadataLog`, as the rule sees it. All but `snapshots` raise OSError."""

    @property
    def snapshots(self) -> list[SnapshotId]:
        """Oldest first."""

    def size_with_snapshots(self) -> int:
        """In bytes."""

    def last_contained_ms(self, snapshot_id: SnapshotId) -> int:
        """When the last record in the snapshot was appended."""

    def start_at_snapshot(self, snapshot_id: SnapshotId) -> None:
        """Move the log start to its end, and remove all snapshots before it."""


def shorten(log: RetainedLog, high_watermark: int, max_bytes: int, max_age_ms: int, wall_ms: int) -> None:
    """Remove what need not be kept. max_bytes, max_age_ms: -1 for no limit. Raises OSError."""

    def is_too_much() -> bool:
        if 0 <= max_bytes < log.size_with_snapshots():
            return True
        return 0 <= max_age_ms < wall_ms - log.last_contained_ms(log.snapshots[0])

    while len(log.snapshots) > 1 and log.snapshots[1].end_offset <= high_watermark and is_too_much():
        log.start_at_snapshot(log.snapshots[1])


class RetentionCheck:
    """Calls `check` every `CHECK_INTERVAL_MS` until it is closed."""

    def __init__(self, env: Env, check: Callable[[], None]) -> None:
        self._env = env
        self._check = check
        self._cancel: Cancel = env.call_later(CHECK_INTERVAL_MS, self._due)

    def close(self) -> None:
        self._cancel()

    def _due(self) -> None:
        self._cancel = self._env.call_later(CHECK_INTERVAL_MS, self._due)
        self._check()
