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

Source: KIP-98, KIP-360, KIP-480.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from struct import Struct

from heirlog.client.offsets import TopicPartition
from heirlog.client.retriable import LOOK_AGAIN
from heirlog.protocol.batch import HEADER_SIZE, BatchHeader, InvalidBatch, advance_sequence, read_header
from heirlog.protocol.checksum import crc32c
from heirlog.protocol.errors import ErrorCode, KafkaError, error_code

IN_FLIGHT_MAX = 5
NO_SEQUENCE = -1
_PRODUCER = Struct(">qhi")
_PRODUCER_AT = 43
_CRC = Struct(">I")
_CRC_AT = 17
_CRC_START = 21

RETRIED = LOOK_AGAIN | {ErrorCode.CORRUPT_MESSAGE}
"""A batch that arrived damaged was whole when it left."""
FORGOTTEN = frozenset(
    {
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.INVALID_PRODUCER_EPOCH,
    }
)


@dataclass(frozen=True, slots=True)
class ProducerIdentity:
    producer_id: int
    epoch: int


NOBODY = ProducerIdentity(-1, -1)
"""Of a producer without idempotence."""


@dataclass(slots=True, eq=False)
class Batch:
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
class Lane:
    """The batches of one partition, in order."""

    batches: deque[Batch] = field(default_factory=deque)
    identity: ProducerIdentity | None = None
    forgotten: bool = False
    """The broker knows the producer id no more: the next one must be another."""
    next_sequence: int = 0
    not_before_s: float = 0.0
    sent: int = 0

    def sendable(self, now_s: float) -> Batch | None:
        if self.identity is None or not self.batches or now_s < self.not_before_s:
            return None
        head = self.batches[0]
        if head.tries and not head.sent:
            return head if not self.sent else None
        if head.tries > 1 or self.sent >= IN_FLIGHT_MAX:
            return None
        return next((batch for batch in self.batches if not batch.sent), None)


