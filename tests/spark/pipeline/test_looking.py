"""A look at a query in the middle of its batches."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from patience import eventually
from pyspark.sql import DataFrame, SparkSession
from spark.topics import Topics

from heirlog.spark.pipeline.looking import Look, look
from heirlog.testing.cluster import Cluster


@pytest.fixture(scope="module")
def topics(cluster: Cluster) -> Topics:
    return Topics(cluster)


def test_a_look_has_the_batch_the_tasks_that_run_and_what_is_left(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    topic = topics.create(2)
    topics.fill(topic, 30, 2)
    go_on = str(tmp_path / "go-on")

    def wait(_: int) -> None:
        waiting = threading.Event()
        while not os.path.exists(go_on):
            waiting.wait(0.02)

    def wait_in_batch_1(rows: DataFrame, batch: int) -> None:
        if batch == 1:
            spark.sparkContext.parallelize(range(2), 2).foreach(wait)

    source = spark.readStream.format("heirlog").option("kafka.bootstrap.servers", topics.servers)
    source = source.option("subscribe", topic).option("startingOffsets", "earliest")
    query = (
        source.option("maxOffsetsPerTrigger", "10")
        .load()
        .writeStream.foreachBatch(wait_in_batch_1)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    try:
        # the function of batch 0 reads none of its rows: it is a batch all the same
        eventually(lambda: look(spark, query) == Look(1, 2, 0, 20), "a look at both tasks of batch 1")
    finally:
        Path(go_on).touch()
        assert query.awaitTermination(60)
    assert look(spark, query).left == 0
