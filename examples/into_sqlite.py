"""Records into SQLite with `foreachBatch`, each one once.

    python examples/into_sqlite.py orders orders.db checkpoint

Spark may run a batch again after a failure, with the same number and the same records. So the number of the last batch
is kept in the database and changed in the same transaction as the rows: a batch that is there already is passed over.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from contextlib import closing
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from heirlog.spark import session


@dataclass
class IntoSqlite:
    database: str

    def __call__(self, rows: DataFrame, batch_id: int) -> None:
        with closing(sqlite3.connect(self.database)) as connection, connection:
            connection.execute("CREATE TABLE IF NOT EXISTS records (topic, partition, position, key, value)")
            connection.execute("CREATE TABLE IF NOT EXISTS progress (batch_id)")
            (last,) = connection.execute("SELECT max(batch_id) FROM progress").fetchone()
            if last is not None and last >= batch_id:
                return
            columns = rows.select("topic", "partition", "offset", "key", "value")
            connection.executemany("INSERT INTO records VALUES (?, ?, ?, ?, ?)", columns.toLocalIterator())
            connection.execute("DELETE FROM progress")
            connection.execute("INSERT INTO progress VALUES (?)", (batch_id,))


def copy(spark: SparkSession, topic: str, database: str, checkpoint: str) -> None:
    """Copy what the topic holds now; with the same checkpoint, go on from there next time."""
    rows = (
        spark.readStream.format("heirlog")
        .option("kafka.bootstrap.servers", os.environ.get("HEIRLOG_BOOTSTRAP", "127.0.0.1:9092"))
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .load()
    )
    query = (
        rows.writeStream.foreachBatch(IntoSqlite(database))
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    copy(session.start(), *sys.argv[1:4])
