"""Batch, stream and exactlyOnce through Spark Connect, on a cluster with TLS, passwords and ACLs:
`spark_connect.py FILE`, a file of client properties; the topics are there.
"""

from __future__ import annotations

import os
import sys
import tempfile

from pyspark.sql import DataFrame, SparkSession

import heirlog.spark
from heirlog.spark import interpreter, java

ROWS = 3000


def main(file: str) -> None:
    java.provide()
    # SPARK_TESTING: a port that the system picks
    os.environ.update(SPARK_LOCAL_IP="127.0.0.1", PYSPARK_PYTHON=interpreter.program(), SPARK_TESTING="1")
    spark = SparkSession.builder.config("spark.ui.enabled", "false").remote("local[2]").getOrCreate()
    heirlog.spark.register(spark)
    options = {"commandConfig": file}
    numbers = spark.range(ROWS).selectExpr("string(id) AS key", "string(id) AS value")
    heirlog.spark.write(numbers, topic="T", **options)
    stream = spark.readStream.format("heirlog").options(**options, startingOffsets="earliest", subscribe="T").load()
    _copy(stream.select("value"), {**options, "topic": "copy"}, "connect")
    copied = _values(spark, "copy", options)
    heirlog.spark.write(copied.select("value").limit(10), topic="copy", **options)
    count = _values(spark, "copy", options).count()
    assert count == ROWS + 10, f"{count} rows of {ROWS + 10}"
    once = {**options, "topic": "once", "exactlyOnce": "true", "kafka.transactional.id": "connect"}
    for _ in range(2):
        heirlog.spark.write(numbers, **once, batchId="only")
    once["topic"] = "stream"
    _copy(heirlog.spark.by_partition(stream.select("key", "value"), **once), once)
    for topic in ("once", "stream"):
        found = sorted(int(row.value) for row in _values(spark, topic, options).collect())
        assert found == list(range(ROWS)), f"{topic}: {len(found)} rows"
    print(f"{ROWS} rows, and as many exactly once in a batch and in a stream")


def _copy(rows: DataFrame, options: dict[str, str], group: str | None = None) -> None:
    """group: gets the offsets of the stream."""
    writer = rows.writeStream.format("heirlog").options(**options)
    query = writer.option("checkpointLocation", tempfile.mkdtemp()).trigger(availableNow=True).start()
    query.awaitTermination()
    if group is not None:
        heirlog.spark.commit_progress(query, group, options)


def _values(spark: SparkSession, topic: str, options: dict[str, str]) -> DataFrame:
    """A new load: Spark asks a Python source for its partitions once for each."""
    given = {**options, "subscribe": topic, "kafka.isolation.level": "read_committed"}
    return spark.read.format("heirlog").options(**given).load().select("value")


main(sys.argv[1])
