"""The HTML page of an audit: one file without scripts or anything from elsewhere, with plots as inline SVG.

    findings          all kinds with their numbers, then the first ones
    availability      when partitions were under min ISR, and without a leader
    members           per partition: who led, and was in ISR, ELR and LastKnownELR, over time
    offsets           per partition: what each replica holds, lacks, and what elections gave up
    elections         by basis; those on a lossy basis one by one

Of partitions and rows the most interesting ones are shown. The page says how many are not; the tables have all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any

from pyarrow import parquet

from heirlog.spark.audit.findings import AuditFinding
from heirlog.spark.audit.history import NO_LEADER_WINDOW, UNDER_MIN_ISR, LeaderElected, MetadataHistory, loss_sentence
from heirlog.spark.audit.replica_log import OffsetRange
from heirlog.spark.audit.svg import HATCH, Bar, PlotRow, Style, rows_plot
from heirlog.spark.audit.verdict import PartitionView

FINDINGS_MAX = 500
PARTITIONS_MAX = 24
WINDOWS_MAX = 40
STATES_MAX = 1000

_AVAILABILITY = {
    UNDER_MIN_ISR: Style("under min ISR: acks=all is refused", "#e69f00"),
    NO_LEADER_WINDOW: Style("no leader", "#d55e00", height=8),
}
_MEMBERS = {
    "isr": Style("ISR", "#56b4e9"),
    "elr": Style("ELR", "#009e73"),
    "last-known": Style("LastKnownELR", "#cc79a7"),
    "leader": Style("leader", "#0072b2", height=6),
}
_OFFSETS = {
    "held": Style("below the high watermark", "#56b4e9"),
    "above": Style("above it", "#bbbbbb"),
    "lost": Style("given up by an election", "#d55e00", pattern=True),
    "missing": Style("missing", "#d55e00"),
}
_STYLE = """
body { font: 14px/1.45 sans-serif; color: #222; max-width: 62rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; margin: .5rem 0 1.5rem } td, th { text-align: left; padding: .15rem .7rem .15rem 0;
border-bottom: 1px solid #ddd; vertical-align: top } svg { width: 100%; margin: .3rem 0 1rem; font: 11px sans-serif }
.grid { stroke: #ddd } .ok { color: #006b4f } .bad { color: #b03a00 }
"""


def render(
    out: Path,
    cluster_id: str,
    views: Sequence[PartitionView],
    findings: Sequence[AuditFinding],
    history: MetadataHistory | None,
    reported: Sequence[bool],
) -> str:
    """The page of these partitions. reported: of each election of the history. Raises OSError.

    Reads the table `states`.
    """
    kinds = Counter(finding.kind for finding in findings)
    numbers = [
        ("partitions", len(views)),
        ("replicas", sum(len(view.replicas) for view in views)),
        ("records", sum(log.records for view in views for log in view.replicas)),
        ("bytes", sum(log.bytes for view in views for log in view.replicas)),
    ]
    verdict = f'<p class="bad">{len(findings)} findings.</p>' if findings else '<p class="ok">No findings.</p>'
    parts = [
        f"<h1>Audit of cluster {escape(cluster_id)}</h1>",
        verdict,
        _table(("", ""), [(name, f"{number:,}") for name, number in numbers]),
    ]
    if findings:
        parts += ["<h2>Findings</h2>", _table(("kind", "findings"), kinds.most_common()), _findings(findings)]
    if history is not None:
        chosen = _chosen(views, findings, history)
        parts += ["<h2>Availability</h2>", _availability(history)]
        parts += ["<h2>Members over time</h2>", _left_out(len(views) - len(chosen), "partitions")]
        parts += [_members(out, view, history) for view in chosen if view.state is not None]
        parts += ["<h2>Offsets</h2>", *(_offsets(view, history.elections) for view in chosen)]
        parts += ["<h2>Elections</h2>", _elections(history, reported)]
    body = "\n".join(part for part in parts if part)
    title = f"Audit of {escape(cluster_id)}"
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
        f"</head>\n<body>{HATCH}\n{body}\n</body></html>\n"
    )


def _findings(findings: Sequence[AuditFinding]) -> str:
    rows = [
        (
            finding.kind,
            f"{finding.topic}-{finding.partition}" if finding.topic else "",
            "metadata" if finding.replica < 0 else str(finding.replica),
            "" if finding.offset < 0 else str(finding.offset),
            finding.sentence,
        )
        for finding in findings[:FINDINGS_MAX]
    ]
    table = _table(("kind", "partition", "replica", "offset", ""), rows)
    return table + _left_out(len(findings) - len(rows), "findings")


def _chosen(
    views: Sequence[PartitionView], findings: Sequence[AuditFinding], history: MetadataHistory
) -> list[PartitionView]:
    """Those with findings first, then those that were unavailable most often."""
    wrong = Counter((finding.topic, finding.partition) for finding in findings)
    windows = Counter((window.topic, window.partition) for window in history.windows)

    def rank(view: PartitionView) -> tuple[int, int]:
        key = (view.topic, view.partition)
        return -wrong[key], -windows[key]

    return sorted(views, key=rank)[:PARTITIONS_MAX]


# availability and members


def _availability(history: MetadataHistory) -> str:
    if not history.windows:
        return "<p>Every partition had a leader and min ISR all the time.</p>"
    bars: dict[str, list[Bar]] = {}
    total: Counter[str] = Counter()
    for window in history.windows:
        name = f"{window.topic}-{window.partition}"
        took_ms = window.to_ms - window.from_ms
        total[name] += took_ms
        title = f"{window.kind}: {took_ms / 1000:.3f} s from {_time(window.from_ms)}"
        bars.setdefault(name, []).append(Bar(window.from_ms, window.to_ms, window.kind, title))
    # the narrow bar is drawn over the wide one
    shown = [
        PlotRow(name, sorted(bars[name], key=lambda bar: bar.kind == NO_LEADER_WINDOW))
        for name, _ in total.most_common(WINDOWS_MAX)
    ]
    plot = rows_plot("When partitions were not available", shown, _AVAILABILITY, *_axis(history), _time_of_day)
    return plot + _left_out(len(bars) - len(shown), "partitions that were unavailable for a shorter time")


def _members(out: Path, view: PartitionView, history: MetadataHistory) -> str:
    wanted = [("topic_id", "=", view.topic_id), ("partition", "=", view.partition)]
    states = parquet.read_table(out / "states.parquet", filters=wanted).to_pylist()
    shown = states[-STATES_MAX:]
    nodes = sorted({node for state in shown for node in (*state["replicas"], *state["isr"], *state["elr"])})
    drawn = [PlotRow(f"replica {node}", _bars_of(node, shown, history.last_ms)) for node in nodes]
    title = f"{view.topic}-{view.partition}"
    return rows_plot(title, drawn, _MEMBERS, *_axis(history), _time_of_day) + _left_out(
        len(states) - len(shown), f"earlier states of {title}"
    )


def _bars_of(node: int, states: Sequence[dict[str, Any]], end_ms: int) -> list[Bar]:
    """One bar as long as the lists of the node do not change."""
    bars: list[Bar] = []
    open_since: dict[str, tuple[int, str]] = {}
    for state in [*states, None]:
        held = set() if state is None else _lists_of(node, state)
        at_ms = end_ms if state is None else state["timestamp_ms"]
        for kind in list(open_since):
            if kind not in held:
                since_ms, title = open_since.pop(kind)
                bars.append(Bar(since_ms, at_ms, kind, f"{title} to {_time(at_ms)}"))
        for kind in held - open_since.keys():
            assert state is not None
            epoch = f" in epoch {state['leader_epoch']}" if kind == "leader" else ""
            open_since[kind] = (at_ms, f"{_MEMBERS[kind].label}{epoch} from {_time(at_ms)}")
    return sorted(bars, key=lambda bar: bar.kind == "leader")


def _lists_of(node: int, state: dict[str, Any]) -> set[str]:
    lists = {name: state[name] for name in ("isr", "elr")}
    lists |= {"last-known": state["last_known_elr"], "leader": [state["leader"]]}
    return {kind for kind, members in lists.items() if node in members}


def _axis(history: MetadataHistory) -> tuple[int, int]:
    return max(history.first_ms, 0), max(history.last_ms, 1)


# offsets


def _offsets(view: PartitionView, elections: Sequence[LeaderElected]) -> str:
    end = max([log.end_offset for log in view.replicas] + [view.high_watermark])
    first = min(log.start_offset for log in view.replicas)
    drawn = []
    mark = view.high_watermark if view.high_watermark >= 0 else end
    for log in view.replicas:
        bars = []
        for start, stop in log.ranges:
            if start < mark:
                bars.append(Bar(start, min(stop, mark), "held", f"offsets {start} to {min(stop, mark) - 1}"))
            if stop > mark:
                bars.append(Bar(max(start, mark), stop, "above", f"offsets {max(start, mark)} to {stop - 1}"))
        lacking = [gap for gap in log.missing if gap.end > view.compared_from]
        if log.copy.node in view.members and log.end_offset < view.high_watermark:
            lacking.append(OffsetRange(log.end_offset, view.high_watermark))
        bars += [Bar(start, stop, "missing", f"offsets {start} to {stop - 1}") for start, stop in lacking]
        drawn.append(PlotRow(f"{log.copy.node} ({view.role(log)})", bars))
    lost = list(_lost(view, elections))
    if lost:
        drawn.append(PlotRow("elections", lost))
        end = max([end, *(int(bar.end) for bar in lost)])
    known = view.high_watermark if view.high_watermark >= 0 else "unknown"
    title = f"{view.topic}-{view.partition}: high watermark {known}"
    return rows_plot(title, drawn, _OFFSETS, first, end, lambda value: f"{value:,.0f}")


def _lost(view: PartitionView, elections: Iterable[LeaderElected]) -> Iterable[Bar]:
    for election in elections:
        if (election.topic_id, election.partition) != (view.topic_id, view.partition) or election.report is None:
            continue
        loss = election.report.loss
        if loss.end_offset:
            yield Bar(loss.first_offset or 0, loss.end_offset, "lost", loss_sentence(election))


# elections


def _elections(history: MetadataHistory, reported: Sequence[bool]) -> str:
    by_basis = Counter(election.basis for election in history.elections)
    rows = [(basis.value, str(count), "yes" if basis.is_lossy else "no") for basis, count in by_basis.most_common()]
    lossy = [
        (
            _time(election.timestamp_ms),
            f"{election.topic}-{election.partition}",
            loss_sentence(election),
            "yes" if known else "no",
        )
        for election, known in zip(history.elections, reported, strict=True)
        if election.basis.is_lossy
    ]
    parts = [_table(("basis", "elections", "may lose records"), rows)]
    if lossy:
        parts.append(_table(("time", "partition", "what it gave up", "reported"), lossy[:FINDINGS_MAX]))
        parts.append(_left_out(len(lossy) - FINDINGS_MAX, "elections"))
    return "\n".join(parts)


# text


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = ["<table>"]
    if any(head):
        lines.append("<tr>" + "".join(f"<th>{escape(name)}</th>" for name in head) + "</tr>")
    for row in rows:
        lines.append("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>")
    return "\n".join([*lines, "</table>"])


def _left_out(count: int, what: str) -> str:
    return f"<p>{count} {escape(what)} are not shown; the tables have them.</p>" if count > 0 else ""


def _time(timestamp_ms: float) -> str:
    return datetime.fromtimestamp(timestamp_ms / 1000, UTC).isoformat(sep=" ", timespec="milliseconds")[:23]


def _time_of_day(timestamp_ms: float) -> str:
    return _time(timestamp_ms)[5:19]
