"""What a drill does with a topic during failures: write numbered records, read them, watch the latest offset.

The clients are those of librdkafka, so that heirlog's code does not check itself. A writer remembers each
acknowledgement with its offset and a checksum of the value. A reader remembers what it read at each offset. A watch
calls ListOffsets(latest) repeatedly and remembers if the answer went back. Each runs in a thread of its own until it is
stopped.
"""

from __future__ import annotations

import threading
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Protocol, Self

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

from heirlog.drill.observe import DrillFailure
from heirlog.drill.progress import ClientProgress
from heirlog.drill.servers import Servers

MAX_UNACKNOWLEDGED = 500
"""Records in flight before a writer waits: the limit of its queue while no broker acknowledges."""
VALUE_BYTES = 200
NEVER_MS = 600_000
QUIET_LIMIT_S = 60.0
"""A reader of everything gives up when it has got nothing for so long."""


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """An acknowledged record. `crc` is zlib.crc32 of the value."""

    topic: str
    partition: int
    offset: int
    crc: int


class Loop:
    """A thread that calls `step` until it is stopped; an exception in it is raised again by `stop`."""

    def __init__(self) -> None:
        self._stopping = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def step(self) -> None:
        raise NotImplementedError

    def finish(self) -> None:
        """Called once in the thread after the last step."""

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                self.step()
            self.finish()
        except BaseException as failure:
            self._failure = failure

    def start(self) -> Self:
        self._thread.start()
        return self

    def ask_to_stop(self) -> None:
        """For many at once: `stop` then waits for each."""
        self._stopping.set()

    def stop(self) -> None:
        """Once or more often."""
        self._stopping.set()
        self._thread.join()
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._thread.join()
        if kind is None and self._failure is not None:
            raise self._failure


class StoppableClient(Protocol):
    """Something that runs until it is asked to stop, as `Loop` does."""

    def ask_to_stop(self) -> None: ...

    def stop(self) -> None: ...


def stop_all(clients: Iterable[StoppableClient]) -> None:
    """All of them at once; `stop` raises what ended one of them early."""
    listed = list(clients)
    for client in listed:
        client.ask_to_stop()
    for client in listed:
        client.stop()


