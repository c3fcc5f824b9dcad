"""AddPartitionsToTxn and AddOffsetsToTxn: a partition takes part before its first record is written.

So the coordinator knows every partition that needs a marker when the transaction ends. Brokers ask the other way round,
too (*verify*): whether a partition takes part, before they append the first record of a transaction to it.

Source: KIP-98, KIP-890.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from heirlog.broker.groups.offsets import TopicPartition
from heirlog.broker.transactions.state import (
    Outcome,
    ProducerIdAndEpoch,
    Transaction,
    TransactionChange,
    TransactionState,
)
from heirlog.protocol.errors import ErrorCode


def add_partitions(
    before: Transaction,
    producer: ProducerIdAndEpoch,
    partitions: Collection[TopicPartition],
    client_version: int,
    wall_ms: int,
) -> Outcome:
    """The transaction has no pending change. client_version: transaction.version that the request stands for."""
    code = producer_error(before, producer)
    if code is not ErrorCode.NONE:
        return code
    if before.state.is_prepared:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    is_ongoing = before.state is TransactionState.ONGOING
    if is_ongoing and before.partitions.issuperset(partitions):
        return ProducerIdAndEpoch()
    after = replace(
        before,
        state=TransactionState.ONGOING,
        partitions=before.partitions.union(partitions),
        start_ms=before.start_ms if is_ongoing else wall_ms,
        last_update_ms=wall_ms,
        previous_producer_id=before.producer_id,
        client_version=client_version,
    )
    return TransactionChange(after)


def verify_partitions(
    now: Transaction, producer: ProducerIdAndEpoch, partitions: Collection[TopicPartition]
) -> ErrorCode | frozenset[TopicPartition]:
    """Returns the partitions that take part, or an error for all. A pending change is not looked at (KAFKA-14904)."""
    code = producer_error(now, producer)
    if code is not ErrorCode.NONE:
        return code
    if now.state.is_prepared:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    return now.partitions.intersection(partitions)


def producer_error(now: Transaction, producer: ProducerIdAndEpoch) -> ErrorCode:
    """An epoch above the current one is refused, too: no producer has it."""
    if producer.producer_id != now.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    return ErrorCode.NONE if is_current_epoch(producer.epoch, now.producer_epoch) else ErrorCode.PRODUCER_FENCED


def is_current_epoch(epoch: int, current: int) -> bool:
    """Guard 22: a coordinator accepts requests of the current epoch of a transactional id only.

    Without it a producer that was replaced ends the transaction of its successor.
    """
    return epoch == current
