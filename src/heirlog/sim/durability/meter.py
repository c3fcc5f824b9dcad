"""What a run of `durability` counts while it lasts: unavailable time, and elections by what they risk."""

from __future__ import annotations

from typing import Any

from heirlog.broker.partition import ReplicaRole
from heirlog.metadata.image import Image
from heirlog.metadata.journal import ImageJournal
from heirlog.metadata.state import PartitionRegistration
from heirlog.sim.durability.failures import Failures
from heirlog.sim.leader_checker import is_lossy
from heirlog.sim.oracle import Key
from heirlog.sim.simulation import Simulation
from heirlog.sim.topics import TOPIC
from heirlog.sim.world import Process


class Meter:
    """Counts from now on, until `end`. What it counts does not change the run."""

    def __init__(self, simulation: Simulation, failures: Failures) -> None:
        self._simulation = simulation
        self._failures = failures
        self._world = simulation.world
        self._began_us = self._now_us = self._world.now_us
        image = simulation.checker.committed.image
        topic_id = image.topic_ids[TOPIC]
        self._waiting: dict[Key, bool] = {(topic_id, index): False for index in image.partitions[topic_id]}
        """Whether each partition is unavailable since the last event."""
        self._unavailable_us = dict.fromkeys(self._waiting, 0)
        self._elections = 0
        self._lossy_elections = 0
        self._world.event_listeners.append(self._after_event)
        simulation.checker.record_listeners.append(self._on_record)

    def end(self) -> None:
        """Add to the run's counters; an outage that has not ended counts up to now."""
        self._pass()
        self._world.event_listeners.remove(self._after_event)
        self._simulation.checker.record_listeners.remove(self._on_record)
        counters = self._world.counters
        counters["durability.partition-ms"] = len(self._waiting) * (self._world.now_us - self._began_us) // 1000
        counters["durability.unavailable-ms"] = sum(self._unavailable_us.values()) // 1000
        counters["durability.unavailable-max-ms"] = max(self._unavailable_us.values()) // 1000
        counters["durability.elections"] = self._elections
        counters["durability.lossy-elections"] = self._lossy_elections

    def _after_event(self, process: Process | None) -> None:
        self._pass()
        for key in self._waiting:
            self._waiting[key] = not self._accepts(key)

    def _pass(self) -> None:
        """The time since the last event."""
        passed_us, self._now_us = self._world.now_us - self._now_us, self._world.now_us
        if passed_us:
            for key, waits in self._waiting.items():
                if waits:
                    self._unavailable_us[key] += passed_us

    def _accepts(self, key: Key) -> bool:
        """Whether the partition's leader would take an acks=all write: it runs and can be reached, knows that it leads,
        and its ISR has min ISR members.
        """
        state = self._simulation.checker.committed.image.partition(*key)
        if state is None or not state.has_leader:
            return False
        machine = self._simulation.cluster.broker(state.leader)
        node = None if machine.name in self._failures.cut_off else machine.running
        partition = None if node is None else node.broker.replicas.partition(key)
        if (
            partition is None
            or partition.role is not ReplicaRole.LEADER
            or partition.leader_epoch != state.leader_epoch
        ):
            return False
        return len(state.isr) >= self._simulation.plan.min_isr

    def _on_record(self, record: Any, image: Image, journal: ImageJournal) -> None:
        for key, before in journal.partitions.items():
            after = image.partition(*key)
            if before is not None and after is not None and key in self._waiting:
                self._count(before, after)

    def _count(self, before: PartitionRegistration, after: PartitionRegistration) -> None:
        if after.has_leader and after.leader != before.leader:
            self._elections += 1
            self._lossy_elections += is_lossy(before, after)
