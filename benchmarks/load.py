"""Loads that a librdkafka client puts on a cluster, each with what it cost the brokers."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.gauges import Cost, Loaded, batches, brokers, wait_for_followers

PARTITIONS = 3
GIGA = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Throughput:
    """Of one produce or consume run. CPU is that of all broker processes together, while it ran."""

    records: int
    value_bytes: int
    seconds: float
    broker_cpu_s: float
    broker_kernel_s: float
    batches: int = 0

    @property
    def records_per_s(self) -> float:
        return self.records / self.seconds

    @property
    def mb_per_s(self) -> float:
        return self.records * self.value_bytes / self.seconds / 1e6

    @property
    def cpu_us_per_record(self) -> float:
        return 1e6 * self.broker_cpu_s / self.records

    @property
    def kernel_us_per_record(self) -> float:
        return 1e6 * self.broker_kernel_s / self.records

    @property
    def cpu_us_per_batch(self) -> float:
        return 1e6 * self.broker_cpu_s / self.batches if self.batches else 0.0

    @property
    def cpu_s_per_gb(self) -> float:
        return self.broker_cpu_s * GIGA / (self.records * self.value_bytes)

    @property
    def kernel_s_per_gb(self) -> float:
        return self.broker_kernel_s * GIGA / (self.records * self.value_bytes)


def create(cluster: Loaded, topic: str, replication_factor: int, partitions: int = PARTITIONS) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 2})
    new = NewTopic(
        topic, partitions, replication_factor, config={"min.insync.replicas": str(min(2, replication_factor))}
    )
    for created in admin.create_topics([new]).values():
        created.result(30)


class _Count:
    """Delivery reports; raises at the first failed one."""

    def __init__(self) -> None:
        self.delivered = 0

    def __call__(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            raise RuntimeError(f"a record was refused: {error}")
        self.delivered += 1


def produce(
    cluster: Loaded,
    topic: str,
    *,
    acks: str,
    records: int,
    value_bytes: int,
    batch_bytes: int,
    client: Mapping[str, str] | None = None,
) -> Throughput:
    """As fast as the client can. The cost includes what followers do until they have everything.

    client: its configuration, where it is not the usual one.
    """
    count = _Count()
    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "acks": acks,
            "linger.ms": 5,
            "log_level": 2,
            "batch.size": batch_bytes,
            "batch.num.messages": 100_000,
            "queue.buffering.max.messages": 200_000,
            **(client or {}),
        }
    )
    value = bytes(value_bytes)
    _warm(producer, topic, value)
    wait_for_followers(cluster, topic, PARTITIONS)
    warm_up = batches(cluster, topic, PARTITIONS)
    before, started = Cost.of(brokers(cluster)), time.monotonic()
    for number in range(records):
        while True:
            try:
                producer.produce(topic, value, on_delivery=count)
                break
            except BufferError:
                producer.poll(0.05)
        if number % 500 == 0:
            producer.poll(0)
    producer.flush(120)
    seconds = time.monotonic() - started
    wait_for_followers(cluster, topic, PARTITIONS)
    after = Cost.of(brokers(cluster))
    if count.delivered != records:
        raise RuntimeError(f"{count.delivered} of {records} records were acknowledged")
    return Throughput(
        records,
        value_bytes,
        seconds,
        after.cpu_s - before.cpu_s,
        after.kernel_s - before.kernel_s,
        batches(cluster, topic, PARTITIONS) - warm_up,
    )


def _warm(producer: Producer, topic: str, value: bytes) -> None:
    """Connections open and the leaders known before the clock starts."""
    for partition in range(PARTITIONS):
        producer.produce(topic, value, partition=partition)
    producer.flush(30)


def consume(
    cluster: Loaded, topic: str, *, records: int, value_bytes: int, client: Mapping[str, str] | None = None
) -> Throughput:
    """Everything from the beginning, as fast as the client can. See `meet_consumers`."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": "bench",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 50,
            "queued.max.messages.kbytes": 262_144,
            **(client or {}),
        }
    )
    before, started = Cost.of(brokers(cluster)), time.monotonic()
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    found = 0
    while found < records:
        found += sum(message.error() is None for message in consumer.consume(10_000, timeout=1.0))
    seconds = time.monotonic() - started
    after = Cost.of(brokers(cluster))
    consumer.close()
    return Throughput(found, value_bytes, seconds, after.cpu_s - before.cpu_s, after.kernel_s - before.kernel_s)


def meet_consumers(cluster: Loaded, topic: str) -> None:
    """The first consumer of a cluster has `__consumer_offsets` made, 50 partitions: not part of any figure."""
    consume(cluster, topic, records=1, value_bytes=1)
    time.sleep(3.0)


@dataclass(frozen=True, slots=True)
class RoundTrips:
    p50_us: float
    p99_us: float
    count: int
    seconds: float


def round_trips(cluster: Loaded, topic: str, *, acks: str, per_s: int = 250, seconds: float = 4.0) -> RoundTrips:
    """One record at a time at a fixed, modest rate: from produce() to its delivery report."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": acks, "linger.ms": 0, "log_level": 2})
    _warm(producer, topic, b"x")
    waits: list[float] = []
    began = due = time.perf_counter()
    for _ in range(int(per_s * seconds)):
        sent = time.perf_counter()
        producer.produce(
            topic, b"x" * 100, partition=0, on_delivery=lambda e, m, sent=sent: waits.append(time.perf_counter() - sent)
        )
        producer.flush(10)
        due += 1 / per_s
        time.sleep(max(0.0, due - time.perf_counter()))
    cuts = statistics.quantiles(waits, n=100)
    return RoundTrips(1e6 * statistics.median(waits), 1e6 * cuts[98], len(waits), time.perf_counter() - began)
