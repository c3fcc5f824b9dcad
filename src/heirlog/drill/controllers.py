"""Controllers are lost in turn for minutes, while clients write, read, commit and change metadata.

    begin --> topics --> clients start --> [ fault, the controllers return ] ... --> clients end their last change
          --> readers reach what was acknowledged --> a new reader reads everything once more --> verdict

The faults, in turn; the first three hit the active controller:

    kill         SIGKILL, started again after 2 s
    pause        SIGSTOP for 6 s: its sockets stay open and it answers nothing
    power-cut    SIGKILL, and what it had not flushed is gone; started again after 2 s
    stop         SIGTERM: it hands over to another controller
    majority     the active and one more are killed; metadata cannot change until they return after 4 s

Checked at the end: nothing acknowledged is lost, doubled or out of order (`sequences`); no group loses a commit; each
topic is as its last acknowledged change left it, none half made (`metadata_clients`). For each fault the verdict has
the longest time without an acknowledged change.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient, NewTopic

from heirlog.drill.metadata_clients import MOVED, MOVED_PARTITIONS, AnsweredChanges, PartitionMover, TopicChanger
from heirlog.drill.observe import DrillFailure
from heirlog.drill.sequence_verdict import SequenceVerdict, wait_for_readers
from heirlog.drill.sequences import Reading
from heirlog.drill.servers import Servers
from heirlog.drill.soak_clients import (
    PARTITIONS,
    PLAIN,
    RECONNECT,
    AssignedConsumer,
    Commits,
    GroupMember,
    SoakRecord,
    SteadyConsumer,
    SteadyProducer,
)
from heirlog.drill.workload import Loop, stop_all
from heirlog.local.cluster import Cluster

CONFIG = {
    "offsets.topic.num.partitions": 8,
    "group.initial.rebalance.delay.ms": 500,
}
"""Further configurations of the drill's cluster."""
WAYS = ("kill", "pause", "power-cut", "stop", "majority")
DOWN_S = {"kill": 2.0, "pause": 6.0, "power-cut": 2.0, "stop": 2.0, "majority": 4.0}
PRODUCERS = 2
RATE_PER_S = 200
GROUP = "controllers"
FLUSH_S = 60.0
WAIT_S = 60.0
QUIET_S = (2.0, 4.0)
"""After the controllers of a fault have returned, until the next fault."""
POLL_S = 0.05


@dataclass(frozen=True, slots=True)
class ControllerFault:
    """One fault that happened. `gap_s`: the longest time without an acknowledged change, until the next fault."""

    kind: str
    controllers: list[int]
    at_s: float
    gap_s: float


@dataclass(slots=True)
class Verdict(SequenceVerdict):
    drill = "controllers"
    broken = (*SequenceVerdict.broken, "half_made")

    changes: dict[str, int] = field(default_factory=dict)
    """Acknowledged: create, alter, grow, delete, move."""
    half_made: int = 0
    """Topics and partitions that are not as their last acknowledged change left them."""
    faults: list[ControllerFault] = field(default_factory=list)


def run(cluster: Cluster, *, minutes: float, seed: int, say: Callable[[str], None] = lambda _: None) -> Verdict:
    """Play the drill on a started cluster of three brokers and three controllers, with `CONFIG`. Raises
    DrillFailure."""
    return _Drill(cluster, minutes, seed, say).run()


