"""Real input: every line of the Python standard library, written and read back while a broker is killed and returns.

The bytes of the lines are used unchanged (any encoding, any length, also empty lines) and are repeated under further
keys until there are 800,000 records. An idempotent librdkafka producer writes them at acks=all to a topic of three
replicas. After a third of the records a broker is killed, and after two thirds it is started again. Then a new consumer
reads everything: nothing may be lost or doubled, each partition must be in the order of its delivery reports, and every
byte must be unchanged.
"""

from __future__ import annotations

import sysconfig
import time
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from heirlog.drill.observe import DrillFailure
from heirlog.drill.progress import ClientProgress
from heirlog.drill.servers import Servers
from heirlog.local.cluster import Cluster

TOPIC = "stdlib"
PARTITIONS = 6
RECORDS = 800_000
NOT_WRITTEN = -1
QUIET_LIMIT_S = 60.0
PROGRESS_RECORDS = 1_000
"""After so many records the curves get a point."""


@dataclass(slots=True)
class Verdict:
    lines: int
    records: int
    acknowledged: int = 0
    read: int = 0
    wrong_bytes: int = 0
    out_of_order: int = 0
    lost: int = 0
    doubled: int = 0
    produce_s: float = 0.0
    consume_s: float = 0.0
    failures: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        return self.acknowledged == self.records and not (
            self.lost or self.doubled or self.wrong_bytes or self.out_of_order or self.failures
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "drill": TOPIC,
            "lines": self.lines,
            "records": self.records,
            "acknowledged": self.acknowledged,
            "read": self.read,
            "lost": self.lost,
            "doubled": self.doubled,
            "wrong_bytes": self.wrong_bytes,
            "out_of_order": self.out_of_order,
            "produce_s": round(self.produce_s, 2),
            "consume_s": round(self.consume_s, 2),
            "failures": self.failures,
            "passed": self.passed,
        }


def stdlib_modules() -> Iterator[tuple[str, list[bytes]]]:
    """The running Python's standard library, by path: each .py file's path in it, and its lines with their endings."""
    root = Path(sysconfig.get_path("stdlib"))
    for path in sorted(root.rglob("*.py")):
        if "site-packages" not in path.parts:
            yield path.relative_to(root).as_posix(), path.read_bytes().splitlines(keepends=True)


def stdlib_lines() -> list[bytes]:
    """Every line of every module."""
    return [line for _, text in stdlib_modules() for line in text]


def run(
    cluster: Cluster,
    *,
    records: int | None = None,
    say: Callable[[str], None] = lambda _: None,
    progress: ClientProgress | None = None,
) -> Verdict:
    """Play the drill on a started cluster of at least three brokers. Raises DrillFailure if the reading gets stuck.

    records: None for every line at least once and 800,000 at the least. progress: gets curves of what was acknowledged
    and read.
    """
    progress = progress or ClientProgress()
    lines = stdlib_lines()
    records = records or max(RECORDS, len(lines))
    verdict = Verdict(len(lines), records)
    say(f"{len(lines)} lines of {sysconfig.get_path('stdlib')}, repeated to {records} records")
    servers = Servers.of(cluster)
    admin = AdminClient(servers.librdkafka())
    for created in admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3)]).values():
        created.result(60)
    started = time.monotonic()
    written = _Written(cluster, servers, lines, records, verdict, say, progress).run()
    verdict.produce_s = time.monotonic() - started
    started = time.monotonic()
    _read_back(servers, lines, written, verdict, progress)
    verdict.consume_s = time.monotonic() - started
    return verdict


def _key(number: int) -> bytes:
    return b"%d" % number


