"""The records of `__transaction_state`, in Kafka's format: the newest of each id counts, one without a value deletes.

    key     int16 version 0 | TransactionLogKey
    value   int16 version   | TransactionLogValue

Version 1 of the value has tagged fields and needs transaction.version 1. Unlike Apache Kafka 4.2, heirlog also writes
the former and the next producer id, and the last epoch (a field of its own): without them a new coordinator takes a
producer whose answer was lost for a replaced one (KAFKA-20310, KAFKA-20357). Version 0 has no room for them.

Keys of other versions are of later kinds of records and are skipped (KIP-915). A value of another version is an error:
a coordinator that skipped it would forget a decision.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby
from typing import NamedTuple

from heirlog.broker.coordinator_records import decode_message, encode_key, encode_value, prefix_of
from heirlog.broker.groups.offsets import TopicPartition
from heirlog.broker.transactions.state import Transaction, TransactionState
from heirlog.metadata.topic_name import TRANSACTIONS_TOPIC
from heirlog.protocol.batch import encode_batch
from heirlog.protocol.primitives import Malformed
from heirlog.protocol.records import TransactionLogKey, TransactionLogValue
from heirlog.protocol.transaction_marker import EPOCH_PER_TRANSACTION

KEY_VERSION = 0
VALUE_VERSION_MAX = 1
SMALL_RECORD_BYTES, PARTITION_BYTES_MAX = 40_000, 300
"""At most what a record has without partitions, and for each of them: names are limited."""

_LONGEST_ID = 2**63 - 1


def has_no_room_for_successor(version: int) -> bool:
    """Guard 34: the producer id that follows a used-up one is stored with the outcome, from version 1 of the value on.

    Without it the next coordinator refuses a producer that has got this id as its answer (KAFKA-20310).
    """
    return version == 0


class StoredTransaction(NamedTuple):
    transactional_id: str
    transaction: Transaction | None
    """None: the id is deleted."""


class StoredValue(NamedTuple):
    transactional_id: str
    value: TransactionLogValue | None
    """None: the id is deleted."""


def transaction_key(transactional_id: str) -> bytes:
    return encode_key(KEY_VERSION, TransactionLogKey(transactional_id=transactional_id), KEY_VERSION)


def transaction_value(stored: Transaction, transaction_version: int) -> bytes:
    """transaction_version: the finalised level of the feature."""
    version = min(transaction_version, VALUE_VERSION_MAX)
    value = TransactionLogValue(
        producer_id=stored.producer_id,
        producer_epoch=stored.producer_epoch,
        transaction_timeout_ms=stored.timeout_ms,
        transaction_status=stored.state,
        transaction_partitions=None if stored.state is TransactionState.EMPTY else _by_topic(stored.partitions),
        transaction_last_update_timestamp_ms=stored.last_update_ms,
        transaction_start_timestamp_ms=stored.start_ms,
    )
    if version:
        value.previous_producer_id = stored.previous_producer_id
        value.client_transaction_version = stored.client_version
        value.last_producer_epoch = stored.last_producer_epoch
    if not has_no_room_for_successor(version):
        value.next_producer_id = stored.next_producer_id
    return encode_value(value, version)


def can_be_ended(open_transaction: Transaction, max_batch_bytes: int) -> bool:
    """Whether the topic accepts the record of the outcome, too, which is longer than that of the open transaction.
    One that it refuses would leave the transaction open for ever.
    """
    is_small = SMALL_RECORD_BYTES + PARTITION_BYTES_MAX * len(open_transaction.partitions) <= max_batch_bytes
    return is_small or _outcome_bytes_max(open_transaction) <= max_batch_bytes


def _outcome_bytes_max(open_transaction: Transaction) -> int:
    """How large the batch of the transaction's outcome can be, whatever level the feature has by then."""
    outcome = replace(
        open_transaction,
        state=TransactionState.PREPARE_COMMIT,
        next_producer_id=_LONGEST_ID,
        last_producer_epoch=open_transaction.producer_epoch,
        client_version=EPOCH_PER_TRANSACTION,
    )
    key = transaction_key(outcome.transactional_id)
    return max(
        len(encode_batch([(key, transaction_value(outcome, level), (), 0)])) for level in (0, EPOCH_PER_TRANSACTION)
    )


def _by_topic(partitions: Iterable[TopicPartition]) -> list[TransactionLogValue.PartitionsSchema]:
    return [
        TransactionLogValue.PartitionsSchema(topic=topic, partition_ids=[index for _, index in named])
        for topic, named in groupby(sorted(partitions), key=lambda partition: partition[0])
    ]


def read_value(key: bytes | None, value: bytes | None) -> StoredValue | None:
    """None for a record of another kind. Raises Malformed."""
    if prefix_of(key, TRANSACTIONS_TOPIC) != KEY_VERSION or key is None:
        return None
    transactional_id = decode_message(TransactionLogKey, key, KEY_VERSION).transactional_id
    if value is None:
        return StoredValue(transactional_id, None)
    version = prefix_of(value, TRANSACTIONS_TOPIC)
    if not 0 <= version <= VALUE_VERSION_MAX:
        raise Malformed(f"version {version} of the state of {transactional_id} is unknown")
    return StoredValue(transactional_id, decode_message(TransactionLogValue, value, version))


def read_record(key: bytes | None, value: bytes | None) -> StoredTransaction | None:
    """None for a record of another kind. Raises Malformed."""
    read = read_value(key, value)
    if read is None:
        return None
    transactional_id, stored = read
    if stored is None:
        return StoredTransaction(transactional_id, None)
    try:
        state = TransactionState(stored.transaction_status)
    except ValueError as error:
        raise Malformed(f"state {stored.transaction_status} of {transactional_id} is unknown") from error
    partitions = frozenset(
        (topic.topic, index) for topic in stored.transaction_partitions or () for index in topic.partition_ids
    )
    transaction = Transaction(
        transactional_id=transactional_id,
        producer_id=stored.producer_id,
        producer_epoch=stored.producer_epoch,
        timeout_ms=stored.transaction_timeout_ms,
        state=state,
        partitions=partitions,
        start_ms=stored.transaction_start_timestamp_ms,
        last_update_ms=stored.transaction_last_update_timestamp_ms,
        previous_producer_id=stored.previous_producer_id,
        next_producer_id=stored.next_producer_id,
        last_producer_epoch=stored.last_producer_epoch,
        client_version=stored.client_transaction_version,
    )
    return StoredTransaction(transactional_id, transaction)
