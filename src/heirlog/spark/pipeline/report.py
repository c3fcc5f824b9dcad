"""What a pipeline has done: per batch, in sums, and for the person who started it.

The journal is one small file in the checkpoint, replaced whole after each batch: sums over all batches, and the last
hundred one by one. A batch is counted once: its number says whether it is in the sums already, so a batch that runs
again after a kill changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from heirlog.spark.offsets import StreamOffset, stream_offset
from heirlog.spark.options import TopicPartition
from heirlog.spark.pipeline.files import read_json, sync_directory, sync_file, write_json

KEPT_BATCHES = 100
KEPT_LOSSES = 100
Offsets = dict[str, dict[str, list[int]]]
"""topic -> partition -> [first offset, offset after the last]"""


@dataclass(frozen=True, slots=True)
class Batch:
    """One finished batch. `rows_in` counts what came from the source, `rejected` what of it did not parse."""

    batch_id: int
    rows_in: int
    rows_out: int
    rejected: int
    offsets: Offsets
    started_ms: int
    took_ms: int
    losses: list[dict[str, Any]] = field(default_factory=list)
    """What the source stepped over before this batch (heirlog.spark.loss)."""


@dataclass(slots=True)
class Report:
    """Sums over batches."""

    batches: int = 0
    rows_in: int = 0
    rows_out: int = 0
    rejected: int = 0
    offsets: Offsets = field(default_factory=dict)
    losses: list[dict[str, Any]] = field(default_factory=list)
    """Those of all batches; the last hundred are kept."""
    lost: dict[str, int] = field(default_factory=dict)
    """How many losses of each cause."""

    def add(self, batch: Batch) -> None:
        self.batches += 1
        self.rows_in += batch.rows_in
        self.rows_out += batch.rows_out
        self.rejected += batch.rejected
        self.losses = [*self.losses, *batch.losses][-KEPT_LOSSES:]
        for loss in batch.losses:
            self.lost[loss["cause"]] = self.lost.get(loss["cause"], 0) + 1
        for topic, partitions in batch.offsets.items():
            covered = self.offsets.setdefault(topic, {})
            for partition, (first, after) in partitions.items():
                start = min(covered[partition][0], first) if partition in covered else first
                covered[partition] = [start, after]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


class Journal:
    """The file of a checkpoint's finished batches."""

    def __init__(self, checkpoint: str) -> None:
        self.path = Path(checkpoint) / "heirlog-journal.json"

    def read(self) -> tuple[int, Report, list[Batch]]:
        """The last number counted (-1 for none), the sums, and the last batches, oldest first."""
        found = read_json(self.path)
        if not found:
            return -1, Report(), []
        return found["through"], Report(**found["sums"]), [Batch(**batch) for batch in found["batches"]]

    def add(self, batch: Batch) -> None:
        through, sums, batches = self.read()
        if batch.batch_id <= through:
            return
        sums.add(batch)
        content = {
            "through": batch.batch_id,
            "sums": sums.as_json(),
            "batches": [asdict(known) for known in (*batches, batch)[-KEPT_BATCHES:]],
        }
        write_json(self.path, content)


def offset_log(checkpoint: str, batch_id: int) -> StreamOffset:
    """Where a batch of a topic source ends, as Spark noted it before the batch began; empty where there is none."""
    try:
        text = (Path(checkpoint) / "offsets" / str(batch_id)).read_text(encoding="utf-8")
    except FileNotFoundError:
        return StreamOffset({})
    last = json.loads(text.splitlines()[-1])
    # a source of files notes something else
    return stream_offset(last) if isinstance(last, dict) and "logOffset" not in last else StreamOffset({})


def flush_plan(checkpoint: str, batch_id: int) -> None:
    """What Spark noted of this batch is on the disk when this returns; Spark itself does not wait for that. If a power
    cut took it and left the batch, other rows would be planned under its number, and taken for written."""
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


def covered_by(before: StreamOffset, after: StreamOffset, first_seen: Mapping[TopicPartition, int]) -> Offsets:
    """The offsets of a batch between two ends; `first_seen` stands in for partitions that `before` does not know."""
    starts = {**first_seen, **after.resumed(before)}
    covered: dict[TopicPartition, list[int]] = {}
    for where, end in sorted(after.offsets.items()):
        start = starts.get(where, end)
        if end > start:
            covered[where] = [start, end]
    return _by_topic(covered)


def _by_topic(covered: Mapping[TopicPartition, list[int]]) -> Offsets:
    grouped: Offsets = {}
    for (topic, partition), span in covered.items():
        grouped.setdefault(topic, {})[str(partition)] = span
    return grouped
