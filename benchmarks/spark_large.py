"""A topic of 5 GB through Spark: the memory of its workers, what they write to disk, and tasks of equal bytes.

    partition 0    2.5 GB    values of 100 B, then of 10 KiB, so that offsets say nothing about bytes
    partition 1    1.25 GB   values of 1 KiB
    partition 2    0.9 GB    values of 10 KiB
    partition 3    0.35 GB   values of 100 B

Each setting reads all columns of all of it into `noop`, with two workers at a time. The kernel keeps the highest
resident memory of a process; it is set back before each setting, so that a setting has a peak of its own. The bytes of
a task are those of the batches between its offsets.
"""

from __future__ import annotations

import bisect
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import psutil

from benchmarks import load
from benchmarks.gauges import MIB, peak_memory_bytes
from heirlog.blocking import Client
from heirlog.local.cluster import Cluster
from heirlog.protocol.batch import encode_batch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOPIC = "large"
SHAPES = {0: ((100, 1.25e9), (10_240, 1.25e9)), 1: ((1024, 1.25e9),), 2: ((10_240, 0.9e9),), 3: ((100, 0.35e9),)}
"""Partition -> value bytes and bytes together, in this order."""
BATCH_BYTES = 256 * 1024
DISTINCT = 64
"""Batches of one kind, sent in turns."""
SAMPLE_S = 0.1


class Setting(NamedTuple):
    options: dict[str, str]
    is_stream: bool = False

    def __str__(self) -> str:
        named = ", ".join(f"`{name}={value}`" for name, value in self.options.items()) or "no setting"
        return f"a stream: {named}" if self.is_stream else named


SETTINGS = (
    Setting({}),
    Setting({"maxBytesPerPartition": "64000000"}),
    Setting({"maxBytesPerPartition": "512000000", "minPartitions": "100"}),
    Setting({"minPartitions": "40"}),
    Setting({"maxRecordsPerPartition": "100000"}),
    Setting({"maxBytesPerPartition": "64000000"}, is_stream=True),
)


@dataclass
class _Layout:
    """Where the batches of a partition begin, and how many bytes are before each."""

    offsets: list[int] = field(default_factory=lambda: [0])
    sums: list[int] = field(default_factory=lambda: [0])

    def add(self, records: int, size: int) -> None:
        self.offsets.append(self.offsets[-1] + records)
        self.sums.append(self.sums[-1] + size)

    def before(self, offset: int) -> float:
        at = min(bisect.bisect_right(self.offsets, offset), len(self.offsets) - 1)
        first, end = self.offsets[at - 1], self.offsets[at]
        return self.sums[at - 1] + (self.sums[at] - self.sums[at - 1]) * (offset - first) / (end - first)


