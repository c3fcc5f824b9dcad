"""What the metadata log says of each partition over time: members, leaders, elections, and rules that were broken.

    record  -> the state before and after it:  which election, and on which basis; who entered the ELR
    batch   -> the states that it leaves:      T2, T10, T11; windows under min ISR and without a leader

A batch becomes visible at once, so a rule about a state is judged at its end. Kafka's metadata log does not say whether
a broker stopped cleanly: T11 is judged in logs of heirlog only, and so is T10, which needs the recovery manager.

The rules themselves are in `heirlog.sim.invariants`, where the simulator checks them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from heirlog.metadata.apply import UnsupportedRecord, apply, image_of_snapshot
from heirlog.metadata.basis import Basis, ElectionBasis
from heirlog.metadata.config_def import parse_static
from heirlog.metadata.image import Image
from heirlog.metadata.journal import ImageJournal
from heirlog.metadata.loss_report import Certainty, LossReport
from heirlog.metadata.min_isr import MIN_ISR, min_isr_of
from heirlog.metadata.state import (
    RECOVERY_VERSION,
    TOPIC_RESOURCE,
    UNASSIGNED_DIRECTORY,
    BrokerRegistration,
    PartitionRegistration,
    TopicImage,
)
from heirlog.protocol.records import ClearElrRecord, ConfigRecord
from heirlog.protocol.types import NO_BROKER_EPOCH, BrokerId, PartitionKey, Uuid, uuid_from_text, uuid_text
from heirlog.sim.invariants import t2_isr_and_elr_are_consistent, t10_members_stay_listed, t11_returned_uncleanly
from heirlog.sim.leader_checker import is_lossy
from heirlog.spark.audit.findings import AuditFinding
from heirlog.spark.audit.metadata_log import BatchOfMetadata

UNDER_MIN_ISR = "under-min-isr"
NO_LEADER_WINDOW = "no-leader"
CLEANUP_POLICY = "cleanup.policy"
_A_BROKER = {
    "node.id": "0",
    "process.roles": "broker",
    "controller.quorum.bootstrap.servers": "localhost:1",
    "controller.listener.names": "CONTROLLER",
}
"""For defaults: the nodes' own properties are not part of what is audited."""


class StateChange(NamedTuple):
    topic: str
    topic_id: str
    partition: int
    metadata_offset: int
    timestamp_ms: int
    state: PartitionRegistration
    min_isr: int


class LeaderElected(NamedTuple):
    """A leader that was chosen, other than the first."""

    topic: str
    topic_id: str
    partition: int
    metadata_offset: int
    """-1: before the snapshot with which the history begins."""
    timestamp_ms: int
    leader: int
    leader_epoch: int
    basis: Basis
    record: ElectionBasis | None
    """What the controller recorded of an election on a lossy basis."""

    @property
    def report(self) -> LossReport | None:
        if self.record is None:
            return None
        return LossReport(self.topic, uuid_from_text(self.topic_id), self.partition, self.record)


class UnavailableWindow(NamedTuple):
    topic: str
    topic_id: str
    partition: int
    kind: str
    from_ms: int
    to_ms: int
    from_metadata_offset: int


