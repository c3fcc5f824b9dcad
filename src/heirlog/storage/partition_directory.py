"""The directory of one partition's log: its path, its topic id, and what of it is not durable yet.

A file that was created, renamed or unlinked is durably so only after its directory was synced. A new directory is
durable only after its parent was synced, too.

    durable  --changed-->  changed            the next `flush` syncs the directory
    durable  --created-->  changed, created   the next `flush` syncs the directory and its parent

`flush` forgets the change when it requests the sync. If the sync fails the log has failed (`log_failure.py`), so no
later flush has to repeat it.
"""

from __future__ import annotations

from collections.abc import Callable

from heirlog.env import Files
from heirlog.protocol.types import Uuid
from heirlog.storage.atomic import OnDurable
from heirlog.storage.identity import PartitionMetadataFile
from heirlog.storage.open_files import OpenFileLimit


class PartitionDirectory:
    __slots__ = ("_is_changed", "_is_created", "_metadata_file", "files", "path")

    def __init__(self, files: Files, path: str, open_files: OpenFileLimit | None = None) -> None:
        """Reads `partition.metadata`. open_files: shared by all logs of a log directory."""
        self.files = files
        self.path = path
        self._metadata_file = PartitionMetadataFile(files, path, open_files)
        self._is_changed = False
        self._is_created = False

    @property
    def topic_id(self) -> Uuid | None:
        """From `partition.metadata`; None if it was never set."""
        return self._metadata_file.topic_id

    def set_topic_id(self, topic_id: Uuid, on_durable: OnDurable) -> None:
        """Raises OSError, and StorageFormatError if the directory belongs to another topic id."""
        self._metadata_file.set(topic_id, on_durable)

    def changed(self) -> None:
        """A file in it was created, renamed or unlinked."""
        self._is_changed = True

    def created(self) -> None:
        """The directory is new, or it is unknown whether it was ever synced."""
        self._is_changed = self._is_created = True

    @property
    def durable(self) -> bool:
        """Whether a `flush` would request nothing."""
        return self._metadata_file.durable and not self._is_changed and not self._is_created

    def flush(self, part: Callable[[], OnDurable]) -> None:
        """Request everything that makes the directory durable. part: gives the callback of one more request."""
        if not self._metadata_file.durable:
            self._metadata_file.when_durable(part())
        if self._is_changed:
            self._is_changed = False
            self.files.sync_dir(self.path, part())
        if self._is_created:
            self._is_created = False
            self.files.sync_dir(self.path.rpartition("/")[0], part())

    def close(self) -> None:
        """The directory is about to be renamed or was closed: continue nothing in it."""
        self._metadata_file.close()
