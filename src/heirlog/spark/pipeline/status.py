"""The progress of a pipeline, read from its checkpoint and from the brokers, whether it runs or not.

The running job is not involved, so the status works from another terminal, after a crash, and with any master. The
position of a partition is the end of the last batch that Spark committed.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from heirlog.protocol.errors import KafkaError
from heirlog.spark import clients
from heirlog.spark.offset_limits import LATEST, TopicPartition
from heirlog.spark.option_values import kafka_properties
from heirlog.spark.pipeline.checkpoint import last_commit, offset_log
from heirlog.spark.pipeline.report import Batch, Journal, Report, sums_of
from heirlog.spark.pipeline.spec import Pipeline, Topics

_RATE_BATCHES = 10


@dataclass(frozen=True, slots=True)
class PartitionStatus:
    """`latest` is the offset after the last record, None where no broker answered."""

    topic: str
    partition: int
    position: int
    latest: int | None

    @property
    def lag(self) -> int | None:
        return None if self.latest is None else max(0, self.latest - self.position)


@dataclass(frozen=True, slots=True)
class Status:
    """`rate` is in rows per second over the last batches; `trouble` says why the brokers' side is missing."""

    name: str
    committed: int
    partitions: list[PartitionStatus]
    sums: Report
    batches: list[Batch]
    rate: float | None
    trouble: str | None


def status(pipeline: Pipeline, timeout_s: float = 5.0) -> Status:
    """One look. Never raises for brokers that cannot be reached: `trouble` says so."""
    *_, batches = Journal(pipeline.checkpoint).read()
    committed = last_commit(pipeline.checkpoint)
    position = offset_log(pipeline.checkpoint, committed).offsets if isinstance(pipeline.source, Topics) else {}
    ends: dict[TopicPartition, int] = {}
    trouble = None
    if isinstance(pipeline.source, Topics) and position:
        try:
            ends = _latest(pipeline.source, position, timeout_s)
        except (OSError, KafkaError, ValueError) as error:
            trouble = str(error)
    partitions = [
        PartitionStatus(topic, partition, offset, ends.get((topic, partition)))
        for (topic, partition), offset in sorted(position.items())
    ]
    return Status(pipeline.name, committed, partitions, sums_of(pipeline), batches, _rate(batches), trouble)


def _latest(source: Topics, position: Mapping[TopicPartition, int], timeout_s: float) -> dict[TopicPartition, int]:
    with clients.connect(kafka_properties(source.spark_options), timeout_s) as client:
        found = client.list_offsets(dict.fromkeys(position, LATEST))
        return {where: end.offset for where, end in found.items()}


def _rate(batches: list[Batch]) -> float | None:
    recent = batches[-_RATE_BATCHES:]
    if not recent:
        return None
    since_ms = max(recent[-1].started_ms + recent[-1].took_ms - recent[0].started_ms, 1)
    return sum(batch.rows_in for batch in recent) * 1000 / since_ms


def age_ms(batch: Batch) -> int:
    """How long ago the batch was finished."""
    return max(0, int(time.time() * 1000) - batch.started_ms - batch.took_ms)
