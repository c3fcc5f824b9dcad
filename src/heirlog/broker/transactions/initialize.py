"""InitProducerId with a transactional id: the producer gets an id and an epoch that fence all its predecessors.

    pending, PrepareCommit, PrepareAbort   the end of a transaction is on its way: CONCURRENT_TRANSACTIONS
    Ongoing                                abort it first, in the name of the coordinator; CONCURRENT_TRANSACTIONS
    Empty, CompleteCommit, CompleteAbort   the next epoch, or epoch 0 of a fresh id once epoch 32766 was given

A producer that names its id and epoch (KIP-360) continues after an error of its own. It gets the next epoch only if
no other producer replaced it meanwhile; if it repeats the request, it gets the answer from before.

Deviation from Apache Kafka 4.2: a request with an old epoch does not abort the transaction of the producer that
replaced it. Kafka compares the producer id only, so a zombie could abort its successor's transaction.

Source: KIP-98, KIP-360, KIP-890.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from heirlog.broker.transactions.state import (
    LAST_PRODUCER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_START_MS,
    Outcome,
    ProducerIdAndEpoch,
    Transaction,
    TransactionChange,
    TransactionState,
)
from heirlog.protocol.errors import ErrorCode

FreshProducerId = Callable[[], "int | None"]
"""A producer id that is not in use; None while none is at hand."""


@dataclass(frozen=True, slots=True)
class FenceFirst:
    """The producer's predecessor has an open transaction. Abort that; the producer asks again."""


def initialize(
    before: Transaction,
    given: ProducerIdAndEpoch | None,
    timeout_ms: int,
    wall_ms: int,
    fresh_producer_id: FreshProducerId,
) -> Outcome | FenceFirst:
    """given: the id and epoch that the producer names. The transaction has no pending change."""
    if given is not None and not _may_continue(before, given):
        return ErrorCode.PRODUCER_FENCED
    if before.state.is_prepared:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if before.state is TransactionState.ONGOING:
        if given is not None and given.epoch != before.producer_epoch:
            # the producer of the transaction has the current epoch: this is another one, or a request from before
            return ErrorCode.PRODUCER_FENCED
        return FenceFirst()
    if before.is_used_up:
        return _with_fresh_id(before, given, timeout_ms, wall_ms, fresh_producer_id)
    if given is None:
        return _change(before, before.producer_epoch + 1, NO_PRODUCER_EPOCH, timeout_ms, wall_ms)
    if before.producer_epoch in (NO_PRODUCER_EPOCH, given.epoch):
        return _change(before, before.producer_epoch + 1, before.producer_epoch, timeout_ms, wall_ms)
    if given.epoch == before.last_producer_epoch:
        # the answer was lost; written again, since the time limit may be another one
        change = _change(before, before.producer_epoch, before.last_producer_epoch, timeout_ms, wall_ms)
        return replace(change, after=replace(change.after, previous_producer_id=before.previous_producer_id))
    return ErrorCode.PRODUCER_FENCED


def _may_continue(before: Transaction, given: ProducerIdAndEpoch) -> bool:
    """Whether the producer has the current id, or had the one before and used up its epochs."""
    return (
        before.producer_epoch == NO_PRODUCER_EPOCH
        or given.producer_id == before.producer_id
        or (given.producer_id == before.previous_producer_id and given.epoch >= LAST_PRODUCER_EPOCH)
    )


def _change(before: Transaction, epoch: int, last_epoch: int, timeout_ms: int, wall_ms: int) -> TransactionChange:
    after = replace(
        before,
        producer_epoch=epoch,
        last_producer_epoch=last_epoch,
        previous_producer_id=before.producer_id,
        state=TransactionState.EMPTY,
        partitions=frozenset(),
        timeout_ms=timeout_ms,
        start_ms=NO_START_MS,
        last_update_ms=wall_ms,
        client_version=0,
    )
    return TransactionChange(after, ProducerIdAndEpoch(after.producer_id, epoch))


def _with_fresh_id(
    before: Transaction,
    given: ProducerIdAndEpoch | None,
    timeout_ms: int,
    wall_ms: int,
    fresh_producer_id: FreshProducerId,
) -> Outcome:
    if given is not None and given.epoch != before.producer_epoch:
        return ErrorCode.PRODUCER_FENCED
    fresh = fresh_producer_id()
    if fresh is None:
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    last_epoch = NO_PRODUCER_EPOCH if given is None else before.producer_epoch
    change = _change(before, 0, last_epoch, timeout_ms, wall_ms)
    return TransactionChange(replace(change.after, producer_id=fresh), ProducerIdAndEpoch(fresh, 0))
