"""Logs that were removed from a log directory and whose files are still there.

    deleted     the directory is renamed to `...-delete` at once, so that the name is free. The files are removed when
                the caller asks for it (after file.delete.delay.ms) and no checkpoint names the log any more, or at the
                next claim of the log directory
    set aside   the metadata does not know the log: its directory is renamed to `...-stray`. The files stay until an
                operator removes them, or the metadata knows the partition again (`take_back`)

As long as a checkpoint may name the removed log, there is a directory `...-delete`, an empty one for a log that was set
aside. Without it a power cut could leave a new log of that name with the recovery point of the old one:
`directory_checkpoints.py` says more.

A log that was set aside may be incomplete, because its last records were flushed in the background. So it is read
batch by batch before it is taken back. It is in `checked` after that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from heirlog.env import Files
from heirlog.protocol.types import Uuid
from heirlog.storage.atomic import OnDurable
from heirlog.storage.directory_checkpoints import DirectoryCheckpoints
from heirlog.storage.directory_names import (
    DELETE_SUFFIX,
    STRAY_SUFFIX,
    free_name,
    parse_deleted_name,
    stray_partition,
)
from heirlog.storage.identity import PartitionMetadataFile
from heirlog.storage.log import Log


class Stray(NamedTuple):
    """A log that was set aside."""

    name: str
    """Name of its directory."""
    topic_id: Uuid
    partition: int


class RemovedLogs:
    def __init__(self, files: Files, path: str, checkpoints: DirectoryCheckpoints, on_done: OnDurable) -> None:
        """path: of the log directory. on_done: called with the result of each write that no caller waits for."""
        self._files = files
        self._path = path
        self._checkpoints = checkpoints
        self._on_done = on_done
        self._deleted: list[str] = []
        """Directories of logs that an earlier incarnation deleted."""
        self.strays: list[Stray] = []
        """Logs that an earlier incarnation set aside, and that can be taken back."""
        self.kept: list[str] = []
        """Directories of all logs that are set aside."""
        self.checked: list[Stray] = []
        """Those `strays` that have been checked, finished and closed since: only they may be taken back."""

    # at the start

    def found_deleted(self, names: Sequence[str], *, stopped_cleanly: bool) -> None:
        """names: those of all directories. After an unclean stop checkpoints of the deleted logs do not count."""
        self._deleted = [name for name in names if name.endswith(DELETE_SUFFIX)]
        if stopped_cleanly:
            return
        for name in self._deleted:
            if (deleted := parse_deleted_name(name)) is not None:
                key, is_cut = deleted
                self._checkpoints.distrust(*key, is_cut=is_cut)

    def found_stray(self, name: str) -> None:
        """`name` ends with `STRAY_SUFFIX`. A directory without a topic id cannot be taken back."""
        self.kept.append(name)
        partition = stray_partition(name)
        topic_id = PartitionMetadataFile(self._files, f"{self._path}/{name}").topic_id
        if partition is not None and topic_id is not None:
            self.strays.append(Stray(name, topic_id, partition))

    def finish_deletions(self, on_done: OnDurable) -> None:
        """Write checkpoints without the logs that are gone, then remove the directories of deleted logs."""
        if not (self._deleted or self._checkpoints.name_logs_that_are_gone):
            on_done(None)
            return
        try:
            self._checkpoints.write({}, lambda error: on_done(error or self._remove(self._deleted)))
        except OSError as failure:
            on_done(failure)

    # while the directory is in use

    def delete(self, log: Log) -> Callable[[], None]:
        """Free the name of a detached log. Its files are removed when the returned function is called, or later.

        Raises OSError.
        """
        name = self._move_away(log, DELETE_SUFFIX)
        return self._once_forgotten(log, name, log.close)

    def set_aside(self, log: Log) -> str:
        """Flush and close a detached log, and keep it under another name: the new path. Raises OSError."""
        marker = self._free_name(log, DELETE_SUFFIX)
        self._files.mkdirs(f"{self._path}/{marker}")
        name = self._move_away(log, STRAY_SUFFIX)
        self._once_forgotten(log, marker, lambda: None)()
        log.flush_and_close(self._on_done)
        self.kept.append(name)
        return f"{self._path}/{name}"

    def take_back(self, stray: Stray, topic: str) -> str:
        """Give a log that is in `checked` its name again: the new path. Raises OSError."""
        dir_path = f"{self._path}/{topic}-{stray.partition}"
        self._files.rename(f"{self._path}/{stray.name}", dir_path)
        self._files.sync_dir(self._path, self._on_done)
        self.strays.remove(stray)
        self.checked.remove(stray)
        self.kept.remove(stray.name)
        return dir_path

    def _free_name(self, log: Log, suffix: str) -> str:
        return free_name(
            (log.topic, log.partition),
            log.topic_id,
            suffix,
            is_used=lambda name: self._files.exists(f"{self._path}/{name}"),
        )

    def _move_away(self, log: Log, suffix: str) -> str:
        """The new name of its directory."""
        name = self._free_name(log, suffix)
        self._files.rename(log.dir_path, f"{self._path}/{name}")
        self._files.sync_dir(self._path, self._on_done)
        return name

    def _once_forgotten(self, log: Log, name: str, close: Callable[[], None]) -> Callable[[], None]:
        """A function that removes the directory `name`, at once or as soon as no checkpoint names the log any more."""
        is_forgotten = is_wanted = False

        def remove_if_due() -> OSError | None:
            is_due = is_forgotten and is_wanted and self._files.exists(f"{self._path}/{name}")
            return self._remove([name]) if is_due else None

        def forgotten(error: OSError | None) -> None:
            nonlocal is_forgotten
            is_forgotten = error is None
            self._on_done(error or remove_if_due())

        def remove() -> None:
            nonlocal is_wanted
            is_wanted = True
            close()
            error = remove_if_due()
            if error is not None:
                raise error

        self._checkpoints.forget((log.topic, log.partition), forgotten)
        return remove

    def _remove(self, names: list[str]) -> OSError | None:
        """Remove directories of logs that no checkpoint names any more."""
        try:
            while names:
                self._files.rmdir(f"{self._path}/{names[-1]}")
                names.pop()
        except OSError as error:
            return error
        return None
