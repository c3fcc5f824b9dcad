"""EndTxn, the coordinator's own aborts, and the completion once every partition has its marker.

The answer leaves once the Prepare record is committed. Markers follow, and until CompleteCommit or CompleteAbort is
committed the next transaction of the producer waits (CONCURRENT_TRANSACTIONS).

    before                  commit, v0-4   abort, v0-4    commit, v5       abort, v5
    Ongoing                 PrepareCommit  PrepareAbort   PrepareCommit    PrepareAbort
    PrepareCommit           51             48             51               48
    PrepareAbort            48             51             48               51
    CompleteCommit          done           48             done if again    48 if again, else abort of nothing
    CompleteAbort           48             done           90 if again      done if again, else abort of nothing
    Empty                   48             48             48               abort of nothing

    48 INVALID_TXN_STATE   51 CONCURRENT_TRANSACTIONS   90 PRODUCER_FENCED

Version 5 (KIP-890) raises the epoch with every end, so that a late batch of a former transaction is refused by its
epoch alone. *Again*: the request names the epoch from before that increase, because its answer was lost. (Apache Kafka
takes any increase for that, also one by InitProducerId for another producer, and then two producers share an epoch.) An
*abort of nothing* writes PrepareAbort without partitions: the producer cannot know whether its first batch has arrived.

A commit that comes again and finds CompleteAbort met an abort by the coordinator. Apache Kafka 4.2 answers it with
INVALID_TXN_STATE, which ends the application; the answer here is that of its later versions (KAFKA-20785).

If the epochs of the producer id are used up, its successor is decided together with the outcome and stored with it:
a coordinator that takes over in between must know the id that the producer already has (KAFKA-20310).
"""

from __future__ import annotations

from dataclasses import replace

from heirlog.broker.transactions.add_partitions import producer_error
from heirlog.broker.transactions.initialize import FreshProducerId
from heirlog.broker.transactions.state import (
    LAST_PRODUCER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    Outcome,
    ProducerIdAndEpoch,
    Transaction,
    TransactionChange,
    TransactionState,
)
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.transaction_marker import EPOCH_PER_TRANSACTION

_PREPARED = {True: TransactionState.PREPARE_COMMIT, False: TransactionState.PREPARE_ABORT}
_COMPLETE = {True: TransactionState.COMPLETE_COMMIT, False: TransactionState.COMPLETE_ABORT}


def end(before: Transaction, producer: ProducerIdAndEpoch, *, commit: bool, is_pending: bool, wall_ms: int) -> Outcome:
    """EndTxn 0-4: the epoch stays."""
    code = producer_error(before, producer)
    if code is not ErrorCode.NONE:
        return code
    if is_pending or before.state is _PREPARED[commit]:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if before.state is TransactionState.ONGOING:
        return TransactionChange(_prepared(before, commit, wall_ms, client_version=0))
    return ProducerIdAndEpoch() if before.state is _COMPLETE[commit] else ErrorCode.INVALID_TXN_STATE


def end_with_new_epoch(
    before: Transaction,
    producer: ProducerIdAndEpoch,
    *,
    commit: bool,
    is_pending: bool,
    wall_ms: int,
    fresh_producer_id: FreshProducerId,
) -> Outcome:
    """EndTxn 5: each success names the id and epoch of the next transaction."""
    if is_pending:
        # before the id is compared: the answer to the first request may have given the producer its next id
        return ErrorCode.CONCURRENT_TRANSACTIONS
    used_up = _asks_again_with_used_up_id(before, producer)
    if producer.producer_id != before.producer_id and not used_up:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    # with the reserved epoch, a complete transaction was aborted by a coordinator that did not decide a next id: the
    # producer is fenced, and must not get that epoch as an answer
    is_fenced = before.is_reserved_epoch and not before.state.is_prepared
    again = used_up or (_raised_from(before, producer.epoch) and not is_fenced)
    if not _is_possible_epoch(before, producer, again):
        return ErrorCode.PRODUCER_FENCED
    if before.state.is_prepared:
        return ErrorCode.CONCURRENT_TRANSACTIONS if before.state is _PREPARED[commit] else ErrorCode.INVALID_TXN_STATE
    if before.state is TransactionState.ONGOING:
        return _end_and_raise(before, commit, before.start_ms, wall_ms, fresh_producer_id)
    if again:
        return _answer_again(before, commit)
    if commit:
        return ErrorCode.INVALID_TXN_STATE
    return _end_and_raise(before, False, wall_ms, wall_ms, fresh_producer_id)


