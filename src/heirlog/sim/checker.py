"""Judges a running cluster after every event, and remembers what only a bystander can know.

    event of a controller  -> newly committed records -> seats (T2), returns (T11), `succession`, rare states
    event of a broker      -> its partitions that changed -> T1, T3 - T5, T7, T8a, T12, R2, the true high watermark
    every `SWEEP_EVENTS`   -> everything, whether it changed or not; what is committed, batch by batch (T6)

What it remembers per partition is a *lineage* (`heirlog.sim.lineage`). A lossy-basis election (the winner was in
neither ISR nor ELR) ends one. The new one begins at the winner's log end, which is known once the winner has taken
over; until then nothing is judged that needs a watermark.

The first broken rule ends the run: what follows from it would only hide it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from heirlog.broker.isr import Isr, PendingExpand
from heirlog.broker.lifecycle import BrokerState
from heirlog.broker.partition import Partition, Role
from heirlog.controller.leadership import RECOVERY_MANAGER, UNCLEAN_ELECTION_ENABLE
from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.configs import topic_value
from heirlog.metadata.journal import Journal
from heirlog.metadata.min_isr import min_isr_of
from heirlog.metadata.state import BrokerState as RegisteredBroker
from heirlog.metadata.state import PartitionState
from heirlog.node.node import Node
from heirlog.protocol.records import ClearElrRecord, RegisterBrokerRecord
from heirlog.protocol.types import BrokerId, Uuid
from heirlog.sim import invariants, succession
from heirlog.sim.cluster import Cluster, Machine
from heirlog.sim.contents import Contents
from heirlog.sim.history import History, Loss, partition_name
from heirlog.sim.invariants import Watermark
from heirlog.sim.lineage import Lineage
from heirlog.sim.succession import is_lossy
from heirlog.sim.truth import Truth
from heirlog.sim.world import LogLine, Process

SWEEP_EVENTS = 400

Key = tuple[Uuid, int]


class Violation(Exception):
    """A rule is broken. `rule`: its short name."""

    def __init__(self, rule: str, sentence: str) -> None:
        super().__init__(f"{rule}: {sentence}")
        self.rule = rule
        self.sentence = sentence


class _Seen(NamedTuple):
    """A replica when it was last looked at."""

    partition: Partition
    role: Role
    leader_epoch: int
    partition_epoch: int
    isr: Isr
    high_watermark: int
    end: int
    start: int
    last_epoch: int
    """Of the record below `end`, or a later one that its leader has begun."""


class Checker:
    """Set `world.observer = checker.observe`."""

    def __init__(self, cluster: Cluster, history: History) -> None:
        self.cluster = cluster
        self.world = cluster.world
        self.history = history
        self.truth = Truth(self._on_record, self._broken)
        self.losses: list[Loss] = []
        self._static: StaticConfig = cluster.controller.config
        self._elr = True
        self.operator_elects = False
        """From now on an operator may: elections on a lossy basis are nobody's fault."""
        self._lineages: dict[Key, Lineage] = {}
        self._contents: dict[Key, Contents] = {}
        self._seen: dict[tuple[str, Key], _Seen] = {}
        self._hurt: set[str] = set()
        """Machines on which a log directory has failed."""
        self._cleared: dict[Key, PartitionState] = {}
        """Whose lists a ClearElr of the batch that is being read has emptied, with the state before."""
        self._process_of: dict[Uuid, Process] = {}
        """Who ran as which incarnation."""
        self._until_sweep = SWEEP_EVENTS
        self._rules = succession.Rules(bool(self._static[RECOVERY_MANAGER]), self._is_whole)
        self.world.on_log = self._on_log

    def observe(self, process: Process | None) -> None:
        if process is None:
            return
        machine = self.cluster.machines_by_host.get(process.host.name)
        if machine is not None and machine.process is process:
            node = machine.running
            if node is not None:
                self._look_at(machine, node)
        self._until_sweep -= 1
        if self._until_sweep <= 0:
            self.sweep()

    def sweep(self) -> None:
        """Judge everything."""
        self._until_sweep = SWEEP_EVENTS
        for machine in self.cluster.all_machines:
            node = machine.running
            if node is not None:
                self._look_at(machine, node, everything=True)

    def misplaced(self) -> str | None:
        """T14 of every running broker. Deletions take their time, so this is for a cluster that is quiet again."""
        image = self.truth.image
        for machine, node in self._running_brokers():
            broker = BrokerId(machine.node_id)
            held = {
                (log.topic, log.partition, log.topic_id)
                for directory in node.directories
                for log in directory.logs.values()
            }
            assigned = {(image.topics[key].name, index, key) for key, index, _ in image.replicas_on(broker)}
            sentence = invariants.t14_disks_hold_what_is_assigned(broker, held, assigned)
            if sentence is not None:
                return sentence
        return None

    def _on_log(self, line: LogLine) -> None:
        if line.event == "log-directory-offline":
            self._hurt.add(line.node)
        if line.event != "log-compacted":
            return
        machine = self.cluster.machines_by_host[line.node]
        assert machine.node is not None
        for partition in machine.node.broker.replicas.all_partitions():
            if (partition.topic, partition.index) == (line.values["topic"], line.values["partition"]):
                sentence = invariants.t13_compaction_is_below_the_high_watermark(
                    machine.node_id, int(str(line.values["clean_offset"])), partition.high_watermark
                )
                self._must_not("T13", sentence, f"{partition.topic}-{partition.index}")

    def _broken(self, rule: str, sentence: str) -> None:
        raise Violation(rule, sentence)

    def _must_not(self, rule: str, sentence: str | None, partition: str = "") -> None:
        if sentence is not None:
            self._broken(rule, f"{partition}: {sentence}" if partition else sentence)

    # nodes

    def _look_at(self, machine: Machine, node: Node, *, everything: bool = False) -> None:
        if machine.config.is_controller:
            self.truth.observe(node.quorum)
            self._check_cleared()
        if machine.config.is_broker:
            self._look_at_broker(machine, node, everything)

    def _look_at_broker(self, machine: Machine, node: Node, everything: bool) -> None:
        broker = node.broker
        if broker.lifecycle.incarnation_id not in self._process_of and machine.process is not None:
            self._process_of[broker.lifecycle.incarnation_id] = machine.process
        if node.image.offset >= self.truth.end:
            self._must_not("T7", invariants.t7_metadata_is_a_prefix(machine.name, node.image.offset, self.truth.end))
        for partition in broker.replicas.all_partitions():
            log = partition.log
            now = _Seen(
                partition,
                partition.role,
                partition.leader_epoch,
                partition.partition_epoch,
                partition.isr,
                partition.high_watermark,
                log.log_end_offset,
                log.log_start_offset,
                log.epochs.latest,
            )
            key = (partition.topic_id, partition.index)
            where = (machine.name, key)
            before = self._seen.get(where)
            if everything or before != now:
                self._seen[where] = now
                self._partition_changed(machine, node, key, before, now)
                if everything:
                    sentence = self._contents_of(key).compare(machine.node_id, partition, self._lineage(key))
                    self._must_not("T6", sentence, self._lineage(key).name)

    def _partition_changed(self, machine: Machine, node: Node, key: Key, before: _Seen | None, now: _Seen) -> None:
        lineage, partition = self._lineage(key), now.partition
        me = BrokerId(machine.node_id)
        self._check_domain(me, node, key, partition, lineage.name)
        state = self.truth.image.partition(*key)
        if state is None or partition.offline:
            return
        if before is not None and now.end < before.end:
            self._check_cut(machine, before, now, lineage)
        if partition.role is Role.LEADER:
            self._leader_changed(me, key, state, partition, lineage)
            if before is None or before.isr is not now.isr:
                self._check_isr(me, key, state, partition, lineage.name)
        self._check_member(me, node, state, partition, lineage)

    def _check_cut(self, machine: Machine, before: _Seen, now: _Seen, lineage: Lineage) -> None:
        """T8a: the end of the log went back. Was anything of the lineage above it?"""
        if lineage.begins_at_epoch is not None or before.end == 0:
            return
        if now.partition is not before.partition and not self._started_whole(machine):
            return
        held_end = min(before.end, lineage.true.offset)
        if lineage.epoch_at(held_end - 1) == before.last_epoch:
            sentence = invariants.t8a_committed_records_stay(machine.node_id, held_end, now.end)
            self._must_not("T8a", sentence, lineage.name)

    def _check_isr(self, me: BrokerId, key: Key, state: PartitionState, partition: Partition, name: str) -> None:
        """T3, of a leader that knows what is committed; T12, of one that asks for somebody."""
        isr = partition.isr
        if isinstance(isr, PendingExpand):
            end, start = partition.followers[isr.added].log_end_offset, partition.leader_epoch_start_offset
            self._must_not("T12", invariants.t12_joiner_has_reached_the_epoch(me, isr.added, end, start), name)
        if state.leader == me and state.partition_epoch == partition.partition_epoch:
            min_isr = min_isr_of(self.truth.image, self._static, key[0], state)
            self._must_not("T3", invariants.t3_leader_counts_everybody(me, isr, state, min_isr), name)

    def _check_domain(self, me: BrokerId, node: Node, key: Key, partition: Partition, name: str) -> None:
        fetched = key in node.broker.fetchers.fetched_partitions
        shutting_down = node.broker.state in (BrokerState.PENDING_CONTROLLED_SHUTDOWN, BrokerState.SHUTTING_DOWN)
        self._must_not("T1", invariants.t1_state_is_in_its_domain(me, partition, fetched, shutting_down), name)
        known = node.image.brokers.get(me)
        fenced = known is not None and known.fenced
        self._must_not("T1", invariants.t1_fenced_broker_does_not_lead(me, fenced, partition), name)

    def _leader_changed(
        self, me: BrokerId, key: Key, state: PartitionState, partition: Partition, lineage: Lineage
    ) -> None:
        epoch = partition.leader_epoch
        self._must_not("R2", invariants.r2_leads_as_elected(me, epoch, lineage.elected.get(epoch)), lineage.name)
        lineage.epoch_starts.setdefault(epoch, partition.leader_epoch_start_offset)
        begins = lineage.begins_at_epoch
        if begins is not None:
            if epoch < begins:
                return  # of the lineage before
            self._begin_lineage(key, partition, lineage, begins)
        elif epoch < lineage.began_at_epoch:
            return
        if partition.high_watermark > lineage.true.offset:
            lineage.expose(partition.high_watermark, partition.log.epochs.entries)
            self._check_all_members(state, partition, lineage)
        if state.leader == me and state.leader_epoch == epoch:
            end = self.history.acknowledged_end.get(lineage.name, 0)
            self._must_not("T5", invariants.t5_leader_holds_what_was_acknowledged(me, end, partition.log), lineage.name)

    def _begin_lineage(self, key: Key, partition: Partition, lineage: Lineage, epoch: int) -> None:
        start = partition.leader_epoch_start_offset
        lineage.begin(start, partition.log.epochs.entries)
        self._contents_of(key).lineage_begins(start)
        now_ms = self.history.now_ms()
        self.history.lineage_began(lineage.name, start, now_ms)
        self.losses.append(Loss(lineage.name, start, epoch, now_ms))
        self.world.counters["lossy_lineage"] += 1

    def _check_all_members(self, state: PartitionState, partition: Partition, lineage: Lineage) -> None:
        key = (partition.topic_id, partition.index)
        for member in sorted({*state.isr, *state.elr}):
            machine = self.cluster.broker(member)
            node = machine.running
            found = node.broker.replicas.partition(key) if node is not None else None
            if node is not None and found is not None and found is not partition:
                self._check_member(member, node, state, found, lineage)

    def _check_member(
        self, me: BrokerId, node: Node, state: PartitionState, partition: Partition, lineage: Lineage
    ) -> None:
        """T4, of a broker whose registered incarnation is the one that runs; and whether it has caught up (T11)."""
        if lineage.begins_at_epoch is not None or partition.offline:
            return
        registered = self.truth.image.brokers.get(me)
        if registered is None or registered.incarnation_id != node.broker.lifecycle.incarnation_id:
            return
        sentence = invariants.t4_member_holds_what_is_committed(me, state, lineage.true, partition.log)
        self._must_not("T4", sentence, lineage.name)
        self._may_have_caught_up(me, partition, lineage)

    def _may_have_caught_up(self, me: BrokerId, partition: Partition, lineage: Lineage) -> None:
        if me in lineage.not_caught_up and self._holds_everything(partition, lineage.true):
            del lineage.not_caught_up[me]

    def _holds_everything(self, partition: Partition, true: Watermark) -> bool:
        log = partition.log
        if log.log_end_offset < true.offset or partition.role is Role.IDLE:
            return False
        return true.offset == 0 or log.epochs.epoch_for_offset(true.offset - 1) == true.epoch

    # committed records

    def _on_record(self, record: Any, offset: int, journal: Journal) -> None:
        image = self.truth.image
        clears_elr = isinstance(record, ClearElrRecord)
        for key, before in journal.partitions.items():
            after = image.partition(*key)
            if after is not None:
                if clears_elr and before is not None:
                    self._cleared.setdefault(key, before)
                self._committed(key, before, after, clears_elr)
        if isinstance(record, RegisterBrokerRecord):
            broker = BrokerId(record.broker_id)
            self._registered(broker, journal.brokers.get(broker), image.brokers[broker])

    def _committed(self, key: Key, before: PartitionState | None, after: PartitionState, clears_elr: bool) -> None:
        image = self.truth.image
        lineage = self._lineage(key)
        min_isr = min_isr_of(image, self._static, key[0], after)
        if before is None:
            lineage.elected[after.leader_epoch] = after.leader
            # whoever was fenced when the topic was made is no member yet
            lineage.min_isr = min(min_isr, len(after.isr))
        else:
            event = succession.Event(before, after, min_isr, image.elr_enabled, clears_elr, self._forbids_loss(key))
            self._succeeds(lineage, event)
        if image.elr_enabled:
            fenced = [broker.id for broker in image.brokers.values() if broker.fenced]
            self._must_not("T2", invariants.t2_seats_are_consistent(after, min_isr, fenced), lineage.name)
        for broker in list(lineage.not_caught_up):
            node = self.cluster.broker(broker).running
            partition = node.broker.replicas.partition(key) if node is not None else None
            if partition is not None and lineage.begins_at_epoch is None:
                # it may hold everything since the watermark of its lineage became known, without any change of its own
                self._may_have_caught_up(broker, partition, lineage)
        for broker in lineage.not_caught_up:
            self._must_not("T11", invariants.t11_returned_uncleanly(broker, after, True), lineage.name)
        for machine, node in self._running_brokers():
            partition = node.broker.replicas.partition(key)
            if partition is not None:
                self._check_member(BrokerId(machine.node_id), node, after, partition, lineage)

    def _succeeds(self, lineage: Lineage, event: succession.Event) -> None:
        self._count(event.before, event.after, event.min_isr)
        finding = succession.judge(lineage, event, self._rules)
        if finding is not None:
            self._broken(finding.check, f"{lineage.name}: {finding.sentence}")
        if event.is_lossy:
            lineage.begins_at_epoch = event.after.leader_epoch
            # a winner from the last known replicas is the lineage now: what it holds is everything
            lineage.not_caught_up.pop(event.after.leader, None)

    def _forbids_loss(self, key: Key) -> bool:
        """Nobody has allowed an election on a lossy basis."""
        topic = self.truth.image.topics[key[0]].name
        return not self.operator_elects and not topic_value(
            self.truth.image, self._static, topic, UNCLEAN_ELECTION_ENABLE
        )

    def _check_cleared(self) -> None:
        """T10, once the batch with a ClearElr is complete."""
        cleared, self._cleared = self._cleared, {}
        for key, before in cleared.items() if self._rules.manager else ():
            after = self.truth.image.partition(*key)
            if after is not None and self.truth.image.elr_enabled:
                min_isr = min_isr_of(self.truth.image, self._static, key[0], after)
                sentence = invariants.t10_nobody_is_forgotten(before, after, min_isr)
                self._must_not("T10", sentence, self._lineage(key).name)

    def _is_whole(self, broker: BrokerId) -> bool:
        """The process that was registered has ended cleanly, and what runs now was started right after it."""
        registered = self.truth.image.brokers.get(broker)
        ended = None if registered is None else self._process_of.get(registered.incarnation_id)
        machine = self.cluster.broker(broker)
        now = machine.process
        if machine.name in self._hurt or ended is None or now is None:
            return False
        return now is ended or (now.number == ended.number + 1 and _was_clean(ended))

    def _started_whole(self, machine: Machine) -> bool:
        """What runs there was started after a clean stop."""
        process = machine.process
        if process is None or machine.name in self._hurt:
            return False
        return any(
            former.host is process.host and former.number == process.number - 1 and _was_clean(former)
            for former in self._process_of.values()
        )

    def _registered(self, broker: BrokerId, before: RegisteredBroker | None, after: RegisteredBroker) -> None:
        if before is None or before.incarnation_id == after.incarnation_id:
            return
        ended = self._process_of.get(before.incarnation_id)
        if ended is None or ended.exit is None or _was_clean(ended):
            self.world.counters["clean_registration"] += 1
            return
        self.world.counters["unclean_registration"] += 1
        if not self.truth.image.elr_enabled:
            return
        for topic_id, index, state in self.truth.image.replicas_on(broker):
            lineage = self._lineage((topic_id, index))
            lineage.not_caught_up[broker] = None
            self._must_not("T11", invariants.t11_returned_uncleanly(broker, state, True), lineage.name)

    def _count(self, before: PartitionState, after: PartitionState, min_isr: int) -> None:
        counters = self.world.counters
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

    # helpers

    def lineages(self) -> list[tuple[Key, Lineage]]:
        return sorted(self._lineages.items())

    def _running_brokers(self) -> Iterator[tuple[Machine, Node]]:
        for machine in self.cluster.all_machines:
            node = machine.running
            if node is not None and machine.config.is_broker:
                yield machine, node

    def _contents_of(self, key: Key) -> Contents:
        found = self._contents.get(key)
        if found is None:
            found = self._contents[key] = Contents()
        return found

    def _lineage(self, key: Key) -> Lineage:
        found = self._lineages.get(key)
        if found is None:
            topic = self.truth.image.topics.get(key[0])
            name = partition_name(topic.name if topic else "deleted", key[1], key[0])
            found = self._lineages[key] = Lineage(name)
        return found


def _was_clean(process: Process) -> bool:
    """It ended by itself, with nothing left to write."""
    return process.exit is not None and process.exit.kind == "stopped" and process.exit.code == 0
