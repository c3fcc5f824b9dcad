"""Rows arranged so that one task has all rows of a partition, as `exactlyOnce` needs it (`exactly_once.py`).

    rows --> column `partition` --> shuffle by it --> at most TASKS_MAX tasks

A row gets the partition that the sink would give it, except a row without a key: its value decides. So a task that
Spark runs again gets the same rows, whatever their order.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as f
from pyspark.sql.types import IntegerType, StructField, StructType

from heirlog.spark import clients, worker
from heirlog.spark.partitioners import TopicPartitioners, topic_to_write
from heirlog.spark.sink import check_schema
from heirlog.spark.sink_options import SinkOptions, sink_options

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

TASKS_MAX = 64
TASKS_OF_SEVERAL_TOPICS = 16
_SPECULATION = "spark.speculation"
_log = logging.getLogger("heirlog.spark")


def by_partition(rows: DataFrame, options: Mapping[str, str]) -> DataFrame:
    """Raises OptionError for rows that cannot be written, KafkaError, OSError."""
    sink = sink_options(options)
    check_schema(sink, rows.schema)
    if sink.exactly_once is not None and rows.sparkSession.conf.get(_SPECULATION, "false") == "true":
        _log.warning("%s is true: with exactlyOnce a task's second attempt fails, and may fail the batch", _SPECULATION)
    kept = [column for column in rows.schema.fields if column.name != "partition"]
    schema = StructType([*kept, StructField("partition", IntegerType())])
    placed = rows.mapInArrow(_placing(sink, [column.name for column in schema.fields]), schema)
    at = f.col("partition")
    if sink.topic is None:
        tasks = TASKS_OF_SEVERAL_TOPICS
        at = at + f.crc32(f.col("topic"))
    else:
        with clients.lend(sink.properties) as client:
            tasks = min(len(topic_to_write(client, sink.topic).partitions), TASKS_MAX)
    return placed.repartitionById(tasks, f.pmod(at, f.lit(tasks)).cast("int"))


def _placing(sink: SinkOptions, names: list[str]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What Spark sends to its workers."""

    def place(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        worker.acknowledge()
        with clients.lend(sink.properties) as client:
            partitioners = TopicPartitioners(client, 0, sink.batch_bytes)
            for batch in batches:
                yield _placed(batch, sink, partitioners, names)

    return place


def _placed(
    batch: pa.RecordBatch, sink: SinkOptions, partitioners: TopicPartitioners, names: list[str]
) -> pa.RecordBatch:
    import numpy as np
    import pyarrow as pa

    from heirlog.spark.encode import Records

    chosen = np.zeros(batch.num_rows, np.int32)
    for topic, part, rows in partitioners.by_topic(batch, sink.topic):
        value = part.column("value").cast(pa.large_binary())
        key = _or_else(part.column("key").cast(pa.large_binary()), value) if "key" in part.schema.names else value
        records = Records.of(pa.record_batch([key, value], names=["key", "value"]))
        given = part.column("partition") if "partition" in part.schema.names else None
        chosen[rows] = partitioners.of(topic).choose(records, given)
    columns = [pa.array(chosen) if name == "partition" else batch.column(name) for name in names]
    return pa.RecordBatch.from_arrays(columns, names=names)


def _or_else(column: pa.Array, other: pa.Array) -> Any:
    from pyarrow import compute

    return compute.coalesce(column, other) if column.null_count else column
