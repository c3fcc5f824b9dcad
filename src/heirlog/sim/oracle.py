"""What only the oracle knows of a run: which brokers have lost data, and each partition's lineage.

A cluster knows of a broker only what its registration says. The oracle knows how each process ended, which disks have
failed, and what was exposed. The checkers (`heirlog.sim.checker`, `heirlog.sim.record_checker`) ask it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn

from heirlog.broker.broker import Broker
from heirlog.broker.partition import Partition, ReplicaRole
from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.image import Image
from heirlog.metadata.state import PartitionRegistration
from heirlog.node.node import Node
from heirlog.protocol.types import BrokerId, Uuid
from heirlog.sim.cluster import Machine, SimCluster
from heirlog.sim.history import Finding, History, KnownLoss, partition_name
from heirlog.sim.invariants import t4_member_holds_what_is_committed
from heirlog.sim.partition_model import PartitionModel
from heirlog.sim.world import Process

Key = tuple[Uuid, int]
OLDER_METADATA = "the controller's metadata are older than this "
"""A part of the message with which a broker refuses older metadata."""


class Violation(Exception):
    """A rule is broken. `rule`: its short name."""

    def __init__(self, rule: str, sentence: str) -> None:
        super().__init__(f"{rule}: {sentence}")
        self.rule = rule
        self.sentence = sentence


class Oracle:
    def __init__(self, cluster: SimCluster, history: History) -> None:
        self.cluster = cluster
        self.world = cluster.world
        self.history = history
        self.static: StaticConfig = cluster.controller.config
        self.image = Image()
        """What the controllers committed: `heirlog.sim.committed_metadata` keeps it."""
        self.losses: list[KnownLoss] = []
        self.lost_without_elr: list[Finding] = []
        """What Kafka's rule lost in this run (`PartitionModel.last_standing`), as breaks of T4."""
        self.operator_elects = False
        """From now on an operator may hold elections on a lossy basis, so these are not failures."""
        self.placed_by_hand: set[str] = set()
        """Topics whose creator said which brokers get their replicas."""
        self.directory_failed_on: set[str] = set()
        """Machines on which a log directory has failed, while it was in use or as it was closed: then one directory has
        no clean-shutdown file, and the broker's next registration is unclean for all of them (docs/internals/design.md,
        the clean-shutdown file).
        """
        self._damaged_before: dict[str, set[int]] = {}
        """Machines whose disks were damaged while they were down, with the incarnations that started then."""
        self._models: dict[Key, PartitionModel] = {}
        self._process_of: dict[Uuid, Process] = {}
        """The process of each incarnation."""

    def broken(self, rule: str, sentence: str) -> NoReturn:
        raise Violation(rule, sentence)

    def must_not(self, rule: str, sentence: str | None, partition: str = "") -> None:
        if sentence is not None:
            self.broken(rule, f"{partition}: {sentence}" if partition else sentence)

    # partitions

    def models(self) -> list[tuple[Key, PartitionModel]]:
        return sorted(self._models.items())

    def model(self, key: Key) -> PartitionModel:
        found = self._models.get(key)
        if found is None:
            topic = self.image.topics.get(key[0])
            name = partition_name(topic.name if topic else "deleted", key[1], key[0])
            found = self._models[key] = PartitionModel(name)
        return found

    # brokers

    def running_brokers(self) -> Iterator[tuple[Machine, Node]]:
        for machine in self.cluster.all_machines:
            node = machine.running
            if node is not None and machine.config.is_broker:
                yield machine, node

    def record_process(self, machine: Machine, node: Node) -> None:
        incarnation = node.broker.lifecycle.incarnation_id
        if incarnation not in self._process_of and machine.process is not None:
            self._process_of[incarnation] = machine.process

    def runs_as_registered(self, broker: BrokerId, running: Broker) -> bool:
        registered = self.image.brokers.get(broker)
        return registered is not None and registered.incarnation_id == running.lifecycle.incarnation_id

    def disk_damaged(self, name: str) -> None:
        """Files of a machine that is down were damaged: its next incarnation is no intact successor of the last."""
        self._damaged_before.setdefault(name, set()).add(self.world.host(name).incarnations + 1)

    def is_damaged(self, node: Node, partition: Partition) -> bool:
        """Whether the disk gives back other bytes than were written to this log; the node may not have noticed it."""
        disk = self.cluster.machines.disk(self.cluster.broker(node.config["node.id"]).name)
        return disk.is_damaged(partition.log.dir_path)

    def ended_cleanly(self, incarnation: Uuid) -> bool:
        """Whether the incarnation ended cleanly; True also for one that was never seen, and for one that runs."""
        ended = self._process_of.get(incarnation)
        return ended is None or ended.exit is None or _was_clean(ended)

    def is_intact(self, broker: BrokerId) -> bool:
        """Its disk has lost nothing since it was registered: the registered process has ended cleanly, and the running
        process was started right after it.
        """
        registered = self.image.brokers.get(broker)
        ended = None if registered is None else self._process_of.get(registered.incarnation_id)
        machine = self.cluster.broker(broker)
        now = machine.process
        if machine.name in self.directory_failed_on or ended is None or now is None:
            return False
        return now is ended or self.started_intact(machine, ended)

    def started_intact(self, machine: Machine, former: Process | None) -> bool:
        """The process that runs there was started right after `former` had stopped cleanly."""
        now = machine.process
        if now is None or former is None or machine.name in self.directory_failed_on:
            return False
        damaged = now.number in self._damaged_before.get(machine.name, ())
        return now.number == former.number + 1 and _was_clean(former) and not damaged

    def check_member(
        self, me: BrokerId, running: Broker, state: PartitionRegistration, partition: Partition, model: PartitionModel
    ) -> None:
        """T4 for a broker whose registered incarnation runs; also whether it has caught up (T11)."""
        if model.begins_at_epoch is not None or partition.offline or not self.runs_as_registered(me, running):
            return
        if model.not_caught_up or model.last_standing:
            self.may_have_caught_up(me, partition, model)
        if me not in model.last_standing:
            sentence = t4_member_holds_what_is_committed(me, state, model.true, partition.log)
            if sentence is not None:
                self.broken("T4", f"{model.name}: {sentence}")

    def may_have_caught_up(self, me: BrokerId, partition: Partition, model: PartitionModel) -> None:
        if (me in model.not_caught_up or me in model.last_standing) and _holds_everything(partition, model):
            model.not_caught_up.pop(me, None)
            model.last_standing.pop(me, None)


def _holds_everything(partition: Partition, model: PartitionModel) -> bool:
    log, true = partition.log, model.true
    if log.log_end_offset < true.offset or partition.role is ReplicaRole.IDLE:
        return False
    return true.offset == 0 or log.epochs.epoch_for_offset(true.offset - 1) == true.epoch


def _was_clean(process: Process) -> bool:
    """It ended with nothing left to write; also if it refused to follow older metadata, or was killed after that."""
    exit = process.exit
    if exit is None:
        return False
    return exit.finished or (exit.kind == "stopped" and (exit.code == 0 or OLDER_METADATA in exit.reason))
