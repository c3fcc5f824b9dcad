"""Runs in which all coordinators are at work at once, on the same brokers: transactions, a group of each protocol and a
share group.

every-coordinator     a swarm; in half of the runs operators move replicas too, also those of internal topics, and in a
                      third transaction.version goes up and down
rotten-coordinators   `heirlog.sim.bit_rot`: files of internal topics, producers and aborted transactions rot as well
broken-coordinators   `heirlog.sim.broken_disks`: directories with internal topics fill up, or answer EIO
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from heirlog.metadata.topic_name import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC
from heirlog.sim import consumer_group_races, share_group_races, swarms
from heirlog.sim.bit_rot import bit_rot, bit_rot_plan
from heirlog.sim.broken_disks import broken_disks, broken_disks_plan
from heirlog.sim.clients import consumer_member, share_member
from heirlog.sim.clients.reassigner import Reassigner
from heirlog.sim.nemesis import DRIFTS_PPM
from heirlog.sim.plan import RunPlan
from heirlog.sim.simulation import Simulation
from heirlog.sim.swarms import drawn_transaction_version

MOVED_TOPICS = (OFFSETS_TOPIC, TRANSACTIONS_TOPIC, SHARE_STATE_TOPIC)
SHARE_MEMBERS, CONSUMER_MEMBERS = 2, 2
FASTEST_CLOCK = 1 + max(DRIFTS_PPM) / 1_000_000


def _with_clients(plan: Callable[[Random], RunPlan]) -> Callable[[Random], RunPlan]:
    def drawn(random: Random) -> RunPlan:
        made = plan(random)
        made.members, made.transactions = 2, True
        made.transaction_version = drawn_transaction_version(random)
        made.config = {**made.config, **consumer_member.CONFIG, **share_member.CONFIG}
        return made

    return drawn


def _among_clients(play: Callable[[Simulation], None], clock_rate: float = 1.0) -> Callable[[Simulation], None]:
    def played(simulation: Simulation) -> None:
        shares = share_group_races.start_members(simulation, SHARE_MEMBERS, clock_rate)
        members = consumer_group_races.start_members(simulation, CONSUMER_MEMBERS)
        play(simulation)
        simulation.heal()
        consumer_group_races.settle(simulation, members)
        share_group_races.settle(simulation, shares)

    return played


def every_coordinator_plan(random: Random) -> RunPlan:
    plan = _with_clients(swarms.with_nodes(swarms.swarm_plan))(random)
    plan.transaction_version_changes = not random.randrange(0, 3)
    return plan


def _swarm(simulation: Simulation) -> None:
    cluster = simulation.cluster
    topics, brokers = [*simulation.topics(), *MOVED_TOPICS], list(range(1, len(cluster.broker_names) + 1))
    mover = (
        cluster.run_client("mover", lambda env: Reassigner(env, "mover", cluster.bootstrap, topics, brokers))
        if simulation.random.randrange(0, 2)
        else None
    )
    swarms.swarm(simulation)
    if mover is not None:
        mover.stop()


every_coordinator = _among_clients(_swarm, FASTEST_CLOCK)
rotten_coordinators_plan, rotten_coordinators = _with_clients(bit_rot_plan), _among_clients(bit_rot)
broken_coordinators_plan, broken_coordinators = _with_clients(broken_disks_plan), _among_clients(broken_disks)
