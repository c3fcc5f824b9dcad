"""Delta and Iceberg: tables with a commit of their own, which contains the number of the batch.

    delta      txnAppId and txnVersion: Delta skips a version that the application has committed
    iceberg    a property of the snapshot; if the table's snapshots have it, nothing is written

So a batch that was interrupted between the table's commit and Spark's is in the table once. For Iceberg that holds only
while that snapshot is kept: expiring snapshots must keep those of the last hours, as is usual.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from heirlog.spark.pipeline.spec import Table

_PROPERTY = "heirlog-batch"


def add_batch(table: Table, rows: DataFrame, partition_by: Sequence[str], query: str, batch_id: int) -> None:
    """query: an id that no other query has; with the number it names the batch."""
    if table.format == "delta":
        writer = rows.write.format("delta").mode("append").partitionBy(*partition_by)
        writer.option("txnAppId", f"heirlog-{query}").option("txnVersion", batch_id).save(table.path)
        return
    spark, mark = rows.sparkSession, f"{query}/{batch_id}"
    if not spark.catalog.tableExists(table.path):
        made = rows.limit(0).writeTo(table.path).using("iceberg")
        if partition_by:
            made = made.partitionedBy(*(f.col(name) for name in partition_by))
        made.create()
    if not _has(spark, table.path, mark):
        rows.writeTo(table.path).option(f"snapshot-property.{_PROPERTY}", mark).append()


def _has(spark: SparkSession, name: str, mark: str) -> bool:
    snapshots = spark.table(f"{name}.snapshots")
    return not snapshots.where(f.col("summary")[_PROPERTY] == mark).isEmpty()
