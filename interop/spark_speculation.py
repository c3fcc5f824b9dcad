"""Speculative attempts of Spark under exactlyOnce: a standalone master, two workers, and a task that is slow on one.

Spark starts a second attempt of the slow task on the other worker, so two attempts of it run at the same time:

    late     the first attempt comes to its first row only when the second one has written everything: it is refused,
             and the batch is committed with what the second one wrote
    slow     the first attempt has written rows when the second one begins: that one is refused, and the batch is
             committed with what the first one wrote
    lost     as slow, but then the first attempt fails: Spark repeats the task until it gives the job up. Nothing of
             the batch is visible, and it is written again without a slow task

In the end each row is there once for a consumer of committed records. Spark's event log says which attempts ran where.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jars
from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

import heirlog.spark
from heirlog.spark import java, session
from heirlog.spark.exactly_once import BatchAborted, Written
from heirlog.spark.sink import HeirlogWriter
from heirlog.spark.sink_options import SinkOptions, sink_options
from heirlog.spark.source import HeirlogDataSource

if TYPE_CHECKING:
    import pyarrow as pa

TOPIC, PARTITIONS = "once", 4
ROWS = 400
"""Of each batch."""
BATCH_ROWS = 10
"""A task gets its rows in several batches, so it can stop between two of them."""
SLOW_TASK = 0
PATIENCE_S = 120.0
RUN_S = 600
CASE, STEPS = "interopCase", "interopSteps"
"""Options of the sink."""
CASES = ("late", "slow", "lost")
NOT_SLOW = "not slow"
"""The case that writes the batch that was lost."""
REFUSED, WRITTEN, BEGUN = "refused", "written", "begun"
CONFIG = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.minTaskRuntime": "500ms",
    "spark.speculation.quantile": "0.5",
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(BATCH_ROWS),
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.eventLog.rolling.enabled": "false",
    "spark.ui.enabled": "false",
}


def check() -> str:
    import spark_cluster

    from heirlog.testing.cluster import Cluster

    jars.need("java", install="a JDK (on Debian: apt install openjdk-17-jdk-headless)")
    java.provide()
    with tempfile.TemporaryDirectory(prefix="heirlog-interop-") as place, Cluster(nodes=1, ledger=False) as cluster:
        folder = Path(place)
        _create_topic(cluster.bootstrap_servers)
        # on the host of the first attempt Spark starts no second one
        with spark_cluster.two_workers(folder, second_host="localhost") as master:
            archive = spark_cluster.archive_in(folder)
            arguments = [master, cluster.bootstrap_servers, str(folder), str(archive)]
            done = subprocess.run(
                [sys.executable, __file__, *arguments],
                env=spark_cluster.variables(folder),
                capture_output=True,
                text=True,
                timeout=RUN_S,
            )
        assert done.returncode == 0, f"{done.stdout[-1000:]}\n{done.stderr[-4000:]}"
        return _judged(folder, cluster.bootstrap_servers, json.loads(done.stdout.splitlines()[-1]))


def _judged(folder: Path, servers: str, errors: dict[str, str]) -> str:
    """errors: what the writes that failed said."""
    assert list(errors) == ["lost"] and "has written in this batch before" in errors["lost"], errors
    (log,) = (folder / "events").iterdir()
    attempts = _attempts(log)
    for case in CASES:
        first, *others = attempts[case]
        speculative = [each for each in others if each.is_speculative]
        assert speculative, f"{case}: Spark started no speculative attempt: {attempts[case]}"
        assert {each.executor for each in speculative} != {first.executor}, f"{case}: {attempts[case]}"
        succeeded = [each.number for each in attempts[case] if each.succeeded]
        assert succeeded == {"late": [speculative[0].number], "slow": [first.number], "lost": []}[case], (
            f"{case}: {attempts[case]}"
        )
    expected = sorted(f"{case}-{number}" for case in CASES for number in range(ROWS))
    committed = _values(servers, "read_committed")
    assert committed == expected, f"{len(committed)} rows for {len(expected)}, {len(set(committed))} of them different"
    aborted = len(_values(servers, "read_uncommitted")) - len(committed)
    assert aborted > 0, "the batch that was given up had written nothing"
    counts = ", ".join(f"{case} {len(attempts[case])}" for case in CASES)
    return f"attempts of the slow task: {counts}; {len(committed)} rows once, {aborted} aborted"


@dataclass(frozen=True)
class Attempt:
    """Of the slow task."""

    number: int
    executor: str
    is_speculative: bool
    succeeded: bool


def _attempts(log: Path) -> dict[str, list[Attempt]]:
    """By case, in the order of their numbers, from Spark's event log."""
    cases: dict[int, str] = {}
    found: dict[str, list[Attempt]] = {}
    for line in log.read_text().splitlines():
        event = json.loads(line)
        if event["Event"] == "SparkListenerJobStart":
            # the last stage writes, those before it arrange the rows
            cases[max(event["Stage IDs"])] = event["Properties"].get("spark.job.description", "")
        elif event["Event"] == "SparkListenerTaskEnd" and event["Task Info"]["Index"] == SLOW_TASK:
            case, info = cases.get(event["Stage ID"], ""), event["Task Info"]
            if case in CASES and event["Task Type"] == "ResultTask":
                attempt = Attempt(
                    info["Attempt"],
                    info["Executor ID"],
                    info["Speculative"],
                    event["Task End Reason"]["Reason"] == "Success",
                )
                found.setdefault(case, []).append(attempt)
    return {case: sorted(attempts, key=lambda each: each.number) for case, attempts in found.items()}


