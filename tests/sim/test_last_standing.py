"""Without the ELR the last member of an ISR stays in it, whatever it has lost: Kafka's rule, and the only excuse."""

from __future__ import annotations

from typing import Any

import pytest

from heirlog.metadata.features import SUPPORTED_FEATURES
from heirlog.protocol.records import PartitionChangeRecord, RegisterBrokerRecord
from heirlog.protocol.types import BrokerId, Uuid
from heirlog.sim.judgement import judge
from heirlog.sim.oracle import Violation
from heirlog.sim.plan import RunPlan
from heirlog.sim.run import run_seed
from heirlog.sim.simulation import Simulation
from heirlog.sim.topics import TOPIC

LOSES = 40
"""A seed of `swarm` that loses records with the ELR off."""


def begun(**plan: Any) -> Simulation:
    simulation = Simulation(1, RunPlan(partitions=1, elr=False, manager=False, **plan))
    simulation.begin()
    simulation.cluster.run_for(2000)
    return simulation


def topic_id(simulation: Simulation) -> Uuid:
    return Uuid(simulation.checker.committed.image.topic_ids[TOPIC])


def in_sync(simulation: Simulation) -> tuple[int, ...]:
    return simulation.checker.committed.image.partitions[topic_id(simulation)][0].isr


def commit(simulation: Simulation, *records: Any) -> None:
    for offset, record in enumerate(records, simulation.checker.committed.end):
        simulation.checker.committed._apply(record, offset, 1)


def registers_again(simulation: Simulation, broker: int) -> RegisterBrokerRecord:
    features = [
        RegisterBrokerRecord.BrokerFeature(
            name=name, min_supported_version=levels.min_version, max_supported_version=levels.max_version
        )
        for name, levels in SUPPORTED_FEATURES.items()
    ]
    return RegisterBrokerRecord(
        broker_id=broker, incarnation_id=b"\7" * 16, broker_epoch=1000, fenced=True, features=features
    )


def test_the_last_member_that_lost_records_leads_again_and_the_run_is_judged_to_its_end() -> None:
    simulation = begun()
    cluster = simulation.cluster
    last, *others = [f"broker-{number}" for number in in_sync(simulation)]
    for name in others:
        cluster.kill(name)
    simulation.wait("one is left", lambda: len(in_sync(simulation)) == 1, 10_000)
    cluster.kill(last, lose_unflushed=True)
    for name in (last, *others):
        cluster.start(name)
    simulation.heal()
    simulation.audit()
    judge(simulation)
    assert simulation.world.counters["last_standing"] >= 1


def test_the_report_names_what_kafkas_rule_lost() -> None:
    report = run_seed(LOSES, elr=False)
    assert report.passed, str(report)
    assert report.lost > 0 and report.counters["lost_without_elr"] > 0
    assert report.tolerated is not None and report.tolerated.check == "T4"
    assert "the last member of the ISR, stopped uncleanly while the ELR was off" in str(report)


def test_a_member_that_is_not_the_last_one_must_leave_the_isr_with_an_unclean_registration() -> None:
    simulation = begun()
    simulation.cluster.kill("broker-2", lose_unflushed=True)
    with pytest.raises(Violation, match=r"T11: t-0.*broker 2 is in the ISR"):
        commit(simulation, registers_again(simulation, 2))


def test_the_last_member_may_stay() -> None:
    simulation = begun()
    alone = PartitionChangeRecord(topic_id=topic_id(simulation), partition_id=0, isr=[2], leader=2)
    others = [
        PartitionChangeRecord(topic_id=other, partition_id=index, isr=[1], leader=1)
        for other, partitions in simulation.checker.committed.image.partitions.items()
        for index in partitions
        if other != topic_id(simulation)
    ]
    simulation.cluster.kill("broker-2", lose_unflushed=True)
    commit(simulation, alone, *others, registers_again(simulation, 2))
    model = simulation.checker.oracle.model((topic_id(simulation), 0))
    assert list(model.last_standing) == [2] and model.not_caught_up == {}


def test_a_member_that_lost_records_in_another_way_is_still_found() -> None:
    simulation = begun()
    key = (topic_id(simulation), 0)
    state = simulation.checker.oracle.image.partition(*key)
    assert state is not None
    follower = next(BrokerId(number) for number in state.isr if number != state.leader)
    node = simulation.cluster.broker(follower).running
    assert node is not None
    partition = node.broker.replicas.partition(key)
    assert partition is not None
    oracle, model = simulation.checker.oracle, simulation.checker.oracle.model(key)
    partition.log.truncate_to(model.true.offset - 5)
    with pytest.raises(Violation, match="T4: t-0"):
        oracle.check_member(follower, node.broker, state, partition, model)
    model.last_standing[follower] = None
    oracle.check_member(follower, node.broker, state, partition, model)
