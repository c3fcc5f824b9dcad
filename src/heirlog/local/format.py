"""Formatting with real files: what `storage format`, `up` and `Cluster` share.

The work itself is `heirlog.node.format`, which the simulator uses too; here its callbacks are waited for, and ids are
made.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from queue import SimpleQueue
from typing import Any

from heirlog.local import properties
from heirlog.local.errors import LocalError
from heirlog.local.layout import Layout
from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.features import DEFAULT_FEATURES, metadata_version_name
from heirlog.metadata.image import METADATA_VERSION
from heirlog.node import format as node_format
from heirlog.node.format import Format
from heirlog.protocol.types import Uuid, uuid_text
from heirlog.raft import snapshot
from heirlog.raft.bootstrap import log_directory
from heirlog.raft.control import Voter
from heirlog.server.files import OsFiles
from heirlog.storage.errors import StorageFormatError
from heirlog.storage.identity import MetaProperties, read_meta_properties

_FORMAT_IT = "run `heirlog storage format --cluster-id <id> --config <file>`"


def new_uuid() -> Uuid:
    """A random (version 4) id whose text does not begin with a dash, which would look like an option."""
    while True:
        raw = bytearray(os.urandom(16))
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        made = Uuid(bytes(raw))
        if not uuid_text(made).startswith("-"):
            return made


def format_node(
    config: StaticConfig,
    cluster_id: str,
    features: Mapping[str, int],
    voters: Sequence[Voter] | None,
    *,
    ignore_formatted: bool = False,
    records: Sequence[Any] = (),
) -> list[str]:
    """Format what is not formatted yet; one line per directory. Raises LocalError.

    voters: None makes this controller the only one. records: further metadata of the new cluster.
    """
    if not cluster_id.strip() or any(character.isspace() for character in cluster_id):
        raise LocalError("--cluster-id must be one word; heirlog storage random-uuid prints a new one")
    paths = list(dict.fromkeys([config.metadata_log_dir, *config.log_dirs]))
    lines, ids = [], {}
    with Disk() as files:
        for path in paths:
            known = _identity(files, path)
            if known is None:
                ids[path] = new_uuid()
            elif known.cluster_id != cluster_id:
                raise LocalError(
                    f"{path} belongs to cluster {known.cluster_id}, not to {cluster_id}; put back the directory that "
                    "belongs here, or correct log.dirs"
                )
            elif known.node_id != config.node_id:
                raise LocalError(
                    f"{path} belongs to node {known.node_id}, not to {config.node_id}; put back the directory that "
                    "belongs here, or correct log.dirs"
                )
            elif not ignore_formatted:
                raise LocalError(
                    f"{path} is already formatted; use --ignore-formatted to leave it as it is and format the others"
                )
            else:
                lines.append(f"{path} is formatted already.")
        if config.metadata_log_dir in ids:
            if config.is_controller and voters != []:
                _refuse_former_quorum(files, config.metadata_log_dir)
            voters, ids[config.metadata_log_dir] = _settle_voters(config, voters, ids[config.metadata_log_dir])
        plan = Format(cluster_id, ids, features, voters or (), records)
        files.wait(
            lambda done: node_format.format_node(files.files, config, plan, time.time_ns() // 1_000_000, done),
            f"formatting {', '.join(ids)}",
        )
    release = metadata_version_name(features[METADATA_VERSION])
    lines += [f"Formatted {path} with metadata.version {release}." for path in ids]
    return lines


def _refuse_former_quorum(files: Disk, path: str) -> None:
    """A new quorum begins without a metadata log. Raises LocalError.

    The log would win over the new quorum, and its voters have the directory id that meta.properties named: a
    controller with a new one waits for itself without end.
    """
    metadata = log_directory(path)
    names = files.files.list(metadata) if files.files.is_dir(metadata) else []
    if any(name.endswith(".log") for name in names):
        raise LocalError(
            f"{metadata} holds the log of a quorum that has run, and {path}/meta.properties is gone: put that file "
            "back (its directory.id is what `heirlog dump --deep FILE` shows of the newest .checkpoint there as "
            "voter_directory_id of this node), or move the folder away to begin a new cluster"
        )


def _settle_voters(
    config: StaticConfig, voters: Sequence[Voter] | None, directory_id: Uuid
) -> tuple[Sequence[Voter], Uuid]:
    """Standalone: this node with the new directory's id. Otherwise the id that the list of voters gives this node."""
    if voters is None:
        return [_voter(config, directory_id)], directory_id
    if not voters:
        return voters, directory_id
    return voters, next(voter.directory_id for voter in voters if voter.id == config.node_id)


def format_cluster(layout: Layout, features: Mapping[str, int], records: Sequence[Any] = ()) -> None:
    """Format the nodes of a local cluster that are not formatted yet: one quorum, one cluster id for all.

    features: levels that differ from the defaults. records: see `format_node`.
    """
    configs = [properties.read_static(node.properties_path) for node in layout.nodes]
    # the cluster's id is its controller's, whatever a broker's directory says
    configs.sort(key=lambda config: not config.is_controller)
    controllers = [config for config in configs if config.is_controller]
    with Disk() as files:
        known = [identity for config in configs if (identity := _identity(files, config.metadata_log_dir))]
        voters = None if len(controllers) == 1 else _voters(layout, controllers, files)
    cluster_id = known[0].cluster_id if known else uuid_text(new_uuid())
    for config in configs:
        wanted = voters if config.is_controller else []
        format_node(
            config, cluster_id, {**DEFAULT_FEATURES, **features}, wanted, ignore_formatted=True, records=records
        )


