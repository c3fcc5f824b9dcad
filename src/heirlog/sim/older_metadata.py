"""Controllers whose metadata are older than those of the brokers.

older-metadata   the controller is restored from an older copy of its disk, or formatted again, while brokers run or
                 while they are down. It does not know the topics of the run. No broker may lose a log by that, and no
                 broker may serve clients by it; then the operator acts as docs/guides/operate.md says

accepted-metadata
                 the older copy knows the topics. Its ISR and leader epochs are from before brokers were stopped, one
                 after the other. The operator accepts it: brokers start with --accept-older-metadata. One broker may
                 know nothing newer, because it was cut off since then; it may start without the flag. In a third of the
                 starts the broker is killed after it has set its copy aside and before it is registered. No disk is
                 lost, so no acknowledged record may be lost

accepted-transactions
                 the same with transactions, whose ids expire and get other producer ids: the older copy does not know
                 which of these were given out since it was made

In `older-metadata` the operator has found the controller's own newest copy after all, or seeds it from the newest copy
that the brokers have left (`heirlog recover controller`). This copy may lack committed records, because newer copies
may be lost, alone or with the whole disk of their broker. So its ISR may name a replica that lags.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from heirlog.protocol.types import METADATA_TOPIC, BrokerId
from heirlog.raft.bootstrap import log_directory
from heirlog.raft.older_metadata import REGISTERED
from heirlog.sim.clients.admin import AGGRESSIVE, STRATEGY
from heirlog.sim.cluster import SimCluster
from heirlog.sim.disk_files import SimFiles
from heirlog.sim.operator_seeds import copies, seed_controller
from heirlog.sim.plan import RunPlan
from heirlog.sim.script import KILL, POWER_CUT, STOP, Script
from heirlog.sim.simulation import Simulation
from heirlog.sim.swarms import drawn_transaction_version, let_ids_expire
from heirlog.sim.world import Exit

SET_ASIDE_LIMIT_MS = 10_000


def older_metadata_plan(random: Random) -> RunPlan:
    return RunPlan(
        partitions=random.randrange(1, 4),
        idempotent=bool(random.randrange(0, 2)),
        leader_acks=False,
        batch_records=random.randrange(5, 20),
        interval_ms=random.randrange(80, 250),
        compacted=not random.randrange(0, 3),
        keeps_everything=True,
        recreated=bool(random.randrange(0, 2)),
        config=_directories(random),
    )


def aggressive_plan(random: Random) -> RunPlan:
    """The first replicas that answer are enough: records that only the others have are given up."""
    plan = older_metadata_plan(random)
    plan.topic_config, plan.keeps_everything = {STRATEGY: AGGRESSIVE}, False
    return plan


def _directories(random: Random) -> dict[str, str]:
    """In some runs each node has two log directories, and the metadata log is in the first."""
    return {} if random.randrange(0, 3) else {"log.dirs": "/data/a,/data/b"}


def older_metadata(simulation: Simulation) -> None:
    script = Script(simulation, "older-metadata")
    cluster, random, controller = simulation.cluster, simulation.random, simulation.cluster.controller.name
    script.run_for(1500, 4000)
    brokers = [BrokerId(cluster.machine(name).node_id) for name in cluster.broker_names]
    lagging = _lags(script, brokers)
    random.shuffle(brokers)
    running = random.randrange(0, 2)
    power_cut = not running and not random.randrange(0, 3)
    if not running:
        for number, broker in enumerate(brokers):
            way = (STOP, KILL)[random.randrange(0, 2)]
            script.down(broker, POWER_CUT if power_cut and number == 0 else way)
            script.run_for(0, (1, 3000)[random.randrange(0, 2)])
    simulation.checker.suspended = True
    cluster.kill(controller)
    if lagging is not None:
        _heal(script, lagging, [controller])
    newest, older = cluster.machines.back_up(controller), simulation.backup
    if random.randrange(0, 3) and older is not None:
        cluster.restore(controller, older)
    else:
        cluster.replace_disk(controller)
    cluster.start(controller)
    script.run_for(0, 2000)
    for _ in range(3):
        script.up(*brokers)
        script.until(
            "every broker has refused metadata that are older than its own",
            lambda: not any(cluster.is_up(name) for name in cluster.broker_names),
        )
        script.run_for(0, 1500)
    cluster.kill(controller)
    simulation.world.counters["metadata.refused"] += 1
    if random.randrange(0, 3):
        _lose_copies(simulation, may_lose_a_disk=not power_cut)
        seed_controller(cluster, simulation.checker.seeded)
        simulation.world.counters["controller.seeded"] += 1
    else:
        cluster.restore(controller, newest)
    simulation.checker.suspended = False
    if lagging is not None:
        _heal(script, lagging, cluster.broker_names)
    cluster.start(controller)
    random.shuffle(brokers)
    for broker in brokers:
        script.run_for(0, (500, 8000)[random.randrange(0, 2)])
        script.up(broker)
    script.until_led()


def accepted_plan(random: Random) -> RunPlan:
    return RunPlan(
        partitions=random.randrange(1, 4),
        idempotent=bool(random.randrange(0, 2)),
        leader_acks=False,
        batch_records=random.randrange(5, 20),
        interval_ms=random.randrange(80, 250),
        keeps_everything=True,
        config=_directories(random),
    )


def accepted_transactions_plan(random: Random) -> RunPlan:
    plan = accepted_plan(random)
    plan.transactions, plan.transaction_version = True, drawn_transaction_version(random)
    # each broker that returns takes a new block of producer ids
    let_ids_expire(plan)
    return plan


def accepted_metadata(simulation: Simulation) -> None:
    script = Script(simulation, "accepted-metadata")
    cluster, random, controller = simulation.cluster, simulation.random, simulation.cluster.controller.name
    script.run_for(1000, 2500)
    older = cluster.machines.back_up(controller)
    brokers = [BrokerId(cluster.machine(name).node_id) for name in cluster.broker_names]
    random.shuffle(brokers)
    cut_off = brokers[0] if random.randrange(0, 2) else None
    others = [name for name in (*cluster.broker_names, controller) if name != f"broker-{cut_off}"]
    if cut_off is not None:
        for name in others:
            cluster.block(f"broker-{cut_off}", name)
            cluster.block(name, f"broker-{cut_off}")
        script.run_for(2000, 8000)
    for _ in range(random.randrange(1, 5)):
        moved = brokers[random.randrange(1, len(brokers))]
        script.down(moved, STOP)
        script.up(moved)
        script.until_registered(moved)
        script.until("every reachable replica is in the ISR", lambda: _is_whole(script, cut_off))
        script.run_for(0, 1500)
    for broker in brokers:
        script.down(broker, (STOP, KILL)[random.randrange(0, 2)])
        script.run_for(0, (1, 3000)[random.randrange(0, 2)])
    simulation.checker.suspended = True
    cluster.kill(controller)
    if cut_off is not None:
        _heal(script, f"broker-{cut_off}", others)
    cluster.restore(controller, older)
    cluster.start(controller)
    knowing = [broker for broker in brokers if broker != cut_off]
    random.shuffle(knowing)
    first, later = knowing[0], [*knowing[1:], *([] if cut_off is None else [cut_off])]
    random.shuffle(later)
    for broker in (first, *later):
        if broker != cut_off or random.randrange(0, 2):
            cluster.configure(f"broker-{broker}", {"heirlog.accept.older.metadata": "true"})
        script.run_for(0, (500, 8000)[random.randrange(0, 2)])
        script.up(broker)
        if not random.randrange(0, 3):
            _kill_before_registered(script, broker)
        if broker == first:
            script.until("a broker has accepted the older metadata", lambda: _has_accepted(simulation, first))
            simulation.checker.suspended = False
    script.until_led()
    simulation.world.counters["metadata.accepted"] += 1


def accepted_transactions(simulation: Simulation) -> None:
    accepted_metadata(simulation)
    # producers that begin again get ids from a controller that does not know which ones were given out
    simulation.cluster.run_for(simulation.random.randrange(4000, 8000))


def _kill_before_registered(script: Script, broker: BrokerId) -> None:
    """End a broker that has set its copy of the metadata aside, before the controller knows it. Its next start has no
    copy to compare, so the flag has no effect then. Nothing happens if the broker registers first, or accepts nothing.
    """
    cluster, name = script.cluster, f"broker-{broker}"

    def is_over() -> bool:
        node = cluster.broker(broker).running
        return bool(_set_aside(cluster, name)) or (node is not None and node.broker.lifecycle.was_registered)

    cluster.run_until(is_over, SET_ASIDE_LIMIT_MS)
    node = cluster.broker(broker).running
    if node is None or node.broker.lifecycle.was_registered or not _set_aside(cluster, name):
        return
    script.down(broker, KILL)
    script.simulation.world.counters["metadata.accepted_twice"] += 1
    script.up(broker)


def _set_aside(cluster: SimCluster, name: str) -> list[str]:
    """Copies of the metadata after which the broker has not registered."""
    paths = {path for path, _ in cluster.machines.disk(name).contents(cluster.machine(name).config.metadata_log_dir)}
    kept = {path.rpartition("/")[0] for path in paths if f"/{METADATA_TOPIC}-0." in path}
    return sorted(directory for directory in kept if f"{directory}/{REGISTERED}" not in paths)


def _has_accepted(simulation: Simulation, broker: BrokerId) -> bool:
    """It is registered. From then on the restored log is the truth: by it, no replica has committed records."""
    node, controller = simulation.cluster.broker(broker).running, simulation.cluster.controller.running
    if node is None or controller is None or not node.broker.lifecycle.was_registered:
        return False
    log = controller.quorum.log
    assert log is not None
    simulation.checker.seeded(log)
    return True


def _is_whole(script: Script, cut_off: BrokerId | None) -> bool:
    return all({*state.replicas} - {*state.isr} <= {cut_off} for _, state in script.states())


def _lags(script: Script, brokers: Sequence[BrokerId]) -> str | None:
    """In most runs one follower copies nothing for a long time before the controller is lost; returns its name. It also
    receives nothing from the controller, or its copy of the metadata says that it has left the ISR.
    """
    cluster, random = script.cluster, script.random
    kind = random.randrange(0, 3)
    if kind == 0:
        return None
    lagging = f"broker-{brokers[random.randrange(0, len(brokers))]}"
    others = [name for name in (*cluster.broker_names, *cluster.controller_names) if name != lagging]
    for name in others[: None if kind == 1 else -1]:
        cluster.say(f"partition {lagging}<>{name}")
        cluster.block(lagging, name)
        cluster.block(name, lagging)
    script.run_for(0, 8000)
    return lagging


def _heal(script: Script, lagging: str, others: Sequence[str]) -> None:
    for name in others:
        script.cluster.heal(lagging, name)
        script.cluster.heal(name, lagging)


def _lose_copies(simulation: Simulation, *, may_lose_a_disk: bool) -> None:
    """Copies of the metadata that are lost: some of the brokers' copies, the newest first, but never the oldest."""
    cluster, random = simulation.cluster, simulation.random
    env = cluster.machines.boot(cluster.controller.name)
    found = [name for name, _ in copies(cluster, env.process)]
    for name in found[: random.randrange(0, len(found))]:
        if may_lose_a_disk and not random.randrange(0, 3):
            may_lose_a_disk = False
            simulation.replace_disk(name)
            continue
        cluster.say(f"the metadata of {name} are lost")
        files = SimFiles(cluster.machines.disk(name), env.process)
        files.rmdir(log_directory(cluster.machine(name).config.metadata_log_dir))
    cluster.world.end(env.process, Exit("stopped", 0, "looked"))
