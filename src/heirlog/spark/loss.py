"""Records that should exist and do not: classified by cause, and refused, skipped or written to a quarantine table.

    retention   the log now starts after the offset where reading should continue    --> continue at the log start
    truncated   the log diverges below that offset: records read there were replaced --> continue there (KIP-320)
    recreated   the topic was deleted and recreated under its name (KIP-516)         --> continue at its start
    beyond      the log ends below that offset, and the cause is unknown: an offset  --> continue at the log end
                that never existed, or a truncation or a new topic without known
                epochs
    deleted     the topic or partition does not exist any more                       --> nothing to continue with
    unsubscribed  the query no longer reads the topic or partition                   --> nothing to continue with

`fail` raises `DataLoss` before a record of the batch is read. `skip` and `quarantine` continue. The loss is in the
offset of the batch that skipped it, so that a repeated batch does the same. `quarantine` also writes it to a table of
its own: one Parquet file per loss, named by its content, so that a repetition writes nothing new.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from typing import Any

from heirlog.spark.offset_limits import TopicPartition
from heirlog.spark.options import OnDataLoss, Options


class Cause(Enum):
    RETENTION = "retention"
    TRUNCATED = "truncated"
    RECREATED = "recreated"
    BEYOND = "beyond"
    DELETED = "deleted"
    UNSUBSCRIBED = "unsubscribed"


_SENTENCES = {
    Cause.RETENTION: "records {first} to {last} were deleted before they were read (retention, or DeleteRecords)",
    Cause.TRUNCATED: "records {first} to {last}, which were read, are no longer in the log, which was truncated to "
    "{resume} (an unclean leader election, or acknowledged records lost)",
    Cause.RECREATED: "the topic was deleted and created again; the old topic's unread records, from offset {first} on, "
    "are lost",
    Cause.BEYOND: "reading should continue at offset {until}, but the log ends at {resume}: that offset never existed, "
    "or the log was truncated or the topic created again",
    Cause.DELETED: "the partition was deleted; its unread records, from offset {first} on, are lost",
    Cause.UNSUBSCRIBED: "the query does not read it any more; its unread records, from offset {first} on, stay unread",
}


@dataclass(frozen=True, slots=True, order=True)
class Loss:
    """first to until (exclusive): the affected offsets; -1 if unknown. resume: the offset to continue from.

    recovery: the election that gave them up, if the cluster reports it (`recoveries.py`). It is shown, but not compared
    between losses: a report may come after the loss was found.
    """

    topic: str
    partition: int
    first: int
    until: int
    resume: int
    cause: str
    recovery: str = field(default="", compare=False)

    @property
    def topic_partition(self) -> TopicPartition:
        return self.topic, self.partition

    def __str__(self) -> str:
        sentence = _SENTENCES[Cause(self.cause)].format(
            first=self.first, last=self.until - 1, until=self.until, resume=self.resume
        )
        if self.cause == Cause.TRUNCATED.value and self.first < 0:
            sentence = (
                f"records before {self.until} were read from another log: the leader does not know their leader epoch"
            )
        return f"{self.topic}-{self.partition}: {sentence}{f'; {self.recovery}' if self.recovery else ''}"

    def as_json(self) -> dict[str, Any]:
        given = asdict(self)
        if not self.recovery:
            del given["recovery"]
        return given

    @classmethod
    def from_json(cls, given: dict[str, Any]) -> Loss:
        """Raises ValueError, TypeError."""
        Cause(given["cause"])
        return cls(**given)


class DataLoss(RuntimeError):
    """Records were lost and onDataLoss is fail. The query continues only if a user decides so."""

    def __init__(self, losses: Sequence[Loss]) -> None:
        super().__init__(
            "Some data may have been lost: "
            + "; ".join(map(str, losses))
            + ". To continue without it, set onDataLoss to skip (failOnDataLoss to false), or to quarantine to keep a "
            "table of what was lost"
        )
        self.losses = tuple(losses)

    def __reduce__(self) -> tuple[type[DataLoss], tuple[tuple[Loss, ...]]]:
        return DataLoss, (self.losses,)


class OtherTopics(RuntimeError):
    """The checkpoint is of other topics than the query reads: nothing is lost, and skipping would be wrong advice."""

    def __init__(self, topics: Sequence[str]) -> None:
        named = f"the topic{'s' if len(topics) > 1 else ''} {', '.join(topics)}"
        super().__init__(
            f"the checkpoint has offsets of {named} that this query does not read. A checkpoint belongs to one query: "
            "give another query another checkpointLocation. If this query is to read less than before, start it once "
            "with onDataLoss=skip"
        )
        self.topics = tuple(topics)

    def __reduce__(self) -> tuple[type[OtherTopics], tuple[tuple[str, ...]]]:
        return OtherTopics, (self.topics,)


def handle(losses: Sequence[Loss], options: Options) -> None:
    """As onDataLoss says. Raises DataLoss, OtherTopics, or OSError if the quarantine cannot be written."""
    if not losses:
        return
    if options.on_data_loss is OnDataLoss.FAIL:
        others = sorted({loss.topic for loss in losses if loss.cause == Cause.UNSUBSCRIBED.value})
        if others:
            raise OtherTopics(others)
        raise DataLoss(losses)
    if options.on_data_loss is OnDataLoss.QUARANTINE and options.quarantine_path is not None:
        for loss in losses:
            write_to_quarantine(options.quarantine_path, loss)


def write_to_quarantine(path: str, loss: Loss) -> None:
    """path: a directory, or a URI of a file system that Arrow knows (s3://, hdfs://, gs://)."""
    import pyarrow as pa
    from pyarrow import fs, parquet

    system, directory = fs.FileSystem.from_uri(path) if "://" in path else (fs.LocalFileSystem(), path)
    system.create_dir(directory, recursive=True)
    same = replace(loss, recovery="")
    name = hashlib.sha256(json.dumps(same.as_json(), sort_keys=True).encode()).hexdigest()[:32]
    target = f"{directory}/loss-{name}.parquet"
    if system.get_file_info(target).type != fs.FileType.NotFound:
        return
    # readers of a table skip names that begin with a dot
    staged = f"{directory}/.{name}.parquet"
    parquet.write_table(pa.Table.from_pylist([asdict(loss)]), staged, filesystem=system)
    system.move(staged, target)
