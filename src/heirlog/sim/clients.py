"""Simulated clients: numbered values in, what was acknowledged and read out.

They are processes like any other, on machines of their own, and speak to brokers only through messages. What they see
goes into one `History`, which `heirlog.sim.history` judges. What keeps them honest:

* A leader is believed only if its leader epoch is not older than one that this client has seen: a broker that lags
  behind in metadata must not send a reader back to a former leader.
* A producer has one batch in flight per partition, so that order is kept and a repeat is always the last batch.
* An idempotent producer repeats a batch of unknown fate, with its sequence; a plain one gives it up and goes on: either
  way a value stands in the log at most once.
* Back-off is bounded: `RETRY_MS`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from heirlog.env import Env, SendFailure
from heirlog.protocol.batch import decode_records, encode_batch, walk
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages.create_topics import CreateTopicsRequest
from heirlog.protocol.messages.fetch import FetchRequest
from heirlog.protocol.messages.init_producer_id import InitProducerIdRequest
from heirlog.protocol.messages.list_offsets import ListOffsetsRequest
from heirlog.protocol.messages.metadata import MetadataRequest
from heirlog.protocol.messages.produce import ProduceRequest
from heirlog.protocol.types import Endpoint
from heirlog.sim.history import History, Latest, Observed

RETRY_MS = 150
REQUEST_TIMEOUT_MS = 2000
LATEST_TIMESTAMP = -1
ACKS_ALL = -1
CONSUMER = -1
"""As a replica id: none."""

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
class Leader:
    """What a client believes about one partition."""

    topic_id: bytes
    topic: str
    index: int
    broker: int = -1
    epoch: int = -1

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.index}"


class Client:
    """Knows brokers and leaders."""

    def __init__(self, env: Env, name: str, bootstrap: Sequence[Endpoint], topics: Sequence[str]) -> None:
        self.env = env
        self.name = name
        self.bootstrap = list(bootstrap)
        self.topics = list(topics)
        self.brokers: dict[int, Endpoint] = {}
        self.leaders: dict[str, Leader] = {}
        self.stopped = False
        self._asking = False
        self._waiting: list[Callable[[], None]] = []

    def start(self) -> None:
        raise NotImplementedError

    def refresh(self, then: Callable[[], None]) -> None:
        """Ask any broker for metadata; `then` runs when an answer has come, whatever it says."""
        self._waiting.append(then)
        if not self._asking:
            self._asking = True
            self._ask()

    def _ask(self) -> None:
        endpoints = list(self.brokers.values()) or self.bootstrap
        endpoint = endpoints[self.env.random.randrange(0, len(endpoints))]
        topics = [MetadataRequest.MetadataRequestTopic(name=name) for name in self.topics]
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        self.env.send(endpoint, "metadata", request, self._told, REQUEST_TIMEOUT_MS)

    def _told(self, response: Any) -> None:
        if isinstance(response, SendFailure):
            # the broker may be gone for good: ask the ones that we started from, too
            self.brokers = {}
            self.env.call_later(RETRY_MS, self._ask)
            return
        self.brokers = {broker.node_id: Endpoint(broker.host, broker.port) for broker in response.brokers}
        for topic in response.topics:
            for partition in topic.partitions:
                self._learn(topic, partition)
        self._asking = False
        waiting, self._waiting = self._waiting, []
        for then in waiting:
            then()

    def _learn(self, topic: Any, partition: Any) -> None:
        name = f"{topic.name}-{partition.partition_index}"
        leader = self.leaders.get(name)
        if leader is None or leader.topic_id != topic.topic_id:
            leader = self.leaders[name] = Leader(topic.topic_id, topic.name, partition.partition_index)
        if partition.leader_epoch >= leader.epoch:
            leader.epoch = partition.leader_epoch
            leader.broker = partition.leader_id

    def endpoint_of(self, leader: Leader) -> Endpoint | None:
        return self.brokers.get(leader.broker)

    def later(self, fn: Callable[[], None]) -> None:
        """After a pause, with newer metadata."""
        self.env.call_later(RETRY_MS, lambda: self.refresh(fn))

    def stop(self) -> None:
        """Begin nothing new."""
        self.stopped = True


class TopicMaker(Client):
    """Creates topics, until the cluster says that they exist."""

    def __init__(
        self,
        env: Env,
        name: str,
        bootstrap: Sequence[Endpoint],
        assignments: dict[str, list[list[int]]],
        configs: dict[str, str],
    ) -> None:
        """`assignments`: per topic, the replicas of each of its partitions."""
        super().__init__(env, name, bootstrap, list(assignments))
        self._assignments = assignments
        self._configs = configs
        self.done = False

    def start(self) -> None:
        endpoint = self.bootstrap[self.env.random.randrange(0, len(self.bootstrap))]
        topics = [self._topic(name, partitions) for name, partitions in self._assignments.items()]
        request = CreateTopicsRequest(topics=topics, timeout_ms=1000)
        self.env.send(endpoint, "admin", request, self._created, REQUEST_TIMEOUT_MS)

    def _topic(self, name: str, partitions: list[list[int]]) -> CreateTopicsRequest.CreatableTopic:
        assignments = [
            CreateTopicsRequest.CreatableReplicaAssignment(partition_index=index, broker_ids=list(replicas))
            for index, replicas in enumerate(partitions)
        ]
        configs = [
            CreateTopicsRequest.CreatableTopicConfig(name=key, value=value) for key, value in self._configs.items()
        ]
        return CreateTopicsRequest.CreatableTopic(
            name=name, num_partitions=-1, replication_factor=-1, assignments=assignments, configs=configs
        )

    def _created(self, response: Any) -> None:
        fine = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
        if not isinstance(response, SendFailure) and all(topic.error_code in fine for topic in response.topics):
            self.done = True
            return
        self.env.call_later(RETRY_MS, self.start)


@dataclass(slots=True)
class _Batch:
    values: list[int]
    base_sequence: int
    sent_ms: int = 0
    """The last attempt."""


class Producer(Client):
    """Sends numbered values to every partition of its topics, one batch at a time to each.

    value_base: the first number; producers of a run have ranges of their own. interval_ms: between batches of one
    partition.
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
    ) -> None:
        super().__init__(env, name, bootstrap, topics)
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
        if not self.leaders:
            self.later(self._begin)
        elif self.idempotent:
            self._get_producer_id(self._run_partitions)
        else:
            self._run_partitions()

    def _run_partitions(self) -> None:
        for name in sorted(self.leaders):
            self._next_batch(name)

    def _get_producer_id(self, then: Callable[[], None]) -> None:
        endpoints = list(self.brokers.values()) or self.bootstrap
        endpoint = endpoints[self.env.random.randrange(0, len(endpoints))]

        def got(response: Any) -> None:
            if isinstance(response, SendFailure) or response.error_code != ErrorCode.NONE:
                self.later(lambda: self._get_producer_id(then))
                return
            self._producer_id = response.producer_id
            self._producer_epoch = response.producer_epoch
            self._generation += 1
            then()

        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        self.env.send(endpoint, "producer-id", request, got, REQUEST_TIMEOUT_MS)

    def _next_batch(self, name: str) -> None:
        if self.stopped:
            return
        values = list(range(self._next_value, self._next_value + self.batch_records))
        self._next_value += self.batch_records
        self.history.sent += self.batch_records
        sequence = -1
        if self.idempotent:
            key = (name, self._generation)
            sequence = self._sequences.get(key, 0)
            self._sequences[key] = sequence + self.batch_records
        self._send(name, _Batch(values, sequence), self._generation)

    def _send(self, name: str, batch: _Batch, generation: int) -> None:
        if generation != self._generation:
            self._rest(name)  # its producer id is gone; whether it was written stays unknown
            return
        leader = self.leaders[name]
        endpoint = self.endpoint_of(leader)
        if endpoint is None:
            if not self.stopped:
                self.later(lambda: self._send(name, batch, generation))
            return
        batch.sent_ms = self.history.now_ms()
        request = ProduceRequest(acks=self.acks, timeout_ms=1500, topic_data=[self._topic_data(leader, batch)])
        self.env.send(
            endpoint,
            f"produce-{name}",
            request,
            lambda response: self._answered(name, batch, generation, response),
            REQUEST_TIMEOUT_MS,
        )

    def _topic_data(self, leader: Leader, batch: _Batch) -> ProduceRequest.TopicProduceData:
        now_ms = self.env.wall_ms()
        records = encode_batch(
            [(None, b"%d" % value, (), now_ms) for value in batch.values],
            producer_id=self._producer_id if self.idempotent else -1,
            producer_epoch=self._producer_epoch if self.idempotent else -1,
            base_sequence=batch.base_sequence,
        )
        partition = ProduceRequest.PartitionProduceData(index=leader.index, records=records)
        return ProduceRequest.TopicProduceData(topic_id=leader.topic_id, name=leader.topic, partition_data=[partition])

    def _answered(self, name: str, batch: _Batch, generation: int, response: Any) -> None:
        if isinstance(response, SendFailure):
            self._unsettled(name, batch, generation)
            return
        answer = response.responses[0].partition_responses[0]
        code = answer.error_code
        if code == ErrorCode.NONE:
            self._acknowledged(name, batch, answer.base_offset)
            self._rest(name)
        elif code in (
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            ErrorCode.UNKNOWN_PRODUCER_ID,
            ErrorCode.INVALID_PRODUCER_EPOCH,
        ):
            # the log lost what it knew of us (an election on a lossy basis): start over under a new id
            if generation == self._generation:
                self._get_producer_id(lambda: self._rest(name))
            else:
                self._rest(name)
        elif code in _NEVER_APPENDED:
            self.later(lambda: self._send(name, batch, generation))
        else:
            self._unsettled(name, batch, generation)

    def _acknowledged(self, name: str, batch: _Batch, base_offset: int) -> None:
        if self.acks != ACKS_ALL:
            self.history.acknowledged_by_leader += len(batch.values)
            return
        if base_offset < 0:
            return  # a repeat that is older than what the leader remembers offsets of
        self.history.acknowledge(name, base_offset, batch.values, batch.sent_ms)

    def _unsettled(self, name: str, batch: _Batch, generation: int) -> None:
        """It may have been written or not."""
        if self.idempotent:
            self.later(lambda: self._send(name, batch, generation))
        else:
            self.later(lambda: self._rest(name))

    def _rest(self, name: str) -> None:
        self.env.call_later(self.interval_ms, lambda: self._next_batch(name))


