"""Writing to topics: the batch sink and the streaming sink, which differ only in their names.

    task: Arrow batches --by topic--> --by partition--> record batches --idempotent producer--> acknowledged

A row has `value` and may have `key`, `headers`, `partition` and `topic`; the option `topic` overrides that column. Rows
that cannot be records are refused before the query starts, by the same rules as in Spark's Kafka sink.

At least once by default. Within a task, retries of the producer append nothing twice. But a task that failed may have
written records, and Spark runs it again from its beginning; the same holds for a micro-batch that Spark has not marked
as finished. `abort` cannot undo anything. With the option `exactlyOnce` a batch is one transaction (`exactly_once.py`).

Spark makes a writer for each batch and pickles it for the tasks: that is when a transaction begins. It makes another
one to commit a micro-batch, which learns from the messages of the tasks what to commit.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import ArrayType, BinaryType, DataType, IntegerType, StringType, StructType

from heirlog.blocking import BatchProducer, Client, TopicPartition
from heirlog.spark import clients, exactly_once, worker
from heirlog.spark.exactly_once import Begun, Written
from heirlog.spark.option_values import OptionError
from heirlog.spark.partitioners import TopicPartitioners
from heirlog.spark.refusals import in_one_sentence
from heirlog.spark.sink_options import ExactlyOnce, SinkOptions
from heirlog.spark.worker import SentToWorkers

if TYPE_CHECKING:
    import pyarrow as pa

_BYTES = (StringType, BinaryType)


class _Writer(SentToWorkers):
    """What the batch sink and the streaming sink have in common."""

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        check_schema(options, schema)
        self._options = options
        self._begun: Begun | None = None

    def __getstate__(self) -> dict[str, Any]:
        settings = self._options.exactly_once
        if settings is not None and self._begun is None:
            self._begun = exactly_once.begin(self._options, settings)
        return self.__dict__

    @in_one_sentence
    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        settings = self._options.exactly_once
        if settings is None:
            return write_batches(self._options, iterator)
        assert self._begun is not None, "it was pickled on its way here"
        return write_once(self._options, settings, self._begun, iterator)

    @in_one_sentence
    def _commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Without transactions every task waited for its acknowledgements, and nothing is left to do."""
        if self._options.exactly_once is not None:
            exactly_once.commit(self._options, messages)

    def _abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Without transactions what was appended stays: a log has no undo."""
        if self._options.exactly_once is not None:
            exactly_once.abort(self._options, messages, self._begun)


class HeirlogWriter(_Writer, DataSourceArrowWriter):
    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        self._commit(messages)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        self._abort(messages)


class HeirlogStreamWriter(_Writer, DataSourceStreamArrowWriter):
    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        self._commit(messages)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        self._abort(messages)


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
    worker.settle()
    return Written(task.records)


def write_once(options: SinkOptions, settings: ExactlyOnce, begun: Begun, batches: Iterator[pa.RecordBatch]) -> Written:
    """`write_batches` in the transaction of the batch; a batch that the ledger has is read and not written.

    Raises BatchAborted and LedgerLost too.
    """
    name = exactly_once.batch_name(settings)
    exactly_once.refuse_unknown(begun.known, name, settings.transactional_id)
    if name in begun.known.committed:
        # read all the same: the job may count the rows on their way
        return Written(sum(batch.num_rows for batch in batches))
    opened = begun.opened
    with (
        clients.lend(options.properties) as client,
        client.transactional_producer(
            opened.transactional_id, opened=opened, delivery_timeout_s=options.delivery_timeout_ms / 1000
        ) as producer,
    ):
        task = _Task(options, client, producer)
        for batch in batches:
            if batch.num_rows and not task.records:
                exactly_once.claim(client, opened)
            task.write(batch)
        producer.flush()
    worker.settle()
    return Written(task.records, frozenset(task.partitions), opened, name)


class _Task:
    def __init__(self, options: SinkOptions, client: Client, producer: BatchProducer) -> None:
        self._options = options
        self._producer = producer
        # tasks start with different partitions, so that rows without a key are distributed
        self._partitioners = TopicPartitioners(client, random.randrange(1 << 30), options.batch_bytes)
        self.records = 0
        self.partitions: set[TopicPartition] = set()

    def write(self, batch: pa.RecordBatch) -> None:
        for topic, rows, _ in self._partitioners.by_topic(batch, self._options.topic):
            self._write_to(topic, rows)
        self.records += batch.num_rows

    def _write_to(self, topic: str, batch: pa.RecordBatch) -> None:
        from heirlog.spark.encode import Records, encode_batches, rows_by_partition

        records = Records.of(batch)
        given = batch.column("partition") if "partition" in batch.schema.names else None
        now_ms = int(time.time() * 1000)
        partitioners = self._partitioners
        for partition, rows in rows_by_partition(partitioners.of(topic).choose(records, given)):
            self.partitions.add((topic, partition))
            for encoded in encode_batches(records, rows, now_ms, self._options.codec, partitioners.batch_bytes):
                self._producer.send(topic, partition, encoded)
