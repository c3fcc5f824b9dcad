"""The eight producers and eight consumers of the soak drill, on librdkafka, and the records that they share.

    topic              what is special                          written by      read by
    soak-plain         six partitions                           3 producers     group of 3 (range), 1 assigned
    soak-rolling       1 MiB segments, deleted by retention     2 producers     1 assigned
    soak-append-time   LogAppendTime                            2 producers     group of 2 (cooperative)
    soak-compacted     compacted, keys again and again          1 producer      1 assigned

Producers are idempotent and wait for all replicas. The members of a group commit once a second, and one of them leaves
and comes back from time to time. When a partition gets a new owner, the new owner must find every answered commit.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as Place

from heirlog.drill.sequences import Acknowledgements, Id, LastValues, Reading, decode, encode
from heirlog.drill.servers import Servers
from heirlog.drill.workload import NEVER_MS, Loop

PLAIN, ROLLING, APPEND_TIME, COMPACTED = "soak-plain", "soak-rolling", "soak-append-time", "soak-compacted"
PARTITIONS = {PLAIN: 6, ROLLING: 2, APPEND_TIME: 3, COMPACTED: 2}
TURN_S = 0.02
VALUE_BYTES = 700
IN_FLIGHT_MAX = 5_000
"""Records of one producer that wait for their acknowledgement before it pauses."""
KEYS = 2_000
"""Different keys of the compacted topic, per producer."""
TOMBSTONE_EVERY = 97
ID_HEADER = "id"
COMMIT_S = 1.0
LEAVES_S = 25.0
FAILURES_KEPT = 50
RECONNECT = {"reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 500, "log_level": 0}


@dataclass(slots=True)
class SoakRecord:
    """What all clients of the drill write down."""

    acknowledged: Acknowledgements = field(default_factory=Acknowledgements)
    last_values: LastValues = field(default_factory=LastValues)
    readings: list[tuple[str, Reading]] = field(default_factory=list)
    """With the reader's name."""
    failures: list[str] = field(default_factory=list)
    rebalances: int = 0
    commits: int = 0
    commits_lost: int = 0
    wrong_timestamps: int = 0

    def failed(self, what: str) -> None:
        if len(self.failures) < FAILURES_KEPT:
            self.failures.append(what)


class SteadyProducer(Loop):
    """Writes to every partition of one topic in turn, `rate_per_s` records a second."""

    def __init__(
        self,
        servers: Servers,
        number: int,
        topic: str,
        rate_per_s: int,
        soak_record: SoakRecord,
        compression: str,
        flush_s: float,
    ) -> None:
        super().__init__()
        self.number = number
        self.topic = topic
        self.sent = 0
        self._flush_s = flush_s
        self._rate_per_s = rate_per_s
        self._soak_record = soak_record
        self._sequences = dict.fromkeys(range(PARTITIONS[topic]), 0)
        self._waiting = 0
        self._due = 0.0
        self._last_s = time.monotonic()
        self._producer = Producer(
            {
                **servers.librdkafka(),
                "client.id": f"soak-producer-{number}",
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 20,
                "compression.type": compression,
                "message.timeout.ms": NEVER_MS,
                "topic.metadata.refresh.interval.ms": 5_000,
                **RECONNECT,
            }
        )

    def step(self) -> None:
        now_s = time.monotonic()
        # after a pause of the machine, catch up at most one second
        self._due = min(self._due + (now_s - self._last_s) * self._rate_per_s, self._rate_per_s)
        self._last_s = now_s
        while self._due >= 1 and self._waiting < IN_FLIGHT_MAX:
            self._due -= 1
            self._send()
        self._producer.poll(TURN_S)

    def _send(self) -> None:
        partition = self.sent % len(self._sequences)
        record = Id(self.number, partition, self._sequences[partition])
        self._sequences[partition] += 1
        self.sent += 1
        key, value, headers = self._content(record)
        self._waiting += 1
        self._producer.produce(
            self.topic,
            value,
            key,
            partition,
            headers=headers,
            on_delivery=lambda error, message: self._delivered(error, message, record, key, value),
        )

    def _content(self, record: Id) -> tuple[bytes | None, bytes | None, list[tuple[str, bytes]]]:
        if self.topic != COMPACTED:
            return None, encode(record, VALUE_BYTES), []
        key = b"%d-%d" % (self.number, record.sequence % KEYS)
        if record.sequence % TOMBSTONE_EVERY:
            return key, encode(record, VALUE_BYTES), []
        return key, None, [(ID_HEADER, encode(record, 0))]

    def _delivered(
        self, error: KafkaError | None, message: Message, record: Id, key: bytes | None, value: bytes | None
    ) -> None:
        self._waiting -= 1
        if error is not None:
            self._soak_record.failed(f"{self.topic} refused {record}: {error}")
            return
        self._soak_record.acknowledged.add(self.topic, record, message.offset())
        if key is not None:
            self._soak_record.last_values.acknowledged[key] = None if value is None else record.sequence

    def finish(self) -> None:
        left = self._producer.flush(self._flush_s)
        if left:
            self._soak_record.failed(f"producer {self.number}: {left} records had no answer after {self._flush_s:g} s")


def identify(message: Message) -> Id | None:
    """A tombstone has no value: it carries its id in a header."""
    value = message.value()
    if value is None:
        value = next((content for name, content in message.headers() or [] if name == ID_HEADER), None)
    return decode(value)


