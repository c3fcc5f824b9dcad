"""A producer: numbered values to every partition of its topics."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from heirlog.env import Env, SendFailure
from heirlog.protocol.batch import encode_batch
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import InitProducerIdRequest, ProduceRequest
from heirlog.protocol.types import Endpoint
from heirlog.sim.clients.direct import REQUEST_TIMEOUT_MS, DirectClient, Leader
from heirlog.sim.compaction_checker import NUMBER_HEADER, is_tombstone, key_of
from heirlog.sim.history import History

ACKS_ALL = -1
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
NEW_PRODUCER_ID = (
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.UNKNOWN_PRODUCER_ID,
    ErrorCode.INVALID_PRODUCER_EPOCH,
)
"""Answers after which an idempotent producer starts over under a new id."""


@dataclass(slots=True)
class Batch:
    """Numbered values under way to one partition."""

    partition: str
    """As histories name it."""
    values: list[int]
    base_sequence: int
    sent_ms: int = 0
    """The last attempt."""


class Producer(DirectClient):
    """Sends numbered values to every partition of its topics, one batch at a time to each.

    value_base: the first number; producers of a run have ranges of their own. interval_ms: between batches of one
    partition. keyed: topics whose records get a key, and are tombstones now and then
    (`heirlog.sim.compaction_checker`).
    """

    def __init__(
        self,
        env: Env,
        name: str,
        bootstrap: Sequence[Endpoint],
        topics: Sequence[str],
        history: History,
        *,
        acks: int,
        value_base: int,
        batch_records: int,
        interval_ms: int,
        idempotent: bool = False,
        keyed: Collection[str] = (),
    ) -> None:
        super().__init__(env, name, bootstrap, topics)
        self.keyed = keyed
        self.history = history
        self.acks = acks
        self.batch_records = batch_records
        self.interval_ms = interval_ms
        self.idempotent = idempotent
        self._next_value = value_base
        self._producer_id = -1
        self._producer_epoch = -1
        self._generation = 0
        """Grows with each new producer id: sequences start at 0 again."""
        self._sequences: dict[tuple[str, int], int] = {}

    def start(self) -> None:
        self.refresh(self._begin)

    def _begin(self) -> None:
        if not self.knows_its_topics:
            self.later(self._begin)
        elif self.idempotent:
            self._get_producer_id(self._run_partitions)
        else:
            self._run_partitions()

    def _run_partitions(self) -> None:
        for name in sorted(self.leaders):
            self._next_batch(name)

    def _get_producer_id(self, then: Callable[[], None]) -> None:
        def got(response: Any) -> None:
            if isinstance(response, SendFailure) or response.error_code != ErrorCode.NONE:
                self.later(lambda: self._get_producer_id(then))
                return
            self._producer_id = response.producer_id
            self._producer_epoch = response.producer_epoch
            self._generation += 1
            then()

        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        self.env.send(self.any_endpoint(), "producer-id", request, got, REQUEST_TIMEOUT_MS)

    def _next_batch(self, name: str) -> None:
        if self.stopped:
            return
        self._send(name, self.new_batch(name), self._generation)

    def new_batch(self, name: str) -> Batch:
        """The next values, with the next sequences of this partition."""
        values = list(range(self._next_value, self._next_value + self.batch_records))
        self._next_value += self.batch_records
        self.history.sent += self.batch_records
        sequence, partition = -1, self.leaders[name].partition
        if self.idempotent:
            key = (partition, self._generation)
            sequence = self._sequences.get(key, 0)
            self._sequences[key] = sequence + self.batch_records
        return Batch(partition, values, sequence)

    def _send(self, name: str, batch: Batch, generation: int) -> None:
        leader = self.leaders[name]
        if generation != self._generation or leader.partition != batch.partition:
            self._rest(name)  # its producer id or its topic is gone; whether it was written stays unknown
            return
        endpoint = self.endpoint_of(leader)
        if endpoint is None:
            if not self.stopped:
                self.later(lambda: self._send(name, batch, generation))
            return
        batch.sent_ms = self.history.now_ms()
        request = ProduceRequest(acks=self.acks, timeout_ms=1500, topic_data=[self.topic_data(leader, batch)])
        self.env.send(
            endpoint,
            f"produce-{name}",
            request,
            lambda response: self._answered(name, batch, generation, response),
            REQUEST_TIMEOUT_MS,
        )

    def topic_data(self, leader: Leader, batch: Batch) -> ProduceRequest.TopicProduceData:
        """The batch as it goes into a request."""
        now_ms = self.env.wall_ms()
        records = encode_batch(
            [self._record(leader.topic, value, now_ms) for value in batch.values],
            producer_id=self._producer_id if self.idempotent else -1,
            producer_epoch=self._producer_epoch if self.idempotent else -1,
            base_sequence=batch.base_sequence,
        )
        partition = ProduceRequest.PartitionProduceData(index=leader.index, records=records)
        return ProduceRequest.TopicProduceData(topic_id=leader.topic_id, name=leader.topic, partition_data=[partition])

    def _record(self, topic: str, value: int, now_ms: int) -> NewRecord:
        if topic not in self.keyed:
            return None, b"%d" % value, (), now_ms
        key = b"%d" % key_of(value)
        if is_tombstone(value):
            return key, None, ((NUMBER_HEADER, b"%d" % value),), now_ms
        return key, b"%d" % value, (), now_ms

    def _answered(self, name: str, batch: Batch, generation: int, response: Any) -> None:
        if isinstance(response, SendFailure):
            self._unsettled(name, batch, generation)
            return
        answer = response.responses[0].partition_responses[0]
        code = answer.error_code
        if code == ErrorCode.NONE:
            self.acknowledged(batch, answer.base_offset)
            self._rest(name)
        elif code in NEW_PRODUCER_ID:
            # the log lost what it knew of us (an election on a lossy basis): start over under a new id
            if generation == self._generation:
                self._get_producer_id(lambda: self._rest(name))
            else:
                self._rest(name)
        elif code in _NEVER_APPENDED:
            self.later(lambda: self._send(name, batch, generation))
        else:
            self._unsettled(name, batch, generation)

    def acknowledged(self, batch: Batch, base_offset: int) -> None:
        """base_offset: -1 for a repeat that is older than what the leader remembers offsets of."""
        if self.acks != ACKS_ALL:
            self.history.acknowledged_by_leader += len(batch.values)
        elif base_offset < 0:
            self.history.acknowledge_somewhere(batch.partition, batch.values, batch.sent_ms)
        else:
            self.history.acknowledge(batch.partition, base_offset, batch.values, batch.sent_ms)

    def _unsettled(self, name: str, batch: Batch, generation: int) -> None:
        """It may have been written or not."""
        if self.idempotent:
            self.later(lambda: self._send(name, batch, generation))
        else:
            self.later(lambda: self._rest(name))

    def _rest(self, name: str) -> None:
        self.env.call_later(self.interval_ms, lambda: self._next_batch(name))
