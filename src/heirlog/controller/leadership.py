"""Changes of many partitions at once, when a broker leaves or joins.

    leaves  it leaves every ISR (and, if its data may be gone, every ELR). Partitions that it led elect another leader
    joins   each leaderless partition of the cluster holds one election; the broker counts as acceptable already

A replica can lead if its broker is active (registered, unfenced, not in controlled shutdown) and its log directory is
online. The broker that leaves counts as not active and the one that joins as active, because the record that says so is
in the same batch, before or after these records.

Source: KIP-631, KIP-841, KIP-966.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from heirlog.controller.election import Acceptable, Election
from heirlog.controller.partition_change import (
    NO_CAUSE,
    UNCHANGED,
    USUAL_ELECTION,
    BuiltChange,
    ChangeCause,
    ElectionRequest,
    PartitionChangeBuilder,
    PartitionRules,
    TargetState,
)
from heirlog.controller.recovery.strategy import UNCLEAN_ELECTION_ENABLE, Strategy, strategy_of
from heirlog.metadata.basis import Basis
from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.configs import topic_value
from heirlog.metadata.features import NO_BUMP_ON_SHRINK
from heirlog.metadata.image import Image
from heirlog.metadata.min_isr import configured_min_isr
from heirlog.metadata.state import UNASSIGNED_DIRECTORY, Ids, PartitionRegistration
from heirlog.protocol.records import PartitionChangeRecord
from heirlog.protocol.types import BrokerId, PartitionKey, Uuid


@dataclass(slots=True)
class Changes:
    """The records made so far, and the basis of each election in them."""

    records: list[PartitionChangeRecord] = field(default_factory=list)
    elections: list[Basis] = field(default_factory=list)

    def add(self, built: BuiltChange) -> None:
        if built.record is not None:
            self.records.append(built.record)
            if built.basis is not None:
                self.elections.append(built.basis)


class Leadership:
    """Makes partition changes for one image. Cheap to create; valid only until records are applied to the image."""

    def __init__(
        self,
        image: Image,
        static: StaticConfig,
        *,
        manager_enabled: bool | None = None,
        elr_enabled: bool | None = None,
    ) -> None:
        """manager_enabled, elr_enabled: the rules to use while a feature level changes; None: as in the image."""
        self._image = image
        self._static = static
        # resolved once per topic or assignment, not per partition: a broker with 10,000 partitions is fenced in one go
        self._configured_min_isr: dict[Uuid, int] = {}
        self._allows_unclean: dict[Uuid, bool] = {}
        self._rules: dict[Uuid, PartitionRules] = {}
        self._distinct_rules: dict[tuple[Election, int], PartitionRules] = {}
        self._elr_enabled = image.elr_enabled if elr_enabled is None else elr_enabled
        self._bumps_on_shrink = image.metadata_version < NO_BUMP_ON_SHRINK
        self.manager_enabled = image.recovery_manager_enabled if manager_enabled is None else manager_enabled
        self._strategy: dict[Uuid, Strategy] = {}
        self._active = frozenset(broker.id for broker in image.brokers.values() if broker.is_active)
        self._acceptable: dict[tuple[Ids, tuple[Uuid, ...]], Ids] = {}

    def configured_min_isr(self, topic_id: Uuid) -> int:
        found = self._configured_min_isr.get(topic_id)
        if found is None:
            found = configured_min_isr(self._image, self._static, self._image.topics[topic_id].name)
            self._configured_min_isr[topic_id] = found
        return found

    def min_isr(self, topic_id: Uuid, replicas: Ids) -> int:
        """The effective min ISR of a partition of the topic that is assigned to `replicas`."""
        return min(self.configured_min_isr(topic_id), len(replicas))

    def allows_unclean(self, topic_id: Uuid) -> bool:
        found = self._allows_unclean.get(topic_id)
        if found is None:
            name = self._image.topics[topic_id].name
            found = bool(topic_value(self._image, self._static, name, UNCLEAN_ELECTION_ENABLE))
            self._allows_unclean[topic_id] = found
        return found

    def usual_election(self, topic_id: Uuid) -> Election:
        """The election that every state change holds, unless an operator requests another one.

        With the recovery manager on, no replica is elected without knowing its log: the manager asks the replicas
        first, even where loss is allowed.
        """
        if self.manager_enabled:
            return Election.ONLINE
        return Election.UNCLEAN if self.allows_unclean(topic_id) else Election.ONLINE

    def may_lose(self, topic_id: Uuid) -> bool:
        """Whether the operator prefers a leader that lacks records to none."""
        if self.manager_enabled:
            return self.strategy(topic_id) is Strategy.AGGRESSIVE
        return self.allows_unclean(topic_id)

    def strategy(self, topic_id: Uuid) -> Strategy:
        found = self._strategy.get(topic_id)
        if found is None:
            found = strategy_of(self._image, self._static, self._image.topics[topic_id].name)
            self._strategy[topic_id] = found
        return found

    def acceptable(
        self, state: PartitionRegistration, leaving: BrokerId | None = None, joining: BrokerId | None = None
    ) -> Acceptable:
        def is_acceptable(replica: BrokerId) -> bool:
            if replica == leaving or (replica not in self._active and replica != joining):
                return False
            broker = self._image.brokers.get(replica)
            return broker is not None and broker.has_online(state.directory_of(replica))

        return is_acceptable

    def acceptable_replicas(self, state: PartitionRegistration) -> Ids:
        """The replicas that can lead now, in assignment order."""
        place = (state.replicas, state.directories)
        found = self._acceptable.get(place)
        if found is None:
            is_acceptable = self.acceptable(state)
            found = tuple([replica for replica in state.replicas if is_acceptable(replica)])
            self._acceptable[place] = found
        return found

    def change(
        self,
        topic_id: Uuid,
        partition: int,
        target: TargetState = UNCHANGED,
        cause: ChangeCause = NO_CAUSE,
        election_request: ElectionRequest = USUAL_ELECTION,
    ) -> BuiltChange:
        """One change of one partition as it is in the image."""
        before = self._image.partitions[topic_id][partition]
        placed = before if target.directories is None else before._replace(directories=target.directories)
        return PartitionChangeBuilder(
            topic_id=topic_id,
            partition=partition,
            before=before,
            rules=self.rules_of(topic_id),
            acceptable=self.acceptable(placed, cause.leaving, cause.joining),
            target=target,
            cause=cause,
            election_request=election_request,
        ).build()

    def rules_of(self, topic_id: Uuid) -> PartitionRules:
        """The same object for all topics with the same rules."""
        found = self._rules.get(topic_id)
        if found is None:
            usual_election, configured_min_isr = self.usual_election(topic_id), self.configured_min_isr(topic_id)
            found = self._distinct_rules.get((usual_election, configured_min_isr))
            if found is None:
                found = self._distinct_rules[usual_election, configured_min_isr] = PartitionRules(
                    usual_election=usual_election,
                    configured_min_isr=configured_min_isr,
                    elr_enabled=self._elr_enabled,
                    manager_enabled=self.manager_enabled,
                    bumps_on_shrink=self._bumps_on_shrink,
                    default_directory=self.default_directory,
                    replacement_directory=self.replacement_directory,
                )
            self._rules[topic_id] = found
        return found

    def default_directory(self, broker_id: BrokerId) -> Uuid:
        """The broker's directory if it has only one; else the broker chooses and reports it (assign_directories.py)."""
        broker = self._image.brokers.get(broker_id)
        if broker is None or len(broker.directories) != 1:
            return UNASSIGNED_DIRECTORY
        return broker.directories[0]

    def replacement_directory(self, broker_id: BrokerId, directory: Uuid) -> Uuid:
        """The directory of a replica that is in `directory` now and may start with an empty log."""
        broker = self._image.brokers.get(broker_id)
        return directory if broker is None or broker.has_online(directory) else self.default_directory(broker_id)

    def broker_leaves(
        self,
        broker: BrokerId,
        failed: Collection[Uuid] = (),
        partitions: Iterable[PartitionKey] | None = None,
    ) -> Changes:
        """The broker is fenced, in controlled shutdown, or back after a clean stop.

        Its log is complete, so it may become eligible. failed: directories that it has just lost; replicas in them do
        not become eligible. partitions: only these, as far as they still exist with the broker in their ISR; None: all.
        """
        changes = self.broker_lost_data(broker, self.partitions_in(broker, failed)) if failed else Changes()
        alike = _Alike(self, broker, ChangeCause(leaving=broker))
        for topic_id, partition in self._image.in_isr.of(broker) if partitions is None else partitions:
            before = self._image.partition(topic_id, partition)
            if before is None or broker not in before.isr or (failed and before.directory_of(broker) in failed):
                continue
            changes.add(alike.change(topic_id, partition, before))
        return changes

    def partitions_in(self, broker: BrokerId, directories: Collection[Uuid]) -> list[tuple[Uuid, int]]:
        """Partitions whose ISR or ELR names the broker and whose replica is in one of these directories."""
        return [
            (topic_id, partition)
            for topic_id, partition in self._image.in_isr.of(broker) + self._image.in_elr.of(broker)
            if self._image.partitions[topic_id][partition].directory_of(broker) in directories
        ]

    def broker_lost_data(self, broker: BrokerId, partitions: Iterable[PartitionKey] | None = None) -> Changes:
        """Its log may lack records: it leaves ISR and ELR of `partitions` (default: all), and enters none.

        partitions: as far as they still exist.
        """
        if partitions is None:
            partitions = self._image.in_isr.of(broker) + self._image.in_elr.of(broker)
        changes = Changes()
        alike = _Alike(self, broker, ChangeCause(lost=(broker,), leaving=broker))
        for topic_id, partition in partitions:
            before = self._image.partition(topic_id, partition)
            if before is not None:
                changes.add(alike.change(topic_id, partition, before))
        return changes

    def named_in_lists(self, broker: BrokerId) -> list[PartitionKey]:
        """Partitions whose ISR, ELR or LastKnownELR names the broker.

        Looks at every partition: there is no index from a broker to the LastKnownELRs that name it.
        """
        partitions = self._image.in_isr.of(broker) + self._image.in_elr.of(broker)
        last_known = [
            (topic_id, partition)
            for topic_id in sorted(self._image.partitions)
            for partition, state in sorted(self._image.partitions[topic_id].items())
            if broker in state.last_known_elr
        ]
        return list(dict.fromkeys(partitions + last_known))

    def broker_unregistered(self, broker: BrokerId, partitions: Iterable[PartitionKey]) -> Changes:
        """The broker was unregistered: it leaves ISR, ELR and LastKnownELR of these partitions, and enters none."""
        changes = Changes()
        cause = ChangeCause(lost=(broker,), leaving=broker, unregistered=broker)
        for topic_id, partition in partitions:
            state = self._image.partition(topic_id, partition)
            if state is not None:
                changes.add(self.change(topic_id, partition, TargetState(isr=without(state.isr, broker)), cause))
        return changes

    def electable(self, broker: BrokerId | None) -> list[PartitionKey]:
        """Leaderless partitions that hold an election when `broker` is unfenced (None: no broker joins)."""
        leaderless = self._image.leaderless()
        if broker is None or not self.manager_enabled:
            return leaderless
        # with the manager on, only members of ISR or ELR are elected here, and only the joining one is new
        states = ((key, self._image.partitions[key[0]][key[1]]) for key in leaderless)
        return [key for key, state in states if broker in state.isr or broker in state.elr]

    def broker_joins(self, broker: BrokerId | None, partitions: Iterable[PartitionKey] | None = None) -> Changes:
        """Hold elections while `broker` is unfenced (None: no broker joins) for these leaderless partitions.

        partitions: as far as they exist and are leaderless; None: all that are `electable`.
        """
        changes = Changes()
        cause = ChangeCause(joining=broker)
        for topic_id, partition in self.electable(broker) if partitions is None else partitions:
            state = self._image.partition(topic_id, partition)
            if state is not None and not state.has_leader:
                changes.add(self.change(topic_id, partition, cause=cause))
        return changes


