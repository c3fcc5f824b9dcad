"""Asks coordinators on behalf of this broker's partitions: does this partition take part in that transaction?

    wanted --> queued for the coordinator's broker --> in flight (one request per broker) --> each entry is answered

Before the first batch of a transaction is appended to a partition, its leader asks whether the coordinator knows of it.
Otherwise a batch that was delayed until after the marker would begin a transaction without an end (KIP-890). With
clients of transaction.version 2 the leader also adds the partition, which they no longer do themselves.

One entry per transactional id waits for a broker. A producer that has sent two requests has only the later one in mind:

    the newcomer has the newer epoch   the waiting one gets INVALID_PRODUCER_EPOCH
    the same epoch                     the waiting one gets NETWORK_EXCEPTION, which its client retries
    an older epoch                     the newcomer gets INVALID_PRODUCER_EPOCH

Source: KIP-890, part 1; Kafka's AddPartitionsToTxnManager.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import TypeAlias

from heirlog.broker.broker_requests import BrokerRequests
from heirlog.broker.groups.offsets import TopicPartition
from heirlog.broker.transactions.state import ProducerIdAndEpoch
from heirlog.env import Env, SendFailure
from heirlog.metadata.image import Image
from heirlog.metadata.topic_name import TRANSACTIONS_TOPIC
from heirlog.protocol.errors import ErrorCode, error_code
from heirlog.protocol.messages import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from heirlog.protocol.types import NO_LEADER, BrokerId
from heirlog.raft.latency_window import LatencyWindow

CHANNEL = "txn-partitions"

Codes: TypeAlias = Mapping[TopicPartition, ErrorCode]


@dataclass(frozen=True, slots=True)
class TransactionPartitions:
    """What one request wants to know. `answer` gets an error or NONE for each of the partitions, once, and never within
    `ask`: who asks may have a long queue of requests that get the same answer."""

    transactional_id: str
    producer: ProducerIdAndEpoch
    partitions: Collection[TopicPartition]
    verify_only: bool
    answer: Callable[[Codes], None]


class AddPartitionsToTxnManager:
    def __init__(
        self,
        env: Env,
        image: Callable[[], Image],
        partition_of: Callable[[str], int | None],
        brokers: BrokerRequests,
        timeout_ms: int,
    ) -> None:
        """partition_of: of a transactional id in `__transaction_state`."""
        self._env = env
        self._image = image
        self._partition_of = partition_of
        self._brokers = brokers
        self._timeout_ms = timeout_ms
        self._waiting: dict[BrokerId, dict[str, TransactionPartitions]] = {}
        self._in_flight: set[BrokerId] = set()
        self.failures = 0
        """Partitions that a coordinator did not confirm, or about which it gave no answer."""
        self.answered = 0
        """Entries whose request was answered, or has no answer."""
        self.times = LatencyWindow()
        """From sending a request to its answer, for each of its entries."""

    def ask(self, wanted: TransactionPartitions) -> None:
        """Ask the coordinator of the transactional id; COORDINATOR_NOT_AVAILABLE while it has none."""
        broker = self._coordinator_of(wanted.transactional_id)
        if broker is None:
            self._fail(wanted, ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return
        waiting = self._waiting.setdefault(broker, {})
        other = waiting.get(wanted.transactional_id)
        if other is not None and other.producer.epoch > wanted.producer.epoch:
            self._fail(wanted, ErrorCode.INVALID_PRODUCER_EPOCH)
            return
        waiting[wanted.transactional_id] = wanted
        if other is not None:
            is_older = other.producer.epoch < wanted.producer.epoch
            self._fail(other, ErrorCode.INVALID_PRODUCER_EPOCH if is_older else ErrorCode.NETWORK_EXCEPTION)
        self._send(broker)

    def _fail(self, wanted: TransactionPartitions, code: ErrorCode) -> None:
        self._env.call_later(0, lambda: wanted.answer(dict.fromkeys(wanted.partitions, code)))

    def _coordinator_of(self, transactional_id: str) -> BrokerId | None:
        index = self._partition_of(transactional_id)
        state = None if index is None else self._image().partition_named(TRANSACTIONS_TOPIC, index)
        if state is None or state.leader == NO_LEADER or not self._brokers.reaches(state.leader):
            return None
        return state.leader

    def _send(self, broker: BrokerId) -> None:
        if broker in self._in_flight or not self._waiting.get(broker):
            return
        sent = self._waiting.pop(broker)
        if not self._brokers.reaches(broker):
            for wanted in sent.values():
                self._fail(wanted, ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return
        self._in_flight.add(broker)
        request = AddPartitionsToTxnRequest(transactions=[_entry(wanted) for wanted in sent.values()])
        sent_ms = self._env.now_ms()
        self._brokers.send(
            broker, CHANNEL, request, lambda result: self._answered(broker, sent, sent_ms, result), self._timeout_ms
        )

    def _answered(
        self,
        broker: BrokerId,
        sent: Mapping[str, TransactionPartitions],
        sent_ms: int,
        result: AddPartitionsToTxnResponse | SendFailure,
    ) -> None:
        self._in_flight.discard(broker)
        now_ms = self._env.now_ms()
        for wanted in sent.values():
            codes = _codes(wanted, result)
            self.answered += 1
            self.failures += sum(code is not ErrorCode.NONE for code in codes.values())
            self.times.add(now_ms, now_ms - sent_ms)
            wanted.answer(codes)
        self._send(broker)


def _entry(wanted: TransactionPartitions) -> AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction:
    nested = AddPartitionsToTxnRequest
    return nested.AddPartitionsToTxnTransaction(
        transactional_id=wanted.transactional_id,
        producer_id=wanted.producer.producer_id,
        producer_epoch=wanted.producer.epoch,
        verify_only=wanted.verify_only,
        topics=[
            nested.AddPartitionsToTxnTopic(name=topic, partitions=[index for _, index in named])
            for topic, named in groupby(sorted(wanted.partitions), key=lambda partition: partition[0])
        ],
    )


def _codes(wanted: TransactionPartitions, result: AddPartitionsToTxnResponse | SendFailure) -> Codes:
    if isinstance(result, SendFailure):
        # a coordinator that does not know the question cannot say no
        passing = ErrorCode.NONE if result.kind == "unsupported" else ErrorCode.NETWORK_EXCEPTION
        return dict.fromkeys(wanted.partitions, passing)
    if result.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
        # a mistake in the brokers' configuration, which no client can mend
        return dict.fromkeys(wanted.partitions, ErrorCode.INVALID_TXN_STATE)
    if result.error_code:
        return dict.fromkeys(wanted.partitions, error_code(result.error_code))
    found = {
        (topic.name, partition.partition_index): error_code(partition.partition_error_code)
        for transaction in result.results_by_transaction
        if transaction.transactional_id == wanted.transactional_id
        for topic in transaction.topic_results
        for partition in topic.results_by_partition
    }
    return {partition: found.get(partition, ErrorCode.NETWORK_EXCEPTION) for partition in wanted.partitions}
