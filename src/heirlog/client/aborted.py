"""Which batches of one Fetch answer a consumer of committed records skips.

The broker names the aborted transactions of an answer by producer and first offset. From that offset on the producer's
transactional batches are skipped, until its abort marker. The list is complete for its answer and for no other one.

Source: KIP-98, "isolation.level".
"""

from __future__ import annotations

from collections.abc import Sequence

from heirlog.env import Buffer
from heirlog.protocol.batch import BatchHeader
from heirlog.protocol.transaction_marker import read_marker


class AbortedTransactions:
    """aborted: (producer id, first offset) of each; empty for read_uncommitted."""

    def __init__(self, aborted: Sequence[tuple[int, int]]) -> None:
        self._upcoming = sorted(((first_offset, producer) for producer, first_offset in aborted), reverse=True)
        self._producers: set[int] = set()

    def skips(self, records: Buffer, position: int, header: BatchHeader) -> bool:
        """Whether the batch at `position` holds nothing for a consumer. Call this for each batch, in order.

        Raises InvalidBatch for a damaged control batch.
        """
        while self._upcoming and self._upcoming[-1][0] <= header.last_offset:
            self._producers.add(self._upcoming.pop()[1])
        if not header.is_control:
            return header.is_transactional and header.producer_id in self._producers
        if header.producer_id in self._producers:
            marker = read_marker(memoryview(records)[position : position + header.size], header)
            if marker is not None and not marker.commit:
                self._producers.discard(header.producer_id)
        return True
