"""A producer: numbered values to every partition of its topics, through the product's `Sender`.

    next values --add--> Sender --requests--> driver --answer, failure--> Sender --delivered--> history
         ^                                                                  |
         +------- after a pause: delivered, given up, or the sender failed -+

The history contains what the sender counts as acknowledged. The simulator only decides what is written:

* A plain producer does not repeat a batch that may be in the log, so that a value is there at most once. It repeats a
  batch after an error that means that nothing was appended (`_NEVER_APPENDED`); if something was, the value is there
  twice and the history shows it.
* For an idempotent producer, the sender repeats a batch until it is acknowledged.
* A sender that fails leaves its batches in an unknown state. The next one begins with new values.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from heirlog.client.offsets import TopicPartition
from heirlog.client.record_accumulator import IN_FLIGHT_MAX, ProducerBatch
from heirlog.client.sender import Request, Sender
from heirlog.env import Cancel
from heirlog.protocol.batch import encode_batch
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.types import Endpoint
from heirlog.sim.clients.client import REQUEST_TIMEOUT_S, RETRY_MS, Client
from heirlog.sim.compaction_checker import NUMBER_HEADER, is_tombstone, key_of
from heirlog.sim.env import SimEnv
from heirlog.sim.history import AcknowledgedBatch, AcknowledgedBy, History

ACKS_ALL = -1
REQUEST_BYTES = 1 << 20
DELIVERY_TIMEOUT_S = 120.0
NewRecord: TypeAlias = tuple[bytes | None, bytes | None, tuple[tuple[str, bytes], ...], int]
"""Key, value, headers, timestamp."""

_NEVER_APPENDED = frozenset(
    {
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
    }
)
"""Answers after which a plain producer may send the same values again."""


@dataclass(slots=True)
class _Numbered:
    """What is in a batch, and where it was sent last."""

    values: list[int]
    partition: str = ""
    """As histories name it."""
    sent_ms: int = 0
    sent: int = -1
    """Tick at which it was sent first; -1: not yet."""
    leader: tuple[int, int] = (-1, -1)
    """Who that was, and in which epoch, by the metadata that the client had."""


@dataclass(frozen=True, slots=True)
class Workload:
    """What a producer sends, and how often."""

    acks: int
    value_base: int
    """The first number; producers of a run have ranges of their own."""
    batch_records: int
    interval_ms: int
    """Between batches of one partition."""
    idempotent: bool = False
    keyed: Collection[str] = ()
    """Topics whose records get a key, and are tombstones now and then (`heirlog.sim.compaction_checker`)."""


class Producer(Client):
    """Sends numbered values to every partition of its topics, one batch at a time to each."""

    def __init__(
        self,
        env: SimEnv,
        name: str,
        bootstrap: Sequence[Endpoint],
        topics: Sequence[str],
        history: History,
        workload: Workload,
    ) -> None:
        super().__init__(env, name, bootstrap, topics)
        self.history = history
        self.workload = workload
        self._next_value = workload.value_base
        self._sender = self._new_sender()
        self._numbered: dict[ProducerBatch, _Numbered] = {}
        """Of each batch that the sender has."""
        self._wake: Cancel | None = None

    def start(self) -> None:
        self.find_topics(self._begin)

    def _begin(self) -> None:
        for topic, known in sorted(self.cluster.view.topics.items()):
            for index in sorted(known.partitions):
                self._next_batch((topic, index))

    @property
    def idle(self) -> bool:
        """No batch waits for an answer."""
        return not self._numbered

    def _new_sender(self) -> Sender:
        return Sender(
            self.cluster,
            idempotent=self.workload.idempotent,
            acks=self.workload.acks,
            max_in_flight=IN_FLIGHT_MAX,
            request_bytes=REQUEST_BYTES,
            delivery_timeout_s=DELIVERY_TIMEOUT_S,
            request_timeout_s=REQUEST_TIMEOUT_S,
            retry_pause_s=RETRY_MS / 1000,
        )

    # what it writes

    def _next_batch(self, partition: TopicPartition) -> None:
        if not self.stopped:
            self._add(partition)
            self._pump()

    def _add(self, partition: TopicPartition) -> None:
        """The next values."""
        values = list(range(self._next_value, self._next_value + self.workload.batch_records))
        self._next_value += self.workload.batch_records
        self.history.sent += self.workload.batch_records
        now_ms = self.env.wall_ms()
        records = encode_batch([self._record(partition[0], value, now_ms) for value in values])
        self._numbered[self._sender.add(*partition, records)] = _Numbered(values)

    def _record(self, topic: str, value: int, now_ms: int) -> NewRecord:
        if topic not in self.workload.keyed:
            return None, b"%d" % value, (), now_ms
        key = b"%d" % key_of(value)
        if is_tombstone(value):
            return key, None, ((NUMBER_HEADER, b"%d" % value),), now_ms
        return key, b"%d" % value, (), now_ms

    def _over(self, batch: ProducerBatch) -> None:
        """The sender has it no more."""
        del self._numbered[batch]
        self._rest(batch.partition)

    def _rest(self, partition: TopicPartition) -> None:
        self.env.call_later(self.workload.interval_ms, lambda: self._next_batch(partition))

    # the sender's work

    def _pump(self) -> None:
        """Do what the sender needs: metadata, a producer id, requests, a further step after a pause."""
        sender = self._sender
        sender.expire()
        call = sender.prepare()
        if call is not None:
            self.driver.run(call, lambda _: self._prepared(sender), lambda _: self._prepared(sender))
        while requests := sender.requests(everything=True):
            for request in requests:
                self._send(sender, request)
        if sender.accumulator.failure is not None:
            self._start_over(sender.accumulator.failure)
        if self._wake is not None:
            self._wake()
        self._wake = None if sender.accumulator.empty else self.env.call_later(RETRY_MS, self._pump)

    def _prepared(self, sender: Sender) -> None:
        if sender is self._sender:
            self._pump()

    def _send(self, sender: Sender, request: Request) -> None:
        for batch in request.batches.values():
            numbered = self._numbered[batch]
            numbered.partition = self.partition_name(*batch.partition)
            numbered.sent_ms = self.history.now_ms()
            topic, index = batch.partition
            numbered.leader = self.cluster.view.topics[topic].partitions[index]
            if numbered.sent < 0:
                numbered.sent = self.history.tick()
        self.driver.send(request.send, "produce", lambda got: self._answered(sender, request, got))

    def _answered(self, sender: Sender, request: Request, got: Any) -> None:
        if sender is not self._sender:
            return
        codes: dict[TopicPartition, int] = {}
        if isinstance(got, OSError):
            sender.failed(request, got)
        else:
            codes = dict(_codes(request, got))
            for batch, base_offset in sender.answered(request, got):
                self._acknowledged(self._numbered[batch], base_offset)
                self._over(batch)
        if not self.workload.idempotent and sender.accumulator.failure is None:
            for batch in request.batches.values():
                if batch in self._numbered and codes.get(batch.partition) not in _NEVER_APPENDED:
                    sender.accumulator.give_up(batch)
                    self._over(batch)
        self._pump()

    def _acknowledged(self, numbered: _Numbered, base_offset: int) -> None:
        """base_offset: -1 for a repeat that is older than what the leader remembers offsets of."""
        history, partition, values, sent_ms = self.history, numbered.partition, numbered.values, numbered.sent_ms
        if self.workload.acks != ACKS_ALL:
            history.acknowledged_by_leader += len(values)
            return
        broker, epoch = numbered.leader
        history.acknowledged_by.add(AcknowledgedBy(partition, epoch, broker))
        if base_offset < 0:
            history.acknowledge_somewhere(partition, values, sent_ms)
            return
        history.acknowledge(partition, base_offset, values, sent_ms)
        last, in_order = base_offset + len(values) - 1, self.workload.idempotent
        history.batches.append(
            AcknowledgedBatch(
                partition, self.name, base_offset, last, numbered.sent, history.tick(), sent_ms, in_order=in_order
            )
        )

    def _start_over(self, failure: Exception) -> None:
        """Continue with a new sender; whether the batches of the old one were appended stays unknown."""
        self.env.log("warning", "producer-failed", reason=str(failure))
        self._sender = self._new_sender()
        left, self._numbered = self._numbered, {}
        for partition in dict.fromkeys(batch.partition for batch in left):
            self._rest(partition)


def _codes(request: Request, response: Any) -> Iterator[tuple[TopicPartition, int]]:
    for topic in response.responses:
        name = topic.name or request.topic_names.get(topic.topic_id, "")
        for answer in topic.partition_responses:
            yield (name, answer.index), answer.error_code
