"""The content of a checkpoint: Spark's state of a query, and the pipeline that owns it.

    metadata           the query's id, by which tables know it                       Spark's
    offsets/N          where batch N ends, written before it begins                  Spark's
    commits/N          batch N is done                                               Spark's
    sources/0/N        which files came, for a source of files                       Spark's
    heirlog-journal.json                                                             report.py
    heirlog-pipeline.json   what this query reads and writes                         here

Offsets have a meaning only together with their source and their sink. A pipeline that takes over another pipeline's
checkpoint would silently skip rows that its own sink never received. So a checkpoint serves one source and one sink.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from heirlog.spark.offsets import StreamOffset, stream_offset
from heirlog.spark.pipeline.files import read_json, sync_directory, sync_file, write_json
from heirlog.spark.pipeline.spec import Files, Pipeline, PipelineError, Table, TopicSink
from heirlog.spark.pipeline.table import BatchTable

OWNER = "heirlog-pipeline.json"
_PATTERN = re.compile(r"[][{}*?\\]")


def checkpoint_id(checkpoint: str) -> str | None:
    """The id that Spark gave the query of this checkpoint; None if the query has not begun or the checkpoint is
    elsewhere.
    """
    found = read_json(Path(checkpoint) / "metadata")
    return str(found["id"]) if found else None


def known_id(checkpoint: str) -> str:
    known = checkpoint_id(checkpoint)
    if known is None:
        raise PipelineError(
            f"Spark's driver keeps no checkpoint in {checkpoint} that this process sees, so a batch that runs again "
            "cannot be recognised: put it on a file system that both see at the same path"
        )
    return known


def refuse_other_owner(pipeline: Pipeline) -> None:
    """Raise PipelineError unless the checkpoint is new or this pipeline's own."""
    checkpoint, sink = pipeline.checkpoint, pipeline.sink
    known, mine = read_json(Path(checkpoint) / OWNER), _owner(pipeline)
    for what, verb in (("source", "reads"), ("sink", "writes to")):
        if known and known[what] != mine[what]:
            raise PipelineError(
                f"the checkpoint {checkpoint} belongs to a pipeline that {verb} {_named(known[what])}, and this one "
                f"{verb} {_named(mine[what])}: give it a `checkpoint` of its own"
            )
    done = last_commit(checkpoint)
    if done >= 0 and isinstance(sink, Table) and sink.format == "parquet" and not BatchTable(sink.path).identity():
        raise PipelineError(
            f"the checkpoint {checkpoint} has {done + 1} finished batches, and the table {sink.path} has none of them: "
            "put that table back, or name a new `checkpoint`"
        )


def claim(pipeline: Pipeline) -> None:
    """Store the owner of the checkpoint, in its first batch; refuses as `refuse_other_owner` does."""
    refuse_other_owner(pipeline)
    file = Path(pipeline.checkpoint) / OWNER
    if not file.exists():
        write_json(file, _owner(pipeline))


def _owner(pipeline: Pipeline) -> dict[str, Any]:
    """Paths are relative to the checkpoint, so that a folder with all of them may be moved. The path of a Parquet table
    is not stored: the table itself names its checkpoint, wherever the table is.
    """
    source, sink = pipeline.source, pipeline.sink
    if isinstance(source, Files):
        reads: dict[str, Any] = {"files": _seen_from(pipeline.checkpoint, source.path)}
    else:
        reads = {"topics": list(source.names)} if source.pattern is None else {"pattern": source.pattern}
    if isinstance(sink, TopicSink):
        writes = {"topic": sink.topic}
    else:
        places = {"parquet": "", "delta": _seen_from(pipeline.checkpoint, sink.path), "iceberg": sink.path}
        writes = {"table": places[sink.format]}
    return {"source": reads, "sink": writes}


def _seen_from(checkpoint: str, place: str) -> str:
    return place if "://" in place else os.path.relpath(place, checkpoint)


def _named(place: dict[str, Any]) -> str:
    ((kind, value),) = place.items()
    return f"{kind} {', '.join(value) if isinstance(value, list) else value or 'of Parquet'}"


def last_commit(checkpoint: str) -> int:
    """The last batch that Spark has committed, -1 for none."""
    commits = Path(checkpoint) / "commits"
    if not commits.is_dir():
        return -1
    return max((int(name) for name in os.listdir(commits) if name.isdigit()), default=-1)


def offset_log(checkpoint: str, batch_id: int) -> StreamOffset:
    """The end offsets of a batch of a topic source, which Spark stores before the batch begins; empty if there are
    none.
    """
    try:
        text = (Path(checkpoint) / "offsets" / str(batch_id)).read_text(encoding="utf-8")
    except FileNotFoundError:
        return StreamOffset({})
    last = json.loads(text.splitlines()[-1])
    # a source of files notes something else
    return stream_offset(last) if isinstance(last, dict) and "logOffset" not in last else StreamOffset({})


def flush_plan(checkpoint: str, batch_id: int) -> None:
    """Flush what Spark has stored about this batch; Spark itself does not wait for that. If a power cut removed it and
    left the batch, other rows would get the batch's number and would count as written.
    """
    root = Path(checkpoint)
    planned = [root / "metadata", root / "offsets" / str(batch_id)]
    for log in sorted(root.glob("sources/*")):
        # a source of files notes them in a log with numbers of its own; the newest is this batch's or an earlier one
        noted = [file for file in log.iterdir() if file.name[0].isdigit()]
        planned += [max(noted, key=lambda file: int(file.name.split(".")[0]))] if noted else []
    for file in planned:
        if file.exists():
            sync_file(file)
            sync_directory(file.parent)


def refuse_patterns(names: Iterable[str]) -> None:
    """Raises PipelineError for names of files that look like patterns.

    With such a file in a batch, Spark 4.2 reads every other file of the batch again: it treats all paths as matches of
    the pattern."""
    odd = sorted(name for name in names if _PATTERN.search(name))
    if odd:
        raise PipelineError(
            f"Spark would read the name of {odd[0]} for a pattern and read other files twice: rename it, without any "
            "of {}[]*?\\"
        )


def planned_files(checkpoint: str) -> list[str]:
    """The files of the newest batch of a file source."""
    noted = [file for log in Path(checkpoint).glob("sources/*") for file in log.iterdir() if file.name[0].isdigit()]
    if not noted:
        return []
    newest = max(noted, key=lambda file: int(file.name.split(".")[0]))
    lines = newest.read_text(encoding="utf-8").splitlines()[1:]
    return [unquote(json.loads(line)["path"]) for line in lines]
