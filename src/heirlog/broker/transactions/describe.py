"""DescribeTransactions and ListTransactions: the transactional ids that this broker coordinates.

ListTransactions names what it found in one answer, so it has to wait until every partition is loaded: a tool that
misses an id would take its transactions for hanging ones.

Source: KIP-664, KIP-994, KIP-1152.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import groupby
from typing import Final

from heirlog.broker.transactions.coordinator import TransactionCoordinator
from heirlog.broker.transactions.state import Transaction, TransactionState
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
)

STATES: Final = {state.text: state for state in TransactionState}
_RE2_ONLY: Final = re.compile(r"\\(?:[pP](?:\{\^?\w+\}|\w)|[QEzC])")
"""Syntax that the expressions of Kafka's brokers (RE2) have and Python's do not."""

Described = DescribeTransactionsResponse.TransactionState


def list_transactions(
    coordinator: TransactionCoordinator, request: ListTransactionsRequest, wall_ms: int
) -> ListTransactionsResponse:
    """COORDINATOR_LOAD_IN_PROGRESS while any partition is loading, INVALID_REGULAR_EXPRESSION for a bad pattern."""
    matches: Callable[[str], object] = bool
    if request.transactional_id_pattern:
        try:
            matches = re.compile(_RE2_ONLY.sub("x", request.transactional_id_pattern)).fullmatch
        except (re.error, OverflowError, RecursionError):
            return ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
    shards = coordinator.shards()
    if not all(shard.loaded for shard in shards):
        return ListTransactionsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    names = dict.fromkeys(request.state_filters)
    states = {STATES[name] for name in names if name in STATES}
    producer_ids = set(request.producer_id_filters)

    def is_wanted(transaction: Transaction) -> bool:
        return (
            (not names or transaction.state in states)
            and (not producer_ids or transaction.producer_id in producer_ids)
            and (request.duration_filter < 0 or _duration_ms(transaction, wall_ms) > request.duration_filter)
            and bool(matches(transaction.transactional_id))
        )

    found = [transaction for shard in shards for transaction in shard.all() if is_wanted(transaction)]
    return ListTransactionsResponse(
        unknown_state_filters=[name for name in names if name not in STATES],
        transaction_states=[
            ListTransactionsResponse.TransactionState(
                transactional_id=transaction.transactional_id,
                producer_id=transaction.producer_id,
                transaction_state=transaction.state.text,
            )
            for transaction in found
        ],
    )


def _duration_ms(transaction: Transaction, wall_ms: int) -> int:
    """How long the transaction is open; without a start since 1970, as on Apache Kafka."""
    return wall_ms - transaction.start_ms


def describe_transactions(
    coordinator: TransactionCoordinator, request: DescribeTransactionsRequest
) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(
        transaction_states=[_described(coordinator, name) for name in request.transactional_ids]
    )


def _described(
    coordinator: TransactionCoordinator, transactional_id: str
) -> DescribeTransactionsResponse.TransactionState:
    shard = coordinator.shard_of(transactional_id)
    if isinstance(shard, ErrorCode):
        return Described(transactional_id=transactional_id, error_code=shard)
    found = shard.get(transactional_id)
    if found is None:
        return Described(transactional_id=transactional_id, error_code=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
    return Described(
        transactional_id=transactional_id,
        transaction_state=found.state.text,
        transaction_timeout_ms=found.timeout_ms,
        transaction_start_time_ms=found.start_ms,
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
        topics=[
            DescribeTransactionsResponse.TopicData(topic=topic, partitions=[index for _, index in named])
            for topic, named in groupby(sorted(found.partitions), key=lambda partition: partition[0])
        ],
    )
