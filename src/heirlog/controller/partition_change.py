"""The one builder of partition changes: every PartitionChange record is made here.

A caller says what the partition should become (`isr`, `replicas`, which replicas were `lost`) and which kind of
election to hold. The builder returns one record, or none if nothing would change. Its steps, in order:

    1  a reassignment that can complete replaces the target ISR and the target replicas
    2  which replicas stay eligible (eligible.py)
    3  the election (election.py), which may replace the ISR and empty the lists
    4  a replica that left the assignment bumps the leader epoch: the record names the leader again. Below
       metadata.version 3.6-IV0 a replica that left the ISR does so too
    5  the lists, if they differ from the stored ones
    6  the ISR, if it differs or comes from a lossy election. With ELR off an empty ISR is not written: the last member
       stays, because only it may become leader without loss
    7  LastKnownELR: the last known leader, or with the recovery manager on all lost replicas
    8  replicas, adding, removing, directories
    9  the requested recovery state; for a lossy election also what is known about the loss (metadata/basis.py)

A replica whose log directory was replaced keeps its old directory while the partition may be waiting for it
(registration.py). Every election, and every change that takes the replica off LastKnownELR, moves it to a directory
that exists: the partition does not wait for its old data any more. Without that step a partition that needs all its
replicas for min ISR would never reach it again.

Epochs follow from the record. The partition epoch grows with every record; the leader epoch grows exactly if the record
names a leader.

A reassignment completes if its final ISR (the target ISR without removed replicas) contains every final replica, at
least min ISR of them, and one that can lead. Without the last two conditions the partition could end up unable to
commit, or without a leader. With the recovery manager on, it waits only for the adding replicas, unless fewer are added
than removed: the rule of Kafka 4.3 (KAFKA-19975), without which a slow or dead replica that stays blocks the
reassignment for ever. With the manager off, heirlog keeps to Kafka 4.2 in everything, so it waits for all final
replicas. A cancellation sets the original replicas as targets and adds and removes none, so there is nothing to
complete.

Source: KIP-966; KIP-455; KAFKA-19975.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import NamedTuple

from heirlog.controller.election import Acceptable, Candidates, Election, ElectionResult, elect
from heirlog.controller.eligible import all_lost_after, eligible_after, last_known_after
from heirlog.metadata.basis import Basis, ReplicaAnswer
from heirlog.metadata.image import LEADER_UNCHANGED, RECOVERY_STATE_UNCHANGED
from heirlog.metadata.state import RECOVERING, UNASSIGNED_DIRECTORY, Ids, PartitionRegistration
from heirlog.protocol.records import PartitionChangeRecord
from heirlog.protocol.types import BrokerId, Uuid


def _unassigned(broker: BrokerId) -> Uuid:
    return UNASSIGNED_DIRECTORY


def _same_directory(broker: BrokerId, directory: Uuid) -> Uuid:
    return directory


class BuiltChange(NamedTuple):
    record: PartitionChangeRecord | None
    """None: nothing would change."""
    basis: Basis | None
    """Set if a leader was elected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRules:
    """The rules of the image for every change of a topic's partitions."""

    usual_election: Election
    configured_min_isr: int
    """`min.insync.replicas`, not yet limited to the size of the assignment."""
    elr_enabled: bool
    manager_enabled: bool = False
    """The recovery manager is on: LastKnownELR names all lost replicas, no leader is elected from it alone, and a
    reassignment completes by the rule of Kafka 4.3."""
    bumps_on_shrink: bool = False
    """metadata.version below 3.6-IV0: a replica that leaves the ISR bumps the leader epoch (KAFKA-15021)."""
    default_directory: Callable[[BrokerId], Uuid] = _unassigned
    """The directory of a new replica."""
    replacement_directory: Callable[[BrokerId, Uuid], Uuid] = _same_directory
    """The directory of a replica whose data is not waited for any more: another one if its own is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetState:
    """The state that the partition should get. None: no change."""

    isr: Ids | None = None
    replicas: Ids | None = None
    adding: Ids | None = None
    removing: Ids | None = None
    directories: tuple[Uuid, ...] | None = None
    """Log directories of the present replicas, in their order."""
    last_known: Ids | None = None
    """The new LastKnownELR, when its meaning changes (recovery/switch.py)."""
    recovery_state: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeCause:
    """The brokers that cause the change."""

    lost: Collection[BrokerId] = ()
    """Replicas whose data may be gone: this change never adds them to the ELR."""
    leaving: BrokerId | None = None
    """A broker that can no longer lead once the batch of this change is applied."""
    joining: BrokerId | None = None
    """A broker that can lead from then on."""
    unregistered: BrokerId | None = None
    """A broker that is not a member of the cluster any more: no list names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectionRequest:
    """How the leader is elected."""

    election: Election | None = None
    """None: the usual election of the rules."""
    chosen: ElectionResult | None = None
    """The replica that the recovery manager or an operator chose, and its basis. It must be acceptable. If it is a
    clean candidate, its clean basis is used instead.
    """
    answers: Collection[ReplicaAnswer] = ()
    """What the replicas answered about their logs: an election that may lose records stores it."""


