"""What happens in a run: a swarm of faults that each seed draws for itself, or a script.

    swarm, moves, feature-levels, outages, controllers, loose-transport     `heirlog.sim.swarms`
    last-replica-standing   KIP-966's motivation: A stops, B stops, C loses power; A and B return, then C
    kip-903-race            a follower loses its disk's tail while the request that adds it to the ISR is in flight
    overtaken-isr-change, leader-epoch-jump     `heirlog.sim.races`
    late-fetch-answer, late-registration    `heirlog.sim.late_answers`
    forgotten-vote, older-epoch-commit, late-vote, replaced-voter, two-voter-changes     `heirlog.sim.quorum_races`
    initial-leader, leader-failure, all-voters-killed, leader-cut-off, majority-reachable, split-start,
    split-followers, back-to-back-failures, lost-voter-disk     `heirlog.sim.quorum_elections`
    controller-power-cut    the controller loses power in the midst of registrations and ISR changes
    whole-power-cut, wrong-order, repeated-batches, failed-directory    `heirlog.sim.outages`
    older-metadata, seeded-aggressive, accepted-metadata, accepted-transactions    `heirlog.sim.older_metadata`
    broken-disks            `heirlog.sim.broken_disks`
    bit-rot                 `heirlog.sim.bit_rot`
    voter-rot               `heirlog.sim.voter_rot`
    lying-disks             `heirlog.sim.lying_disks`
    rolling-upgrade         `heirlog.sim.upgrades`
    transactions, late-coordinators, late-verifications, zombie-copiers, late-markers, zombie-markers,
    lost-markers, used-up-ids, expiring-ids, overtaken-offsets, cleaned-transactions, forgotten-epochs,
    two-phase-commit
                            `heirlog.sim.transaction_races`
    consumer-groups         `heirlog.sim.consumer_group_races`
    mixed-groups            `heirlog.sim.mixed_group_races`
    share-groups            `heirlog.sim.share_group_races`
    replaced-share-leaders  the same
    shared-cluster          `heirlog.sim.shared_cluster`
    every-coordinator, rotten-coordinators, broken-coordinators     `heirlog.sim.coordinators`
    manager-switch          `heirlog.sim.switches`
    durability:...          brokers that fail independently of each other (`heirlog.sim.durability`)
    U1 ... U18, replaced-disk   unclean recovery (`heirlog.sim.recoveries.catalogue`)

docs/internals/simulation.md describes each.

A script determines the order of events. Everything else is random: which broker is A, how long a step takes, what the
network does meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from random import Random

from heirlog.broker.isr import PendingExpandIsr
from heirlog.metadata.state import PartitionRegistration
from heirlog.protocol.types import BrokerId
from heirlog.sim import (
    bit_rot,
    broken_disks,
    consumer_group_races,
    coordinators,
    late_answers,
    lying_disks,
    mixed_group_races,
    older_metadata,
    outages,
    quorum_elections,
    quorum_races,
    races,
    share_group_races,
    shared_cluster,
    swarms,
    switches,
    transaction_races,
    upgrades,
    voter_rot,
)
from heirlog.sim.durability import cell
from heirlog.sim.durability.play import play as durability
from heirlog.sim.nemesis import FaultMix
from heirlog.sim.plan import RunPlan
from heirlog.sim.recoveries.catalogue import RECOVERIES
from heirlog.sim.simulation import Simulation
from heirlog.sim.swarms import degrade_network, restore_network, with_nodes

STEP_LIMIT_MS = 30_000


@dataclass(frozen=True, slots=True)
class Scenario:
    """`plan` draws what the simulation sets up, `play` acts on it."""

    plan: Callable[[Random], RunPlan]
    play: Callable[[Simulation], None]


# last replica standing


def _drill_plan(random: Random) -> RunPlan:
    return RunPlan(
        partitions=random.randrange(1, 3),
        idempotent=bool(random.randrange(0, 2)),
        batch_records=random.randrange(5, 20),
        interval_ms=random.randrange(100, 250),
    )


def _last_replica_standing(simulation: Simulation) -> None:
    random, cluster = simulation.random, simulation.cluster
    degrade_network(
        simulation,
        FaultMix(1, 1, {}, (0.0, 0.0, 0.002)[random.randrange(0, 3)], (0.0, 0.0, 0.002)[random.randrange(0, 3)]),
    )
    order = [1, 2, 3]
    random.shuffle(order)
    a, b, c = (BrokerId(broker) for broker in order)
    cluster.run_for(random.randrange(1000, 3000))
    _stop_and_wait(simulation, a)
    _wait_states(simulation, f"broker {a} is in no ISR", lambda state: a not in state.isr)
    cluster.run_for(random.randrange(100, 2000))
    _stop_and_wait(simulation, b)
    _wait_states(simulation, f"broker {c} is alone", lambda state: tuple(state.isr) == (c,))
    cluster.run_for(random.randrange(500, 2500))
    cluster.kill(f"broker-{c}", lose_unflushed=True)
    if random.randrange(0, 2):
        _wait_states(simulation, "no replica leads", lambda state: state.leader != c)
    cluster.run_for(random.randrange(0, 2000))
    back = [a, b]
    random.shuffle(back)
    for broker in back:
        cluster.start(f"broker-{broker}")
        cluster.run_for(random.randrange(0, 1500))
    if random.randrange(0, 3):
        simulation.wait("two brokers serve again", lambda: _led_by_others(simulation, c), STEP_LIMIT_MS)
        cluster.run_for(random.randrange(500, 3000))
    cluster.start(f"broker-{c}")
    cluster.run_for(random.randrange(500, 3000))
    restore_network(simulation)


def _led_by_others(simulation: Simulation, broker: BrokerId) -> bool:
    return all(state.leader >= 0 and state.leader != broker for state in _states(simulation))


def _stop_and_wait(simulation: Simulation, broker: BrokerId) -> None:
    name = f"broker-{broker}"
    simulation.cluster.stop(name)
    simulation.wait(f"{name} has stopped", lambda: not simulation.cluster.is_up(name), STEP_LIMIT_MS)


def _states(simulation: Simulation) -> list[PartitionRegistration]:
    partitions = simulation.checker.committed.image.partitions
    return [state for _, each in sorted(partitions.items()) for _, state in sorted(each.items())]


def _wait_states(simulation: Simulation, what: str, holds: Callable[[PartitionRegistration], bool]) -> None:
    simulation.wait(what, lambda: all(holds(state) for state in _states(simulation)), STEP_LIMIT_MS)


# KIP-903


def _race_plan(random: Random) -> RunPlan:
    # the leader's session must outlive a short cut of its way to the controller
    config = {"broker.session.timeout.ms": "9000"}
    return RunPlan(
        partitions=1, idempotent=False, leader_acks=False, batch_records=random.randrange(10, 30), config=config
    )


def _kip_903_race(simulation: Simulation) -> None:
    """The leader's AlterPartition names the follower's old epoch, and arrives after the follower restarted."""
    random, cluster = simulation.random, simulation.cluster
    controller = cluster.controller.name
    cluster.run_for(random.randrange(1000, 2000))
    (state,) = _states(simulation)
    leader = state.leader
    follower = next(broker for broker in state.isr if broker != leader)
    victim, keeper = f"broker-{follower}", f"broker-{leader}"
    cluster.kill(victim, lose_unflushed=bool(random.randrange(0, 2)))
    _wait_states(simulation, f"{victim} is out of the ISR", lambda state: follower not in state.isr)
    cluster.run_for(random.randrange(200, 1500))
    # it may not join before the leader knows that it is unfenced, and cannot tell the controller any more
    cluster.say(f"partition {victim}>{keeper}")
    cluster.block(victim, keeper)
    cluster.start(victim)
    simulation.wait(
        f"{keeper} knows that {victim} is unfenced", lambda: _knows_of(simulation, leader, follower), STEP_LIMIT_MS
    )
    brokers = simulation.checker.committed.image.brokers
    cluster.say(f"partition {keeper}>{controller}, heal {victim}>{keeper}")
    cluster.block(keeper, controller)
    cluster.heal(victim, keeper)
    if cluster.run_until(lambda: _asks_for(simulation, leader, follower), 3000):
        cluster.run_for(random.randrange(0, 50))
        epoch = brokers[follower].epoch
        cluster.kill(victim, lose_unflushed=True)
        # it must not catch up before the request arrives
        cluster.say(f"partition {keeper}>{victim}")
        cluster.block(keeper, victim)
        cluster.start(victim)
        cluster.run_until(lambda: brokers[follower].epoch != epoch, 5000)
        if random.randrange(0, 2):
            cluster.run_for(random.randrange(0, 300))
    cluster.say(f"heal {keeper}>{controller}")
    cluster.heal(keeper, controller)
    cluster.run_for(random.randrange(300, 1000))
    cluster.say(f"heal {keeper}>{victim}")
    cluster.heal(keeper, victim)
    cluster.run_for(random.randrange(1000, 3000))


def _knows_of(simulation: Simulation, leader: BrokerId, follower: BrokerId) -> bool:
    """The follower's registration is the one that the controllers committed last, and it is unfenced."""
    node = simulation.cluster.broker(leader).running
    known = None if node is None else node.image.brokers.get(follower)
    now = simulation.checker.committed.image.brokers[follower]
    return known is not None and known.epoch == now.epoch and not known.fenced and not now.fenced


