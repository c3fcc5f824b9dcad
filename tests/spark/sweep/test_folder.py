"""The folder of a sweep: what is there is not run again, and counts once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from spark.sweep.rows import CELL, row

from heirlog.sim.durability.cell import Policy
from heirlog.spark.sweep.folder import left, opened
from heirlog.spark.sweep.grid import Grid, SweepError

GRID = Grid((3,), (2,), (Policy.BALANCED,), (10,))


def test_runs_that_are_there_are_not_left(tmp_path: Path) -> None:
    with opened(tmp_path / "out", GRID, "c0de") as folder:
        assert [seed for _, seed in left(folder, GRID, 4)] == [1, 2, 3, 4]
        folder.add([row(CELL, 1), row(CELL, 3)])
    with opened(tmp_path / "out", GRID, "c0de") as folder:
        assert left(folder, GRID, 4) == [(CELL, 2), (CELL, 4)]
        folder.add([row(CELL, 2), row(CELL, 4)])
        assert left(folder, GRID, 4) == []
        assert left(folder, GRID, 5) == [(CELL, 5)], "more seeds continue the sweep"
        assert sorted(folder.table().column("seed").to_pylist()) == [1, 2, 3, 4]


def test_what_a_kill_left_of_a_file_does_not_count(tmp_path: Path) -> None:
    with opened(tmp_path / "out", GRID, "c0de") as folder:
        folder.add([row(CELL, 1)])
        complete = tmp_path / "out" / "runs" / "000001.parquet"
        (complete.parent / ".000002.parquet.new").write_bytes(complete.read_bytes()[:100])
        assert folder.done() == {(CELL.scenario, 1)}
        folder.add([row(CELL, 2)])
        assert len(folder.done()) == 2
    assert sorted(file.name for file in complete.parent.iterdir()) == ["000001.parquet", "000002.parquet"]


def test_a_run_in_two_files_counts_once(tmp_path: Path) -> None:
    with opened(tmp_path / "out", GRID, "c0de") as folder:
        folder.add([row(CELL, 1), row(CELL, 2)])
        folder.add([row(CELL, 2), row(CELL, 3)])
        shutil.copy(tmp_path / "out" / "runs" / "000001.parquet", tmp_path / "out" / "runs" / "000007.parquet")
        assert folder.table().column("seed").to_pylist() == [1, 2, 3]
        folder.add([row(CELL, 4)])
        assert (tmp_path / "out" / "runs" / "000008.parquet").exists()


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    with opened(tmp_path / "out", GRID, "c0de") as folder:
        (tmp_path / "out" / "runs" / "000001.parquet").write_bytes(b"PAR1 and no more")
        with pytest.raises(SweepError, match=r"000001\.parquet cannot be read .* remove it, and its runs are repeated"):
            folder.done()


def refused(place: Path, grid: Grid = GRID, code: str = "c0de") -> str:
    with pytest.raises(SweepError) as found, opened(place, grid, code):
        pass
    return str(found.value)


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("mine")
    assert "has files, and is not the folder of a sweep" in refused(tmp_path)
    assert "is a file: give a folder" in refused(tmp_path / "letter.txt")
    (tmp_path / "sweep.json").write_text("{")
    assert "is damaged" in refused(tmp_path)
    (tmp_path / "sweep.json").write_text('{"format": 99}')
    assert "is of another version of heirlog" in refused(tmp_path)
    assert (tmp_path / "letter.txt").read_text() == "mine"


def test_other_parameters_or_other_code_are_refused(tmp_path: Path) -> None:
    place = tmp_path / "out"
    with opened(place, GRID, "c0de"):
        assert "used by another sweep" in refused(place)
    said = refused(place, Grid((3,), (1, 2), (Policy.BALANCED,), (10,)))
    assert "other parameters (min_isr was [2], now [1, 2])" in said
    assert "are of other code (c0de; this is dec0)" in refused(place, code="dec0")
    with opened(place, GRID, "c0de") as folder:
        assert folder.done() == set()
