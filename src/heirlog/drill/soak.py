"""Load for minutes while brokers are killed: eight producers, eight consumers, three brokers, a kill every 30 s.

    begin --> topics --> clients start --> [ SIGKILL, a few seconds, start again ] ... --> producers flush
          --> consumers reach what was acknowledged --> a new reader reads everything once more --> verdict

In every third round the controller is killed too, halfway between two kills. In the second half of the drill one
broker, drawn at the start, is not killed, and in the last quarter the controller is not: only a process that runs for
minutes shows whether its memory grows.

Checked at the end: nothing acknowledged is lost, doubled or out of order per producer and partition (`sequences`); no
group skips a record or loses a commit; memory and open files of no node grow (`resource_usage`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from confluent_kafka import Message
from confluent_kafka.admin import AdminClient, NewTopic

from heirlog.drill.resource_usage import ResourceUsage
from heirlog.drill.sequence_verdict import SequenceVerdict, wait_for_readers
from heirlog.drill.sequences import LastValues, Reading
from heirlog.drill.servers import Servers
from heirlog.drill.soak_clients import (
    APPEND_TIME,
    COMPACTED,
    PARTITIONS,
    PLAIN,
    ROLLING,
    AssignedConsumer,
    Commits,
    GroupMember,
    SoakRecord,
    SteadyConsumer,
    SteadyProducer,
    identify,
    settings_of,
)
from heirlog.drill.workload import everything, stop_all
from heirlog.local.cluster import Cluster

CONFIG = {
    "min.insync.replicas": 2,
    "log.retention.check.interval.ms": 2_000,
    "log.cleaner.backoff.ms": 1_000,
    "offsets.topic.num.partitions": 8,
    "offsets.topic.segment.bytes": 1_048_576,
    "group.initial.rebalance.delay.ms": 500,
}
"""Further configurations of the drill's cluster: retention and cleaning happen within a minute."""
RATE_PER_S = 250
"""Records of each producer."""
WRITERS = (PLAIN, PLAIN, PLAIN, ROLLING, ROLLING, APPEND_TIME, APPEND_TIME, COMPACTED)
COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")
DOWN_S = (2.0, 8.0)
CONTROLLER_DOWN_S = 2.0
CONTROLLER_EVERY = 3
SAMPLE_S = 1.0
FLUSH_S = 60.0
OUTPUT_SHOWN = 2_000
"""Characters of a node's output in an error message."""
MEANINGFUL_S = 60.0
"""A drill of this length must have had a deleted segment and a compaction, or it has not tested them."""


@dataclass(slots=True)
class Verdict(SequenceVerdict):
    drill = "soak"
    broken = (*SequenceVerdict.broken, "wrong_timestamps", "keys_lost")

    wrong_timestamps: int = 0
    read_again: int = 0
    """By groups after a rebalance: their guarantee is at least once."""
    rebalances: int = 0
    keys: int = 0
    keys_lost: int = 0
    """Keys of the compacted topic for which a reader did not find the last acknowledged value last."""
    kills: int = 0
    controller_kills: int = 0
    trimmed_replicas: int = 0
    """Of the rolling topic: retention has deleted segments there."""
    compactions: int = 0
    resources: list[dict[str, Any]] = field(default_factory=list)


def run(
    cluster: Cluster,
    *,
    minutes: float,
    seed: int,
    kill_every_s: float = 30.0,
    say: Callable[[str], None] = lambda _: None,
) -> Verdict:
    """Play the drill on a started cluster of three brokers and a controller, with `CONFIG`. Raises DrillFailure."""
    return _Soak(cluster, minutes * 60, Random(seed), kill_every_s, say).run(Verdict(minutes, seed))


