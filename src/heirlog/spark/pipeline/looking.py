"""A look at a query that runs: what a person who waits for it wants to see."""

from __future__ import annotations

import json
from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from heirlog.spark.offset_limits import partition_numbers
from heirlog.spark.offsets import MEMBER


@dataclass(frozen=True, slots=True)
class Look:
    """batch: number of the batch that runs. tasks, tasks_done: of the stages that run; 0 on Spark Connect, which does
    not tell. left: records behind the end of the last finished batch; None if not known.
    """

    batch: int
    tasks: int
    tasks_done: int
    left: int | None


def look(spark: SparkSession, query: StreamingQuery) -> Look:
    """Raises what Spark raises if it has ended."""
    progress = query.lastProgress
    tasks, done = _tasks(spark)
    if progress is None:
        return Look(0, tasks, done, None)
    # a trigger that found nothing has a progress too, with the number of the batch that it did not begin
    is_batch = any(source.startOffset != source.endOffset for source in progress.sources)
    return Look(progress.batchId + is_batch, tasks, done, _left(progress.sources[0].latestOffset))


def _tasks(spark: SparkSession) -> tuple[int, int]:
    if not isinstance(spark, SparkSession):
        # of Spark Connect
        return 0, 0
    tracker = spark.sparkContext.statusTracker()
    stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    running = [stage for stage in stages if stage is not None]
    return sum(stage.numTasks for stage in running), sum(stage.numCompletedTasks for stage in running)


def _left(latest: str | None) -> int | None:
    """The lag that the source reports; a source of files reports none."""
    offset = json.loads(latest) if latest else None
    if not isinstance(offset, dict) or MEMBER not in offset:
        return None
    lags = partition_numbers(MEMBER, json.dumps(offset[MEMBER]["lag"]))
    return sum(lags.values())
