"""`heirlog perf produce|consume`: what a cluster does from here, in the figures of Kafka's own two tools.

The batches are made by this Python process: one that is busy all the time measures itself, not the cluster, so the
result says how busy it was. `make bench` of a checkout measures with processes that are not.
"""

from __future__ import annotations

import math
import os
import random
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from heirlog.cli import complete
from heirlog.cli.connect import DEFAULT_BOOTSTRAP, BootstrapServer, connected
from heirlog.cli.errors import CommandError
from heirlog.cli.names import given_once
from heirlog.cli.places import partition_count
from heirlog.cli.produce import Acks, Compression
from heirlog.cli.render import Json, show_json
from heirlog.cli.waiting import SAID_EVERY_S, Saying
from heirlog.protocol.batch import encode_batch, walk
from heirlog.protocol.compression import CODEC_NAMES

if TYPE_CHECKING:
    from heirlog.blocking import BatchProducer, Client
    from heirlog.client.sender import Delivered

app = typer.Typer(help="Measure throughput and latency.", no_args_is_help=True)

TopicArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="TOPIC", help="The topic; it must exist.", show_default=False, autocompletion=complete.topics
    ),
]
TopicOption = Annotated[
    str | None, typer.Option("--topic", help="The same in Kafka's words.", autocompletion=complete.topics)
]

MIB = 1024 * 1024
BUSY_PERCENT = 90
"""A client that is busier than this is the limit of what it has measured."""
BATCH_BYTES = 16_384
"""Kafka's default of batch.size."""
POLL_S = 0.005
ALL = -1
PERCENTILES: Final = (50, 95, 99, 99.9)
STEP: Final = math.log(1.01)
"""Latencies are counted in classes that are 1 % wide: as many as there are however long it takes."""


class Stopwatch:
    """Measures from when it is made."""

    def __init__(self) -> None:
        self._began_s = time.monotonic()
        self._cpu_began_s = time.process_time()

    def rates(self, records: int, size: int) -> dict[str, Any]:
        seconds = max(time.monotonic() - self._began_s, 1e-9)
        busy_s = time.process_time() - self._cpu_began_s
        return {
            "records": records,
            "bytes": size,
            "seconds": round(seconds, 3),
            "records_per_s": round(records / seconds, 1),
            "mib_per_s": round(size / MIB / seconds, 3),
            "client_cpu_percent": round(100 * busy_s / seconds),
        }


class Latencies:
    """Of records, in ms."""

    def __init__(self) -> None:
        self.count = 0
        self.longest_ms = 0.0
        self._sum_ms = 0.0
        self._classes: Counter[int] = Counter()

    def add(self, latency_ms: float, records: int) -> None:
        self.count += records
        self._sum_ms += latency_ms * records
        self.longest_ms = max(self.longest_ms, latency_ms)
        self._classes[math.ceil(math.log(max(latency_ms, 0.001)) / STEP)] += records

    @property
    def mean_ms(self) -> float:
        return self._sum_ms / self.count if self.count else 0.0

    def percentile_ms(self, percent: float) -> float:
        """At most 1 % above the true one."""
        left = self.count * percent / 100
        for number, records in sorted(self._classes.items()):
            left -= records
            if left <= 0:
                return min(math.exp(number * STEP), self.longest_ms)
        return 0.0


class RandomValues:
    """Values that differ within a batch: the same one again and again would compress to almost nothing.

    They are cut out of random bytes that are made once, since making them takes longer than making the batch.
    """

    def __init__(self, size: int, together: int) -> None:
        """together: how many values a batch has at most."""
        self._size = size
        self._bytes = os.urandom(size * together + MIB)

    def some(self, count: int) -> list[bytes]:
        size = self._size
        begin = random.randrange(len(self._bytes) - count * size + 1)
        return [self._bytes[begin + at * size : begin + (at + 1) * size] for at in range(count)]