class _Alike:
    """Takes one broker out of the ISRs of many partitions.

    Partitions in the same state change in the same way: a hundred thousand have some hundred distinct states. So the
    change is made once for each state, and copied, which takes a fifth of the time. A lossy election is not copied: its
    record has the leader epoch.
    """

    def __init__(self, leadership: Leadership, broker: BrokerId, cause: ChangeCause) -> None:
        self._leadership = leadership
        self._broker = broker
        self._cause = cause
        self._known: dict[tuple[object, ...], BuiltChange] = {}

    def change(self, topic_id: Uuid, partition: int, before: PartitionRegistration) -> BuiltChange:
        rules = self._leadership.rules_of(topic_id)
        # everything that the builder reads; the epochs are not in the record
        state = (
            id(rules),
            before.replicas,
            before.isr,
            before.leader,
            before.elr,
            before.last_known_elr,
            before.adding,
            before.removing,
            before.directories,
            before.leader_recovery_state,
        )
        known = self._known.get(state)
        if known is not None:
            return BuiltChange(_for_partition(known.record, topic_id, partition), known.basis)
        target = TargetState(isr=without(before.isr, self._broker))
        built = self._leadership.change(topic_id, partition, target, self._cause)
        if built.basis is None or not built.basis.is_lossy:
            self._known[state] = built
        return built


def _for_partition(
    record: PartitionChangeRecord | None, topic_id: Uuid, partition: int
) -> PartitionChangeRecord | None:
    """The same change of another partition."""
    if record is None:
        return None
    return PartitionChangeRecord(
        partition_id=partition,
        topic_id=topic_id,
        isr=record.isr,
        leader=record.leader,
        replicas=record.replicas,
        removing_replicas=record.removing_replicas,
        adding_replicas=record.adding_replicas,
        leader_recovery_state=record.leader_recovery_state,
        directories=record.directories,
        eligible_leader_replicas=record.eligible_leader_replicas,
        last_known_elr=record.last_known_elr,
    )


def without(ids: Ids, broker: BrokerId) -> Ids:
    if broker not in ids:
        return ids
    return tuple([member for member in ids if member != broker])
