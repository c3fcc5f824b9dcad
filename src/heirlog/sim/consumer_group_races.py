"""Coordinators that fail at each step of a group of the consumer protocol.

    consumer-groups   members join, leave, fall silent and come back; again and again a step of the group is waited for,
                      and then something happens to its coordinator

    subscribe, bump, target, assign, remove    the record is in the coordinator's log, and not below the high watermark
    load                                       a coordinator is reading its log

What happens to the broker is what happens in `transaction_races`. In the end the members that are left share all
partitions within three rounds of heartbeats, once the sessions of others are over (G7).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

from heirlog.broker.groups.consumer.group import ConsumerGroup
from heirlog.broker.groups.consumer.records import (
    CurrentMember,
    GroupEpoch,
    MemberSubscription,
    TargetEpoch,
    is_tombstone,
)
from heirlog.broker.groups.records import read_record
from heirlog.broker.partition import ReplicaRole
from heirlog.metadata.topic_name import OFFSETS_TOPIC
from heirlog.node.node import Node
from heirlog.protocol.batch import decode_records, walk
from heirlog.sim.clients.consumer_member import CONFIG, ConsumerMember
from heirlog.sim.clients.member import OffsetsReader
from heirlog.sim.consumer_group_history import OWNERS, ConsumerGroupHistory, doubly_owned
from heirlog.sim.oracle import Violation
from heirlog.sim.plan import RunPlan
from heirlog.sim.simulation import TOPIC, Simulation
from heirlog.sim.transaction_races import ACTIONS, hit_broker

CONSUMER_GROUP = "k848"
ROUNDS = 4
STEP_LIMIT_MS = 4000
SETTLE_LIMIT_MS = 30_000
STEP_OF = {
    MemberSubscription: "subscribe",
    GroupEpoch: "bump",
    TargetEpoch: "target",
    CurrentMember: "assign",
}
REMOVE, LOAD = "remove", "load"
STEPS = (*STEP_OF.values(), REMOVE, LOAD)
HIT_AT = "consumer-group.hit-at-"
"""Counters: something happened at this step."""


def consumer_groups_plan(random: Random) -> RunPlan:
    return RunPlan(
        partitions=random.randrange(2, 6),
        idempotent=False,
        leader_acks=False,
        batch_records=5,
        interval_ms=400,
        config=CONFIG,
    )


def consumer_groups(simulation: Simulation) -> None:
    cluster, random = simulation.cluster, simulation.random
    members = start_members(simulation, random.randrange(2, 4))
    cluster.run_for(random.randrange(500, 2500))
    for _ in range(ROUNDS):
        step = STEPS[random.randrange(0, len(STEPS))]
        hit: list[str] = []

        def is_there(step: str = step, hit: list[str] = hit) -> bool:
            hit[:] = _at(simulation, step)
            return bool(hit)

        if cluster.run_until(_watched(simulation, is_there), STEP_LIMIT_MS):
            simulation.world.counters[HIT_AT + step] += 1
            hit_broker(simulation, step, hit[random.randrange(0, len(hit))], ACTIONS[random.randrange(0, len(ACTIONS))])
        cluster.run_for(random.randrange(300, 3000))
    simulation.heal()
    settle(simulation, members)


def start_members(simulation: Simulation, count: int) -> list[ConsumerMember]:
    """Of a group of the consumer protocol; the first one is static."""
    cluster = simulation.cluster
    history = simulation.consumer_history = ConsumerGroupHistory(CONSUMER_GROUP)
    return [
        cluster.run_client(
            f"consumer-member-{number}",
            lambda env, number=number: ConsumerMember(  # type: ignore[misc]
                env,
                f"consumer-member-{number}",
                cluster.bootstrap,
                TOPIC,
                history,
                simulation.history.now_ms,
                f"instance-{number}" if number == 1 else None,
            ),
        )
        for number in range(1, count + 1)
    ]


def settle(simulation: Simulation, members: list[ConsumerMember]) -> None:
    """The cluster works again: the members share all partitions (G7), and their commits are read once more."""
    cluster, history = simulation.cluster, simulation.consumer_history
    assert history is not None, "start_members has made it"
    # no member leaves any more
    for member in members:
        member.settle_down()
    complete = _watched(simulation, lambda: _complete(simulation, members))
    simulation.wait("the group shares all partitions", complete, SETTLE_LIMIT_MS)
    for member in members:
        member.stop()
    reader = cluster.run_client(
        "consumer-offsets-reader",
        lambda env: OffsetsReader(env, "consumer-offsets-reader", cluster.bootstrap, TOPIC, history),
    )
    simulation.wait("a coordinator answers what the group has committed", lambda: reader.done, SETTLE_LIMIT_MS)
    counters = simulation.world.counters
    counters["consumer-group.commits"] += sum(one.answered is not None for one in history.commits.values())
    counters["consumer-group.refused"] += sum(one.refused for one in history.commits.values())
    counters["consumer-group.epochs"] += len({one.epoch for one in history.answers})


def _complete(simulation: Simulation, members: list[ConsumerMember]) -> bool:
    """All members are at one epoch, and their partitions are all there are, each once."""
    return len({member.epoch for member in members}) == 1 and sorted(
        index for member in members for index in member.has
    ) == list(range(simulation.plan.partitions))


def _watched(simulation: Simulation, done: Callable[[], bool]) -> Callable[[], bool]:
    """`done`; looks meanwhile at what coordinators have committed (G1, G4)."""

    def look() -> bool:
        for group in _groups(simulation):
            sentence = doubly_owned(group.committed)
            if sentence is not None:
                raise Violation(OWNERS, sentence)
        return done()

    return look


def _groups(simulation: Simulation) -> Iterator[ConsumerGroup]:
    for _, node in simulation.checker.oracle.running_brokers():
        for shard in node.broker.groups.shards():
            if shard.loaded:
                yield from (group for group in shard.groups.values() if isinstance(group, ConsumerGroup))


def _at(simulation: Simulation, step: str) -> list[str]:
    """The brokers at which this step is in progress."""
    found = []
    for machine, node in simulation.checker.oracle.running_brokers():
        if step == LOAD:
            is_there = any(not shard.loaded for shard in node.broker.groups.shards())
        else:
            is_there = step in _uncommitted(node)
        if is_there:
            found.append(machine.name)
    return found


def _uncommitted(node: Node) -> set[str]:
    """Steps whose records a coordinator has written, and that are not committed."""
    steps = set()
    for partition in node.broker.replicas.partitions_named(OFFSETS_TOPIC).values():
        start, end = partition.high_watermark, partition.log.log_end_offset
        if partition.role is not ReplicaRole.LEADER or start >= end:
            continue
        for region in partition.log.read(start, 1 << 20, end).regions:
            data = region.read()
            for position, header in walk(data):
                for record in decode_records(data, position) if header.base_offset >= start else ():
                    stored = read_record(record.key, record.value)
                    if isinstance(stored, MemberSubscription | GroupEpoch | TargetEpoch | CurrentMember):
                        steps.add(REMOVE if is_tombstone(stored) else STEP_OF[type(stored)])
    return steps
