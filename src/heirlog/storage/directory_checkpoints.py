"""The three checkpoint files of a log directory: recovery points, log starts and high watermarks of its logs.

The files name a log by topic and partition. A topic that is deleted and recreated gets a new log under the same name,
and until the files are written again, they describe the old log. After a power cut in between, the new log would have
the recovery point, log start and high watermark of the old one: incomplete records would count as flushed, and valid
records would be dropped as below the log start.

    deleted, or set aside   a directory `<topic>-<partition>.<hex>-delete` exists, and `forget` writes the files
    forgotten               no file names the log: that directory may be removed
    an unclean stop before  the files count for no partition that has such a directory (`distrust`)

Source: Kafka's LogManager writes the checkpoints as part of a deletion.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from heirlog.env import Files
from heirlog.storage.atomic import AtomicFile, OnDurable
from heirlog.storage.checkpoints import (
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    read_offsets,
    render_offsets,
)
from heirlog.storage.directory_names import TopicPartition
from heirlog.storage.log import Log

Offsets: TypeAlias = dict[TopicPartition, int]


class _Checkpoint:
    """One of the three files."""

    def __init__(self, files: Files, path: str, name: str, offsets_now: Callable[[], Offsets]) -> None:
        self.found = read_offsets(files, f"{path}/{name}")
        self.written = dict(self.found)
        """What was last written to the file; an older content may still be on disk while `file` is not durable."""
        self.file = AtomicFile(files, path, name)
        self._offsets_now = offsets_now

    @property
    def is_outdated(self) -> bool:
        return self.written != self._offsets_now()

    def names(self, key: TopicPartition) -> bool:
        """Whether the file names the log, even if only its older content does. Offset 0 counts as no entry."""
        return not self.file.durable or bool(self.written.get(key))

    def write(self, on_durable: OnDurable) -> None:
        self.file.write_rendered(self._render, on_durable)

    def _render(self) -> bytes:
        self.written = self._offsets_now()
        return render_offsets(self.written)


class Found(NamedTuple):
    """The values of one log in the files when the directory was opened."""

    recovery_point: int
    log_start_offset: int


class DirectoryCheckpoints:
    def __init__(self, files: Files, path: str, logs: Mapping[TopicPartition, Log], on_written: OnDurable) -> None:
        """logs: the directory's current logs, a live mapping. on_written: called after each write. Raises OSError."""
        self._logs = logs
        self._on_written = on_written
        self._recovery_points = _Checkpoint(files, path, RECOVERY_POINT_CHECKPOINT, self._recovery_points_now)
        self._log_starts = _Checkpoint(files, path, LOG_START_CHECKPOINT, self._log_starts_now)
        self._watermarks = _Checkpoint(files, path, HIGH_WATERMARK_CHECKPOINT, self._watermarks_now)
        self.high_watermarks: Offsets = self._watermarks.found
        """The values on disk at start, updated by each `write`."""

    @property
    def _all(self) -> tuple[_Checkpoint, ...]:
        return self._recovery_points, self._log_starts, self._watermarks

    @property
    def recovery_points(self) -> Mapping[TopicPartition, int]:
        """The values on disk at start."""
        return self._recovery_points.found

    def found(self, key: TopicPartition) -> Found:
        return Found(self._recovery_points.found.get(key, 0), self._log_starts.found.get(key, 0))

    def distrust(self, topic: str, partition: int, *, is_cut: bool) -> None:
        """Ignore entries of this name, which may describe a deleted log. is_cut: `topic` is only the name's start."""
        for checkpoint in self._all:
            if is_cut:
                for key in [(name, index) for name, index in checkpoint.found if index == partition]:
                    if key[0].startswith(topic):
                        del checkpoint.found[key]
            else:
                checkpoint.found.pop((topic, partition), None)

    @property
    def name_logs_that_are_gone(self) -> bool:
        return any(not checkpoint.written.keys() <= self._logs.keys() for checkpoint in self._all)

    def write(self, high_watermarks: Mapping[TopicPartition, int], on_durable: OnDurable | None = None) -> None:
        """A partition that is not named keeps its last high watermark.

        A file whose content would not change is written only if a caller waits for it: ten thousand idle partitions
        must not cause a flush of three files every five seconds.

        Raises OSError. `on_durable` is called after the last of the three files.
        """
        for key in self._logs:
            if key in high_watermarks:
                self.high_watermarks[key] = high_watermarks[key]
        if on_durable is not None:
            self._write(self._all, on_durable)
            return
        for checkpoint in self._all:
            if checkpoint.is_outdated:
                checkpoint.write(self._on_written)

    def write_recovery_points(self) -> None:
        """Raises OSError."""
        self._recovery_points.write(self._on_written)

    def forget(self, key: TopicPartition, on_forgotten: OnDurable) -> None:
        """The log is deleted: call `on_forgotten`, at once or later, when no file names it any more. Raises OSError."""
        self.high_watermarks.pop(key, None)
        self._write([checkpoint for checkpoint in self._all if checkpoint.names(key)], on_forgotten)

    def _write(self, checkpoints: Sequence[_Checkpoint], on_durable: OnDurable) -> None:
        left = len(checkpoints)
        first_error: OSError | None = None

        def done(error: OSError | None) -> None:
            nonlocal left, first_error
            left -= 1
            first_error = first_error or error
            self._on_written(error)
            if left == 0:
                on_durable(first_error)

        for checkpoint in checkpoints:
            checkpoint.write(done)
        if not checkpoints:
            on_durable(None)

    def close(self) -> None:
        for checkpoint in self._all:
            checkpoint.file.close()

    def _recovery_points_now(self) -> Offsets:
        # no recovery point without a topic id: a recovery point promises that the id is durable, too
        return {key: log.recovery_point for key, log in self._logs.items() if log.topic_id is not None}

    def _log_starts_now(self) -> Offsets:
        return {key: log.log_start_offset for key, log in self._logs.items() if log.log_start_offset}

    def _watermarks_now(self) -> Offsets:
        return {key: self.high_watermarks[key] for key in self._logs if key in self.high_watermarks}