def _voters(layout: Layout, controllers: Sequence[StaticConfig], files: Disk) -> Sequence[Voter]:
    """The voters of a quorum of several controllers: new ones, or those of a formatting that was cut short.

    Empty if all controllers are formatted: a quorum that has run knows its voters, and may have removed the first
    checkpoint. Raises LocalError if a controller without files belongs to a quorum that has run: with an empty log it
    could vote for a leader that lacks committed records.
    """
    formatted = [config for config in controllers if _identity(files, config.metadata_log_dir)]
    if not formatted:
        return [_voter(config, new_uuid()) for config in controllers]
    if len(formatted) == len(controllers):
        return []
    for config in formatted:
        metadata = log_directory(config.metadata_log_dir)
        if any(name.endswith(".log") for name in files.files.list(metadata)):
            missing = ", ".join(str(other.node_id) for other in controllers if other not in formatted)
            raise LocalError(
                f"{layout.data} holds a quorum that has run, and controller {missing} has no files: put its "
                "folder back, or start with a new data folder"
            )
    return snapshot.load(files.files, log_directory(formatted[0].metadata_log_dir), snapshot.BOOTSTRAP).voters


def _voter(config: StaticConfig, directory_id: Uuid) -> Voter:
    listener = config.advertised_controller_listeners[0]
    return Voter(config.node_id, directory_id, listener.endpoint, listener.name)


def inspect(config: StaticConfig) -> tuple[dict[str, dict[str, Any] | None], list[str]]:
    """What each log directory that exists says (None: nothing), and what is wrong with them, in sentences."""
    found: dict[str, dict[str, Any] | None] = {}
    problems: list[str] = []
    with Disk() as files:
        for path in dict.fromkeys([config.metadata_log_dir, *config.log_dirs]):
            if not os.path.isdir(path):
                problems.append(
                    f"{path} is not a directory: move it away, or correct log.dirs."
                    if os.path.exists(path)
                    else f"{path} does not exist: {_FORMAT_IT}, which creates it, or mount its disk."
                )
                continue
            found[path] = None
            try:
                identity = _identity(files, path)
                if identity is not None:
                    found[path] = _as_properties(identity)
                elif config.is_controller and path == config.metadata_log_dir:
                    _refuse_former_quorum(files, path)
            except LocalError as error:
                problems.append(f"{error}.")
                continue
            if identity is None:
                problems.append(f"{path} is not formatted: {_FORMAT_IT}.")
            elif identity.node_id != config.node_id:
                problems.append(f"{path} belongs to node {identity.node_id}, not to {config.node_id}.")
    identities = [metadata for metadata in found.values() if metadata is not None]
    clusters, ids = ([str(metadata[name]) for metadata in identities] for name in ("cluster.id", "directory.id"))
    if len(set(clusters)) > 1:
        problems.append(f"The directories belong to different clusters: {', '.join(sorted(set(clusters)))}.")
    if len(set(ids)) < len(ids):
        problems.append(
            f"Directories have the same directory id ({', '.join(ids)}): one is a copy of the other; move it away."
        )
    return found, problems


def _as_properties(identity: MetaProperties) -> dict[str, Any]:
    return {
        "cluster.id": identity.cluster_id,
        "directory.id": uuid_text(identity.directory_id),
        "node.id": identity.node_id,
        "version": 1,
    }


class Disk:
    """`OsFiles` for a program without a loop: callbacks run where they are waited for."""

    def __init__(self) -> None:
        self._due: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self.files = OsFiles(self._due.put)

    def __enter__(self) -> Disk:
        return self

    def __exit__(self, *_: object) -> None:
        self.files.stop()

    def wait(self, begin: Callable[[Callable[[OSError | None], None]], None], doing: str) -> None:
        """Until what `begin` began is done. Raises LocalError."""
        ended: list[OSError | None] = []
        try:
            begin(ended.append)
            while not ended:
                self._due.get()()
        except (OSError, ValueError, StorageFormatError) as error:
            raise LocalError(f"{doing} failed: {error}") from error
        if ended[0] is not None:
            raise LocalError(f"{doing} failed: {ended[0]}")


def _identity(files: Disk, path: str) -> MetaProperties | None:
    """None for a directory that is not formatted. Raises LocalError for one that cannot be read."""
    if os.path.isdir(path) and not os.access(path, os.R_OK | os.X_OK):
        # what may not be seen looks as if it were not there
        raise LocalError(f"{path} may not be read by this user: run the command as the user that the node runs as")
    try:
        return read_meta_properties(files.files, path)
    except (OSError, StorageFormatError) as error:
        raise LocalError(str(error)) from error
