"""Writes the outcome of transactions to their partitions: a marker to the leader of each (WriteTxnMarkers).

    decided ---> queued for the leader of each partition ---> in flight ---> every partition has its marker: done
                   ^      no leader: looked up again              |
                   +---------------- later <--- an error that passes, no answer

There is at most one request in flight per broker; it carries everything that is queued for that broker. A marker that
arrives twice is harmless: it finds no open transaction. So whatever has no answer is sent again, to the leader of the
moment, until the coordinator of the id is another broker.

A partition needs no marker of this transaction if it no longer exists, or if it refuses the marker with
INVALID_PRODUCER_EPOCH: it knows a later epoch of the producer, so what is open there, if anything, is another
transaction. A coordinator is only behind its partitions if an election of `__transaction_state` on a lossy basis gave
up its newest records. Apache Kafka 4.2 stops at that answer, and the id is unusable until another broker loads it.

Any other error that cannot pass (the partition has a marker of a later coordinator) must not end the sending: a
transaction without an end blocks the readers of all its partitions. It is logged and tried again at longer intervals,
until this broker learns that it was replaced.

Source: KIP-98; KAFKA-19999 for the retries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby
from typing import TypeAlias

from heirlog.broker.broker_requests import BrokerRequests
from heirlog.broker.groups.offsets import TopicPartition
from heirlog.broker.transactions.state import Transaction, TransactionState
from heirlog.env import Env, SendFailure
from heirlog.metadata.image import Image
from heirlog.protocol.errors import ErrorCode, error_code
from heirlog.protocol.messages import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from heirlog.protocol.types import NO_LEADER, BrokerId
from heirlog.rate_limited_log import RateLimitedLog

CHANNEL = "txn-markers"
RETRY_BACKOFF_MS = 50
"""Pause after the first error that passes by itself; it doubles with each further one of the transaction."""
RETRY_BACKOFF_MAX_MS = 800
REFUSED_BACKOFF_MS = 5_000
"""Pause after an error that does not pass by itself."""
PARTITIONS_PER_REQUEST = 5_000
"""Limit of the partitions in one request; more follow in the next one."""

_PASSING = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.KAFKA_STORAGE_ERROR,
)
_NEEDS_NONE = (ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, ErrorCode.INVALID_PRODUCER_EPOCH)
_IF_SUPERSEDED = (
    "the partition knows a later epoch of the producer, so this transaction has ended there; heirlog transactions "
    "find-hanging shows whether a later one is open that no coordinator knows"
)
_IF_REFUSED = (
    "consumers of committed records wait at the beginning of this transaction, and its transactional id accepts no "
    "other one; heirlog transactions list --state PrepareCommit,PrepareAbort shows all of them"
)


class MarkerJob:
    """The markers of one decided transaction. on_done: called once, when no partition needs a marker any more."""

    def __init__(self, transaction: Transaction, coordinator_epoch: int, on_done: Callable[[], None]) -> None:
        self.transaction = transaction
        self.coordinator_epoch = coordinator_epoch
        self.left = set(transaction.partitions)
        self.cancelled = False
        self._on_done = on_done
        self._backoff_ms = RETRY_BACKOFF_MS

    def next_backoff_ms(self) -> int:
        """How long to wait before some of the markers are sent again."""
        backoff_ms, self._backoff_ms = self._backoff_ms, min(2 * self._backoff_ms, RETRY_BACKOFF_MAX_MS)
        return backoff_ms

    def written(self, partitions: Iterable[TopicPartition]) -> None:
        """These partitions have their marker."""
        if self.cancelled or not self.left:
            return
        self.left.difference_update(partitions)
        if not self.left:
            self._on_done()


Queue: TypeAlias = "dict[MarkerJob, set[TopicPartition]]"


class MarkerSender:
    def __init__(self, env: Env, image: Callable[[], Image], brokers: BrokerRequests, timeout_ms: int) -> None:
        self._env = env
        self._log_limited = RateLimitedLog(env.log, env.now_ms)
        self._image = image
        self._brokers = brokers
        self._timeout_ms = timeout_ms
        self._queues: dict[BrokerId, Queue] = {}
        self._in_flight: set[BrokerId] = set()
        self.unknown_destinations = 0
        """Transactions that wait because a partition has no leader that can be reached."""

    def send(self, job: MarkerJob) -> None:
        """Write the markers of a transaction; `job.cancelled` ends it."""
        self._queue(job, set(job.left))

    def _queue(self, job: MarkerJob, partitions: set[TopicPartition]) -> None:
        """Queue these partitions of the job for their leaders of the moment."""
        if job.cancelled:
            return
        image = self._image()
        gone: set[TopicPartition] = set()
        leaderless: set[TopicPartition] = set()
        destinations = set()
        for partition in partitions:
            state = image.partition_named(*partition)
            if state is None:
                gone.add(partition)
            elif state.leader == NO_LEADER or not self._brokers.reaches(state.leader):
                leaderless.add(partition)
            else:
                self._queues.setdefault(state.leader, {}).setdefault(job, set()).add(partition)
                destinations.add(state.leader)
        if leaderless:
            self._wait_for_leader(job, leaderless)
        for broker in sorted(destinations):
            self._drain(broker)
        if gone or not job.left:
            job.written(gone)

    def _wait_for_leader(self, job: MarkerJob, partitions: set[TopicPartition]) -> None:
        def again() -> None:
            self.unknown_destinations -= 1
            self._queue(job, partitions)

        self.unknown_destinations += 1
        self._env.call_later(job.next_backoff_ms(), again)

    def _later(self, job: MarkerJob, partitions: set[TopicPartition], delay_ms: int | None = None) -> None:
        self._env.call_later(delay_ms or job.next_backoff_ms(), lambda: self._queue(job, partitions))

    def _drain(self, broker: BrokerId) -> None:
        """Send what is queued for a broker, unless a request to it is in flight."""
        queue = self._queues.get(broker)
        if not queue or broker in self._in_flight:
            return
        sent: Queue = {}
        room = PARTITIONS_PER_REQUEST
        while queue and room > 0:
            job = next(iter(queue))
            partitions = queue.pop(job)
            if job.cancelled:
                continue
            sent[job] = partitions if len(partitions) <= room else set(sorted(partitions)[:room])
            room -= len(sent[job])
            if len(sent[job]) < len(partitions):
                queue[job] = partitions - sent[job]
        if not sent:
            return
        if not self._brokers.reaches(broker):
            for job, partitions in sent.items():
                self._later(job, partitions)
            return
        self._in_flight.add(broker)
        markers = [_marker(job, partitions) for job, partitions in sent.items()]
        request = WriteTxnMarkersRequest(markers=markers)
        self._brokers.send(
            broker, CHANNEL, request, lambda result: self._answered(broker, sent, result), self._timeout_ms
        )

    def _answered(self, broker: BrokerId, sent: Queue, result: WriteTxnMarkersResponse | SendFailure) -> None:
        self._in_flight.discard(broker)
        if isinstance(result, SendFailure):
            self._log_limited("info", "markers-not-answered", broker=broker, error=result.kind)
            for job, partitions in sent.items():
                self._later(job, partitions)
        else:
            answers = {answer.producer_id: answer for answer in result.markers}
            for job, partitions in sent.items():
                self._take(broker, job, partitions, answers.get(job.transaction.producer_id))
        self._drain(broker)

    def _take(
        self,
        broker: BrokerId,
        job: MarkerJob,
        partitions: set[TopicPartition],
        answer: WriteTxnMarkersResponse.WritableTxnMarkerResult | None,
    ) -> None:
        codes = {
            (topic.name, partition.partition_index): error_code(partition.error_code)
            for topic in (answer.topics if answer is not None else ())
            for partition in topic.partitions
        }
        written, again, refused = set(), set(), set()
        for partition in partitions:
            code = codes.get(partition, ErrorCode.REQUEST_TIMED_OUT)
            if code is ErrorCode.NONE or code in _NEEDS_NONE:
                written.add(partition)
            elif code in _PASSING:
                again.add(partition)
            else:
                refused.add(partition)
            if code is ErrorCode.INVALID_PRODUCER_EPOCH:
                self._log_refusal("warning", "marker-superseded", broker, job, partition, code, _IF_SUPERSEDED)
            elif partition in refused:
                self._log_refusal("error", "marker-refused", broker, job, partition, code, _IF_REFUSED)
        if again:
            self._later(job, again)
        if refused:
            self._later(job, refused, REFUSED_BACKOFF_MS)
        job.written(written)

    def _log_refusal(
        self,
        level: str,
        event: str,
        broker: BrokerId,
        job: MarkerJob,
        partition: TopicPartition,
        code: ErrorCode,
        consequence: str,
    ) -> None:
        self._log_limited(
            level,
            event,
            transactional_id=job.transaction.transactional_id,
            topic=partition[0],
            partition=partition[1],
            broker=broker,
            error=code.name,
            consequence=consequence,
        )


def _marker(job: MarkerJob, partitions: Iterable[TopicPartition]) -> WriteTxnMarkersRequest.WritableTxnMarker:
    nested = WriteTxnMarkersRequest
    transaction = job.transaction
    return nested.WritableTxnMarker(
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        transaction_result=transaction.state is TransactionState.PREPARE_COMMIT,
        coordinator_epoch=job.coordinator_epoch,
        transaction_version=transaction.client_version,
        topics=[
            nested.WritableTxnMarkerTopic(name=topic, partition_indexes=[index for _, index in named])
            for topic, named in groupby(sorted(partitions), key=lambda partition: partition[0])
        ],
    )