def _asks_for(simulation: Simulation, leader: BrokerId, follower: BrokerId) -> bool:
    node = simulation.cluster.broker(leader).running
    if node is None:
        return False
    return any(
        isinstance(partition.isr, PendingExpandIsr) and partition.isr.added == follower
        for partition in node.broker.replicas.all_partitions()
    )


# the controller's disk


def _controller_plan(random: Random) -> RunPlan:
    return RunPlan(partitions=2, idempotent=False, leader_acks=False, batch_records=random.randrange(5, 20))


def _controller_power_cut(simulation: Simulation) -> None:
    """Metadata change all the time, and the controller's power goes again and again."""
    random, cluster = simulation.random, simulation.cluster
    controller = cluster.controller.name
    # a slow disk: what is acknowledged before its flush stays unflushed for a while
    cluster.machines.disk(controller).flush_us = (5_000, 60_000)
    for _ in range(6):
        name = cluster.broker_names[random.randrange(0, len(cluster.broker_names))]
        cluster.kill(name)
        cluster.run_for(random.randrange(300, 1500))
        cluster.start(name)
        cluster.run_until(_more_is_committed(simulation), 2000)
        cluster.run_for(random.randrange(0, 20))
        cluster.kill(controller, lose_unflushed=True)
        cluster.run_for(random.randrange(0, 500))
        cluster.start(controller)
        cluster.run_for(random.randrange(500, 2500))


