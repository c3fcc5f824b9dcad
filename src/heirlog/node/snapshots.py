"""When the metadata log has grown enough since the last snapshot to be worth another one.

By bytes (`metadata.log.max.record.bytes.between.snapshots`) or by time (`metadata.log.max.snapshot.interval.ms`, 0:
never by time), whichever comes first; never if nothing was committed since. Both count from the last snapshot, whether
this node wrote it or loaded it; who leads the quorum does not matter. KIP-630, KIP-876.
"""

from __future__ import annotations

from collections.abc import Callable

from heirlog.raft.replay import CommittedBatch


class SnapshotTrigger:
    def __init__(self, max_bytes: int, max_interval_ms: int, now_ms: Callable[[], int]) -> None:
        self._max_bytes = max_bytes
        self._max_interval_ms = max_interval_ms
        self._now_ms = now_ms
        self._bytes = 0
        self._since_ms = now_ms()

    def committed(self, batch: CommittedBatch) -> None:
        """A batch was committed. Its size is taken from its last record: the records of a large batch are alike."""
        self._bytes += len(batch.records) * batch.last_record_bytes

    def is_due(self) -> bool:
        if self._bytes == 0:
            return False
        is_late = 0 < self._max_interval_ms <= self._now_ms() - self._since_ms
        return self._bytes >= self._max_bytes or is_late

    def taken(self) -> None:
        self._bytes = 0
        self._since_ms = self._now_ms()
