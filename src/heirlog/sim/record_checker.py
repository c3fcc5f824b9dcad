"""Checks what the controllers commit, each record with the state before it.

    ISR, ELR     T2, T4: every member of ISR and ELR may be a member
    returns      T11: a broker that stopped uncleanly has to catch up first
    elections    R2, T8b, T10 (`heirlog.sim.leader_checker`), and what the oracle says of the choice
                 (`heirlog.sim.election_checker`)

It also counts the rare states that a run reached.
"""

from __future__ import annotations

from typing import Any

from heirlog.controller.recovery.manager import AGGRESSIVE_WINDOW_MS
from heirlog.controller.recovery.strategy import TIMEOUT, Strategy, strategy_of
from heirlog.metadata.basis import Basis
from heirlog.metadata.journal import ImageJournal
from heirlog.metadata.min_isr import min_isr_of
from heirlog.metadata.state import BrokerRegistration, Ids, PartitionRegistration
from heirlog.protocol.records import (
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    FeatureLevelRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveTopicRecord,
)
from heirlog.protocol.types import BrokerId, Uuid
from heirlog.sim import invariants, leader_checker
from heirlog.sim.cluster import Machine
from heirlog.sim.disk_checker import DiskChecker
from heirlog.sim.disk_logs import LogOnDisk, log_on_disk
from heirlog.sim.election_checker import KnownReplica, candidates, judge_election
from heirlog.sim.leader_checker import is_lossy
from heirlog.sim.nemesis import DRIFTS_PPM
from heirlog.sim.oracle import Key, Oracle
from heirlog.sim.partition_model import LOOKED_AT_EACH_TIME, PartitionModel

FENCED = "broker.fenced"
"""Counts the committed records that fence a broker."""

COMMIT_MS = 200
"""A record takes less from being appended to being committed."""


