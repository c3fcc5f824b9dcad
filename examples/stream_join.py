"""Two topics joined in time: orders with their payments, if these came within an hour.

    python examples/stream_join.py orders payments out-directory checkpoint

Both hold JSON with an `id`. The join needs a watermark on each side: with it Spark knows when it may forget a row.
"""

from __future__ import annotations

import os
import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from heirlog.spark import session


def topic(spark: SparkSession, name: str, schema: str) -> DataFrame:
    rows = (
        spark.readStream.format("heirlog")
        .option("kafka.bootstrap.servers", os.environ.get("HEIRLOG_BOOTSTRAP", "127.0.0.1:9092"))
        .option("subscribe", name)
        .option("startingOffsets", "earliest")
        .load()
    )
    value = f.from_json(f.col("value").cast("string"), schema).alias("value")
    return rows.select(value, f.col("timestamp")).select("value.*", "timestamp")


def join(spark: SparkSession, orders: str, payments: str, table: str, checkpoint: str) -> None:
    """Join what both topics hold now; with the same checkpoint, go on from there next time."""
    ordered = topic(spark, orders, "id BIGINT, item STRING").withColumnRenamed("timestamp", "ordered_at")
    paid = topic(spark, payments, "id BIGINT, amount DOUBLE").withColumnRenamed("timestamp", "paid_at")
    paid = paid.withColumnRenamed("id", "paid_id")
    joined = ordered.withWatermark("ordered_at", "10 minutes").join(
        paid.withWatermark("paid_at", "10 minutes"),
        f.expr("id = paid_id AND paid_at BETWEEN ordered_at - INTERVAL 1 HOUR AND ordered_at + INTERVAL 1 HOUR"),
    )
    query = (
        joined.drop("paid_id")
        .writeStream.format("parquet")
        .option("path", table)
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    join(session.start(), *sys.argv[1:5])