class Consumer(Client):
    """Reads every partition from the start, and asks now and then for the latest offset."""

    def __init__(
        self,
        env: Env,
        name: str,
        bootstrap: Sequence[Endpoint],
        topics: Sequence[str],
        history: History,
        *,
        interval_ms: int = 100,
        latest_interval_ms: int = 700,
    ) -> None:
        super().__init__(env, name, bootstrap, topics)
        self.history = history
        self.interval_ms = interval_ms
        self.latest_interval_ms = latest_interval_ms
        self.positions: dict[str, int] = {}

    def start(self) -> None:
        self.refresh(self._begin)

    def _begin(self) -> None:
        if not self.leaders:
            self.later(self._begin)
            return
        for name in sorted(self.leaders):
            self.positions[name] = 0
            self._fetch(name)
            self._ask_latest(name)

    def _fetch(self, name: str) -> None:
        if self.stopped:
            return
        leader = self.leaders[name]
        endpoint = self.endpoint_of(leader)
        if endpoint is None:
            self.later(lambda: self._fetch(name))
            return
        partition = FetchRequest.FetchPartition(
            partition=leader.index,
            current_leader_epoch=leader.epoch,
            fetch_offset=self.positions[name],
            partition_max_bytes=1 << 20,
        )
        topic = FetchRequest.FetchTopic(topic_id=leader.topic_id, topic=leader.topic, partitions=[partition])
        request = FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=1 << 20, topics=[topic])
        self.env.send(
            endpoint, f"fetch-{name}", request, lambda response: self._fetched(name, response), REQUEST_TIMEOUT_MS
        )

    def _fetched(self, name: str, response: Any) -> None:
        if isinstance(response, SendFailure) or response.error_code != ErrorCode.NONE or not response.responses:
            self.later(lambda: self._fetch(name))
            return
        answer = response.responses[0].partitions[0]
        if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._reset(name)
        elif answer.error_code != ErrorCode.NONE:
            self.later(lambda: self._fetch(name))
        else:
            if answer.records:
                self._read(name, answer.records)
            self.env.call_later(self.interval_ms, lambda: self._fetch(name))

    def _read(self, name: str, records: Any) -> None:
        position = self.positions[name]
        for start, header in walk(records, partial_tail=True):
            if header.next_offset <= position:
                continue
            for record in decode_records(records, start):
                if record.offset >= position and record.value is not None:
                    self.history.observed.append(Observed(name, record.offset, int(record.value), header.leader_epoch))
            position = header.next_offset
        self.positions[name] = position

    def _reset(self, name: str) -> None:
        """Our position is not in the log: it went back by a lossy election. Read again from where it ends now."""

        def told(offset: int, leader_epoch: int) -> None:
            self.positions[name] = min(self.positions[name], offset)
            self.env.call_later(self.interval_ms, lambda: self._fetch(name))

        self._list_latest(name, told, lambda: self.later(lambda: self._fetch(name)))

    def _ask_latest(self, name: str) -> None:
        if self.stopped:
            return

        def told(offset: int, leader_epoch: int) -> None:
            self.history.latest.append(Latest(name, offset, leader_epoch, self.name))
            again()

        def again() -> None:
            self.env.call_later(self.latest_interval_ms, lambda: self._ask_latest(name))

        self._list_latest(name, told, again)

    def _list_latest(self, name: str, told: Callable[[int, int], None], failed: Callable[[], None]) -> None:
        leader = self.leaders[name]
        endpoint = self.endpoint_of(leader)
        if endpoint is None:
            failed()
            return
        partition = ListOffsetsRequest.ListOffsetsPartition(
            partition_index=leader.index, current_leader_epoch=leader.epoch, timestamp=LATEST_TIMESTAMP
        )
        topic = ListOffsetsRequest.ListOffsetsTopic(name=leader.topic, partitions=[partition])
        request = ListOffsetsRequest(replica_id=CONSUMER, topics=[topic])
        asked_epoch = leader.epoch

        def answered(response: Any) -> None:
            if isinstance(response, SendFailure):
                failed()
                return
            answer = response.topics[0].partitions[0]
            if answer.error_code != ErrorCode.NONE:
                failed()
            else:
                # the epoch we asked under: the leader answered because it was the current one there
                told(answer.offset, asked_epoch)

        self.env.send(endpoint, f"list-{name}", request, answered, REQUEST_TIMEOUT_MS)