UNCHANGED = TargetState()
NO_CAUSE = ChangeCause()
USUAL_ELECTION = ElectionRequest()


@dataclass(slots=True, kw_only=True)
class PartitionChangeBuilder:
    """One change of one partition.

    Not frozen, only to save time: fencing a broker builds ten thousand of these.
    """

    topic_id: Uuid
    partition: int
    before: PartitionRegistration
    rules: PartitionRules
    acceptable: Acceptable
    target: TargetState = UNCHANGED
    cause: ChangeCause = NO_CAUSE
    election_request: ElectionRequest = USUAL_ELECTION

    def build(self) -> BuiltChange:
        return _Build(self).run()


class _Build:
    """The working values of one build."""

    def __init__(self, change: PartitionChangeBuilder) -> None:
        before, target = change.before, change.target
        self.change = change
        self.rules = change.rules
        self.before = before
        self.isr = before.isr if target.isr is None else target.isr
        self.replicas = before.replicas if target.replicas is None else target.replicas
        self.adding = before.adding if target.adding is None else target.adding
        self.removing = before.removing if target.removing is None else target.removing
        self.directories = before.directories if target.directories is None else target.directories
        self.remembered = before if target.last_known is None else before._replace(last_known_elr=target.last_known)
        """The state before the change, with the target's LastKnownELR if it has one."""
        self.elr: Ids = ()
        self.last_known: Ids = ()
        self.record = PartitionChangeRecord(partition_id=change.partition, topic_id=change.topic_id)

    def run(self) -> BuiltChange:
        self._complete_reassignment()
        elected = self._elect()
        self._name_leader(elected)
        self._write_lists(elected)
        awaited = self._no_longer_awaited(elected)
        if awaited:
            # records older than KIP-858 name no directories
            places = zip(self.before.replicas, self.directories, strict=False)
            self.directories = tuple(
                [self.rules.replacement_directory(*place) if place[0] in awaited else place[1] for place in places]
            )
        self._write_assignment()
        self._write_recovery_state(elected)
        return BuiltChange(None if _changes_nothing(self.record) else self.record, elected.basis)

    @property
    def min_isr(self) -> int:
        """The effective one."""
        return min(self.rules.configured_min_isr, len(self.replicas))

    def _complete_reassignment(self) -> None:
        if not self.adding and not self.removing:
            return
        final = tuple(replica for replica in self.replicas if replica not in self.removing)
        final_isr = tuple(replica for replica in self.isr if replica not in self.removing)
        # where the manager is off, every rule is that of Kafka 4.2, which waits for all final replicas
        waits_for_adding_only = self.rules.manager_enabled and len(self.adding) >= len(self.removing)
        required = self.adding if waits_for_adding_only else final
        if (
            not final_isr
            or any(replica not in final_isr for replica in required)
            or len(final_isr) < min(self.rules.configured_min_isr, len(final))
            or not any(self.change.acceptable(replica) for replica in final_isr)
        ):
            return
        self.replicas, self.isr, self.adding, self.removing = final, final_isr, (), ()

    def _elect(self) -> ElectionResult:
        """Hold the election, and change ISR and lists as its basis requires."""
        change, before = self.change, self.before
        if self.rules.elr_enabled:
            self.elr = eligible_after(before, self.isr, self.replicas, self.min_isr, change.cause.lost)
        candidates = Candidates(
            replicas=self.replicas,
            leader=before.leader,
            isr=self.isr,
            elr=self.elr,
            last_known=self._last_known_leader(),
            acceptable=change.acceptable,
        )
        if change.election_request.chosen is not None:
            leader, basis = change.election_request.chosen
            elected = ElectionResult(leader, candidates.basis(leader) or basis)
        else:
            elected = elect(change.election_request.election or self.rules.usual_election, candidates)
        if elected.basis is not None and elected.basis.is_lossy:
            self.isr, self.elr = (elected.leader,), ()
        elif elected.basis is Basis.ELR:
            self.isr = (elected.leader,)
            self.elr = tuple(replica for replica in self.elr if replica != elected.leader)
        return elected

    def _name_leader(self, elected: ElectionResult) -> None:
        before = self.before
        replica_left = self.replicas is not before.replicas and any(
            replica not in self.replicas for replica in before.replicas
        )
        # an empty ISR is not written, so no replica leaves it
        shrinks = self.rules.bumps_on_shrink and bool(self.isr) and any(each not in self.isr for each in before.isr)
        if elected.leader != before.leader or elected.basis is not None or replica_left or shrinks:
            self.record.leader = elected.leader
        self.last_known = self._last_known(elected)
        if self.change.cause.unregistered in self.last_known:
            self.last_known = tuple(replica for replica in self.last_known if replica != self.change.cause.unregistered)

    def _last_known_leader(self) -> Ids:
        """The LastKnownELR from which the last known leader may be elected."""
        if not self.rules.elr_enabled or self.rules.manager_enabled:
            return ()
        return last_known_after(self.remembered, None, self.replicas)

    def _last_known(self, elected: ElectionResult) -> Ids:
        change, before = self.change, self.before
        if not self.rules.elr_enabled:
            return before.last_known_elr
        if self.rules.manager_enabled:
            if elected.basis is not None and elected.basis.is_lossy:
                return ()
            return all_lost_after(self.remembered, self.isr, self.elr, self.replicas, self.min_isr, change.cause.lost)
        named = None if self.record.leader == LEADER_UNCHANGED else BrokerId(self.record.leader)
        return last_known_after(self.remembered, named, self.replicas)

    def _write_lists(self, elected: ElectionResult) -> None:
        before, record = self.before, self.record
        if self.elr != before.elr:
            record.eligible_leader_replicas = list(self.elr)
        if self.last_known != before.last_known_elr:
            record.last_known_elr = list(self.last_known)
        is_new = elected.basis is not None and elected.basis.is_lossy
        if (self.isr != before.isr or is_new) and (self.isr or self.rules.elr_enabled):
            record.isr = list(self.isr)

    def _write_assignment(self) -> None:
        before, record = self.before, self.record
        if self.replicas != before.replicas:
            record.replicas = list(self.replicas)
            if self.directories:
                record.directories = [self._directory(replica) for replica in self.replicas]
        elif self.directories != before.directories:
            record.directories = list(self.directories)
        if self.adding != before.adding:
            record.adding_replicas = list(self.adding)
        if self.removing != before.removing:
            record.removing_replicas = list(self.removing)

    def _directory(self, replica: BrokerId) -> Uuid:
        if replica in self.before.replicas:
            return self.directories[self.before.replicas.index(replica)]
        return self.rules.default_directory(replica)

    def _no_longer_awaited(self, elected: ElectionResult) -> Ids:
        """Replicas that may get another directory: their old data is given up, or other replicas have it."""
        before = self.before
        if elected.basis is not None and elected.basis.is_lossy:
            return before.replicas
        stay = (*self.isr, *self.elr)
        if elected.basis is None:
            if self.last_known == before.last_known_elr:
                return ()
            stay = (*stay, *self.last_known)
        return tuple([replica for replica in before.last_known_elr if replica not in stay])

    def _write_recovery_state(self, elected: ElectionResult) -> None:
        wanted = self.change.target.recovery_state
        if elected.basis is not None and elected.basis.is_lossy:
            wanted = RECOVERING
            self.record.election_basis = self._election_basis(elected.leader, elected.basis)
        if wanted is not None and wanted != self.before.leader_recovery_state:
            self.record.leader_recovery_state = wanted

    def _election_basis(self, leader: BrokerId, basis: Basis) -> PartitionChangeRecord.ElectionBasis:
        """What is known about the loss. The controller adds its epoch and the time when it appends the record."""
        known = {answer.broker: answer for answer in self.change.election_request.answers}
        answers = [known.get(replica) or ReplicaAnswer(replica) for replica in self.replicas]
        return PartitionChangeRecord.ElectionBasis(
            basis=basis.number,
            leader=leader,
            leader_epoch=self.before.leader_epoch + 1,
            end_offset=next(answer.end_offset for answer in answers if answer.broker == leader),
            replicas=[
                PartitionChangeRecord.ReplicaAnswer(
                    broker_id=answer.broker,
                    broker_epoch=answer.broker_epoch,
                    last_written_leader_epoch=answer.last_written_epoch,
                    log_end_offset=answer.end_offset,
                    may_lack_records=answer.may_lack_records,
                )
                for answer in answers
            ],
        )


def _changes_nothing(record: PartitionChangeRecord) -> bool:
    return (
        record.leader == LEADER_UNCHANGED
        and record.leader_recovery_state == RECOVERY_STATE_UNCHANGED
        and record.isr is None
        and record.replicas is None
        and record.adding_replicas is None
        and record.removing_replicas is None
        and record.eligible_leader_replicas is None
        and record.last_known_elr is None
        and record.directories is None
    )
