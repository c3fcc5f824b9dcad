"""What a trigger costs beside its data: our Spark source and Spark's own connector, one after the other.

    latency         a record every 20 ms, triggers every second: from the record's timestamp to the function of
                    `foreachBatch` that has its batch
    small trigger   the same stream: how long a trigger works, and the CPU time of everything for each
    idle trigger    nothing is written: the CPU time of everything for each second

Half a second of the latency is the wait for the next trigger. The first batches are left out: in them workers start.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from heirlog.blocking import Client
from heirlog.protocol.batch import encode_batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from benchmarks.spark import _Bench

PARTITIONS = 4
EVERY_S = 0.02
LEFT_OUT = 3
WAIT_S = 120.0


class Triggers(NamedTuple):
    latency_p50_ms: float
    latency_p99_ms: float
    trigger_ms: float
    """Median of what Spark says of its triggers with records."""
    trigger_cpu_ms: float
    idle_cpu_ms: float


def report(bench: _Bench, kinds: tuple[str, ...], batches: int) -> None:
    """batches: how many are measured for each side."""
    print("\n| Spark, triggers every second | latency p50, p99 | small trigger | its CPU | idle trigger, CPU |")
    print("|---|---|---|---|---|")
    for kind in kinds:
        # once unmeasured: Java compiles, workers start
        measured(bench, kind, LEFT_OUT)
    for kind in kinds:
        found = measured(bench, kind, batches)
        print(
            f"| {kind} | {found.latency_p50_ms:.0f} ms, {found.latency_p99_ms:.0f} ms | {found.trigger_ms:.0f} ms "
            f"| {found.trigger_cpu_ms:.0f} ms | {found.idle_cpu_ms:.0f} ms |",
            flush=True,
        )


def measured(bench: _Bench, kind: str, batches: int) -> Triggers:
    topic = bench.new_topic()
    latencies: list[list[float]] = []

    def note(rows: DataFrame, number: int) -> None:
        stamps = [row[0] for row in rows.selectExpr("unix_millis(timestamp)").collect()]
        now_ms = time.time() * 1000
        latencies.append([now_ms - stamp for stamp in stamps])

    reader = bench.spark.readStream.format(kind).options(**bench.options, subscribe=topic)
    rows = reader.option("startingOffsets", "latest").load()
    writer = rows.writeStream.foreachBatch(note).trigger(processingTime="1 second")
    query = writer.option("checkpointLocation", bench.place()).start()
    try:
        with _records_into(bench, topic):
            _wait(query, lambda: len(latencies) >= LEFT_OUT)
            before = bench.cpu()
            _wait(query, lambda: len(latencies) >= LEFT_OUT + batches)
            busy_s = bench.cpu().since(before).total
        seen = len(latencies)
        before, began = bench.cpu(), time.monotonic()
        time.sleep(batches)
        idle_s = bench.cpu().since(before).total / (time.monotonic() - began)
    finally:
        query.stop()
    found = sorted(latency for batch in latencies[LEFT_OUT:seen] for latency in batch)
    working = [one.durationMs["triggerExecution"] for one in query.recentProgress if one.numInputRows]
    return Triggers(
        statistics.median(found),
        found[int(len(found) * 0.99)],
        statistics.median(working[LEFT_OUT:]),
        busy_s / batches * 1000,
        idle_s * 1000,
    )


@contextmanager
def _records_into(bench: _Bench, topic: str) -> Iterator[None]:
    ended = threading.Event()

    def write() -> None:
        with Client(bench.cluster.bootstrap_servers) as client, client.producer() as producer:
            number = 0
            while not ended.wait(EVERY_S):
                batch = encode_batch([(None, b"x" * 100, (), int(time.time() * 1000))])
                producer.send(topic, number % PARTITIONS, bytearray(batch))
                number += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        ended.set()
        writer.join()


def _wait(query: StreamingQuery, done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not done():
        assert query.isActive, query.exception()
        assert time.monotonic() < deadline, "the query has run no batch for two minutes"
        time.sleep(0.05)
