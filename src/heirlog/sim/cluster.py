"""A cluster of the product's own nodes in virtual time.

    format every disk -> launch every node -> run: kill, stop, start, pause, partition, as a script or a swarm says

Broker n is on the host `broker-n`, controllers on `controller-100` and after it; with `combined` the first brokers have
both roles. A
host keeps its disk and its configuration; each start makes a new `Node` on a new `SimEnv`.

Session, heartbeat and lag times are shorter than Kafka's defaults (`FAST`), so that a fence and a return fit into a few
seconds of virtual time. Times that are short compared with others in Kafka are short here too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace
from typing import TypeVar

from heirlog.metadata.config_def import StaticConfig, parse_static
from heirlog.metadata.features import DEFAULT_FEATURES
from heirlog.metadata.image import ELR_VERSION
from heirlog.metadata.state import TRANSACTION_VERSION
from heirlog.node.format import Format, format_node
from heirlog.node.node import Node
from heirlog.protocol.types import NO_BROKER_EPOCH, BrokerId, Endpoint, Uuid
from heirlog.raft.control import Voter
from heirlog.sim.disk import FLUSH_US, Damage, SimDisk
from heirlog.sim.env import SimEnv
from heirlog.sim.fault_numbers import FaultNumbers
from heirlog.sim.machines import Machines, Runnable
from heirlog.sim.network import Network
from heirlog.sim.releases import NEWEST, Release
from heirlog.sim.world import Exit, Process, World
from heirlog.storage.clean_shutdown import CLEAN_SHUTDOWN_FILE, decide_previous_broker_epoch, parse_clean_shutdown

C = TypeVar("C", bound=Runnable)

CLUSTER_ID = "simulated-cluster-0001"
CONTROLLER_ID = 100
LOG_DIR = "/data/log"
CLIENT_PORT = 9092
CONTROLLER_PORT = 9093
RECOVERY_MANAGER = "unclean.recovery.manager.enabled"

FAST: Mapping[str, str] = {
    "broker.session.timeout.ms": "2500",
    "broker.heartbeat.interval.ms": "500",
    "replica.lag.time.max.ms": "2000",
    "replica.fetch.backoff.ms": "200",
    "replica.high.watermark.checkpoint.interval.ms": "1000",
    "replica.socket.timeout.ms": "3000",
    "controller.socket.timeout.ms": "3000",
    "controlled.shutdown.retry.backoff.ms": "500",
    "group.initial.rebalance.delay.ms": "300",
    "group.min.session.timeout.ms": "1000",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.segment.bytes": "8000",
    "transaction.state.log.num.partitions": "2",
    "transaction.state.log.segment.bytes": "8000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "log.cleaner.backoff.ms": "1500",
    "log.segment.delete.delay.ms": "300",
    # producers ask for it, and a topic that a script deletes would come back with one replica
    "auto.create.topics.enable": "false",
}


class Machine:
    """One host of the cluster: what is configured, and what runs now."""

    def __init__(self, name: str, node_id: int, config: StaticConfig) -> None:
        self.name = name
        self.node_id = node_id
        self.config = config
        self.release: Release = NEWEST
        """What will be started there next."""
        self.node: Node | None = None
        self.process: Process | None = None
        self.stopping = False
        """Asked to stop cleanly."""
        self._with_roles: Node | None = None
        """The last node that was seen with its roles: a node keeps them."""

    @property
    def running(self) -> Node | None:
        """The node, from the moment at which its roles exist until it ends. A paused node runs too."""
        node, process = self.node, self.process
        if node is None or process is None or process.exit is not None:
            return None
        if node is not self._with_roles:
            if not node.has_roles:
                return None
            self._with_roles = node
        return node


def says_clean(disk: SimDisk, machine: Machine) -> bool:
    """Whether every directory has a clean-shutdown file, all with the same broker epoch."""
    files = dict(disk.contents())
    said = [files.get(f"{path}/{CLEAN_SHUTDOWN_FILE}") for path in machine.config.log_dirs]
    epochs = [None if content is None else parse_clean_shutdown(content) for content in said]
    return decide_previous_broker_epoch(epochs) != NO_BROKER_EPOCH


class SimCluster:
    def __init__(
        self,
        world: World,
        *,
        brokers: int = 3,
        controllers: int = 1,
        combined: bool = False,
        elr: bool = True,
        wire: bool = False,
        config: Mapping[str, str] | None = None,
        racks: Sequence[str] = (),
        release: Release = NEWEST,
        transaction_version: int = 0,
        without_faults: Set[int] = frozenset(),
    ) -> None:
        """racks: brokers are in them in turn. release: what all nodes are at first (`upgrade` changes it). It also says
        which levels the cluster is formatted with. without_faults: numbers of faults that do not happen.
        """
        self.world = world
        self.network = Network(world, wire=wire)
        self.machines = Machines(world, self.network)
        self.start_listeners: list[Callable[[Machine, Process], None]] = []
        """Called when a new incarnation was created, before any of its events runs."""
        self.faults: list[str] = []
        """The faults so far, with their times; the report prints them."""
        self.fault_listeners: list[Callable[[str], None]] = []
        """Called with each fault, at its time."""
        self.numbers = FaultNumbers(world, without_faults)
        numbers = range(1, controllers + 1) if combined else range(CONTROLLER_ID, CONTROLLER_ID + controllers)
        self._voting = controllers
        self._formatting = ""
        """The machine whose new disk is being formatted."""
        voting = [f"{'broker' if combined else 'controller'}-{number}" for number in numbers]
        common = {**FAST, "min.insync.replicas": "2", **(config or {})}
        self.metadata_directory_ids: dict[str, Uuid] = {}
        """With its node id, this identifies a voter."""
        self._by_name: dict[str, Machine] = {}
        self._brokers: dict[int, Machine] = {}
        """By node id."""
        self._controllers: dict[int, Machine] = {}
        """The same for controllers, dedicated or not."""
        self._properties: dict[str, dict[str, str]] = {}
        for number in range(1, brokers + 1):
            roles = "broker,controller" if combined and number <= controllers else "broker"
            rack = {"broker.rack": racks[number % len(racks)]} if racks else {}
            self._add(f"broker-{number}", number, roles, voting, {**common, **rack})
        if not combined:
            for name, number in zip(voting, numbers, strict=True):
                self._add(name, number, "controller", voting, common)
        levels = {**DEFAULT_FEATURES, ELR_VERSION: 1 if elr else 0, TRANSACTION_VERSION: transaction_version}
        self._features = release.formatted(levels)
        for machine in self._by_name.values():
            machine.release = release

    def _add(self, name: str, node_id: int, roles: str, voting: Sequence[str], common: Mapping[str, str]) -> None:
        listeners = []
        if "broker" in roles:
            listeners.append(f"PLAINTEXT://{name}:{CLIENT_PORT}")
        if "controller" in roles:
            listeners.append(f"CONTROLLER://{name}:{CONTROLLER_PORT}")
        properties = {
            "process.roles": roles,
            "node.id": str(node_id),
            "listeners": ",".join(listeners),
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": ",".join(f"{voter}:{CONTROLLER_PORT}" for voter in voting),
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": LOG_DIR,
            **common,
        }
        self._properties[name] = properties
        machine = self._by_name[name] = Machine(name, node_id, parse_static(properties))
        if machine.config.is_broker:
            self._brokers[node_id] = machine
        if machine.config.is_controller:
            self._controllers[node_id] = machine

    # names

    @property
    def machines_by_host(self) -> Mapping[str, Machine]:
        return self._by_name

    @property
    def all_machines(self) -> list[Machine]:
        return list(self._by_name.values())

    @property
    def broker_names(self) -> list[str]:
        return [machine.name for machine in self._by_name.values() if machine.config.is_broker]

    @property
    def controller_names(self) -> list[str]:
        """Dedicated ones only."""
        return [machine.name for machine in self._by_name.values() if not machine.config.is_broker]

    @property
    def controller(self) -> Machine:
        """The active controller; the first one if none is active."""
        controllers = [machine for machine in self._by_name.values() if machine.config.is_controller]
        active = (one for one in controllers if (node := one.running) is not None and node.quorum.is_leader)
        return next(active, controllers[0])

    @property
    def bootstrap(self) -> list[Endpoint]:
        return [Endpoint(name, CLIENT_PORT) for name in self.broker_names]

    def machine(self, name: str) -> Machine:
        return self._by_name[name]

    def broker(self, broker_id: int) -> Machine:
        return self._brokers[broker_id]

    def controller_machine(self, node_id: int) -> Machine:
        return self._controllers[node_id]

    # life

    def format(self) -> None:
        """Format every disk, durably; happens before the run, so that no fault can disturb it."""
        chances = {name: self.world.stream(f"directory {name}") for name in self._by_name}
        ids = {
            name: {path: Uuid(chances[name].randbytes(16)) for path in machine.config.log_dirs}
            for name, machine in self._by_name.items()
        }
        voters = [
            self._voter(machine, ids[name]) for name, machine in self._by_name.items() if machine.config.is_controller
        ]
        for name, machine in self._by_name.items():
            self._format(machine, ids[name], voters if machine.config.is_controller else [])

    def _voter(self, machine: Machine, ids: Mapping[str, Uuid]) -> Voter:
        endpoint = machine.config.advertised_controller_listeners[0].endpoint
        return Voter(BrokerId(machine.node_id), ids[machine.config.metadata_log_dir], endpoint)

    def replace_disk(self, name: str) -> None:
        """A machine that is down gets new, empty log directories."""
        self.say(f"replace-disk {name}")
        self.machines.replace_disk(name)
        machine = self._by_name[name]
        chance = self.world.stream(f"directory {name} {self.world.host(name).incarnations}")
        ids = {path: Uuid(chance.randbytes(16)) for path in machine.config.log_dirs}
        # of several voters, one with a new disk is another voter: it follows the others until it is added
        founds = machine.config.is_controller and self._voting == 1
        self._format(machine, ids, [self._voter(machine, ids)] if founds else [])

    def _format(self, machine: Machine, ids: Mapping[str, Uuid], voters: Sequence[Voter]) -> None:
        self.metadata_directory_ids[machine.name] = ids[machine.config.metadata_log_dir]
        env = self.machines.boot(machine.name)
        plan = Format(CLUSTER_ID, ids, self._features, voters)
        results: list[OSError | None] = []
        self._formatting = machine.name
        format_node(env.files, machine.config, plan, env.wall_ms(), results.append)
        self.world.run_while(lambda: not results, 1000)
        self._formatting = ""
        assert results == [None], f"formatting {machine.name}: {results}"
        self.world.end(env.process, Exit("stopped", 0, "formatted"))
        self.machines.disk(machine.name).settle()

    def configure(self, name: str, changes: Mapping[str, str]) -> None:
        """Edit the configuration file of one node; takes effect at its next start."""
        self.say(f"configure {name} {' '.join(f'{key}={value}' for key, value in changes.items())}")
        self._properties[name] = {**self._properties[name], **changes}
        self._by_name[name].config = parse_static(self._properties[name])

    def upgrade(self, name: str, release: Release) -> None:
        """Install another release on one node, a former one too; takes effect at its next start."""
        self.say(f"install {release.name} on {name}")
        self._by_name[name].release = release

    def start_all(self) -> None:
        for name in reversed(list(self._by_name)):
            self.start(name)

    def start(self, name: str) -> None:
        """A new incarnation; nothing happens if one runs."""
        machine = self._by_name[name]
        if self.is_up(name) or name == self._formatting:
            return
        self.say(f"start {name}")
        release = machine.release
        env = self.machines.boot(name, None if release.supports is None else release.as_seen)
        node = Node(env, machine.config)
        machine.node = node
        machine.stopping = False
        machine.process = self.machines.launch(env, node, node.listeners, node.connected)
        for listener in self.start_listeners:
            listener(machine, machine.process)

    def run_client(self, name: str, make: Callable[[SimEnv], C]) -> C:
        """A client on a machine of its own."""
        env = self.machines.boot(name)
        client = make(env)
        self.machines.launch(env, client)
        return client

    def is_up(self, name: str) -> bool:
        return name != self._formatting and self.machines.running(name) is not None

    def kill(self, name: str, *, lose_unflushed: bool = False) -> None:
        """SIGKILL, or with `lose_unflushed` a power cut. The command that formats a disk is spared: it is the
        operator's, who would run it again."""
        if name == self._formatting or not self.numbers.happens("power-cut" if lose_unflushed else "kill", name):
            return
        self.say(f"{'power-cut' if lose_unflushed else 'kill'} {name}")
        machine = self._by_name[name]
        stopping = machine.process if machine.stopping and self.is_up(name) else None
        lost = self.machines.kill(name, lose_unflushed=lose_unflushed)
        is_clean = lost == 0 and says_clean(self.machines.disk(name), machine)
        if is_clean and stopping is not None and stopping.exit is not None:
            stopping.exit = replace(stopping.exit, finished=True)

    def stop(self, name: str) -> None:
        """SIGTERM: as soon as the process runs, it begins to stop."""
        machine = self._by_name[name]
        process, node = machine.process, machine.node
        if process is None or node is None or not process.alive or not self.numbers.happens("stop", name):
            return
        self.say(f"stop {name}")
        machine.stopping = True
        self.world.schedule(0, process, "SIGTERM", node.shutdown)

    def pause(self, name: str) -> None:
        if not self.is_up(name) or not self.numbers.happens("pause", name):
            return
        self.say(f"pause {name}")
        self.machines.pause(name)

    def resume(self, name: str) -> None:
        self.machines.resume(name)

    # disks

    def restore(self, name: str, backup: SimDisk) -> None:
        """A machine that is down gets what `Machines.back_up` has kept."""
        assert not self.is_up(name), f"{name} still runs"
        self.say(f"restore {name}")
        self.machines.disk(name).copy_from(backup)

    def fill_disk(self, name: str) -> None:
        """Nothing can be written there until it is repaired."""
        self.say(f"disk of {name} is full")
        self.break_disk(name, "", "full")

    def break_disk(self, name: str, path: str, how: str) -> None:
        """What is below `path` is broken until it is repaired; how: as of `SimDisk.break_at`."""
        if self.numbers.happens("break-disk", f"{name} {path} {how}"):
            self.machines.disk(name).break_at(path, how)

    def damage_disk(self, name: str, path: str, how: str) -> Damage | None:
        """Damage a file of a machine that is down; how: as of `SimDisk.damage`. None: this fault is left out."""
        assert not self.is_up(name), f"{name} still runs"
        if not self.numbers.happens("damage", f"{name} {path} {how}"):
            return None
        damage = self.machines.disk(name).damage(path, how)
        self.say(f"damage {name} {damage}")
        return damage

    def slow_disk(self, name: str, flush_us: tuple[int, int]) -> None:
        """Each flush takes a time in this range."""
        if flush_us == FLUSH_US or self.numbers.happens("slow-disk", name):
            self.machines.disk(name).flush_us = flush_us

    def lie_about_flushes(self, name: str) -> None:
        """From now on its disk reports flushes that it does not do."""
        if self.numbers.happens("lie", name):
            self.say(f"the disk of {name} lies about flushes")
            self.machines.disk(name).lies = True

    def disks_that_lied(self) -> list[str]:
        """Machines whose disks have lost what they had reported as flushed."""
        return [name for name in self._by_name if self.machines.disk(name).has_lost_flushed]

    def repair_disk(self, name: str) -> None:
        self.machines.disk(name).repair()

    # network

    def block(self, source: str, target: str) -> None:
        if self.numbers.happens("block", f"{source}>{target}"):
            self.network.block(source, target)

    def heal(self, source: str, target: str) -> None:
        self.network.heal(source, target)

    def reset_between(self, one: str, other: str) -> None:
        if self.numbers.happens("reset", f"{one} {other}"):
            self.network.reset_between(one, other)

    def slow(self, name: str, extra_us: int) -> None:
        """Latency of everything that this machine sends; 0 takes it back."""
        if extra_us and not self.numbers.happens("slow", name):
            return
        for other in self._by_name:
            if other != name:
                self.network.link(name, other).low_us = self.network.low_us + extra_us

    def reaches(self, controller_id: int, target: str) -> bool:
        """Whether what this controller sends now arrives there; it does not while the controller hangs or is down."""
        machine = self._controllers[controller_id]
        process = machine.process
        return (
            process is not None
            and process.exit is None
            and not process.paused
            and not self.network.link(machine.name, target).blocked
        )

    # clocks

    def drift(self, name: str, ppm: int) -> None:
        """From now on its clocks run too fast or too slow by this much; 0: at the right speed."""
        if ppm == 0 or self.numbers.happens("drift", f"{name} {ppm} ppm"):
            self.world.host(name).drift(ppm)

    def set_wall_clock(self, name: str, offset_ms: int) -> None:
        """Set the wall clock to this distance from the true time. The monotonic clock does not change."""
        if offset_ms == 0 or self.numbers.happens("wall-clock", f"{name} {offset_ms} ms"):
            self.world.host(name).wall_offset_ms = offset_ms

    # the run

    def after(self, delay_ms: int, label: str, fn: Callable[[], None]) -> None:
        self.world.schedule(delay_ms * 1000, None, label, fn)

    def say(self, what: str) -> None:
        """Into the list of faults and into the trace."""
        self.faults.append(f"{self.world.now_us / 1e6:9.3f}s {what}")
        for listener in self.fault_listeners:
            listener(what)
        self.world.note("-", what)

    def run_for(self, duration_ms: int) -> None:
        self.world.run_for(duration_ms)

    def run_until(self, done: Callable[[], bool], timeout_ms: int) -> bool:
        """Whether it became true in time."""
        return self.world.run_while(lambda: not done(), timeout_ms)
