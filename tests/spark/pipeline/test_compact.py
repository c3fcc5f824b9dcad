"""Merging finished batches, on tables that PyArrow wrote."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pyarrow
import pyarrow.dataset
import pytest
from cli.json_shapes import mistakes_of
from pyarrow import parquet

from heirlog.spark.pipeline.compact import _compact_table
from heirlog.spark.pipeline.table import BatchTable

TARGET_BYTES = 1024 * 1024


@pytest.fixture
def table(tmp_path: Path) -> BatchTable:
    made = BatchTable(str(tmp_path / "lake"))
    made.claim("/cp", "id-1", {})
    return made


def write(table: BatchTable, batch_id: int, **columns: list[object]) -> None:
    place = table.stage(batch_id)
    place.mkdir()
    parquet.write_table(pyarrow.table(columns), place / f"part-{batch_id}.parquet")
    table.publish(batch_id, {})


def files(table: BatchTable) -> list[Path]:
    return sorted(table.path.rglob("*.parquet"))


def test_rows_of_many_files_share_a_row_group(table: BatchTable) -> None:
    for number in range(5):
        write(table, number, id=[number * 2, number * 2 + 1])
    compacted = _compact_table(table, finished=3, target_bytes=TARGET_BYTES)
    assert compacted.files_after == 1
    assert not mistakes_of("pipeline compact", {"tables": [asdict(compacted)]})
    (merged, untouched) = files(table)
    assert parquet.read_metadata(merged).num_row_groups == 1
    assert parquet.ParquetFile(merged).read().column("id").to_pylist() == list(range(8))
    assert untouched.parent.name == "batch_id=4" and table.batches() == [3, 4]


def test_files_whose_columns_changed_with_their_source_are_merged_apart(table: BatchTable) -> None:
    write(table, 0, id=[0])
    write(table, 1, id=[1])
    write(table, 2, id=[2], more=["x"])
    write(table, 3, id=[3], more=["y"])
    assert _compact_table(table, finished=3, target_bytes=TARGET_BYTES).files_after == 2
    schema = pyarrow.schema([("id", pyarrow.int64()), ("more", pyarrow.string())])
    rows = pyarrow.dataset.dataset(table.path, schema, format="parquet").to_table().to_pylist()
    assert [(row["id"], row["more"]) for row in rows] == [(0, None), (1, None), (2, "x"), (3, "y")]
