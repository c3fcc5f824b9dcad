"""An audit from its directories to its tables: the order in which everything is done.

inventory -> scan (Spark) -> logs put together -> metadata history -> comparison (Spark) -> findings -> tables
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from heirlog.protocol.types import METADATA_TOPIC
from heirlog.spark.audit import page, tables, verdict
from heirlog.spark.audit.findings import AuditFinding
from heirlog.spark.audit.history import MetadataHistory
from heirlog.spark.audit.inventory import Inventory
from heirlog.spark.audit.job import Job, LogToCompare
from heirlog.spark.audit.log_reader import keys_of
from heirlog.spark.audit.metadata_log import MetadataLogFiles
from heirlog.spark.audit.replica_log import ReplicaLog, put_together
from heirlog.spark.audit.verdict import PartitionView

PAGE = "audit.html"
Say = Callable[[str], None]


@dataclass(slots=True)
class Audit:
    """What an audit found. The tables below `out` have it all."""

    out: Path
    partitions: int = 0
    replicas: int = 0
    records: int = 0
    bytes: int = 0
    findings: list[AuditFinding] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        return {
            "partitions": self.partitions,
            "replicas": self.replicas,
            "records": self.records,
            "findings": [finding.as_json() for finding in self.findings],
        }


def run(spark: SparkSession, inventory: Inventory, out: Path, say: Say = lambda line: None) -> Audit:
    """Audit the logs of the inventory and write the tables. Raises OSError and what Spark raises.

    say: called with what is done next.
    """
    job = Job(spark, out)
    units = list(inventory.units())
    say(f"reading {len(units)} segments of {len(inventory.logs)} logs")
    job.scan(units)
    logs = _put_together(inventory, job)
    say("reading the metadata log")
    history = _history(logs, out)
    views = verdict.views(inventory, logs, history)
    say(f"comparing the replicas of {len(views)} partitions")
    compared_from = {log.copy.number: view.compared_from for view in views for log in view.replicas}
    differences = job.differences(_compared(views))
    breaks = job.breaks(compared_from)
    findings = [
        *inventory.findings,
        *(finding for log in logs.values() for finding in log.findings),
        *(finding for view in views for finding in verdict.lacking(view)),
        *verdict.judge_differences(views, differences, logs),
        *verdict.judge_breaks(views, breaks, logs),
    ]
    reported: list[bool] = []
    if history is not None:
        findings += history.findings
        if history.is_complete:
            findings += verdict.missing_replicas(inventory, views, history)
        reports = {key for log in verdict.report_logs(inventory) for key in keys_of(log.path)}
        reported = [verdict.is_reported(election, reports) for election in history.elections]
        findings += verdict.unreported(history.elections, reports)
        tables.write_elections(out, history.elections, reported)
        tables.write_windows(out, history.windows)
    audit = Audit(
        out,
        findings=sorted(
            verdict.without_consequences(findings), key=lambda f: (f.topic, f.partition, f.replica, f.offset, f.kind)
        ),
    )
    of_topics = [view for view in views if view.topic != METADATA_TOPIC]
    audit.partitions = len(of_topics)
    audit.replicas = sum(len(view.replicas) for view in of_topics)
    audit.records = sum(log.records for view in of_topics for log in view.replicas)
    audit.bytes = sum(log.bytes for log in logs.values())
    tables.write_views(out, views)
    tables.write_findings(out, audit.findings)
    (out / PAGE).write_text(
        page.render(out, inventory.cluster_id, of_topics, audit.findings, history, reported), "utf-8"
    )
    return audit


def _put_together(inventory: Inventory, job: Job) -> dict[int, ReplicaLog]:
    """By the logs' numbers; a log without segments is empty."""
    logs = {copy.number: ReplicaLog(copy, cleaned_to=copy.cleaned_to) for copy in inventory.logs}
    for number, rows in groupby(job.segments(), key=itemgetter("log")):
        logs[number] = put_together(inventory.logs[number], rows)
    return logs


def _history(logs: dict[int, ReplicaLog], out: Path) -> MetadataHistory | None:
    """Of the newest copy of the metadata log that is not damaged, or of the newest one; None if there is none."""
    copies = [log for log in logs.values() if log.copy.is_metadata]
    if not copies:
        return None
    chosen = max(copies, key=lambda log: (not log.is_damaged, log.last_epoch, log.end_offset, log.copy.path))
    with tables.states_writer(out) as states:
        history = MetadataHistory(lambda change: states.add(tables.state_row(change)))
        history.is_complete = not chosen.is_damaged
        copy = MetadataLogFiles(chosen.copy.path)
        base = copy.base()
        begins = 0
        if base is not None:
            begins = base.id.end_offset
            history.begin(base.records(), begins - 1, base.id.epoch, base.last_contained_log_timestamp_ms)
        for batch in copy.batches(begins):
            history.batch(batch)
        history.ended()
    for log in copies:
        one = MetadataLogFiles(log.copy.path)
        one.check_snapshots()
        for name, why in one.damaged_snapshots.items():
            log.found("metadata-snapshot-damaged", -1, f"{name}: {why}")
    return history


def _compared(views: Sequence[PartitionView]) -> list[LogToCompare]:
    return [
        LogToCompare(log.copy.number, view.number, view.compared_from, view.rank(log), log.ranges)
        for view in views
        for log in view.replicas
    ]