def _more_is_committed(simulation: Simulation) -> Callable[[], bool]:
    end = simulation.checker.committed.end
    return lambda: simulation.checker.committed.end > end


SWARMS = (
    "swarm",
    "moves",
    "feature-levels",
    "rolling-upgrade",
    "outages",
    "controllers",
    "loose-transport",
    "shared-cluster",
    "every-coordinator",
)
"""They work with any number of brokers and controllers; a script needs those of its story."""

SCENARIOS: Mapping[str, Scenario] = {
    "lying-disks": Scenario(lying_disks.lying_disks_plan, lying_disks.lying_disks),
    "bit-rot": Scenario(bit_rot.bit_rot_plan, bit_rot.bit_rot),
    "voter-rot": Scenario(voter_rot.voter_rot_plan, voter_rot.voter_rot),
    "broken-disks": Scenario(broken_disks.broken_disks_plan, broken_disks.broken_disks),
    "outages": Scenario(with_nodes(swarms.outages_plan), swarms.outages),
    "controllers": Scenario(swarms.controllers_plan, swarms.controllers),
    "swarm": Scenario(swarms.lighter(with_nodes(swarms.swarm_plan)), swarms.swarm),
    "loose-transport": Scenario(with_nodes(swarms.swarm_plan), swarms.loose_transport),
    "shared-cluster": Scenario(with_nodes(shared_cluster.shared_cluster_plan), shared_cluster.shared_cluster),
    "moves": Scenario(with_nodes(swarms.moves_plan), swarms.moves),
    "rolling-upgrade": Scenario(with_nodes(upgrades.rolling_upgrade_plan), upgrades.rolling_upgrade),
    "feature-levels": Scenario(with_nodes(swarms.feature_plan), swarms.feature_levels),
    "last-replica-standing": Scenario(_drill_plan, _last_replica_standing),
    "kip-903-race": Scenario(_race_plan, _kip_903_race),
    "overtaken-isr-change": Scenario(races.overtaken_plan, races.overtaken_isr_change),
    "late-registration": Scenario(late_answers.late_registration_plan, late_answers.late_registration),
    "late-fetch-answer": Scenario(late_answers.late_fetch_plan, late_answers.late_fetch_answer),
    "leader-epoch-jump": Scenario(races.jump_plan, races.leader_epoch_jump),
    "forgotten-vote": Scenario(quorum_races.forgotten_vote_plan, quorum_races.forgotten_vote),
    "older-epoch-commit": Scenario(quorum_races.older_epoch_plan, quorum_races.older_epoch_commit),
    "late-vote": Scenario(quorum_races.late_vote_plan, quorum_races.late_vote),
    "replaced-voter": Scenario(quorum_races.replaced_voter_plan, quorum_races.replaced_voter),
    "two-voter-changes": Scenario(quorum_races.two_changes_plan, quorum_races.two_voter_changes),
    "controller-power-cut": Scenario(_controller_plan, _controller_power_cut),
    "whole-power-cut": Scenario(outages.whole_power_cut_plan, outages.whole_power_cut),
    "wrong-order": Scenario(outages.wrong_order_plan, outages.wrong_order),
    "repeated-batches": Scenario(outages.repeated_plan, outages.repeated_batches),
    "failed-directory": Scenario(outages.failed_directory_plan, outages.failed_directory),
    "older-metadata": Scenario(older_metadata.older_metadata_plan, older_metadata.older_metadata),
    "seeded-aggressive": Scenario(older_metadata.aggressive_plan, older_metadata.older_metadata),
    "accepted-metadata": Scenario(older_metadata.accepted_plan, older_metadata.accepted_metadata),
    "accepted-transactions": Scenario(older_metadata.accepted_transactions_plan, older_metadata.accepted_transactions),
    "transactions": Scenario(transaction_races.transactions_plan, transaction_races.transactions),
    "late-coordinators": Scenario(transaction_races.late_coordinators_plan, transaction_races.late_coordinators),
    "late-verifications": Scenario(transaction_races.late_coordinators_plan, transaction_races.late_verifications),
    "zombie-copiers": Scenario(transaction_races.late_coordinators_plan, transaction_races.zombie_copiers),
    "late-markers": Scenario(transaction_races.late_markers_plan, transaction_races.late_markers),
    "zombie-markers": Scenario(transaction_races.zombie_markers_plan, transaction_races.zombie_markers),
    "lost-markers": Scenario(transaction_races.transactions_plan, transaction_races.lost_markers),
    "used-up-ids": Scenario(transaction_races.used_up_ids_plan, transaction_races.used_up_ids),
    "forgotten-epochs": Scenario(transaction_races.forgotten_epochs_plan, transaction_races.forgotten_epochs),
    "expiring-ids": Scenario(transaction_races.expiring_ids_plan, transaction_races.expiring_ids),
    "two-phase-commit": Scenario(transaction_races.two_phase_commit_plan, transaction_races.transactions),
    "overtaken-offsets": Scenario(transaction_races.overtaken_offsets_plan, transaction_races.restarts),
    "cleaned-transactions": Scenario(
        transaction_races.cleaned_transactions_plan, transaction_races.cleaned_transactions
    ),
    "consumer-groups": Scenario(consumer_group_races.consumer_groups_plan, consumer_group_races.consumer_groups),
    "mixed-groups": Scenario(mixed_group_races.mixed_groups_plan, mixed_group_races.mixed_groups),
    "share-groups": Scenario(share_group_races.share_groups_plan, share_group_races.share_groups),
    "replaced-share-leaders": Scenario(share_group_races.share_groups_plan, share_group_races.replaced_share_leaders),
    "every-coordinator": Scenario(coordinators.every_coordinator_plan, coordinators.every_coordinator),
    "rotten-coordinators": Scenario(coordinators.rotten_coordinators_plan, coordinators.rotten_coordinators),
    "broken-coordinators": Scenario(coordinators.broken_coordinators_plan, coordinators.broken_coordinators),
    "manager-switch": Scenario(switches.manager_switch_plan, switches.manager_switch),
    **{name: Scenario(quorum_elections.elections_plan, play) for name, play in quorum_elections.ELECTIONS.items()},
    **{name: Scenario(plan, play) for name, (plan, play) in RECOVERIES.items()},
}


def scenario_named(name: str) -> Scenario:
    """One of SCENARIOS, or a cell of `durability`. Raises ValueError with a sentence."""
    if name.startswith(cell.PREFIX):
        found = cell.cell_of(name)
        return Scenario(found.plan, partial(durability, found))
    if name not in SCENARIOS:
        raise ValueError(f"there is no scenario {name}; there are {', '.join(SCENARIOS)}, {cell.FORM}")
    return SCENARIOS[name]
