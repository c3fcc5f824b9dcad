"""A run as a story: what broke, what each node said, and why each leader was chosen.

    fault                   ***  power-cut broker-2
    what a node logs        broker-1        partition led: topic=t partition=0 ...
    a committed record      metadata        t-0: broker 3 leads in place of 2 (it was in the ISR), epoch 4; ISR 3; ELR 2
    a decision              transactions    alone: PrepareCommit, producer 1000 in epoch 3: x-0 x-1

Records are shown when the first node knows them to be committed. Times are virtual seconds since the run began.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from heirlog.broker.transactions.records import StoredTransaction
from heirlog.metadata.image import Image
from heirlog.metadata.journal import ImageJournal
from heirlog.metadata.state import BrokerRegistration, Ids, PartitionRegistration
from heirlog.sim.leader_checker import is_lossy
from heirlog.sim.simulation import Simulation
from heirlog.sim.world import LogLine

FAULT, METADATA, TRANSACTIONS = "***", "metadata", "transactions"
REPEATED = (
    "replica-fetch-failed",
    "fetch-session-lost",
    "produce-refused",
    "heartbeat-failed",
    "marker-not-written",
    "internal-record-refused",
)
"""Log lines of nodes that say nothing new: each follows from a fault, many times."""


class Line(NamedTuple):
    time_us: int
    who: str
    what: str

    def __str__(self) -> str:
        return f"{self.time_us / 1e6:9.3f}  {self.who:14}  {self.what}"


class Story:
    """Of one run; make it before the run begins. `lines` grow while it continues."""

    def __init__(self, simulation: Simulation) -> None:
        self._world = simulation.world
        self.lines: list[Line] = []
        simulation.world.log_listeners.append(self._logged)
        simulation.cluster.fault_listeners.append(lambda what: self._add(FAULT, what))
        simulation.checker.record_listeners.append(self._committed)
        simulation.checker.transactions.record_listeners.append(self._transaction)

    def until(self, time_s: float | None) -> Iterable[Line]:
        """None: to the end of the run."""
        return (line for line in self.lines if time_s is None or line.time_us <= time_s * 1e6)

    def _add(self, who: str, what: str) -> None:
        self.lines.append(Line(self._world.now_us, who, what))

    def _logged(self, line: LogLine) -> None:
        if line.event not in REPEATED:
            values = " ".join(f"{name}={value}" for name, value in line.values.items())
            what = line.event.replace("-", " ")
            self._add(line.node, f"{what}: {values}" if values else what)

    def _transaction(self, stored: StoredTransaction) -> None:
        transactional_id, now = stored
        if now is None:
            self._add(TRANSACTIONS, f"{transactional_id} is deleted")
            return
        partitions = " ".join(f"{topic}-{index}" for topic, index in sorted(now.partitions))
        what = f"{transactional_id}: {now.state.text}, producer {now.producer_id} in epoch {now.producer_epoch}"
        self._add(TRANSACTIONS, f"{what}: {partitions}" if partitions else what)

    def _committed(self, record: Any, image: Image, journal: ImageJournal) -> None:
        for broker, registration in journal.brokers.items():
            now = image.brokers.get(broker)
            what = "is unregistered" if now is None else broker_change(registration, now)
            if what:
                self._add(METADATA, f"broker {broker} {what}")
        for topic_id, topic in journal.topics.items():
            there = image.topics.get(topic_id)
            if there is None and topic is not None:
                self._add(METADATA, f"topic {topic.name} is deleted")
            elif there is not None and topic is None:
                self._add(METADATA, f"topic {there.name} is created")
        for (topic_id, index), before in journal.partitions.items():
            after = image.partition(topic_id, index)
            if after is not None:
                self._add(METADATA, f"{image.topics[topic_id].name}-{index}: {partition_change(before, after)}")
        for kind, name, key in journal.configs:
            value = image.configs.get((kind, name), {}).get(key, "its default")
            self._add(METADATA, f"configuration {key} of {name or 'all brokers'} becomes {value}")
        for feature, level in journal.features.items():
            self._add(METADATA, f"feature {feature} goes from level {level or 0} to {image.features.get(feature, 0)}")


def broker_change(before: BrokerRegistration | None, after: BrokerRegistration) -> str:
    """What happened to the broker; empty if nothing that matters here."""
    if before is None or before.epoch != after.epoch:
        return f"registers with epoch {after.epoch}"
    if before.fenced != after.fenced:
        return "is fenced" if after.fenced else "is unfenced"
    if after.in_controlled_shutdown and not before.in_controlled_shutdown:
        return "stops cleanly: it leads nothing any more"
    return ""


def partition_change(before: PartitionRegistration | None, after: PartitionRegistration) -> str:
    """The new leader and why it was chosen, and the lists that have changed."""
    if before is None:
        return f"begins with replicas {_ids(after.replicas)}, leader {after.leader}, ISR {_ids(after.isr)}"
    parts = []
    if after.leader != before.leader:
        parts.append(_leader_change(before, after))
    elif after.leader_epoch != before.leader_epoch:
        parts.append(f"broker {after.leader} leads on in epoch {after.leader_epoch}")
    for name, old, new in (
        ("replicas", before.replicas, after.replicas),
        ("ISR", before.isr, after.isr),
        ("ELR", before.elr, after.elr),
        ("LastKnownELR", before.last_known_elr, after.last_known_elr),
    ):
        if old != new:
            parts.append(f"{name} {_ids(old)} -> {_ids(new)}")
    return "; ".join(parts) or f"partition epoch {after.partition_epoch}"


def _leader_change(before: PartitionRegistration, after: PartitionRegistration) -> str:
    if not after.has_leader:
        waiting = f": waits for broker {_ids(after.elr)} of the ELR" if after.elr else ""
        return f"no leader after broker {before.leader}{waiting}"
    former = f" in place of {before.leader}" if before.has_leader else ""
    return f"broker {after.leader} leads{former} in epoch {after.leader_epoch} ({_why(before, after)})"


def _why(before: PartitionRegistration, after: PartitionRegistration) -> str:
    if is_lossy(before, after) and after.basis is not None:
        basis = after.basis
        answers = [
            f"{one.broker} ends at {one.end_offset} in epoch {one.last_written_epoch}"
            for one in basis.replicas
            if one.answered
        ]
        known = f": {'; '.join(answers)}" if answers else ""
        return f"{basis.basis.value}, which may lose records{known}"
    if after.leader in before.isr:
        return "it was in the ISR"
    return "it was in the ELR" if after.leader in before.elr else "it was a replica"


def _ids(ids: Ids) -> str:
    return ",".join(map(str, ids)) or "-"
