"""The copies of what is committed are counted in a running cluster."""

from __future__ import annotations

from heirlog.protocol.types import BrokerId, Uuid
from heirlog.sim import guards
from heirlog.sim.copies_checker import CopiesChecker
from heirlog.sim.history_checks.sends import few_copies
from heirlog.sim.plan import RunPlan
from heirlog.sim.simulation import Simulation
from heirlog.sim.topics import TOPIC


def begun() -> Simulation:
    simulation = Simulation(1, RunPlan(partitions=1))
    simulation.begin()
    simulation.cluster.run_for(2000)
    return simulation


def leader_of(simulation: Simulation) -> int:
    image = simulation.checker.committed.image
    return image.partitions[image.topic_ids[TOPIC]][0].leader


def test_what_a_healthy_cluster_commits_has_all_copies() -> None:
    copies = begun().history.copies
    assert {(one.copies, one.min_isr) for one in copies if one.partition.startswith("t-")} == {(3, 2)}


def test_without_the_guard_of_the_high_watermark_one_copy_is_found() -> None:
    simulation = begun()
    leader = leader_of(simulation)
    with guards.without(8):
        for name in simulation.cluster.broker_names:
            if name != f"broker-{leader}":
                simulation.cluster.kill(name)
        simulation.cluster.run_for(8000)
    assert "few-copies" in {finding.check for finding in few_copies(simulation.history.copies)}


def test_a_copy_counts_if_its_replica_lost_it_by_an_unclean_stop_but_not_if_it_was_truncated() -> None:
    simulation = begun()
    oracle = simulation.checker.oracle
    topic_id = Uuid(oracle.image.topic_ids[TOPIC])
    key, machine = (topic_id, 0), simulation.cluster.broker(BrokerId(leader_of(simulation)))
    assert machine.running is not None
    partition = machine.running.broker.replicas.partition(key)
    state = oracle.image.partition(*key)
    assert partition is not None and state is not None
    for number in state.replicas:
        if number != machine.node_id:
            simulation.cluster.kill(f"broker-{number}", lose_unflushed=True)
    simulation.history.copies.clear()
    simulation.checker._copies.committed(key, machine, state, partition)
    assert simulation.history.copies.pop().copies == 3
    fresh = CopiesChecker(oracle)
    fresh.committed(key, machine, state, partition)
    assert simulation.history.copies.pop().copies == 1, "nothing is known of the two that are down"
    follower = next(BrokerId(number) for number in state.replicas if number != machine.node_id)
    fresh.changed(key, follower, partition.log, truncated=False)
    fresh.committed(key, machine, state, partition)
    assert simulation.history.copies.pop().copies == 2


def test_a_truncated_log_is_no_copy_any_more() -> None:
    simulation = begun()
    oracle = simulation.checker.oracle
    key, machine = (Uuid(oracle.image.topic_ids[TOPIC]), 0), simulation.cluster.broker(BrokerId(leader_of(simulation)))
    assert machine.running is not None
    partition, state = machine.running.broker.replicas.partition(key), oracle.image.partition(*key)
    assert partition is not None and state is not None
    follower = next(BrokerId(number) for number in state.replicas if number != machine.node_id)
    node = simulation.cluster.broker(follower).running
    assert node is not None
    found = node.broker.replicas.partition(key)
    assert found is not None
    found.log.truncate_to(found.log.log_end_offset - 5)
    simulation.history.copies.clear()
    simulation.checker._copies.changed(key, follower, found.log, truncated=True)
    simulation.checker._copies.committed(key, machine, state, partition)
    assert simulation.history.copies.pop().copies == 2