def _create_topic(servers: str) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(30)


def _values(servers: str, isolation: str) -> list[str]:
    """Sorted."""
    from confluent_kafka import Consumer, KafkaError, TopicPartition

    settings = {"bootstrap.servers": servers, "group.id": "reader", "isolation.level": isolation}
    consumer = Consumer({**settings, "enable.auto.commit": False, "enable.partition.eof": True})
    try:
        consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in range(PARTITIONS)])
        values, ended = [], set[int]()
        while len(ended) < PARTITIONS:
            message = consumer.poll(PATIENCE_S)
            assert message is not None, f"partitions {sorted(ended)} ended, and nothing came"
            error = message.error()
            assert error is None or error.code() == KafkaError._PARTITION_EOF, error
            if error is None:
                values.append((message.value() or b"").decode())
            else:
                ended.add(message.partition())
        return sorted(values)
    finally:
        consumer.close()


# the program that writes, and what its workers run


class Steps:
    """Of the attempts of a case, which are in processes of their own: files in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def note(self, step: str) -> None:
        (self._folder / step).touch()

    def wait_for(self, step: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not (self._folder / step).exists():
            assert time.monotonic() < deadline, f"no attempt came to the step '{step}'"
            time.sleep(0.02)


class PausedWriter(HeirlogWriter):
    def __init__(self, case: str, steps: Path, options: SinkOptions, schema: StructType) -> None:
        super().__init__(options, schema)
        self._case = case
        self._steps = steps

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        context = TaskContext.get()
        assert context is not None
        if self._case == NOT_SLOW or context.partitionId() != SLOW_TASK:
            return super().write(iterator)
        steps, is_first = Steps(self._steps), context.attemptNumber() == 0
        if self._case == "late":
            return self._late(steps, iterator) if is_first else self._early(steps, iterator)
        return self._slow(steps, iterator) if is_first else self._refused(steps, iterator)

    def _late(self, steps: Steps, iterator: Iterator[pa.RecordBatch]) -> Written:
        steps.wait_for(WRITTEN)
        try:
            return super().write(iterator)
        except BatchAborted:
            steps.note(REFUSED)
            raise

    def _early(self, steps: Steps, iterator: Iterator[pa.RecordBatch]) -> Written:
        written = super().write(iterator)
        steps.note(WRITTEN)
        # Spark ends the other attempt as soon as this one has ended
        steps.wait_for(REFUSED)
        return written

    def _slow(self, steps: Steps, iterator: Iterator[pa.RecordBatch]) -> Written:
        def batches() -> Iterator[pa.RecordBatch]:
            yield next(iterator)
            steps.note(BEGUN)
            steps.wait_for(REFUSED)
            if self._case == "lost":
                raise RuntimeError("the slow task is lost")
            yield from iterator

        written = super().write(batches())
        steps.note(WRITTEN)
        return written

    def _refused(self, steps: Steps, iterator: Iterator[pa.RecordBatch]) -> Written:
        steps.wait_for(BEGUN)
        try:
            return super().write(iterator)
        except BatchAborted:
            steps.note(REFUSED)
            if self._case == "slow":
                # or Spark might repeat this one until it gives the job up
                steps.wait_for(WRITTEN)
            raise


class PausedSource(HeirlogDataSource):
    def writer(self, schema: StructType, overwrite: bool) -> HeirlogWriter:
        options = dict(self.options)
        case, steps = options.pop(CASE.lower()), Path(options.pop(STEPS.lower()))
        return PausedWriter(case, steps, sink_options(options), schema)


def main(master: str, servers: str, place: str, archive: str) -> None:
    """Write each case; print as JSON what those that failed said."""
    import spark_cluster

    folder = Path(place)
    (folder / "events").mkdir()
    config = {
        **CONFIG,
        **spark_cluster.BOTH_WORKERS,
        "spark.pyspark.python": spark_cluster.PYTHON,
        "spark.executor.memory": "512m",
        "spark.submit.pyFiles": archive,
        "spark.eventLog.dir": (folder / "events").as_uri(),
    }
    spark = session.start(master, config, app_name="speculation")
    spark.dataSource.register(PausedSource)
    errors: dict[str, str] = {}
    for case in (*CASES, NOT_SLOW):
        try:
            _write(spark, servers, case, folder / f"steps-{case}")
        except Exception as error:  # the check judges it
            errors[case] = str(error)
    spark.stop()
    print(json.dumps(errors))


def _write(spark: SparkSession, servers: str, case: str, steps: Path) -> None:
    steps.mkdir()
    rows = spark.range(ROWS).selectExpr(f"concat('{'lost' if case == NOT_SLOW else case}-', id) AS value")
    options: dict[str, Any] = {
        "kafka.bootstrap.servers": servers,
        "topic": TOPIC,
        "exactlyOnce": "true",
        "kafka.transactional.id": "speculation",
    }
    arranged = heirlog.spark.by_partition(rows, **options)
    spark.sparkContext.setJobDescription(case)
    own = {CASE: case, STEPS: str(steps)}
    arranged.write.format("heirlog").mode("append").options(**options, **own).save()


if __name__ == "__main__":
    main(*sys.argv[1:])
