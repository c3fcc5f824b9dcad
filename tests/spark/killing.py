"""A program that copies a topic with exactlyOnce and is killed at a step: `python -m spark.killing STEP ARGUMENTS`.

The steps are in the processes of Spark's tasks and of its commits, which get STEP from the environment.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql.types import StructType

import heirlog.spark
from heirlog.blocking.connection import Connection
from heirlog.protocol.messages import EndTxnRequest, TxnOffsetCommitRequest
from heirlog.protocol.primitives import Message
from heirlog.spark import session
from heirlog.spark.sink import HeirlogStreamWriter
from heirlog.spark.sink_options import sink_options
from heirlog.spark.source import HeirlogDataSource

if TYPE_CHECKING:
    import pyarrow as pa

STEP, GROUP = "HEIRLOG_TEST_STEP", "HEIRLOG_TEST_GROUP"


def kill_all() -> None:
    os.killpg(int(os.environ[GROUP]), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


class KilledWriter(HeirlogStreamWriter):
    def write(self, iterator: Iterator[pa.RecordBatch]) -> Any:
        written = super().write(iterator)
        context = TaskContext.get()
        if os.environ[STEP] == "task" and written.records and context is not None and not context.attemptNumber():
            os.kill(os.getpid(), signal.SIGKILL)
        if os.environ[STEP] == "tasks":
            kill_all()
        return written

    def commit(self, messages: Any, batchId: int) -> None:
        step = os.environ[STEP]
        if step == "written":
            kill_all()
        original = Connection.submit, Connection.request

        def watched(number: int) -> Any:
            def call(connection: Connection, message: Message, **options: Any) -> Any:
                if step == "ended" and isinstance(message, EndTxnRequest):
                    original[0](connection, message, **options)
                    kill_all()
                done = original[number](connection, message, **options)
                if step == "offsets" and isinstance(message, TxnOffsetCommitRequest):
                    kill_all()
                return done

            return call

        Connection.submit, Connection.request = watched(0), watched(1)  # type: ignore[method-assign]
        super().commit(messages, batchId)
        if step == "committed":
            kill_all()


class KilledSource(HeirlogDataSource):
    def streamWriter(self, schema: StructType, overwrite: bool) -> HeirlogStreamWriter:
        return KilledWriter(sink_options(self.options, streaming=True), schema)


def main(servers: str, source: str, sink: str, checkpoint: str) -> None:
    os.environ[GROUP] = str(os.getpgrp())
    # tests/ for Spark's workers
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parents[1]), os.environ["PYTHONPATH"]])
    spark = session.start("local[2,3]", {}, app_name="killing")
    spark.dataSource.register(KilledSource)
    kafka = {"kafka.bootstrap.servers": servers}
    read = {**kafka, "subscribe": source, "startingOffsets": "earliest", "maxOffsetsPerTrigger": "40"}
    write = {**kafka, "topic": sink, "exactlyOnce": "true", "kafka.transactional.id": f"id-{sink}"}
    rows = spark.readStream.format("heirlog").options(**read).load().select("key", "value")
    stream = heirlog.spark.by_partition(rows, **write).writeStream.format("heirlog").options(**write)
    query = stream.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
