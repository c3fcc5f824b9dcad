"""The identity of disks and directories: `meta.properties` of a log directory, `partition.metadata` of a partition.

    meta.properties        version=1, node.id, cluster.id, directory.id (KIP-858)
    partition.metadata     version: 0, topic_id: <22 characters>
    both                   a line with a checksum (`check_line.py`)

Without these files a node could serve the data of another cluster or node under its own name, and a partition directory
of a deleted topic could be used for a new topic of the same name.
"""

from __future__ import annotations

from dataclasses import dataclass

from heirlog.env import Files
from heirlog.protocol.types import Uuid, uuid_from_text, uuid_text
from heirlog.storage.atomic import AtomicFile, OnDurable, read_file
from heirlog.storage.check_line import checked, with_check_line
from heirlog.storage.errors import StorageFormatError
from heirlog.storage.open_files import OpenFileLimit

META_PROPERTIES = "meta.properties"
PARTITION_METADATA = "partition.metadata"
_COMMENT = "# "


@dataclass(frozen=True, slots=True)
class MetaProperties:
    cluster_id: str
    node_id: int
    directory_id: Uuid

    def render(self) -> bytes:
        content = (
            f"version=1\ncluster.id={self.cluster_id}\ndirectory.id={uuid_text(self.directory_id)}\n"
            f"node.id={self.node_id}\n"
        )
        return with_check_line(content, _COMMENT)


def read_meta_properties(files: Files, path: str) -> MetaProperties | None:
    """None if the directory is not formatted. Raises StorageFormatError for a file that cannot be read."""
    content = read_file(files, f"{path}/{META_PROPERTIES}")
    if content is None:
        return None
    try:
        return _parse_meta_properties(checked(content, _COMMENT))
    except (ValueError, KeyError) as error:
        raise StorageFormatError(
            f"{path}/{META_PROPERTIES} is damaged ({error}): restore it (or, after a change by hand, remove the line "
            "with its checksum), or empty the directory and run `heirlog storage format --cluster-id <id> "
            "--config <server.properties>` on it"
        ) from error


def _parse_meta_properties(text: str) -> MetaProperties:
    values: dict[str, str] = {}
    for line in text.splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.startswith(("#", "!")):
            # Java escapes colons and equals signs; ids never hold backslashes otherwise
            values[name.strip()] = value.strip().replace("\\", "")
    if values["version"] != "1":
        raise ValueError(f"version {values['version']} instead of 1")
    return MetaProperties(values["cluster.id"], int(values["node.id"]), uuid_from_text(values["directory.id"]))


def format_directory(
    files: Files, path: str, cluster_id: str, node_id: int, directory_id: Uuid, on_done: OnDurable
) -> MetaProperties:
    """Make `path` a log directory of this node. Raises StorageFormatError if it is one already, and OSError."""
    found = read_meta_properties(files, path) if files.is_dir(path) else None
    if found is not None:
        raise StorageFormatError(
            f"{path} is formatted already, for node {found.node_id} of cluster {found.cluster_id}: "
            f"`heirlog storage format --cluster-id {found.cluster_id} --config <server.properties> --ignore-formatted` "
            "leaves it as it is"
        )
    files.mkdirs(path)
    properties = MetaProperties(cluster_id, node_id, directory_id)
    AtomicFile(files, path, META_PROPERTIES).write(properties.render(), on_done)
    return properties


class PartitionMetadataFile:
    """The file is written once, in place and at once.

    A process that is killed right afterwards leaves it readable, and an incomplete file after a power cut counts as
    missing. With a temporary file and a rename after its flush, a kill in between would leave a log with records and
    without a topic id, which would be moved aside as a stray.
    """

    __slots__ = ("_closed", "_dir_path", "_files", "_open_files", "_waiting", "topic_id")

    def __init__(self, files: Files, dir_path: str, open_files: OpenFileLimit | None = None) -> None:
        """With a missing or damaged file the topic id is unknown; a caller that knows the id sets it again."""
        self._files = files
        self._dir_path = dir_path
        self._open_files = open_files or OpenFileLimit()
        self._closed = False
        self._waiting: list[OnDurable] = []
        self.topic_id: Uuid | None = parse_partition_metadata(read_file(files, self._path))

    @property
    def _path(self) -> str:
        return f"{self._dir_path}/{PARTITION_METADATA}"

    @property
    def durable(self) -> bool:
        """Whether the file is durable."""
        return not self._waiting

    def when_durable(self, on_durable: OnDurable) -> None:
        """Only while not `durable`."""
        self._waiting.append(on_durable)

    def set(self, topic_id: Uuid, on_durable: OnDurable) -> None:
        """Raises StorageFormatError if the directory belongs to another topic, and OSError."""
        if self.topic_id == topic_id:
            return
        if self.topic_id is not None:
            raise StorageFormatError(
                f"{self._dir_path} holds topic id {uuid_text(self.topic_id)}, not {uuid_text(topic_id)}: it is left "
                f"over from a deleted topic of the same name and has to be moved away"
            )
        file = self._files.open(self._path, create=True)
        file.truncate(0)
        file.append(with_check_line(f"version: 0\ntopic_id: {uuid_text(topic_id)}\n"))
        file.close()
        self.topic_id = topic_id
        self._waiting = [on_durable]
        if self._open_files.acquire(self._flush):
            self._flush()

    def _flush(self) -> None:
        if self._closed:
            self._open_files.release()
            return
        try:
            file = self._files.open(self._path)
        except OSError as error:
            self._open_files.release()
            self._ended(error)
            return

        def flushed(error: OSError | None) -> None:
            file.close()
            self._open_files.release()
            if self._closed:
                return
            if error is None:
                self._files.sync_dir(self._dir_path, self._ended)
            else:
                self._ended(error)

        self._files.flush(file, flushed)

    def _ended(self, error: OSError | None) -> None:
        waiting, self._waiting = self._waiting, []
        if not self._closed:
            for on_durable in waiting:
                on_durable(error)

    def close(self) -> None:
        self._closed = True


def parse_partition_metadata(content: bytes | None) -> Uuid | None:
    if content is None:
        return None
    try:
        lines = checked(content).splitlines()
        fields = dict(line.split(": ", 1) for line in lines if line)
        return uuid_from_text(fields["topic_id"]) if fields["version"] == "0" else None
    except (ValueError, KeyError):
        return None