@dataclass(slots=True)
class MetadataHistory:
    """Feed it the batches of a metadata log in order, then call `ended`.

    on_state: called with each state of each partition, at the end of the batch that left it.
    """

    on_state: Callable[[StateChange], None]
    image: Image = field(default_factory=Image)
    elections: list[LeaderElected] = field(default_factory=list)
    windows: list[UnavailableWindow] = field(default_factory=list)
    findings: list[AuditFinding] = field(default_factory=list)
    compacted: set[str] = field(default_factory=set)
    """Topics that were compacted at some time."""
    skipped: int = 0
    """Records that this version cannot apply: they concern nothing that is audited."""
    last_elected: dict[PartitionKey, tuple[int, int]] = field(default_factory=dict)
    """The last leader of each partition and its leader epoch; kept while the partition has none."""
    is_complete: bool = True
    """False: the log is damaged and was read up to there, so `image` is older than the replicas' logs."""
    first_ms: int = -1
    last_ms: int = -1
    _static: Any = field(default_factory=lambda: parse_static(_A_BROKER))
    _open: dict[tuple[PartitionKey, str], tuple[int, int]] = field(default_factory=dict)
    """Windows that have begun: when, and at which metadata offset."""
    _unclean: dict[BrokerId, set[PartitionKey]] = field(default_factory=dict)
    """Brokers that came back without proof of a clean stop: partitions of which they have not caught up since."""
    _members_kept: bool = False
    """The ELR has been off: fenced members that were kept then may still be in an ISR."""

    def begin(self, records: Iterable[Any], offset: int, epoch: int, timestamp_ms: int) -> None:
        """The state with which the history begins, from a snapshot whose last record is at `offset`."""
        self.image = image_of_snapshot(records, offset, epoch)
        self.first_ms = self.last_ms = timestamp_ms
        self._members_kept = True
        for name, configs in list(self.image.configs.items()):
            if name[0] == TOPIC_RESOURCE and "compact" in configs.get(CLEANUP_POLICY, ""):
                self.compacted.add(name[1])
        for topic_id, partitions in self.image.partitions.items():
            for index, state in partitions.items():
                key = (topic_id, index)
                for election in (*reversed(state.earlier), state.basis):
                    if election is not None:
                        self._add_election(key, -1, election.timestamp_ms, election.basis, election)
                if self.image.elr_enabled:
                    self._judge_lists(key, None, state, offset)
                self._left(key, state, offset)

    def batch(self, batch: BatchOfMetadata) -> None:
        image = self.image
        self.last_ms = max(self.last_ms, batch.timestamp_ms)
        if self.first_ms < 0:
            self.first_ms = self.last_ms
        before_batch = image.journal()
        manager_before = image.recovery_manager_enabled
        lossy: set[PartitionKey] = set()
        for offset, record in batch.records:
            journal = image.journal()
            try:
                apply(image, record, offset, batch.epoch, journal)
            except (UnsupportedRecord, KeyError):
                self.skipped += 1
                continue
            for key, before in journal.partitions.items():
                before_batch.partitions.setdefault(key, before)
                self._changed(key, before, image.partition(*key), record, offset, lossy)
                if image.partition(*key) is None:
                    self._removed(key, journal.topics.get(key[0]))
            for broker, registration in journal.brokers.items():
                self._broker_changed(broker, registration)
            self._config_changed(record, before_batch)
        self._judge(before_batch, lossy, manager_before, batch.base_offset)

    def ended(self) -> None:
        """Close the windows at the last timestamp."""
        for key, kind in list(self._open):
            self._close(key, kind)

    # each record

    def _changed(
        self,
        key: PartitionKey,
        before: PartitionRegistration | None,
        after: PartitionRegistration | None,
        record: Any,
        offset: int,
        lossy: set[PartitionKey],
    ) -> None:
        if before is None or after is None:
            return
        if after.leader >= 0 and after.leader_epoch > before.leader_epoch:
            if is_lossy(before, after):
                lossy.add(key)
            if after.leader != before.leader or after.basis is not before.basis:
                new = after.basis if after.basis is not before.basis else None
                self._add_election(key, offset, self.last_ms, new.basis if new else _basis(before, after), new)
        unproven = [member for member in after.elr if member not in (*before.elr, *before.isr)]
        if unproven and not isinstance(record, ClearElrRecord):
            self._found(
                "elr-entry",
                key,
                offset,
                f"{unproven} entered the ELR {list(after.elr)} without having been in the ISR {list(before.isr)} or "
                f"the ELR {list(before.elr)}: nothing says that they have every committed record",
            )
        for broker in set(after.isr) - set(before.isr):
            registered = self.image.brokers.get(broker)
            if registered is not None and not registered.fenced:
                self._unclean.get(broker, set()).discard(key)

    def _broker_changed(self, broker: BrokerId, before: BrokerRegistration | None) -> None:
        after = self.image.brokers.get(broker)
        if (
            before is not None
            and after is not None
            and before.incarnation_id != after.incarnation_id
            and after.clean_stop_epoch == NO_BROKER_EPOCH
            and RECOVERY_VERSION in self.image.features
            and self.image.elr_enabled
        ):
            self._unclean[broker] = {(topic_id, index) for topic_id, index, _ in self.image.replicas_on(broker)}

    def _config_changed(self, record: Any, journal: ImageJournal) -> None:
        if not isinstance(record, ConfigRecord):
            return
        if (
            record.name == CLEANUP_POLICY
            and record.resource_type == TOPIC_RESOURCE
            and "compact" in (record.value or "")
        ):
            self.compacted.add(record.resource_name)
        if record.name == MIN_ISR:
            # the windows of every partition that it may concern
            of_topic = record.resource_type == TOPIC_RESOURCE
            for topic_id, partitions in self.image.partitions.items():
                if not of_topic or self.image.topics[topic_id].name == record.resource_name:
                    for index, state in partitions.items():
                        journal.partitions.setdefault((topic_id, index), state)

    def _removed(self, key: PartitionKey, topic: TopicImage | None) -> None:
        for kind in (UNDER_MIN_ISR, NO_LEADER_WINDOW):
            if (key, kind) in self._open and topic is not None:
                self._close(key, kind, topic.name)
        self.last_elected.pop(key, None)
        for partitions in self._unclean.values():
            partitions.discard(key)

    # each batch

    def _judge(self, journal: ImageJournal, lossy: set[PartitionKey], manager_before: bool, offset: int) -> None:
        image = self.image
        if not image.elr_enabled:
            self._members_kept = True
        for key, before in journal.partitions.items():
            after = image.partition(*key)
            if after is None:
                continue
            if image.elr_enabled:
                self._judge_lists(key, before, after, offset)
                if before is not None and key not in lossy and manager_before and image.recovery_manager_enabled:
                    self._judge_t10(key, before, after, offset)
            if before is not after:
                self._left(key, after, offset)
            else:
                self._note_windows(key, after, offset)

    def _judge_lists(
        self, key: PartitionKey, before: PartitionRegistration | None, after: PartitionRegistration, offset: int
    ) -> None:
        image = self.image
        kept = self._members_kept and (before is None or after.isr == before.isr)
        fenced = [] if kept else [broker.id for broker in image.brokers.values() if broker.fenced]
        sentence = t2_isr_and_elr_are_consistent(after, self._min_isr(key, after), fenced)
        if sentence is not None and not self._is_listed("T2", key, sentence):
            self._found("T2", key, offset, sentence)
        for broker, partitions in self._unclean.items():
            if key in partitions:
                sentence = t11_returned_uncleanly(broker, after, True)
                if sentence is not None and not self._is_listed("T11", key, sentence):
                    self._found("T11", key, offset, sentence)

    def _is_listed(self, kind: str, key: PartitionKey, sentence: str) -> bool:
        """A state that stays is reported once."""
        topic = self.image.topics[key[0]].name
        return any(
            (found.kind, found.topic, found.partition, found.sentence) == (kind, topic, key[1], sentence)
            for found in self.findings[-64:]
        )

    def _judge_t10(
        self, key: PartitionKey, before: PartitionRegistration, after: PartitionRegistration, offset: int
    ) -> None:
        was_reset = after.leader_epoch > before.leader_epoch + 1 and not (
            after.isr or after.elr or after.last_known_elr
        )
        # those of brokers that are unregistered, and of directories that are offline, are given up
        known = {
            broker.id
            for broker in self.image.brokers.values()
            if broker.id in before.replicas and broker.has_online(_directory(after, broker.id))
        }
        kept = before._replace(
            isr=tuple(b for b in before.isr if b in known),
            elr=tuple(b for b in before.elr if b in known),
            last_known_elr=tuple(b for b in before.last_known_elr if b in known),
        )
        sentence = None if was_reset else t10_members_stay_listed(kept, after, self._min_isr(key, after))
        if sentence is not None:
            self._found("T10", key, offset, sentence)

    def _left(self, key: PartitionKey, state: PartitionRegistration, offset: int) -> None:
        topic_id, index = key
        if state.has_leader:
            self.last_elected[key] = (state.leader, state.leader_epoch)
        change = StateChange(
            self.image.topics[topic_id].name,
            uuid_text(topic_id),
            index,
            offset,
            self.last_ms,
            state,
            self._min_isr(key, state),
        )
        self.on_state(change)
        self._note_windows(key, state, offset)

    def _note_windows(self, key: PartitionKey, state: PartitionRegistration, offset: int) -> None:
        for kind, is_open in (
            (UNDER_MIN_ISR, len(state.isr) < self._min_isr(key, state)),
            (NO_LEADER_WINDOW, not state.has_leader),
        ):
            if is_open:
                self._open.setdefault((key, kind), (self.last_ms, offset))
            elif (key, kind) in self._open:
                self._close(key, kind)

    def _close(self, key: PartitionKey, kind: str, name: str = "") -> None:
        since_ms, offset = self._open.pop((key, kind))
        name = name or self.image.topics[key[0]].name
        self.windows.append(UnavailableWindow(name, uuid_text(key[0]), key[1], kind, since_ms, self.last_ms, offset))

    def _min_isr(self, key: PartitionKey, state: PartitionRegistration) -> int:
        return min_isr_of(self.image, self._static, key[0], state)

    def min_isr(self, key: PartitionKey) -> int:
        """The effective one at the end of the log."""
        state = self.image.partition(*key)
        return 1 if state is None else self._min_isr(key, state)

    def _add_election(
        self, key: PartitionKey, offset: int, timestamp_ms: int, basis: Basis, record: ElectionBasis | None
    ) -> None:
        state = self.image.partitions[key[0]][key[1]]
        leader, epoch = (state.leader, state.leader_epoch) if record is None else (record.leader, record.leader_epoch)
        name = self.image.topics[key[0]].name
        self.elections.append(
            LeaderElected(name, uuid_text(key[0]), key[1], offset, timestamp_ms, leader, epoch, basis, record)
        )

    def _found(self, kind: str, key: PartitionKey, offset: int, sentence: str) -> None:
        self.findings.append(AuditFinding(kind, self.image.topics[key[0]].name, key[1], -1, offset, sentence))


