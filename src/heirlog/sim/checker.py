"""Checks a running cluster after every event, and remembers what only the oracle can know.

    event of a controller  -> newly committed records -> `heirlog.sim.record_checker`
    event of a broker      -> its partitions that changed -> T1, T3 - T5, T7, T8a, T12, R2, the true high watermark
    every `SWEEP_EVENTS`   -> everything, whether it changed or not; what is committed, batch by batch (T6)

`heirlog.sim.partition_model` has what it remembers of each partition: one *lineage* at a time. A lossy-basis election
(the winner was in neither ISR nor ELR) ends a lineage. The new one begins at the winner's log end, which is known only
when the winner has become leader; until then no rule is checked that needs a high watermark.

The first broken rule ends the run, because later violations may only follow from it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from heirlog.broker.broker import Broker
from heirlog.broker.broker_lifecycle_manager import BrokerState
from heirlog.broker.isr import PendingExpandIsr
from heirlog.broker.partition import Partition, ReplicaRole
from heirlog.metadata.image import Image
from heirlog.metadata.journal import ImageJournal
from heirlog.metadata.min_isr import min_isr_of
from heirlog.metadata.state import PartitionRegistration
from heirlog.metadata.topic_name import OFFSETS_TOPIC
from heirlog.node.node import Node
from heirlog.protocol.messages import FetchRequest, ProduceRequest
from heirlog.protocol.types import BrokerId
from heirlog.raft.epoch_state import QuorumRole
from heirlog.raft.fetch_service import replica_of
from heirlog.raft.metadata_log import MetadataLog
from heirlog.sim import invariants
from heirlog.sim.answer_checker import AnswerChecker
from heirlog.sim.cluster import Machine, SimCluster
from heirlog.sim.committed_metadata import CommittedMetadata
from heirlog.sim.copies_checker import CopiesChecker
from heirlog.sim.disk_checker import DiskChecker
from heirlog.sim.history import Finding, History, KnownLoss
from heirlog.sim.last_seen import SeenBroker, SeenController, SeenLoneController, SeenReplica
from heirlog.sim.oracle import Key, Oracle
from heirlog.sim.partition_model import LOOKED_AT_EACH_TIME, PartitionModel
from heirlog.sim.produce_checker import ProduceChecker
from heirlog.sim.quorum_liveness import IsolationChecker
from heirlog.sim.record_checker import RecordChecker
from heirlog.sim.replica_comparison import ReplicaComparison
from heirlog.sim.transaction_checker import TransactionChecker
from heirlog.sim.world import LogLine, Process

SWEEP_EVENTS = 800
LOOK_EVERY = 10
_UNCHANGED = nullcontext()
_SHUTTING_DOWN = (BrokerState.PENDING_CONTROLLED_SHUTDOWN, BrokerState.SHUTTING_DOWN)


class _Watched:
    """A node that runs, as the checker looks at it after each event: found once for each process."""

    __slots__ = ("broker", "is_controller", "machine", "me", "node", "quorum", "seen")

    def __init__(self, machine: Machine, node: Node, seen: SeenBroker) -> None:
        self.machine = machine
        self.me = BrokerId(machine.node_id)
        self.node = node
        self.quorum = node.quorum
        self.seen = seen
        self.is_controller = machine.config.is_controller
        self.broker: Broker | None = node.broker if machine.config.is_broker else None


class Checker:
    """Append `checker.observe` to `world.event_listeners` once the cluster is formatted."""

    def __init__(self, cluster: SimCluster, history: History) -> None:
        self.cluster = cluster
        self._machines = cluster.machines_by_host
        self.world = cluster.world
        self.history = history
        self.oracle = Oracle(cluster, history)
        self.disk_checker = DiskChecker(self.oracle)
        self._records = RecordChecker(self.oracle, self.disk_checker)
        self._copies = CopiesChecker(self.oracle)
        self.transactions = TransactionChecker(self.oracle)
        self.record_listeners: list[Callable[[Any, Image, ImageJournal], None]] = []
        """Called with each committed record, the image with it, and the state before it, before it is judged."""
        self._is_quorum = sum(machine.config.is_controller for machine in cluster.all_machines) > 1
        self.committed = CommittedMetadata(
            self.oracle.image,
            self._on_record,
            self._records.batch_ends,
            self._quorum_broken,
            is_quorum=self._is_quorum,
        )
        self._contents: dict[Key, ReplicaComparison] = {}
        self._seen: defaultdict[str, SeenBroker] = defaultdict(SeenBroker)
        """By machine."""
        self._watched: dict[Process, _Watched | None] = {}
        """By process, once its roles exist; None: it is no node of the cluster."""
        self._controllers: dict[str, SeenController | SeenLoneController] = {}
        self._isolation = IsolationChecker(self.oracle.broken)
        self._answers = AnswerChecker(lambda: self.committed.image, self._quorum_broken)
        self._until_sweep = SWEEP_EVENTS
        self._controller: Process | None = None
        """Which was seen last."""
        self.ignored_rule = ""
        """Of the quorum: `heirlog.sim.guards.Guard.restated_by`."""
        self.suspended = False
        """Controllers with older metadata run. Their metadata is not used as the truth; only disks are checked."""
        self.world.log_listeners.append(self._on_log)
        self.world.rmdir_listeners.append(self.disk_checker.directory_removed)
        cluster.start_listeners.append(self.disk_checker.started)
        self._answer_rules: dict[type, Callable[[Process, Any, Any], None]] = {
            ProduceRequest: ProduceChecker(self.oracle).answered,
            **dict.fromkeys(self._answers.rules, self._controller_answered),
        }
        """By the class of the request, for those whose answers a rule is about."""
        if self._is_quorum:
            self._answer_rules[FetchRequest] = self._fetch_answered
        cluster.network.answer_listeners.append(self._answered)

    @property
    def losses(self) -> list[KnownLoss]:
        return self.oracle.losses

    def models(self) -> list[tuple[Key, PartitionModel]]:
        return self.oracle.models()

    def seeded(self, log: MetadataLog) -> None:
        """A lost controller will start from this log, which an operator has made from a broker's copy."""
        self.committed.adopt(log)
        self.oracle.image = self.committed.image
        self.disk_checker.metadata_seeded()
        for seen in self._seen.values():
            seen.node = None
        self._records.metadata_seeded()

    def observe(self, process: Process | None) -> None:
        if process is None:
            return
        try:
            watched = self._watched[process]
        except KeyError:
            watched = self._watch(process)
        if watched is not None and process.exit is None and not self.suspended:
            if watched.is_controller:
                self._look_at_controller(watched, everything=False)
            if watched.broker is not None:
                self._look_at_broker(watched, watched.broker, everything=False)
        self._until_sweep -= 1
        if self._until_sweep <= 0:
            self.sweep()

    def _watch(self, process: Process) -> _Watched | None:
        """A node whose roles exist, and what is looked at after each of its events."""
        machine = self._machines.get(process.host.name)
        if machine is None or machine.process is not process:
            self._watched[process] = None
            return None
        node = machine.running
        if node is None:
            return None
        watched = self._watched[process] = _Watched(machine, node, self._seen[machine.name])
        return watched

    def sweep(self) -> None:
        """Judge everything."""
        self._until_sweep = SWEEP_EVENTS
        for machine in self.cluster.all_machines:
            node = machine.running
            if node is not None and machine.process is not None:
                watched = self._watch(machine.process)
                if watched is not None and not self.suspended:
                    self._look_at_everything(watched)
                self._compare_image(machine, node)

    def _compare_image(self, machine: Machine, node: Node) -> None:
        """Q8: a node that has applied what is committed has the same image, from the first record on."""
        committed, image = self.committed.image, node.image
        if machine.config.is_controller:
            image = node.controller.image
            if node.controller.is_active and image.epoch != committed.epoch:
                return  # what it has appended may never be committed: another one leads, and it does not know
        if image.offset == committed.offset >= 0 and not self.suspended and image != committed:
            self.oracle.broken("Q8", f"the image of {machine.name} at offset {image.offset} is not what was committed")

    def misplaced(self) -> str | None:
        """T14 of every running broker. A deletion takes some time, so call this when the cluster is quiet again."""
        image = self.committed.image
        for machine, node in self.oracle.running_brokers():
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

    def _on_record(self, record: Any, offset: int, journal: ImageJournal) -> None:
        for listener in self.record_listeners:
            listener(record, self.oracle.image, journal)
        self._records.on_record(record, offset, journal)

    def _on_log(self, line: LogLine) -> None:
        if line.event in ("log-directory-offline", "log-directory-not-closed-cleanly"):
            self.oracle.directory_failed_on.add(line.node)
        if line.event == "log-truncated":
            self.disk_checker.truncated(line)
        if line.event == "damaged-batch-kept":
            self._coordinator_skips(f"{line.values['topic']}-{line.values['partition']}")
        if line.event != "log-compacted":
            return
        machine = self.cluster.machines_by_host[line.node]
        assert machine.node is not None
        for partition in machine.node.broker.replicas.all_partitions():
            if (partition.topic, partition.index) == (line.values["topic"], line.values["partition"]):
                sentence = invariants.t13_compaction_is_below_the_high_watermark(
                    machine.node_id, int(str(line.values["clean_offset"])), partition.high_watermark
                )
                self.oracle.must_not("T13", sentence, f"{partition.topic}-{partition.index}")

    def _coordinator_skips(self, partition: str) -> None:
        """The only copy in the ISR has rotted: a coordinator loads without that batch, until another copy is there."""
        if partition.startswith(OFFSETS_TOPIC):
            self.losses.append(KnownLoss(partition, 0, -1, self.history.now_ms()))

    # nodes

    def _look_at_everything(self, watched: _Watched) -> None:
        if watched.is_controller:
            self._look_at_controller(watched, everything=True)
        if watched.broker is not None:
            self._look_at_broker(watched, watched.broker, everything=True)

    def _quorum_broken(self, rule: str, sentence: str) -> None:
        if rule != self.ignored_rule:
            self.oracle.broken(rule, sentence)

    def _look_at_controller(self, watched: _Watched, *, everything: bool) -> None:
        machine, node, quorum = watched.machine, watched.node, watched.quorum
        if self._controller is not machine.process:
            self._count_failover(machine, node)
        now = SeenController.of(node) if self._is_quorum else SeenLoneController.of(quorum)
        if everything or now != self._controllers.get(machine.name):
            self._controllers[machine.name] = now
            # a leader whose disk cannot be read may still commit, and brokers apply that at once
            disk = self.cluster.machines.disk(machine.name)
            with disk.readable() if disk.is_broken else _UNCHANGED:
                self.committed.observe(machine.name, quorum)
                self._check_active(machine, node)
        self._answers.judge()
        if self._is_quorum:
            self._check_isolation(machine, node)

    def _check_active(self, machine: Machine, node: Node) -> None:
        """Q9 of a controller."""
        quorum = node.quorum
        state, log = quorum.state, quorum.log
        if self._is_quorum and state is not None and log is not None:
            applied_epoch = log.epoch_below(quorum.applied_offset + 1)
            self.committed.logs.check_active(machine.name, node.controller, state, applied_epoch)

    def _check_isolation(self, machine: Machine, node: Node) -> None:
        """L2 of a controller."""
        state = node.quorum.state
        if state is None or state.role is not QuorumRole.LEADER:
            return
        voters = node.quorum.voters
        missing = [
            voter.id
            for voter in voters
            if voter.id != machine.node_id and not self.cluster.reaches(voter.id, machine.name)
        ]
        self._isolation.observe(machine.name, state.epoch, self.history.now_ms(), missing, len(voters))

    def _answered(self, server: Process, request: Any, response: Any) -> None:
        rule = self._answer_rules.get(request.KIND)
        if rule is not None:
            rule(server, request, response)

    def _fetch_answered(self, server: Process, request: FetchRequest, _: Any) -> None:
        machine = self._machines[server.host.name]
        if self._answering_controller(machine, server) is not None:
            self._isolation.answers(machine.name, replica_of(request), self.history.now_ms())

    def _controller_answered(self, server: Process, request: Any, response: Any) -> None:
        machine = self._machines[server.host.name]
        node = self._answering_controller(machine, server)
        if node is not None:
            self._answers.rules[request.KIND](machine.name, node.quorum, request, response)

    def _answering_controller(self, machine: Machine, server: Process) -> Node | None:
        """None: it is none, or its answers are not judged."""
        if not machine.config.is_controller or machine.process is not server or self.suspended:
            return None
        return machine.running

    def _count_failover(self, machine: Machine, node: Node) -> None:
        if not node.quorum.is_leader:
            return
        process, self._controller = self._controller, machine.process
        if process is None:
            return
        image = self.oracle.image
        states = [image.partitions[topic_id][index] for topic_id, index in image.leaderless()]
        if any(not state.isr and not state.elr for state in states):
            self.world.counters["failover_mid_recovery"] += 1

    def _look_at_broker(self, watched: _Watched, broker: Broker, *, everything: bool) -> None:
        machine, node, seen = watched.machine, watched.node, watched.seen
        offset, end = node.image.offset, self.committed.end
        if offset != seen.applied_offset or end != seen.committed_end or node is not seen.node or everything:
            seen.node, seen.applied_offset, seen.committed_end = node, offset, end
            self.oracle.record_process(machine, node)
            self.disk_checker.applied(machine, node)
            self.oracle.must_not("T7", invariants.t7_metadata_is_a_prefix(machine.name, offset, end))
        partitions = broker.replicas.all_partitions()
        if len(partitions) > LOOKED_AT_EACH_TIME and not everything and self.world.events_run % LOOK_EVERY:
            return
        for before, now in seen.changed(machine.process, partitions, everything=everything):
            partition = now.partition
            key = partition.key
            self._partition_changed(watched, broker, key, before, now)
            if everything:
                if self.cluster.machines.disk(machine.name).is_damaged(partition.log.dir_path):
                    continue  # that copy is lost: it is no matter of agreement, and others must not be compared with it
                sentence = self._contents_of(key).compare(machine.node_id, partition, self.oracle.model(key))
                self.oracle.must_not("T6", sentence, self.oracle.model(key).name)

    def _partition_changed(
        self, watched: _Watched, broker: Broker, key: Key, before: SeenReplica | None, now: SeenReplica
    ) -> None:
        model, partition = self.oracle.model(key), now.partition
        machine, me = watched.machine, watched.me
        self._check_domain(watched, broker, key, partition, model.name)
        state = self.committed.image.partition(*key)
        if state is None or partition.offline:
            return
        self.transactions.changed(machine.name, key, partition)
        if before is not None and now.end < before.end:
            self._check_cut(machine, before, now, model)
        if before is None or now.end != before.end:
            truncated = before is not None and now.end < before.end and before.process is now.process
            self._copies.changed(key, me, partition.log, truncated=truncated)
        if partition.role is ReplicaRole.LEADER:
            self._leader_changed(me, key, state, partition, model)
            if before is None or before.isr is not now.isr:
                self._check_isr(me, key, state, partition, model.name)
        self.oracle.check_member(me, broker, state, partition, model)

    def _check_cut(self, machine: Machine, before: SeenReplica, now: SeenReplica, model: PartitionModel) -> None:
        """T8a: the log end went back. Was a record of the lineage above the new end?"""
        if model.begins_at_epoch is not None or before.end == 0:
            return
        if now.partition is not before.partition and (
            machine.node_id in model.left or not self.oracle.started_intact(machine, before.process)
        ):
            return
        held_end = min(before.end, model.true.offset)
        if model.epoch_at(held_end - 1) == before.last_epoch:
            sentence = invariants.t8a_committed_records_stay(machine.node_id, held_end, now.end)
            self.oracle.must_not("T8a", sentence, model.name)

    def _check_isr(self, me: BrokerId, key: Key, state: PartitionRegistration, partition: Partition, name: str) -> None:
        """T3 for a leader that knows what is committed; T12 for one that asks for another member."""
        isr = partition.isr
        if isinstance(isr, PendingExpandIsr):
            end, start = partition.followers[isr.added].log_end_offset, partition.leader_epoch_start_offset
            self.oracle.must_not("T12", invariants.t12_joiner_has_reached_the_epoch(me, isr.added, end, start), name)
        if state.leader == me and state.partition_epoch == partition.partition_epoch:
            min_isr = min_isr_of(self.committed.image, self.oracle.static, key[0], state)
            self.oracle.must_not("T3", invariants.t3_leader_counts_isr_and_elr(me, isr, state, min_isr), name)

    def _check_domain(self, watched: _Watched, broker: Broker, key: Key, partition: Partition, name: str) -> None:
        me = watched.me
        fetched = key in broker.fetchers.fetched_partitions
        shutting_down = broker.lifecycle.state in _SHUTTING_DOWN
        sentence = invariants.t1_state_is_in_its_domain(me, partition, fetched, shutting_down)
        if sentence is None and partition.role is ReplicaRole.LEADER:
            known = watched.node.image.brokers.get(me)
            fenced = known is not None and known.fenced
            sentence = invariants.t1_fenced_broker_does_not_lead(me, fenced, partition)
        if sentence is not None:
            self.oracle.must_not("T1", sentence, name)

    def _leader_changed(
        self, me: BrokerId, key: Key, state: PartitionRegistration, partition: Partition, model: PartitionModel
    ) -> None:
        epoch = partition.leader_epoch
        self.oracle.must_not("R2", invariants.r2_leads_as_elected(me, epoch, model.elected.get(epoch)), model.name)
        model.epoch_starts.setdefault(epoch, partition.leader_epoch_start_offset)
        begins = model.begins_at_epoch
        if begins is not None:
            if epoch < begins:
                return  # of the lineage before
            self._begin_lineage(key, state, partition, model, begins)
        elif epoch < model.began_at_epoch:
            return
        if not partition.doubts.is_recorded:
            # its log was cut or is on a new disk, and it has not seen itself in the ISR
            self.transactions.in_doubt(key, partition.topic)
        self.transactions.leads(key, partition)
        if partition.high_watermark > model.true.offset:
            model.expose(partition.high_watermark, partition.log.epochs.entries)
            self.transactions.exposed(key, partition)
            if begins is None:
                # what the winner of a lossy election took as committed was counted by another leader
                self._copies.committed(key, self.cluster.broker(me), state, partition)
            self._check_other_members(me, state, key, model)
        if state.leader == me and state.leader_epoch == epoch:
            end = self.history.acknowledged_end.get(model.name, 0)
            self.oracle.must_not(
                "T5", invariants.t5_leader_holds_what_was_acknowledged(me, end, partition.log), model.name
            )

    def _begin_lineage(
        self, key: Key, state: PartitionRegistration, partition: Partition, model: PartitionModel, epoch: int
    ) -> None:
        exposed = model.true.offset
        start = model.begin(partition.leader_epoch_start_offset, partition.log)
        if model.stands_again == epoch:
            if start >= exposed:
                self.transactions.in_doubt(key, partition.topic)
                return  # it has lost nothing: the lineage continues
            self._lost_without_elr(model, state, start, exposed)
        self._contents_of(key).lineage_begins(start)
        self.transactions.lineage_begins(key, partition.topic, start)
        now_ms = self.history.now_ms()
        self.history.lineage_began(model.name, start, now_ms)
        winner = tuple(partition.log.epochs.entries)
        self.losses.append(KnownLoss(model.name, start, epoch, now_ms, winner, model.answers))
        self.world.counters["lossy_lineage"] += 1

    def _lost_without_elr(self, model: PartitionModel, state: PartitionRegistration, start: int, exposed: int) -> None:
        sentence = (
            f"{model.name}: broker {state.leader}, the last member of the ISR, stopped uncleanly while the ELR was off "
            f"and leads again from offset {start}, although {exposed} had been exposed (Kafka's rule)"
        )
        self.oracle.lost_without_elr.append(Finding("T4", sentence))
        self.world.counters["lost_without_elr"] += 1

    def _check_other_members(self, me: BrokerId, state: PartitionRegistration, key: Key, model: PartitionModel) -> None:
        for member in sorted({*state.isr, *state.elr} - {me}):
            node = self.cluster.broker(member).running
            if node is None:
                continue
            broker = node.broker
            found = broker.replicas.partition(key)
            if found is not None:
                self.oracle.check_member(member, broker, state, found, model)

    def _contents_of(self, key: Key) -> ReplicaComparison:
        found = self._contents.get(key)
        if found is None:
            found = self._contents[key] = ReplicaComparison()
        return found