class SteadyConsumer(Loop):
    """Reads the partitions that it is given, and records what it reads."""

    def __init__(self, name: str, soak_record: SoakRecord, readings: Sequence[Reading]) -> None:
        super().__init__()
        self.name = name
        self._soak_record = soak_record
        self._readings = {reading.topic: reading for reading in readings}
        self._consumer = self._made()

    def _made(self) -> Consumer:
        raise NotImplementedError

    def step(self) -> None:
        for message in self._consumer.consume(1_000, timeout=0.1):
            error = message.error()
            if error is None:
                self._read(message)
            elif error.fatal() or error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
                self._soak_record.failed(f"{self.name}: {message.topic()}-{message.partition()}: {error}")

    def _read(self, message: Message) -> None:
        reading = self._readings[message.topic()]
        reading.add(message.partition(), message.offset(), identify(message))
        if message.topic() == APPEND_TIME and message.timestamp()[0] != TIMESTAMP_LOG_APPEND_TIME:
            self._soak_record.wrong_timestamps += 1

    def finish(self) -> None:
        self._consumer.close()


class AssignedConsumer(SteadyConsumer):
    """Every partition of a topic, from its beginning; nothing is committed."""

    def __init__(self, servers: Servers, name: str, soak_record: SoakRecord, reading: Reading) -> None:
        self._servers = servers
        self._topic = reading.topic
        super().__init__(name, soak_record, [reading])

    def _made(self) -> Consumer:
        consumer = Consumer(
            {
                **self._servers.librdkafka(),
                "client.id": self.name,
                # librdkafka requires a group id even if partitions are assigned manually and nothing is committed
                "group.id": self.name,
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                **RECONNECT,
            }
        )
        consumer.assign([Place(self._topic, index, 0) for index in range(PARTITIONS[self._topic])])
        return consumer


@dataclass(slots=True)
class Commits:
    """The highest offset per partition for which a commit of the group was answered."""

    answered: dict[int, int] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, partition: int, offset: int) -> None:
        with self.lock:
            self.answered[partition] = max(offset, self.answered.get(partition, 0))

    def copy(self) -> dict[int, int]:
        with self.lock:
            return dict(self.answered)


class GroupMember(SteadyConsumer):
    """One of a group that shares a topic. leaves: closes its consumer and joins again every `LEAVES_S` seconds."""

    def __init__(
        self,
        servers: Servers,
        name: str,
        group: str,
        soak_record: SoakRecord,
        reading: Reading,
        commits: Commits,
        *,
        strategy: str,
        leaves: bool,
    ) -> None:
        self._servers = servers
        self._group = group
        self._strategy = strategy
        self._topic = reading.topic
        self._commits = commits
        self._leaves = leaves
        self._committed_s = self._joined_s = time.monotonic()
        super().__init__(name, soak_record, [reading])

    def _made(self) -> Consumer:
        consumer = Consumer(
            {
                **self._servers.librdkafka(),
                "client.id": self.name,
                "group.id": self._group,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "partition.assignment.strategy": self._strategy,
                "session.timeout.ms": 10_000,
                "heartbeat.interval.ms": 500,
                "on_commit": self._answered,
                **RECONNECT,
            }
        )
        consumer.subscribe([self._topic], on_assign=self._assigned)
        return consumer

    def step(self) -> None:
        super().step()
        now_s = time.monotonic()
        if now_s - self._committed_s > COMMIT_S:
            self._committed_s = now_s
            self._commit()
        if self._leaves and now_s - self._joined_s > LEAVES_S:
            self._joined_s = now_s
            self._consumer.close()
            self._consumer = self._made()

    def _commit(self) -> None:
        try:
            self._consumer.commit(asynchronous=True)
        except KafkaException:
            return  # nothing was read since, or no coordinator just now

    def _answered(self, error: KafkaError | None, places: list[Place]) -> None:
        if error is not None:
            return
        self._soak_record.commits += 1
        for place in places:
            if place.error is None and place.offset >= 0:
                self._commits.add(place.partition, place.offset)

    def _assigned(self, consumer: Consumer, places: list[Place]) -> None:
        """The new owner of a partition must find the offset that was committed for it."""
        self._soak_record.rebalances += 1
        answered = self._commits.copy()
        try:
            committed = consumer.committed(places, timeout=10)
        except KafkaException:
            return  # no coordinator just now; librdkafka asks itself before it reads
        for place in committed:
            expected = answered.get(place.partition, 0)
            if place.error is None and max(place.offset, 0) < expected:
                self._soak_record.commits_lost += 1
                self._soak_record.failed(
                    f"{self._group}: {place.topic}-{place.partition} was committed at {expected}, found {place.offset}"
                )


def settings_of(topic: str) -> dict[str, Any]:
    """The configuration of a topic, as CreateTopics takes it."""
    return {
        PLAIN: {},
        ROLLING: {"segment.bytes": "1048576", "retention.bytes": "3145728", "file.delete.delay.ms": "1000"},
        APPEND_TIME: {"message.timestamp.type": "LogAppendTime"},
        COMPACTED: {
            "cleanup.policy": "compact",
            "segment.bytes": "1048576",
            "min.cleanable.dirty.ratio": "0.2",
            "file.delete.delay.ms": "1000",
        },
    }[topic]
