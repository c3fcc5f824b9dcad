"""The files that `storage format` writes for the quorum's first start.

    <metadata.log.dir>/__cluster_metadata-0/00000000000000000000-0000000000.checkpoint   who votes (kraft.version 1)
    <log dir>/bootstrap.checkpoint                                                        features of the new cluster

The first is a snapshot of an empty log. The second is not a snapshot: the first active controller appends its records
to the empty log, and afterwards it is never read again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from heirlog.env import Files
from heirlog.protocol.primitives import Message
from heirlog.protocol.types import METADATA_TOPIC
from heirlog.raft import snapshot
from heirlog.raft.control import Voter
from heirlog.storage.atomic import OnDurable, read_file, replace_file

BOOTSTRAP_RECORDS = "bootstrap.checkpoint"


def log_directory(metadata_log_dir: str) -> str:
    return f"{metadata_log_dir}/{METADATA_TOPIC}-0"


def write_bootstrap(
    files: Files, metadata_log_dir: str, voters: Sequence[Voter], wall_ms: int, on_done: OnDurable
) -> None:
    """Write the snapshot that names the first voters; a broker is not a voter and does not need it."""
    directory = log_directory(metadata_log_dir)
    files.mkdirs(directory)

    def written(error: OSError | None) -> None:
        if error is not None:
            on_done(error)
            return
        files.sync_dir(metadata_log_dir, on_done)

    data = snapshot.encode((), snapshot.BOOTSTRAP.epoch, wall_ms, voters)
    replace_file(files, directory, snapshot.BOOTSTRAP.file_name, data, written, snapshot.PART)


def write_bootstrap_records(
    files: Files, log_dir: str, records: Iterable[Message], wall_ms: int, on_done: OnDurable
) -> None:
    """Write the records (feature levels) that the first active controller appends."""
    replace_file(files, log_dir, BOOTSTRAP_RECORDS, snapshot.encode(records, 0, wall_ms, ()), on_done)


def read_bootstrap_records(files: Files, log_dir: str) -> list[Message]:
    """[] without the file. Raises snapshot.InvalidSnapshot if it is damaged."""
    data = read_file(files, f"{log_dir}/{BOOTSTRAP_RECORDS}")
    if data is None:
        return []
    try:
        return list(snapshot.check(snapshot.BOOTSTRAP, data).records())
    except snapshot.InvalidSnapshot as error:
        raise snapshot.InvalidSnapshot(
            f"{log_dir}/{BOOTSTRAP_RECORDS} is damaged ({error}): remove it if the cluster has run before, since only "
            "its first controller reads it; else empty the directory and run `heirlog storage format --cluster-id <id> "
            "--config <server.properties>` again"
        ) from error
