"""Produce with a transactional id: what would begin a transaction in a partition is first confirmed by its coordinator.

    every partition has the transaction open ------------------------------------> append
    some have not --> guards --> the coordinator is asked --> (answer) ----------> append, without the refused ones
                                                                  |
    the next requests of this transactional id wait in a queue ---+

A producer sends several requests without waiting for answers. Those behind one that is being confirmed must not
overtake it, or they would be refused as out of order; so all requests of a transactional id keep their order here.
(Apache Kafka reads no further request from a connection before the last one is answered.)

How the request is confirmed depends on its version (KIP-890): until 10 the error is one that ends the transaction on
old clients, 11 knows TRANSACTION_ABORTABLE, and from 12 on the broker adds the partition for the client.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from heirlog.broker.groups.offsets import TopicPartition
from heirlog.broker.partition import Partition, ReplicaRole
from heirlog.broker.replica_manager import ReplicaManager
from heirlog.broker.transactions.add_partitions_manager import Codes, TransactionPartitions
from heirlog.broker.transactions.state import ProducerIdAndEpoch
from heirlog.context import Context
from heirlog.env import Env
from heirlog.pending import Pending
from heirlog.protocol.batch import HEADER_SIZE, TRANSACTIONAL, BatchHeader, read_header
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import ProduceRequest
from heirlog.protocol.primitives import records_view
from heirlog.storage.verification import UNVERIFIED, VerificationGuard

TOPIC_ID_VERSION = 13
"""The first version of Produce that names topics by their id."""
ABORTABLE_VERSION = 11
ADDING_VERSION = 12
WAITING_BYTES_MAX = 64 * 1024 * 1024
"""Limit of the records that wait for coordinators. Above it a request is refused, and its client tries again."""

Checked: TypeAlias = "Mapping[TopicPartition, VerificationGuard | KafkaError]"
"""Guards of partitions that were confirmed, and why others were refused. Partitions that are not named need nothing."""
NOTHING_CHECKED: Checked = {}
Append: TypeAlias = Callable[[ProduceRequest, Context, Checked], Any]

_TO_CLIENT = {
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_COORDINATOR: ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.CONCURRENT_TRANSACTIONS: ErrorCode.NOT_ENOUGH_REPLICAS,
    # another partition of the request is so new that the coordinator does not know it yet
    ErrorCode.OPERATION_NOT_ATTEMPTED: ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.PRODUCER_FENCED: ErrorCode.INVALID_PRODUCER_EPOCH,
}
"""Errors of a coordinator as producers know them: all but the last one pass."""


class AsksCoordinators(Protocol):
    def ask(self, wanted: TransactionPartitions) -> None: ...


@dataclass(slots=True)
class _Waiting:
    request: ProduceRequest
    context: Context
    pending: Pending[Any]
    size_bytes: int


class TransactionalProduce:
    def __init__(
        self,
        env: Env,
        replicas: ReplicaManager,
        coordinators: AsksCoordinators,
        append: Append,
        *,
        is_verified: Callable[[], bool],
        retry_ms: int,
        retry_max_ms: int,
    ) -> None:
        """append: appends the batches of a request. is_verified: `transaction.partition.verification.enable`, now.
        retry_ms, retry_max_ms: `add.partitions.to.txn.retry.backoff.ms` and its maximum."""
        self._env = env
        self._replicas = replicas
        self._coordinators = coordinators
        self._append = append
        self._is_verified = is_verified
        self._retry_ms = retry_ms
        self._retry_max_ms = retry_max_ms
        self._queues: dict[str, deque[_Waiting]] = {}
        """Per transactional id: the request that is being confirmed, and those behind it."""
        self._waiting_bytes = 0

    def produce(self, transactional_id: str, request: ProduceRequest, context: Context) -> Any:
        """What `ProduceHandler.produce` returns, or `Pending` for it."""
        if transactional_id not in self._queues:
            checked, unconfirmed = self._checked(request, context)
            if not unconfirmed:
                return self._append(request, context, checked)
        size = sum(len(records_view(data.records)) for topic in request.topic_data for data in topic.partition_data)
        if self._waiting_bytes + size > WAITING_BYTES_MAX:
            why = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "too many records wait for transaction coordinators")
            found = self._transactional(request, context)
            return self._append(request, context, {(each.topic, each.index): why for each, _ in found})
        # the frame of a request is gone when its handler returns
        waiting = _Waiting(with_own_records(request), context, Pending(), size)
        self._waiting_bytes += size
        if transactional_id in self._queues:
            self._queues[transactional_id].append(waiting)
        else:
            self._queues[transactional_id] = deque([waiting])
            self._confirm(transactional_id)
        return waiting.pending

    def _confirm(self, transactional_id: str) -> None:
        """Append the requests of this id in their order, up to one that has to be confirmed first."""
        queue = self._queues[transactional_id]
        while queue:
            waiting = queue[0]
            checked, unconfirmed = self._checked(waiting.request, waiting.context)
            if unconfirmed:
                self._ask(transactional_id, waiting, checked, unconfirmed)
                return
            self._finish(transactional_id, checked)
        del self._queues[transactional_id]

    def _finish(self, transactional_id: str, checked: Checked) -> None:
        waiting = self._queues[transactional_id].popleft()
        self._waiting_bytes -= waiting.size_bytes
        result = self._append(waiting.request, waiting.context, checked)
        if isinstance(result, Pending):
            result.then(waiting.pending.complete)
        else:
            waiting.pending.complete(result)

    def _ask(
        self,
        transactional_id: str,
        waiting: _Waiting,
        checked: Checked,
        unconfirmed: Mapping[TopicPartition, VerificationGuard],
    ) -> None:
        version = waiting.context.api_version
        # of the partitions that exist, whose batches are all of one producer
        header = next(header for _, header in self._transactional(waiting.request, waiting.context))
        producer = ProducerIdAndEpoch(header.producer_id, header.producer_epoch)

        def answered(codes: Codes) -> None:
            if adds and ErrorCode.CONCURRENT_TRANSACTIONS in codes.values() and self._env.now_ms() < deadline_ms:
                self._env.call_later(self._retry_ms, ask)
                return
            found: dict[TopicPartition, VerificationGuard | KafkaError] = dict(checked)
            for partition, guard in unconfirmed.items():
                code = codes[partition]
                found[partition] = guard if code is ErrorCode.NONE else _refusal(code, version)
            self._finish(transactional_id, found)
            self._confirm(transactional_id)

        def ask() -> None:
            wanted = TransactionPartitions(transactional_id, producer, list(unconfirmed), not adds, answered)
            self._coordinators.ask(wanted)

        # the markers of the transaction before may still be on their way: KAFKA-18654
        adds, deadline_ms = version >= ADDING_VERSION, self._env.now_ms() + self._retry_max_ms
        ask()

    def _checked(
        self, request: ProduceRequest, context: Context
    ) -> tuple[Checked, Mapping[TopicPartition, VerificationGuard]]:
        """What is known without the coordinator, and the guards of what it has to confirm."""
        checked: dict[TopicPartition, VerificationGuard | KafkaError] = {}
        unconfirmed: dict[TopicPartition, VerificationGuard] = {}
        is_verified = self._is_verified() or context.api_version >= ADDING_VERSION
        found = self._transactional(request, context)
        mixed = len({(header.producer_id, header.producer_epoch) for _, header in found}) > 1
        for partition, header in found:
            key = (partition.topic, partition.index)
            if mixed:
                why = "the batches of one request are of several producers"
                checked[key] = KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, why)
            elif not is_verified:
                checked[key] = UNVERIFIED
            elif partition.role is ReplicaRole.LEADER:
                self._check(partition, header, context, checked, unconfirmed)
        return checked, unconfirmed

    def _check(
        self,
        partition: Partition,
        header: BatchHeader,
        context: Context,
        checked: dict[TopicPartition, VerificationGuard | KafkaError],
        unconfirmed: dict[TopicPartition, VerificationGuard],
    ) -> None:
        producers = partition.log.producers
        key = (partition.topic, partition.index)
        try:
            needs_verification = producers.needs_verification(header.producer_id, header.producer_epoch)
        except KafkaError as error:
            checked[key] = error
            return
        if needs_verification:
            unconfirmed[key] = producers.guards.guard(
                header.producer_id,
                header.producer_epoch,
                header.base_sequence,
                raises_epoch=context.api_version >= ADDING_VERSION,
                wall_ms=self._env.wall_ms(),
            )

    def _transactional(self, request: ProduceRequest, context: Context) -> list[tuple[Partition, BatchHeader]]:
        """The partitions of this broker with transactional batches; what cannot be read is refused when appended."""
        found = []
        for topic in request.topic_data:
            if context.api_version >= TOPIC_ID_VERSION:
                partitions = self._replicas.partitions_of(topic.topic_id)
            else:
                partitions = self._replicas.partitions_named(topic.name)
            for data in topic.partition_data:
                partition, header = partitions.get(data.index), _transactional_header(data.records)
                if partition is not None and header is not None:
                    found.append((partition, header))
        return found


def _transactional_header(records: Any) -> BatchHeader | None:
    view = records_view(records)
    if len(view) < HEADER_SIZE:
        return None
    try:
        header = read_header(view)
    except KafkaError:
        # the log refuses it
        return None
    return header if header.attributes & TRANSACTIONAL and header.producer_id >= 0 else None


def _refusal(code: ErrorCode, version: int) -> KafkaError:
    if code is ErrorCode.TRANSACTION_ABORTABLE and version < ABORTABLE_VERSION:
        known = ErrorCode.INVALID_TXN_STATE
    elif code is ErrorCode.CONCURRENT_TRANSACTIONS and version >= ADDING_VERSION:
        known = code
    else:
        known = _TO_CLIENT.get(code, code)
    return KafkaError(known, f"the transaction coordinator answers {code.name}")


def with_own_records(request: ProduceRequest) -> ProduceRequest:
    """A copy that shares no records with the request: a log writes offsets into those that it appends."""
    return ProduceRequest(
        transactional_id=request.transactional_id,
        acks=request.acks,
        timeout_ms=request.timeout_ms,
        topic_data=[
            ProduceRequest.TopicProduceData(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_data=[
                    ProduceRequest.PartitionProduceData(index=data.index, records=_copied(data.records))
                    for data in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ],
    )


def _copied(records: Any) -> Any:
    return memoryview(bytearray(records_view(records))) if records else records