class Outbox:
    """delivery_timeout_s: how long a batch may stay unacknowledged."""

    def __init__(self, *, idempotent: bool, delivery_timeout_s: float) -> None:
        self._idempotent = idempotent
        self._delivery_timeout_s = delivery_timeout_s
        self._lanes: dict[TopicPartition, Lane] = {}
        self._busy: dict[TopicPartition, Lane] = {}
        """Those with batches."""
        self.bytes = 0
        """Of everything that is not acknowledged."""
        self.failure: Exception | None = None
        """What ended everything."""

    @property
    def empty(self) -> bool:
        return not self.bytes

    def add(self, partition: TopicPartition, data: bytearray, now_s: float) -> Batch:
        """The batch as it waits. Raises InvalidBatch for what is not exactly one record batch."""
        header = one_batch(data)
        lane = self._lanes.get(partition)
        if lane is None:
            lane = self._lanes[partition] = Lane(identity=None if self._idempotent else NOBODY)
        self._busy[partition] = lane
        batch = Batch(partition, data, header.last_offset_delta, now_s + self._delivery_timeout_s)
        lane.batches.append(batch)
        self.bytes += len(data)
        return batch

    def strangers(self) -> tuple[list[TopicPartition], bool]:
        """Partitions that need a producer id before they can continue (`identify` them), and whether it must be new."""
        found = [partition for partition, lane in self._busy.items() if lane.identity is None and not lane.sent]
        return found, any(self._lanes[partition].forgotten for partition in found)

    def identify(self, partition: TopicPartition, identity: ProducerIdentity) -> None:
        lane = self._lanes[partition]
        lane.identity = identity
        lane.forgotten = False
        lane.next_sequence = 0
        for batch in lane.batches:
            batch.sequence = NO_SEQUENCE

    def sendable(self, now_s: float) -> Iterator[Batch]:
        """At most one batch per partition: a request holds no more of one."""
        for lane in list(self._busy.values()):
            batch = lane.sendable(now_s)
            if batch is not None:
                yield batch

    def sending(self, batch: Batch) -> None:
        """`batch` goes into a request now: who sends it, and its checksum, are written into it."""
        lane = self._lanes[batch.partition]
        assert lane.identity is not None, "only sendable batches are sent"
        if batch.sequence == NO_SEQUENCE:
            if self._idempotent:
                batch.sequence = lane.next_sequence
                lane.next_sequence = advance_sequence(batch.sequence, batch.last_offset_delta + 1)
            if batch.tries:
                # the request of an earlier try may still be on its way, and holds the same bytes
                batch.data = bytearray(batch.data)
            seal(batch.data, lane.identity, batch.sequence)
        batch.sent = True
        batch.tries += 1
        lane.sent += 1

    def answered(self, batch: Batch, code: int, message: str | None, retry_at_s: float) -> bool:
        """What the broker answered about a batch that was sent. Whether that acknowledges it."""
        if self.failure is not None:
            return False
        lane = self._lanes[batch.partition]
        if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
            self._delivered(lane, batch)
            return True
        named = error_code(code)
        if named in RETRIED:
            self.unanswered(batch, retry_at_s)
        elif self._idempotent and named in FORGOTTEN:
            if batch is lane.batches[0]:
                lane.identity, lane.forgotten = None, True
            self.unanswered(batch, retry_at_s)
        else:
            topic, partition = batch.partition
            self.fail(KafkaError(named, f"{topic}-{partition} refused {batch.size} bytes: {message or named.name}"))
        return False

    def _delivered(self, lane: Lane, batch: Batch) -> None:
        lane.sent -= 1
        self._remove(lane, batch)

    def _remove(self, lane: Lane, batch: Batch) -> None:
        lane.batches.remove(batch)
        self.bytes -= batch.size
        if not lane.batches:
            del self._busy[batch.partition]

    def unanswered(self, batch: Batch, retry_at_s: float) -> None:
        """`batch` was sent and may be there or not: it goes again, but not before this time."""
        if self.failure is not None:
            return
        lane = self._lanes[batch.partition]
        lane.not_before_s = retry_at_s
        lane.sent -= 1
        batch.sent = False

    def give_up(self, batch: Batch) -> None:
        """Drop a batch that was sent, has no answer or a refusal, and may be there or not: it is not sent again.

        For producers that must not append twice and have no idempotence. With it, the batches behind would leave a gap.
        """
        assert not self._idempotent, "a batch of an idempotent producer is sent again until it is acknowledged"
        if self.failure is not None:
            return
        lane = self._lanes[batch.partition]
        if batch.sent:
            lane.sent -= 1
        self._remove(lane, batch)

    def expire(self, now_s: float, reason: Exception | None) -> None:
        """Fail if a batch has waited for too long."""
        for lane in self._busy.values():
            if now_s >= lane.batches[0].deadline_s:
                topic, partition = lane.batches[0].partition
                because = f"; last: {reason}" if reason is not None else ""
                waited = f"within {self._delivery_timeout_s:g} s{because}"
                self.fail(TimeoutError(f"{topic}-{partition} did not acknowledge a batch {waited}"))
                return

    def fail(self, failure: Exception) -> None:
        """The first failure is the one that counts; nothing is sent any more."""
        if self.failure is None:
            self.failure = failure
        self._lanes.clear()
        self._busy.clear()
        self.bytes = 0


def one_batch(data: bytearray) -> BatchHeader:
    """Raises InvalidBatch."""
    header = read_header(data)
    if header.size != len(data):
        raise InvalidBatch(f"{len(data)} bytes are not exactly one record batch, which would have {header.size}")
    return header


def seal(data: bytearray, identity: ProducerIdentity, sequence: int) -> None:
    """Write who sends a batch, and its checksum."""
    assert len(data) >= HEADER_SIZE
    _PRODUCER.pack_into(data, _PRODUCER_AT, identity.producer_id, identity.epoch, sequence)
    _CRC.pack_into(data, _CRC_AT, crc32c(memoryview(data)[_CRC_START:]))
