"""Scripts of what happens to a whole cluster at once, and of starts that fail.

whole-power-cut    every node loses power at one moment. One replica lost nothing and boots last, long after the
                   others, and within unclean.recovery.timeout.ms: nothing that was acknowledged may be gone
wrong-order        every node stops cleanly. Brokers are started while no controller runs, stopped, killed and
                   started again; then one of them is alone with the controller, and leads what it may lead
repeated-batches   a follower restarts cleanly and becomes the leader, while the batches of an idempotent producer
                   are in its log and not committed: the producer repeats all of them
failed-directory   a log directory of a follower fails: acks=all continues within a second
"""

from __future__ import annotations

from random import Random

from heirlog.controller.recovery.strategy import TIMEOUT
from heirlog.protocol.types import BrokerId
from heirlog.sim.clients.admin import BALANCED, STRATEGY
from heirlog.sim.clients.pipelined import PipelinedProducer
from heirlog.sim.oracle import Key
from heirlog.sim.plan import RunPlan
from heirlog.sim.script import KILL, STOP, Script
from heirlog.sim.simulation import Simulation
from heirlog.sim.topics import TOPIC

REGISTRATION_TIMEOUT = "initial.broker.registration.timeout.ms"
ACKS_ALL_LIMIT_MS = 1000
"""For acks=all to continue after a log directory of a follower has failed."""


# every node loses power


def whole_power_cut_plan(random: Random) -> RunPlan:
    return RunPlan(
        partitions=random.randrange(1, 3),
        idempotent=bool(random.randrange(0, 2)),
        leader_acks=bool(random.randrange(0, 2)),
        batch_records=random.randrange(5, 20),
        interval_ms=random.randrange(50, 200),
        topic_config={STRATEGY: BALANCED},
        config={TIMEOUT: ("60000", "300000")[random.randrange(0, 2)]},
        keeps_everything=True,
    )


def whole_power_cut(simulation: Simulation) -> None:
    script = Script(simulation, "whole-power-cut")
    cluster, random, controller = simulation.cluster, simulation.random, simulation.cluster.controller.name
    script.run_for(1500, 4000)
    script.until("every ISR is whole", simulation.all_led_and_in_sync)
    keeper = cluster.broker_names[random.randrange(0, len(cluster.broker_names))]
    others = [name for name in cluster.broker_names if name != keeper]
    dark = list(cluster.broker_names)
    random.shuffle(dark)
    for name in dark:
        # a kill keeps the content of the page cache, like a disk that had written everything before the power cut
        cluster.kill(name, lose_unflushed=name != keeper)
    # the controller may have lasted long enough to fence them, in any order
    script.run_for(0, (1, 3000)[random.randrange(0, 2)])
    cluster.kill(controller, lose_unflushed=True)
    random.shuffle(others)
    first = [controller, *others] if random.randrange(0, 2) else [others[0], controller, others[1]]
    for name in first:
        script.run_for(0, 6000)
        cluster.start(name)
    script.run_for(2000, 30_000)
    cluster.start(keeper)
    script.until_led()


# every node stops cleanly, and starts in the wrong order


def wrong_order_plan(random: Random) -> RunPlan:
    return RunPlan(
        partitions=random.randrange(1, 3),
        idempotent=bool(random.randrange(0, 2)),
        leader_acks=False,
        batch_records=random.randrange(5, 20),
        interval_ms=random.randrange(50, 200),
        config={REGISTRATION_TIMEOUT: str(random.randrange(1000, 5000))},
        keeps_everything=True,
    )


def wrong_order(simulation: Simulation) -> None:
    script = Script(simulation, "wrong-order")
    cluster, random, controller = simulation.cluster, simulation.random, simulation.cluster.controller.name
    script.run_for(1000, 3000)
    brokers = list(cluster.broker_names)
    random.shuffle(brokers)
    for name in brokers:
        script.down(BrokerId(cluster.machine(name).node_id), STOP)
        script.run_for(0, 1500)
    members = {int(member) for _, state in script.states() for member in (*state.isr, *state.elr)}
    cluster.stop(controller)
    script.until("the controller has stopped", lambda: not cluster.is_up(controller))
    for _ in range(random.randrange(1, 4)):
        random.shuffle(brokers)
        for name in brokers:
            _start_in_vain(script, name)
    alone = BrokerId(sorted(members)[random.randrange(0, len(members))])
    name = f"broker-{alone}"
    cluster.start(name)
    script.run_for(0, 1000)
    cluster.start(controller)
    for _ in range(random.randrange(0, 3)):
        _end_while_registering(script, alone)
        cluster.start(name)
    # it gives up if the controller came too late for it, and is then started once more
    script.until(f"{name} is unfenced or has given up", lambda: script.is_unfenced(alone) or not cluster.is_up(name))
    cluster.start(name)
    led = [(key, state) for key, state in script.states() if alone in (*state.isr, *state.elr)]
    script.expect(led, f"broker {alone} may lead something")
    wanted = {key for key, _ in led}
    script.until(
        f"broker {alone} leads every partition with it in ISR or ELR, alone with the controller",
        lambda: all(state.leader == alone for key, state in script.states() if key in wanted),
    )
    script.expect(script.lossy_elections == 0, "no replica has lost records, so no election was lossy")


