"""What happens in a run: a swarm of faults that each seed draws for itself, or a script.

    swarm                   a mix of everything in `heirlog.sim.faults`
    moves                   a swarm while replicas are reassigned, and disks replaced
    feature-levels          a swarm while the ELR is switched off and on
    last-replica-standing   KIP-966's motivation: A stops, B stops, C loses power; A and B return, then C
    kip-903-race            a follower loses its disk's tail while the request that takes it into the ISR is under way
    overtaken-isr-change, leader-epoch-jump     `heirlog.sim.races`
    controller-power-cut    the controller loses power in the midst of registrations and ISR changes
    whole-power-cut, wrong-order, repeated-batches, failed-directory    `heirlog.sim.outages`
    broken-disks            log directories fill up or answer EIO, wholly or for one replica; clocks are set back
    U1 ... U18              unclean recovery (`heirlog.sim.recoveries.catalogue`)

A script has an order, and chance in everything else: who is A, how long it takes, what the network does meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from random import Random

from heirlog.broker.isr import PendingExpand
from heirlog.controller.recovery.strategy import TIMEOUT
from heirlog.metadata.state import PartitionState
from heirlog.metadata.topic_name import OFFSETS_TOPIC
from heirlog.protocol.types import BrokerId
from heirlog.sim import outages, races, switches
from heirlog.sim.clients.admin import AGGRESSIVE, BALANCED, NONE, STRATEGY
from heirlog.sim.clients.mover import Mover
from heirlog.sim.disk import BREAKAGES
from heirlog.sim.faults import Mix, Swarm, draw_mix
from heirlog.sim.recoveries.catalogue import RECOVERIES
from heirlog.sim.stage import Plan, Stage

STEP_LIMIT_MS = 30_000
SWARM_MS = 20_000
MOVES_MS = 2000
"""Between two moments at which a disk may be replaced."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """`plan` draws what the stage looks like, `play` acts on it."""

    plan: Callable[[Random], Plan]
    play: Callable[[Stage], None]


# swarm


def _swarm_plan(random: Random) -> Plan:
    plan = Plan(
        partitions=random.randrange(1, 4),
        min_isr=(1, 2, 2, 2, 3)[random.randrange(0, 5)],
        idempotent=bool(random.randrange(0, 2)),
        leader_acks=bool(random.randrange(0, 2)),
        batch_records=random.randrange(5, 20),
        interval_ms=random.randrange(100, 300),
        members=(0, 2, 3)[random.randrange(0, 3)],
        compacted=not random.randrange(0, 2),
        remade=not random.randrange(0, 3),
        min_isr_changes=not random.randrange(0, 3),
    )
    _draw_recovery(plan, random)
    return plan


def _draw_recovery(plan: Plan, random: Random) -> None:
    """Three runs of four have the recovery manager; what its topic's strategy is, and how patient recoveries are."""
    plan.manager = bool(random.randrange(0, 4))
    if not plan.manager:
        return
    drawn = random.randrange(0, 8)
    plan.topic_config = {STRATEGY: (BALANCED, BALANCED, BALANCED, BALANCED, AGGRESSIVE, AGGRESSIVE, NONE)[drawn % 7]}
    plan.strategy_changes = drawn == 7
    plan.config = {**plan.config, TIMEOUT: str((1000, 4000, 300_000)[random.randrange(0, 3)])}


def _swarm(stage: Stage) -> None:
    random = stage.world.stream("faults")
    _in_a_swarm(stage, draw_mix(random), random, lambda: stage.cluster.run_for(SWARM_MS))


def _in_a_swarm(stage: Stage, mix: Mix, random: Random, meanwhile: Callable[[], None]) -> None:
    _disturb(stage, mix)
    swarm = Swarm(stage.cluster, mix, random)
    swarm.start()
    meanwhile()
    swarm.stop()
    _calm(stage)


def _disturb(stage: Stage, mix: Mix) -> None:
    names = stage.cluster.all_machines
    for one in names:
        for other in names:
            if one is not other:
                link = stage.cluster.network.link(one.name, other.name)
                link.loss, link.reset = mix.loss, mix.reset


def _calm(stage: Stage) -> None:
    for one in stage.cluster.all_machines:
        for other in stage.cluster.all_machines:
            if one is not other:
                link = stage.cluster.network.link(one.name, other.name)
                link.loss = link.reset = 0.0


