"""The rule of the table: each batch whole and once, whatever is killed when."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet

from heirlog.spark.pipeline.batch import _refuse_missing
from heirlog.spark.pipeline.spec import PipelineError
from heirlog.spark.pipeline.table import BatchTable

MEANING = {"query": "SELECT 1", "source": {"topics": ["t"]}}


@pytest.fixture
def table(tmp_path: Path) -> BatchTable:
    return BatchTable(str(tmp_path / "lake"))


def staged(table: BatchTable, batch_id: int, text: str = "rows") -> None:
    place = table.stage(batch_id)
    place.mkdir(parents=True)
    (place / "part-0.parquet").write_text(text)


def test_a_batch_is_invisible_until_it_is_published(table: BatchTable) -> None:
    staged(table, 0)
    assert not table.holds(0) and not table.path.exists()
    table.publish(0, {"rows_in": 3})
    assert table.holds(0) and table.batches() == [0]
    assert (table.directory(0) / "part-0.parquet").read_text() == "rows"
    assert table.manifest(0) == {"rows_in": 3}


def test_a_rerun_begins_with_nothing_of_the_attempt_before(table: BatchTable) -> None:
    staged(table, 4, "half a batch")
    (first,) = table.staging.iterdir()
    (first / "part-1.parquet").write_text("from the first attempt")
    staged(table, 4, "whole")
    table.publish(4, {})
    files = sorted(entry.name for entry in table.directory(4).iterdir())
    assert files == ["_batch.json", "part-0.parquet"]


def test_executors_of_a_killed_driver_do_not_write_into_the_rerun(table: BatchTable) -> None:
    staged(table, 4)
    (late,) = table.staging.iterdir()
    rerun = BatchTable(str(table.path))
    staged(rerun, 4)
    (late / "part-1.parquet").write_text("late")
    rerun.publish(4, {})
    assert sorted(entry.name for entry in table.directory(4).iterdir()) == ["_batch.json", "part-0.parquet"]


def test_an_empty_batch_is_published_too(table: BatchTable) -> None:
    table.stage(2)
    table.publish(2, {})
    assert table.batches() == [2]


def test_sparks_checksums_and_marks_do_not_become_visible(table: BatchTable) -> None:
    staged(table, 0)
    (place,) = table.staging.iterdir()
    for name in ("_SUCCESS", ".part-0.parquet.crc"):
        (place / name).write_text("")
    table.publish(0, {})
    assert sorted(entry.name for entry in table.directory(0).iterdir()) == ["_batch.json", "part-0.parquet"]


def test_rows_that_executors_wrote_elsewhere_are_noticed(table: BatchTable) -> None:
    place = table.stage(0)
    (place / "k=1").mkdir(parents=True)
    for folder in (place, place / "k=1"):
        parquet.write_table(pyarrow.table({"n": [1, 2]}), folder / "part-0.parquet")
    assert table.staged_rows(0) == 4 and BatchTable(str(table.path)).staged_rows(0) == 0
    _refuse_missing(table, 0, 4)
    with pytest.raises(PipelineError, match=r"5 rows of batch 0 were written for .*lake, and 4 are there"):
        _refuse_missing(table, 0, 5)


def test_another_checkpoint_is_refused(table: BatchTable) -> None:
    table.claim("/cp", "id-1", MEANING)
    table.claim("/cp", "id-1", MEANING)
    with pytest.raises(PipelineError, match="checkpoint /cp, and this pipeline's checkpoint is another one"):
        table.refuse_other_owner("id-2", MEANING)
    with pytest.raises(PipelineError, match="does not exist yet"):
        table.refuse_other_owner(None, MEANING)


def test_a_changed_query_is_refused_by_name(table: BatchTable) -> None:
    table.claim("/cp", "id-1", {**MEANING, "query": "SELEC 1"})
    table.claim("/cp", "id-1", MEANING)
    assert table.identity()["meaning"] == MEANING, "a query that failed before there was a batch may be mended"
    staged(table, 0)
    table.publish(0, {})
    with pytest.raises(PipelineError, match="pipeline's query changed"):
        table.claim("/cp", "id-1", {**MEANING, "query": "SELECT 2"})


def test_a_directory_with_other_things_in_it_is_refused(table: BatchTable) -> None:
    table.path.mkdir()
    table.refuse_other_owner(None, MEANING)
    (table.path / "something.parquet").write_text("")
    with pytest.raises(PipelineError, match="was not created by a pipeline"):
        table.refuse_other_owner(None, MEANING)


def test_a_claim_that_was_killed_half_way_is_made_again(table: BatchTable) -> None:
    table.path.mkdir()
    (table.path / "._pipeline.json.new").write_text('{"check')
    table.claim("/cp", "id-1", MEANING)
    assert table.identity()["checkpointId"] == "id-1"


def test_numbers_that_a_compaction_merged_are_held(table: BatchTable) -> None:
    table.claim("/cp", "id-1", MEANING)
    table.write_identity({**table.identity(), "compactedThrough": 5})
    assert table.holds(3) and table.holds(5) and not table.holds(6)


def test_the_identity_is_readable_by_people(table: BatchTable) -> None:
    table.claim("/cp", "id-1", MEANING)
    assert json.loads((table.path / "_pipeline.json").read_text())["checkpoint"] == "/cp"
