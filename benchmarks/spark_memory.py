"""A Spark source without a broker: the same rows as ours, from Arrow batches that a worker has in its memory.

What it costs is Spark's own part of a source written in Python: the start of the process that plans, triggers, tasks,
and rows made of Arrow columns. So its ratio to the connector is what ours could reach if it fetched and decoded records
in no time.
"""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from heirlog.spark import worker
from heirlog.spark.columns import PLAIN_COLUMNS
from heirlog.spark.source import spark_schema

NAME = "rows-from-memory"
PARTITIONS = 4
ROWS = 65_536
"""Of an Arrow batch, as ours has them."""


class MemoryDataSource(DataSource):
    """Options: records, valueBytes, maxOffsetsPerTrigger."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> StructType:
        return spark_schema(PLAIN_COLUMNS)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        names = ("records", "maxOffsetsPerTrigger", "valueBytes")
        return _StreamReader(*(int(self.options[name]) for name in names))


class _StreamReader(worker.SentToWorkers, DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, records: int, per_batch: int, value_bytes: int) -> None:
        self._records, self._per_batch, self._value_bytes = records, per_batch, value_bytes

    def initialOffset(self) -> dict[str, Any]:
        return {"at": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._per_batch)

    def prepareForTriggerAvailableNow(self) -> None:
        """The end is fixed as it is."""

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        return {"at": min(start["at"] + self._per_batch, self._records)}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        rows = end["at"] - start["at"]
        ends = [number * rows // PARTITIONS for number in range(PARTITIONS + 1)]
        return [InputPartition(end - begin) for begin, end in itertools.pairwise(ends)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        left = partition.value
        while left:
            batch = _prepared(self._value_bytes).slice(0, left)
            left -= batch.num_rows
            yield batch
        worker.settle()


@functools.cache
def _prepared(value_bytes: int) -> pa.RecordBatch:
    columns = {
        "key": [None] * ROWS,
        "value": [os.urandom(value_bytes) for _ in range(ROWS)],
        "topic": ["rows"] * ROWS,
        "partition": [0] * ROWS,
        "offset": range(ROWS),
        "timestamp": [datetime.now(UTC)] * ROWS,
        "timestampType": [0] * ROWS,
    }
    schema = to_arrow_schema(spark_schema(PLAIN_COLUMNS), timezone="UTC")
    return pa.record_batch([pa.array(columns[one.name], one.type) for one in schema], schema=schema)
