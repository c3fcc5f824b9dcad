"""What Spark's workers run: Arrow batches in, Arrow batches out. They read segment files by their paths."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext

from heirlog.spark import worker
from heirlog.spark.audit.divergence import IDENTITY, Difference, as_rows, compare, read_buckets
from heirlog.spark.audit.schemas import SEGMENTS
from heirlog.spark.audit.segment_scan import SegmentScan, Unit
from heirlog.spark.audit.table_file import TableWriter

SCANNED = pa.schema([("segments", pa.int64())])
BATCHES = pa.schema(
    [
        ("partition_number", pa.int64()),
        ("log", pa.int64()),
        ("base_offset", pa.int64()),
        *((name, pa.int64()) for name in IDENTITY),
    ]
)
DIFFERENCES = pa.schema([(name, pa.int64()) for name in Difference._fields])


class ScanUnits(worker.SentToWorkers):
    """Column `unit`, a segment each → files of the table `segments`; the result says how many rows they have.

    Each task writes one file. Spark may run a task again, or twice at a time: the file gets its name once it is whole.
    Spark's own writer takes three times as long for each file, and for this many files that was half of an audit.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = TaskContext.get()
        assert task is not None
        name = f"part-{task.partitionId():05}.parquet"
        unfinished = Path(self._folder, f".{name}.{task.taskAttemptId()}")
        segments = 0
        try:
            with TableWriter(unfinished, SEGMENTS, chunk_rows=1) as table:
                for batch in batches:
                    for unit in batch.column("unit").to_pylist():
                        table.add(SegmentScan(Unit(*json.loads(unit))).run())
                        segments += 1
            os.replace(unfinished, Path(self._folder, name))
        finally:
            unfinished.unlink(missing_ok=True)
        worker.settle()
        yield pa.RecordBatch.from_pydict({"segments": [segments]}, schema=SCANNED)


def read_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Columns partition_number, log, file, base_offset, compared_from and buckets → a row per batch in the buckets."""
    for batch in batches:
        for row in batch.to_pylist():
            for found in read_buckets(row["file"], row["base_offset"], row["buckets"], row["compared_from"]):
                columns = as_rows(row["log"], found)
                columns["partition_number"] = [row["partition_number"]] * found.shape[1]
                yield pa.RecordBatch.from_pydict(columns, schema=BATCHES)
    worker.settle()


class Compare(worker.SentToWorkers):
    """For the batches of one partition (`applyInArrow`)."""

    def __init__(
        self,
        ranks: Mapping[int, int],
        ranges: Mapping[int, Sequence[Sequence[int]]],
        compared_from: Mapping[int, int],
    ) -> None:
        """ranks, ranges: of each log, see `compare`. compared_from: of each partition."""
        self._ranks = ranks
        self._ranges = ranges
        self._compared_from = compared_from

    def __call__(self, table: pa.Table) -> pa.Table:
        batches: dict[int, list[tuple[int, ...]]] = {}
        columns: list[list[Any]] = [table.column(name).to_pylist() for name in ("base_offset", *IDENTITY)]
        for log, *batch in zip(table.column("log").to_pylist(), *columns, strict=True):
            batches.setdefault(log, []).append(tuple(batch))
        partition = table.column("partition_number")[0].as_py()
        found = compare(self._ranks, batches, self._ranges, self._compared_from[partition])
        return pa.Table.from_pylist([each._asdict() for each in found], schema=DIFFERENCES)
