"""What the timeline of a chaos drill shows: from faults, changes, committed metadata and answers to rows and spans.

per node         its faults; which controller was active
per partition    availability: no leader, an ISR below min ISR, no acknowledgement although a client was writing
                 a row for each broker that was a replica: leader, ISR, ELR, last known ELR, or out of sync
                 a mark for each lossy election
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from heirlog.drill.chaos_faults import FaultEvent
from heirlog.drill.chaos_judge import basis_of, lossy_elections
from heirlog.drill.chaos_plan import LINK_FAULTS, LONG_FAULTS
from heirlog.drill.chaos_record import Answered
from heirlog.drill.committed_log import CommittedLog, PartitionChange
from heirlog.drill.timeline import Group, Row, Span
from heirlog.metadata.state import PartitionRegistration
from heirlog.protocol.types import BrokerId

LEGEND = {
    "fault": "fault of a node or disk",
    "link-fault": "fault of its links",
    "long-fault": "fault of several nodes",
    "change": "operator's change",
    "failed-change": "change that failed",
    "leader": "leader (active controller)",
    "isr": "in the ISR",
    "elr": "in the ELR",
    "last-known": "in the last known ELR",
    "out": "replica out of sync",
    "no-leader": "no leader",
    "under-min-isr": "ISR below min ISR",
    "no-answer": "no acknowledgement",
    "mark": "lossy election",
}
GAP_MS = 1_000
"""A writer that waited longer than this for an acknowledgement in a partition found it unavailable."""


def rows(
    nodes: Sequence[tuple[int, str]],
    faults: Sequence[FaultEvent],
    changes: Sequence[FaultEvent],
    log: CommittedLog,
    answered: Sequence[Answered],
    topics: Iterable[str],
    window: tuple[int, int],
) -> list[Group]:
    """nodes: (id, name). window: (begin, end) of the writing, in milliseconds of `now_ms`."""
    end_ms = window[1]
    done = [faults_of(node, name, faults, end_ms) for node, name in nodes]
    operators = Row("operator")
    for event in changes:
        kind = "failed-change" if event.text.startswith("failed") else "change"
        operators.spans.append(Span(event.begin_ms, event.end_ms or end_ms, kind, f"{event.kind} {event.text}"))
    found = [Group("Faults", [*done, operators, active_controller(log, dict(nodes), end_ms)])]
    for topic in topics:
        of_topic = [change for change in log.changes if change.topic == topic]
        for index in sorted({change.index for change in of_topic}):
            own = [change for change in of_topic if change.index == index]
            acknowledged = [one.answered_ms for one in answered if (one.topic, one.partition) == (topic, index)]
            found.append(partition_rows(f"{topic}-{index}", own, acknowledged, window))
    return found


def faults_of(node: int, name: str, faults: Sequence[FaultEvent], end_ms: int) -> Row:
    row = Row(name)
    for event in faults:
        if node in event.nodes:
            kind = "link-fault" if event.kind in LINK_FAULTS else "fault"
            kind = "long-fault" if event.kind in LONG_FAULTS else kind
            row.spans.append(Span(event.begin_ms, event.end_ms or end_ms, kind, f"{event.kind} {event.text}"))
    return row


def active_controller(log: CommittedLog, names: dict[int, str], end_ms: int) -> Row:
    row = Row("active controller")
    for number, (at_ms, node) in enumerate(log.controllers):
        until_ms = log.controllers[number + 1][0] if number + 1 < len(log.controllers) else end_ms
        # neighbours have the same colour: a gap of a pixel shows where one follows the other
        row.spans.append(Span(at_ms + 1, until_ms, "active", names.get(node, str(node))))
    return row


def partition_rows(
    title: str, changes: Sequence[PartitionChange], answered_ms: Sequence[int], window: tuple[int, int]
) -> Group:
    """changes: of this partition, in order, also over several topics that had its name. answered_ms: times of
    acknowledgements; none for a partition that no client of the drill writes."""
    available, answers = Row("availability"), Row("acknowledgements")
    replicas: dict[BrokerId, Row] = {}
    for number, change in enumerate(changes):
        if change.after is None:
            continue
        begin_ms = change.at_ms
        end_ms = changes[number + 1].at_ms if number + 1 < len(changes) else window[1]
        text = described(change.after)
        if change.after.leader < 0:
            available.spans.append(Span(begin_ms, end_ms, "no-leader", text))
        elif len(change.after.isr) < change.min_isr:
            available.spans.append(Span(begin_ms, end_ms, "under-min-isr", text))
        for broker in change.after.replicas:
            row = replicas.setdefault(broker, Row(f"broker {broker}"))
            row.spans.append(Span(begin_ms, end_ms, role_of(broker, change.after), text))
    for row in replicas.values():
        row.spans = _joined(row.spans)
    for change in lossy_elections(CommittedLog(changes=list(changes))):
        available.spans.append(
            Span(change.at_ms, change.at_ms, "mark", f"lossy election: {basis_of(change).basis.value}")
        )
    waits = gaps(answered_ms, window) if answered_ms else []
    answers.spans += [Span(*gap, "no-answer", f"{(gap[1] - gap[0]) / 1000:.1f} s") for gap in waits]
    shown = [available, answers] if answered_ms else [available]
    return Group(title, [*shown, *(replicas[broker] for broker in sorted(replicas))])


def role_of(broker: BrokerId, state: PartitionRegistration) -> str:
    """Of an assigned replica."""
    if broker == state.leader:
        return "leader"
    if broker in state.isr:
        return "isr"
    if broker in state.elr:
        return "elr"
    return "last-known" if broker in state.last_known_elr else "out"


def described(state: PartitionRegistration) -> str:
    def ids(of: Sequence[int]) -> str:
        return ",".join(map(str, of)) or "-"

    leader = state.leader if state.leader >= 0 else "none"
    return (
        f"leader {leader} epoch {state.leader_epoch}, ISR {ids(state.isr)}, ELR {ids(state.elr)}, "
        f"last known {ids(state.last_known_elr)}, replicas {ids(state.replicas)}"
    )


def _joined(spans: Sequence[Span]) -> list[Span]:
    """Neighbours of one kind with one text are one span."""
    found: list[Span] = []
    for span in spans:
        last = found[-1] if found else None
        if last is not None and (last.kind, last.text, last.end_ms) == (span.kind, span.text, span.begin_ms):
            found[-1] = Span(last.begin_ms, span.end_ms, span.kind, span.text)
        elif span.end_ms > span.begin_ms:
            found.append(span)
    return found


def gaps(answered_ms: Iterable[int], window: tuple[int, int]) -> list[tuple[int, int]]:
    """Times without an acknowledgement that are longer than GAP_MS, within the window."""
    moments = sorted(at_ms for at_ms in answered_ms if window[0] <= at_ms <= window[1])
    edges = [window[0], *moments, window[1]]
    return [(low, high) for low, high in pairwise(edges) if high - low > GAP_MS]