def _basis(before: PartitionRegistration, after: PartitionRegistration) -> Basis:
    """Of an election whose record does not say it."""
    if after.leader in before.isr:
        is_preferred = before.has_leader and after.leader == after.replicas[0] and before.leader in after.isr
        return Basis.PREFERRED if is_preferred else Basis.ISR
    return Basis.ELR if after.leader in before.elr else Basis.UNCLEAN


def _directory(state: PartitionRegistration, broker: BrokerId) -> Uuid:
    return state.directory_of(broker) if broker in state.replicas else UNASSIGNED_DIRECTORY


def loss_sentence(election: LeaderElected) -> str:
    """What an election on a lossy basis gave up, as far as its record says."""
    who = f"broker {election.leader} was elected in leader epoch {election.leader_epoch} ({election.basis.value})"
    if election.record is None:
        return f"{who}, and was in neither ISR nor ELR: what this gave up is not recorded"
    loss = election.report.loss if election.report else None
    if loss is None or loss.certainty is Certainty.NONE:
        lacking = list(election.report.may_lack_records) if election.report else []
        gone = f", and the newest records may be gone from replicas {lacking}" if lacking else ""
        return f"{who}; no replica can hold more than it{gone}"
    if loss.end_offset is None:
        return f"{who}; replicas {list(loss.silent)} have not said what they hold"
    first = "an unknown offset" if loss.first_offset is None else str(loss.first_offset)
    return f"{who} and gave up offsets from {first} to {loss.end_offset - 1}{'' if loss.is_exact else ' at most'}"
