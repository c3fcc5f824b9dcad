"""How fast `heirlog audit` reads logs, next to `kafka-dump-log --deep-iteration` on the same files.

One broker's directory of several segments, written for the purpose. Both rates are bytes per second of CPU time, of all
processes, since other work shares the machine: MB/s per core. An audit costs a number of seconds however small the logs
are (shown apart), and then so much for each byte: the rate is that of the bytes by which a large audit exceeds one of a
single segment, in a session that has run before. The tool reads one segment.

The jars of Apache Kafka are looked for where `make interop` leaves them.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import psutil

from heirlog.protocol.batch import encode_batch, read_header, rewrite
from heirlog.protocol.types import Uuid, uuid_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JARS = Path(".cache/interop/jars")
SEGMENT_BYTES = 128 << 20
GOAL = 20
MB = 1_000_000


class Shape(NamedTuple):
    value_bytes: int
    batch_bytes: int
    segments: int

    def __str__(self) -> str:
        return f"{self.value_bytes} B records in batches of {self.batch_bytes // 1024} KiB"


SHAPES = (Shape(1_024, 64 << 10, 24), Shape(100, 16 << 10, 24))


def report(rounds: int, scale: float) -> None:
    """Prints a table; without Spark or Java a sentence that says so."""
    try:
        from heirlog.spark import session
    except ModuleNotFoundError as error:
        print(f"\naudit: skipped: {error.name} is not installed")
        return
    if shutil.which("java") is None:
        print("\naudit: skipped: there is no Java")
        return
    began = cpu_s()
    spark = session.start("local[2]", app_name="heirlog bench")
    print(f"\nAudit: Spark starts in {cpu_s() - began:.1f} s of CPU.\n")
    print("| audit | MB/s per core | CPU s at least | kafka-dump-log --deep-iteration | ratio |\n|---|---|---|---|---|")
    try:
        for shape in SHAPES:
            row(spark, shape, max(2, int(shape.segments * scale)), rounds)
    finally:
        spark.stop()


def row(spark: SparkSession, shape: Shape, segments: int, rounds: int) -> None:
    with written(shape, 1) as small, written(shape, segments) as large:
        audited(spark, small)
        pairs = [(audited(spark, small), audited(spark, large)) for _ in range(rounds)]
        rates = [(more[0] - less[0]) / MB / max(more[1] - less[1], 0.01) for less, more in pairs]
        ours, fixed_s = statistics.median(rates), statistics.median(less[1] for less, _ in pairs)
        theirs = dumped(small)
    ratio = "no jars of Apache Kafka" if theirs is None else f"{ours / theirs:.0f} (goal: {GOAL})"
    shown = "-" if theirs is None else f"{theirs:,.1f}"
    print(f"| {shape} | {ours:,.0f} | {fixed_s:.1f} | {shown} | {ratio} |", flush=True)


def audited(spark: SparkSession, directory: Path) -> tuple[int, float]:
    """Bytes read, and seconds of CPU."""
    from heirlog.spark.audit.audit import run
    from heirlog.spark.audit.inventory import take_inventory

    out = directory.parent / "out"
    out.mkdir(exist_ok=True)
    before = cpu_s()
    found = run(spark, take_inventory([str(directory)]), out)
    assert not found.findings, found.findings
    return found.bytes, cpu_s() - before


def cpu_s() -> float:
    """Of this process and all that it has started, also those that have ended."""
    me = psutil.Process()
    own = os.times()
    total = own.user + own.system + own.children_user + own.children_system
    for child in me.children(recursive=True):
        try:
            times = child.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


@contextmanager
def written(shape: Shape, segments: int) -> Iterator[Path]:
    """A log directory of one partition, as a clean stop leaves it."""
    with tempfile.TemporaryDirectory(prefix="heirlog-bench-") as folder:
        directory = Path(folder) / "log"
        log = directory / "t-0"
        log.mkdir(parents=True)
        (directory / "meta.properties").write_text(
            f"version=1\ncluster.id=c\nnode.id=1\ndirectory.id={uuid_text(Uuid(bytes(range(16))))}\n"
        )
        records = [(None, os.urandom(shape.value_bytes), (), 1) for _ in range(shape.batch_bytes // shape.value_bytes)]
        batch = encode_batch(records)
        count = read_header(batch).record_count
        offset = 0
        for _ in range(segments):
            with open(log / f"{offset:020d}.log", "wb") as file:
                while file.tell() < SEGMENT_BYTES:
                    rewrite(batch, 0, offset, 0)
                    file.write(batch)
                    offset += count
        yield directory


def dumped(directory: Path) -> float | None:
    """MB/s of CPU time of Apache Kafka's tool on the first segment; None: its jars are not there."""
    if not JARS.is_dir():
        return None
    segment = min(directory.glob("t-0/*.log"))
    command = ["java", "-Xmx512m", "-cp", f"{JARS}/*", "kafka.tools.DumpLogSegments", "--deep-iteration", "--files"]
    before = os.times()
    subprocess.run([*command, str(segment)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    after = os.times()
    spent_s = after.children_user + after.children_system - before.children_user - before.children_system
    return segment.stat().st_size / MB / spent_s
