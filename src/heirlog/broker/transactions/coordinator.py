"""The transaction coordinator of this broker: the requests of the transactional ids whose partition of
`__transaction_state` it leads.

Every request first finds its shard, or gets NOT_COORDINATOR (find the coordinator again), COORDINATOR_LOAD_IN_PROGRESS
(retry) or COORDINATOR_NOT_AVAILABLE (the partition has a record that cannot be read).

PRODUCER_FENCED is INVALID_PRODUCER_EPOCH for clients whose version of the request does not know it (KIP-588).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from heirlog.broker.broker_requests import BrokerRequests
from heirlog.broker.groups.offsets import TopicPartition
from heirlog.broker.internal_topic_shards import InternalTopicShards
from heirlog.broker.partition import Partition
from heirlog.broker.replica_manager import ReplicaManager
from heirlog.broker.transactions.initialize import FreshProducerId
from heirlog.broker.transactions.marker_sender import MarkerSender
from heirlog.broker.transactions.shard import TransactionConfig, TransactionShard
from heirlog.broker.transactions.state import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_TIMEOUT_MS, ProducerIdAndEpoch
from heirlog.context import Context
from heirlog.env import Env
from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.image import Image
from heirlog.metadata.journal import ImageJournal
from heirlog.metadata.topic_name import TRANSACTIONS_TOPIC
from heirlog.pending import Pending
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import (
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from heirlog.protocol.transaction_marker import EPOCH_PER_TRANSACTION
from heirlog.raft.latency_window import LatencyWindow

ID_MAX_CHARACTERS = 8191
"""Limit of transactional ids, as of group ids."""
FENCED_IN_INIT = 4
"""First version of InitProducerId that knows PRODUCER_FENCED."""
FENCED_IN_OTHERS = 2
"""The same for AddPartitionsToTxn, AddOffsetsToTxn and EndTxn."""
EPOCH_IN_END = 5
"""First version of EndTxn that gives the producer its next epoch (KIP-890)."""

PartitionsAnswer: TypeAlias = Callable[[ErrorCode], None]


class TransactionCoordinator:
    def __init__(
        self,
        env: Env,
        static: StaticConfig,
        replicas: ReplicaManager,
        image: Callable[[], Image],
        fresh_producer_id: FreshProducerId,
        brokers: BrokerRequests,
    ) -> None:
        """fresh_producer_id: returns None while no id is at hand, and gets more."""
        self._env = env
        self._replicas = replicas
        self._image = image
        self._fresh_producer_id = fresh_producer_id
        self._timeout_max_ms = static.int("transaction.max.timeout.ms")
        self._allows_two_phase_commit = bool(static["transaction.two.phase.commit.enable"])
        request_timeout_ms = static.int("request.timeout.ms")
        self._config = TransactionConfig(
            append_timeout_ms=request_timeout_ms,
            abort_interval_ms=static.int("transaction.abort.timed.out.transaction.cleanup.interval.ms"),
            expiration_ms=static.int("transactional.id.expiration.ms"),
            expiration_interval_ms=static.int("transaction.remove.expired.transaction.cleanup.interval.ms"),
        )
        self.load_times = LatencyWindow()
        """From the start of loading a partition of `__transaction_state` to its end."""
        self._markers = MarkerSender(env, image, brokers, request_timeout_ms)
        self._shards = InternalTopicShards(TRANSACTIONS_TOPIC, replicas, self._new_shard)

    def _new_shard(self, partition: Partition) -> TransactionShard:
        return TransactionShard(
            self._env,
            self._replicas,
            partition,
            self._config,
            self._markers,
            fresh_producer_id=self._fresh_producer_id,
            transaction_version=lambda: self._image().transaction_version,
            load_times=self.load_times,
        )

    def on_image(self, image: Image, changed: ImageJournal | None) -> None:
        """Called after the partitions have followed the image. `changed` is None if anything may differ."""
        self._shards.on_image(image, changed)

    def stop(self) -> None:
        """The broker stops serving."""
        self._shards.stop()

    def partition_of(self, transactional_id: str) -> int | None:
        """The partition of `__transaction_state` for this id; None while the topic does not exist."""
        return self._shards.partition_of(transactional_id)

    def shard_of(self, transactional_id: str) -> TransactionShard | ErrorCode:
        """The loaded shard of this id, or the error for the client."""
        if not transactional_id or len(transactional_id) > ID_MAX_CHARACTERS:
            return ErrorCode.INVALID_REQUEST
        shard = self._shards.shard_of(transactional_id)
        if shard is None:
            return ErrorCode.NOT_COORDINATOR
        if shard.is_unreadable:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        return shard if shard.loaded else ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    @property
    def unknown_destinations(self) -> int:
        """Decided transactions with a marker for a partition that has no leader that can be reached."""
        return self._markers.unknown_destinations

    @property
    def waiting_completions(self) -> int:
        """Transactions with all markers whose completion could not be written yet."""
        return sum(shard.waiting_completions for shard in self._shards.shards())

    def shards(self) -> list[TransactionShard]:
        """All shards of this broker, loaded or not."""
        return self._shards.shards()

    # requests

    def init_producer_id(
        self, request: InitProducerIdRequest, context: Context
    ) -> InitProducerIdResponse | Pending[InitProducerIdResponse]:
        """For a transactional id."""
        transactional_id = request.transactional_id or ""
        if not transactional_id or (request.producer_id == NO_PRODUCER_ID) != (
            request.producer_epoch == NO_PRODUCER_EPOCH
        ):
            return InitProducerIdResponse(error_code=ErrorCode.INVALID_REQUEST, producer_epoch=-1)
        timeout_ms = self._timeout_ms(request)
        if isinstance(timeout_ms, ErrorCode):
            return InitProducerIdResponse(error_code=timeout_ms, producer_epoch=-1)
        shard = self.shard_of(transactional_id)
        if isinstance(shard, ErrorCode):
            return InitProducerIdResponse(error_code=shard, producer_epoch=-1)
        given = None
        if request.producer_id != NO_PRODUCER_ID:
            given = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
        pending: Pending[InitProducerIdResponse] = Pending()

        def answer(code: ErrorCode, producer: ProducerIdAndEpoch) -> None:
            pending.complete(
                InitProducerIdResponse(
                    error_code=known_to(code, context.api_version, FENCED_IN_INIT),
                    producer_id=producer.producer_id,
                    producer_epoch=producer.epoch,
                )
            )

        shard.init_producer_id(transactional_id, given, timeout_ms, answer)
        return pending

    def _timeout_ms(self, request: InitProducerIdRequest) -> int | ErrorCode:
        """The time limit of the producer's transactions; with two-phase commit they have none (KIP-939)."""
        if request.enable2_pc and not self._allows_two_phase_commit:
            return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        if request.keep_prepared_txn:
            # no release of Apache Kafka up to 4.2 can
            return ErrorCode.UNSUPPORTED_VERSION
        if request.enable2_pc:
            return NO_TIMEOUT_MS
        is_allowed = 0 < request.transaction_timeout_ms <= self._timeout_max_ms
        return request.transaction_timeout_ms if is_allowed else ErrorCode.INVALID_TRANSACTION_TIMEOUT

    def add_partitions(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Iterable[TopicPartition],
        client_version: int,
        answer: PartitionsAnswer,
    ) -> None:
        """Add partitions to the transaction of a producer; all of them or none. client_version: transaction.version
        that the request stands for."""
        shard = self.shard_of(transactional_id)
        if isinstance(shard, ErrorCode):
            answer(shard)
        else:
            shard.add_partitions(transactional_id, producer, partitions, client_version, lambda code, _: answer(code))

    def verify_partitions(
        self, transactional_id: str, producer: ProducerIdAndEpoch, partitions: Iterable[TopicPartition]
    ) -> ErrorCode | frozenset[TopicPartition]:
        """Returns the partitions that take part in the open transaction, or an error for all."""
        shard = self.shard_of(transactional_id)
        if isinstance(shard, ErrorCode):
            return shard
        return shard.verify_partitions(transactional_id, producer, partitions)

    def end_txn(self, request: EndTxnRequest, context: Context) -> EndTxnResponse | Pending[EndTxnResponse]:
        shard = self.shard_of(request.transactional_id)
        if isinstance(shard, ErrorCode):
            return EndTxnResponse(error_code=shard)
        pending: Pending[EndTxnResponse] = Pending()

        def answer(code: ErrorCode, producer: ProducerIdAndEpoch) -> None:
            pending.complete(
                EndTxnResponse(
                    error_code=known_to(code, context.api_version, FENCED_IN_OTHERS),
                    producer_id=producer.producer_id,
                    producer_epoch=producer.epoch,
                )
            )

        shard.end(
            request.transactional_id,
            ProducerIdAndEpoch(request.producer_id, request.producer_epoch),
            commit=request.committed,
            client_version=EPOCH_PER_TRANSACTION if context.api_version >= EPOCH_IN_END else 0,
            answer=answer,
        )
        return pending


def known_to(code: ErrorCode, api_version: int, fenced_from: int) -> ErrorCode:
    """The error as a client with this version of the request knows it."""
    if code is ErrorCode.PRODUCER_FENCED and api_version < fenced_from:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code
