"""Coordinators that fail at each step of a group of the consumer protocol.

    consumer-groups   members join, leave, fall silent and come back; again and again a step of the group is waited for,
                      and then something happens to its coordinator

    subscribe, bump, target, assign, remove    the record is in the coordinator's log, and not below the high watermark
    load                                       a coordinator is reading its log

What happens to the broker is what happens in `coordinator_hits`. In the end the members that are left share all
partitions within three rounds of heartbeats, once the sessions of others are over (G7).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import TypeAlias

from heirlog.broker.groups.consumer.group import ConsumerGroup
from heirlog.broker.groups.consumer.records import (
    CurrentMember,
    GroupEpoch,
    MemberSubscription,
    TargetEpoch,
    is_tombstone,
)
from heirlog.broker.groups.records import read_record
from heirlog.metadata.topic_name import OFFSETS_TOPIC
from heirlog.node.node import Node
from heirlog.sim.clients.classic_consumer import ClassicConsumer
from heirlog.sim.clients.consumer_member import CONFIG, ConsumerMember
from heirlog.sim.clients.member import OffsetsReader
from heirlog.sim.consumer_group_history import OWNERS, ConsumerGroupHistory, doubly_owned
from heirlog.sim.coordinator_hits import play_rounds, uncommitted_records
from heirlog.sim.oracle import Violation
from heirlog.sim.plan import RunPlan
from heirlog.sim.simulation import Simulation
from heirlog.sim.topics import TOPIC

AnyMember: TypeAlias = ConsumerMember | ClassicConsumer
CONSUMER_GROUP = "k848"
ROUNDS = 4
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

    def found_at(step: str) -> list[str]:
        check_owners(simulation)
        return at(simulation, step)

    play_rounds(simulation, ROUNDS, STEPS, found_at, HIT_AT)
    simulation.heal()
    settle(simulation, members)


def start_members(
    simulation: Simulation, count: int, *, by_regex: bool = False, also: Sequence[str] = ()
) -> list[ConsumerMember]:
    """Of a group of the consumer protocol; the first one is static. by_regex: they subscribe by a regular expression.
    also: topics that they subscribe to and leave alone.
    """
    cluster = simulation.cluster
    history = simulation.consumer_history or ConsumerGroupHistory(CONSUMER_GROUP)
    simulation.consumer_history = history
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
                by_regex=by_regex,
                also=also,
            ),
        )
        for number in range(1, count + 1)
    ]


def settle(simulation: Simulation, members: Sequence[AnyMember]) -> None:
    """The cluster works again: the members share all partitions (G7), and their commits are read once more."""
    cluster, history = simulation.cluster, simulation.consumer_history
    assert history is not None, "start_members has made it"
    # no member leaves any more
    for member in members:
        member.settle_down()

    def is_complete() -> bool:
        check_owners(simulation)
        return _complete(simulation, members)

    simulation.wait("the group shares all partitions", is_complete, SETTLE_LIMIT_MS)
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


def _complete(simulation: Simulation, members: Sequence[AnyMember]) -> bool:
    """All members are at one epoch, and their partitions are all there are, each once."""
    return len({member.epoch for member in members}) == 1 and sorted(
        index for member in members for index in member.has
    ) == list(range(simulation.plan.partitions))


def check_owners(simulation: Simulation) -> None:
    """Of what coordinators have committed (G1, G4)."""
    for group in _groups(simulation):
        sentence = doubly_owned(group.committed)
        if sentence is not None:
            raise Violation(OWNERS, sentence)


def _groups(simulation: Simulation) -> Iterator[ConsumerGroup]:
    for _, node in simulation.checker.oracle.running_brokers():
        for shard in node.broker.groups.shards():
            if shard.loaded:
                yield from (group for group in shard.groups.values() if isinstance(group, ConsumerGroup))


def at(simulation: Simulation, step: str) -> list[str]:
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
    for record in uncommitted_records(node, OFFSETS_TOPIC):
        stored = read_record(record.key, record.value)
        if isinstance(stored, MemberSubscription | GroupEpoch | TargetEpoch | CurrentMember):
            steps.add(REMOVE if is_tombstone(stored) else STEP_OF[type(stored)])
    return steps