def _start_in_vain(script: Script, name: str) -> None:
    """Start it while no controller runs: it gives up, is killed, or is asked to stop."""
    cluster, random = script.cluster, script.random
    if not random.randrange(0, 4):
        return
    cluster.start(name)
    how = random.randrange(0, 4)
    if how == 0:
        script.until(f"{name} gives up", lambda: not cluster.is_up(name))
        return
    # most of a start takes milliseconds
    script.run_for(0, (5, 50, 1000)[random.randrange(0, 3)])
    if how == 1:
        cluster.kill(name)
    elif how == 2:
        cluster.kill(name, lose_unflushed=True)
    else:
        cluster.stop(name)
        script.until(f"{name} has stopped", lambda: not cluster.is_up(name))


def _end_while_registering(script: Script, broker: BrokerId) -> None:
    """Kill it after its registration is committed and before it may change a log; the answer may be in flight."""
    cluster, name, random = script.cluster, f"broker-{broker}", script.random

    def is_registered() -> bool:
        node, known = cluster.broker(broker).running, script.simulation.checker.committed.image.brokers.get(broker)
        return (
            node is not None
            and known is not None
            and known.incarnation_id == node.broker.lifecycle.incarnation_id
            and not node.broker.lifecycle.was_registered
        )

    cluster.run_until(is_registered, 3000)
    if is_registered():
        cluster.kill(name, lose_unflushed=bool(random.randrange(0, 2)))


# batches that are repeated


def repeated_plan(random: Random) -> RunPlan:
    return RunPlan(
        partitions=1,
        min_isr=2,
        idempotent=False,
        leader_acks=False,
        pipelined=True,
        batch_records=random.randrange(1, 10),
        interval_ms=random.randrange(20, 80),
        config={"broker.session.timeout.ms": "9000", "replica.lag.time.max.ms": "8000"},
    )


def repeated_batches(simulation: Simulation) -> None:
    script = Script(simulation, "repeated-batches")
    cluster = simulation.cluster
    (producer,) = [one for one in simulation.producers if isinstance(one, PipelinedProducer)]
    script.run_for(800, 2000)
    script.roles()
    # of the members that are left, the first one in the assignment is elected
    script.b, script.c = (replica for replica in script.state.replicas if replica != script.a)
    a, b, c = (f"broker-{broker}" for broker in (script.a, script.b, script.c))
    cluster.say(f"partition {c}>{a} {c}>{b}")
    cluster.block(c, a)
    cluster.block(c, b)
    script.until("batches wait for their answers", lambda: producer.unanswered((TOPIC, 0)) >= 3)
    script.run_for(20, 200)
    script.down(script.b, STOP)
    script.up(script.b)
    script.until_registered(script.b)
    script.until("b is in the ISR again", lambda: script.b in script.state.isr)
    script.down(script.a, KILL)
    script.until("b leads", lambda: script.state.leader == script.b)
    script.run_for(500, 2500)
    cluster.say(f"heal {c}>{a} {c}>{b}")
    cluster.heal(c, a)
    cluster.heal(c, b)
    script.up(script.a)
    script.run_for(500, 2000)


# a log directory of a follower fails

DIRECTORIES = ("/data/a", "/data/b", "/data/c")


def failed_directory_plan(random: Random) -> RunPlan:
    return RunPlan(
        partitions=3,
        min_isr=random.randrange(1, 3),
        leader_acks=False,
        idempotent=bool(random.randrange(0, 2)),
        batch_records=random.randrange(5, 20),
        interval_ms=random.randrange(20, 80),
        config={"log.dirs": ",".join(DIRECTORIES), "replica.lag.time.max.ms": "10000"},
    )


def failed_directory(simulation: Simulation) -> None:
    script = Script(simulation, "failed-directory")
    cluster, random = simulation.cluster, simulation.random
    script.run_for(800, 2000)
    script.until("every ISR is whole", simulation.all_led_and_in_sync)
    found = [
        (key, follower, directory)
        for key, state in script.states()
        for follower in state.replicas
        if follower != state.leader
        for directory in DIRECTORIES[1:]  # with the first one, which has the metadata log, the broker goes
        if _log_path(script, follower, key).startswith(f"{directory}/")
    ]
    key, follower, directory = found[random.randrange(0, len(found))]
    name, how = f"broker-{follower}", ("flush", "dead", "full")[random.randrange(0, 3)]
    cluster.say(f"break {name} {directory} {how}")
    cluster.machines.disk(name).break_at(directory, how)
    oracle, history = simulation.checker.oracle, simulation.history
    script.until("the directory is offline", lambda: name in oracle.directory_failed_on)
    failed_ms, model = history.now_ms(), oracle.model(key).name
    script.until(
        f"acks=all continues in {model}",
        lambda: any(one.partition == model and one.time_ms >= failed_ms for one in history.acknowledged[-100:]),
        ACKS_ALL_LIMIT_MS,
    )
    script.run_for(500, 2000)
    cluster.machines.disk(name).repair()
    script.down(follower, STOP)
    script.up(follower)


def _log_path(script: Script, broker: BrokerId, key: Key) -> str:
    node = script.cluster.broker(broker).running
    partition = None if node is None else node.broker.replicas.partition(key)
    return "" if partition is None else partition.log.dir_path
