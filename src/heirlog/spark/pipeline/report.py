"""What a pipeline has done: per batch, in sums, and as a report for the user.

The journal is one small file in the checkpoint, replaced atomically after each batch. It has sums over all batches, and
the last hundred batches one by one. Its last batch number shows whether a batch is already counted, so a batch that
runs again after a kill changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from heirlog.spark.offset_limits import TopicPartition
from heirlog.spark.offsets import StreamOffset
from heirlog.spark.pipeline.files import read_json, write_json
from heirlog.spark.pipeline.spec import Pipeline

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
    """Losses that the source skipped before this batch (heirlog.spark.loss)."""


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


def sums_of(pipeline: Pipeline) -> Report:
    """Over all finished batches. Rejected rows that a query of their own writes are rows of that query."""
    _, sums, _ = Journal(pipeline.checkpoint).read()
    for part in pipeline.parts[1:]:
        sums.rejected += Journal(part.checkpoint).read()[1].rows_out
    return sums


def covered_by(before: StreamOffset, after: StreamOffset, first_seen: Mapping[TopicPartition, int]) -> Offsets:
    """The offsets of a batch between two ends; `first_seen` is used for partitions that `before` does not have."""
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
