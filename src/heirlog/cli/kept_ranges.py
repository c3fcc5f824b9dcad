"""Which of the offsets that an election gave up a broker has kept: loss reports, compared with `salvage list`.

A range belongs to the first report after the leader epoch in which its last record was written: a leader that was
elected on a lossy basis before that had the rest of the range. The files of a topic that was deleted are gone with it,
but a folder restored from a backup may have some: the topic's id decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from heirlog.cli import salvage
from heirlog.storage.identity import PARTITION_METADATA, parse_partition_metadata

if TYPE_CHECKING:
    from heirlog.metadata.loss_report import LossReport
    from heirlog.protocol.types import Uuid

Key: TypeAlias = "tuple[Uuid, int, int]"
"""Topic id, partition and leader epoch of an election: a topic that was created again may have had the same epochs."""


def by_report(reports: Sequence[LossReport], directories: Iterable[Path]) -> dict[Key, list[dict[str, Any]]]:
    """The rows of `salvage list` that belong to each report. Raises CommandError for a damaged file."""
    found: dict[Key, list[dict[str, Any]]] = {_key(report): [] for report in reports}
    for row in salvage.kept_rows(directories):
        # a file without a batch says nothing about offsets
        report = None if row["first_offset"] is None else _report_of(reports, row)
        if report is not None:
            found[_key(report)].append(row)
    return found


def _key(report: LossReport) -> Key:
    return report.topic_id, report.partition, report.election.leader_epoch


def _report_of(reports: Iterable[LossReport], row: Mapping[str, Any]) -> LossReport | None:
    path = Path(row["file"]).parent.parent / PARTITION_METADATA
    topic_id = parse_partition_metadata(path.read_bytes() if path.exists() else None)
    matching = [
        report
        for report in reports
        if (report.topic, report.partition) == (row["topic"], row["partition"])
        and row["written_epoch"] < report.election.leader_epoch <= row["leader_epoch"]
        and topic_id in (None, report.topic_id)
    ]
    return min(matching, key=lambda report: report.election.leader_epoch, default=None)


def kept_of(kept: Mapping[Key, list[dict[str, Any]]], report: LossReport) -> list[dict[str, Any]]:
    return kept.get(_key(report), [])


def sentences(reports: Iterable[LossReport], kept: Mapping[Key, list[dict[str, Any]]]) -> Iterator[str]:
    """What of each report's offsets is in the directories."""
    for report in reports:
        rows = kept_of(kept, report)
        loss = report.loss
        if loss.is_exact and not loss.records_max:
            continue
        where = f"{report.topic}-{report.partition}, leader epoch {report.election.leader_epoch}"
        yield f"{where}: {_coverage(report, rows)}"
        for row in rows:
            yield f"  offsets {row['first_offset']} to {row['end_offset'] - 1}, {row['records']} records: {row['file']}"


def _coverage(report: LossReport, rows: Sequence[Mapping[str, Any]]) -> str:
    loss = report.loss
    if not rows:
        holders = ", ".join(str(answer.broker) for answer in loss.held_by)
        where = f" (broker {holders} held them)" if holders else ""
        return f"nothing is kept in these folders{where}"
    spans = [(row["first_offset"], row["end_offset"]) for row in rows]
    if not loss.is_exact or loss.first_offset is None or loss.end_offset is None:
        return "kept, though the report does not say exactly which offsets were given up"
    missing = list(_missing(loss.first_offset, loss.end_offset, spans))
    if not missing:
        return "every offset that was given up is kept"
    ranges = ", ".join(str(first) if end - first == 1 else f"{first} to {end - 1}" for first, end in missing)
    return f"kept, but not the offsets {ranges}"


def _missing(first: int, end: int, spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Parts of [first, end) that no span covers."""
    for low, high in sorted(spans):
        if low > first:
            yield first, min(low, end)
        first = max(first, high)
        if first >= end:
            return
    yield first, end
