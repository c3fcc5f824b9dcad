"""Log directories fill up or answer EIO, wholly or for one replica; clocks are set back."""

from __future__ import annotations

from random import Random

from heirlog.sim.disk import BREAKAGES
from heirlog.sim.plan import RunPlan
from heirlog.sim.simulation import Simulation

STEP_LIMIT_MS = 30_000
DIRECTORIES = ("/data/a", "/data/b", "/data/c")
"""The first one also has the metadata log: if it fails, the broker stops."""
_HOUR_MS = 3_600_000


def broken_disks_plan(random: Random) -> RunPlan:
    config = {
        "log.dirs": ",".join(DIRECTORIES),
        "log.flush.interval.messages": ("1", "20", "1000000")[random.randrange(0, 3)],
        "log.roll.ms": ("1500", "600000")[random.randrange(0, 2)],
    }
    return RunPlan(
        partitions=random.randrange(3, 6),
        min_isr=(1, 2, 2, 2)[random.randrange(0, 4)],
        idempotent=bool(random.randrange(0, 2)),
        leader_acks=bool(random.randrange(0, 2)),
        batch_records=random.randrange(3, 10),
        interval_ms=random.randrange(100, 300),
        config=config,
    )


def broken_disks(simulation: Simulation) -> None:
    """One or two brokers at a time; sometimes they stop, die or lose power with the broken disk."""
    random, cluster = simulation.random, simulation.cluster
    cluster.run_for(random.randrange(500, 1500))
    for _ in range(4):
        names = list(cluster.broker_names)
        random.shuffle(names)
        directory_failed_on = names[: random.randrange(1, 3)]
        for name in directory_failed_on:
            _break_disk(simulation, name)
            cluster.run_for(random.randrange(0, 2500))
            _and_then(simulation, name)
        cluster.run_for(random.randrange(200, 3000))
        for name in directory_failed_on:
            _mend(simulation, name)
        cluster.run_for(random.randrange(500, 3000))
    for name in cluster.broker_names:
        _mend(simulation, name)


def _break_disk(simulation: Simulation, name: str) -> None:
    random = simulation.random
    disk = simulation.cluster.machines.disk(name)
    path = DIRECTORIES[random.randrange(0, len(DIRECTORIES))]
    if random.randrange(0, 2):
        replicas = _replicas_below(simulation, name, path)
        if replicas:
            path = replicas[random.randrange(0, len(replicas))]
    how = BREAKAGES[random.randrange(0, len(BREAKAGES))]
    simulation.cluster.say(f"break {name} {path} {how}")
    disk.break_at(path, how)
    if not random.randrange(0, 4):
        simulation.cluster.say(f"clock of {name} set back an hour")
        simulation.world.host(name).wall_offset_ms -= _HOUR_MS


def _replicas_below(simulation: Simulation, name: str, path: str) -> list[str]:
    node = simulation.cluster.machine(name).running
    if node is None:
        return []
    return sorted(log.dir_path for d in node.directories if d.path == path for log in d.logs.values())


def _and_then(simulation: Simulation, name: str) -> None:
    cluster = simulation.cluster
    match simulation.random.randrange(0, 6):
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


def _mend(simulation: Simulation, name: str) -> None:
    """Repair the disk and restart the broker: a failed directory stays offline until a restart."""
    cluster, random = simulation.cluster, simulation.random
    cluster.say(f"repair {name}")
    cluster.machines.disk(name).repair()
    if cluster.is_up(name):
        if random.randrange(0, 2):
            cluster.stop(name)
            cluster.run_until(lambda: not cluster.is_up(name), STEP_LIMIT_MS)
        cluster.kill(name, lose_unflushed=not random.randrange(0, 3))
    cluster.start(name)
