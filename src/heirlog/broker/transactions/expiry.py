"""Transactional ids that are deleted, and open transactions that are aborted, because nothing was heard of them.

transaction.timeout.ms of the producer    the transaction is aborted
transactional.id.expiration.ms            an id without a transaction is deleted, by a record without a value
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from heirlog.broker.transactions.entry import TransactionEntry
from heirlog.broker.transactions.records import transaction_key
from heirlog.protocol.batch import HEADER_SIZE, encode_batch

EXPIRED_PER_BATCH = 500
"""Ids that one batch deletes."""
TOMBSTONE_OVERHEAD_BYTES = 32
"""At least what a record without a value has besides the transactional id."""


def is_overdue(entry: TransactionEntry, wall_ms: int, now_ms: int) -> bool:
    """By the wall clock, or by the time for which this coordinator has known the transaction: the wall clock may have
    been set back since it began, or be behind that of the coordinator before.
    """
    transaction = entry.transaction
    known_ms = now_ms - entry.open_since_ms
    return transaction.is_overdue(wall_ms) or transaction.is_overdue(transaction.start_ms + known_ms)


def has_expired(entry: TransactionEntry, oldest_ms: int) -> bool:
    """oldest_ms: wall time of the oldest last update with which an id is kept."""
    transaction = entry.transaction
    return transaction.state.may_expire and not entry.is_pending and transaction.last_update_ms <= oldest_ms


def in_batches(expired: Iterable[TransactionEntry], max_batch_bytes: int) -> Iterator[list[TransactionEntry]]:
    """Ids that one batch deletes: a batch that the topic refuses would keep its ids for ever."""
    room_bytes = max_batch_bytes - HEADER_SIZE
    batch: list[TransactionEntry] = []
    size_bytes = 0
    for entry in expired:
        more_bytes = len(entry.transaction.transactional_id.encode()) + TOMBSTONE_OVERHEAD_BYTES
        if batch and (size_bytes + more_bytes > room_bytes or len(batch) == EXPIRED_PER_BATCH):
            yield batch
            batch, size_bytes = [], 0
        batch.append(entry)
        size_bytes += more_bytes
    if batch:
        yield batch


def tombstones(entries: Iterable[TransactionEntry], wall_ms: int) -> bytearray:
    return encode_batch([(transaction_key(entry.transaction.transactional_id), None, (), wall_ms) for entry in entries])
