"""Files that rot while a broker is down: flipped bits, and ends that are zeros or missing.

    a broker stops cleanly, dies or loses power --> some of its files are damaged --> it starts, perhaps several times
        --> it is in sync again --> it leads everything, and another broker copies everything from it

One broker at a time, and the next one only once every ISR is whole: with a replication factor of three and a min ISR of
two, nothing that was acknowledged may be lost. What the broker has to do with each file:

    .log                                a damaged batch is lost, with all batches after it, on this replica only. It is
                                        found when it is read for the first time at the latest, is never copied, and the
                                        broker returns as after an unclean stop
    indexes, producer snapshots         rebuilt
    checkpoints, .kafka_cleanshutdown   count as missing; the stop before counts as unclean if nothing else proves it
    meta.properties                     the broker does not start, and says why: it gets a new disk here
    partition.metadata                  the same, for its directory
    files of the metadata log           fetched again
"""

from __future__ import annotations

from random import Random

from heirlog.protocol.types import METADATA_TOPIC
from heirlog.sim.cluster import LOG_DIR
from heirlog.sim.disk import DAMAGES
from heirlog.sim.plan import RunPlan
from heirlog.sim.simulation import Simulation
from heirlog.storage.transaction_index import TRANSACTION_INDEX_SUFFIX

ROUNDS = 4
STEP_LIMIT_MS = 30_000
RETURN_LIMIT_MS = 40_000
FILES_MAX = 3


def bit_rot_plan(random: Random) -> RunPlan:
    config = {
        "log.roll.ms": ("1500", "600000")[random.randrange(0, 2)],
        "log.index.interval.bytes": ("200", "4096")[random.randrange(0, 2)],
        "log.flush.interval.messages": ("1", "20", "1000000")[random.randrange(0, 3)],
    }
    return RunPlan(
        partitions=random.randrange(1, 4),
        idempotent=bool(random.randrange(0, 2)),
        compacted=not random.randrange(0, 3),
        members=(0, 0, 2)[random.randrange(0, 3)],
        batch_records=random.randrange(3, 10),
        interval_ms=random.randrange(100, 300),
        config=config,
        keeps_everything=True,
    )


def bit_rot(simulation: Simulation) -> None:
    random, cluster = simulation.random, simulation.cluster
    cluster.run_for(random.randrange(800, 2500))
    for _ in range(ROUNDS):
        names = list(cluster.broker_names)
        random.shuffle(names)
        _take_down(simulation, names[0])
        _damage_some(simulation, names[0])
        _bring_back(simulation, names[0])
        if random.randrange(0, 2):
            _copy_from(simulation, *names)
        cluster.run_for(random.randrange(200, 1500))


def _take_down(simulation: Simulation, name: str) -> None:
    cluster, random = simulation.cluster, simulation.random
    how = random.randrange(0, 4)
    if how < 2:
        _stop(simulation, name)
    else:
        cluster.kill(name, lose_unflushed=how == 2)
    cluster.run_for(random.randrange(0, 3000))


def _stop(simulation: Simulation, name: str) -> None:
    simulation.cluster.stop(name)
    simulation.wait(f"{name} has stopped", lambda: not simulation.cluster.is_up(name), STEP_LIMIT_MS)


def _damage_some(simulation: Simulation, name: str) -> None:
    for _ in range(simulation.random.randrange(1, FILES_MAX + 1)):
        simulation.damage_disk(name, *draw_damage(simulation, name))


def draw_damage(simulation: Simulation, name: str) -> tuple[str, str]:
    """The path of a file on the disk of `name`, and what is to happen to it (`SimDisk.damage`)."""
    random = simulation.random
    kinds = _files_by_kind(simulation, name)
    drawn = sorted(kinds)[random.randrange(0, len(kinds))]
    logs = [kind for kind in ("log", "metadata/log") if kind in kinds]
    kind = logs[0] if logs and not random.randrange(0, 3) else drawn
    path = kinds[kind][random.randrange(0, len(kinds[kind]))]
    simulation.world.counters[f"rot.{kind}"] += 1
    how = DAMAGES[random.randrange(0, len(DAMAGES))]
    # another offset in it, or entries that are missing as a whole, cannot be noticed
    return path, "zeros" if path.endswith(TRANSACTION_INDEX_SUFFIX) else how


def _files_by_kind(simulation: Simulation, name: str) -> dict[str, list[str]]:
    """Each kind is as likely as the others, however many files it has; segments are hit more often."""
    kinds: dict[str, list[str]] = {}
    for path, content in simulation.cluster.machines.disk(name).contents(LOG_DIR):
        if content:
            file_name = path.rpartition("/")[2]
            suffix = file_name.rpartition(".")[2] if file_name[0].isdecimal() else file_name
            in_metadata = "metadata/" if f"/{METADATA_TOPIC}-" in path else ""
            kinds.setdefault(in_metadata + suffix, []).append(path)
    return kinds


def _bring_back(simulation: Simulation, name: str) -> None:
    """Start it until it is in sync; a broker that refuses its damaged disk gets a new one."""
    start_after_attempts(simulation, name)
    simulation.cluster.run_for(1000)
    _wait_until_whole(simulation, name)


def start_after_attempts(simulation: Simulation, name: str) -> None:
    """Start a machine whose files are damaged; before, up to two starts end half-way."""
    cluster, random = simulation.cluster, simulation.random
    for _ in range(random.randrange(0, 3)):
        # before or after it has read the damage
        cluster.start(name)
        cluster.run_for(random.randrange(0, (5, 200, 1500)[random.randrange(0, 3)]))
        cluster.kill(name, lose_unflushed=bool(random.randrange(0, 2)))
    cluster.start(name)


def _wait_until_whole(simulation: Simulation, name: str) -> None:
    cluster = simulation.cluster
    waited_from_ms = simulation.world.now_us // 1000

    def whole() -> bool:
        if not cluster.is_up(name) and simulation.world.now_us // 1000 - waited_from_ms > RETURN_LIMIT_MS // 2:
            process = cluster.machine(name).process
            assert process is not None and process.exit is not None
            cluster.say(f"{name} refuses: {process.exit.reason}")
            simulation.world.counters["rot.refused"] += 1
            simulation.replace_disk(name)
            cluster.start(name)
        return simulation.all_led_and_in_sync()

    simulation.wait("every ISR is whole again", simulation.supervised(whole), RETURN_LIMIT_MS)


def _copy_from(simulation: Simulation, name: str, second: str, third: str) -> None:
    """The others stop, so that `name` leads all its partitions; one of them copies everything from it."""
    cluster = simulation.cluster
    for other in (second, third):
        _stop(simulation, other)
    simulation.replace_disk(second)
    cluster.run_for(simulation.random.randrange(0, 1000))
    cluster.start(second)
    cluster.start(third)
    _wait_until_whole(simulation, name)
