"""Our Spark source and sink beside Spark's own Kafka connector: one session, one broker, the same topics, in turns.

Each workload runs once unmeasured for each side (the JVM compiles, numba's kernels are loaded) and then in rounds, ours
and theirs alternating, so that whatever else the machine does meets both; a rate is the median of the rounds, the ratio
that of the rounds' ratios. In the rows of streams a third source takes part, which needs no broker (`spark_memory.py`):
what it reaches is what Spark allows a source written in Python. The jars of the connector are looked for where `make
interop` leaves them. Without them, or without Java, the report says so.

The CPU time of a round is told beside it, ours apart: Spark's JVM, the Python workers (fetching, decoding, handing
over), and the broker. On a machine whose cores they all share, whoever takes the most is the bottleneck; and where
something else takes a part of these cores, the ratio of CPU times still says what the ratio of rates would.
"""

from __future__ import annotations

import itertools
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from operator import truediv
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import psutil

from benchmarks import load, spark_triggers
from benchmarks.gauges import Cost, everything
from heirlog.blocking import Client
from heirlog.local.cluster import Cluster
from heirlog.protocol.batch import encode_batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

JARS = Path(".cache/interop/spark-jars")
CONNECTOR = ("spark-sql-kafka-0-10_", "spark-token-provider-kafka-0-10_", "kafka-clients-", "commons-pool2-")
PARTITIONS = 4
BATCH_BYTES = 64 * 1024
DISTINCT_BYTES = 32 * 1024 * 1024
"""Values repeat after so much: far beyond what a Parquet dictionary holds."""
MICRO_BATCHES = 10
OURS, THEIRS = "heirlog", "kafka"
BOUND = "rows-from-memory"


class Workload(NamedTuple):
    title: str
    run: Callable[[_Bench, str], float | None]
    """Of one side, by the name of its format; the seconds that count where these are not all."""
    goals: dict[int, float]
    """Value bytes -> at least this multiple of the connector's rows/s."""
    has_bound: bool = False
    """Whether a source without a broker takes part: what it reaches is the most that ours could."""


@dataclass(frozen=True, slots=True)
class Cpu:
    """Seconds so far of Spark's JVM, of all its Python processes, and of the broker."""

    jvm: float
    python: float
    broker: float

    @property
    def total(self) -> float:
        return self.jvm + self.python + self.broker

    def since(self, before: Cpu) -> Cpu:
        return Cpu(self.jvm - before.jvm, self.python - before.python, self.broker - before.broker)


