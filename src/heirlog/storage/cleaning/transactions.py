"""What one pass of the log cleaner knows of transactions, while it reads the batches of a log in order.

    data batch of an aborted transaction    its records are removed at once, and are never in the offset map
    marker, a batch of its transaction      the marker stays, and of an abort also the entry in the index of aborted
    was seen since the producer's last one  transactions
    marker without such a batch             the first pass that sees it sets its delete horizon; a pass after the
                                            horizon removes it

Markers have no key of their own kind and never compete with records. A batch that this pass empties still counts as
seen, because an empty batch may stay for its sequence: replaying it opens the transaction, and only the marker ends it.
So a marker never goes before the last batch of its transaction.

One object serves all segments of a pass. With an object for each, a marker in a later segment than its data would count
as one without data (KAFKA-8351).

Source: Kafka's CleanedTransactionMetadata; KAFKA-13727, KAFKA-8522.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from heirlog.protocol.batch import BatchHeader
from heirlog.storage.transaction_index import AbortedTransaction


def is_without_batches(has_batches: bool) -> bool:
    """Guard 33: a marker is removed only after the last batch of its transaction.

    Without it the batch opens the transaction again when the log is loaded, and the next marker of the producer decides
    it, perhaps otherwise.
    """
    return not has_batches


class TransactionsOfPass:
    __slots__ = ("_aborted", "_seen", "_upcoming")

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        """aborted: the transactions of the part of the log that is read."""
        self._upcoming = deque(sorted(aborted, key=lambda entry: entry.first_offset))
        self._aborted: dict[int, AbortedTransaction] = {}
        """By producer id: the aborted transaction whose batches are being read."""
        self._seen: set[int] = set()
        """Producers of which a batch of the current transaction was read."""

    def is_aborted(self, header: BatchHeader) -> bool:
        """Whether this data batch belongs to an aborted transaction. Call it for every data batch."""
        if not header.is_transactional:
            return False
        self._seen.add(header.producer_id)
        upcoming = self._upcoming
        while upcoming and upcoming[0].first_offset <= header.last_offset:
            entry = upcoming.popleft()
            self._aborted[entry.producer_id] = entry
        aborted = self._aborted.get(header.producer_id)
        return aborted is not None and aborted.last_offset > header.last_offset

    def end(self, header: BatchHeader) -> tuple[bool, AbortedTransaction | None]:
        """A marker was read: whether it has to stay, and the entry of the index if it is there."""
        producer_id = header.producer_id
        stays = not is_without_batches(producer_id in self._seen)
        self._seen.discard(producer_id)
        aborted = self._aborted.get(producer_id)
        if aborted is None or aborted.last_offset != header.last_offset:
            return stays, None
        del self._aborted[producer_id]
        return stays, aborted
