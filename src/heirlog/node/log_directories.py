"""The log directories that a node opens when it starts.

the metadata log's    must be formatted and readable, or the node does not start
another one           may be unusable as long as one is left: it is offline, and the log says why
a foreign one         (another cluster or node, or a copy of a directory that is open already) ends the start:
                      continuing without it would give its replicas up for a mistake in a path

The metadata log may also be where this configuration does not look for it. Without `metadata.log.dir` it is in the
first of `log.dirs`, whose order an operator may change. Then the node does not start. A controller that began a new log
would have forgotten its votes and what it has acknowledged, and a broker could no longer see that a controller's
metadata are older than its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from heirlog.env import Env, Files
from heirlog.metadata.config_def import StaticConfig
from heirlog.protocol.types import Uuid, uuid_text
from heirlog.raft.bootstrap import log_directory
from heirlog.storage.errors import ForeignDirectory, StorageFormatError
from heirlog.storage.identity import MetaProperties, read_meta_properties
from heirlog.storage.log_directory import LogDirectory, LogDirectoryListener


def metadata_identity(env: Env, config: StaticConfig, unusable: Mapping[str, str]) -> MetaProperties:
    """Whose the metadata log's directory is. Raises StorageFormatError, OSError."""
    path = config.metadata_log_dir
    if path in unusable:
        raise OSError(unusable[path])
    found = read_meta_properties(env.files, path)
    if found is None:
        raise StorageFormatError(
            f"{path} is not formatted: run `heirlog storage format --cluster-id <id> "
            "--config <server.properties>` first"
        )
    return found


def refuse_metadata_elsewhere(files: Files, config: StaticConfig, paths: Iterable[str]) -> None:
    """paths: of directories that can be used. Raises StorageFormatError, OSError."""
    own = config.metadata_log_dir
    if _has_metadata(files, own):
        return
    for path in paths:
        if path != own and _has_metadata(files, path):
            raise StorageFormatError(
                f"the metadata log of this node is in {path}, but its configuration looks for it in {own}: set "
                f"metadata.log.dir={path} (without that property, the first of log.dirs is used)"
            )


def _has_metadata(files: Files, path: str) -> bool:
    """A log without records may be left of a start that was refused."""
    directory = log_directory(path)
    if not files.is_dir(directory):
        return False
    for name in files.list(directory):
        if name.endswith((".log", ".checkpoint")):
            file = files.open(f"{directory}/{name}")
            size = file.size
            file.close()
            if size:
                return True
    return False


def open_directories(
    env: Env, config: StaticConfig, cluster_id: str, unusable: Mapping[str, str], listener: LogDirectoryListener
) -> list[LogDirectory]:
    """Those that can be used, in the order of `log.dirs`. Raises StorageFormatError, OSError.

    unusable: directories that the body could not take for this process, and why.
    """
    opened: dict[Uuid, LogDirectory] = {}
    refused: list[tuple[str, Exception]] = []
    for path in config.log_dirs:
        try:
            if path in unusable:
                raise OSError(unusable[path])
            directory = LogDirectory.open(
                env.files, path, cluster_id=cluster_id, node_id=config.node_id, listener=listener
            )
        except ForeignDirectory:
            raise
        except (StorageFormatError, OSError) as error:
            if path == config.metadata_log_dir:
                raise
            refused.append((path, error))
            continue
        twin = opened.setdefault(directory.directory_id, directory)
        if twin is not directory:
            raise ForeignDirectory(
                f"{path} is a copy of {twin.path}: both have directory.id {uuid_text(directory.directory_id)}; "
                "take one of them out of log.dirs"
            )
    if refused and not opened:
        raise refused[0][1]
    for path, reason in refused:
        env.log("error", "log-directory-offline", directory=path, error=str(reason))
    return [*opened.values()]
