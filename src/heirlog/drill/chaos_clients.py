"""The librdkafka clients of the chaos drill: writers, a reader, a watch of latest offsets, and members of a group.

None of them stops at an error: what a client reports while nodes are lost is counted, and what it then was promised or
shown is judged. A writer's queue is bounded, so it waits while no broker acknowledges.
"""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Iterator

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient, OffsetSpec

from heirlog.drill.chaos_record import (
    KEPT,
    PARTITIONS,
    UNKNOWN_OFFSET,
    Answered,
    ClientRecord,
    LatestOffset,
    RecordRead,
    decode,
    encode,
    now_ms,
    value_of,
)
from heirlog.drill.servers import Servers
from heirlog.drill.workload import NEVER_MS, Loop
from heirlog.sim.group_history import Commit, GroupHistory
from heirlog.sim.group_history import Read as CommitRead

IN_FLIGHT_MAX = 500
"""Records of one writer that wait for their acknowledgement before it pauses."""
TURN_S = 0.02
FLUSH_S = 60.0
LATEST_EVERY_S = 0.2
COMMIT_EVERY_S = 1.0
GROUP = "chaos-librdkafka"
RECONNECT = {
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 500,
    "topic.metadata.refresh.interval.ms": 2_000,
    "coordinator.query.interval.ms": 2_000,
    # what it prints about lost brokers would bury the drill's own lines
    "log_level": 0,
}
SILENT = logging.getLogger("heirlog.drill.librdkafka")
"""librdkafka prints fatal errors at every log level; they are counted as others are."""
SILENT.addHandler(logging.NullHandler())
SILENT.propagate = False


class Pace:
    """How many records are due at a rate; after a pause of the machine at most those of one second."""

    def __init__(self, per_s: float) -> None:
        self._per_s = per_s
        self._due = 0.0
        self._last_s = time.monotonic()

    def due(self) -> int:
        now_s = time.monotonic()
        self._due = min(self._due + (now_s - self._last_s) * self._per_s, self._per_s)
        self._last_s = now_s
        whole = int(self._due)
        self._due -= whole
        return whole


class KnownOffsets:
    """Which of the offsets that librdkafka reports are the broker's.

    A batch that was stored before has an unknown offset, -1 (None in Python) for its first record. librdkafka counts on
    from there: the second record of the batch is reported at offset 0.
    """

    def __init__(self) -> None:
        self._next: dict[int, int] = {}
        """By partition whose last record had an unknown offset: what the next one of its batch would be reported at."""

    def add(self, partition: int, offset: int | None) -> int:
        """The offset of the next report about a partition, or UNKNOWN_OFFSET."""
        if offset is None or offset < 0:
            self._next[partition] = 0
            return UNKNOWN_OFFSET
        if offset == self._next.get(partition):
            self._next[partition] += 1
            return UNKNOWN_OFFSET
        self._next.pop(partition, None)
        return offset


