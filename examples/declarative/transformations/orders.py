"""Orders of a topic in a streaming table, their sum by item in a materialised view, the expensive ones in a topic.

`spark-pipelines` runs this file.
"""

from __future__ import annotations

import os

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

spark = SparkSession.active()
SERVERS = {"kafka.bootstrap.servers": os.environ.get("HEIRLOG_BOOTSTRAP", "localhost:9092")}


@dp.table
def orders() -> DataFrame:
    source = spark.readStream.format("heirlog").options(**SERVERS, subscribe="orders", startingOffsets="earliest")
    parsed = "from_json(cast(value AS STRING), 'id BIGINT, item STRING, price DOUBLE') AS sale"
    return source.load().selectExpr(parsed, "timestamp").where("sale.id IS NOT NULL").select("sale.*", "timestamp")


@dp.materialized_view
def revenue() -> DataFrame:
    return spark.read.table("orders").groupBy("item").agg({"price": "sum", "*": "count"}).toDF("item", "total", "sales")


dp.create_sink("expensive_orders", "heirlog", {**SERVERS, "topic": "expensive"})


@dp.append_flow(target="expensive_orders")
def expensive() -> DataFrame:
    rows = spark.readStream.table("orders").where("price > 2")
    return rows.selectExpr("cast(id AS STRING) AS key", "to_json(struct(id, item, price)) AS value")