# replicas that move


def _moves_plan(random: Random) -> Plan:
    plan = _swarm_plan(random)
    plan.brokers = random.randrange(4, 6)
    return plan


def _moves(stage: Stage) -> None:
    """A swarm while operators move replicas, and brokers that are down come back with empty disks."""
    cluster, random = stage.cluster, stage.random
    topics = [*stage.topics(), *(OFFSETS_TOPIC for _ in stage.members[:1])]
    brokers = list(range(1, stage.plan.brokers + 1))
    mover = cluster.run_client("mover", lambda env: Mover(env, "mover", cluster.bootstrap, topics, brokers))
    replaces = not random.randrange(0, 3)

    def meanwhile() -> None:
        for _ in range(SWARM_MS // MOVES_MS):
            cluster.run_for(MOVES_MS)
            down = [name for name in cluster.broker_names if not cluster.is_up(name)]
            if replaces and down and not random.randrange(0, 3):
                stage.replace_disk(down[random.randrange(0, len(down))])

    faults = stage.world.stream("faults")
    _in_a_swarm(stage, draw_mix(faults), faults, meanwhile)
    mover.stop()


# features that come and go


def _feature_plan(random: Random) -> Plan:
    plan = _swarm_plan(random)
    plan.feature_changes = True
    return plan


def _feature_levels(stage: Stage) -> None:
    """A swarm in which no broker loses power: without the ELR that loses records, by Kafka's rule."""
    random = stage.world.stream("faults")
    mix = draw_mix(random)
    weights = {**mix.weights, "power-cut": 0, "ladder": 0, "kill": mix.weights["kill"] + mix.weights["power-cut"] + 1}
    _in_a_swarm(stage, replace(mix, weights=weights), random, lambda: stage.cluster.run_for(SWARM_MS))


# last replica standing


def _drill_plan(random: Random) -> Plan:
    return Plan(
        partitions=random.randrange(1, 3),
        idempotent=bool(random.randrange(0, 2)),
        batch_records=random.randrange(5, 20),
        interval_ms=random.randrange(100, 250),
    )


def _last_replica_standing(stage: Stage) -> None:
    random, cluster = stage.random, stage.cluster
    _disturb(stage, Mix(1, 1, {}, (0.0, 0.0, 0.002)[random.randrange(0, 3)], (0.0, 0.0, 0.002)[random.randrange(0, 3)]))
    order = [1, 2, 3]
    random.shuffle(order)
    a, b, c = (BrokerId(broker) for broker in order)
    cluster.run_for(random.randrange(1000, 3000))
    _stop_and_wait(stage, a)
    _wait_states(stage, f"broker {a} is in no ISR", lambda state: a not in state.isr)
    cluster.run_for(random.randrange(100, 2000))
    _stop_and_wait(stage, b)
    _wait_states(stage, f"broker {c} is alone", lambda state: tuple(state.isr) == (c,))
    cluster.run_for(random.randrange(500, 2500))
    cluster.kill(f"broker-{c}", lose_unflushed=True)
    if random.randrange(0, 2):
        _wait_states(stage, "nobody leads", lambda state: state.leader != c)
    cluster.run_for(random.randrange(0, 2000))
    back = [a, b]
    random.shuffle(back)
    for broker in back:
        cluster.start(f"broker-{broker}")
        cluster.run_for(random.randrange(0, 1500))
    if random.randrange(0, 3):
        stage.wait("two brokers serve again", lambda: _led_by_others(stage, c), STEP_LIMIT_MS)
        cluster.run_for(random.randrange(500, 3000))
    cluster.start(f"broker-{c}")
    cluster.run_for(random.randrange(500, 3000))
    _calm(stage)


def _led_by_others(stage: Stage, broker: BrokerId) -> bool:
    return all(state.leader >= 0 and state.leader != broker for state in _states(stage))


def _stop_and_wait(stage: Stage, broker: BrokerId) -> None:
    name = f"broker-{broker}"
    stage.cluster.stop(name)
    stage.wait(f"{name} has stopped", lambda: not stage.cluster.is_up(name), STEP_LIMIT_MS)


def _states(stage: Stage) -> list[PartitionState]:
    partitions = stage.checker.truth.image.partitions
    return [state for _, each in sorted(partitions.items()) for _, state in sorted(each.items())]


def _wait_states(stage: Stage, what: str, holds: Callable[[PartitionState], bool]) -> None:
    stage.wait(what, lambda: all(holds(state) for state in _states(stage)), STEP_LIMIT_MS)


# KIP-903


def _race_plan(random: Random) -> Plan:
    # the leader's session must outlive a short cut of its way to the controller
    config = {"broker.session.timeout.ms": "9000"}
    return Plan(
        partitions=1, idempotent=False, leader_acks=False, batch_records=random.randrange(10, 30), config=config
    )


def _kip_903_race(stage: Stage) -> None:
    """The leader's AlterPartition, which names the follower's old epoch, arrives after the follower came back anew."""
    random, cluster = stage.random, stage.cluster
    controller = cluster.controller.name
    cluster.run_for(random.randrange(1000, 2000))
    (state,) = _states(stage)
    leader = state.leader
    follower = next(broker for broker in state.isr if broker != leader)
    victim, keeper = f"broker-{follower}", f"broker-{leader}"
    cluster.kill(victim, lose_unflushed=bool(random.randrange(0, 2)))
    _wait_states(stage, f"{victim} is out of the ISR", lambda state: follower not in state.isr)
    cluster.run_for(random.randrange(200, 1500))
    # it may not join before the leader knows that it is unfenced, and cannot tell the controller any more
    cluster.say(f"partition {victim}>{keeper}")
    cluster.block(victim, keeper)
    cluster.start(victim)
    stage.wait(f"{keeper} knows that {victim} is unfenced", lambda: _knows_of(stage, leader, follower), STEP_LIMIT_MS)
    brokers = stage.checker.truth.image.brokers
    cluster.say(f"partition {keeper}>{controller}, heal {victim}>{keeper}")
    cluster.block(keeper, controller)
    cluster.heal(victim, keeper)
    if cluster.run_until(lambda: _asks_for(stage, leader, follower), 3000):
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


def _knows_of(stage: Stage, leader: BrokerId, follower: BrokerId) -> bool:
    """The follower's registration is the one that the controllers committed last, and it is unfenced."""
    node = stage.cluster.broker(leader).running
    known = None if node is None else node.image.brokers.get(follower)
    now = stage.checker.truth.image.brokers[follower]
    return known is not None and known.epoch == now.epoch and not known.fenced and not now.fenced


def _asks_for(stage: Stage, leader: BrokerId, follower: BrokerId) -> bool:
    node = stage.cluster.broker(leader).running
    if node is None:
        return False
    return any(
        isinstance(partition.isr, PendingExpand) and partition.isr.added == follower
        for partition in node.broker.replicas.all_partitions()
    )


# the controller's disk


def _controller_plan(random: Random) -> Plan:
    return Plan(partitions=2, idempotent=False, leader_acks=False, batch_records=random.randrange(5, 20))


def _controller_power_cut(stage: Stage) -> None:
    """Metadata change all the time, and the controller's power goes again and again."""
    random, cluster = stage.random, stage.cluster
    controller = cluster.controller.name
    # a slow disk: what is acknowledged before its flush stays unflushed for a while
    cluster.machines.disk(controller).flush_us = (5_000, 60_000)
    for _ in range(6):
        name = cluster.broker_names[random.randrange(0, len(cluster.broker_names))]
        cluster.kill(name)
        cluster.run_for(random.randrange(300, 1500))
        cluster.start(name)
        cluster.run_until(_more_is_committed(stage), 2000)
        cluster.run_for(random.randrange(0, 20))
        cluster.kill(controller, lose_unflushed=True)
        cluster.run_for(random.randrange(0, 500))
        cluster.start(controller)
        cluster.run_for(random.randrange(500, 2500))


def _more_is_committed(stage: Stage) -> Callable[[], bool]:
    end = stage.checker.truth.end
    return lambda: stage.checker.truth.end > end


# disks that break

DIRECTORIES = ("/data/a", "/data/b", "/data/c")
"""The first one also holds the metadata log: with it the broker goes."""
_HOUR_MS = 3_600_000


def _broken_disks_plan(random: Random) -> Plan:
    config = {
        "log.dirs": ",".join(DIRECTORIES),
        "log.flush.interval.messages": ("1", "20", "1000000")[random.randrange(0, 3)],
        "log.roll.ms": ("1500", "600000")[random.randrange(0, 2)],
    }
    return Plan(
        partitions=random.randrange(3, 6),
        min_isr=(1, 2, 2, 2)[random.randrange(0, 4)],
        idempotent=bool(random.randrange(0, 2)),
        leader_acks=bool(random.randrange(0, 2)),
        batch_records=random.randrange(3, 10),
        interval_ms=random.randrange(100, 300),
        config=config,
    )


def _broken_disks(stage: Stage) -> None:
    """One or two brokers at a time; sometimes they stop, die or lose power with the broken disk."""
    random, cluster = stage.random, stage.cluster
    cluster.run_for(random.randrange(500, 1500))
    for _ in range(4):
        names = list(cluster.broker_names)
        random.shuffle(names)
        hurt = names[: random.randrange(1, 3)]
        for name in hurt:
            _break_disk(stage, name)
            cluster.run_for(random.randrange(0, 2500))
            _and_then(stage, name)
        cluster.run_for(random.randrange(200, 3000))
        for name in hurt:
            _mend(stage, name)
        cluster.run_for(random.randrange(500, 3000))
    for name in cluster.broker_names:
        _mend(stage, name)


def _break_disk(stage: Stage, name: str) -> None:
    random = stage.random
    disk = stage.cluster.machines.disk(name)
    path = DIRECTORIES[random.randrange(0, len(DIRECTORIES))]
    if random.randrange(0, 2):
        replicas = _replicas_below(stage, name, path)
        if replicas:
            path = replicas[random.randrange(0, len(replicas))]
    how = BREAKAGES[random.randrange(0, len(BREAKAGES))]
    stage.cluster.say(f"break {name} {path} {how}")
    disk.break_at(path, how)
    if not random.randrange(0, 4):
        stage.cluster.say(f"clock of {name} set back an hour")
        stage.world.host(name).wall_offset_ms -= _HOUR_MS


def _replicas_below(stage: Stage, name: str, path: str) -> list[str]:
    node = stage.cluster.machine(name).running
    if node is None:
        return []
    return sorted(log.dir_path for d in node.directories if d.path == path for log in d.logs.values())


def _and_then(stage: Stage, name: str) -> None:
    cluster = stage.cluster
    match stage.random.randrange(0, 6):
        case 0:
            cluster.stop(name)
        case 1:
            cluster.kill(name)
        case 2:
            cluster.kill(name, lose_unflushed=True)
        case 3:
            cluster.kill(name)
            # with the disk still broken
            cluster.start(name)


def _mend(stage: Stage, name: str) -> None:
    """The disk is repaired, and the broker started again: what has failed once stays offline until then."""
    cluster, random = stage.cluster, stage.random
    cluster.say(f"repair {name}")
    cluster.machines.disk(name).repair()
    if cluster.is_up(name):
        if random.randrange(0, 2):
            cluster.stop(name)
            cluster.run_until(lambda: not cluster.is_up(name), STEP_LIMIT_MS)
        cluster.kill(name, lose_unflushed=not random.randrange(0, 3))
    cluster.start(name)


SCENARIOS: Mapping[str, Scenario] = {
    "broken-disks": Scenario(_broken_disks_plan, _broken_disks),
    "swarm": Scenario(_swarm_plan, _swarm),
    "moves": Scenario(_moves_plan, _moves),
    "feature-levels": Scenario(_feature_plan, _feature_levels),
    "last-replica-standing": Scenario(_drill_plan, _last_replica_standing),
    "kip-903-race": Scenario(_race_plan, _kip_903_race),
    "overtaken-isr-change": Scenario(races.overtaken_plan, races.overtaken_isr_change),
    "leader-epoch-jump": Scenario(races.jump_plan, races.leader_epoch_jump),
    "controller-power-cut": Scenario(_controller_plan, _controller_power_cut),
    "whole-power-cut": Scenario(outages.whole_power_cut_plan, outages.whole_power_cut),
    "wrong-order": Scenario(outages.wrong_order_plan, outages.wrong_order),
    "repeated-batches": Scenario(outages.repeated_plan, outages.repeated_batches),
    "failed-directory": Scenario(outages.failed_directory_plan, outages.failed_directory),
    "manager-switch": Scenario(switches.manager_switch_plan, switches.manager_switch),
    **{name: Scenario(plan, play) for name, (plan, play) in RECOVERIES.items()},
}