class _Soak:
    def __init__(
        self, cluster: Cluster, duration_s: float, random: Random, kill_every_s: float, say: Callable[[str], None]
    ) -> None:
        self.cluster = cluster
        self._servers = Servers.of(cluster)
        self.soak_record = SoakRecord()
        self.resource_usage = ResourceUsage()
        self._duration_s = duration_s
        self._random = random
        self._say = say
        self._began_s = time.monotonic()
        self._faults = iter(faults(cluster.brokers, _controllers(cluster), duration_s, kill_every_s, random))
        self._next_fault = next(self._faults, None)
        self._kills = self._controller_kills = 0
        self._down: set[int] = set()
        """Nodes that are not expected to run."""
        self._sampled_s = 0.0

    def run(self, verdict: Verdict) -> Verdict:
        self._create_topics()
        self._print("topics are there; clients start")
        servers = self._servers
        producers = [
            SteadyProducer(
                servers,
                number,
                topic,
                RATE_PER_S,
                self.soak_record,
                COMPRESSIONS[number % len(COMPRESSIONS)],
                FLUSH_S,
            )
            for number, topic in enumerate(WRITERS)
        ]
        consumers = self._consumers(servers)
        for client in [*consumers, *producers]:
            client.start()
        try:
            self._work(self._duration_s)
        finally:
            stop_all(producers)
        count = self.soak_record.acknowledged.count
        self._print(f"{count} records acknowledged; consumers continue until they have read them all")
        wait_for_readers(self.soak_record, self._watch)
        self._print("consumers leave")
        stop_all(consumers)
        self._read_once_more()
        self._print("done")
        return self._judged(verdict)

    def _create_topics(self) -> None:
        admin = AdminClient(self._servers.librdkafka())
        topics = [NewTopic(name, count, 3, config=settings_of(name)) for name, count in PARTITIONS.items()]
        for created in admin.create_topics(topics).values():
            created.result(30)

    def _consumers(self, servers: Servers) -> list[SteadyConsumer]:
        def assigned(topic: str) -> SteadyConsumer:
            name = f"assigned to {topic}"
            return AssignedConsumer(
                servers, name, self.soak_record, self._reading(name, topic, gaps=topic == COMPACTED)
            )

        def group(topic: str, members: int, strategy: str) -> Iterator[SteadyConsumer]:
            name, commits = f"group of {topic}", Commits()
            reading = self._reading(name, topic, repeats=True)
            for number in range(members):
                yield GroupMember(
                    servers,
                    f"{name}, member {number}",
                    name,
                    self.soak_record,
                    reading,
                    commits,
                    strategy=strategy,
                    leaves=number == 0,
                )

        return [
            *group(PLAIN, 3, "range"),
            *group(APPEND_TIME, 2, "cooperative-sticky"),
            *(assigned(topic) for topic in (PLAIN, ROLLING, COMPACTED)),
        ]

    def _reading(self, name: str, topic: str, *, repeats: bool = False, gaps: bool = False) -> Reading:
        reading = Reading(topic, repeats=repeats, gaps=gaps)
        self.soak_record.readings.append((name, reading))
        return reading

    # time passes

    def _print(self, what: str) -> None:
        self._say(f"{time.monotonic() - self._began_s:6.1f} s  {what}")

    def _work(self, duration_s: float) -> None:
        """Inject faults and take samples, until the duration has passed and all nodes are back."""
        self._began_s = time.monotonic()
        while (now_s := time.monotonic() - self._began_s) < duration_s:
            self._inject_fault(now_s)
            self._watch()
            time.sleep(SAMPLE_S / 4)
        for node in self.cluster.node_ids:
            if node not in self.cluster.pids:
                self.cluster.start(node)
        self._down.clear()

    def _inject_fault(self, now_s: float) -> None:
        while self._next_fault is not None and self._next_fault.at_s <= now_s:
            fault, self._next_fault = self._next_fault, next(self._faults, None)
            self._print(f"{'start' if fault.start else 'kill'} {fault.node}")
            if fault.start:
                self._down.discard(fault.node)
                self.cluster.start(fault.node)
            elif fault.node in self.cluster.pids:
                self._down.add(fault.node)
                self.cluster.kill(fault.node)
                self._kills += fault.node in self.cluster.brokers
                self._controller_kills += fault.node not in self.cluster.brokers

    def _watch(self) -> None:
        now_s = time.monotonic() - self._began_s
        if now_s - self._sampled_s < SAMPLE_S:
            return
        self._sampled_s = now_s
        pids = self.cluster.pids
        self.resource_usage.sample(now_s, pids)
        for node in self.cluster.node_ids:
            if node not in pids and node not in self._down:
                self._down.add(node)
                self.soak_record.failed(
                    f"node {node} ended by itself; it said: {self.cluster.output(node)[-OUTPUT_SHOWN:]}"
                )

    def _read_once_more(self) -> None:
        """The content of the log now, for a new client: a record may be lost after it was read."""
        self._print("a new reader reads everything once more")
        readings = {
            topic: self._reading(f"second reading of {topic}", topic, gaps=topic == COMPACTED) for topic in PARTITIONS
        }
        readings[ROLLING].mid = True
        for message in everything(self._servers, PARTITIONS):
            topic, record = message.topic(), identify(message)
            assert topic is not None
            readings[topic].add(message.partition(), message.offset(), record)
            if topic == COMPACTED and record is not None:
                _keep(self.soak_record.last_values, message, record.sequence)

    def _judged(self, verdict: Verdict) -> Verdict:
        soak_record = self.soak_record
        verdict.count(soak_record)
        verdict.read_again = sum(reading.read_again for _, reading in soak_record.readings)
        verdict.wrong_timestamps, verdict.rebalances = soak_record.wrong_timestamps, soak_record.rebalances
        verdict.keys, verdict.keys_lost = len(soak_record.last_values.acknowledged), soak_record.last_values.lost()
        verdict.kills, verdict.controller_kills = self._kills, self._controller_kills
        verdict.trimmed_replicas = self._trimmed_replicas()
        verdict.compactions = sum(self.cluster.output(node).count("log-compacted") for node in self.cluster.brokers)
        if self._duration_s >= MEANINGFUL_S and not (verdict.trimmed_replicas and verdict.compactions):
            soak_record.failed(
                "no segment was deleted by retention, or no log compacted: the drill proved nothing about them"
            )
        verdict.resources = self.resource_usage.as_json()
        verdict.failures = [*soak_record.failures, *self.resource_usage.findings()]
        return verdict

    def _trimmed_replicas(self) -> int:
        firsts = [
            min(path.name for path in directory.glob("*.log"))
            for directory in self.cluster.data.glob(f"broker-*/**/{ROLLING}-*")
            if directory.is_dir()
        ]
        return sum(int(name.split(".")[0]) > 0 for name in firsts)


