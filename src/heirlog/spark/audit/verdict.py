"""What the logs and the metadata say together: who should have which records, and who has not.

    high watermark of a partition   the highest one in a checkpoint of its replicas
    members                         ISR and ELR by the metadata: they hold everything below it
    reference                       the replica that is right by the metadata: the leader, else a member of the ISR,
                                    else of the ELR. Of several the one with which most of them agree. Where replicas
                                    differ in one leader epoch, most of them are right, whatever the metadata say

Not findings: a follower that lags; a tail that no other replica has; a tail of an older epoch that is above the
replica's own high watermark, if the replica is no member (its leader stopped before the tail was replicated, and the
next start truncates it); what an election on a lossy basis gave up, which is judged by its report.

Source: KIP-966; T4 and T6 of docs/internals/simulation.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from heirlog.metadata.loss_report import Certainty
from heirlog.metadata.state import RESERVED_DIRECTORIES, PartitionRegistration
from heirlog.metadata.topic_name import RECOVERIES_TOPIC
from heirlog.protocol.types import METADATA_TOPIC, BrokerId, uuid_from_text, uuid_text
from heirlog.spark.audit.divergence import Difference
from heirlog.spark.audit.findings import AuditFinding
from heirlog.spark.audit.history import LeaderElected, MetadataHistory, loss_sentence
from heirlog.spark.audit.inventory import Inventory, LogCopy, partitions_of
from heirlog.spark.audit.producer_runs import REPEATED, Break
from heirlog.spark.audit.replica_log import ReplicaLog, report_gaps

_CUT = ("offsets-missing", "below-high-watermark", "below-recovery-point", "leader-lost-records")
"""Findings that records are missing from an offset on, and findings that other files still know them."""
_REACHES_BEYOND = ("index-wrong", "leader-epochs-wrong", "checkpoint-wrong")
_RANKS = {"leader": 3, "isr": 2, "elr": 1}
ALWAYS_COMPACTED = ("__consumer_offsets", "__transaction_state", "__share_group_state", RECOVERIES_TOPIC)


class Lineage(NamedTuple):
    """An election on a lossy basis: from `end_offset` on older records were given up."""

    epoch: int
    end_offset: int
    """-1: unknown."""


@dataclass(slots=True)
class PartitionView:
    """One partition: its replicas that are there, and what the metadata says of it."""

    number: int
    topic: str
    topic_id: str
    partition: int
    replicas: list[ReplicaLog]
    state: PartitionRegistration | None = None
    min_isr: int = 1
    lineages: list[Lineage] = field(default_factory=list)
    last_elected: tuple[int, int] = (-1, -1)
    """The last leader and its leader epoch, by the metadata."""
    high_watermark: int = -1
    compared_from: int = 0

    @property
    def members(self) -> Collection[int]:
        return () if self.state is None else (*self.state.isr, *self.state.elr)

    def role(self, log: ReplicaLog) -> str:
        """By the metadata."""
        state, node = self.state, BrokerId(log.copy.node)
        if state is None:
            return "unknown"
        if node == state.leader:
            return "leader"
        for name, members in (
            ("isr", state.isr),
            ("elr", state.elr),
            ("last-known", state.last_known_elr),
            ("replica", state.replicas),
        ):
            if node in members:
                return name
        return "unassigned"

    def rank(self, log: ReplicaLog) -> int:
        """The higher, the more the metadata say that it is right. A damaged log is not right, whatever its role is."""
        return -1 if log.is_damaged else _RANKS.get(self.role(log), 0)

    @property
    def reference(self) -> ReplicaLog:
        """The preferred one by the metadata."""
        return max(self.replicas, key=lambda log: (self.rank(log), log.last_epoch, log.end_offset, -log.copy.node))

    def known_high_watermark(self, log: ReplicaLog) -> int:
        """Of its checkpoint, without what lossy elections have given up since it was written; -1: unknown."""
        mark = log.copy.high_watermark
        for lineage in self.lineages:
            if log.last_epoch < lineage.epoch and mark > lineage.end_offset:
                mark = lineage.end_offset
        if self.lineages and not log.copy.stopped_cleanly and mark > log.end_offset:
            return -1  # it may have been written before a truncation
        return mark

    def found(self, kind: str, log: ReplicaLog | None, offset: int, sentence: str) -> AuditFinding:
        node = -1 if log is None else log.copy.node
        return AuditFinding(kind, self.topic, self.partition, node, offset, sentence)


def views(inventory: Inventory, logs: Mapping[int, ReplicaLog], history: MetadataHistory | None) -> list[PartitionView]:
    """All partitions of which a replica is there. Adds findings about gaps to the logs."""
    found = []
    lineages = {} if history is None else _lineages(history.elections)
    for number, (key, copies) in enumerate(sorted(partitions_of(inventory.logs).items())):
        view = PartitionView(number, *key, [logs[copy.number] for copy in copies])
        if history is not None and view.topic_id and view.topic != METADATA_TOPIC:
            _set_metadata(view, history)
            view.lineages = lineages.get((view.topic_id, view.partition), [])
        marks = [view.known_high_watermark(log) for log in view.replicas if view.role(log) != "unassigned"]
        view.high_watermark = max(marks, default=-1)
        _set_compaction(view, history)
        found.append(view)
    return found


def _set_metadata(view: PartitionView, history: MetadataHistory) -> None:
    """What is true at the end of the metadata log; nothing if the end could not be read."""
    key = (uuid_from_text(view.topic_id), view.partition)
    view.min_isr = history.min_isr(key)
    if history.is_complete:
        view.state = history.image.partition(*key)
        view.last_elected = history.last_elected.get(key, (-1, -1))


def _lineages(elections: Sequence[LeaderElected]) -> dict[tuple[str, int], list[Lineage]]:
    found: dict[tuple[str, int], list[Lineage]] = {}
    for election in elections:
        if election.basis.is_lossy:
            end_offset = -1 if election.record is None else election.record.end_offset
            found.setdefault((election.topic_id, election.partition), []).append(
                Lineage(election.leader_epoch, end_offset)
            )
    return found


def _set_compaction(view: PartitionView, history: MetadataHistory | None) -> None:
    cleaned_to = max(log.cleaned_to for log in view.replicas)
    view.compared_from = cleaned_to
    compacted = view.topic in ALWAYS_COMPACTED or (history is not None and view.topic in history.compacted)
    given = {log.copy.node for log in view.replicas}
    all_there = view.state is not None and set(view.state.replicas) <= given
    report_gaps(view.replicas, cleaned_everywhere=compacted and not all_there)


# what members lack


def lacking(view: PartitionView) -> list[AuditFinding]:
    """Replicas that end below what they must have."""
    found = []
    for log in view.replicas:
        role = view.role(log)
        own = view.known_high_watermark(log)
        needed = view.high_watermark if log.copy.node in view.members else own
        if role == "unassigned":
            continue
        if log.end_offset < needed:
            whose = "the high watermark" if needed > own else "its own high watermark"
            found.append(
                view.found(
                    "below-high-watermark",
                    log,
                    log.end_offset,
                    f"the log of replica {log.copy.node} ({role}) ends at {log.end_offset}, {whose} is {needed}: "
                    f"{needed - log.end_offset} committed offsets are missing",
                )
            )
        elif lost := _lost_by_leader(view, log):
            found.append(lost)
        elif log.end_offset < log.copy.recovery_point and not view.lineages:
            found.append(
                view.found(
                    "below-recovery-point",
                    log,
                    log.end_offset,
                    f"the log of replica {log.copy.node} ends at {log.end_offset}; everything below "
                    f"{log.copy.recovery_point} had been flushed",
                )
            )
        if view.state is not None and log.last_epoch > view.state.leader_epoch:
            found.append(
                view.found(
                    "epoch-unknown",
                    log,
                    log.end_offset - 1,
                    f"the log of replica {log.copy.node} ends in leader epoch {log.last_epoch}; the metadata knows "
                    f"epochs up to {view.state.leader_epoch}",
                )
            )
    return found


def _lost_by_leader(view: PartitionView, log: ReplicaLog) -> AuditFinding | None:
    """Records of the last leader's epoch were in its log first: it must have what any other replica has of it.

    This needs no high watermark, whose checkpoint a node that was killed may not have.
    """
    leader, epoch = view.last_elected
    others = [other for other in view.replicas if other.copy.node != leader and other.last_epoch == epoch]
    longest = max(others, key=lambda other: other.end_offset, default=None)
    if log.copy.node != leader or longest is None or log.end_offset >= max(longest.end_offset, view.high_watermark):
        return None
    return view.found(
        "leader-lost-records",
        log,
        log.end_offset,
        f"replica {leader} led in leader epoch {epoch}, and its log ends at {log.end_offset}; replica "
        f"{longest.copy.node} has records of that epoch up to {longest.end_offset}",
    )


def without_consequences(findings: Collection[AuditFinding]) -> set[AuditFinding]:
    """One finding for records that are missing, not another one for each file that still knows them."""
    cut = {(each.topic, each.partition, each.replica, each.offset) for each in findings if each.kind in _CUT}
    return {
        each
        for each in findings
        if each.kind not in _REACHES_BEYOND or (each.topic, each.partition, each.replica, each.offset) not in cut
    }


def missing_replicas(
    inventory: Inventory, found: Sequence[PartitionView], history: MetadataHistory
) -> list[AuditFinding]:
    """Members whose directory was given and has no log of the partition."""
    by_key = {(view.topic_id, view.partition): view for view in found}
    findings = []
    for topic_id, partitions in history.image.partitions.items():
        name = history.image.topics[topic_id].name
        for index, state in partitions.items():
            view = by_key.get((uuid_text(topic_id), index))
            held = set() if view is None else {log.copy.node for log in view.replicas}
            mark = -1 if view is None else view.high_watermark
            for member in (*state.isr, *state.elr):
                # a member that is no replica breaks T2
                if member in held or member not in state.replicas or not _is_given(inventory, state, member):
                    continue
                if mark > 0 or inventory.stopped_cleanly.get(member, False):
                    findings.append(
                        AuditFinding(
                            "replica-missing",
                            name,
                            index,
                            member,
                            0,
                            f"replica {member} is in ISR {list(state.isr)} or ELR {list(state.elr)}, and its directory "
                            "has no log of the partition",
                        )
                    )
    return findings


def _is_given(inventory: Inventory, state: PartitionRegistration, member: BrokerId) -> bool:
    directories = inventory.nodes.get(member, [])
    assigned = state.directory_of(member)
    if assigned in RESERVED_DIRECTORIES:
        return len(directories) == 1
    return uuid_text(assigned) in directories


# differences


def judge_differences(
    found: Sequence[PartitionView], differences: Sequence[Difference], logs: Mapping[int, ReplicaLog]
) -> list[AuditFinding]:
    """Which differences of replicas no normal life of a cluster explains."""
    of_log = {log.copy.number: view for view in found for log in view.replicas}
    findings = []
    differing = Counter(of_log[difference.log].number for difference in differences)
    for difference in differences:
        view, log = of_log[difference.log], logs[difference.log]
        reference = logs[difference.reference]
        if view.role(log) == "unassigned" or _is_explained(view, log, reference, difference):
            continue
        is_outvoted = 2 * differing[view.number] > len(view.replicas)
        here = "no batch begins here" if difference.epoch < 0 else f"leader epoch {difference.epoch} here"
        there = "none begins there" if difference.reference_epoch < 0 else f"{difference.reference_epoch} there"
        findings.append(
            view.found(
                "diverged",
                log,
                difference.offset,
                f"replica {log.copy.node} differs from replica {reference.copy.node} from offset {difference.offset} "
                f"on: {here}, {there}; {_who_is_right(view, log, reference, is_outvoted)} (T6)",
            )
        )
    return findings


def _who_is_right(view: PartitionView, log: ReplicaLog, reference: ReplicaLog, is_outvoted: bool) -> str:
    """is_outvoted: most replicas differ from the reference."""
    right = f"replica {reference.copy.node}"
    if view.rank(log) < 0 <= view.rank(reference):
        return f"{right} is right, as the log of replica {log.copy.node} is damaged"
    if view.rank(reference) > view.rank(log):
        but = ", but most replicas differ from it" if is_outvoted else ""
        return f"{right} is right by the metadata ({view.role(reference)}){but}"
    if view.rank(reference) < view.rank(log):
        return f"most replicas agree with {right}, none with replica {log.copy.node} ({view.role(log)})"
    if view.rank(reference) <= 0:
        return "the metadata does not say which is right"
    return f"both are in the {view.role(log).upper()}, and most replicas agree with {right}"


def _is_explained(view: PartitionView, log: ReplicaLog, reference: ReplicaLog, difference: Difference) -> bool:
    epochs = (difference.epoch, difference.reference_epoch)
    damaged = {
        finding.offset
        for each in (log, reference)
        for finding in each.findings
        if finding.kind in ("batch-damaged", "offsets-go-back", "epoch-goes-back")
    }
    if difference.offset in damaged:
        return True
    # one epoch has one leader, which gives each offset one batch
    if min(epochs) < 0 or epochs[0] == epochs[1]:
        return False
    older = log if difference.epoch < difference.reference_epoch else reference
    is_member = older.copy.node in view.members
    if difference.offset >= (view.high_watermark if is_member else view.known_high_watermark(older)):
        return True  # its leader stopped before it was replicated, and the replica has not followed another one since
    return any(
        min(epochs) < lineage.epoch <= max(epochs) and lineage.end_offset <= difference.offset
        for lineage in view.lineages
    )


# producers


def judge_breaks(
    found: Sequence[PartitionView], breaks: Sequence[Break], logs: Mapping[int, ReplicaLog]
) -> list[AuditFinding]:
    """Breaks in producers' sequences that no other finding explains, once for all replicas that have them."""
    of_log = {log.copy.number: view for view in found for log in view.replicas}
    holders: dict[tuple[int, str, int, str], list[ReplicaLog]] = {}
    for each in breaks:
        log, view = logs[each.log], of_log[each.log]
        is_missing = any(gap.start < each.offset and each.from_offset < gap.end for gap in log.missing)
        doubled = {finding.offset for finding in log.findings if finding.kind == "batch-doubled"}
        if not is_missing and not (each.kind == REPEATED and each.offset in doubled):
            holders.setdefault((view.number, each.kind, each.offset, each.sentence), []).append(log)
    by_number = {view.number: view for view in found}
    findings = []
    for (number, kind, offset, sentence), having in sorted(holders.items()):
        view = by_number[number]
        log = max(having, key=lambda each: (view.rank(each), -each.copy.node))
        nodes = ", ".join(str(each.copy.node) for each in having)
        findings.append(view.found(kind, log, offset, f"{sentence} (in the logs of replicas {nodes})"))
    return findings


# elections


def is_reported(election: LeaderElected, reports: Collection[bytes]) -> bool:
    report = election.report
    return report is not None and report.key in reports


def unreported(elections: Sequence[LeaderElected], reports: Collection[bytes]) -> list[AuditFinding]:
    """Elections that may have given records up, and whose report is missing.

    reports: the keys of all records in `__heirlog_recoveries`.
    """
    findings = []
    for election in elections:
        report = election.report
        if not election.basis.is_lossy or is_reported(election, reports):
            continue
        if report is None or report.loss.certainty is not Certainty.NONE:
            findings.append(
                AuditFinding(
                    "loss-unreported",
                    election.topic,
                    election.partition,
                    -1,
                    election.metadata_offset,
                    f"{loss_sentence(election)}; no report of it is in {RECOVERIES_TOPIC}",
                )
            )
    return findings


def report_logs(inventory: Inventory) -> list[LogCopy]:
    """The copies of the topic with the loss reports."""
    return [log for log in inventory.logs if log.topic == RECOVERIES_TOPIC]
