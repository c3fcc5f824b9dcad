"""Many small files of finished batches into few large ones.

A stream writes a few files per batch, and each file costs readers time. Batches that Spark has committed never run
again, so their files may be merged, partition directory by partition directory. Readers list the bare directory, so at
every moment they must see each row exactly once:

    1. next to the table, a second directory: files to keep as hard links, small ones merged, all under the number of
       the last merged batch; `compactedThrough` in its `_pipeline.json` has the last number that was merged
    2. flushed, then exchanged with the table by one rename
    3. what was the table is deleted

If it is killed before 2, nothing has changed. If it is killed after 2, only 3 is missing, and the next run or
compaction does it. A reader that listed the table before 2 and opens files after 3 must list again.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from heirlog.spark.pipeline.batch import meaning, tables_of
from heirlog.spark.pipeline.checkpoint import checkpoint_id, last_commit
from heirlog.spark.pipeline.files import flush_tree, locked, sync_directory
from heirlog.spark.pipeline.spec import Pipeline, PipelineError
from heirlog.spark.pipeline.table import MANIFEST, BatchTable

TARGET_BYTES = 128 * 1024 * 1024
_ROW_GROUP_BYTES = 64 * 1024 * 1024
_AT_FDCWD = -100
_EXCHANGE = 2


@dataclass(frozen=True, slots=True)
class Compacted:
    """The result for one table."""

    table: str
    batches: int
    files_before: int
    files_after: int


def compact(pipeline: Pipeline, target_bytes: int = TARGET_BYTES) -> list[Compacted]:
    """Merge the finished batches of each of the pipeline's Parquet tables; files of half `target_bytes` stay as they
    are. Raises PipelineError while a run holds a table, and where the file system cannot exchange directories."""
    done = []
    for part in pipeline.parts:
        finished = last_commit(part.checkpoint)
        for table in tables_of(part):
            if not table.identity():
                continue
            with locked(table.path):
                table.refuse_other_owner(checkpoint_id(part.checkpoint), meaning(part))
                table.clear_staging()
                done.append(_compact_table(table, finished, target_bytes))
    return done


def _compact_table(table: BatchTable, finished: int, target_bytes: int) -> Compacted:
    merged = [number for number in table.batches() if number <= finished]
    before = sum(1 for number in merged for _ in _data_files(table.directory(number)))
    if len(merged) < 2:
        return Compacted(str(table.path), len(merged), before, before)
    place = table.staging / "compacted"
    into = place / f"batch_id={merged[-1]}"
    for folder in sorted({file.parent for number in merged for file in _relative_files(table.directory(number))}):
        sources = [table.directory(number) / folder for number in merged]
        _merge(
            [file for source in sources if source.is_dir() for file in _files_of(source)], into / folder, target_bytes
        )
    into.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(table.directory(merged[-1]) / MANIFEST, into / MANIFEST)
    for number in table.batches():
        if number > finished:
            shutil.copytree(table.directory(number), place / f"batch_id={number}", copy_function=os.link)
    BatchTable(str(place)).write_identity({**table.identity(), "compactedThrough": merged[-1]})
    flush_tree(place)
    _exchange(place, table.path)
    sync_directory(table.path.parent)
    table.clear_staging()
    return Compacted(str(table.path), len(merged), before, sum(1 for _ in _data_files(table.directory(merged[-1]))))


def _files_of(folder: Path) -> list[Path]:
    """The data files of one directory, in an order that does not depend on the file system."""
    return sorted(Path(entry.path) for entry in os.scandir(folder) if entry.is_file() and entry.name[0] not in "._")


def _data_files(folder: Path) -> Iterator[Path]:
    for inner, _, _ in os.walk(folder):
        yield from _files_of(Path(inner))


def _relative_files(folder: Path) -> Iterator[Path]:
    return (file.relative_to(folder) for file in _data_files(folder))


def _merge(files: Sequence[Path], into: Path, target_bytes: int) -> None:
    """Files of half the target are linked; the others are written one after the other into files of the target."""
    into.mkdir(parents=True, exist_ok=True)
    small = []
    for file in files:
        if file.stat().st_size >= target_bytes // 2:
            os.link(file, into / file.name)
        else:
            small.append(file)
    for number, group in enumerate(_groups(small, target_bytes)):
        if len(group) == 1:
            os.link(group[0], into / group[0].name)
            continue
        _write_as_one(group, into / f"merged-{number:05}-{group[-1].name}")


def _write_as_one(files: Sequence[Path], target: Path) -> None:
    """Rows of many files share a row group: one for each of them would cost readers as much as the files did."""
    # the schema of the first file contains Spark's notes about its own types
    schema = pq.read_schema(files[0])
    with pq.ParquetWriter(target, schema) as writer:
        waiting: list[pa.RecordBatch] = []
        size = 0
        for file in files:
            for rows in pq.ParquetFile(file).iter_batches():
                waiting.append(rows)
                size += rows.nbytes
                if size >= _ROW_GROUP_BYTES:
                    writer.write_table(pa.Table.from_batches(waiting, schema))
                    waiting, size = [], 0
        if waiting:
            writer.write_table(pa.Table.from_batches(waiting, schema))


def _groups(files: Sequence[Path], target_bytes: int) -> Iterator[list[Path]]:
    """Files of one schema: it may change from batch to batch where it is that of the files that come in."""
    group: list[Path] = []
    size = 0
    columns: pa.Schema | None = None
    for file in files:
        length, its_columns = file.stat().st_size, pq.read_schema(file)
        if group and (size + length > target_bytes or its_columns != columns):
            yield group
            group, size = [], 0
        group.append(file)
        size += length
        columns = its_columns
    if group:
        yield group


def _exchange(one: Path, other: Path) -> None:
    """Swap two directories by one rename, so that no reader finds neither or both."""
    library = ctypes.CDLL(None, use_errno=True)
    here, there = os.fsencode(one), os.fsencode(other)
    if sys.platform == "darwin":
        failed = library.renamex_np(here, there, _EXCHANGE)
    else:
        failed = library.renameat2(_AT_FDCWD, here, _AT_FDCWD, there, _EXCHANGE)
    if failed:
        reason = os.strerror(ctypes.get_errno())
        raise PipelineError(
            f"the file system of {other} cannot exchange two directories ({reason}), so it cannot be compacted in "
            "place: nothing was changed. Copy the table to a local file system and read it there"
        )