@dataclass(frozen=True, slots=True)
class Fault:
    at_s: float
    node: int
    start: bool


def faults(
    brokers: list[int], controllers: list[int], duration_s: float, kill_every_s: float, random: Random
) -> list[Fault]:
    """In the order of time: a broker killed in every round, in the middle of it, and started again within `DOWN_S`.

    In every third round, including the first, a controller is killed as well. The module docstring says which nodes are
    not killed.
    """
    found = []
    spared = random.choice(brokers)
    for number in range(int(duration_s / kill_every_s)):
        at_s = (number + 0.5) * kill_every_s
        victims = [broker for broker in brokers if broker != spared or at_s < duration_s / 2]
        down_s = min(random.uniform(*DOWN_S), kill_every_s / 2)
        victim = random.choice(victims)
        found += [Fault(at_s, victim, False), Fault(at_s + down_s, victim, True)]
        if controllers and number % CONTROLLER_EVERY == 0 and at_s < 0.75 * duration_s:
            too_s = at_s + random.uniform(0, kill_every_s / 3)
            found += [Fault(too_s, controllers[0], False), Fault(too_s + CONTROLLER_DOWN_S, controllers[0], True)]
    return sorted((fault for fault in found if fault.at_s < duration_s), key=lambda fault: fault.at_s)


def _controllers(cluster: Cluster) -> list[int]:
    return [node for node in cluster.node_ids if node not in cluster.brokers]


def _keep(values: LastValues, message: Message, sequence: int) -> None:
    key = message.key()
    assert isinstance(key, bytes)
    values.found[key] = None if message.value() is None else sequence
