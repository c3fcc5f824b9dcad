"""The Spark session's part of an audit: what is done to each segment and each partition, spread over the workers.

    units -> ScanUnits -> table segments                                    one row per segment
    its buckets -> per partition and bucket: equal in all replicas?         one row per 4096 offsets and replica
    buckets that differ, the first of each partition -> read_batches -> Compare -> first differences
    its producers' runs, in order -> breaks between two of them

The driver reads the row of each segment without buckets and producers, and otherwise only what is wrong.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it has no types
from pyarrow import dataset
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from heirlog.spark.audit.divergence import Difference
from heirlog.spark.audit.producer_runs import Break, Run, broken
from heirlog.spark.audit.replica_log import OffsetRange
from heirlog.spark.audit.schemas import SEGMENTS
from heirlog.spark.audit.segment_scan import BUCKET_BITS, Unit
from heirlog.spark.audit.tasks import BATCHES, DIFFERENCES, SCANNED, Compare, ScanUnits, read_batches

BUCKETS_COMPARED = 64
"""Of each partition, batch by batch: the first ones whose digests differ, and as many in the part where the log cleaner
has been. They also differ where logs start and end.
"""
SPARK_ERRORS = (PySparkException, Py4JError, ConnectionError)
"""What a call of Spark raises, also when its Java process has ended."""
_SUMMARY = [name for name in SEGMENTS.names if name not in ("buckets", "producers")]
_PARTITIONS = "spark.sql.shuffle.partitions"
"""Of the session: on this machine the number of cores."""
_ROWS_AT_A_TIME = 1024
_TASKS_PER_PARTITION = 4
"""Segments have different sizes, and a core that is done takes the next task."""


class LogToCompare(NamedTuple):
    """A log that takes part in a comparison."""

    log: int
    partition: int
    """Number of the partition: its replicas have the same one."""
    compared_from: int
    """Below this offset the log cleaner may have changed replicas differently; the same for all replicas."""
    rank: int
    """By the metadata, see `PartitionView.rank`."""
    ranges: list[OffsetRange]


class Job:
    def __init__(self, spark: SparkSession, out: Path) -> None:
        self._spark = spark
        self._segments_path = str(out / "segments")
        self._units = 0

    def scan(self, units: Sequence[Unit]) -> None:
        """Write the table `segments`. Raises OSError."""
        self._units = len(units)
        os.makedirs(self._segments_path, exist_ok=True)
        table = pa.table({"unit": pa.array([json.dumps(unit) for unit in units], pa.string())})
        tasks = max(1, min(len(units), _TASKS_PER_PARTITION * int(self._spark.conf.get(_PARTITIONS) or 1)))
        scanned = self._spark.createDataFrame(table).repartition(tasks)
        scanned.mapInArrow(ScanUnits(self._segments_path), from_arrow_schema(SCANNED)).collect()

    @property
    def _segments(self) -> DataFrame:
        return self._spark.read.schema(from_arrow_schema(SEGMENTS)).parquet(self._segments_path)

    def segments(self) -> Iterator[dict[str, Any]]:
        """The rows without buckets and producers, by log and base offset. Raises OSError."""
        files = dataset.dataset(self._segments_path, SEGMENTS, format="parquet")
        rows = files.to_table(columns=_SUMMARY).sort_by([("log", "ascending"), ("base_offset", "ascending")])
        if rows.num_rows != self._units:
            raise OSError(
                f"{self._segments_path} has {rows.num_rows} segments of {self._units}: the workers must be able to "
                "write to --out under the same path as this machine"
            )
        for batch in rows.to_batches(max_chunksize=_ROWS_AT_A_TIME):
            yield from batch.to_pylist()

    def differences(self, logs: Sequence[LogToCompare]) -> list[Difference]:
        """The first difference of each log from the reference of its partition."""
        if len({log.partition for log in logs}) == len(logs):
            return []
        buckets = self._buckets(logs)
        suspicious = (
            buckets.groupBy("partition_number", "bucket", "is_cleaned")
            .agg(
                f.count("*").alias("held_by"),
                (f.min("batches") != f.max("batches")).alias("counts"),
                (f.min("digest") != f.max("digest")).alias("digests"),
            )
            .filter((f.col("held_by") > 1) & (f.col("counts") | f.col("digests")))
        )
        first = Window.partitionBy("partition_number", "is_cleaned").orderBy("bucket")
        chosen = suspicious.withColumn("rank", f.row_number().over(first)).filter(f.col("rank") <= BUCKETS_COMPARED)
        found = [(row.partition_number, row.bucket) for row in chosen.select("partition_number", "bucket").collect()]
        return self._compare(logs, found) if found else []

    def _logs(self, logs: Sequence[LogToCompare]) -> DataFrame:
        table = pa.table(
            {
                "log": pa.array([log.log for log in logs], pa.int64()),
                "partition_number": pa.array([log.partition for log in logs], pa.int64()),
                "compared_from": pa.array([log.compared_from for log in logs], pa.int64()),
            }
        )
        return f.broadcast(self._spark.createDataFrame(table))

    def _buckets(self, logs: Sequence[LogToCompare]) -> DataFrame:
        """One row per log and bucket, as a bucket may begin in one segment and end in the next."""
        parts = self._segments.select("log", f.explode("buckets").alias("each")).select("log", "each.*")
        return (
            parts.join(self._logs(logs), "log")
            .withColumn("is_cleaned", f.col("bucket") < f.shiftright("compared_from", BUCKET_BITS))
            .groupBy("partition_number", "bucket", "is_cleaned", "log")
            .agg(f.sum("batches").alias("batches"), f.bit_xor("digest").alias("digest"))
        )

    def _compare(self, logs: Sequence[LogToCompare], chosen: Sequence[tuple[int, int]]) -> list[Difference]:
        partitions = {partition for partition, _ in chosen}
        taking_part = [log for log in logs if log.partition in partitions]
        compare = Compare(
            {log.log: log.rank for log in taking_part},
            {log.log: [tuple(covered) for covered in log.ranges] for log in taking_part},
            {log.partition: log.compared_from for log in taking_part},
        )
        table = pa.table(
            {
                "partition_number": pa.array([partition for partition, _ in chosen], pa.int64()),
                "bucket": pa.array([bucket for _, bucket in chosen], pa.int64()),
            }
        )
        buckets = self._segments.select("log", "file", "base_offset", f.explode("buckets.bucket").alias("bucket"))
        wanted = (
            buckets.join(self._logs(logs), "log")
            .join(f.broadcast(self._spark.createDataFrame(table)), ["partition_number", "bucket"])
            .groupBy("partition_number", "log", "file", "base_offset", "compared_from")
            .agg(f.collect_list("bucket").alias("buckets"))
        )
        batches = wanted.mapInArrow(read_batches, from_arrow_schema(BATCHES))
        compared = batches.groupBy("partition_number").applyInArrow(
            _as_function(compare), from_arrow_schema(DIFFERENCES)
        )
        return [Difference(*(row[name] for name in Difference._fields)) for row in compared.collect()]

    def breaks(self, compared_from: Mapping[int, int]) -> list[Break]:
        """Breaks between consecutive runs of producers. compared_from: of each log; below it the cleaner has been."""
        runs = self._segments.select("log", f.explode("producers").alias("run")).select("log", "run.*")
        in_order = Window.partitionBy("log", "producer_id").orderBy("first_offset", "last_offset")
        names = Run._fields
        pairs = runs.withColumns({f"before_{name}": f.lag(name).over(in_order) for name in names})
        expected = (f.col("before_last_sequence").cast("long") + 1) % (1 << 31)
        joins = f.when(
            f.col("producer_epoch") == f.col("before_producer_epoch"), f.col("first_sequence") == expected
        ).otherwise((f.col("producer_epoch") > f.col("before_producer_epoch")) & (f.col("first_sequence") == 0))
        found = []
        for row in pairs.filter(f.col("before_producer_id").isNotNull() & ~joins).toLocalIterator():
            before = Run(*(row[f"before_{name}"] for name in names))
            after = Run(*(row[name] for name in names))
            wrong = broken(before, after)
            if wrong is not None and before.last_offset >= compared_from.get(row.log, 0):
                kind, sentence = wrong
                found.append(Break(row.log, kind, before.last_offset + 1, after.first_offset, sentence))
        return found


def _as_function(compare: Compare) -> Any:
    """Spark looks at the signature to see which arguments a function wants."""
    return lambda table: compare(table)
