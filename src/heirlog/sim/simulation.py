"""What a run consists of: a cluster, clients that use it, and a checker that observes it.

    begin    format -> all brokers unfenced -> topic -> clients
    heal     everything that is down comes back -> every partition led, every ISR whole
    audit    producers end -> a fresh consumer reads everything
    judge    the history checks (`judgement.py`)

Scenarios act between `begin` and `heal`. A wait that takes too long is the violation `liveness`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random

from heirlog.broker.partition import Partition
from heirlog.client.offsets import TopicPartition
from heirlog.metadata.image import ELR_VERSION, METADATA_VERSION, RECOVERY_VERSION
from heirlog.metadata.state import TRANSACTION_VERSION, PartitionRegistration
from heirlog.protocol.types import BrokerId
from heirlog.sim.checker import Checker
from heirlog.sim.clients.admin import (
    NONE,
    STRATEGY,
    FeatureChanger,
    MinIsrChanger,
    Operator,
    RandomTopicCreator,
    StrategyChanger,
    TopicCreator,
    TopicRecreator,
)
from heirlog.sim.clients.client import Client
from heirlog.sim.clients.consumer import Consumer
from heirlog.sim.clients.member import Member, OffsetsReader
from heirlog.sim.clients.pipelined import PipelinedProducer
from heirlog.sim.clients.producer import ACKS_ALL, Producer, Workload
from heirlog.sim.cluster import RECOVERY_MANAGER, SimCluster
from heirlog.sim.consumer_group_history import ConsumerGroupHistory
from heirlog.sim.disk import SimDisk
from heirlog.sim.group_history import GroupHistory
from heirlog.sim.healed_quorum import HealedQuorum
from heirlog.sim.history import History
from heirlog.sim.loss_report_checker import unreported
from heirlog.sim.oracle import Violation
from heirlog.sim.plan import RunPlan
from heirlog.sim.topics import (
    CLEANED,
    CLEANED_CONFIG,
    COMPACTED,
    COMPACTED_CONFIG,
    MANY,
    RECREATED,
    TOPIC,
    TRANSACTIONAL,
    topics_of,
)
from heirlog.sim.transactional_load import TransactionalLoad
from heirlog.sim.voter_operator import VoterOperator
from heirlog.sim.world import World

MANY_INTERVAL_MS = 8000
COMPACTED_VALUES = 3_000_000
"""The first number that is written to the compacted topic."""
GROUP = "g"
AUDITOR = "auditor"
"""Reads everything once more in the end."""
GROUP_LIMIT_MS = 30_000
ELECTION_ATTEMPTS = 5
DELETION_LIMIT_MS = 10_000
REPORT_LIMIT_MS = 10_000
START_LIMIT_MS = 30_000
HEAL_LIMIT_MS = 60_000
SUPERVISOR_MS = 1000
SETTLE_LIMIT_MS = 20_000
AUDIT_LIMIT_MS = 20_000


class Simulation:
    """A cluster with clients and a checker; scenarios act on it."""

    def __init__(self, seed: int, plan: RunPlan) -> None:
        self.seed = seed
        self.plan = plan
        self.world = World(seed)
        self.random: Random = self.world.stream("scenario")
        self.cluster = SimCluster(
            self.world,
            brokers=plan.brokers,
            controllers=plan.controllers,
            elr=plan.elr,
            racks=plan.racks,
            release=plan.release,
            transaction_version=plan.transaction_version,
            wire=plan.wire,
            without_faults=plan.without_faults,
            config={
                "min.insync.replicas": str(plan.min_isr),
                RECOVERY_MANAGER: str(plan.manager).lower(),
                **plan.config,
            },
        )
        self.history = History(lambda: self.world.now_us // 1000)
        self.checker = Checker(self.cluster, self.history)
        self.producers: list[Producer] = []
        self.consumers: list[Consumer] = []
        self.group_history = GroupHistory(GROUP)
        self.members: list[Member] = []
        self.consumer_history: ConsumerGroupHistory | None = None
        """Of a group of the consumer protocol, if the script has one."""
        self.recreator: TopicRecreator | None = None
        self.transactions = (
            TransactionalLoad(
                self,
                TOPIC,
                TRANSACTIONAL,
                [RECREATED] if plan.recreated else [],
                [CLEANED] if plan.cleaned_transactions else [],
                plan,
            )
            if plan.transactions
            else None
        )
        self._admins: list[Client] = []
        self._operator: Operator | None = None
        self._voter_operator: VoterOperator | None = None
        self._quorum = HealedQuorum(self.checker)
        self.backup: SimDisk | None = None
        """The controller's disk before the topics were created."""
        self._replaced: set[int] = set()
        """Brokers that came back with an empty disk."""
        self.last_read: dict[str, dict[int, int]] = {}
        """By partition and key, the number of the last record that the auditor read."""
        self.audited: set[str] = set()
        """Partitions that it read up to their end."""

    # building

    def begin(self) -> None:
        """Up to the moment at which clients produce and read."""
        self.cluster.format()
        self.world.event_listeners.append(self.checker.observe)
        self.cluster.start_all()
        # a broker may give up before the first leader of several controllers is elected
        self.wait("brokers are unfenced", self.supervised(self.all_unfenced), START_LIMIT_MS)
        self.backup = self.cluster.machines.back_up(self.cluster.controller.name)
        self._make_topics()
        self._start_clients()

    def _replicas(self, partitions: int) -> list[list[int]]:
        """The replicas of each partition. Assignments begin with different brokers, as far apart as possible."""
        brokers = len(self.cluster.broker_names)
        step = max(1, brokers // partitions)
        factor = min(self.plan.replication_factor, brokers)
        return [[(step * index + offset) % brokers + 1 for offset in range(factor)] for index in range(partitions)]

    def topics(self) -> dict[str, int]:
        """With their partitions."""
        return topics_of(self.plan)

    def _make_topics(self) -> None:
        assignments = {name: self._replicas(partitions) for name, partitions in self.topics().items()}
        configs = {
            TOPIC: {"min.insync.replicas": str(self.plan.min_isr), **self.plan.topic_config},
            COMPACTED: COMPACTED_CONFIG,
            CLEANED: CLEANED_CONFIG,
        }
        self.checker.oracle.placed_by_hand.update(assignments)
        creator = self.cluster.run_client(
            "admin", lambda env: TopicCreator(env, "admin", self.cluster.bootstrap, assignments, configs)
        )
        self.wait("the topics are created", lambda: creator.done, START_LIMIT_MS)

    def _start_clients(self) -> None:
        plan, bootstrap = self.plan, self.cluster.bootstrap
        written = [topic for topic in self.topics() if topic not in (COMPACTED, MANY, TRANSACTIONAL, CLEANED)]
        plain = Workload(ACKS_ALL, 0, plan.batch_records, plan.interval_ms, idempotent=False, keyed=(COMPACTED,))
        idempotent = replace(plain, idempotent=True)
        self._produce("producer-1", written, plain)
        if plan.idempotent:
            self._produce("producer-2", [TOPIC], replace(idempotent, value_base=1_000_000))
        if plan.pipelined:
            self._produce("producer-5", [TOPIC], replace(idempotent, value_base=4_000_000), PipelinedProducer)
        if plan.leader_acks:
            by_leader = replace(plain, acks=1, value_base=2_000_000, interval_ms=2 * plan.interval_ms)
            self._produce("producer-3", [TOPIC], by_leader)
        if plan.compacted:
            slower = replace(idempotent, value_base=COMPACTED_VALUES, interval_ms=2 * plan.interval_ms)
            self._produce("producer-4", [COMPACTED], slower)
        if plan.many:
            self._produce("producer-6", [MANY], replace(idempotent, value_base=5_000_000, interval_ms=MANY_INTERVAL_MS))
        self.consumers.append(self.reader("consumer-1", [topic for topic in self.topics() if topic != MANY]))
        if self.transactions is not None:
            self.transactions.start()
        for number in range(1, plan.members + 1):
            self.members.append(self._member(f"member-{number}"))
        if plan.recreated:
            replicas = self._replicas(self.topics()[RECREATED])
            self.recreator = self.cluster.run_client(
                "churn", lambda env: TopicRecreator(env, "churn", bootstrap, RECREATED, replicas)
            )
            self._admins.append(self.recreator)
        if plan.racks:
            self._admins.append(
                self.cluster.run_client("sower", lambda env: RandomTopicCreator(env, "sower", bootstrap, []))
            )
        if plan.min_isr_changes:
            self._admins.append(
                self.cluster.run_client("min-isr", lambda env: MinIsrChanger(env, "min-isr", bootstrap, [TOPIC]))
            )

        if plan.strategy_changes:
            self._admins.append(
                self.cluster.run_client("strategy", lambda env: StrategyChanger(env, "strategy", bootstrap, [TOPIC]))
            )

        if plan.feature_changes or plan.manager_changes or plan.metadata_changes or plan.transaction_version_changes:
            features = [
                *[TRANSACTION_VERSION] * plan.transaction_version_changes,
                *[ELR_VERSION] * plan.feature_changes,
                *[RECOVERY_VERSION] * plan.manager_changes,
                *[METADATA_VERSION] * plan.metadata_changes,
            ]
            ends_on = [RECOVERY_VERSION] * plan.manager_changes
            self._admins.append(
                self.cluster.run_client(
                    "features", lambda env: FeatureChanger(env, "features", bootstrap, features, ends_on=ends_on)
                )
            )

    def _member(self, name: str) -> Member:
        return self.cluster.run_client(
            name, lambda env: Member(env, name, self.cluster.bootstrap, TOPIC, self.group_history, self.history.now_ms)
        )

    def reader(self, name: str, topics: list[str], *, reads_committed: bool = False) -> Consumer:
        recreated = [RECREATED, TOPIC] if self.plan.script_recreates_topic else [RECREATED]
        return self.cluster.run_client(
            name,
            lambda env: Consumer(
                env,
                name,
                self.cluster.bootstrap,
                topics,
                self.history,
                interval_ms=self.plan.reader_interval_ms,
                latest_interval_ms=self.plan.latest_interval_ms,
                recreated=recreated,
                reads_committed=reads_committed,
            ),
        )

    def _produce(self, name: str, topics: list[str], workload: Workload, kind: type[Producer] = Producer) -> None:
        self.producers.append(
            self.cluster.run_client(
                name, lambda env: kind(env, name, self.cluster.bootstrap, topics, self.history, workload)
            )
        )

    # looking

    def all_unfenced(self) -> bool:
        brokers = self.checker.committed.image.brokers
        return len(brokers) == len(self.cluster.broker_names) and not any(b.fenced for b in brokers.values())

    def all_led_and_in_sync(self) -> bool:
        states = [state for each in self.checker.committed.image.partitions.values() for state in each.values()]
        return self.all_unfenced() and all(
            state.leader >= 0 and len(state.isr) == len(state.replicas) and not state.is_reassigning for state in states
        )

    def wait(self, what: str, done: Callable[[], bool], limit_ms: int) -> None:
        if not self.cluster.run_until(done, limit_ms):
            raise Violation(
                "liveness", f"after {limit_ms / 1000:.0f} s of virtual time it is still not true that {what}"
            )

    # acting

    def replace_disk(self, name: str) -> None:
        """Give a machine that is down a new disk. Everything that it held must still be on other disks."""
        self.cluster.replace_disk(name)
        self._replaced.add(self.cluster.machine(name).node_id)
        self.checker.oracle.directory_failed_on.add(name)
        self.checker.disk_checker.disk_replaced(name)

    def damage_disk(self, name: str, path: str, how: str) -> None:
        """Damage a file of a machine that is down (`SimDisk.damage`). That copy counts as lost, and no other one."""
        damage = self.cluster.damage_disk(name, path, how)
        if damage is not None:
            self.checker.oracle.disk_damaged(name)
            self.checker.disk_checker.disk_damaged(name)

    def replace_voter_disk(self, name: str) -> None:
        """Give a controller that is down a new disk: it is another voter then, and has no vote until it is added."""
        self.cluster.replace_disk(name)
        self.checker.committed.disk_changed(name)

    def operate_voters(self, *, asks: bool = True) -> VoterOperator:
        """From now on an operator changes the voters; not asks: replaces their disks only, and they add themselves."""
        random = self.world.stream("voters")
        self._voter_operator = VoterOperator(self.cluster, random, self.replace_voter_disk, asks=asks)
        return self._voter_operator

    def restore_voter_disk(self, name: str, former: SimDisk) -> None:
        """Put another copy of its disk back into a controller that is down."""
        self.cluster.restore(name, former)
        self.checker.committed.disk_changed(name)

    # ending

    def heal(self) -> None:
        """Everything that is down comes back, and the cluster with it."""
        for name in [*self.cluster.controller_names, *self.cluster.broker_names]:
            self._restart(name)
        self._quorum.wait_until_it_works(self.supervised)
        operator = self._voter_operator
        if operator is not None:
            operator.want_all()
            self.wait("every controller votes", self.supervised(lambda: operator.is_settled), HEAL_LIMIT_MS)
        clears_lists = self.plan.min_isr_changes or self.plan.feature_changes
        if self.plan.manager_changes:
            for client in self._admins:
                client.stop()
        if clears_lists or self.plan.topic_config.get(STRATEGY) == NONE or self._replaced:
            self._elect_where_operator_decides()
        self.wait(
            "every partition is led and every ISR is whole", self.supervised(self.all_led_and_in_sync), HEAL_LIMIT_MS
        )

    def supervised(self, done: Callable[[], bool]) -> Callable[[], bool]:
        """`done`; meanwhile nodes whose start gave up are started again, as a supervisor does."""
        names = [*self.cluster.controller_names, *self.cluster.broker_names]
        next_ms = 0

        def checked() -> bool:
            nonlocal next_ms
            now_ms = self.world.now_us // 1000
            if now_ms >= next_ms:
                next_ms = now_ms + SUPERVISOR_MS
                for name in names:
                    self.cluster.start(name)
            return done()

        return checked

    def _elect_where_operator_decides(self) -> None:
        """Elect leaders where no replica may lead until an operator decides.

        Without the recovery manager, a change of min ISR or of the feature's level empties the ELR. If the ISR was
        empty too, no replica may lead. With it, an operator has to decide under the strategy None, and if a last known
        replica comes back with an empty disk.
        """
        for client in self._admins:
            client.stop()
        if self._operator is None:
            self._operator = self.cluster.run_client(
                "operator", lambda env: Operator(env, "operator", self.cluster.bootstrap, [])
            )
        # a controller that is new may take an incarnation that has ended for one that lives
        self.wait("the brokers that run are unfenced", self.supervised(self._all_registered), HEAL_LIMIT_MS)
        for _ in range(ELECTION_ATTEMPTS):
            self.cluster.run_for(2000)
            waiting = self._waiting_for_operator()
            if not waiting:
                return
            self.cluster.say(f"an operator elects leaders of {waiting}")
            self.checker.oracle.operator_elects = True
            self._operator.elect_once(waiting)

    def _all_registered(self) -> bool:
        """Every broker; one that has just been started does not count as running yet."""
        oracle = self.checker.oracle
        running = list(oracle.running_brokers())
        return (
            self.all_unfenced()
            and len(running) == len(self.cluster.broker_names)
            and all(oracle.runs_as_registered(BrokerId(machine.node_id), node.broker) for machine, node in running)
        )

    def _waiting_for_operator(self) -> list[TopicPartition]:
        """The partitions that wait for an operator."""
        image = self.checker.committed.image
        found: list[TopicPartition] = []
        for topic_id, partitions in sorted(image.partitions.items()):
            topic = image.topics[topic_id].name
            found += [
                (topic, index) for index, state in sorted(partitions.items()) if self._needs_operator(topic, state)
            ]
        return found

    def _needs_operator(self, topic: str, state: PartitionRegistration) -> bool:
        if state.isr or state.elr:
            return False
        if state.last_known_elr and all(broker in self._replaced for broker in state.last_known_elr):
            return True
        if self.plan.feature_changes and not self.plan.manager and not state.last_known_elr:
            return True
        none = self.plan.manager and self.plan.topic_config.get(STRATEGY) == NONE
        return topic == TOPIC and (none or not state.last_known_elr)

    def _restart(self, name: str) -> None:
        if self.cluster.is_up(name) and self.cluster.machine(name).stopping:
            self.cluster.run_until(lambda: not self.cluster.is_up(name), START_LIMIT_MS)
        self.cluster.start(name)

    def audit(self) -> None:
        """Producers end; a fresh consumer reads everything."""
        for producer in self.producers:
            producer.stop()
        for admin in self._admins:
            admin.stop()
        if self.transactions is not None:
            self.transactions.stop()
        recreator = self.recreator
        if recreator is not None:
            # a broker whose registration was refused, while the session of its last process was live, may have given up
            settled = self.supervised(lambda: recreator.settled)
            self.wait("the topic that was made again is there", settled, HEAL_LIMIT_MS)
        self.cluster.run_for(4000)
        # a broker that was slow to come back may have been fenced once more, or have given up
        self.wait(
            "every partition is led and every ISR is whole", self.supervised(self.all_led_and_in_sync), HEAL_LIMIT_MS
        )
        self._quorum.is_quiet()
        self.wait(
            "every batch is acknowledged or given up",
            self.supervised(lambda: all(producer.idle for producer in self.producers)),
            SETTLE_LIMIT_MS,
        )
        self._audit_group()
        if self.transactions is not None:
            self.transactions.settle()
        if not self.cluster.run_until(lambda: self.checker.misplaced() is None, DELETION_LIMIT_MS):
            raise Violation("T14", self.checker.misplaced() or "")
        if not self.cluster.run_until(lambda: unreported(self.checker.oracle) is None, REPORT_LIMIT_MS):
            raise Violation("loss-report", unreported(self.checker.oracle) or "")
        # a leader may have been elected just now: its high watermark follows once the ISR has fetched
        self.wait("everything is committed", self.supervised(self._all_committed), SETTLE_LIMIT_MS)
        auditor = self.reader(AUDITOR, list(self.topics()))
        ends = self._ends()
        self.wait(
            "everything was read",
            lambda: all(auditor.positions.get(name, -1) >= end for name, end in ends.items()),
            AUDIT_LIMIT_MS,
        )
        if self.transactions is not None:
            self.transactions.audit(ends)
        for consumer in [*self.consumers, auditor]:
            consumer.stop()
        self.checker.sweep()
        self._quorum.check_quiet()
        self.last_read = auditor.last_of_key
        self.audited = set(auditor.positions)

    def _audit_group(self) -> None:
        """Wait until the members of the group agree again, and read its committed offsets once more."""
        if not self.members:
            return
        self.wait("the group shares out every partition", self._group_is_complete, GROUP_LIMIT_MS)
        for member in self.members:
            member.stop()
        reader = self.cluster.run_client(
            "offsets-reader",
            lambda env: OffsetsReader(env, "offsets-reader", self.cluster.bootstrap, TOPIC, self.group_history),
        )
        self.wait("a coordinator answers what the group has committed", lambda: reader.done, GROUP_LIMIT_MS)

    def _group_is_complete(self) -> bool:
        generations = {member.generation for member in self.members}
        owned = sorted(index for member in self.members for index in member.owned)
        return len(generations) == 1 and owned == list(range(self.plan.partitions))

    def _all_committed(self) -> bool:
        return all(partition.high_watermark == partition.log.log_end_offset for _, partition in self._leaders())

    def _ends(self) -> dict[str, int]:
        """Of what clients read, in the topics that are there now."""
        return {name: partition.high_watermark for name, partition in self._leaders()}

    def _leaders(self) -> Iterator[tuple[str, Partition]]:
        """Each partition of the topics that are there now, on its leader."""
        image = self.checker.committed.image
        for key, model in self.checker.models():
            state, topic = image.partition(*key), image.topics.get(key[0])
            if state is None or topic is None or topic.name not in self.topics():
                continue
            node = self.cluster.broker(BrokerId(state.leader)).running
            partition = None if node is None else node.broker.replicas.partition(key)
            if partition is not None:
                yield model.name, partition