class _Drill:
    def __init__(self, cluster: Cluster, minutes: float, seed: int, say: Callable[[str], None]) -> None:
        self._cluster = cluster
        self._servers = Servers.of(cluster)
        self._duration_s = minutes * 60
        self._random = Random(seed)
        self._print = say
        self._verdict = Verdict(minutes, seed)
        self._record = SoakRecord()
        self._answered = AnsweredChanges()
        self._commits = Commits()
        self._began_s = time.monotonic()

    def run(self) -> Verdict:
        servers = self._servers
        self._create_topics()
        changer = TopicChanger(servers, self._answered)
        mover = PartitionMover(servers, self._cluster.brokers, self._answered)
        producers = [
            SteadyProducer(servers, number, PLAIN, RATE_PER_S, self._record, "none", FLUSH_S)
            for number in range(PRODUCERS)
        ]
        consumers = self._consumers()
        writers: list[Loop] = [*producers, changer, mover]
        for client in [*consumers, *writers]:
            client.start()
        self._say("clients started")
        self._began_s = time.monotonic()
        try:
            self._play()
        finally:
            stop_all(writers)
        self._say(f"{self._record.acknowledged.count} records acknowledged; readers continue until they have them all")
        wait_for_readers(self._record)
        stop_all(consumers)
        self._read_once_more()
        self._judge(changer, mover)
        return self._verdict

    def _create_topics(self) -> None:
        admin = AdminClient(self._servers.librdkafka())
        topics = [NewTopic(PLAIN, PARTITIONS[PLAIN], 3), NewTopic(MOVED, MOVED_PARTITIONS, 2)]
        for created in admin.create_topics(topics).values():
            created.result(WAIT_S)

    def _consumers(self) -> list[SteadyConsumer]:
        servers = self._servers
        reading = self._reading("the group", repeats=True)
        members = [
            GroupMember(
                servers,
                f"member {number}",
                GROUP,
                self._record,
                reading,
                self._commits,
                strategy="range",
                leaves=number == 0,
            )
            for number in range(2)
        ]
        return [*members, AssignedConsumer(servers, "assigned", self._record, self._reading("the assigned consumer"))]

    def _reading(self, name: str, *, repeats: bool = False) -> Reading:
        reading = Reading(PLAIN, repeats=repeats)
        self._record.readings.append((name, reading))
        return reading

    # faults

    def _say(self, what: str) -> None:
        self._print(f"{time.monotonic() - self._began_s:6.1f} s  {what}")

    def _play(self) -> None:
        number = 0
        while time.monotonic() - self._began_s < self._duration_s:
            kind = WAYS[number % len(WAYS)]
            number += 1
            first = self._active()
            hit = [first]
            if kind == "majority":
                hit.append(self._random.choice([node for node in self._cluster.controllers if node != first]))
            began_s = time.monotonic()
            for node in hit:
                self._lose(kind, node)
            time.sleep(DOWN_S[kind])
            for node in hit:
                self._bring_back(kind, node)
            self._complete()
            time.sleep(self._random.uniform(*QUIET_S))
            gap_s = self._answered.longest_gap_s(began_s, time.monotonic())
            fault = ControllerFault(kind, hit, round(began_s - self._began_s, 1), round(gap_s, 2))
            self._verdict.faults.append(fault)
            self._say(f"{kind} of {', '.join(map(str, hit))}: {fault.gap_s:g} s without an acknowledged change")

    def _lose(self, kind: str, node: int) -> None:
        if kind == "pause":
            self._cluster.pause(node)
        elif kind == "stop":
            self._cluster.stop(node)
        elif kind == "power-cut":
            self._cluster.lose_unflushed(node, self._random.getrandbits(32))
        else:
            self._cluster.kill(node)

    def _bring_back(self, kind: str, node: int) -> None:
        if kind == "pause":
            self._cluster.resume(node)
        else:
            self._cluster.start(node)

    def _active(self) -> int:
        """Raises DrillFailure."""
        deadline = time.monotonic() + WAIT_S
        while (found := self._cluster.active_controller()) is None:
            if time.monotonic() > deadline:
                raise DrillFailure(f"no controller was active for {WAIT_S:g} s")
            time.sleep(POLL_S)
        return found

    def _complete(self) -> None:
        """Every node runs: a node that ended by itself is a finding, and is not started again."""
        self._active()
        for node in self._cluster.node_ids:
            if node not in self._cluster.pids:
                raise DrillFailure(f"node {node} ended by itself; it said: {self._cluster.output(node)[-2_000:]}")

    # judgement

    def _read_once_more(self) -> None:
        """What a new client finds: a record may be lost after it was read."""
        reader = AssignedConsumer(self._servers, "second reader", self._record, self._reading("a new reader")).start()
        try:
            wait_for_readers(self._record)
        finally:
            reader.stop()

    def _judge(self, changer: TopicChanger, mover: PartitionMover) -> None:
        verdict, record = self._verdict, self._record
        self._judge_commits()
        verdict.count(record)
        half_made = [*changer.findings(changer.found()), *mover.findings(self._replicas())]
        verdict.half_made = len(half_made)
        verdict.changes = dict(self._answered.kinds)
        if not verdict.faults:
            record.failed("no controller was lost: the drill proved nothing")
        verdict.failures = [*record.failures, *half_made]

    def _judge_commits(self) -> None:
        """Every answered commit of the group is found by a new client."""
        answered = self._commits.copy()
        consumer = Consumer({**self._servers.librdkafka(), "group.id": GROUP, **RECONNECT})
        try:
            places = consumer.committed([Place(PLAIN, index) for index in answered], timeout=WAIT_S)
        finally:
            consumer.close()
        for place in places:
            if max(place.offset, 0) < answered[place.partition]:
                self._record.commits_lost += 1
                self._record.failed(
                    f"{PLAIN}-{place.partition} was committed at {answered[place.partition]}, found {place.offset}"
                )

    def _replicas(self) -> dict[int, list[int]]:
        admin = AdminClient(self._servers.librdkafka())
        partitions = admin.list_topics(MOVED, timeout=WAIT_S).topics[MOVED].partitions
        return {index: list(partition.replicas) for index, partition in partitions.items()}
