"""Writing to topics: the batch sink and the streaming sink, which differ only in their names.

    task: Arrow batches --by topic--> --by partition--> record batches --idempotent producer--> acknowledged

A row has `value` and may have `key`, `headers`, `partition` and `topic`; the option `topic` overrides that column. Rows
that cannot be records are refused before the query starts, by the same rules as in Spark's Kafka sink.

At least once. Within a task, retries of the producer append nothing twice. But a task that failed may have written
records, and Spark runs it again from its beginning; the same holds for a micro-batch that Spark has not marked as
finished. `abort` cannot undo anything. For exactly-once, write to a table (docs/reference/spark.md) or let consumers
ignore repetitions.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    StringType,
    StructType,
)

from heirlog.blocking import BatchProducer, Client
from heirlog.spark import clients, worker
from heirlog.spark.options import OptionError, SinkOptions
from heirlog.spark.worker import SentToWorkers

if TYPE_CHECKING:
    import pyarrow as pa

    from heirlog.spark.encode import Partitioner

_BYTES = (StringType, BinaryType)


@dataclass
class Written(WriterCommitMessage):
    """What one task wrote."""

    records: int


class HeirlogWriter(SentToWorkers, DataSourceArrowWriter):
    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        check_schema(options, schema)
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        return write_batches(self._options, iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Every task waited for its acknowledgements: nothing is left to do."""

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """What was appended stays: a log has no undo."""


class HeirlogStreamWriter(SentToWorkers, DataSourceStreamArrowWriter):
    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        check_schema(options, schema)
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        return write_batches(self._options, iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Every task waited for its acknowledgements: nothing is left to do."""

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """What was appended stays: a log has no undo."""


def check_schema(options: SinkOptions, schema: StructType) -> None:
    """Raises OptionError for columns that cannot be written."""
    types: dict[str, DataType] = {column.name: column.dataType for column in schema.fields}
    if options.topic is None:
        if "topic" not in types:
            raise OptionError("topic option required when no 'topic' column is present: set the option topic")
        if not isinstance(types["topic"], StringType):
            raise _unsupported("topic", types["topic"], "string")
    if "value" not in types:
        raise OptionError("required column 'value' not found")
    for name in ("key", "value"):
        if name in types and not isinstance(types[name], _BYTES):
            raise _unsupported(name, types[name], "string or binary")
    if "partition" in types and not isinstance(types["partition"], IntegerType):
        raise _unsupported("partition", types["partition"], "int")
    if "headers" in types and not _is_headers(types["headers"]):
        raise _unsupported("headers", types["headers"], "array<struct<key:string,value:binary>>")


def _is_headers(kind: DataType) -> bool:
    if not isinstance(kind, ArrayType) or not isinstance(kind.elementType, StructType):
        return False
    pairs = [(column.name, type(column.dataType)) for column in kind.elementType.fields]
    return pairs == [("key", StringType), ("value", BinaryType)]


def _unsupported(name: str, kind: DataType, wanted: str) -> OptionError:
    return OptionError(f"column {name} is {kind.simpleString()}; it must be {wanted}: cast it")


def write_batches(options: SinkOptions, batches: Iterator[pa.RecordBatch]) -> Written:
    """Returns once everything is acknowledged. Raises Unencodable, KafkaError, OSError."""
    records = 0
    with (
        clients.lend(options.properties) as client,
        client.producer(
            idempotent=options.idempotent,
            acks=options.acks,
            delivery_timeout_s=options.delivery_timeout_ms / 1000,
        ) as producer,
    ):
        task = _Task(options, client, producer)
        for batch in batches:
            task.write(batch)
            records += batch.num_rows
    worker.settle()
    return Written(records)


class _Task:
    def __init__(self, options: SinkOptions, client: Client, producer: BatchProducer) -> None:
        from heirlog.spark.encode import BATCH_BYTES

        self._options = options
        self._client = client
        self._producer = producer
        self._batch_bytes = options.batch_bytes or BATCH_BYTES
        self._partitioners: dict[str, Partitioner] = {}

    def write(self, batch: pa.RecordBatch) -> None:
        if not batch.num_rows:
            return
        if self._options.topic is not None:
            self._write_to(self._options.topic, batch)
            return
        from heirlog.spark.encode import Unencodable

        topics = batch.column("topic")
        if topics.null_count:
            raise Unencodable("null topic present in the data: set the option topic, or fill the column")
        found = topics.unique()
        for topic in found.to_pylist():
            self._write_to(topic, batch if len(found) == 1 else batch.filter(_equal(topics, topic)))

    def _write_to(self, topic: str, batch: pa.RecordBatch) -> None:
        from heirlog.spark.encode import Records, encode_batches, rows_by_partition

        records = Records.of(batch)
        given = batch.column("partition") if "partition" in batch.schema.names else None
        now_ms = int(time.time() * 1000)
        for partition, rows in rows_by_partition(self._partitioner(topic).choose(records, given)):
            for encoded in encode_batches(records, rows, now_ms, self._options.codec, self._batch_bytes):
                self._producer.send(topic, partition, encoded)

    def _partitioner(self, topic: str) -> Partitioner:
        from heirlog.spark.encode import Partitioner

        if topic not in self._partitioners:
            count = len(self._client.topics([topic], create=True)[topic].partitions)
            # tasks start with different partitions, so that rows without a key are distributed
            self._partitioners[topic] = Partitioner(count, random.randrange(count), self._batch_bytes)
        return self._partitioners[topic]


def _equal(column: pa.Array, value: str) -> pa.Array:
    from pyarrow import compute

    return compute.equal(column, value)
