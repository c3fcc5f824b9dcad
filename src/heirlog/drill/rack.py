"""A rack loses power, one rack after the other, while a client writes to every partition.

Six brokers in the racks a, b and c; the controller places the replicas of a topic with replication factor 3 and
min.insync.replicas=2. For each rack:

    both of its brokers are killed at once and lose what they had not flushed
    every partition gets a leader in another rack, and records are acknowledged in every partition
    the brokers return; every ISR is complete again

The result counts records acknowledged at acks=all that a new client no longer finds, at their offset, with their
value. It names each partition that has two replicas in one rack.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from confluent_kafka.admin import AdminClient, NewTopic

from heirlog.blocking import Client
from heirlog.drill.observe import DrillFailure, Partition, partitions_of
from heirlog.drill.progress import ClientProgress
from heirlog.drill.servers import Servers
from heirlog.drill.workload import Acknowledged, Writer, read_all
from heirlog.local.cluster import Cluster

RACKS = ("a", "b", "c", "a", "b", "c")
"""Of brokers 1 to 6."""
TOPIC = "rack"
PARTITIONS = 12
RECORDS_BETWEEN = 100
"""Acknowledged per partition between two events."""
WAIT_S = 60.0
POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class Outage:
    """One rack's. `leaderless_ms`: from the kill until every partition had a leader outside of the rack."""

    rack: str
    brokers: list[int]
    leaderless_ms: int
    acknowledged: int
    """Records, while the rack was away."""


@dataclass(slots=True)
class Verdict:
    """What the drill found; `passed`: nothing acknowledged is lost or changed, and no partition shares a rack."""

    acknowledged: int = 0
    readable: int = 0
    lost: int = 0
    changed_values: int = 0
    failures: list[str] = field(default_factory=list)
    outages: list[Outage] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        return not self.lost and not self.changed_values and not self.failures

    def as_json(self) -> dict[str, Any]:
        return {"drill": TOPIC, **asdict(self), "passed": self.passed}


def run(
    cluster: Cluster,
    *,
    seed: int | None = None,
    say: Callable[[str], None] = lambda _: None,
    progress: ClientProgress | None = None,
) -> Verdict:
    """Play the drill on a started cluster of six brokers in `RACKS`.

    seed: how much of what the brokers had not flushed survives (None: nothing). progress: gets a curve of
    acknowledgements. Raises DrillFailure if the cluster does not get to a state that the drill needs.
    """
    with Servers.of(cluster).client() as client:
        return _Drill(cluster, client, seed, say, progress).run()


class _Drill:
    def __init__(
        self,
        cluster: Cluster,
        client: Client,
        seed: int | None,
        say: Callable[[str], None],
        progress: ClientProgress | None,
    ) -> None:
        self._cluster = cluster
        self._servers = Servers.of(cluster)
        self._client = client
        self._seed = seed
        self._say = say
        self._progress = progress
        self._verdict = Verdict()

    def run(self) -> Verdict:
        self._create_topic()
        with Writer(self._servers, TOPIC, acks="all", partitions=PARTITIONS, progress=self._progress) as writer:
            self._records_everywhere(writer)
            for rack in dict.fromkeys(RACKS):
                self._lose(rack, writer)
        self._judge(writer.acknowledged)
        return self._verdict

    def _create_topic(self) -> None:
        admin = AdminClient(self._servers.librdkafka())
        topic = NewTopic(TOPIC, PARTITIONS, 3, config={"min.insync.replicas": "2"})
        for created in admin.create_topics([topic]).values():
            created.result(WAIT_S)
        self._wait("every partition to have three replicas in its ISR", self._complete)
        for partition in self._partitions():
            racks = [RACKS[broker - 1] for broker in partition.replica_nodes]
            if len(set(racks)) < len(racks):
                self._verdict.failures.append(
                    f"partition {partition.partition_index} has replicas {partition.replica_nodes} in racks {racks}"
                )

    def _lose(self, rack: str, writer: Writer) -> None:
        brokers = [number for number, own in enumerate(RACKS, 1) if own == rack]
        before, began = len(writer.acknowledged), time.monotonic()
        for broker in brokers:
            self._cluster.kill(broker)
        for broker in brokers:
            self._cluster.lose_unflushed(broker, self._seed)
        self._wait(
            f"every partition to be led outside of rack {rack}",
            lambda found: all(one.leader_id > 0 and one.leader_id not in brokers for one in found),
        )
        leaderless_ms = int(1000 * (time.monotonic() - began))
        self._records_everywhere(writer)
        outage = Outage(rack, brokers, leaderless_ms, len(writer.acknowledged) - before)
        self._verdict.outages.append(outage)
        self._say(
            f"rack {rack} (brokers {brokers}) lost power: every partition led after {leaderless_ms} ms, "
            f"{outage.acknowledged} records acknowledged without it"
        )
        for broker in brokers:
            self._cluster.start(broker)
        self._wait(f"every ISR to be complete after the return of rack {rack}", self._complete)
        self._records_everywhere(writer)
        self._say(f"rack {rack} is back, and every ISR is complete")

    @staticmethod
    def _complete(found: list[Partition]) -> bool:
        return all(len(one.isr_nodes) == len(one.replica_nodes) == 3 for one in found)

    def _records_everywhere(self, writer: Writer) -> None:
        """Until every partition has acknowledged more."""
        start = len(writer.acknowledged)

        def more() -> bool:
            counted = Counter(record.partition for record in writer.acknowledged[start:])
            return all(counted[partition] >= RECORDS_BETWEEN for partition in range(PARTITIONS))

        self._until(more, "records acknowledged in every partition")

    def _judge(self, acknowledged: Iterable[Acknowledged]) -> None:
        verdict = self._verdict
        records = list(acknowledged)
        for partition in range(PARTITIONS):
            found = read_all(self._servers, TOPIC, partition)
            own = [record for record in records if record.partition == partition]
            verdict.readable += sum(found.crc_by_offset.get(record.offset) == record.crc for record in own)
            verdict.changed_values += found.changed
        verdict.acknowledged = len(records)
        verdict.lost = verdict.acknowledged - verdict.readable

    def _partitions(self) -> list[Partition]:
        """Empty while no broker can answer."""
        return list(partitions_of(self._client, [TOPIC]).values())

    def _wait(self, what: str, condition: Callable[[list[Partition]], bool]) -> None:
        def holds() -> bool:
            found = self._partitions()
            return len(found) == PARTITIONS and condition(found)

        self._until(holds, what)

    def _until(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + WAIT_S
        while not condition():
            if time.monotonic() > deadline:
                looks = [(p.partition_index, p.leader_id, p.isr_nodes) for p in self._partitions()]
                raise DrillFailure(f"waited {WAIT_S:g} s for {what}; partition, leader and ISR: {looks}")
            time.sleep(POLL_S)