class RecordChecker:
    def __init__(self, oracle: Oracle, disk_checker: DiskChecker) -> None:
        self._seen = oracle
        self.disk_checker = disk_checker
        self._rules = leader_checker.LeaderRules(oracle.image.recovery_manager_enabled, oracle.is_intact)
        self._cleared: dict[Key, PartitionRegistration] = {}
        """Partitions whose lists a ClearElr of the current batch has emptied, with the state before."""
        self._handed_over: list[Key] = []
        """Partitions whose ELR has become the ISR: by a downgrade, if the current batch ends with the feature off."""
        self._metadata_version = 0
        """The newest level; 0: not known yet."""
        self._was_off = False
        """Without the feature the last member stays in the ISR, fenced or not, and is in it when the feature is back
        on.
        """

    def on_record(self, record: Any, offset: int, journal: ImageJournal) -> None:
        image = self._seen.image
        if self._rules.manager is not image.recovery_manager_enabled:
            self._rules.manager = image.recovery_manager_enabled
            self._seen.world.counters["manager_switched"] += 1
        if isinstance(record, BrokerRegistrationChangeRecord) and record.fenced == 1:
            self._seen.world.counters[FENCED] += 1
        clears_elr = isinstance(record, ClearElrRecord)
        for key, before in journal.partitions.items():
            after = image.partition(*key)
            if after is not None:
                if clears_elr and before is not None:
                    self._cleared.setdefault(key, before)
                self._committed(key, before, after, clears_elr)
        if isinstance(record, (FeatureLevelRecord, RegisterBrokerRecord, RegisterControllerRecord)):
            self._check_levels(record)
        if isinstance(record, RemoveTopicRecord):
            self.disk_checker.topic_removed(Uuid(record.topic_id))
        if isinstance(record, RegisterBrokerRecord):
            broker = BrokerId(record.broker_id)
            self.disk_checker.registered(broker)
            self._registered(broker, journal.brokers.get(broker), image.brokers[broker])

    def metadata_seeded(self) -> None:
        """The image was replaced, and its partitions have no leader, ISR or ELR. The answers to clients stay valid: an
        elected replica must have those records.
        """
        for topic_id, partitions in self._seen.image.partitions.items():
            for index, state in partitions.items():
                self._was_reset((topic_id, index), state)

    def _was_reset(self, key: Key, after: PartitionRegistration) -> None:
        model = self._seen.model(key)
        model.elected[after.leader_epoch] = after.leader
        model.taken_out = True
        model.leaderless_since_ms = self._seen.history.now_ms()

    def _is_reset(self, before: PartitionRegistration, after: PartitionRegistration) -> bool:
        """By a broker that accepted metadata older than its own."""
        accepts = (machine.config["heirlog.accept.older.metadata"] for machine in self._seen.cluster.all_machines)
        skips_epochs = after.leader_epoch > before.leader_epoch + 1
        return (
            skips_epochs and not (after.has_leader or after.isr or after.elr or after.last_known_elr) and any(accepts)
        )

    def _committed(
        self, key: Key, before: PartitionRegistration | None, after: PartitionRegistration, clears_elr: bool
    ) -> None:
        image = self._seen.image
        model = self._seen.model(key)
        min_isr = min_isr_of(image, self._seen.static, key[0], after)
        if before is None:
            self._check_racks(key, after)
            model.elected[after.leader_epoch] = after.leader
            # a replica that was fenced when the topic was created is not a member yet
            model.min_isr = min(min_isr, len(after.isr))
        else:
            self.disk_checker.partition_changed(key, before, after)
            model.left.update(dict.fromkeys(broker for broker in before.replicas if broker not in after.replicas))
            event = leader_checker.CommittedChange(
                before, after, min_isr, image.elr_enabled, clears_elr, self._forbids_loss(key)
            )
            if self._is_reset(before, after):
                self._was_reset(key, after)
            else:
                self._succeeds(key, model, event)
        if image.elr_enabled:
            if before is not None and after.leader < 0 and not before.isr and after.isr and after.isr == before.elr:
                self._handed_over.append(key)
            else:
                self._check_isr_and_elr(
                    key, after, kept=self._was_off and before is not None and after.isr == before.isr
                )
        else:
            self._was_off = True
        for broker in list(model.not_caught_up):
            node = self._seen.cluster.broker(broker).running
            partition = node.broker.replicas.partition(key) if node is not None else None
            if partition is not None and model.begins_at_epoch is None:
                # it may hold everything since the watermark of its lineage became known, without any change of its own
                self._seen.may_have_caught_up(broker, partition, model)
        for broker in model.not_caught_up if self._knows_watermark(model) else ():
            self._seen.must_not("T11", invariants.t11_returned_uncleanly(broker, after, True), model.name)
        for machine, node in self._seen.running_brokers():
            partition = node.broker.replicas.partition(key)
            if partition is not None:
                self._seen.check_member(BrokerId(machine.node_id), node.broker, after, partition, model)

    def _knows_watermark(self, model: PartitionModel) -> bool:
        """Whether it can be judged who has caught up. With many partitions the checker looks at each only now and then:
        a leader may have begun its lineage, and have asked for a member, since the last look.
        """
        partitions = sum(map(len, self._seen.image.partitions.values()))
        return model.begins_at_epoch is None or partitions <= LOOKED_AT_EACH_TIME

    def _check_levels(self, record: Any) -> None:
        """T20; also counts the changes of metadata.version."""
        image = self._seen.image
        if image.metadata_version != self._metadata_version:
            if self._metadata_version:
                raised = image.metadata_version > self._metadata_version
                self._seen.world.counters["metadata_raised" if raised else "metadata_lowered"] += 1
            self._metadata_version = image.metadata_version
        nodes = {
            **{f"broker {broker.id}": broker.features for broker in image.brokers.values()},
            **{f"controller {controller.id}": controller.features for controller in image.controllers.values()},
        }
        supported = {
            node: {feature.name: (feature.min_version, feature.max_version) for feature in features}
            for node, features in nodes.items()
        }
        self._seen.must_not("T20", invariants.t20_levels_are_supported(image.features, supported))

    def _check_racks(self, key: Key, state: PartitionRegistration) -> None:
        """T19, of a new partition."""
        image = self._seen.image
        racks = {int(broker.id): broker.rack for broker in image.brokers.values()}
        if image.topics[key[0]].name in self._seen.placed_by_hand or len(set(racks.values())) < 2:
            return
        self._seen.world.counters["placed_in_racks"] += 1
        sentence = invariants.t19_replicas_use_the_racks(state.replicas, racks)
        self._seen.must_not("T19", sentence, self._seen.model(key).name)

    def _succeeds(self, key: Key, model: PartitionModel, event: leader_checker.CommittedChange) -> None:
        self._count(event.before, event.after, event.min_isr)
        if event.after.leader < 0 <= event.before.leader:
            model.leaderless_since_ms = self._seen.history.now_ms()
        if event.is_lossy:
            # a lossy election may drop any member; a ClearElr before it is checked without the election
            self._check_cleared(key, event.before)
        finding = leader_checker.judge(model, event, self._rules)
        if finding is not None:
            self._seen.broken(finding.check, f"{model.name}: {finding.sentence}")
        self._judge_election(key, model, event)
        stands_again = event.elects and event.after.leader in model.last_standing
        if stands_again:
            model.stands_again = event.after.leader_epoch
        if event.is_lossy or stands_again:
            model.begins_at_epoch = event.after.leader_epoch
            election = event.after.basis if event.is_lossy else None
            model.answers = () if election is None else candidates(election, self._seen.image)
            # a winner from the last known replicas is the lineage now: what it holds is everything
            model.not_caught_up.pop(event.after.leader, None)
            model.last_standing.pop(event.after.leader, None)

    def _judge_election(self, key: Key, model: PartitionModel, event: leader_checker.CommittedChange) -> None:
        election = event.after.basis
        if election is None or election is event.before.basis:
            return
        counters = self._seen.world.counters
        counters[f"basis.{election.basis.value}"] += 1
        if election.basis is Basis.RECOVERED:
            counters["recovery"] += 1
            counters["recovery_missing_answer"] += not election.all_answered
        if model.begins_at_epoch is not None:
            return  # the start of the lineage before is unknown
        quorum: Ids = ()
        impatient_ms = 0
        if election.basis is Basis.RECOVERED and not self._seen.operator_elects:
            strategy = self._strategy(key)
            if strategy is Strategy.NONE:
                self._seen.broken("T8b", f"{model.name}: None leaves it to an operator, {election.leader} was elected")
            if strategy is Strategy.BALANCED:
                quorum = _quorum(event)
            impatient_ms = self._impatient_ms(model, strategy)
        finding = judge_election(
            model, election, self._witnesses(key, event), quorum, impatient_ms, waits_for_all=bool(quorum)
        )
        if finding is not None:
            self._seen.broken(finding.check, f"{model.name}: {finding.sentence}")

    def _witnesses(self, key: Key, event: leader_checker.CommittedChange) -> dict[int, KnownReplica]:
        """Of each replica, those of nodes that are down included."""
        found = {}
        for broker in event.after.replicas:
            machine = self._seen.cluster.broker(broker)
            node = machine.running
            partition = None if node is None else node.broker.replicas.partition(key)
            if node is None or partition is None:
                held = self._on_disk(key, machine)
                if held is not None:
                    found[int(broker)] = KnownReplica(held, reachable=False)
                continue
            if partition.offline:
                continue
            registered = self._seen.image.brokers.get(broker)
            reachable = (
                registered is not None and registered.is_active and self._seen.runs_as_registered(broker, node.broker)
            )
            found[int(broker)] = KnownReplica(partition.log, reachable)
        return found

    def _on_disk(self, key: Key, machine: Machine) -> LogOnDisk | None:
        """Of a node that does not serve the partition now."""
        disk = self._seen.cluster.machines.disk(machine.name)
        if disk.is_broken or machine.name in self._seen.directory_failed_on:
            return None
        topic = self._seen.image.topics[key[0]].name
        return log_on_disk(disk, machine.config.log_dirs, topic, key[1], key[0])

    def _impatient_ms(self, model: PartitionModel, strategy: Strategy) -> int:
        """How much too early it would be to leave out a reachable replica; 0 if it is not too early.

        A recovery cannot have begun before the partition needed one, which is some time before the record is committed.
        The controller's clock may run as fast as a fault makes it.
        """
        timeout_ms = self._seen.static[TIMEOUT] if strategy is Strategy.BALANCED else AGGRESSIVE_WINDOW_MS
        waited_ms = self._seen.history.now_ms() - model.leaderless_since_ms + COMMIT_MS
        return max(0, int(timeout_ms) * 1_000_000 // (1_000_000 + max(DRIFTS_PPM)) - waited_ms)

    def _strategy(self, key: Key) -> Strategy:
        image = self._seen.image
        return strategy_of(image, self._seen.static, image.topics[key[0]].name)

    def _forbids_loss(self, key: Key) -> bool:
        """Whether neither an operator nor the strategy has allowed an election on a lossy basis."""
        return not self._seen.operator_elects and self._strategy(key) is not Strategy.AGGRESSIVE

    def _check_isr_and_elr(self, key: Key, state: PartitionRegistration, *, kept: bool) -> None:
        """T2. kept: by a fenced member, since the feature was off."""
        image = self._seen.image
        fenced = [] if kept else [broker.id for broker in image.brokers.values() if broker.fenced]
        min_isr = min_isr_of(image, self._seen.static, key[0], state)
        sentence = invariants.t2_isr_and_elr_are_consistent(state, min_isr, fenced)
        self._seen.must_not("T2", sentence, self._seen.model(key).name)

    def batch_ends(self) -> None:
        """T2 and T10, once the batch with a downgrade or a ClearElr is complete."""
        handed_over, self._handed_over = self._handed_over, []
        for key in handed_over if self._seen.image.elr_enabled else ():
            state = self._seen.image.partition(*key)
            if state is not None:
                self._check_isr_and_elr(key, state, kept=self._was_off)
        for key in list(self._cleared):
            after = self._seen.image.partition(*key)
            if after is not None:
                self._check_cleared(key, after)
        self._cleared.clear()

    def _check_cleared(self, key: Key, after: PartitionRegistration) -> None:
        """T10: later records of the same batch must name again the members that a ClearElr removed from the ELR."""
        before = self._cleared.pop(key, None)
        if before is not None and self._rules.manager and self._seen.image.elr_enabled:
            min_isr = min_isr_of(self._seen.image, self._seen.static, key[0], after)
            sentence = invariants.t10_members_stay_listed(before, after, min_isr)
            self._seen.must_not("T10", sentence, self._seen.model(key).name)

    def _registered(self, broker: BrokerId, before: BrokerRegistration | None, after: BrokerRegistration) -> None:
        if before is None or before.incarnation_id == after.incarnation_id:
            return
        if self._seen.ended_cleanly(before.incarnation_id):
            self._seen.world.counters["clean_registration"] += 1
            return
        self._seen.world.counters["unclean_registration"] += 1
        for topic_id, index, state in self._seen.image.replicas_on(broker):
            model = self._seen.model((topic_id, index))
            if not self._seen.image.elr_enabled and state.isr == (broker,):
                model.last_standing[broker] = None
                self._seen.world.counters["last_standing"] += 1
                continue
            model.not_caught_up[broker] = None
            self._seen.must_not("T11", invariants.t11_returned_uncleanly(broker, state, True), model.name)

    def _count(self, before: PartitionRegistration, after: PartitionRegistration, min_isr: int) -> None:
        counters = self._seen.world.counters
        if len(after.isr) < min_isr <= len(before.isr):
            counters["under_min_isr"] += 1
        if len(after.isr) > len(before.isr):
            counters["isr_expand"] += 1
        elif len(after.isr) < len(before.isr):
            counters["isr_shrink"] += 1
        if after.leader < 0 <= before.leader:
            counters["leaderless"] += 1
        if after.leader < 0 and not after.isr and not after.elr and (before.isr or before.elr):
            counters["last_known_wait"] += 1
        if after.leader_epoch == before.leader_epoch or after.leader < 0:
            return
        if after.leader != before.leader and before.leader >= 0:
            counters["failover"] += 1
        if is_lossy(before, after):
            counters["lossy_election"] += 1
        elif after.leader in before.elr:
            counters["elr_election"] += 1


def _quorum(event: leader_checker.CommittedChange) -> Ids:
    """Replicas that may have the committed records: all lost since the ISR was at min ISR, if enough are listed."""
    known = event.before.last_known_elr
    if len(known) >= event.min_isr:
        return known
    # an adding replica that is on no list of losses has not been a member
    spared = event.before.adding if known else ()
    return tuple(each for each in event.before.replicas if each in known or each not in spared)
