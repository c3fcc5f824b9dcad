"""`heirlog recover controller`: seed a lost controller from the brokers' copies of the metadata log.

    given folders -> their copies of the log --newest, the others being older parts of it--> __cluster_metadata-0.seed
                                                                    --complete and durable--> __cluster_metadata-0

With --majority-lost this controller is left of a quorum that can elect no leader any more. Its own log is one of the
copies, and is kept as __cluster_metadata-0.replaced.

What is written into it, and why, says `controller/seeding.py`. A crash on the way leaves the folder without a log, and
the command can be run again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heirlog.cli.doctor import locked, log_directories
from heirlog.cli.errors import CommandError

if TYPE_CHECKING:
    from heirlog.controller.seeding import MetadataLogCopy
    from heirlog.local.format import Disk
    from heirlog.protocol.types import PartitionKey

SEED_SUFFIX = ".seed"
REPLACED_SUFFIX = ".replaced"

Config = Annotated[str, typer.Option("--config", "-c", help="server.properties of the controller to seed.")]
From = Annotated[
    list[Path],
    typer.Option("--from", metavar="DIR", help="A stopped broker's log directory, or a folder that contains some."),
]
MajorityLost = Annotated[
    bool,
    typer.Option(
        "--majority-lost",
        help="A majority of the voters is lost for good: this controller becomes the only voter, and its own log is "
        "one of the copies.",
    ),
]


def recover_controller(config: Config, from_: From, majority_lost: MajorityLost = False) -> None:
    """Seed a lost controller from stopped brokers' copies of the metadata log; give the folders of all of them.

    With --majority-lost it seeds a controller that is left of a quorum without a majority.
    """
    from heirlog.local import properties

    static = properties.read_static(config)
    if not static.is_controller:
        raise CommandError(
            f"{config} does not configure a controller: give server.properties of the controller to seed"
        )
    if len(static.voters) > 1:
        raise CommandError(
            f"{config} names the voters in controller.quorum.voters. Replace it by controller.quorum.bootstrap.servers "
            "in the properties of all nodes first: otherwise the other controllers, once they are formatted again, may "
            "elect a leader that has no metadata"
        )
    sources = [path for given in from_ for path in log_directories(given)]
    targets = [path for path in dict.fromkeys([static.metadata_log_dir, *static.log_dirs]) if os.path.isdir(path)]
    with locked([*sources, *map(Path, targets)]):
        for line in _Seeding(config, sources, majority_lost).run():
            print(line)


class _Seeding:
    def __init__(self, config: str, sources: Sequence[Path], majority_lost: bool) -> None:
        from heirlog.local import properties
        from heirlog.raft.bootstrap import log_directory

        self._static = properties.read_static(config)
        self._config = config
        self._own = os.path.realpath(self._static.metadata_log_dir)
        self._directory = log_directory(self._own)
        self._majority_lost = majority_lost
        own = [self._own] if majority_lost else []
        self._sources = list(dict.fromkeys([*own, *(str(path.resolve()) for path in sources)]))
        self._unknown_topics: list[str] = []
        """Logs whose leader epochs say nothing, because no file says of which topic they are."""

    def run(self) -> list[str]:
        """What was done, and what to do next. Raises CommandError; then nothing has changed."""
        from heirlog.local.format import Disk

        with Disk() as disk:
            cluster_id = self._cluster_id(disk)
            self._refuse_target(disk, cluster_id)
            if self._majority_lost:
                self._put_back(disk)
            copies = self._copies()
            lost = self._lost_voters(disk, copies) if self._majority_lost else []
            newest = max(copies, key=lambda copy: copy.end)
            self._refuse_other_histories(newest, copies)
            lines = self._write(disk, cluster_id, newest, max(copy.seen_epoch for copy in copies))
            return [*lines, *(self._price(lost) if self._majority_lost else [])]

    def _cluster_id(self, disk: Disk) -> str:
        from heirlog.storage.errors import StorageFormatError
        from heirlog.storage.identity import read_meta_properties

        found: dict[str, str] = {}
        for path in self._sources:
            try:
                identity = read_meta_properties(disk.files, path)
            except StorageFormatError as error:
                # its own advice ends with formatting, which would take what may be the newest copy
                raise CommandError(
                    f"{path}/meta.properties is damaged, so nothing shows whose folder it is: write it again by hand "
                    "(version, cluster.id, node.id and directory.id, without the line with the checksum), as the node "
                    "had it. If you leave the folder out and its copy is the newest, later changes are lost"
                ) from error
            if identity is None:
                raise CommandError(f"{path} is not a node's log directory: it has no meta.properties")
            found.setdefault(identity.cluster_id, path)
        if len(found) > 1:
            raise CommandError(
                "the folders belong to different clusters: "
                + ", ".join(f"{path} to {cluster_id}" for cluster_id, path in found.items())
            )
        return next(iter(found))

    def _refuse_target(self, disk: Disk, cluster_id: str) -> None:
        from heirlog.raft.snapshot import BOOTSTRAP
        from heirlog.storage.errors import StorageFormatError
        from heirlog.storage.identity import read_meta_properties

        path = self._static.metadata_log_dir
        try:
            identity = read_meta_properties(disk.files, path) if disk.files.is_dir(path) else None
        except StorageFormatError as error:
            raise CommandError(str(error)) from error
        if identity is not None and (identity.cluster_id, identity.node_id) != (cluster_id, self._static.node_id):
            raise CommandError(
                f"{path} belongs to node {identity.node_id} of cluster {identity.cluster_id}, not to node "
                f"{self._static.node_id} of cluster {cluster_id}: correct --config or --from"
            )
        directory = self._directory
        names = disk.files.list(directory) if disk.files.is_dir(directory) else []
        held = [name for name in names if name.endswith((".log", ".checkpoint")) and name != BOOTSTRAP.file_name]
        if held and not self._majority_lost:
            raise CommandError(
                f"{directory} holds a metadata log ({held[0]}). It may have topics, configurations and ACLs that no "
                "broker has fetched: without it they are lost. Start the controller with it if that is possible. If a "
                "majority of the controllers that vote is lost for good, run the command with --majority-lost. If the "
                "log cannot be used, or is older than the brokers' copies, move the folder away, keep it, and run the "
                "command again"
            )

    def _put_back(self, disk: Disk) -> None:
        """The own log that a command which was interrupted had moved."""
        replaced = self._directory + REPLACED_SUFFIX
        if disk.files.is_dir(replaced):
            if disk.files.is_dir(self._directory):
                raise CommandError(
                    f"{replaced} is the log of an earlier recovery with --majority-lost: move it away, and keep it"
                )
            disk.files.rename(replaced, self._directory)

    def _lost_voters(self, disk: Disk, copies: Sequence[MetadataLogCopy]) -> list[int]:
        """The voters whose disks are not at hand; [] if only the configuration named them (kraft.version 0).

        Raises CommandError where a majority is at hand.
        """
        from heirlog.storage.identity import read_meta_properties

        own = next((copy for copy in copies if copy.directory == self._directory), None)
        if own is None or not own.end[1]:
            raise CommandError(f"{self._directory} holds no metadata log: leave out --majority-lost")
        identities = [read_meta_properties(disk.files, path) for path in self._sources]
        at_hand = {(one.node_id, one.directory_id) for one in identities if one is not None}
        lost = [voter.id for voter in own.voters if (voter.id, voter.directory_id) not in at_hand]
        if own.voters and 2 * len(lost) < len(own.voters):
            kept = ", ".join(str(voter.id) for voter in own.voters if voter.id not in lost)
            raise CommandError(
                f"no majority is lost: the disks of controllers {kept} are at hand, and they can elect a leader of the "
                f"{len(own.voters)} voters. Start them with their folders as they are"
            )
        return [int(node_id) for node_id in lost]

    def _price(self, lost: Sequence[int]) -> list[str]:
        others = f"controllers {', '.join(map(str, lost))}" if lost else "lost controllers"
        return [
            f"May be lost: changes of topics, configurations and ACLs that the {others} had committed, if "
            "neither this controller nor a given broker had fetched them.",
            f"{self._directory}{REPLACED_SUFFIX} is the log as it was; keep it until the cluster is complete.",
            f"Never start the {others} with their old disks: together they may elect a leader of the old "
            "quorum. Format them again with --no-initial-controllers, start them, and add each with `heirlog quorum "
            "add-controller --config FILE`, on its machine.",
        ]

    def _copies(self) -> list[MetadataLogCopy]:
        """Read under an overlay: nothing in the brokers' folders changes."""
        from heirlog.cli.offline.doctor import OfflineEnv
        from heirlog.cli.offline.overlay import OverlayFiles
        from heirlog.controller import seeding
        from heirlog.protocol.batch import InvalidBatch
        from heirlog.protocol.errors import KafkaError
        from heirlog.raft.bootstrap import log_directory
        from heirlog.raft.metadata_log import MetadataLogLost
        from heirlog.raft.quorum_state import MalformedQuorumState
        from heirlog.storage.errors import StorageFormatError

        copies = []
        for path in self._sources:
            directory = log_directory(path)
            if not os.path.isdir(directory):
                continue
            try:
                copies.append(seeding.read_copy(OfflineEnv(OverlayFiles(), lambda event, values: None), directory))
            except (MetadataLogLost, MalformedQuorumState, StorageFormatError, KafkaError, InvalidBatch) as error:
                raise CommandError(f"the copy in {directory} cannot be read: {error}; leave it out") from error
        if not any(copy.end[1] for copy in copies):
            raise CommandError(
                f"none of the folders holds a copy of the metadata log: {', '.join(self._sources)}; it is in the "
                "nodes' metadata.log.dir, else in the first of log.dirs"
            )
        return copies

    def _refuse_other_histories(self, newest: MetadataLogCopy, copies: Sequence[MetadataLogCopy]) -> None:
        from heirlog.cli.offline.doctor import OfflineEnv
        from heirlog.cli.offline.overlay import OverlayFiles
        from heirlog.raft.metadata_log import MetadataLogConfig, open_log

        env = OfflineEnv(OverlayFiles(), lambda event, values: None)
        log = open_log(env, newest.directory, MetadataLogConfig())
        for copy in copies:
            if copy.committed is None or copy.committed[0] < log.start_offset:
                continue
            offset, data = copy.committed
            there = log.read_bytes(offset, len(data), log.end_offset) if offset < log.end_offset else b""
            if there[: len(data)] != data:
                raise CommandError(
                    f"{newest.directory} and {copy.directory} do not belong to one history: they differ at "
                    f"offset {offset}. Give only folders of brokers that followed the same controller"
                )
        log.close()

    def _leader_epochs(self) -> dict[PartitionKey, int]:
        """The newest epoch of each log at hand."""
        from heirlog.cli.offline.overlay import OverlayFiles
        from heirlog.controller.seeding import newest_leader_epochs

        files = OverlayFiles()
        found: dict[PartitionKey, int] = {}
        for path in self._sources:
            for key, epoch in newest_leader_epochs(files, path, self._unknown_topics.append):
                found[key] = max(found.get(key, -1), epoch)
        return found

    def _write(self, disk: Disk, cluster_id: str, newest: MetadataLogCopy, seen_epoch: int) -> list[str]:
        from heirlog.cli.offline.doctor import OfflineEnv
        from heirlog.controller import seeding
        from heirlog.local.format import format_node
        from heirlog.metadata.features import DEFAULT_FEATURES
        from heirlog.raft.control import Voter
        from heirlog.raft.metadata_log import MetadataLogConfig, open_log
        from heirlog.storage.identity import read_meta_properties

        static, files = self._static, disk.files
        lines = format_node(static, cluster_id, DEFAULT_FEATURES, [], ignore_formatted=True)
        directory = self._directory
        seeded_in = directory + SEED_SUFFIX
        if files.exists(seeded_in):
            files.rmdir(seeded_in)
        identity = read_meta_properties(files, static.metadata_log_dir)
        assert identity is not None, "it was formatted just now"
        seeding.copy_files(files, newest.directory, files, seeded_in)
        listener = static.advertised_controller_listeners[0]
        voter = Voter(static.node_id, identity.directory_id, listener.endpoint, listener.name)
        log = open_log(OfflineEnv(files, lambda event, values: None), seeded_in, MetadataLogConfig())
        try:
            seeded = seeding.seed(log, voter, seen_epoch, self._leader_epochs(), time.time_ns() // 1_000_000)
        except ValueError as error:
            raise CommandError(f"the copy in {newest.directory} cannot be used: {error}") from error
        disk.wait(lambda done: log.flush(done), f"flushing {seeded_in}")
        log.close()
        for name in files.list(seeded_in):
            file = files.open(f"{seeded_in}/{name}")
            disk.wait(lambda done, file=file: files.flush(file, done), f"flushing {name}")  # type: ignore[misc]
            file.close()
        disk.wait(lambda done: files.sync_dir(seeded_in, done), f"flushing {seeded_in}")
        if self._majority_lost:
            files.rename(directory, directory + REPLACED_SUFFIX)
        elif files.exists(directory):
            files.rmdir(directory)
        files.rename(seeded_in, directory)
        disk.wait(lambda done: files.sync_dir(static.metadata_log_dir, done), f"flushing {static.metadata_log_dir}")
        return [
            *lines,
            f"{directory} holds the metadata of {newest.directory} up to offset {seeded.copied_to_offset}: "
            f"{seeded.topics} topics, {seeded.partitions} partitions.",
            *(
                f"The log in {path} was left out, because its partition.metadata is missing or damaged: restore "
                "the file before the broker starts, or move the log away and keep it."
                for path in self._unknown_topics
            ),
            "A partition gets a leader once all of its replicas have reported what their logs hold.",
            f"Next: heirlog node --config {self._config}, then start every broker; heirlog recover plan shows for "
            "which replicas partitions wait.",
        ]
