"""The operator of a run seeds a lost controller from the brokers' copies, as `heirlog recover controller` does.

    newest copy --copy_files--> __cluster_metadata-0.seed --seed, flush, rename--> __cluster_metadata-0

The product's code (`heirlog.controller.seeding`) does all of this, on simulated disks. It reads copies of the brokers'
disks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from heirlog.controller import seeding
from heirlog.controller.seeding import MetadataLogCopy
from heirlog.protocol.types import BrokerId, PartitionKey
from heirlog.raft.bootstrap import log_directory
from heirlog.raft.control import Voter
from heirlog.raft.metadata_log import MetadataLog, MetadataLogConfig, open_log
from heirlog.sim.cluster import SimCluster
from heirlog.sim.disk import SimDisk
from heirlog.sim.disk_files import SimFiles
from heirlog.sim.env import SimEnv
from heirlog.sim.world import Exit, Process
from heirlog.storage.identity import read_meta_properties

if TYPE_CHECKING:
    from heirlog.env import Env

SEED_SUFFIX = ".seed"
FLUSH_LIMIT_MS = 1000


def copies(cluster: SimCluster, process: Process) -> list[tuple[str, MetadataLogCopy]]:
    """Each broker's, the newest first."""
    found = []
    for name in cluster.broker_names:
        directory = log_directory(cluster.machine(name).config.metadata_log_dir)
        disk = cluster.machines.back_up(name)
        if SimFiles(disk, process).is_dir(directory):
            found.append((name, seeding.read_copy(_env(cluster, disk, process), directory)))
    return sorted(found, key=lambda each: (each[1].end, each[0]), reverse=True)


def seed_controller(cluster: SimCluster, on_seeded: Callable[[MetadataLog], None]) -> None:
    """Every node is down. on_seeded: gets the log, complete, which no controller has opened yet."""
    controller = cluster.controller
    cluster.replace_disk(controller.name)
    env = cluster.machines.boot(controller.name)
    files, directory = env.files, log_directory(controller.config.metadata_log_dir)
    found = copies(cluster, env.process)
    name, newest = found[0]
    cluster.say(f"seed {controller.name} from {name}, whose copy ends at {newest.end}")
    identity = read_meta_properties(files, controller.config.metadata_log_dir)
    assert identity is not None, "the new disk is formatted"
    listener = controller.config.advertised_controller_listeners[0]
    voter = Voter(BrokerId(controller.node_id), identity.directory_id, listener.endpoint, listener.name)
    seeded_in = directory + SEED_SUFFIX
    seeding.copy_files(SimFiles(cluster.machines.back_up(name), env.process), newest.directory, files, seeded_in)
    log = open_log(env, seeded_in, MetadataLogConfig())
    seen_epoch = max(copy.seen_epoch for _, copy in found)
    seeding.seed(log, voter, seen_epoch, _leader_epochs(cluster, env.process), env.wall_ms())
    flushed: list[OSError | None] = []
    log.flush(flushed.append)
    cluster.world.run_while(lambda: not flushed, FLUSH_LIMIT_MS)
    assert flushed == [None], f"flushing the seeded log: {flushed}"
    on_seeded(log)
    log.close()
    files.rmdir(directory)
    files.rename(seeded_in, directory)
    cluster.world.end(env.process, Exit("stopped", 0, "seeded"))
    cluster.machines.disk(controller.name).settle()


def _leader_epochs(cluster: SimCluster, process: Process) -> dict[PartitionKey, int]:
    epochs: dict[PartitionKey, int] = {}
    for name in cluster.broker_names:
        files = SimFiles(cluster.machines.disk(name), process)
        for path in cluster.machine(name).config.log_dirs:
            for key, epoch in seeding.newest_leader_epochs(files, path, lambda path: None):
                epochs[key] = max(epochs.get(key, -1), epoch)
    return epochs


def _env(cluster: SimCluster, disk: SimDisk, process: Process) -> Env:
    return SimEnv(cluster.world, cluster.network, disk, process)