class ChaosWriter(Loop):
    """Writes to all partitions of a topic in turn: idempotent, acks=all.

    timeout_ms: for a record; a topic that is deleted needs a short one, since librdkafka may wait for its partitions.
    An election that lost records may be fatal for an idempotent producer. For a topic that is created again librdkafka
    may ignore the new leader, because its epoch is lower than that of the deleted one. Then another producer continues.

    timeout_ms: for a record. A topic that is deleted needs a short one, which shows that the leader is ignored.
    """

    def __init__(
        self, servers: Servers, number: int, topic: str, per_s: float, record: ClientRecord, timeout_ms: int = NEVER_MS
    ) -> None:
        super().__init__()
        self._timeout_ms = timeout_ms
        self._servers = servers
        self._number = number
        self._topic = topic
        self._record = record
        self._counter = itertools.count()
        self._waiting = 0
        self._is_lost = False
        """This producer gets no more answers."""
        self._pace = Pace(per_s)
        self._known_offsets = KnownOffsets()
        self._producer = self._made()

    def _made(self) -> Producer:
        return Producer(
            {
                **self._servers.librdkafka(),
                "client.id": f"chaos-writer-{self._number}",
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 5,
                "message.timeout.ms": self._timeout_ms,
                "retry.backoff.ms": 50,
                "retry.backoff.max.ms": 500,
                "error_cb": lambda error: self._record.failed(f"writer {self._number}: {error.name()}"),
                **RECONNECT,
            },
            logger=SILENT,
        )

    def step(self) -> None:
        try:
            for _ in range(self._pace.due()):
                if self._waiting < IN_FLIGHT_MAX:
                    self._send()
            self._producer.poll(TURN_S)
        except KafkaException as error:
            self._record.failed(f"writer {self._number}: {named(error)}")
            self._is_lost |= error.args[0].fatal()
        if self._is_lost:
            # each record in its queue is reported
            self._producer.purge()
            self._flush()
            self._producer, self._is_lost = self._made(), False

    def _send(self) -> None:
        count = next(self._counter)
        value, sent, sent_ms = value_of(self._number, count), self._record.tick(), now_ms()
        self._producer.produce(
            self._topic,
            encode(value),
            partition=count % PARTITIONS[self._topic],
            on_delivery=lambda error, message: self._delivered(error, message, value, sent, sent_ms),
        )
        self._waiting += 1
        self._record.sent[self._topic] += 1

    def _delivered(self, error: KafkaError | None, message: Message, value: int, sent: int, sent_ms: int) -> None:
        self._waiting -= 1
        if error is not None:
            self._record.refused[self._topic] += 1
            self._record.failed(f"writing to {self._topic}: {error.str()}")
            self._is_lost |= error.code() == KafkaError._MSG_TIMED_OUT
            return
        known = self._known_offsets.add(message.partition(), message.offset())
        self._record.answered.append(
            Answered(
                self._topic,
                message.partition(),
                known,
                value,
                f"writer-{self._number}",
                sent,
                self._record.tick(),
                sent_ms,
                now_ms(),
                in_order=True,
            )
        )

    def finish(self) -> None:
        self._flush()
        if self._waiting:
            self._record.refused[self._topic] += self._waiting
            self._record.stuck.append(
                f"{self._waiting} records of {self._topic} had no answer {FLUSH_S:g} s after the cluster had healed"
            )

    def _flush(self) -> None:
        """Until each record was answered or reported, or FLUSH_S is over."""
        deadline = time.monotonic() + FLUSH_S
        while self._waiting and time.monotonic() < deadline:
            try:
                self._producer.flush(1.0)
            except (KafkaException, SystemError) as error:
                # the latter is what a fatal error becomes while librdkafka's Python client calls back
                self._record.failed(f"writer {self._number} flushes: {type(error).__name__}")
                self._producer.purge()


def note(record: ClientRecord, client: str, message: Message) -> None:
    """A record that was read."""
    value = decode(message.value())
    place = f"{message.topic()}-{message.partition()} at offset {message.offset()}"
    if value is None:
        record.changed.append(f"{client} read bytes that no client wrote in {place}")
        return
    epoch = message.leader_epoch()
    record.read.append(
        RecordRead(
            client,
            str(message.topic()),
            message.partition(),
            message.offset(),
            value,
            -1 if epoch is None else epoch,
            # librdkafka hands over one message after the other; how many it takes at once says nothing
            record.tick(),
        )
    )


class ChaosReader(Loop):
    """Reads every partition of some topics from the beginning. After a truncation it begins again there."""

    def __init__(self, servers: Servers, name: str, topics: tuple[str, ...], record: ClientRecord) -> None:
        super().__init__()
        self._name = name
        self._record = record
        self._consumer = Consumer(
            {
                **servers.librdkafka(),
                "client.id": name,
                # librdkafka requires one even if partitions are assigned manually and nothing is committed
                "group.id": name,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                **RECONNECT,
            }
        )
        self._consumer.assign([Place(topic, index, 0) for topic in topics for index in range(PARTITIONS[topic])])

    def step(self) -> None:
        for message in self._consumer.consume(1_000, timeout=0.1):
            error = message.error()
            if error is None:
                note(self._record, self._name, message)
            else:
                self._record.failed(f"{self._name}: {error.str()}")

    def finish(self) -> None:
        self._consumer.close()