class _Written:
    """Produces all records; `number_at[partition][offset]` is the record that a delivery report placed there."""

    def __init__(
        self,
        cluster: Cluster,
        servers: Servers,
        lines: list[bytes],
        records: int,
        verdict: Verdict,
        say: Callable[[str], None],
        progress: ClientProgress,
    ) -> None:
        self._cluster = cluster
        self._servers = servers
        self._lines = lines
        self._records = records
        self._verdict = verdict
        self._say = say
        self._progress = progress
        self.number_at = [array("l") for _ in range(PARTITIONS)]

    def run(self) -> list[array[int]]:
        producer = Producer(
            {
                **self._servers.librdkafka(),
                "enable.idempotence": True,
                "linger.ms": 5,
                "batch.size": 262_144,
                "queue.buffering.max.messages": 100_000,
                "message.timeout.ms": 120_000,
                "reconnect.backoff.max.ms": 500,
            }
        )
        faults = self._faults()
        lines, delivered = self._lines, self._delivered
        for number in range(self._records):
            if number in faults:
                faults[number]()
            value = lines[number % len(lines)]
            while True:
                try:
                    producer.produce(
                        TOPIC, value, _key(number), on_delivery=lambda e, m, number=number: delivered(e, m, number)
                    )
                    break
                except BufferError:
                    producer.poll(0.1)
            if number % PROGRESS_RECORDS == 0:
                producer.poll(0)
                self._progress.reach("acknowledged", self._verdict.acknowledged)
        left = producer.flush(120)
        self._progress.reach("acknowledged", self._verdict.acknowledged)
        if left:
            self._verdict.failures.append(f"{left} records were neither acknowledged nor refused within 120 s")
        return self.number_at

    def _faults(self) -> dict[int, Callable[[], None]]:
        victim = self._cluster.brokers[-1]

        def kill() -> None:
            self._say(f"broker {victim} is killed")
            self._cluster.kill(victim)

        def start() -> None:
            self._say(f"broker {victim} is started again")
            self._cluster.start(victim)

        return {self._records // 3: kill, 2 * self._records // 3: start}

    def _delivered(self, error: KafkaError | None, message: Message, number: int) -> None:
        if error is not None:
            self._verdict.failures.append(f"record {number}: {error}")
            return
        self._verdict.acknowledged += 1
        places = self.number_at[message.partition()]
        offset = message.offset()
        if offset >= len(places):
            places.extend([NOT_WRITTEN] * (offset + 1 - len(places)))
        if places[offset] != NOT_WRITTEN:
            self._verdict.doubled += 1
        places[offset] = number


def _read_back(
    servers: Servers, lines: list[bytes], written: list[array[int]], verdict: Verdict, progress: ClientProgress
) -> None:
    expected = sum(len(places) - places.count(NOT_WRITTEN) for places in written)
    for places in written:
        # numbers were handed to the producer in ascending order, so each partition must hold them ascending
        verdict.out_of_order += sum(after < before for before, after in pairwise(places))
    found = 0
    for message in _everything(servers):
        verdict.read += 1
        if verdict.read % PROGRESS_RECORDS == 0:
            progress.reach("read", verdict.read)
        places = written[message.partition()]
        number = places[message.offset()] if message.offset() < len(places) else NOT_WRITTEN
        if number == NOT_WRITTEN:
            # no delivery report names the offset of this record: a duplicate that idempotence should have prevented
            verdict.doubled += 1
            continue
        found += 1
        if message.value() != lines[number % len(lines)] or message.key() != _key(number):
            verdict.wrong_bytes += 1
    progress.reach("read", verdict.read)
    verdict.lost = expected - found


def _everything(servers: Servers) -> Iterator[Message]:
    consumer = Consumer(
        {
            **servers.librdkafka(),
            "group.id": "heirlog-drill",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
        }
    )
    try:
        consumer.assign([TopicPartition(TOPIC, index, 0) for index in range(PARTITIONS)])
        at_end: set[int] = set()
        last_progress = time.monotonic()
        while len(at_end) < PARTITIONS:
            messages = consumer.consume(10_000, timeout=0.5)
            if messages:
                last_progress = time.monotonic()
            elif time.monotonic() - last_progress > QUIET_LIMIT_S:
                raise DrillFailure(f"only partitions {sorted(at_end)} could be read to their end")
            for message in messages:
                error = message.error()
                if error is None:
                    yield message
                elif error.code() == KafkaError._PARTITION_EOF:
                    at_end.add(message.partition())
    finally:
        consumer.close()
