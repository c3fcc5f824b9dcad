"""Controllers whose metadata are older than those of the brokers.

older-metadata   the controller is restored from an older copy of its disk, or formatted anew, while brokers run, or
                 while they are down. The topics of the run are unknown to it. No broker may lose a log by that, and
                 none may serve by it; then the operator acts as docs/operations.md says
"""

from __future__ import annotations

from random import Random

from heirlog.protocol.types import BrokerId
from heirlog.sim.plan import Plan
from heirlog.sim.script import KILL, STOP, Script
from heirlog.sim.stage import Stage


def older_metadata_plan(random: Random) -> Plan:
    return Plan(
        partitions=random.randrange(1, 4),
        idempotent=bool(random.randrange(0, 2)),
        leader_acks=False,
        batch_records=random.randrange(5, 20),
        interval_ms=random.randrange(80, 250),
        compacted=not random.randrange(0, 3),
        keeps_everything=True,
    )


def older_metadata(stage: Stage) -> None:
    script = Script(stage, "older-metadata")
    cluster, random, controller = stage.cluster, stage.random, stage.cluster.controller.name
    script.run_for(1500, 4000)
    brokers = [BrokerId(cluster.machine(name).node_id) for name in cluster.broker_names]
    running = random.randrange(0, 2)
    if not running:
        for broker in brokers:
            script.down(broker, (STOP, KILL)[random.randrange(0, 2)])
    stage.checker.suspended = True
    cluster.kill(controller)
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
    cluster.restore(controller, newest)
    stage.world.counters["metadata.refused"] += 1
    stage.checker.suspended = False
    cluster.start(controller)
    for broker in brokers:
        script.run_for(0, 500)
        script.up(broker)
    script.until_led()
