"""A step of a coordinator's work is waited for, and then something happens to the broker that does it.

It is killed, loses its power, is paused, or is cut off from the others; all brokers lose their power at once; or what
it sends arrives seconds later, and in some cases after it was replaced. In some scenarios it is cut off from the
controllers alone: it does not notice that it was replaced, and serves its clients. Then it returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from heirlog.broker.partition import ReplicaRole
from heirlog.node.node import Node
from heirlog.protocol.batch import Record, decode_records, walk
from heirlog.sim.simulation import Simulation

STEP_LIMIT_MS: Final = 4000
KILL, POWER_CUT, PAUSE, CUT_OFF, ALL, LATE = "kill", "power-cut", "pause", "cut-off", "all", "late"
NO_CONTROLLERS = "no-controllers"
ACTIONS = (KILL, POWER_CUT, POWER_CUT, PAUSE, PAUSE, CUT_OFF, ALL, LATE, LATE)


def play_rounds(
    simulation: Simulation,
    rounds: int,
    steps: Sequence[str],
    at: Callable[[str], list[str]],
    counter: str,
    *,
    actions: Sequence[str] = ACTIONS,
    replaced_at: str | None = None,
) -> None:
    """In each round one of the steps is waited for.

    at: names of the brokers at which a step is in progress. counter: begins the names of the counters of the steps.
    replaced_at: the step at which a broker whose requests are late is replaced meanwhile.
    """
    cluster, random = simulation.cluster, simulation.random
    for _ in range(rounds):
        step = steps[random.randrange(0, len(steps))]
        hit: list[str] = []

        def is_there(step: str = step, hit: list[str] = hit) -> bool:
            hit[:] = at(step)
            return bool(hit)

        if cluster.run_until(is_there, STEP_LIMIT_MS):
            simulation.world.counters[counter + step] += 1
            name, action = hit[random.randrange(0, len(hit))], actions[random.randrange(0, len(actions))]
            _hit_broker(simulation, name, action, is_replaced=step == replaced_at)
        cluster.run_for(random.randrange(300, 3000))


def uncommitted_records(node: Node, topic: str) -> Iterator[Record]:
    """What this broker has written to partitions of an internal topic that it leads, and that is not committed."""
    for partition in node.broker.replicas.partitions_named(topic).values():
        start, end = partition.high_watermark, partition.log.log_end_offset
        if partition.role is not ReplicaRole.LEADER or start >= end:
            continue
        for region in partition.log.read(start, 1 << 20, end).regions:
            data = region.read()
            for position, header in walk(data):
                if header.base_offset >= start:
                    yield from decode_records(data, position)


@contextmanager
def cut_off(simulation: Simulation, name: str, others: Sequence[str] = ()) -> Iterator[None]:
    """From the controllers, and from these brokers."""
    cluster = simulation.cluster
    peers = [*others, *cluster.controller_names]
    cluster.say(f"cut off {name}" + ("" if others else " from the controllers"))
    for peer in peers:
        cluster.block(name, peer)
        cluster.block(peer, name)
    yield
    cluster.say(f"connect {name}")
    for peer in peers:
        cluster.heal(name, peer)
        cluster.heal(peer, name)


def _hit_broker(simulation: Simulation, name: str, action: str, *, is_replaced: bool) -> None:
    """Something happens to a broker, and it comes back."""
    cluster, random = simulation.cluster, simulation.random
    others = [other for other in cluster.broker_names if other != name]
    if action == PAUSE:
        cluster.pause(name)
        cluster.run_for(random.randrange(500, 6000))
        cluster.resume(name)
        return
    if action == LATE:
        _late(simulation, name, is_replaced=is_replaced)
        return
    if action in (CUT_OFF, NO_CONTROLLERS):
        with cut_off(simulation, name, others if action == CUT_OFF else ()):
            cluster.run_for(random.randrange(*((1500, 5000) if action == CUT_OFF else (4000, 9000))))
        return
    victims = [name, *others] if action == ALL else [name]
    for victim in victims:
        cluster.kill(victim, lose_unflushed=action != KILL)
    cluster.run_for(random.randrange(0, 4000))
    random.shuffle(victims)
    for victim in victims:
        cluster.start(victim)
        cluster.run_for(random.randrange(0, 300))


def _late(simulation: Simulation, name: str, *, is_replaced: bool) -> None:
    """What the broker sends to another one in the next moments arrives late. is_replaced: meanwhile."""
    cluster, random = simulation.cluster, simulation.random
    others = [other for other in cluster.broker_names if other != name]
    other = others[random.randrange(0, len(others))]
    extra_us = random.randrange(3_500_000, 7_000_000)
    cluster.say(f"late {name}>{other} by {extra_us / 1e6:.1f} s")
    cluster.network.link(name, other).low_us += extra_us
    cluster.run_for(random.randrange(5, 60))
    cluster.network.link(name, other).low_us -= extra_us
    if is_replaced:
        cluster.pause(name)
    cluster.run_for(random.randrange(4000, 7000))
    if is_replaced:
        cluster.resume(name)
