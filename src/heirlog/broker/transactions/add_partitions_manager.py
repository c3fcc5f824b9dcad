"""Asks coordinators on behalf of this broker's partitions: does this partition take part in that transaction?

    wanted --> queued for the coordinator's broker --> in flight (one request per broker) --> each entry is answered

Before the first batch of a transaction is appended to a partition, its leader asks whether the coordinator knows of it.
Otherwise a batch that was delayed until after the marker would begin a transaction without an end (KIP-890). With
clients of transaction.version 2 the leader also adds the partition, which they no longer do themselves.

A request has one entry per transactional id. What is asked of an id that waits already:

    by the newer epoch    the waiting ones get INVALID_PRODUCER_EPOCH
    by the same producer  they share an entry: a client may write records and commit offsets at the same time. (Apache
                          Kafka gives the waiting one NETWORK_EXCEPTION, because there a connection has one request at
                          a time, so it must be of a client that does not wait any more.)
    by an older epoch     it gets INVALID_PRODUCER_EPOCH itself

Source: KIP-890, part 1; Kafka's AddPartitionsToTxnManager.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
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

    def shares_entry_with(self, other: TransactionPartitions) -> bool:
        """Of the same transactional id: whether one entry can ask for both."""
        return (self.producer, self.verify_only) == (other.producer, other.verify_only)


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
        self._waiting: dict[BrokerId, dict[str, list[TransactionPartitions]]] = {}
        """By transactional id; all of the newest epoch."""
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
        others = waiting.get(wanted.transactional_id, [])
        if any(other.producer.epoch > wanted.producer.epoch for other in others):
            self._fail(wanted, ErrorCode.INVALID_PRODUCER_EPOCH)
            return
        for older in [other for other in others if other.producer.epoch < wanted.producer.epoch]:
            others.remove(older)
            self._fail(older, ErrorCode.INVALID_PRODUCER_EPOCH)
        waiting[wanted.transactional_id] = [*others, wanted]
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
        waiting = self._waiting.pop(broker)
        if not self._brokers.reaches(broker):
            for each in waiting.values():
                for wanted in each:
                    self._fail(wanted, ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return
        self._in_flight.add(broker)
        sent = [[wanted for wanted in each if wanted.shares_entry_with(each[0])] for each in waiting.values()]
        later = [[wanted for wanted in each if not wanted.shares_entry_with(each[0])] for each in waiting.values()]
        self._waiting[broker] = {each[0].transactional_id: each for each in later if each}
        request = AddPartitionsToTxnRequest(transactions=[_entry(each) for each in sent])
        sent_ms = self._env.now_ms()
        self._brokers.send(
            broker, CHANNEL, request, lambda result: self._answered(broker, sent, sent_ms, result), self._timeout_ms
        )

    def _answered(
        self,
        broker: BrokerId,
        sent: Sequence[Sequence[TransactionPartitions]],
        sent_ms: int,
        result: AddPartitionsToTxnResponse | SendFailure,
    ) -> None:
        self._in_flight.discard(broker)
        now_ms = self._env.now_ms()
        for wanted in (wanted for each in sent for wanted in each):
            codes = _codes(wanted, result)
            self.answered += 1
            self.failures += sum(code is not ErrorCode.NONE for code in codes.values())
            self.times.add(now_ms, now_ms - sent_ms)
            wanted.answer(codes)
        self._send(broker)


def _entry(sharing: Sequence[TransactionPartitions]) -> AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction:
    nested = AddPartitionsToTxnRequest
    first = sharing[0]
    partitions = {partition for wanted in sharing for partition in wanted.partitions}
    return nested.AddPartitionsToTxnTransaction(
        transactional_id=first.transactional_id,
        producer_id=first.producer.producer_id,
        producer_epoch=first.producer.epoch,
        verify_only=first.verify_only,
        topics=[
            nested.AddPartitionsToTxnTopic(name=topic, partitions=[index for _, index in named])
            for topic, named in groupby(sorted(partitions), key=lambda partition: partition[0])
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
