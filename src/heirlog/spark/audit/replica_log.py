"""The segments of one log put together: where it starts and ends, which offsets it lacks, and whether its files agree.

    segment, segment, ...   each must begin where the one before ended
    leader-epoch-checkpoint does the first entry begin below the log? Then the oldest segments are missing
    checkpoints             a log that ends below its recovery point or high watermark has lost records

The log cleaner of Apache Kafka leaves gaps. So gaps below the offset up to which any replica was cleaned are none: the
cleaner's checkpoint says it, or a batch that holds fewer records than offsets.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from heirlog.spark.audit.findings import AuditFinding
from heirlog.spark.audit.inventory import LogCopy


class OffsetRange(NamedTuple):
    start: int
    end: int
    """Exclusive."""


_DAMAGE = (
    "batch-damaged",
    "framing",
    "unreadable",
    "offsets-missing",
    "offsets-go-back",
    "epoch-goes-back",
    "batch-doubled",
)
"""Findings that the batches themselves prove: no other file and no other replica is needed."""


@dataclass(slots=True, eq=False)
class ReplicaLog:
    """What the scan has found of one log."""

    copy: LogCopy
    start_offset: int = 0
    """Of the first record that readers may get."""
    end_offset: int = 0
    segments: int = 0
    batches: int = 0
    records: int = 0
    bytes: int = 0
    last_epoch: int = -1
    max_timestamp_ms: int = -1
    cleaned_to: int = 0
    gaps: list[OffsetRange] = field(default_factory=list)
    """Offsets that are not there, and that no other finding has named."""
    missing: list[OffsetRange] = field(default_factory=list)
    """All offsets that are not there, between start and end."""
    findings: list[AuditFinding] = field(default_factory=list)

    @property
    def is_damaged(self) -> bool:
        return any(finding.kind in _DAMAGE for finding in self.findings)

    @property
    def ranges(self) -> list[OffsetRange]:
        """What the log covers."""
        found, start = [], self.start_offset
        for gap in sorted(self.missing):
            if gap.start > start:
                found.append(OffsetRange(start, gap.start))
            start = max(start, gap.end)
        if self.end_offset > start:
            found.append(OffsetRange(start, self.end_offset))
        return found

    def found(self, kind: str, offset: int, sentence: str) -> None:
        copy = self.copy
        self.findings.append(AuditFinding(kind, copy.topic, copy.partition, copy.node, offset, sentence))


def put_together(copy: LogCopy, segments: Iterable[dict[str, Any]]) -> ReplicaLog:
    """The segments' rows (`segment_scan`) in the order of their base offsets."""
    log = ReplicaLog(copy, cleaned_to=copy.cleaned_to)
    expected = -1
    was_damaged = False
    for row in segments:
        base = row["base_offset"]
        if expected < 0:
            first = base
        elif base > expected:
            log.missing.append(OffsetRange(expected, base))
            if not was_damaged:
                log.gaps.append(OffsetRange(expected, base))
        elif base < expected:
            log.found(
                "offsets-go-back",
                base,
                f"segment {base:020d}.log begins below offset {expected}, where the one before it ends",
            )
        for gap in row["gaps"]:
            log.missing.append(OffsetRange(gap["start"], gap["end"]))
            if not gap["reported"]:
                log.gaps.append(OffsetRange(gap["start"], gap["end"]))
        _check_epoch(log, row)
        _add(log, row)
        expected, was_damaged = row["end_offset"], row["ends_damaged"]
    log.start_offset = copy.log_start_offset if expected < 0 else max(copy.log_start_offset, first)
    log.end_offset = max(expected, 0)
    if expected >= 0:
        _check_files(log, first, was_damaged)
    return log


def _check_epoch(log: ReplicaLog, row: dict[str, Any]) -> None:
    if row["batches"] and 0 <= row["first_epoch"] < log.last_epoch:
        log.found(
            "epoch-goes-back",
            row["first_offset"],
            f"the batch at offset {row['first_offset']} is of leader epoch {row['first_epoch']}, the segment before "
            f"ends in epoch {log.last_epoch}",
        )


def _add(log: ReplicaLog, row: dict[str, Any]) -> None:
    log.segments += 1
    for name in ("batches", "records", "bytes"):
        setattr(log, name, getattr(log, name) + row[name])
    if row["batches"]:
        log.last_epoch = row["last_epoch"]
    log.max_timestamp_ms = max(log.max_timestamp_ms, row["max_timestamp_ms"])
    log.cleaned_to = max(log.cleaned_to, row["rewritten_to"])
    for found in row["findings"]:
        if found["kind"] == "leader-epochs-wrong" and any(f.kind == found["kind"] for f in log.findings):
            continue  # one wrong entry, and every segment of that epoch says so
        log.found(found["kind"], found["offset"], found["sentence"])


def _check_files(log: ReplicaLog, first: int, was_damaged: bool) -> None:
    """The checkpoints against the log. was_damaged: it ends where it cannot be read."""
    copy = log.copy
    if copy.epochs:
        known_from, (last_epoch, last_start) = copy.epochs[0][1], copy.epochs[-1]
        if known_from < log.start_offset and log.start_offset == first and not copy.is_metadata:
            log.gaps.append(OffsetRange(known_from, first))
        if copy.stopped_cleanly and last_start > log.end_offset and not was_damaged:
            log.found(
                "leader-epochs-wrong",
                log.end_offset,
                f"leader-epoch-checkpoint says that epoch {last_epoch} begins at offset {last_start}; the log ends at "
                f"{log.end_offset}",
            )
    elif copy.stopped_cleanly and log.last_epoch >= 0:
        log.found("leader-epochs-wrong", log.start_offset, "leader-epoch-checkpoint is missing, empty or damaged")
    if copy.stopped_cleanly and copy.log_start_offset > log.end_offset:
        log.found(
            "checkpoint-wrong",
            log.end_offset,
            f"log-start-offset-checkpoint says {copy.log_start_offset}; the log ends at {log.end_offset}",
        )


def report_gaps(replicas: Sequence[ReplicaLog], *, cleaned_everywhere: bool) -> None:
    """Of one partition: turn gaps that the log cleaner did not make into findings.

    cleaned_everywhere: the topic is compacted, and not all replicas are there to say how far.
    """
    cleaned_to = max(log.cleaned_to for log in replicas)
    for log in replicas:
        for gap in log.gaps:
            if cleaned_everywhere or log.copy.was_being_cleaned or gap.end <= cleaned_to:
                continue
            names = [copy for copy in log.copy.segments if gap.start <= copy < gap.end]
            where = "" if names else ": no segment has them"
            log.found("offsets-missing", gap.start, f"offsets {gap.start} to {gap.end - 1} are missing{where}")
