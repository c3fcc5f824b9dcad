"""The Parquet tables of an audit that the driver writes: one file each."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa

from heirlog.metadata.loss_report import Certainty
from heirlog.spark.audit.findings import AuditFinding
from heirlog.spark.audit.history import LeaderElected, StateChange, UnavailableWindow
from heirlog.spark.audit.schemas import ELECTIONS, FINDINGS, PARTITIONS, REPLICAS, STATES, WINDOWS
from heirlog.spark.audit.table_file import TableWriter
from heirlog.spark.audit.verdict import PartitionView


def write(path: Path, schema: pa.Schema, rows: Iterable[dict[str, Any]]) -> None:
    with TableWriter(path, schema) as writer:
        for row in rows:
            writer.add(row)


def write_findings(out: Path, findings: Iterable[AuditFinding]) -> None:
    write(out / "findings.parquet", FINDINGS, (finding.as_json() for finding in findings))


def write_elections(out: Path, elections: Iterable[LeaderElected], reported: Iterable[bool]) -> None:
    rows = (_election_row(election, known) for election, known in zip(elections, reported, strict=True))
    write(out / "elections.parquet", ELECTIONS, rows)


def _election_row(election: LeaderElected, reported: bool) -> dict[str, Any]:
    row = {name: getattr(election, name) for name in ELECTIONS.names if hasattr(election, name)}
    row |= {"basis": election.basis.value, "reported": reported if election.basis.is_lossy else None}
    if election.report is not None:
        loss = election.report.loss
        row |= {"first_offset": loss.first_offset, "end_offset": loss.end_offset, "certainty": loss.certainty.value}
    elif election.basis.is_lossy:
        row["certainty"] = Certainty.POSSIBLE.value
    return row


def write_windows(out: Path, windows: Iterable[UnavailableWindow]) -> None:
    write(out / "windows.parquet", WINDOWS, (window._asdict() for window in windows))


def state_row(change: StateChange) -> dict[str, Any]:
    state = change.state
    return {
        "topic": change.topic,
        "topic_id": change.topic_id,
        "partition": change.partition,
        "metadata_offset": change.metadata_offset,
        "timestamp_ms": change.timestamp_ms,
        "leader": state.leader,
        "leader_epoch": state.leader_epoch,
        "partition_epoch": state.partition_epoch,
        "replicas": list(state.replicas),
        "isr": list(state.isr),
        "elr": list(state.elr),
        "last_known_elr": list(state.last_known_elr),
        "min_isr": change.min_isr,
    }


def states_writer(out: Path) -> TableWriter:
    return TableWriter(out / "states.parquet", STATES)


def write_views(out: Path, views: Iterable[PartitionView]) -> None:
    """The tables `partitions` and `replicas`."""
    with (
        TableWriter(out / "partitions.parquet", PARTITIONS) as partitions,
        TableWriter(out / "replicas.parquet", REPLICAS) as replicas,
    ):
        for view in views:
            partitions.add(_partition_row(view))
            for row in _replica_rows(view):
                replicas.add(row)


def _partition_row(view: PartitionView) -> dict[str, Any]:
    state = view.state
    row: dict[str, Any] = {
        "topic": view.topic,
        "topic_id": view.topic_id,
        "partition": view.partition,
        "high_watermark": view.high_watermark,
        "reference": view.reference.copy.node,
    }
    if state is None:
        return row
    return row | {
        "replicas": list(state.replicas),
        "isr": list(state.isr),
        "elr": list(state.elr),
        "last_known_elr": list(state.last_known_elr),
        "leader": state.leader,
        "leader_epoch": state.leader_epoch,
        "min_isr": view.min_isr,
    }


def _replica_rows(view: PartitionView) -> Iterable[dict[str, Any]]:
    mark = view.high_watermark
    for log in view.replicas:
        known = max(mark, 0)
        yield {
            "topic": view.topic,
            "topic_id": view.topic_id,
            "partition": view.partition,
            "replica": log.copy.node,
            "path": log.copy.path,
            "stopped_cleanly": log.copy.stopped_cleanly,
            "role": view.role(log),
            "start_offset": log.start_offset,
            "end_offset": log.end_offset,
            "last_epoch": log.last_epoch,
            "high_watermark": log.copy.high_watermark,
            "partition_high_watermark": mark,
            "offsets_below_high_watermark": max(0, min(log.end_offset, known) - log.start_offset),
            "offsets_above_high_watermark": max(0, log.end_offset - known),
            "missing_below_high_watermark": max(0, known - log.end_offset),
            "segments": log.segments,
            "batches": log.batches,
            "records": log.records,
            "bytes": log.bytes,
        }
