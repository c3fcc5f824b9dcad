"""`cleaner-offset-checkpoint`: how far each log of a directory is clean, in Kafka's checkpoint format.

A hint: lost or old, a pass looks at more of the log than it had to. `Log.first_dirty_offset` is what counts while the
broker runs; truncation lowers it.
"""

from __future__ import annotations

from heirlog.env import Files
from heirlog.storage.atomic import AtomicFile, OnDurable
from heirlog.storage.checkpoints import read_offsets, render_offsets
from heirlog.storage.log_directory import LogDirectory

CLEANER_CHECKPOINT = "cleaner-offset-checkpoint"


class CleanerCheckpoint:
    """Of one log directory."""

    def __init__(self, files: Files, directory: LogDirectory) -> None:
        self._files = files
        self._directory = directory
        self._file = AtomicFile(files, directory.path, CLEANER_CHECKPOINT)

    def read(self) -> None:
        """Tell the logs on disk how far they are clean. Raises OSError."""
        offsets = read_offsets(self._files, f"{self._directory.path}/{CLEANER_CHECKPOINT}")
        for key, log in self._directory.logs.items():
            offset = offsets.get(key, 0)
            # beyond the end it speaks of another log, or of records that are gone
            log.first_dirty_offset = offset if offset <= log.log_end_offset else 0

    def write(self, on_durable: OnDurable) -> None:
        """Raises OSError."""
        self._file.write_rendered(self._render, on_durable)

    def _render(self) -> bytes:
        logs = self._directory.logs
        return render_offsets({key: log.first_dirty_offset for key, log in logs.items() if log.first_dirty_offset})

    def close(self) -> None:
        self._file.close()
