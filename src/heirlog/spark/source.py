"""The data source `heirlog` as Spark sees it, and its batch read.

    spark.read.format("heirlog")     HeirlogDataSource.reader       -> HeirlogReader        this module
    spark.readStream                 HeirlogDataSource.streamReader -> HeirlogStreamReader  stream.py
    df.write, df.writeStream         HeirlogDataSource.writer, streamWriter                 sink.py

Spark creates and plans these objects in Python processes on the driver, pickles them, and calls `read` and `write` in
the workers of the executors. So nothing here holds a connection (`clients.py` does, per process), and what only a
worker needs is imported there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, MutableMapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, Filter, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from heirlog.blocking import Client
from heirlog.spark import clients, loss, option_names, resolve, sizes
from heirlog.spark.current_state import CurrentState
from heirlog.spark.loss import Cause, Loss
from heirlog.spark.narrow import Narrowing, narrowing
from heirlog.spark.offset_limits import LATEST, OffsetRangeLimit, TopicPartition
from heirlog.spark.offsets import StreamOffset, stream_offset
from heirlog.spark.option_values import OptionError
from heirlog.spark.options import Options, columns_of, read_options
from heirlog.spark.plan import Range
from heirlog.spark.read import read_range
from heirlog.spark.refusals import in_one_sentence
from heirlog.spark.sink import HeirlogStreamWriter, HeirlogWriter
from heirlog.spark.sink_options import sink_options
from heirlog.spark.stream import HeirlogStreamReader
from heirlog.spark.worker import SentToWorkers

if TYPE_CHECKING:
    import pyarrow as pa

NAME = "heirlog"
TYPES: dict[str, DataType] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
    "headers": ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())])),
}


def spark_schema(columns: tuple[str, ...]) -> StructType:
    return StructType([StructField(name, TYPES[name]) for name in columns])


class HeirlogDataSource(DataSource):
    """Register with `heirlog.spark.register(spark)` or `spark.dataSource.register(HeirlogDataSource)`."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)

    @classmethod
    def name(cls) -> str:
        return NAME

    @in_one_sentence
    def schema(self) -> StructType:
        return spark_schema(columns_of(self.options))

    @in_one_sentence
    def reader(self, schema: StructType) -> HeirlogReader:
        option_names.warn_of_ineffective(self.options)
        options = read_options(self.options, streaming=False)
        _refuse_other_schema(schema, options)
        return HeirlogReader(options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        option_names.warn_of_ineffective(self.options)
        try:
            options = read_options(self.options, streaming=True)
            _refuse_other_schema(schema, options)
        except OptionError as error:
            return _Refusal(error)
        return HeirlogStreamReader(options, to_arrow_schema(schema, timezone="UTC"))

    @in_one_sentence
    def writer(self, schema: StructType, overwrite: bool) -> HeirlogWriter:
        if overwrite:
            raise OptionError("save mode overwrite is not allowed for a topic: records are only ever added; use append")
        option_names.warn_of_ineffective(self.options)
        options = sink_options(self.options)
        clients.warn_where_nothing_listens(options.properties)
        return HeirlogWriter(options, schema)

    @in_one_sentence
    def streamWriter(self, schema: StructType, overwrite: bool) -> HeirlogStreamWriter:
        option_names.warn_of_ineffective(self.options)
        options = sink_options(self.options, streaming=True)
        clients.warn_where_nothing_listens(options.properties)
        return HeirlogStreamWriter(options, schema)


def _refuse_other_schema(schema: StructType, options: Options) -> None:
    if schema != spark_schema(options.columns):
        raise OptionError(
            f"the source has a fixed schema and cannot be used with a custom one; it has the columns "
            f"{', '.join(options.columns)} (use the option columns for fewer)"
        )


class _Refusal(DataSourceStreamReader):
    """Raises the error at the first call.

    If the constructor raised it, PySpark 4.2 would stop a reader that it did not get, and the user would see that error
    instead."""

    def __init__(self, error: OptionError) -> None:
        self._error = error

    def initialOffset(self) -> dict[str, Any]:
        raise self._error

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        raise self._error

    def getDefaultReadLimit(self) -> ReadLimit:
        raise self._error

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        raise self._error

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        raise self._error


class HeirlogReader(SentToWorkers, DataSourceReader):
    def __init__(self, options: Options, schema: StructType) -> None:
        self._options = options
        self._schema: pa.Schema = to_arrow_schema(schema, timezone="UTC")
        self._narrowing = Narrowing()

    @property
    def pushFilters(self) -> _PushFilters:
        return _PushFilters(self)

    def narrow(self, filters: Sequence[Filter]) -> None:
        """Read only what can pass these filters, if the options allow that."""
        if self._options.push_filters:
            self._narrowing = narrowing(filters)

    @in_one_sentence
    def partitions(self) -> list[InputPartition]:
        """As of now. Raises DataLoss for offsets that are not there, NoOffset, KafkaError, OSError."""
        ranges = resolve.ask(self._options, self._narrowed, at_start=True)
        split_ranges = sizes.tasks(self._options, ranges)
        # without partitions Spark makes one of its own, which reads an empty range
        return [InputPartition(part) for part in split_ranges] or [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if partition.value is None:
            return iter(())
        return read_range(self._options, partition.value, self._schema)

    def _narrowed(self, client: Client) -> list[Range]:
        # losses and wrong options are errors whatever the filters
        return self._narrowing.ranges(planned(client, self._options), partial(_offsets_at, client))


class _PushFilters:
    """The method `pushFilters` of a reader.

    In a session with spark.sql.python.filterPushdown.enabled=false, its default, PySpark refuses each reader that
    overrides the method, and compares `__func__` to see that. Such a session never calls it, and reads everything.
    """

    __func__ = staticmethod(DataSourceReader.pushFilters)

    def __init__(self, reader: HeirlogReader) -> None:
        self._reader = reader

    def __call__(self, filters: list[Filter]) -> list[Filter]:
        """Those that Spark has to evaluate itself: all."""
        self._reader.narrow(filters)
        return filters


def _offsets_at(client: Client, times: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
    # all records, whatever the isolation: the ranges end before those that are not readable
    found = client.list_offsets(times, isolation=resolve.ALL_RECORDS)
    return {partition: at.offset for partition, at in found.items()}


def planned(client: Client, options: Options) -> list[Range]:
    """What a batch read covers: the ranges of all partitions, those without records included."""
    subscribed = resolve.subscribed(client, options)
    starts = resolve.resolved(client, options.starting, "starting", subscribed.partitions, options.isolation)
    ends = resolve.resolved(client, options.ending, "ending", subscribed.partitions, options.isolation)
    remembered = _remembered(options.starting)
    lost_starts = CurrentState(client, options, remembered).losses if remembered.offsets else []
    starts = {**starts, **{one.topic_partition: one.resume for one in lost_starts}}
    lost_ends = _lost_ends(client, options, subscribed, starts, ends) if options.ending.offsets is not None else []
    ends = {**ends, **{one.topic_partition: one.resume for one in lost_ends}}
    loss.handle(sorted({*lost_starts, *lost_ends}), options)
    moved = {one.topic_partition for one in lost_starts}
    for topic, partition in subscribed.partitions:
        start, end = starts[topic, partition], ends[topic, partition]
        if start > end and (topic, partition) not in moved:
            raise resolve.NoOffset(
                f"{topic}-{partition} would be read from {start} on and only up to {end}: the end that was asked for "
                f"lies before the begin. Exchange them, or leave this partition out"
            )
    return [
        Range(
            *partition,
            start=starts[partition],
            stop=ends[partition],
            last_epoch=-1 if partition in moved else remembered.epochs.get(partition, -1),
            topic_id=subscribed.topic_ids.get(partition[0]),
        )
        for partition in subscribed.partitions
    ]


def _remembered(limit: OffsetRangeLimit) -> StreamOffset:
    """The offsets given as numbers, with what a stream stored in addition if they come from a stream."""
    named = {partition: offset for partition, offset in (limit.offsets or {}).items() if offset >= 0}
    noted = stream_offset(json.loads(limit.text or "{}"))
    return StreamOffset(named, noted.topic_ids, {key: noted.epochs[key] for key in named if key in noted.epochs})


def _lost_ends(
    client: Client,
    options: Options,
    subscribed: resolve.Subscribed,
    starts: dict[TopicPartition, int],
    ends: dict[TopicPartition, int],
) -> list[Loss]:
    """End offsets that tasks would wait for: after the log end offset, or of a topic that does not exist any more."""
    latest = resolve.at(client, LATEST, ends, options.isolation)
    ids = _remembered(options.ending).topic_ids
    losses = []
    for partition, end in sorted(ends.items()):
        start, current_state = starts[partition], subscribed.topic_ids.get(partition[0])
        if current_state is not None and ids.get(partition[0], current_state) != current_state:
            losses.append(Loss(*partition, start, end, start, Cause.RECREATED.value))
        elif end > latest[partition]:
            losses.append(Loss(*partition, latest[partition], end, latest[partition], Cause.BEYOND.value))
    return losses
