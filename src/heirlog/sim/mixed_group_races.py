"""Coordinators that fail while a group changes its protocol, and while it has members of both (KIP-848).

    mixed-groups    members of the classic protocol begin, and others join with the consumer protocol. All of them
                    leave, fall silent and come back, so the group changes its protocol again and again

    upgrade      a classic group has become one of the consumer protocol, and that is not committed
    downgrade    the last member of the consumer protocol is gone, and that is not committed
    subscribe, bump, target, assign, remove, load    as in `consumer_group_races`

What happens to the broker at such a step is what happens in `coordinator_hits`. In a third of the runs group.version is
switched off and on meanwhile, in a third groups never become classic again, and in a third the members of the consumer
protocol subscribe by a regular expression. In half of them a topic of the group is deleted and recreated all the time.
In the end the members of both protocols share all partitions.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from heirlog.broker.groups.consumer.records import GroupEpoch
from heirlog.broker.groups.records import StoredGroup, read_record
from heirlog.metadata.state import GROUP_VERSION
from heirlog.metadata.topic_name import OFFSETS_TOPIC
from heirlog.sim import consumer_group_races
from heirlog.sim.clients.admin import FeatureChanger
from heirlog.sim.clients.classic_consumer import ClassicConsumer
from heirlog.sim.consumer_group_history import ConsumerGroupHistory
from heirlog.sim.consumer_group_races import CONSUMER_GROUP
from heirlog.sim.coordinator_hits import play_rounds, uncommitted_records
from heirlog.sim.plan import RunPlan
from heirlog.sim.simulation import Simulation
from heirlog.sim.topics import RECREATED, TOPIC

ROUNDS = 5
UPGRADE, DOWNGRADE = "upgrade", "downgrade"
STEPS = (UPGRADE, UPGRADE, DOWNGRADE, DOWNGRADE, *consumer_group_races.STEPS)
HIT_AT = "mixed-group.hit-at-"
"""Counters: something happened at this step."""
POLICIES = ("bidirectional", "bidirectional", "upgrade")


def mixed_groups_plan(random: Random) -> RunPlan:
    plan = consumer_group_races.consumer_groups_plan(random)
    policy = POLICIES[random.randrange(0, len(POLICIES))]
    plan.config = {**plan.config, "group.consumer.migration.policy": policy}
    plan.recreated = bool(random.randrange(0, 2))
    return plan


def mixed_groups(simulation: Simulation) -> None:
    cluster, random = simulation.cluster, simulation.random
    history = simulation.consumer_history = ConsumerGroupHistory(CONSUMER_GROUP, is_mixed=True)
    also = [RECREATED] if simulation.plan.recreated else []
    classic = start_classic_members(simulation, history, random.randrange(1, 3), also)
    cluster.run_for(random.randrange(500, 2500))
    switch = None
    if not random.randrange(0, 3):
        feature = [GROUP_VERSION]
        switch = cluster.run_client(
            "group-switch",
            lambda env: FeatureChanger(env, "group-switch", cluster.bootstrap, feature, ends_on=feature),
        )
    by_regex = not random.randrange(0, 3)
    members = consumer_group_races.start_members(simulation, random.randrange(1, 3), by_regex=by_regex, also=also)

    def at(step: str) -> list[str]:
        consumer_group_races.check_owners(simulation)
        return (
            _changing(simulation, step) if step in (UPGRADE, DOWNGRADE) else consumer_group_races.at(simulation, step)
        )

    play_rounds(simulation, ROUNDS, STEPS, at, HIT_AT)
    if switch is not None:
        switch.stop()
    simulation.heal()
    consumer_group_races.settle(simulation, [*members, *classic])


def start_classic_members(
    simulation: Simulation, history: ConsumerGroupHistory, count: int, also: Sequence[str]
) -> list[ClassicConsumer]:
    cluster = simulation.cluster
    return [
        cluster.run_client(
            f"classic-member-{number}",
            lambda env, number=number: ClassicConsumer(  # type: ignore[misc]
                env, f"classic-member-{number}", cluster.bootstrap, TOPIC, history, simulation.history.now_ms, also
            ),
        )
        for number in range(1, count + 1)
    ]


def _changing(simulation: Simulation, step: str) -> list[str]:
    """The brokers that have written that the group changes its protocol, which is not committed."""
    found = []
    for machine, node in simulation.checker.oracle.running_brokers():
        for record in uncommitted_records(node, OFFSETS_TOPIC):
            stored = read_record(record.key, record.value)
            gone = StoredGroup if step == UPGRADE else GroupEpoch
            if isinstance(stored, gone) and record.value is None and stored.group == CONSUMER_GROUP:
                found.append(machine.name)
                break
    return found
