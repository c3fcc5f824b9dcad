"""A directory of Parquet files that has each batch of a stream exactly once, even if runs are killed.

    table/                            what readers list; names that begin with '_' or '.' are not data
        _pipeline.json                which checkpoint and query fill this table
        batch_id=7/<partition columns>/part-….parquet
        batch_id=7/_batch.json        what went into the batch
    .table.staging/batch_id=8.x1y2/   next to it, on the same file system: a batch being written

A batch becomes visible by one rename, completely or not at all. Everything in it is flushed before the rename, and the
directory after it, so neither a kill nor a power cut shows a part of it. Spark gives an interrupted batch the same
number and the same rows again, if the checkpoint and the query are the same. So a rerun deletes the staged files, and
has nothing to do if the number already exists. Each run stages in a directory of its own: executors of a killed driver
may continue to write for a while, and their files must not mix with those of the rerun.

`_pipeline.json` ensures that the checkpoint and the query are the same. With another checkpoint the numbers would start
again at 0, and new batches would count as written (rows lost). With another query a rerun would give other rows than
readers have seen.

    staging gone -> files staged -> renamed -> (Spark commits the number to its checkpoint)

Compaction (compact.py) keeps this: it exchanges the whole directory for one of hard links with one rename, and notes
the last number that its merged files hold.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from heirlog.spark.pipeline import files
from heirlog.spark.pipeline.spec import PipelineError

IDENTITY = "_pipeline.json"
MANIFEST = "_batch.json"
_BATCH = re.compile(r"batch_id=(\d+)")


class BatchTable:
    """One table on a file system that this process can rename on."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        self.staging = self.path.parent / f".{self.path.name}.staging"
        self._attempt = os.urandom(4).hex()

    def batches(self) -> list[int]:
        """Numbers of the batch directories, ascending; after a compaction only the last one of each merged run."""
        if not self.path.is_dir():
            return []
        return sorted(int(found[1]) for entry in os.scandir(self.path) if (found := _BATCH.fullmatch(entry.name)))

    def directory(self, batch_id: int) -> Path:
        return self.path / f"batch_id={batch_id}"

    def holds(self, batch_id: int) -> bool:
        return self.directory(batch_id).is_dir() or batch_id <= self.identity().get("compactedThrough", -1)

    def manifest(self, batch_id: int) -> dict[str, Any]:
        """What `publish` was given for this batch."""
        return files.read_json(self.directory(batch_id) / MANIFEST)

    def stage(self, batch_id: int) -> Path:
        """The directory for the files of a batch. This call empties it but does not create it."""
        place = self._place(batch_id)
        shutil.rmtree(place, ignore_errors=True)
        self.staging.mkdir(parents=True, exist_ok=True)
        return place

    def publish(self, batch_id: int, manifest: Mapping[str, Any]) -> None:
        """Make the staged batch visible. Everything of it is on the disk before, the rename itself afterwards."""
        place = self._place(batch_id)
        place.mkdir(parents=True, exist_ok=True)
        files.write_json(place / MANIFEST, manifest)
        _remove_spark_leftovers(place)
        files.flush_tree(place)
        self.path.mkdir(parents=True, exist_ok=True)
        os.rename(place, self.directory(batch_id))
        files.sync_directory(self.path)
        with suppress(OSError):
            # kept where another batch is staged
            self.staging.rmdir()

    def staged_rows(self, batch_id: int) -> int:
        """As the files of the staged batch say."""
        written = (Path(folder, name) for folder, _, names in os.walk(self._place(batch_id)) for name in names)
        return sum(pq.read_metadata(file).num_rows for file in written if file.name.endswith(".parquet"))

    def _place(self, batch_id: int) -> Path:
        return self.staging / f"batch_id={batch_id}.{self._attempt}"

    def clear_staging(self) -> None:
        """Remove what killed runs left. Call this only while holding the lock, because a running pipeline stages there
        too.
        """
        shutil.rmtree(self.staging, ignore_errors=True)

    def identity(self) -> dict[str, Any]:
        """What `claim` wrote; empty if no pipeline has claimed the table."""
        return files.read_json(self.path / IDENTITY)

    def refuse_other_owner(self, checkpoint_id: str | None, meaning: Mapping[str, Any]) -> None:
        """Raise PipelineError unless this checkpoint and query may continue to write to the table.

        `checkpoint_id` is None if the checkpoint is new; `meaning` is what determines the rows of a batch.
        """
        known = self.identity()
        if not known:
            # a claim that was killed half way leaves its own file, which does not belong to another pipeline
            own = files.unfinished(self.path / IDENTITY)
            if self.path.is_dir() and any(entry != own for entry in self.path.iterdir()):
                raise PipelineError(
                    f"{self.path} is not empty and was not created by a pipeline: name a new directory as `table`"
                )
            return
        if known["checkpointId"] != checkpoint_id:
            what = "does not exist yet" if checkpoint_id is None else "is another one"
            raise PipelineError(
                f"the table {self.path} belongs to the checkpoint {known['checkpoint']}, and this pipeline's "
                f"checkpoint {what}: "
                "its batch numbers would be mixed up. Put that checkpoint back, or name a new `table`"
            )
        changed = _changed(known["meaning"], meaning)
        if changed and self.batches():
            raise PipelineError(
                f"the pipeline's {', '.join(changed)} changed since {self.path} was begun: its batches would no longer "
                "match each other. Undo the change, or name a new `table` and a new `checkpoint`"
            )

    def claim(self, checkpoint: str, checkpoint_id: str, meaning: Mapping[str, Any]) -> None:
        """Store the owner of the table before its first batch; refuses as `refuse_other_owner`. A query that failed
        before the first batch may be changed."""
        self.refuse_other_owner(checkpoint_id, meaning)
        known = self.identity()
        if not known or _changed(known["meaning"], meaning):
            self.path.mkdir(parents=True, exist_ok=True)
            self.write_identity({"checkpoint": checkpoint, "checkpointId": checkpoint_id, "meaning": dict(meaning)})

    def write_identity(self, identity: Mapping[str, Any]) -> None:
        files.write_json(self.path / IDENTITY, identity)


def _changed(known: Mapping[str, Any], meaning: Mapping[str, Any]) -> list[str]:
    return [name for name in sorted({*known, *meaning}) if known.get(name) != meaning.get(name)]


def local_uri(path: str) -> str:
    """For Spark, whose default file system may be a cluster's own."""
    return f"file://{path}"


def _remove_spark_leftovers(place: Path) -> None:
    """Hadoop's checksum files and success marker, which readers of the table do not need."""
    for folder, _, names in os.walk(place):
        for name in names:
            if name.endswith(".crc") or name == "_SUCCESS":
                Path(folder, name).unlink()
