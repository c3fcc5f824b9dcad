"""Batches on their way into partitions: what may be sent now, what an answer means, what is sent again.

    add --> waiting --send--> sent --acknowledged, or known already--> gone
               ^                |
               +--- no answer, or an error that may pass (a retry: in order, and alone)

Rules, per partition:

* At most `IN_FLIGHT_MAX` batches are sent and unanswered: a broker knows the last five of a producer again, not more.
* A batch that is sent again is sent first, without other batches of its partition. So the order is kept even if a batch
  in the middle is refused.
* A batch keeps its sequence when it is sent again, so that the broker recognises it (KIP-98). After a failed batch an
  out-of-order error for the next ones is expected, and they are retried. For the first batch it means that the broker
  has forgotten the producer (retention, or lost records). The partition then continues with a new producer id, from
  sequence 0, with all batches that are not acknowledged.
* The first permanent error ends everything: later batches would leave a gap.

Without idempotence producer id, epoch and sequence are -1, and a batch that is sent again may be there twice.

In a transaction a forgotten producer id is a permanent error too: another id would not be part of the transaction.

Source: KIP-98, KIP-360, KIP-480.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from struct import Struct

from heirlog.client.offsets import TopicPartition
from heirlog.client.retriable import REFRESH_AND_RETRY
from heirlog.protocol.batch import (
    HEADER_SIZE,
    TRANSACTIONAL,
    BatchHeader,
    InvalidBatch,
    advance_sequence,
    read_header,
)
from heirlog.protocol.checksum import crc32c
from heirlog.protocol.errors import ErrorCode, KafkaError, error_code

IN_FLIGHT_MAX = 5
NO_SEQUENCE = -1
_PRODUCER = Struct(">qhi")
_PRODUCER_AT = 43
_CRC = Struct(">I")
_CRC_AT = 17
_CRC_START = 21
_ATTRIBUTES_LOW_AT = 22
"""The lower byte, in which the transactional bit is."""

RETRIED = REFRESH_AND_RETRY | {ErrorCode.CORRUPT_MESSAGE}
"""A batch that arrived damaged was whole when it left."""
RETRIED_IN_TRANSACTION = RETRIED | {
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}
"""The leader asks the coordinator about a batch (KIP-890), and passes on what passes there."""
PRODUCER_ID_FORGOTTEN = frozenset(
    {
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.INVALID_PRODUCER_EPOCH,
    }
)


@dataclass(frozen=True, slots=True)
class ProducerIdAndEpoch:
    producer_id: int
    epoch: int


NO_PRODUCER_ID = ProducerIdAndEpoch(-1, -1)
"""Of a producer without idempotence."""


@dataclass(slots=True, eq=False)
class ProducerBatch:
    """One record batch that is not acknowledged yet."""

    partition: TopicPartition
    data: bytearray
    last_offset_delta: int
    deadline_s: float
    sequence: int = NO_SEQUENCE
    tries: int = 0
    sent: bool = False

    @property
    def size(self) -> int:
        return len(self.data)


@dataclass(slots=True)
class PartitionQueue:
    """The batches of one partition, in order."""

    batches: deque[ProducerBatch] = field(default_factory=deque)
    producer: ProducerIdAndEpoch | None = None
    forgotten: bool = False
    """The broker knows the producer id no more: the next one must be another."""
    next_sequence: int = 0
    not_before_s: float = 0.0
    sent: int = 0

    def sendable(self, now_s: float) -> ProducerBatch | None:
        if self.producer is None or not self.batches or now_s < self.not_before_s:
            return None
        head = self.batches[0]
        if head.tries and not head.sent:
            return head if not self.sent else None
        if head.tries > 1 or self.sent >= IN_FLIGHT_MAX:
            return None
        return next((batch for batch in self.batches if not batch.sent), None)


class RecordAccumulator:
    """delivery_timeout_s: how long a batch may stay unacknowledged. transactional: batches belong to a transaction."""

    def __init__(self, *, idempotent: bool, delivery_timeout_s: float, transactional: bool = False) -> None:
        self._idempotent = idempotent
        self._transactional = transactional
        self._retried = RETRIED_IN_TRANSACTION if transactional else RETRIED
        self._delivery_timeout_s = delivery_timeout_s
        self._queues: dict[TopicPartition, PartitionQueue] = {}
        self._not_empty: dict[TopicPartition, PartitionQueue] = {}
        """Those with batches."""
        self.bytes = 0
        """Of everything that is not acknowledged."""
        self.failure: Exception | None = None
        """What ended everything."""

    @property
    def empty(self) -> bool:
        return not self.bytes

    def add(self, partition: TopicPartition, data: bytearray, now_s: float) -> ProducerBatch:
        """The batch as it waits. Raises InvalidBatch for what is not exactly one record batch."""
        header = one_batch(data)
        queue = self._queues.get(partition)
        if queue is None:
            queue = self._queues[partition] = PartitionQueue(producer=None if self._idempotent else NO_PRODUCER_ID)
        self._not_empty[partition] = queue
        batch = ProducerBatch(partition, data, header.last_offset_delta, now_s + self._delivery_timeout_s)
        queue.batches.append(batch)
        self.bytes += len(data)
        return batch

    @property
    def waiting_partitions(self) -> Iterable[TopicPartition]:
        """Partitions with batches that are not acknowledged."""
        return self._not_empty.keys()

    def partitions_without_producer_id(self) -> tuple[list[TopicPartition], bool]:
        """Partitions that wait for `set_producer_id`, and whether it must be a new one."""
        found = [partition for partition, queue in self._not_empty.items() if queue.producer is None and not queue.sent]
        return found, any(self._queues[partition].forgotten for partition in found)

    def set_producer_id(self, partition: TopicPartition, producer: ProducerIdAndEpoch) -> None:
        queue = self._queues[partition]
        queue.producer = producer
        queue.forgotten = False
        queue.next_sequence = 0
        for batch in queue.batches:
            batch.sequence = NO_SEQUENCE

    def sendable(self, now_s: float) -> Iterator[ProducerBatch]:
        """At most one batch per partition: a request holds no more of one."""
        for queue in list(self._not_empty.values()):
            batch = queue.sendable(now_s)
            if batch is not None:
                yield batch

    def sending(self, batch: ProducerBatch) -> None:
        """`batch` goes into a request now: who sends it, and its checksum, are written into it."""
        queue = self._queues[batch.partition]
        assert queue.producer is not None, "only sendable batches are sent"
        if batch.sequence == NO_SEQUENCE:
            if self._idempotent:
                batch.sequence = queue.next_sequence
                queue.next_sequence = advance_sequence(batch.sequence, batch.last_offset_delta + 1)
            if batch.tries:
                # the request of an earlier try may still be on its way, and holds the same bytes
                batch.data = bytearray(batch.data)
            if self._transactional:
                batch.data[_ATTRIBUTES_LOW_AT] |= TRANSACTIONAL
            write_producer_fields(batch.data, queue.producer, batch.sequence)
        batch.sent = True
        batch.tries += 1
        queue.sent += 1

    def answered(self, batch: ProducerBatch, code: int, message: str | None, retry_at_s: float) -> bool:
        """What the broker answered about a batch that was sent. Whether that acknowledges it."""
        if self.failure is not None:
            return False
        queue = self._queues[batch.partition]
        if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
            self._delivered(queue, batch)
            return True
        named = error_code(code)
        is_head = batch is queue.batches[0]
        if named in self._retried:
            self.unanswered(batch, retry_at_s)
        elif self._idempotent and named in PRODUCER_ID_FORGOTTEN and not (is_head and self._transactional):
            if is_head:
                queue.producer, queue.forgotten = None, True
            self.unanswered(batch, retry_at_s)
        else:
            topic, partition = batch.partition
            self.fail(KafkaError(named, f"{topic}-{partition} refused {batch.size} bytes: {message or named.name}"))
        return False

    def _delivered(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        queue.sent -= 1
        self._remove(queue, batch)

    def _remove(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        queue.batches.remove(batch)
        self.bytes -= batch.size
        if not queue.batches:
            del self._not_empty[batch.partition]

    def unanswered(self, batch: ProducerBatch, retry_at_s: float) -> None:
        """`batch` was sent and may be there or not: it goes again, but not before this time."""
        if self.failure is not None:
            return
        queue = self._queues[batch.partition]
        queue.not_before_s = retry_at_s
        queue.sent -= 1
        batch.sent = False

    def give_up(self, batch: ProducerBatch) -> None:
        """Drop a batch that was sent, has no answer or a refusal, and may be there or not: it is not sent again.

        For producers that must not append twice and have no idempotence. With it, the batches behind would leave a gap.
        """
        assert not self._idempotent, "a batch of an idempotent producer is sent again until it is acknowledged"
        if self.failure is not None:
            return
        queue = self._queues[batch.partition]
        if batch.sent:
            queue.sent -= 1
        self._remove(queue, batch)

    def expire(self, now_s: float, reason: Exception | None) -> None:
        """Fail if a batch has waited for too long."""
        for queue in self._not_empty.values():
            if now_s >= queue.batches[0].deadline_s:
                topic, partition = queue.batches[0].partition
                because = f"; last: {reason}" if reason is not None else ""
                waited = f"within {self._delivery_timeout_s:g} s{because}"
                self.fail(TimeoutError(f"{topic}-{partition} did not acknowledge a batch {waited}"))
                return

    def fail(self, failure: Exception) -> None:
        """The first failure is the one that counts; nothing is sent any more."""
        if self.failure is None:
            self.failure = failure
        self._drop_all()

    def start_over(self) -> None:
        """Forget all batches, sequences and the failure: another producer epoch follows."""
        self.failure = None
        self._drop_all()

    def _drop_all(self) -> None:
        self._queues.clear()
        self._not_empty.clear()
        self.bytes = 0


def one_batch(data: bytearray) -> BatchHeader:
    """Raises InvalidBatch."""
    header = read_header(data)
    if header.size != len(data):
        raise InvalidBatch(f"{len(data)} bytes are not exactly one record batch, which would have {header.size}")
    return header


def write_producer_fields(data: bytearray, producer: ProducerIdAndEpoch, sequence: int) -> None:
    """Write who sends a batch, and its checksum."""
    assert len(data) >= HEADER_SIZE
    _PRODUCER.pack_into(data, _PRODUCER_AT, producer.producer_id, producer.epoch, sequence)
    _CRC.pack_into(data, _CRC_AT, crc32c(memoryview(data)[_CRC_START:]))
