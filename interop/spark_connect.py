"""Batch and stream through Spark Connect: `spark_connect.py SERVERS`, with topics T and copy there."""

from __future__ import annotations

import os
import sys
import tempfile

from pyspark.sql import SparkSession

import heirlog.spark
from heirlog.spark import interpreter, java


def main(servers: str) -> None:
    java.provide()
    # SPARK_TESTING: a port that the system picks
    os.environ.update(SPARK_LOCAL_IP="127.0.0.1", PYSPARK_PYTHON=interpreter.program(), SPARK_TESTING="1")
    spark = SparkSession.builder.config("spark.ui.enabled", "false").remote("local[2]").getOrCreate()
    heirlog.spark.register(spark)
    options = {"kafka.bootstrap.servers": servers}
    count = spark.read.format("heirlog").options(**options).option("subscribe", "T").load().count()
    stream = spark.readStream.format("heirlog").options(**options, startingOffsets="earliest", subscribe="T").load()
    query = (
        stream.select("value")
        .writeStream.format("heirlog")
        .options(**options, topic="copy")
        .option("checkpointLocation", tempfile.mkdtemp())
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    heirlog.spark.commit_progress(query, "connect", options)
    copied = spark.read.format("heirlog").options(**options).option("subscribe", "copy").load()
    heirlog.spark.write(copied.select("value").limit(10), topic="copy", **options)
    # a new load: Spark asks a Python source for its partitions once for each
    copied = spark.read.format("heirlog").options(**options).option("subscribe", "copy").load().count()
    assert copied == count + 10, f"{copied} rows of {count + 10}"
    print(f"{count} rows")


main(sys.argv[1])
