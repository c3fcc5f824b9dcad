"""The runs of a sweep on Spark.

    runs --a batch--> Spark: one task each --rows--> driver --one file--> folder, and the next batch

A batch is as large as what the cluster did in `BATCH_S` before. So a kill loses some seconds of work, and cores wait
for the last run of a batch rarely. No storage is shared: rows come back through Spark's own results.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence

from py4j.protocol import Py4JError, Py4JNetworkError  # type: ignore[import-untyped]  # it has no types
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from heirlog.sim.code_version import code_version
from heirlog.sim.durability.cell import Cell
from heirlog.sim.durability.measure import Measurement
from heirlog.spark.pipeline.run import sentence_of
from heirlog.spark.sweep.folder import SweepFolder
from heirlog.spark.sweep.grid import SweepError
from heirlog.spark.sweep.task import ARCHIVE, measured

FIRST_BATCH = 16
BATCH_S = 20.0
BATCH_MAX = 10_000


def run_all(
    spark: SparkSession,
    runs: Sequence[tuple[Cell, int]],
    folder: SweepFolder,
    on_done: Callable[[int], None] = lambda count: None,
) -> None:
    """Run them, and add them to the folder batch by batch. on_done is called with the number of each batch's runs.

    Raises SweepError if a task fails; the batches before are in the folder.
    """
    begin, size = 0, FIRST_BATCH
    while begin < len(runs):
        batch = runs[begin : begin + size]
        began_s = time.monotonic()
        try:
            rows = _on_spark(spark, batch)
        except (PySparkException, Py4JError, ConnectionError) as error:
            raise SweepError(f"{_sentence_of(error)}; {begin} of {len(runs)} runs were added before") from error
        folder.add(rows)
        passed_s = time.monotonic() - began_s
        on_done(len(batch))
        begin += len(batch)
        size = max(1, min(BATCH_MAX, 2 * size, int(len(batch) * BATCH_S / passed_s)))


def _on_spark(spark: SparkSession, batch: Sequence[tuple[Cell, int]]) -> list[Measurement]:
    wanted = [(cell.scenario, seed) for cell, seed in batch]
    code = code_version()

    def run(number: int) -> str:
        return measured(*wanted[number], code)

    # plain: with Arrow the workers would need pandas
    one_run = f.udf(run, "string", useArrow=False)
    rows = spark.range(0, len(wanted), 1, len(wanted)).select(one_run("id")).collect()
    return [Measurement(**json.loads(row[0])) for row in rows]


def _sentence_of(error: PySparkException | Py4JError | ConnectionError) -> str:
    if isinstance(error, ConnectionError) or type(error) in (Py4JError, Py4JNetworkError):
        return "Spark's Java process ended, and its log may say why: run the command again to continue"
    sentence = sentence_of(error).rstrip(".")
    if "No module named 'heirlog" in sentence:
        return f"a worker's Python has no heirlog: {ARCHIVE}"
    return f"a run failed on Spark: {sentence}"