def _fill(cluster: Cluster, scale: float) -> dict[int, _Layout]:
    load.create(cluster, TOPIC, 1, len(SHAPES))
    layouts = {partition: _Layout() for partition in SHAPES}
    now_ms = int(time.time() * 1000)
    with Client(cluster.bootstrap_servers) as client, client.producer() as producer:
        for partition, shapes in SHAPES.items():
            for value_bytes, wanted in shapes:
                records = BATCH_BYTES // value_bytes
                distinct = [
                    encode_batch([(None, os.urandom(value_bytes), (), now_ms) for _ in range(records)])
                    for _ in range(DISTINCT)
                ]
                for number in range(int(wanted * scale) // len(distinct[0])):
                    batch = distinct[number % DISTINCT]
                    producer.send(TOPIC, partition, bytearray(batch))
                    layouts[partition].add(records, len(batch))
    return layouts


class _Watch(threading.Thread):
    """The highest memory of each Python worker and of the JVM, and the most that is in Spark's folder for spills."""

    def __init__(self, jvm: psutil.Process, spills: Path) -> None:
        super().__init__(daemon=True)
        self._jvm, self._spills = jvm, spills
        self._end = threading.Event()
        self.workers: dict[int, int] = {}
        self.jvm_bytes = 0
        self.spilled = 0
        for process in (jvm, *jvm.children(recursive=True)):
            # proc(5): 5 sets the peak back
            Path(f"/proc/{process.pid}/clear_refs").write_text("5")

    def run(self) -> None:
        while not self._end.wait(SAMPLE_S):
            self._look()

    def _look(self) -> None:
        self.jvm_bytes = peak_memory_bytes(self._jvm.pid)
        for process in self._jvm.children(recursive=True):
            try:
                if "python" in process.name():
                    self.workers[process.pid] = peak_memory_bytes(process.pid)
            except (psutil.NoSuchProcess, OSError, RuntimeError):
                # it ends, and has no memory any more
                continue
        files = [file for file in self._spills.rglob("*") if file.is_file() and file.suffix != ".zip"]
        self.spilled = max(self.spilled, sum(file.stat().st_size for file in files if file.exists()))

    def stop(self) -> None:
        self._end.set()
        self.join()


@contextmanager
def _session(spills: Path) -> Iterator[SparkSession]:
    from heirlog.spark import session

    spark = session.start("local[2]", {"spark.local.dir": str(spills)}, "heirlog bench")
    try:
        yield spark
    finally:
        spark.stop()


def report(scale: float) -> None:
    with (
        Cluster(nodes=1, combined=True, ledger=False) as cluster,
        tempfile.TemporaryDirectory(prefix="heirlog-bench-spills-") as spills,
    ):
        layouts = _fill(cluster, scale)
        total = sum(layout.sums[-1] for layout in layouts.values())
        records = sum(layout.offsets[-1] for layout in layouts.values())
        print(f"\nA topic of {total / 1e9:.2f} GB, {records:,} records, {len(layouts)} partitions\n")
        print(
            "| read with | tasks | MB of a task: least, median, most | worker, peak | JVM, peak | on disk | seconds |"
        )
        print("|---|---|---|---|---|---|---|")
        options = {"kafka.bootstrap.servers": cluster.bootstrap_servers, "subscribe": TOPIC}
        with _session(Path(spills)) as spark:
            for setting in SETTINGS:
                _row(spark, Path(spills), layouts, {**options, **setting.options}, setting)


def _row(
    spark: SparkSession, spills: Path, layouts: dict[int, _Layout], options: dict[str, str], setting: Setting
) -> None:
    sizes = _sizes(layouts, options)
    gateway: Any = spark.sparkContext._gateway
    watch = _Watch(psutil.Process(gateway.proc.pid), spills)
    watch.start()
    began = time.monotonic()
    if setting.is_stream:
        _stream(spark, options)
    else:
        spark.read.format("heirlog").options(**options).load().write.format("noop").mode("overwrite").save()
    seconds = time.monotonic() - began
    watch.stop()
    print(
        f"| {setting} | {len(sizes)} "
        f"| {', '.join(f'{size / 1e6:.1f}' for size in (sizes[0], statistics.median(sizes), sizes[-1]))} "
        f"| {max(watch.workers.values()) / MIB:.0f} MiB | {watch.jvm_bytes / MIB:.0f} MiB "
        f"| {watch.spilled} B | {seconds:.1f} |",
        flush=True,
    )


def _stream(spark: SparkSession, options: dict[str, str]) -> None:
    with tempfile.TemporaryDirectory(prefix="heirlog-bench-checkpoint-") as checkpoint:
        rows = spark.readStream.format("heirlog").options(**options, startingOffsets="earliest").load()
        query = rows.writeStream.format("noop").option("checkpointLocation", checkpoint).trigger(availableNow=True)
        query.start().awaitTermination()


def _sizes(layouts: dict[int, _Layout], options: dict[str, str]) -> list[float]:
    """Bytes of each task as a batch plans them, the smallest first."""
    from heirlog.spark.options import read_options
    from heirlog.spark.source import HeirlogReader, spark_schema

    wanted = read_options(options, streaming=False)
    tasks = [one.value for one in HeirlogReader(wanted, spark_schema(wanted.columns)).partitions()]
    return sorted(layouts[one.partition].before(one.stop) - layouts[one.partition].before(one.start) for one in tasks)