class Load:
    """Sends records at a rate and keeps the latencies of those that were acknowledged."""

    def __init__(self, client: Client, acks: int, topic: str, partitions: int, record_size: int, codec: int) -> None:
        self.latencies = Latencies()
        self._client = client
        self._acks = acks
        self._topic = topic
        self._partitions = partitions
        self._batch_records = max(1, BATCH_BYTES // max(1, record_size))
        self._values = RandomValues(record_size, self._batch_records)
        self._codec = codec
        self._turn = 0
        self._sent: dict[int, deque[tuple[float, int]]] = {number: deque() for number in range(partitions)}
        """When each batch was sent and how many records it has: a partition acknowledges them in order."""

    def run(self, records: int, per_second: float) -> None:
        """per_second: 0 for as many as possible. Raises KafkaError, OSError."""
        # without idempotence one request at a time, so that batches of a partition stay in order
        in_flight = 5 if self._acks == ALL else 1
        with (
            Saying(self._acknowledged_of(records)),
            self._client.producer(
                idempotent=self._acks == ALL, acks=self._acks, max_in_flight=in_flight, on_delivered=self._delivered
            ) as producer,
        ):
            self._produce(producer, records, per_second)

    def _acknowledged_of(self, records: int) -> Callable[[], str]:
        before = 0

        def said() -> str:
            nonlocal before
            now, since = self.latencies.count, self.latencies.count - before
            before = now
            stands = "" if since else f", none in the last {SAID_EVERY_S:.0f} s: waiting for the brokers"
            return f"{now} of {records} acknowledged{stands}"

        return said

    def _produce(self, producer: BatchProducer, records: int, per_second: float) -> None:
        began = time.monotonic()
        sent = 0
        while sent < records:
            now = time.monotonic()
            due = records if not per_second else min(records, int((now - began) * per_second) + 1)
            size = min(self._batch_records, due - sent)
            if size:
                self._send(producer, size)
                sent += size
            else:
                producer.poll(POLL_S)
        producer.flush()

    def _send(self, producer: BatchProducer, records: int) -> None:
        now_ms = time.time_ns() // 1_000_000
        values = self._values.some(records)
        batch = encode_batch([(None, value, (), now_ms) for value in values], compression=self._codec)
        partition = self._turn % self._partitions
        self._turn += 1
        self._sent[partition].append((time.monotonic(), records))
        producer.send(self._topic, partition, batch)

    def _delivered(self, delivered: Delivered) -> None:
        sent_at, records = self._sent[delivered.batch.partition[1]].popleft()
        self.latencies.add((time.monotonic() - sent_at) * 1000, records)


@dataclass
class Came:
    """What `perf consume` has read so far."""

    topic: str
    records: int = 0
    size: int = 0
    is_compressed: bool = False
    _before: int = 0

    def said(self) -> str | None:
        is_waiting, self._before = self.size == self._before, self.size
        return f"nothing of {self.topic} came in the last {SAID_EVERY_S:.0f} s: waiting" if is_waiting else None


@app.command("produce")
def produce(
    topic_argument: TopicArgument = None,
    topic: TopicOption = None,
    num_records: Annotated[int, typer.Option(min=1, help="How many records.")] = 100_000,
    record_size: Annotated[int, typer.Option(min=0, help="Bytes of each value; they are random.")] = 1024,
    throughput: Annotated[float, typer.Option(min=-1, help="Records per second; -1: as many as possible.")] = -1,
    acks: Annotated[
        Acks, typer.Option(help="all (or -1): every in-sync replica has it; 1: the leader has it.")
    ] = Acks.ALL,
    compression: Annotated[Compression, typer.Option()] = Compression.NONE,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """Write records, and show how many per second, and how long their acknowledgements took.

    One process makes the records. If that is what limits the rate, the command says so. Ctrl-C shows what was measured
    until then. MB are those of the values, before compression.
    """
    topic = given_once("topic", "TOPIC", topic_argument, "--topic", topic)
    with connected(bootstrap_server, says_waiting=False) as client:
        partitions = partition_count(client, topic)
        load = Load(client, acks.required, topic, partitions, record_size, CODEC_NAMES.index(compression))
        stopwatch = Stopwatch()
        try:
            load.run(num_records, max(0.0, throughput))
        except KeyboardInterrupt:
            # what was measured until then is what the user waits for
            _show_produced(load.latencies, stopwatch, record_size, as_json)
            print(f"interrupted: {load.latencies.count} of {num_records} acknowledged", file=sys.stderr, flush=True)
            raise
        _show_produced(load.latencies, stopwatch, record_size, as_json)
    if compression is not Compression.NONE and not as_json:
        print("MB are those of the values, before compression", file=sys.stderr)


def _show_produced(latencies: Latencies, stopwatch: Stopwatch, record_size: int, as_json: bool) -> None:
    found = stopwatch.rates(latencies.count, latencies.count * record_size)
    found["latency_ms"] = {
        "avg": round(latencies.mean_ms, 2),
        "max": round(latencies.longest_ms, 2),
        **{f"p{percent:g}": round(latencies.percentile_ms(percent), 2) for percent in PERCENTILES},
    }
    if as_json:
        show_json(found)
        return
    latency = found["latency_ms"]
    each = ", ".join(f"{latency[f'p{percent:g}']:g} ms {percent:g}th" for percent in PERCENTILES)
    print(
        f"{found['records']} records sent, {found['records_per_s']:.1f} records/sec ({found['mib_per_s']:.2f} MB/sec), "
        f"{latency['avg']:g} ms avg latency, {latency['max']:g} ms max latency, {each}."
    )
    _warn_if_busy(found)


@app.command("consume")
def consume(
    topic_argument: TopicArgument = None,
    topic: TopicOption = None,
    num_records: Annotated[
        int | None, typer.Option(min=1, help="Stop after so many records. Default: all that the topic has now.")
    ] = None,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """Read a topic from its beginning, and show how fast. Records are not decoded.

    MB are those of the batches as they are stored, compressed or not.
    """
    from heirlog.blocking import EARLIEST, LATEST

    topic = given_once("topic", "TOPIC", topic_argument, "--topic", topic)
    with connected(bootstrap_server, says_waiting=False) as client:
        partitions = [(topic, number) for number in range(partition_count(client, topic))]
        begins = client.list_offsets(dict.fromkeys(partitions, EARLIEST))
        ends = client.list_offsets(dict.fromkeys(partitions, LATEST))
        stopwatch = Stopwatch()
        came = Came(topic)
        with Saying(came.said):
            for at in partitions:
                if num_records is not None and came.records >= num_records:
                    break
                for part in client.fetch(*at, begins[at].offset, ends[at].offset):
                    headers = [header for _, header in walk(part.records)]
                    came.records += sum(header.record_count for header in headers)
                    came.is_compressed |= any(header.compression for header in headers)
                    came.size += len(part.records)
                    if num_records is not None and came.records >= num_records:
                        break
        records, size = came.records, came.size
        found = stopwatch.rates(records, size)
    if not records:
        raise CommandError(f"{topic} has no records; heirlog perf produce {topic} writes some")
    if as_json:
        show_json(found)
        return
    print(
        f"{records} records read, {found['records_per_s']:.1f} records/sec ({found['mib_per_s']:.2f} MB/sec), "
        f"{size / MIB:.2f} MB in {found['seconds']:.2f} s."
    )
    if came.is_compressed:
        print("MB are those of the batches as they are stored, compressed", file=sys.stderr)
    _warn_if_busy(found)


def _warn_if_busy(found: Mapping[str, Any]) -> None:
    if found["client_cpu_percent"] >= BUSY_PERCENT:
        print(
            f"this client was busy for {found['client_cpu_percent']} % of the time: the cluster may do "
            "more; run several at the same time, and add up what they measure",
            file=sys.stderr,
        )
