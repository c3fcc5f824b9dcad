"""Controllers whose metadata are older than those of the brokers.

older-metadata   the controller is restored from an older copy of its disk, or formatted again, while brokers run, or
                 while they are down. The topics of the run are unknown to it. No broker may lose a log by that, and
                 none may serve by it; then the operator acts as docs/guides/operate.md says

The operator has found the controller's own newest copy after all, or seeds it from the newest copy that the brokers
have left (`heirlog recover controller`). That one may end before what was committed: the newest copies may be lost,
alone or with the whole disk of their broker. So a replica that lags may be a member of the ISR by its word.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from heirlog.protocol.types import BrokerId
from heirlog.raft.bootstrap import log_directory
from heirlog.sim.disk import SimFiles
from heirlog.sim.operator_seeds import copies, seed_controller
from heirlog.sim.plan import Plan
from heirlog.sim.script import KILL, POWER_CUT, STOP, Script
from heirlog.sim.stage import Stage
from heirlog.sim.world import Exit


def older_metadata_plan(random: Random) -> Plan:
    return Plan(
        partitions=random.randrange(1, 4),
        idempotent=bool(random.randrange(0, 2)),
        leader_acks=False,
        batch_records=random.randrange(5, 20),
        interval_ms=random.randrange(80, 250),
        compacted=not random.randrange(0, 3),
        keeps_everything=True,
        remade=bool(random.randrange(0, 2)),
    )


def older_metadata(stage: Stage) -> None:
    script = Script(stage, "older-metadata")
    cluster, random, controller = stage.cluster, stage.random, stage.cluster.controller.name
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
    stage.checker.suspended = True
    cluster.kill(controller)
    if lagging is not None:
        _heal(script, lagging, [controller])
    newest, older = cluster.machines.back_up(controller), stage.backup
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
    stage.world.counters["metadata.refused"] += 1
    if random.randrange(0, 3):
        _lose_copies(stage, may_lose_a_disk=not power_cut)
        seed_controller(cluster, stage.checker.seeded)
        stage.world.counters["controller.seeded"] += 1
    else:
        cluster.restore(controller, newest)
    stage.checker.suspended = False
    if lagging is not None:
        _heal(script, lagging, cluster.broker_names)
    cluster.start(controller)
    random.shuffle(brokers)
    for broker in brokers:
        script.run_for(0, (500, 8000)[random.randrange(0, 2)])
        script.up(broker)
    script.until_led()


def _lags(script: Script, brokers: Sequence[BrokerId]) -> str | None:
    """In most runs a follower copies nothing for long before the controller is lost; its name. It hears nothing of the
    controller either, or its copy of the metadata says that it has left the ISR.
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


def _lose_copies(stage: Stage, *, may_lose_a_disk: bool) -> None:
    """Of the brokers' copies of the metadata, up to all but the oldest, the newest first."""
    cluster, random = stage.cluster, stage.random
    env = cluster.machines.boot(cluster.controller.name)
    found = [name for name, _ in copies(cluster, env.process)]
    for name in found[: random.randrange(0, len(found))]:
        if may_lose_a_disk and not random.randrange(0, 3):
            may_lose_a_disk = False
            stage.replace_disk(name)
            continue
        cluster.say(f"the metadata of {name} are lost")
        files = SimFiles(cluster.machines.disk(name), env.process)
        files.rmdir(log_directory(cluster.machine(name).config.metadata_log_dir))
    cluster.world.end(env.process, Exit("stopped", 0, "looked"))
