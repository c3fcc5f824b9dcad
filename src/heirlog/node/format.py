"""What `storage format` does to one node: an identity for every log directory, voters and features for the first start.

    <log dir>/meta.properties                             every directory: cluster.id, node.id, directory.id
    <metadata log dir>/__cluster_metadata-0/0-0.checkpoint  a controller of a new quorum: who votes (kraft.version 1)
    <metadata log dir>/bootstrap.checkpoint                 every node: features of the new cluster

meta.properties comes last: a crash on the way leaves a directory that is not formatted, and formatting it again is
right. Files that other tools left there are not touched.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from heirlog.controller.bootstrap import format_records
from heirlog.env import Files
from heirlog.metadata.config_def import StaticConfig
from heirlog.protocol.types import Uuid
from heirlog.raft.bootstrap import write_bootstrap, write_bootstrap_records
from heirlog.raft.control import Voter
from heirlog.storage.identity import format_directory

OnDone = Callable[[OSError | None], None]


@dataclass(frozen=True, slots=True)
class Format:
    """One node's formatting.

    directory_ids: path → id of each directory to format; those left out stay as they are.
    voters: of a new quorum; () on a node that is no controller, that joins a quorum, or whose configuration names the
    voters (kraft.version 0).
    """

    cluster_id: str
    directory_ids: Mapping[str, Uuid]
    features: Mapping[str, int]
    voters: Sequence[Voter] = ()
    records: Sequence[Any] = ()
    """Further metadata of the new cluster: its first users."""


def format_node(files: Files, config: StaticConfig, plan: Format, wall_ms: int, on_done: OnDone) -> None:
    """Everything is durable when `on_done` gets None.

    Raises ValueError for feature levels that cannot be, StorageFormatError for a directory that is formatted already,
    OSError where one cannot be made or written.
    """
    records = [*format_records(plan.features), *plan.records]
    for path in plan.directory_ids:
        files.mkdirs(path)
    steps: list[Callable[[OnDone], None]] = []
    if config.metadata_log_dir in plan.directory_ids:
        metadata_dir = config.metadata_log_dir
        if config.is_controller and plan.voters:
            steps.append(lambda done: write_bootstrap(files, metadata_dir, plan.voters, wall_ms, done))
        steps.append(lambda done: write_bootstrap_records(files, metadata_dir, records, wall_ms, done))
    for path, directory_id in plan.directory_ids.items():
        steps.append(partial(_identify, files, path, plan.cluster_id, config.node_id, directory_id))
    _in_order(steps, on_done)


def _identify(files: Files, path: str, cluster_id: str, node_id: int, directory_id: Uuid, on_done: OnDone) -> None:
    format_directory(files, path, cluster_id, node_id, directory_id, on_done)


def _in_order(steps: Sequence[Callable[[OnDone], None]], on_done: OnDone) -> None:
    """The next step starts once the one before is durable; the first failure is the last step."""

    remaining = iter(steps)

    def next_after(error: OSError | None) -> None:
        step = next(remaining, None)
        if error is not None or step is None:
            on_done(error)
            return
        try:
            step(next_after)
        except OSError as failure:
            on_done(failure)

    next_after(None)
