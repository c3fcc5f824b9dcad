"""The data source `heirlog` as Spark sees it, and its batch read.

    spark.read.format("heirlog")     HeirlogDataSource.reader       -> HeirlogReader        this module
    spark.readStream                 HeirlogDataSource.streamReader -> HeirlogStreamReader  stream.py
    df.write, df.writeStream         HeirlogDataSource.writer, streamWriter                 sink.py

Spark creates and plans these objects in Python processes beside the driver, pickles them, and calls `read` and `write`
in the workers of the executors. So nothing here holds a connection (`clients.py` does, per process), and what only a
worker needs is imported there.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
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

from heirlog.blocking.data import DataClient
from heirlog.spark import clients, loss, resolve
from heirlog.spark.loss import Cause, Loss
from heirlog.spark.options import (
    LATEST,
    OptionError,
    Options,
    TopicPartition,
    columns_of,
    read_options,
    sink_options,
)
from heirlog.spark.plan import Range, split
from heirlog.spark.read import read_range
from heirlog.spark.sink import HeirlogStreamWriter, HeirlogWriter
from heirlog.spark.stream import HeirlogStreamReader

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

    def schema(self) -> StructType:
        return spark_schema(columns_of(self.options))

    def reader(self, schema: StructType) -> HeirlogReader:
        options = read_options(self.options, streaming=False)
        _refuse_other_schema(schema, options)
        return HeirlogReader(options, schema)

    def streamReader(self, schema: StructType) -> HeirlogStreamReader:
        options = read_options(self.options, streaming=True)
        _refuse_other_schema(schema, options)
        return HeirlogStreamReader(options, to_arrow_schema(schema, timezone="UTC"))

    def writer(self, schema: StructType, overwrite: bool) -> HeirlogWriter:
        if overwrite:
            raise OptionError("save mode overwrite is not allowed for a topic: records are only ever added; use append")
        return HeirlogWriter(sink_options(self.options), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> HeirlogStreamWriter:
        return HeirlogStreamWriter(sink_options(self.options), schema)


def _refuse_other_schema(schema: StructType, options: Options) -> None:
    if schema != spark_schema(options.columns):
        raise OptionError(
            f"the source has a fixed schema and cannot be used with a custom one; it has the columns "
            f"{', '.join(options.columns)} (use the option columns for fewer)"
        )


class HeirlogReader(DataSourceReader):
    def __init__(self, options: Options, schema: StructType) -> None:
        self._options = options
        self._schema: pa.Schema = to_arrow_schema(schema, timezone="UTC")

    def partitions(self) -> list[InputPartition]:
        """As of now. Raises DataLoss for offsets that are not there, NoOffset, KafkaError, OSError."""
        with clients.lend(self._options.properties) as client:
            ranges = planned(client, self._options)
        split_ranges = split(ranges, self._options.min_partitions, self._options.max_records)
        # Spark makes one partition of no partitions: it reads the range of nothing
        return [InputPartition(part) for part in split_ranges] or [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if partition.value is None:
            return iter(())
        return read_range(self._options, partition.value, self._schema)


def planned(client: DataClient, options: Options) -> list[Range]:
    """What a batch read covers: the ranges of all partitions, those without records included."""
    subscribed = resolve.subscribed(client, options)
    starts = resolve.resolved(client, options.starting, "starting", subscribed.partitions, options.isolation)
    ends = resolve.resolved(client, options.ending, "ending", subscribed.partitions, options.isolation)
    named = options.starting.offsets is not None or options.ending.offsets is not None
    if named:
        starts, ends = _within_the_logs(client, options, starts, ends)
    return [
        Range(topic, partition, starts[topic, partition], ends[topic, partition], topic_id=_id(subscribed, topic))
        for topic, partition in subscribed.partitions
    ]


def _id(subscribed: resolve.Subscribed, topic: str) -> bytes | None:
    return subscribed.topic_ids.get(topic)


def _within_the_logs(
    client: DataClient, options: Options, starts: dict[TopicPartition, int], ends: dict[TopicPartition, int]
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    """Offsets behind a log's end are noticed before tasks wait for them. Those before its begin, the task notices."""
    latest = resolve.at(client, LATEST, starts, options.isolation)
    losses = [
        Loss(*partition, latest[partition], offset, latest[partition], Cause.BEYOND.value)
        for wanted in (starts, ends)
        for partition, offset in wanted.items()
        if offset > latest[partition]
    ]
    loss.handle(sorted(set(losses)), options)
    return (
        {partition: min(offset, latest[partition]) for partition, offset in starts.items()},
        {partition: min(offset, latest[partition]) for partition, offset in ends.items()},
    )