class _Bench:
    """One session, one cluster, and the topic whose turn it is."""

    def __init__(self, spark: SparkSession, cluster: Cluster, folder: Path) -> None:
        self.spark = spark
        self.cluster = cluster
        self.folder = folder
        self.topic = ""
        self.records = 0
        self.value_bytes = 0
        self._numbers = itertools.count()

    @property
    def options(self) -> dict[str, str]:
        return {"kafka.bootstrap.servers": self.cluster.bootstrap_servers}

    def fill(self, value_bytes: int, records: int) -> None:
        self.topic, self.value_bytes = self.new_topic(), value_bytes
        per_batch = BATCH_BYTES // value_bytes
        now_ms = int(time.time() * 1000)
        distinct = [
            encode_batch([(None, os.urandom(value_bytes), (), now_ms) for _ in range(per_batch)])
            for _ in range(DISTINCT_BYTES // BATCH_BYTES)
        ]
        batches = records // per_batch
        with Client(self.cluster.bootstrap_servers) as client, client.producer() as producer:
            for number in range(batches):
                producer.send(self.topic, number % PARTITIONS, bytearray(distinct[number % len(distinct)]))
        self.records = batches * per_batch

    def new_topic(self) -> str:
        topic = f"spark-{next(self._numbers)}"
        load.create(self.cluster, topic, 1, PARTITIONS)
        return topic

    def rows(self, kind: str) -> DataFrame:
        reader = self.spark.read.format(kind).options(**self.options, subscribe=self.topic)
        return reader.load()

    def place(self) -> str:
        return str(self.folder / str(next(self._numbers)))

    def cpu(self) -> Cpu:
        gateway: Any = self.spark.sparkContext._gateway
        jvm = psutil.Process(gateway.proc.pid)
        times = jvm.cpu_times()
        python = times.children_user + times.children_system
        for process in (*jvm.children(recursive=True), *_planners()):
            try:
                python += sum(process.cpu_times()[:4])
            except psutil.NoSuchProcess:
                continue
        return Cpu(times.user + times.system, python, Cost.of(everything(self.cluster)).cpu_s)


def _planners() -> list[psutil.Process]:
    """The process from which planners are forked, and those."""
    servers = [child for child in psutil.Process().children() if "heirlog.spark.planners" in child.cmdline()]
    return [process for server in servers for process in (server, *server.children(recursive=True))]


def _count(bench: _Bench, kind: str) -> None:
    counted = bench.rows(kind).count()
    assert counted == bench.records, f"{kind} counted {counted} of {bench.records}"


def _noop(bench: _Bench, kind: str) -> None:
    bench.rows(kind).write.format("noop").mode("overwrite").save()


def _parquet(bench: _Bench, kind: str) -> None:
    place = bench.place()
    bench.rows(kind).write.parquet(place)
    shutil.rmtree(place)


def _stream(bench: _Bench, kind: str) -> None:
    _micro_batches(bench, kind)


def _micro_batches(bench: _Bench, kind: str) -> float:
    """Seconds in batches: without the start of the query, for which Spark starts Python processes."""
    # both sources round the share of a partition down, so that without a few more there is a batch of the rest
    per_batch = -(-bench.records // MICRO_BATCHES) + MICRO_BATCHES * PARTITIONS
    reader = bench.spark.readStream.format(kind)
    if kind == BOUND:
        reader = reader.options(records=bench.records, valueBytes=bench.value_bytes)
    else:
        reader = reader.options(**bench.options, subscribe=bench.topic).option("startingOffsets", "earliest")
    rows = reader.option("maxOffsetsPerTrigger", per_batch).load()
    query = rows.writeStream.format("noop").trigger(availableNow=True).option("checkpointLocation", bench.place())
    started = query.start()
    started.awaitTermination()
    read = sum(progress.numInputRows for progress in started.recentProgress)
    assert read == bench.records, f"{kind} read {read} of {bench.records}"
    return sum(progress.durationMs["triggerExecution"] for progress in started.recentProgress) / 1000


def _write(bench: _Bench, kind: str) -> None:
    value = f"cast(rpad(cast(id as string), {bench.value_bytes}, 'x') as binary) value"
    rows = bench.spark.range(0, bench.records, 1, PARTITIONS).selectExpr(value)
    target = rows.write.format(kind).mode("append").options(**bench.options)
    target.option("topic", bench.new_topic()).save()


WORKLOADS = (
    Workload("count", _count, {100: 2.5}),
    Workload("full rows to noop", _noop, {100: 2.5, 1024: 2.0}),
    Workload("Parquet", _parquet, {100: 1.7, 1024: 1.5}),
    Workload(f"stream, availableNow, {MICRO_BATCHES} batches", _stream, {100: 2.0}, has_bound=True),
    Workload("the same, its start left out", _micro_batches, {}, has_bound=True),
    Workload("write", _write, {100: 1.5}),
)
RECORDS = {100: 3_000_000, 1024: 600_000}
"""Value bytes -> records of a topic."""


def connector(jars: Path = JARS) -> list[Path]:
    """The jars of Spark's own connector; empty where one is missing."""
    found = [sorted(jars.glob(f"{name}*.jar")) for name in CONNECTOR]
    return [files[-1] for files in found] if all(found) else []


def report(rounds: int, scale: float, jars: Path = JARS) -> None:
    """Print the table, or why there is none."""
    try:
        from heirlog.spark.java import JavaNotFoundError
    except ImportError as error:
        print(f"\nSpark: not measured: {error}; pip install '.[spark]' in a clone")
        return
    theirs = connector(jars)
    if not theirs:
        print(f"\nSpark's own connector is not in {jars} (`make interop` fetches it): only ours is measured.")
    try:
        with (
            _session(theirs) as spark,
            Cluster(nodes=1, combined=True, ledger=False) as cluster,
            tempfile.TemporaryDirectory(prefix="heirlog-bench-spark-") as folder,
        ):
            _measure(_Bench(spark, cluster, Path(folder)), rounds, scale, bool(theirs))
    except JavaNotFoundError as error:
        print(f"\nSpark: not measured: {error}")


@contextmanager
def _session(jars: list[Path]) -> Iterator[SparkSession]:
    from heirlog.spark import session

    conf = {"spark.jars": ",".join(map(str, jars))} if jars else {}
    spark = session.start("local[2]", conf, "heirlog bench")
    # it needs PySpark
    from benchmarks.spark_memory import MemoryDataSource

    spark.dataSource.register(MemoryDataSource)
    try:
        yield spark
    finally:
        spark.stop()


def _measure(bench: _Bench, rounds: int, scale: float, has_theirs: bool) -> None:
    kinds = (THEIRS, OURS) if has_theirs else (OURS,)
    print(
        "\n| Spark | connector | heirlog | ratio | goal | CPU: connector | heirlog: JVM, Python, broker | bottleneck |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for value_bytes, records in RECORDS.items():
        bench.fill(value_bytes, int(records * scale))
        for workload in WORKLOADS:
            sides = (*kinds, BOUND) if workload.has_bound else kinds
            seconds: dict[str, list[float]] = {kind: [] for kind in sides}
            costs: dict[str, list[Cpu]] = {kind: [] for kind in sides}
            for number in range(rounds + 1):
                for kind in sides:
                    before, began = bench.cpu(), time.monotonic()
                    took = workload.run(bench, kind) or time.monotonic() - began
                    if number:
                        seconds[kind].append(took)
                        costs[kind].append(bench.cpu().since(before))
            for kind in sides:
                if kind != THEIRS:
                    _row(bench, workload, kind, seconds, costs)
    spark_triggers.report(bench, kinds, max(3, int(10 * scale)))


def _row(
    bench: _Bench,
    workload: Workload,
    side: str,
    seconds: dict[str, list[float]],
    costs: dict[str, list[Cpu]],
) -> None:
    """side: ours, or the source that bounds it."""

    def speed(kind: str) -> str:
        if kind not in seconds:
            return "-"
        rate = bench.records / statistics.median(seconds[kind])
        return f"{rate:,.0f} rows/s, {rate * bench.value_bytes / 1e6:,.0f} MB/s"

    # round by round: what else the machine does meets two neighbours alike, and not all rounds
    ratio = statistics.median(map(truediv, seconds[THEIRS], seconds[side])) if THEIRS in seconds else 0.0
    goal = workload.goals.get(bench.value_bytes) if side == OURS else None
    parts = {
        "Spark's JVM": statistics.median(cost.jvm for cost in costs[side]),
        "Python workers": statistics.median(cost.python for cost in costs[side]),
        "broker": statistics.median(cost.broker for cost in costs[side]),
    }
    title = workload.title if side == OURS else f"{workload.title}: {side}"
    theirs = statistics.median(cost.total for cost in costs[THEIRS]) if THEIRS in costs else 0.0
    print(
        f"| {title}, {_size(bench.value_bytes)} | {speed(THEIRS)} | {speed(side)} "
        f"| {f'{ratio:.2f}' if ratio else '-'} | {f'≥ {goal}' if goal else ''} "
        f"| {f'{theirs:.1f} s' if theirs else '-'} "
        f"| {', '.join(f'{cpu:.1f} s' for cpu in parts.values())} | {max(parts, key=lambda name: parts[name])} |",
        flush=True,
    )


def _size(value_bytes: int) -> str:
    return f"{value_bytes // 1024} KiB" if value_bytes >= 1024 else f"{value_bytes} B"
