"""The history checks of a run that has ended: what its clients saw, and what they could read in the end."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from heirlog.sim import group_history
from heirlog.sim.compaction_checker import lost_key
from heirlog.sim.consumer_group_history import consumer_findings
from heirlog.sim.history import AcknowledgedRecord, Finding
from heirlog.sim.history_checks import verdict
from heirlog.sim.history_checks.records import LOST_WRITE
from heirlog.sim.invariants import t12_latest_was_known
from heirlog.sim.oracle import Violation
from heirlog.sim.simulation import AUDITOR, COMPACTED_VALUES, Simulation
from heirlog.sim.topics import RECREATED, has_markers, is_compacted


def judge(run: Simulation) -> None:
    """Raises Violation with the first finding."""
    seen, losses = run.history, run.checker.losses
    compacted = [one for one in seen.acknowledged if is_compacted(one.partition)]
    findings = [
        *_latest_unknown(run),
        *verdict.findings(seen, losses, AUDITOR, run.audited, is_compacted, partial(has_markers, run.plan)),
        *(() if run.transactions is None else run.transactions.findings(losses)),
        *lost_key(compacted, run.last_read, COMPACTED_VALUES + seen.sent, losses),
        *group_history.findings(run.group_history, losses),
        *(() if run.consumer_history is None else consumer_findings(run.consumer_history, losses)),
    ]
    _count(run)
    if run.plan.keeps_everything:
        unreadable = [one for one in lost(run) if not one.partition.startswith(f"{RECREATED}-")]
        if unreadable:
            sentence = f"{len(unreadable)} acknowledged records cannot be read any more"
            findings.append(Finding(LOST_WRITE, sentence))
    if findings:
        raise Violation(findings[0].check, findings[0].sentence)


def lost(run: Simulation) -> list[AcknowledgedRecord]:
    """Acknowledged records that cannot be read in the end, excused or not; of topics that are not compacted."""
    readable = {
        (one.partition, one.value)
        for one in run.history.observed
        if one.client == AUDITOR or one.partition not in run.audited
    }
    return [
        one
        for one in (*run.history.acknowledged, *run.history.acknowledged_somewhere)
        if (one.partition, one.value) not in readable and not is_compacted(one.partition)
    ]


def _latest_unknown(run: Simulation) -> Iterator[Finding]:
    """T12 of every answer to ListOffsets(latest)."""
    models = {model.name: model for _, model in run.checker.models()}
    for answer in run.history.latest:
        model = models.get(answer.partition)
        start = 0 if model is None else model.epoch_starts.get(answer.leader_epoch, 0)
        sentence = t12_latest_was_known(answer.offset, answer.leader_epoch, start)
        if sentence is not None:
            yield Finding("T12", f"{answer.partition}: {sentence}")


def _count(run: Simulation) -> None:
    """Count the events that clients caused, in addition to those that the checker saw."""
    counters = run.world.counters
    counters["group.generations"] += len({one.generation for one in run.group_history.owned})
    counters["group.commits"] += sum(one.answered is not None for one in run.group_history.commits.values())
    counters["group.reads"] += sum(one.token is not None for one in run.group_history.reads)
    counters["reader.rewound"] += len(run.history.seeks)
    counters["judged.batches"] += len(run.history.batches)
    counters["judged.copies"] += len(run.history.copies)
    counters["judged.leaders"] += len(run.history.acknowledged_by)
    counters["judged.answers"] += sum(len(loss.answers) for loss in run.checker.losses)
    counters["topic.remade"] += 0 if run.recreator is None else run.recreator.made