def _raised_from(before: Transaction, epoch: int) -> bool:
    """Whether an end has raised the epoch from this one, and not InitProducerId for another producer: that one may end
    its transactions without raising the epoch, and must not share it with its predecessor.
    """
    return before.producer_epoch == epoch + 1 and before.last_producer_epoch == epoch


def _asks_again_with_used_up_id(before: Transaction, producer: ProducerIdAndEpoch) -> bool:
    return (
        producer.producer_id == before.previous_producer_id
        and producer.epoch == LAST_PRODUCER_EPOCH
        and before.producer_epoch == 0
    )


def _is_possible_epoch(before: Transaction, producer: ProducerIdAndEpoch, again: bool) -> bool:
    if before.state in (TransactionState.ONGOING, TransactionState.EMPTY):
        return producer.epoch == before.producer_epoch
    return again or (not before.state.is_prepared and producer.epoch == before.producer_epoch)


def _answer_again(before: Transaction, commit: bool) -> Outcome:
    if before.state is _COMPLETE[commit]:
        return ProducerIdAndEpoch(before.producer_id, before.producer_epoch)
    return ErrorCode.PRODUCER_FENCED if commit else ErrorCode.INVALID_TXN_STATE


def _end_and_raise(
    before: Transaction, commit: bool, start_ms: int, wall_ms: int, fresh_producer_id: FreshProducerId
) -> Outcome:
    next_id = NO_PRODUCER_ID
    if before.is_used_up:
        fresh = fresh_producer_id()
        if fresh is None:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        next_id = fresh
    after = replace(
        _prepared(before, commit, wall_ms, EPOCH_PER_TRANSACTION),
        producer_epoch=before.producer_epoch + 1,
        last_producer_epoch=before.producer_epoch,
        next_producer_id=next_id,
        start_ms=start_ms,
    )
    return TransactionChange(after, _next_of(after))


def _next_of(prepared: Transaction) -> ProducerIdAndEpoch:
    if prepared.next_producer_id != NO_PRODUCER_ID:
        return ProducerIdAndEpoch(prepared.next_producer_id, 0)
    return ProducerIdAndEpoch(prepared.producer_id, prepared.producer_epoch)


def _prepared(before: Transaction, commit: bool, wall_ms: int, client_version: int) -> Transaction:
    return replace(
        before,
        state=_PREPARED[commit],
        previous_producer_id=before.producer_id,
        last_update_ms=wall_ms,
        client_version=client_version,
    )


def fence(before: Transaction, cluster_version: int, wall_ms: int, fresh_producer_id: FreshProducerId) -> Outcome:
    """Abort the open transaction in the name of the coordinator, with an epoch above that of its producer.

    cluster_version: the finalised level of transaction.version, whatever the client speaks.
    """
    if cluster_version >= EPOCH_PER_TRANSACTION:
        return _end_and_raise(before, False, before.start_ms, wall_ms, fresh_producer_id)
    after = replace(
        _prepared(before, False, wall_ms, client_version=0),
        producer_epoch=before.producer_epoch + 1,
        last_producer_epoch=NO_PRODUCER_EPOCH,
    )
    return TransactionChange(after)


def complete(prepared: Transaction, wall_ms: int) -> Transaction:
    """The transaction once every partition has its marker, or no longer exists."""
    assert prepared.state.is_prepared, "only a decided transaction is completed"
    commit = prepared.state is TransactionState.PREPARE_COMMIT
    after = replace(
        prepared,
        state=_COMPLETE[commit],
        partitions=frozenset(),
        previous_producer_id=prepared.producer_id,
        last_update_ms=wall_ms,
    )
    if prepared.next_producer_id == NO_PRODUCER_ID:
        return after
    return replace(after, producer_id=prepared.next_producer_id, producer_epoch=0, next_producer_id=NO_PRODUCER_ID)