class Writer(Loop):
    """Writes `<number>:<filler>` to the first partitions of a topic, as fast as acknowledgements allow.

    Not idempotent: a record that was appended but not acknowledged before its leader died may be there twice.
    partitions: how many get records, in turn.
    flush_s: how long `stop` waits for what is still in flight.
    progress: gets a curve of what was acknowledged.
    """

    def __init__(
        self,
        servers: Servers,
        topic: str,
        *,
        acks: str,
        rate_per_s: int = 4_000,
        flush_s: float = 30.0,
        partitions: int = 1,
        progress: ClientProgress | None = None,
    ) -> None:
        super().__init__()
        self._topic = topic
        self._progress = progress
        self._curve = f"acknowledged, acks={acks}"
        self._partitions = partitions
        self._flush_s = flush_s
        self._batch = max(1, rate_per_s // 100)
        self._number = 0
        self._in_flight = 0
        self.acknowledged: list[Acknowledged] = []
        self.refused = 0
        self._producer = Producer(
            {
                **servers.librdkafka(),
                "acks": acks,
                "linger.ms": 5,
                "message.timeout.ms": NEVER_MS,
                "retry.backoff.ms": 50,
                "retry.backoff.max.ms": 200,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 200,
                "topic.metadata.refresh.interval.ms": 1_000,
            }
        )

    def step(self) -> None:
        if self._in_flight < MAX_UNACKNOWLEDGED:
            for _ in range(self._batch):
                value = f"{self._number}:".encode().ljust(VALUE_BYTES, b".")
                crc = zlib.crc32(value)
                partition = self._number % self._partitions
                self._number += 1
                self._in_flight += 1
                self._producer.produce(
                    self._topic,
                    value,
                    partition=partition,
                    on_delivery=lambda e, m, crc=crc: self._delivered(e, m, crc),
                )
        self._producer.poll(0.01)

    def finish(self) -> None:
        self._producer.flush(self._flush_s)

    def _delivered(self, error: KafkaError | None, message: Message, crc: int) -> None:
        self._in_flight -= 1
        if error is not None:
            self.refused += 1
            return
        self.acknowledged.append(Acknowledged(self._topic, message.partition(), message.offset(), crc))
        if self._progress is not None:
            self._progress.grow(self._curve)


@dataclass(slots=True)
class ReadRecords:
    """What a reader found. `changed` counts offsets whose value was another one before."""

    crc_by_offset: dict[int, int] = field(default_factory=dict)
    changed: int = 0

    def add(self, offset: int, value: bytes | None) -> None:
        crc = zlib.crc32(value or b"")
        if self.crc_by_offset.setdefault(offset, crc) != crc:
            self.changed += 1
            self.crc_by_offset[offset] = crc


def _consumer(servers: Servers, **settings: Any) -> Consumer:
    return Consumer(
        {
            **servers.librdkafka(),
            # librdkafka wants a group id even where partitions are assigned by hand and nothing is committed
            "group.id": "heirlog-drill",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "reconnect.backoff.ms": 20,
            "reconnect.backoff.max.ms": 200,
            **settings,
        }
    )


class Reader(Loop):
    """Reads partition 0 from its beginning and keeps up. progress: gets a curve of what was read."""

    def __init__(self, servers: Servers, topic: str, progress: ClientProgress | None = None) -> None:
        super().__init__()
        self.seen = ReadRecords()
        self._progress = progress
        self._consumer = _consumer(servers)
        self._consumer.assign([TopicPartition(topic, 0, 0)])

    def step(self) -> None:
        for message in self._consumer.consume(500, timeout=0.05):
            if message.error() is None:
                self.seen.add(message.offset(), message.value())
        if self._progress is not None:
            self._progress.reach("read", len(self.seen.crc_by_offset))

    def finish(self) -> None:
        self._consumer.close()


class EndOffsetWatch(Loop):
    """Asks ListOffsets(latest) of partition 0 without pause; `went_back` holds every (before, after) that shrank.

    progress: gets a curve of the watermark.
    """

    def __init__(self, servers: Servers, topic: str, progress: ClientProgress | None = None) -> None:
        super().__init__()
        self._progress = progress
        self._partition = TopicPartition(topic, 0)
        self._consumer = _consumer(servers)
        self.latest = 0
        self.went_back: list[tuple[int, int]] = []
        self.answers = 0

    def step(self) -> None:
        try:
            _, end = self._consumer.get_watermark_offsets(self._partition, timeout=1.0, cached=False)
        except KafkaException:
            self._look_again()
            return
        self.answers += 1
        if end < self.latest:
            self.went_back.append((self.latest, end))
        self.latest = end
        if self._progress is not None:
            self._progress.reach("high watermark", end)
        self._stopping.wait(0.01)

    def _look_again(self) -> None:
        """No leader just now. librdkafka would keep that in its cache for minutes; asking for metadata renews it."""
        self._stopping.wait(0.05)
        try:
            self._consumer.list_topics(self._partition.topic, timeout=1.0)
        except KafkaException:
            self._stopping.wait(0.05)

    def finish(self) -> None:
        self._consumer.close()


def read_all(servers: Servers, topic: str, partition: int = 0, *, timeout_s: float = 60.0) -> ReadRecords:
    """Everything that a new client finds in the partition now. Raises TimeoutError."""
    consumer = _consumer(servers, **{"enable.partition.eof": True})
    seen = ReadRecords()
    try:
        consumer.assign([TopicPartition(topic, partition, 0)])
        quiet_s = 0.0
        while quiet_s < timeout_s:
            messages = consumer.consume(2_000, timeout=0.5)
            quiet_s = 0.0 if messages else quiet_s + 0.5
            for message in messages:
                error = message.error()
                if error is None:
                    seen.add(message.offset(), message.value())
                elif error.code() == KafkaError._PARTITION_EOF:
                    return seen
    finally:
        consumer.close()
    raise TimeoutError(f"the end of {topic}-{partition} was not reached within {timeout_s:g} s without progress")


def everything(servers: Servers, partitions: Mapping[str, int]) -> Iterator[Message]:
    """What a new client finds in all topics, from the beginning to the end of every partition. Raises DrillFailure.

    partitions: how many each topic has.
    """
    consumer = _consumer(servers, **{"enable.partition.eof": True, "auto.offset.reset": "earliest"})
    try:
        left = {(topic, index) for topic, count in partitions.items() for index in range(count)}
        consumer.assign([TopicPartition(topic, index, 0) for topic, index in sorted(left)])
        progress_s = time.monotonic()
        while left:
            messages = consumer.consume(10_000, timeout=0.2)
            if messages:
                progress_s = time.monotonic()
            elif time.monotonic() - progress_s > QUIET_LIMIT_S:
                raise DrillFailure(f"{sorted(left)} could not be read to their end")
            for message in messages:
                error = message.error()
                if error is None:
                    yield message
                elif error.code() == KafkaError._PARTITION_EOF:
                    left.discard((message.topic(), message.partition()))
    finally:
        consumer.close()