class LatestWatch(Loop):
    """Asks ListOffsets(latest) of all partitions of some topics, again and again."""

    def __init__(self, servers: Servers, name: str, topics: tuple[str, ...], record: ClientRecord) -> None:
        super().__init__()
        self._name = name
        self._record = record
        self._admin = AdminClient({**servers.librdkafka(), "client.id": name, **RECONNECT})
        self._asked = {
            Place(topic, index): OffsetSpec.latest() for topic in topics for index in range(PARTITIONS[topic])
        }

    def step(self) -> None:
        for place, answer in self._admin.list_offsets(self._asked, request_timeout=2.0).items():
            try:
                found = answer.result(5.0)
            except (KafkaException, TimeoutError) as error:
                self._record.failed(f"{self._name}: {named(error)}")
                continue
            if found.offset < 0:
                continue  # librdkafka's "unknown", where it has no leader to ask
            epoch = -1 if found.leader_epoch is None else found.leader_epoch
            self._record.latest.append(LatestOffset(self._name, place.topic, place.partition, found.offset, epoch))
        self._stopping.wait(LATEST_EVERY_S)


def named(error: Exception) -> str:
    if isinstance(error, KafkaException) and error.args and isinstance(error.args[0], KafkaError):
        return str(error.args[0].name())
    return type(error).__name__


def group_consumer(servers: Servers, name: str, group: str) -> Consumer:
    """Of a member that a fault costs its place within seconds."""
    return Consumer(
        {
            **servers.librdkafka(),
            "client.id": name,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": 6_000,
            "heartbeat.interval.ms": 500,
            **RECONNECT,
        }
    )


class ChaosMember(Loop):
    """One of a group that shares KEPT. Every commit has a token of its own as its metadata; the new owner of a
    partition asks for what is committed. leaves_every_s: closes its consumer and joins again; 0: never."""

    def __init__(
        self, servers: Servers, number: int, history: GroupHistory, record: ClientRecord, *, leaves_every_s: float = 0
    ) -> None:
        super().__init__()
        self._servers = servers
        self._name = f"{GROUP}-{number}"
        self._history = history
        self._record = record
        self._leaves_every_s = leaves_every_s
        self._tokens = itertools.count()
        self._positions: dict[int, int] = {}
        self._to_confirm: list[CommitRead] = []
        self._committed_s = self._joined_s = time.monotonic()
        self._consumer = self._joined()

    def _joined(self) -> Consumer:
        consumer = group_consumer(self._servers, self._name, GROUP)
        consumer.subscribe([KEPT], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked)
        return consumer

    def step(self) -> None:
        for message in self._consumer.consume(1_000, timeout=0.1):
            if message.error() is None and message.partition() is not None:
                self._positions[message.partition()] = message.offset() + 1
        now_s = time.monotonic()
        if now_s - self._committed_s > COMMIT_EVERY_S:
            self._committed_s = now_s
            self._commit()
        if self._leaves_every_s and now_s - self._joined_s > self._leaves_every_s:
            self._joined_s = now_s
            self._consumer.close()
            self._consumer = self._joined()

    def _commit(self) -> None:
        positions, self._positions = self._positions, {}
        if not positions:
            return
        commits, places = [], []
        for partition, offset in positions.items():
            token = f"{self._name}:{next(self._tokens)}"
            commit = Commit(partition, offset, self._history.tick(), now_ms())
            self._history.commits[token] = commit
            commits.append(commit)
            places.append(Place(KEPT, partition, offset, metadata=token))
        confirmed, self._to_confirm = self._to_confirm, []
        try:
            answered = self._consumer.commit(offsets=places, asynchronous=False) or []
        except KafkaException as error:
            self._record.failed(f"{self._name} commits: {named(error)}")
            # not even an unknown member is proof: librdkafka repeats a request, and the first one may be stored later
            return
        if any(place.error is not None for place in answered):
            return
        tick = self._history.tick()
        for commit in commits:
            commit.answered = tick
        for read in confirmed:
            read.confirmed = True

    def _assigned(self, consumer: Consumer, places: list[Place]) -> None:
        """The new owner of a partition must find what was committed for it."""
        sent = self._history.tick()
        try:
            committed = consumer.committed(places, timeout=5.0)
        except KafkaException as error:
            # librdkafka asks itself before it reads
            self._record.failed(f"{self._name} asks for its commits: {named(error)}")
            return
        self._to_confirm = list(self._reads(committed, sent))
        self._history.reads += self._to_confirm

    def _reads(self, committed: list[Place], sent: int) -> Iterator[CommitRead]:
        for place in committed:
            if place.error is None:
                token = place.metadata if place.offset >= 0 else None
                yield CommitRead(place.partition, token or None, place.offset, sent)

    def _revoked(self, consumer: Consumer, places: list[Place]) -> None:
        self._positions.clear()
        self._to_confirm = []

    def finish(self) -> None:
        self._consumer.close()
