"""AddPartitionsToTxn: partitions that begin to take part in a transaction, or are looked up.

All partitions of a transaction are added or none: if one of them is unknown or refused, the others get
OPERATION_NOT_ATTEMPTED. An unknown partition must not be added, not even for its leader, whose image may be newer: at
the end of the transaction it would pass for a deleted one, and would get no marker.

v0-3 are of a client, for one transaction. v4-5 are of a broker that is about to append records of these transactions.
It wants to know whether the partitions take part (*verify*), or adds them for its client (KIP-890).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import TypeAlias

from heirlog.broker.groups.offsets import TopicPartition
from heirlog.broker.transactions.coordinator import FENCED_IN_OTHERS, TransactionCoordinator, known_to
from heirlog.broker.transactions.state import ProducerIdAndEpoch
from heirlog.context import Context
from heirlog.metadata.image import Image
from heirlog.metadata.topic_name import INTERNAL_TOPICS
from heirlog.pending import Pending
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from heirlog.protocol.transaction_marker import EPOCH_PER_TRANSACTION

BATCHED = 4
"""First version of brokers, with several transactions."""

CodeOf: TypeAlias = Callable[[TopicPartition], ErrorCode]
Reply: TypeAlias = AddPartitionsToTxnResponse | Pending[AddPartitionsToTxnResponse]
Topics: TypeAlias = Iterable[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic]
Transaction: TypeAlias = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction


def add_partitions_to_txn(
    coordinator: TransactionCoordinator, image: Image, request: AddPartitionsToTxnRequest, context: Context
) -> Reply:
    if context.api_version >= BATCHED:
        return add_batched(coordinator, image, request)
    refused = _refused(image, request.v3_and_below_topics, lambda topic: _is_refused(topic, context))
    if refused is not None:
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_results(request.v3_and_below_topics, refused))
    pending: Pending[AddPartitionsToTxnResponse] = Pending()

    def answer(code: ErrorCode) -> None:
        known = known_to(code, context.api_version, FENCED_IN_OTHERS)
        results = _results(request.v3_and_below_topics, lambda _: known, is_empty_listed=True)
        pending.complete(AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results))

    producer = ProducerIdAndEpoch(request.v3_and_below_producer_id, request.v3_and_below_producer_epoch)
    partitions = _partitions(request.v3_and_below_topics)
    coordinator.add_partitions(request.v3_and_below_transactional_id, producer, partitions, 0, answer)
    return pending


def _is_refused(topic: str, context: Context) -> bool:
    """Whether no client can add its partitions, or not this one."""
    return topic in INTERNAL_TOPICS or (context.refuses is not None and context.refuses(topic))


def _refused(image: Image, topics: Topics, is_refused: Callable[[str], bool]) -> CodeOf | None:
    """The errors of all partitions of a transaction, if one of them cannot be added."""
    found: dict[TopicPartition, ErrorCode] = {}
    for topic in topics:
        for index in topic.partitions:
            if is_refused(topic.name):
                found[topic.name, index] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif image.partition_named(topic.name, index) is None:
                found[topic.name, index] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return (lambda partition: found.get(partition, ErrorCode.OPERATION_NOT_ATTEMPTED)) if found else None


def add_batched(coordinator: TransactionCoordinator, image: Image, request: AddPartitionsToTxnRequest) -> Reply:
    """Of a broker. One answer for all transactions, once each of them has its result."""
    if not request.transactions:
        return AddPartitionsToTxnResponse()
    pending: Pending[AddPartitionsToTxnResponse] = Pending()
    results: list[AddPartitionsToTxnResponse.AddPartitionsToTxnResult] = []

    def answered(transaction: Transaction, code_of: CodeOf, *, is_empty_listed: bool = False) -> None:
        topic_results = _results(transaction.topics, code_of, is_empty_listed=is_empty_listed)
        results.append(
            AddPartitionsToTxnResponse.AddPartitionsToTxnResult(
                transactional_id=transaction.transactional_id, topic_results=topic_results
            )
        )
        if len(results) == len(request.transactions):
            pending.complete(AddPartitionsToTxnResponse(results_by_transaction=results))

    for transaction in request.transactions:
        refused = _refused(image, transaction.topics, lambda topic: False)
        if refused is not None:
            answered(transaction, refused)
        else:
            _add_or_verify(coordinator, transaction, partial(answered, transaction))
    return pending


def _add_or_verify(
    coordinator: TransactionCoordinator, transaction: Transaction, answered: Callable[..., None]
) -> None:
    producer = ProducerIdAndEpoch(transaction.producer_id, transaction.producer_epoch)
    partitions = _partitions(transaction.topics)
    if transaction.verify_only:
        found = coordinator.verify_partitions(transaction.transactional_id, producer, partitions)
        answered(_verified(found))
    else:
        coordinator.add_partitions(
            transaction.transactional_id,
            producer,
            partitions,
            EPOCH_PER_TRANSACTION,
            lambda code: answered(lambda _: code, is_empty_listed=True),
        )


def _verified(found: ErrorCode | frozenset[TopicPartition]) -> CodeOf:
    if isinstance(found, ErrorCode):
        return lambda _: found
    return lambda partition: ErrorCode.NONE if partition in found else ErrorCode.TRANSACTION_ABORTABLE


def _partitions(topics: Topics) -> Collection[TopicPartition]:
    return [(topic.name, index) for topic in topics for index in topic.partitions]


def _results(
    topics: Topics, code_of: CodeOf, *, is_empty_listed: bool = False
) -> list[AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult]:
    """Each partition once, also if the request has it twice. is_empty_listed: topics without partitions, too."""
    by_topic: dict[str, dict[int, ErrorCode]] = {}
    for topic in topics:
        if not topic.partitions and not is_empty_listed:
            continue
        codes = by_topic.setdefault(topic.name, {})
        codes.update((index, code_of((topic.name, index))) for index in topic.partitions)
    return [
        AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult(
            name=name,
            results_by_partition=[
                AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult(
                    partition_index=index, partition_error_code=code
                )
                for index, code in codes.items()
            ],
        )
        for name, codes in by_topic.items()
    ]
