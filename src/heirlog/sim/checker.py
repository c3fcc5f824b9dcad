"""Judges a running cluster after every event, and remembers what only a bystander can know.

    event of a controller  -> newly committed records -> seats (T2), returns (T11), elections, rare states
    event of a broker      -> its partitions that changed -> T1, T4, T5, T7, the true high watermark
    every `SWEEP_EVENTS`   -> everything, whether it changed or not

What it remembers per partition is a *lineage*: the true high watermark, and who has not caught up since an unclean
stop. A lossy-basis election (the winner was in neither ISR nor ELR) ends a lineage. The new one begins at the winner's
log end, which is known once the winner has taken over; until then nothing is judged that needs a watermark.

The first broken rule ends the run: what follows from it would only hide it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from heirlog.broker.lifecycle import BrokerState
from heirlog.broker.partition import Partition, Role
from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.journal import Journal
from heirlog.metadata.min_isr import min_isr_of
from heirlog.metadata.state import BrokerState as RegisteredBroker
from heirlog.metadata.state import PartitionState
from heirlog.node.node import Node
from heirlog.protocol.records import RegisterBrokerRecord
from heirlog.protocol.types import BrokerId, Uuid
from heirlog.sim import invariants
from heirlog.sim.cluster import Cluster, Machine
from heirlog.sim.history import History, Loss, partition_name
from heirlog.sim.invariants import Watermark
from heirlog.sim.truth import Truth
from heirlog.sim.world import LogLine, Process

SWEEP_EVENTS = 400
NOTHING_EXPOSED = Watermark(0, -1)

Key = tuple[Uuid, int]


class Violation(Exception):
    """A rule is broken. `rule`: its short name."""

    def __init__(self, rule: str, sentence: str) -> None:
        super().__init__(f"{rule}: {sentence}")
        self.rule = rule
        self.sentence = sentence


@dataclass(slots=True)
class Lineage:
    """What is known of one partition."""

    name: str
    true: Watermark = NOTHING_EXPOSED
    begins_at_epoch: int | None = None
    """A lossy-basis election was committed; its winner has not taken over yet."""
    not_caught_up: dict[BrokerId, None] = field(default_factory=dict)
    """Brokers that stopped uncleanly and have not held everything since."""


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
        self._lineages: dict[Key, Lineage] = {}
        self._seen: dict[tuple[str, Key], tuple[object, ...]] = {}
        self._process_of: dict[Uuid, Process] = {}
        """Who ran as which incarnation."""
        self._until_sweep = SWEEP_EVENTS
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
        self._seen.clear()
        for machine in self.cluster.all_machines:
            node = machine.running
            if node is not None:
                self._look_at(machine, node)

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

    def _look_at(self, machine: Machine, node: Node) -> None:
        if machine.config.is_controller:
            self.truth.observe(node.quorum)
        if machine.config.is_broker:
            self._look_at_broker(machine, node)

    def _look_at_broker(self, machine: Machine, node: Node) -> None:
        broker = node.broker
        if broker.lifecycle.incarnation_id not in self._process_of and machine.process is not None:
            self._process_of[broker.lifecycle.incarnation_id] = machine.process
        if node.image.offset >= self.truth.end:
            self._must_not("T7", invariants.t7_metadata_is_a_prefix(machine.name, node.image.offset, self.truth.end))
        for partition in broker.replicas.all_partitions():
            log = partition.log
            now = (
                partition.role,
                partition.leader_epoch,
                partition.partition_epoch,
                partition.high_watermark,
                log.log_end_offset,
                log.log_start_offset,
            )
            key = (partition.topic_id, partition.index)
            where = (machine.name, key)
            if self._seen.get(where) != now:
                self._seen[where] = now
                self._partition_changed(machine, node, key, partition)

    def _partition_changed(self, machine: Machine, node: Node, key: Key, partition: Partition) -> None:
        lineage = self._lineage(key)
        me = BrokerId(machine.node_id)
        self._check_domain(me, node, key, partition, lineage.name)
        state = self.truth.image.partition(*key)
        if state is None or partition.offline:
            return
        if partition.role is Role.LEADER:
            self._leader_changed(me, state, partition, lineage)
        self._check_member(me, node, state, partition, lineage)

    def _check_domain(self, me: BrokerId, node: Node, key: Key, partition: Partition, name: str) -> None:
        # private, because only a bystander asks: requests and images are all that a broker is told
        fetched = key in node.broker._fetchers.fetched_partitions
        shutting_down = node.broker.state in (BrokerState.PENDING_CONTROLLED_SHUTDOWN, BrokerState.SHUTTING_DOWN)
        self._must_not("T1", invariants.t1_state_is_in_its_domain(me, partition, fetched, shutting_down), name)
        known = node.image.brokers.get(me)
        fenced = known is not None and known.fenced
        self._must_not("T1", invariants.t1_fenced_broker_does_not_lead(me, fenced, partition), name)

    def _leader_changed(self, me: BrokerId, state: PartitionState, partition: Partition, lineage: Lineage) -> None:
        begins = lineage.begins_at_epoch
        if begins is not None:
            if partition.leader_epoch < begins:
                return  # of the lineage before
            self._begin_lineage(partition, lineage, begins)
        elif self.losses and partition.leader_epoch < self._last_loss_epoch(lineage.name):
            return
        if partition.high_watermark > lineage.true.offset:
            epoch = partition.log.epochs.epoch_for_offset(partition.high_watermark - 1)
            lineage.true = Watermark(partition.high_watermark, epoch)
            self._check_all_members(state, partition, lineage)
        if state.leader == me and state.leader_epoch == partition.leader_epoch:
            end = self.history.acknowledged_end.get(lineage.name, 0)
            self._must_not("T5", invariants.t5_leader_holds_what_was_acknowledged(me, end, partition.log), lineage.name)

    def _begin_lineage(self, partition: Partition, lineage: Lineage, epoch: int) -> None:
        start = partition.leader_epoch_start_offset
        lineage.begins_at_epoch = None
        if lineage.true.offset > start:
            lineage.true = Watermark(start, partition.log.epochs.epoch_for_offset(start - 1))
        now_ms = self.history.now_ms()
        self.history.lineage_began(lineage.name, start, now_ms)
        self.losses.append(Loss(lineage.name, start, epoch, now_ms))
        self.world.counters["lossy_lineage"] += 1

    def _last_loss_epoch(self, name: str) -> int:
        return max((loss.leader_epoch for loss in self.losses if loss.partition == name), default=-1)

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
        for key, before in journal.partitions.items():
            after = image.partition(*key)
            if after is not None:
                self._committed(key, before, after)
        if isinstance(record, RegisterBrokerRecord):
            broker = BrokerId(record.broker_id)
            self._registered(broker, journal.brokers.get(broker), image.brokers[broker])

    def _committed(self, key: Key, before: PartitionState | None, after: PartitionState) -> None:
        image = self.truth.image
        lineage = self._lineage(key)
        min_isr = min_isr_of(image, self._static, key[0], after)
        if before is not None:
            self._count(before, after, min_isr)
            if after.leader >= 0 and after.leader_epoch > before.leader_epoch and _is_lossy(before, after):
                lineage.begins_at_epoch = after.leader_epoch
                # a winner from the last known replicas is the lineage now: what it holds is everything
                lineage.not_caught_up.pop(after.leader, None)
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

    def _registered(self, broker: BrokerId, before: RegisteredBroker | None, after: RegisteredBroker) -> None:
        if before is None or before.incarnation_id == after.incarnation_id:
            return
        ended = self._process_of.get(before.incarnation_id)
        if ended is None or ended.exit is None or (ended.exit.kind == "stopped" and ended.exit.code == 0):
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
        if _is_lossy(before, after):
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

    def _lineage(self, key: Key) -> Lineage:
        found = self._lineages.get(key)
        if found is None:
            topic = self.truth.image.topics.get(key[0])
            name = partition_name(topic.name if topic else "deleted", key[1], key[0])
            found = self._lineages[key] = Lineage(name)
        return found


def _is_lossy(before: PartitionState, after: PartitionState) -> bool:
    """The new leader was in neither list: nobody promises that it holds what was committed."""
    return after.leader not in before.isr and after.leader not in before.elr
