"""What a run is played on: a cluster, clients that use it, a checker that watches.

    begin    format -> all brokers unfenced -> topic -> clients
    heal     everything that is down comes back -> every partition led, every ISR whole
    audit    producers end -> a fresh consumer reads everything
    judge    the history checks

Scenarios act between `begin` and `heal`. Waiting too long anywhere is a violation of its own, `liveness`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random

from heirlog.protocol.types import BrokerId
from heirlog.sim import history
from heirlog.sim.checker import Checker, Violation
from heirlog.sim.clients import ACKS_ALL, Consumer, Producer, TopicMaker
from heirlog.sim.cluster import Cluster
from heirlog.sim.history import History
from heirlog.sim.world import World

TOPIC = "t"
START_LIMIT_MS = 30_000
HEAL_LIMIT_MS = 60_000
AUDIT_LIMIT_MS = 20_000


@dataclass(slots=True)
class Plan:
    """What a scenario asks the run to set up."""

    elr: bool = True
    partitions: int = 2
    min_isr: int = 2
    config: Mapping[str, str] = field(default_factory=dict)
    wire: bool = False
    idempotent: bool = True
    leader_acks: bool = True
    batch_records: int = 10
    interval_ms: int = 200


class Stage:
    """A cluster with clients and a checker; scenarios act on it."""

    def __init__(self, seed: int, plan: Plan) -> None:
        self.seed = seed
        self.plan = plan
        self.world = World(seed)
        self.random: Random = self.world.stream("scenario")
        self.cluster = Cluster(
            self.world, elr=plan.elr, wire=plan.wire, config={"min.insync.replicas": str(plan.min_isr), **plan.config}
        )
        self.history = History(lambda: self.world.now_us // 1000)
        self.checker = Checker(self.cluster, self.history)
        self.producers: list[Producer] = []
        self.consumers: list[Consumer] = []

    # building

    def begin(self) -> None:
        """Up to the moment at which clients produce and read."""
        self.cluster.format()
        self.world.observer = self.checker.observe
        self.cluster.start_all()
        self.wait("brokers are unfenced", self.all_unfenced, START_LIMIT_MS)
        self._make_topic()
        self._start_clients()

    def _make_topic(self) -> None:
        brokers = len(self.cluster.broker_names)
        assignments = [
            [(first + offset) % brokers + 1 for offset in range(min(3, brokers))]
            for first in range(self.plan.partitions)
        ]
        maker = self.cluster.run_client(
            "admin",
            lambda env: TopicMaker(
                env,
                "admin",
                self.cluster.bootstrap,
                {TOPIC: assignments},
                {"min.insync.replicas": str(self.plan.min_isr)},
            ),
        )
        self.wait("the topic is created", lambda: maker.done, START_LIMIT_MS)

    def _start_clients(self) -> None:
        plan = self.plan
        self._produce("producer-1", ACKS_ALL, 0, plan.interval_ms, idempotent=False)
        if plan.idempotent:
            self._produce("producer-2", ACKS_ALL, 1_000_000, plan.interval_ms, idempotent=True)
        if plan.leader_acks:
            self._produce("producer-3", 1, 2_000_000, plan.interval_ms * 2, idempotent=False)
        self.consumers.append(
            self.cluster.run_client(
                "consumer-1",
                lambda env: Consumer(env, "consumer-1", self.cluster.bootstrap, [TOPIC], self.history),
            )
        )

    def _produce(self, name: str, acks: int, value_base: int, interval_ms: int, *, idempotent: bool) -> None:
        self.producers.append(
            self.cluster.run_client(
                name,
                lambda env: Producer(
                    env,
                    name,
                    self.cluster.bootstrap,
                    [TOPIC],
                    self.history,
                    acks=acks,
                    value_base=value_base,
                    batch_records=self.plan.batch_records,
                    interval_ms=interval_ms,
                    idempotent=idempotent,
                ),
            )
        )

    # looking

    def all_unfenced(self) -> bool:
        brokers = self.checker.truth.image.brokers
        return len(brokers) == len(self.cluster.broker_names) and not any(b.fenced for b in brokers.values())

    def all_led_and_whole(self) -> bool:
        states = [state for each in self.checker.truth.image.partitions.values() for state in each.values()]
        return self.all_unfenced() and all(
            state.leader >= 0 and len(state.isr) == len(state.replicas) for state in states
        )

    def wait(self, what: str, done: Callable[[], bool], limit_ms: int) -> None:
        if not self.cluster.run_until(done, limit_ms):
            raise Violation(
                "liveness", f"after {limit_ms / 1000:.0f} s of virtual time it is still not true that {what}"
            )

    # ending

    def heal(self) -> None:
        """Everything that is down comes back, and the cluster with it."""
        for name in [*self.cluster.controller_names, *self.cluster.broker_names]:
            self._bring_back(name)
        self.wait("every partition is led and every ISR is whole", self.all_led_and_whole, HEAL_LIMIT_MS)

    def _bring_back(self, name: str) -> None:
        if self.cluster.is_up(name) and self.cluster.machine(name).stopping:
            self.cluster.run_until(lambda: not self.cluster.is_up(name), START_LIMIT_MS)
        self.cluster.start(name)

    def audit(self) -> None:
        """Producers end; a fresh consumer reads everything."""
        for producer in self.producers:
            producer.stop()
        self.cluster.run_for(4000)
        # a broker that was slow to come back may have been fenced once more
        self.wait("every partition is led and every ISR is whole", self.all_led_and_whole, HEAL_LIMIT_MS)
        auditor = self.cluster.run_client(
            "auditor", lambda env: Consumer(env, "auditor", self.cluster.bootstrap, [TOPIC], self.history)
        )
        ends = self._ends()
        self.wait(
            "everything was read",
            lambda: all(auditor.positions.get(name, -1) >= end for name, end in ends.items()),
            AUDIT_LIMIT_MS,
        )
        for consumer in [*self.consumers, auditor]:
            consumer.stop()
        self.checker.sweep()

    def _ends(self) -> dict[str, int]:
        ends = {}
        for key, lineage in self.checker.lineages():
            state = self.checker.truth.image.partition(*key)
            node = None if state is None else self.cluster.broker(BrokerId(state.leader)).running
            partition = None if node is None else node.broker.replicas.partition(key)
            if partition is not None:
                ends[lineage.name] = partition.high_watermark
        return ends

    def judge(self) -> None:
        """The history checks; raises Violation with the first finding."""
        seen, losses = self.history, self.checker.losses
        findings = [
            *history.latest_went_back(seen.latest, losses),
            *history.inconsistent_offsets(seen.acknowledged, seen.observed, losses),
            *history.lost_write(seen.acknowledged, seen.observed, losses),
            *history.duplicate(seen.observed),
        ]
        if findings:
            raise Violation(findings[0].check, findings[0].sentence)

    def lost(self) -> int:
        """Acknowledged records that nobody can read, excused or not."""
        readable = {(one.partition, one.value) for one in self.history.observed}
        return sum(1 for one in self.history.acknowledged if (one.partition, one.value) not in readable)
