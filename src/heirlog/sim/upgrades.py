"""A rolling upgrade under faults, from a release that supports less.

    all nodes run an older release --one after the other: stop, install, start--> all run the newest one
                 ^                                                        |
                 +---- in some runs, a node that was upgraded goes back --+

Meanwhile an operator asks for levels of metadata.version, of the ELR and of the recovery manager again and again. The
controller must refuse what a registered node does not support (T20). A broker that goes back after a level was raised
is refused, and stays down until the newest release is installed again. Controllers do not go back: an older one could
not read the metadata any more.

Source: Kafka's operations manual, "Upgrading"; KIP-584.
"""

from __future__ import annotations

from random import Random

from heirlog.metadata.features import SUPPORTED_FEATURES
from heirlog.metadata.state import METADATA_VERSION
from heirlog.sim.nemesis import draw_mix
from heirlog.sim.plan import RunPlan
from heirlog.sim.releases import NEWEST, Release, older
from heirlog.sim.simulation import Simulation
from heirlog.sim.swarms import swarm_plan, with_faults

WAIT_MIN_MS, WAIT_MAX_MS = 200, 2500
STOP_LIMIT_MS = 5000
END_MS = 6000
"""With the newest release everywhere."""


def rolling_upgrade_plan(random: Random) -> RunPlan:
    plan = swarm_plan(random)
    levels = SUPPORTED_FEATURES[METADATA_VERSION]
    recovers = bool(random.randrange(0, 2))
    plan.release = older(random.randrange(levels.min_version, levels.max_version), recovers=recovers)
    if not recovers:
        plan.manager, plan.strategy_changes, plan.topic_config = False, False, {}
    plan.metadata_changes, plan.manager_changes = True, True
    plan.feature_changes = bool(random.randrange(0, 2))
    return plan


def rolling_upgrade(simulation: Simulation) -> None:
    random = simulation.world.stream("faults")
    with_faults(simulation, draw_mix(random), random, lambda: _roll(simulation))


def _roll(simulation: Simulation) -> None:
    cluster, random = simulation.cluster, simulation.random
    for names in (cluster.controller_names, cluster.broker_names):
        order = list(names)
        random.shuffle(order)
        for name in order:
            _install(simulation, name, NEWEST)
            if name in cluster.broker_names and not random.randrange(0, 4):
                _install(simulation, name, simulation.plan.release)
    for name in cluster.broker_names:
        if cluster.machine(name).release is not NEWEST:
            _install(simulation, name, NEWEST)
    cluster.run_for(END_MS)


def _install(simulation: Simulation, name: str, release: Release) -> None:
    cluster, random = simulation.cluster, simulation.random
    cluster.run_for(random.randrange(WAIT_MIN_MS, WAIT_MAX_MS))
    cluster.stop(name)
    cluster.run_until(lambda: not cluster.is_up(name), STOP_LIMIT_MS)
    cluster.upgrade(name, release)
    cluster.kill(name)
    cluster.start(name)
