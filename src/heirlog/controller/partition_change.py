"""The one builder of partition changes: every PartitionChangeBuilder record is made here.

A caller says what should become of the partition (`isr`, `replicas`, who was `lost`) and which kind of election to
hold; the builder answers with one record, or with none if nothing would change. Order inside one build:

    1  a reassignment that can complete replaces the target ISR and the target replicas
    2  who stays eligible (eligible.py)
    3  the election (election.py), which may replace the ISR and empty the lists
    4  a replica that left the assignment bumps the leader epoch: the record names the leader again; below
       metadata.version 3.6-IV0 one that left the ISR does too
    5  the lists, where they differ from the stored ones
    6  the ISR, where it differs, or a lossy election has made it. With ELR off an empty one is not written: the last
       member stays, as the only way back
    7  LastKnownELR: the last known leader, or with the recovery manager everyone lost
    8  replicas, adding, removing, directories
    9  the recovery state that was asked for; of a lossy election also what is known of the loss (metadata/basis.py)

A replica whose directory was replaced keeps its place while it may be waited for (registration.py). Every election
places it anew, and so does the change that takes it off LastKnownELR: nobody waits for it any more. Without that a
partition that needs all its replicas for min ISR would never reach it again.

Epochs follow from the record: the partition epoch grows with every record, the leader epoch exactly if a leader is
named.

A reassignment completes if its final ISR (the target ISR without removed replicas) holds every final replica, at least
min ISR of them, and someone who can lead. Without the last two a completion could leave a partition that cannot commit,
or with no leader at all. With the recovery manager it waits for the adding replicas only, unless fewer are added than
removed (KAFKA-19975): a replica that stays and is sick would hold it up for ever. Cancelling one asks for its original
replicas as targets and nothing adding or removing: then there is nothing to complete.

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


def _as_it_is(broker: BrokerId, directory: Uuid) -> Uuid:
    return directory


class BuiltChange(NamedTuple):
    record: PartitionChangeRecord | None
    """None: nothing would change."""
    basis: Basis | None
    """Set if somebody was elected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRules:
    """What the image says of every change of a topic's partitions."""

    usual_election: Election
    min_isr: int
    """`min.insync.replicas` as configured; the builder caps it by the assignment."""
    elr_enabled: bool
    keeps_all_lost: bool = False
    """The recovery manager is on: LastKnownELR is the full list, and elects nobody by itself."""
    bumps_on_shrink: bool = False
    """metadata.version below 3.6-IV0: a replica that leaves the ISR costs a leader epoch (KAFKA-15021)."""
    default_directory: Callable[[BrokerId], Uuid] = _unassigned
    """Of a new replica."""
    home: Callable[[BrokerId, Uuid], Uuid] = _as_it_is
    """Of a replica that nobody waits for any more: another directory than its own where that is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetState:
    """What shall become of the partition. None: as it is."""

    isr: Ids | None = None
    replicas: Ids | None = None
    adding: Ids | None = None
    removing: Ids | None = None
    directories: tuple[Uuid, ...] | None = None
    """Log directories of the present replicas, in their order."""
    last_known: Ids | None = None
    """What LastKnownELR says from now on, where its meaning changes (recovery/switch.py)."""
    recovery_state: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeCause:
    """The brokers because of which the partition changes."""

    lost: Collection[BrokerId] = ()
    """Replicas whose data may be gone: they never enter the ELR by this change."""
    leaving: BrokerId | None = None
    """A broker that can no longer lead once the batch of this change is applied."""
    joining: BrokerId | None = None
    """A broker that can lead from then on."""
    unregistered: BrokerId | None = None
    """A broker that is no member of the cluster any more: no list names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ballot:
    """How the leader is elected."""

    election: Election | None = None
    """None: as the rules say."""
    chosen: ElectionResult | None = None
    """The replica that the recovery manager or an operator has chosen, and on what basis. Acceptable; its basis is
    clean if it has a clean one."""
    answers: Collection[ReplicaAnswer] = ()
    """What replicas said of their logs: an election that may lose records writes it down."""


AS_IT_IS = TargetState()
NO_CAUSE = ChangeCause()
USUAL = Ballot()


@dataclass(slots=True, kw_only=True)
class PartitionChangeBuilder:
    """One change of one partition.

    Not frozen only because building ten thousand of these is what fencing a broker costs.
    """

    topic_id: Uuid
    partition: int
    before: PartitionRegistration
    rules: PartitionRules
    acceptable: Acceptable
    target: TargetState = AS_IT_IS
    cause: ChangeCause = NO_CAUSE
    ballot: Ballot = USUAL

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
        """The state before, with the LastKnownELR that this change begins with."""
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
            # records of before KIP-858 name no directories
            places = zip(self.before.replicas, self.directories, strict=False)
            self.directories = tuple([self.rules.home(*place) if place[0] in awaited else place[1] for place in places])
        self._write_assignment()
        self._write_recovery_state(elected)
        return BuiltChange(None if _says_nothing(self.record) else self.record, elected.basis)

    @property
    def min_isr(self) -> int:
        return min(self.rules.min_isr, len(self.replicas))

    def _complete_reassignment(self) -> None:
        if not self.adding and not self.removing:
            return
        final = tuple(replica for replica in self.replicas if replica not in self.removing)
        final_isr = tuple(replica for replica in self.isr if replica not in self.removing)
        eager = self.rules.keeps_all_lost and len(self.adding) >= len(self.removing)
        required = self.adding if eager else final
        if (
            not final_isr
            or any(replica not in final_isr for replica in required)
            or len(final_isr) < min(self.rules.min_isr, len(final))
            or not any(self.change.acceptable(replica) for replica in final_isr)
        ):
            return
        self.replicas, self.isr, self.adding, self.removing = final, final_isr, (), ()

    def _elect(self) -> ElectionResult:
        """The election, and what its basis does to ISR and lists."""
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
        if change.ballot.chosen is not None:
            leader, basis = change.ballot.chosen
            elected = ElectionResult(leader, candidates.basis(leader) or basis)
        else:
            elected = elect(change.ballot.election or self.rules.usual_election, candidates)
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
        # an empty ISR is not written: then nobody leaves it
        shrinks = self.rules.bumps_on_shrink and bool(self.isr) and any(each not in self.isr for each in before.isr)
        if elected.leader != before.leader or elected.basis is not None or replica_left or shrinks:
            self.record.leader = elected.leader
        self.last_known = self._last_known(elected)
        if self.change.cause.unregistered in self.last_known:
            self.last_known = tuple(replica for replica in self.last_known if replica != self.change.cause.unregistered)

    def _last_known_leader(self) -> Ids:
        """Who may be elected as the last known leader."""
        if not self.rules.elr_enabled or self.rules.keeps_all_lost:
            return ()
        return last_known_after(self.remembered, None, self.replicas)

    def _last_known(self, elected: ElectionResult) -> Ids:
        change, before = self.change, self.before
        if not self.rules.elr_enabled:
            return before.last_known_elr
        if self.rules.keeps_all_lost:
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
        """Who may be placed anew: what they had is given up, or others have it."""
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
        """What is known of the loss. Controller epoch and time are added where the record is appended."""
        known = {answer.broker: answer for answer in self.change.ballot.answers}
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
                )
                for answer in answers
            ],
        )


def _says_nothing(record: PartitionChangeRecord) -> bool:
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
