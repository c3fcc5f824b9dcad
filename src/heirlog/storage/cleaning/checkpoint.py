"""`cleaner-offset-checkpoint`: how far each log of a directory is clean, in Kafka's checkpoint format.

The file is a hint: if it is lost or old, a pass reads more of the log than necessary. While the broker runs,
`Log.first_dirty_offset` counts; truncation lowers it.
"""

from __future__ import annotations

from heirlog.env import Files
from heirlog.storage.atomic import AtomicFile, OnDurable
from heirlog.storage.checkpoints import read_offsets, render_offsets
from heirlog.storage.log_directory import LogDirectory

CLEANER_CHECKPOINT = "cleaner-offset-checkpoint"


class CleanerCheckpoint:
    """The checkpoint of one log directory."""

    def __init__(self, files: Files, directory: LogDirectory) -> None:
        self._files = files
        self._directory = directory
        self._file = AtomicFile(files, directory.path, CLEANER_CHECKPOINT)

    def read(self) -> None:
        """Set the first dirty offset of each log on disk. Raises OSError."""
        offsets = read_offsets(self._files, f"{self._directory.path}/{CLEANER_CHECKPOINT}")
        for key, log in self._directory.logs.items():
            offset = offsets.get(key, 0)
            # an offset beyond the end belongs to another log, or to records that are gone
            log.first_dirty_offset = offset if offset <= log.log_end_offset else 0

    def write(self, on_durable: OnDurable) -> None:
        """Raises OSError."""
        self._file.write_rendered(self._render, on_durable)

    def _render(self) -> bytes:
        logs = self._directory.logs
        return render_offsets({key: log.first_dirty_offset for key, log in logs.items() if log.first_dirty_offset})

    def close(self) -> None:
        self._file.close()
