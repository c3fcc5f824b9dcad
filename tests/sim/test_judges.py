"""What the judges of a running cluster take for a broken rule, and what not: a real cluster, and records of our own."""

from __future__ import annotations

from typing import Any

import pytest

from heirlog.metadata.image import TOPIC_RESOURCE
from heirlog.protocol.records import ClearElrRecord, ConfigRecord, PartitionChangeRecord
from heirlog.protocol.types import BrokerId, Uuid
from heirlog.sim.cluster import says_clean
from heirlog.sim.oracle import Violation
from heirlog.sim.plan import RunPlan
from heirlog.sim.simulation import Simulation
from heirlog.sim.topics import TOPIC
from heirlog.storage.clean_shutdown import CLEAN_SHUTDOWN_FILE

STOP_LIMIT_MS = 30_000


def begun(**plan: Any) -> Simulation:
    simulation = Simulation(1, RunPlan(partitions=1, **plan))
    simulation.begin()
    return simulation


def commit(simulation: Simulation, *records: Any) -> None:
    """As one batch that the controllers have committed."""
    truth, judge = simulation.checker.committed, simulation.checker._records
    for offset, record in enumerate(records, truth.end):
        truth._apply(record, offset, 1)
    judge.batch_ends()


def change(topic_id: Uuid, **fields: Any) -> PartitionChangeRecord:
    return PartitionChangeRecord(topic_id=topic_id, partition_id=0, **fields)


def without_a_leader(simulation: Simulation) -> Uuid:
    """ISR empty, 2 in the ELR, 3 on LastKnownELR."""
    topic_id = simulation.checker.committed.image.topic_ids[TOPIC]
    simulation.checker.oracle.operator_elects = True
    commit(simulation, change(topic_id, isr=[2, 3], leader=2))
    commit(simulation, change(topic_id, isr=[2], eligible_leader_replicas=[3]))
    commit(simulation, change(topic_id, isr=[], eligible_leader_replicas=[2], last_known_elr=[3], leader=-1))
    return topic_id


def min_isr(topic: str) -> list[Any]:
    value = ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name=topic, name="min.insync.replicas", value="2")
    return [value, ClearElrRecord(topic_name=topic)]


def test_a_lossy_election_in_the_batch_of_a_clear_elr_may_forget_members() -> None:
    simulation = begun()
    topic_id = without_a_leader(simulation)
    named = change(topic_id, last_known_elr=[3, 2])
    elected = change(topic_id, isr=[2], last_known_elr=[], leader=2)
    commit(simulation, *min_isr(TOPIC), named, elected)


@pytest.mark.parametrize("elects", [True, False])
def test_a_clear_elr_must_not_forget_members_whatever_follows_it(elects: bool) -> None:
    simulation = begun()
    topic_id = without_a_leader(simulation)
    elected = [change(topic_id, isr=[2], last_known_elr=[], leader=2)] if elects else []
    with pytest.raises(Violation, match="T10"):
        commit(simulation, *min_isr(TOPIC), change(topic_id, last_known_elr=[3]), *elected)


def test_a_broker_that_could_not_close_a_directory_has_not_stopped_cleanly() -> None:
    simulation = begun(config={"log.dirs": "/data/a,/data/b"})
    cluster, oracle = simulation.cluster, simulation.checker.oracle
    for producer in simulation.producers:
        producer.stop()
    cluster.run_for(2000)
    node = cluster.machine("broker-2").running
    assert node is not None
    directory_failed_on, *_ = [directory for directory in node.directories if directory.logs]
    cluster.machines.disk("broker-2").break_at(f"{directory_failed_on.path}/{CLEAN_SHUTDOWN_FILE}", "dead")
    cluster.stop("broker-2")
    assert cluster.run_until(lambda: not cluster.is_up("broker-2"), STOP_LIMIT_MS)
    assert simulation.world.counters["log.log-directory-offline"] == 0, "it failed as it was closed"
    assert not oracle.is_intact(BrokerId(2))


def test_brokers_that_have_just_been_started_are_not_registered_yet() -> None:
    simulation = begun()
    assert simulation._all_registered()
    for name in simulation.cluster.broker_names:
        simulation.cluster.kill(name)
        simulation.cluster.start(name)
    assert simulation.all_unfenced(), "the controller takes the old incarnations for the new ones"
    assert not simulation._all_registered()
    assert simulation.cluster.run_until(simulation._all_registered, STOP_LIMIT_MS)


@pytest.mark.parametrize("at_once", [True, False])
def test_a_broker_killed_after_its_clean_shutdown_file_was_durable_has_stopped_cleanly(at_once: bool) -> None:
    simulation = begun()
    cluster, oracle = simulation.cluster, simulation.checker.oracle
    machine = cluster.broker(BrokerId(2))
    assert machine.running is not None
    incarnation = machine.running.broker.lifecycle.incarnation_id
    cluster.stop(machine.name)
    if not at_once:
        disk = cluster.machines.disk(machine.name)
        assert cluster.run_until(lambda: says_clean(disk, machine), STOP_LIMIT_MS)
    assert cluster.is_up(machine.name)
    cluster.kill(machine.name)
    assert oracle.ended_cleanly(incarnation) is not at_once
