"""Leaders and share coordinators that fail at each step of a share group.

    share-groups   members acquire records, acknowledge them in every way, leave and come back; again and again a step
                   is waited for, and then something happens to the broker
    replaced-share-leaders   a leader with records locked for members is cut off from the controllers alone; then
                   another broker leads its partitions, a new member reads there, and both leaders serve members

    store      a change of a share partition is in its coordinator's log, and not below the high watermark
    load       a leader is loading a share partition
    recover    a share coordinator is reading its log
    acquired   a leader has records locked for members

What happens to the broker is what happens in `coordinator_hits`. In the end the members accept what comes, and the
group finishes every partition (S10); then each record was delivered at least once (S4).
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import NamedTuple

from heirlog.broker.partition import ReplicaRole
from heirlog.broker.share_partitions.share_partition_manager import LoadedSharePartition
from heirlog.metadata.image import GROUP_RESOURCE
from heirlog.metadata.state import SHARE_VERSION
from heirlog.metadata.topic_name import SHARE_STATE_TOPIC
from heirlog.protocol.types import Endpoint, PartitionKey
from heirlog.sim.clients.admin import Operator, feature_level, group_config
from heirlog.sim.clients.share_member import CONFIG, COUNT_LIMIT, ShareMember
from heirlog.sim.coordinator_hits import ACTIONS, NO_CONTROLLERS, cut_off, play_rounds
from heirlog.sim.oracle import Violation
from heirlog.sim.plan import RunPlan
from heirlog.sim.share_group_history import ShareGroupHistory, findings, never_delivered
from heirlog.sim.simulation import Simulation
from heirlog.sim.topics import TOPIC

SHARE_GROUP = "k932"
ROUNDS = 4
REPLACED = 3
"""How many leaders are cut off from the controllers."""
SETTLE_LIMIT_MS = 60_000
STORE, LOAD, RECOVER, ACQUIRED = "store", "load", "recover", "acquired"
STEPS = (STORE, STORE, LOAD, RECOVER, ACQUIRED)
HITS = (*ACTIONS, NO_CONTROLLERS, NO_CONTROLLERS)
HIT_AT = "share-group.hit-at-"
"""Counters: something happened at this step."""
REPLACED_LEADER = "share-group.two-leaders"
"""Counter: a leader served members while there was a newer one."""


class Shares(NamedTuple):
    """A share group of a run."""

    history: ShareGroupHistory
    members: list[ShareMember]


def share_groups_plan(random: Random) -> RunPlan:
    return RunPlan(
        partitions=random.randrange(1, 4),
        min_isr=2,
        idempotent=False,
        leader_acks=False,
        batch_records=5,
        interval_ms=300,
        config=CONFIG,
    )


def share_groups(simulation: Simulation) -> None:
    cluster, random = simulation.cluster, simulation.random
    shares = start_members(simulation, random.randrange(2, 4))
    cluster.run_for(random.randrange(500, 2500))
    play_rounds(simulation, ROUNDS, STEPS, lambda step: _at(simulation, step), HIT_AT, actions=HITS)
    simulation.heal()
    settle(simulation, shares)


def replaced_share_leaders(simulation: Simulation) -> None:
    cluster, random = simulation.cluster, simulation.random
    shares = start_members(simulation, 2)
    cluster.run_for(random.randrange(500, 2500))
    for number in range(REPLACED):
        holders: list[str] = []

        def is_held(holders: list[str] = holders) -> bool:
            holders[:] = _at(simulation, ACQUIRED)
            return bool(holders)

        if cluster.run_until(is_held, SETTLE_LIMIT_MS):
            name = holders[random.randrange(0, len(holders))]
            with cut_off(simulation, name):
                cluster.run_until(lambda name=name: _is_replaced(simulation, name), SETTLE_LIMIT_MS)  # type: ignore[misc]
                shares.members.append(_start_member(simulation, f"late-share-member-{number}", shares.history))
                cluster.run_for(random.randrange(2000, 6000))
            simulation.world.counters[REPLACED_LEADER] += 1
        cluster.run_for(random.randrange(300, 3000))
    simulation.heal()
    settle(simulation, shares)


def _is_replaced(simulation: Simulation, name: str) -> bool:
    """Whether all that this broker leads in its own eyes has a newer leader."""
    image = simulation.checker.oracle.image
    led = [loaded for machine, loaded in _ours(simulation) if machine == name]
    now = [image.partition(loaded.key.topic_id, loaded.key.partition) for loaded in led]
    return all(
        found is not None and found.leader >= 0 and found.leader_epoch > loaded.leader_epoch
        for found, loaded in zip(now, led, strict=True)
    )


def start_members(simulation: Simulation, count: int, clock_rate: float = 1.0) -> Shares:
    """Of a share group that begins with the first record. clock_rate: of the fastest clock that a broker may get."""
    history = ShareGroupHistory(SHARE_GROUP, COUNT_LIMIT)
    _allow_share_groups(simulation)
    names = [f"share-member-{number}" for number in range(1, count + 1)]
    return Shares(history, [_start_member(simulation, name, history, clock_rate) for name in names])


def _start_member(
    simulation: Simulation, name: str, history: ShareGroupHistory, clock_rate: float = 1.0
) -> ShareMember:
    cluster = simulation.cluster

    def leader_epoch(broker: Endpoint, key: PartitionKey) -> int:
        node = cluster.machine(broker.host).running
        partition = None if node is None else node.broker.replicas.partition(key)
        return -1 if partition is None else partition.leader_epoch

    return cluster.run_client(
        name,
        lambda env: ShareMember(
            env, name, cluster.bootstrap, TOPIC, history, simulation.history.now_ms, leader_epoch, clock_rate
        ),
    )


def settle(simulation: Simulation, shares: Shares) -> None:
    """The cluster works again: the group finishes every partition (S10), and what it did is judged."""
    history = shares.history
    for member in shares.members:
        member.settle_down()
    for producer in simulation.producers:
        producer.stop()
    image = simulation.checker.oracle.image
    finished = simulation.supervised(lambda: bool(image.share_version) and _is_finished(simulation))
    simulation.wait("the group finishes all partitions", finished, SETTLE_LIMIT_MS)
    for member in shares.members:
        member.stop()
    _judge(simulation, history)
    counters = simulation.world.counters
    counters["share-group.deliveries"] += len(history.deliveries)
    counters["share-group.redeliveries"] += sum(each.count > 1 for each in history.deliveries)
    counters["share-group.accepted"] += len(history.accepted)


def _allow_share_groups(simulation: Simulation) -> None:
    """Switch them on, and let the group begin with the first record."""
    cluster, image = simulation.cluster, simulation.checker.oracle.image
    operator = cluster.run_client("share-operator", lambda env: Operator(env, "share-operator", cluster.bootstrap, []))
    answers: list[object] = []
    operator.ask(group_config(SHARE_GROUP, "share.auto.offset.reset", "earliest"), answers.append)
    if not image.share_version:
        operator.ask(feature_level(SHARE_VERSION, 1), answers.append)
    simulation.wait(
        "there are share groups",
        lambda: bool(image.share_version and image.config(GROUP_RESOURCE, SHARE_GROUP, "share.auto.offset.reset")),
        SETTLE_LIMIT_MS,
    )


def _judge(simulation: Simulation, history: ShareGroupHistory) -> None:
    if simulation.checker.losses:
        return
    found = list(findings(history))
    for _, loaded in _ours(simulation):
        log = loaded.partition.log
        found += never_delivered(history, loaded.key.partition, log.log_start_offset, loaded.partition.high_watermark)
    if found:
        raise Violation(found[0].check, found[0].sentence)


def _is_finished(simulation: Simulation) -> bool:
    finished = {
        loaded.key.partition
        for _, loaded in _ours(simulation)
        if loaded.share is not None and _is_at_end(simulation, loaded)
    }
    idle = all(producer.idle for producer in simulation.producers)
    return idle and finished == set(range(simulation.plan.partitions))


def _is_at_end(simulation: Simulation, loaded: LoadedSharePartition) -> bool:
    assert loaded.share is not None
    ahead = loaded.share.start_offset - loaded.partition.log.log_end_offset
    # an election on a lossy basis may have cut off what the group had finished
    return ahead == 0 or (ahead > 0 and bool(simulation.checker.losses))


def _ours(simulation: Simulation) -> Iterator[tuple[str, LoadedSharePartition]]:
    """The share partitions of running brokers, with the brokers' names."""
    for machine, node in simulation.checker.oracle.running_brokers():
        for loaded in node.broker.shares.partitions.all():
            if loaded.is_ours:
                yield machine.name, loaded


def _at(simulation: Simulation, step: str) -> list[str]:
    """The brokers at which this step is in progress."""
    if step == LOAD:
        return [name for name, loaded in _ours(simulation) if loaded.share is None]
    if step == ACQUIRED:
        return [
            name
            for name, loaded in _ours(simulation)
            if loaded.share is not None and loaded.share.next_lock_end_ms() is not None
        ]
    found = []
    for machine, node in simulation.checker.oracle.running_brokers():
        if step == RECOVER:
            is_there = any(not shard.loaded for shard in node.broker.share_coordinator.shards())
        else:
            is_there = any(
                partition.role is ReplicaRole.LEADER and partition.high_watermark < partition.log.log_end_offset
                for partition in node.broker.replicas.partitions_named(SHARE_STATE_TOPIC).values()
            )
        if is_there:
            found.append(machine.name)
    return found
