"""The runs of a sweep on Spark: the same rows as without it, and none twice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from heirlog.sim.code_version import code_version
from heirlog.sim.durability.cell import Policy
from heirlog.sim.durability.measure import Measurement, measure
from heirlog.spark.sweep import job
from heirlog.spark.sweep.folder import left, opened
from heirlog.spark.sweep.grid import Grid, SweepError

GRID = Grid((1,), (1,), (Policy.ELR_OFF, Policy.BALANCED), (20,))
SEEDS = 2


class Killed(Exception):
    pass


def test_a_sweep_that_was_killed_continues(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "FIRST_BATCH", 2)

    def kill(count: int) -> None:
        raise Killed

    with opened(tmp_path / "out", GRID, code_version()) as folder:
        runs = left(folder, GRID, SEEDS)
        with pytest.raises(Killed):
            job.run_all(spark, runs, folder, kill)
        assert left(folder, GRID, SEEDS) == runs[2:]
        job.run_all(spark, runs[2:], folder)
        assert left(folder, GRID, SEEDS) == []
        rows = [Measurement(**found) for found in folder.table().to_pylist()]
    assert [(row.scenario, row.seed) for row in rows] == [(cell.scenario, seed) for cell, seed in runs]
    cell, seed = runs[-1]
    assert replace(rows[-1], cpu_s=0.0) == replace(measure(cell, seed), cpu_s=0.0)


def test_a_task_that_fails_ends_the_sweep_with_its_sentence(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "code_version", lambda: "0ther")
    with (
        opened(tmp_path / "out", GRID, code_version()) as folder,
        pytest.raises(
            SweepError, match=r"a worker has other code of heirlog \(\w+\) than this command \(0ther\)"
        ) as failed,
    ):
        job.run_all(spark, left(folder, GRID, 1), folder)
    assert "heirlog pipeline package FILE.zip" in str(failed.value)
    assert "0 of 2 runs were added before" in str(failed.value)
