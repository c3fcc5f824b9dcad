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

from heirlog.env import Files
from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.image import KRAFT_VERSION
from heirlog.protocol.records import FeatureLevelRecord
from heirlog.protocol.types import Uuid
from heirlog.raft.bootstrap import write_bootstrap, write_bootstrap_records
from heirlog.raft.control import Voter
from heirlog.storage.identity import MetaProperties, write_meta_properties

OnDone = Callable[[OSError | None], None]


@dataclass(frozen=True, slots=True)
class Format:
    """One node's formatting.

    directory_ids: path → id of each directory to format; those left out stay as they are.
    voters: of a new quorum; () on a node that is no controller, or that joins a quorum.
    """

    cluster_id: str
    directory_ids: Mapping[str, Uuid]
    features: Mapping[str, int]
    voters: Sequence[Voter] = ()


def format_node(files: Files, config: StaticConfig, plan: Format, wall_ms: int, on_done: OnDone) -> None:
    """Everything is durable when `on_done` gets None. Raises OSError where a directory cannot be made or written."""
    for path in plan.directory_ids:
        files.mkdirs(path)
    steps: list[Callable[[OnDone], None]] = []
    if config.metadata_log_dir in plan.directory_ids:
        records = feature_records(plan.features)
        metadata_dir = config.metadata_log_dir
        if config.is_controller and plan.voters:
            steps.append(lambda done: write_bootstrap(files, metadata_dir, plan.voters, wall_ms, done))
        steps.append(lambda done: write_bootstrap_records(files, metadata_dir, records, wall_ms, done))
    for path, directory_id in plan.directory_ids.items():
        identity = MetaProperties(plan.cluster_id, config.node_id, directory_id)
        steps.append(lambda done, path=path, identity=identity: write_meta_properties(files, path, identity, done))  # type: ignore[misc]
    _in_order(steps, on_done)


def feature_records(features: Mapping[str, int]) -> list[FeatureLevelRecord]:
    """kraft.version is the quorum's own and lives in its control records; level 0 is said by saying nothing."""
    return [
        FeatureLevelRecord(name=name, feature_level=level)
        for name, level in sorted(features.items(), key=_metadata_version_first)
        if name != KRAFT_VERSION and level
    ]


def _metadata_version_first(item: tuple[str, int]) -> tuple[bool, str]:
    # the level decides how every record after it is written
    return item[0] != "metadata.version", item[0]


def _in_order(steps: Sequence[Callable[[OnDone], None]], on_done: OnDone) -> None:
    """The next step starts once the one before is durable; the first failure is the last step."""

    def next_after(error: OSError | None) -> None:
        nonlocal position
        if error is not None or position == len(steps):
            on_done(error)
            return
        position += 1
        try:
            steps[position - 1](next_after)
        except OSError as failure:
            on_done(failure)

    position = 0
    next_after(None)
