"""One entry of `log.dirs`: its owner, whether it was closed cleanly, and the logs in it.

    open          meta.properties checked, .kafka_cleanshutdown and the checkpoints read
    load_logs     logs are opened. After a clean stop nothing is changed: if the node stops here, for whatever reason,
                  it is as clean as before. After an unclean stop logs are truncated and repaired; the next start may
                  repeat that
    claim         the broker is registered: .kafka_cleanshutdown is unlinked and the directory synced
    running       create_log, delete_log, write_checkpoints
    close_cleanly every log finished and flushed, checkpoints durable, then .kafka_cleanshutdown, last of all
    failed        a background write failed: `failure` is set, the listener is called once; never closed cleanly

A partition's directory is `<topic>-<partition>`. A deletion renames it to `<topic>-<partition>.<32 hex digits>-delete`
at once, so that the name is free; the files are removed later (file.delete.delay.ms), or at the next claim. Moving a
log aside renames it to `<topic>-<partition>.<32 hex digits>-stray`; its files stay until an operator removes them, or
the metadata knows the partition again. The metadata log may be in this directory too: it belongs to `raft` and is
skipped.

A directory `...-delete` (an empty one for a log that was moved aside) stays until no checkpoint names the old log any
more: `directory_checkpoints.py` says why.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import NamedTuple, Protocol

from heirlog.env import Files
from heirlog.protocol.types import METADATA_TOPIC, BrokerEpoch, PartitionKey, Uuid
from heirlog.storage.atomic import OnDurable
from heirlog.storage.clean_shutdown import read_clean_shutdown, remove_clean_shutdown, write_clean_shutdown
from heirlog.storage.config import LogConfig
from heirlog.storage.directory_checkpoints import DirectoryCheckpoints, TopicPartition
from heirlog.storage.errors import ForeignDirectory, StorageFormatError
from heirlog.storage.identity import PartitionMetadataFile, read_meta_properties
from heirlog.storage.log import Log
from heirlog.storage.log_listener import IGNORED, LogListener
from heirlog.storage.log_loader import load_log
from heirlog.storage.open_files import OpenFileLimit
from heirlog.storage.recovery import Slices, at_once

DELETE_SUFFIX = "-delete"
STRAY_SUFFIX = "-stray"
"""Kafka's suffix for logs that the metadata does not know."""
_STRAY_NAME = re.compile(r".*-(\d+)\.[0-9a-f]{32}" + STRAY_SUFFIX)
_MAX_NAME_LENGTH = 255
FINISHED_AT_ONCE = 64
"""Logs finished at the same time in a clean stop: each has several open files until they are flushed."""


class Stray(NamedTuple):
    """A log that was moved aside."""

    name: str
    """Name of its directory."""
    topic_id: Uuid
    partition: int


class LogDirectoryListener(Protocol):
    def log_directory_failed(self, directory: LogDirectory, error: OSError) -> None:
        """Called once: no log in the directory can be written any more."""

    def log_start_moved(self, key: PartitionKey) -> None:
        """The log start offset of a partition has changed."""


class LogDirectory:
    """Open with `LogDirectory.open`."""

    def __init__(
        self,
        files: Files,
        path: str,
        directory_id: Uuid,
        clean_epoch: BrokerEpoch | None,
        listener: LogDirectoryListener | None = None,
    ) -> None:
        self.path = path
        self.directory_id = directory_id
        self.clean_broker_epoch = clean_epoch
        """Broker epoch from .kafka_cleanshutdown. None after an unclean stop, and also if loading finds fewer records
        than the stop had flushed; -1 if the broker had no epoch. `clean_shutdown.decide_previous_broker_epoch` combines
        the epochs of all directories.
        """
        self.logs: dict[TopicPartition, Log] = {}
        self._checkpoints = DirectoryCheckpoints(files, path, self.logs, self._background_done)
        self.failure: OSError | None = None
        self._listener = listener
        self.missing: list[tuple[TopicPartition, int, int]] = []
        """After loading: logs that end below what the clean stop had flushed, with both ends."""
        self.strays: list[Stray] = []
        """After loading: logs that an earlier incarnation moved aside."""
        self.checked: list[Stray] = []
        """Those `strays` that have been checked, finished and closed since: only they may be brought back."""
        self._deleted: list[str] = []
        self._files = files
        self._open_files = OpenFileLimit()
        self._log_listener = LogListener(
            on_failure=self._failed,
            on_truncated=self._checkpoints.write_recovery_points,
            on_start_moved=IGNORED.on_start_moved if listener is None else listener.log_start_moved,
        )
        self._loaded = False

    @classmethod
    def open(
        cls,
        files: Files,
        path: str,
        *,
        cluster_id: str | None,
        node_id: int,
        listener: LogDirectoryListener | None = None,
    ) -> LogDirectory:
        """Check the directory's owner (`cluster_id` None: not known yet), and read whether it was closed cleanly.

        Raises ForeignDirectory: the directory must not be used. StorageFormatError (not formatted or damaged; it says
        what to do) or OSError: the directory counts as offline.
        """
        found = read_meta_properties(files, path)
        if found is None:
            raise StorageFormatError(
                f"{path} is not formatted: run `heirlog storage format --cluster-id <id> --config <server.properties>` "
                f"first"
            )
        if cluster_id is not None and found.cluster_id != cluster_id:
            raise ForeignDirectory(
                f"{path} belongs to cluster {found.cluster_id}, not {cluster_id}: correct log.dirs, or empty the "
                f"directory and run `heirlog storage format --cluster-id {cluster_id} --config <server.properties>`"
            )
        if found.node_id != node_id:
            raise ForeignDirectory(
                f"{path} belongs to node {found.node_id}, not {node_id}: correct node.id or log.dirs, or empty the "
                f"directory and run `heirlog storage format --cluster-id {found.cluster_id} "
                "--config <server.properties>`"
            )
        return cls(files, path, found.directory_id, read_clean_shutdown(files, path), listener)

    @property
    def high_watermarks(self) -> Mapping[TopicPartition, int]:
        """The checkpointed high watermarks of the logs on disk at start."""
        return self._checkpoints.high_watermarks

    @property
    def was_clean(self) -> bool:
        """The last incarnation flushed everything: logs are opened without a scan."""
        return self.clean_broker_epoch is not None

    # loading

    def load_logs(
        self,
        config_for: Callable[[str], LogConfig],
        wall_ms: int,
        on_loaded: Callable[[OSError | None], None],
        on_log: Callable[[Log], None] = lambda log: None,
    ) -> None:
        """Open every log, and repair it after an unclean stop.

        on_log: called with each log as soon as it is open.
        """
        failure: OSError | None = None
        try:
            self._load_all(config_for, wall_ms, on_log)
        except OSError as error:
            failure = error
            self._failed(error)
        on_loaded(failure)

    def claim(self, on_claimed: OnDurable) -> None:
        """This incarnation is registered and is about to write: the clean stop before it no longer counts.

        Before `on_claimed(None)` no log may be changed, or a crash could look like a clean stop. Raises OSError.
        """

        def synced(error: OSError | None) -> None:
            if error is not None or not (self._deleted or self._checkpoints.name_logs_that_are_gone):
                done(error)
                return
            try:
                self._checkpoints.write({}, written)
            except OSError as failure:
                done(failure)

        def written(error: OSError | None) -> None:
            done(error or self._remove(self._deleted))

        def done(error: OSError | None) -> None:
            self._background_done(error)
            on_claimed(error)

        remove_clean_shutdown(self._files, self.path, synced)

    def _remove(self, names: list[str]) -> OSError | None:
        """Remove directories of logs that no checkpoint names any more."""
        try:
            while names:
                self._files.rmdir(f"{self.path}/{names[-1]}")
                names.pop()
        except OSError as error:
            return error
        return None

    def _load_all(self, config_for: Callable[[str], LogConfig], wall_ms: int, on_log: Callable[[Log], None]) -> None:
        names = self._files.list(self.path)
        self._deleted = [name for name in names if name.endswith(DELETE_SUFFIX)]
        if not self.was_clean:
            for name in self._deleted:
                self._distrust_checkpoints(name)
        for name in names:
            dir_path = f"{self.path}/{name}"
            if name.endswith(STRAY_SUFFIX):
                self._note_stray(name)
                continue
            key = parse_directory_name(name)
            if key is None or key[0] == METADATA_TOPIC or not self._files.is_dir(dir_path):
                continue
            recovery_point, log_start_offset = self._checkpoints.found(key)
            if self.was_clean and key in self._checkpoints.recovery_points and log_start_offset > recovery_point:
                # after a clean stop no log starts above its end: using a damaged checkpoint would empty the log
                log_start_offset = 0
            log = self._open_log(
                dir_path,
                key,
                config_for(key[0]),
                clean=self.was_clean,
                recovery_point=recovery_point,
                log_start_offset=log_start_offset,
                wall_ms=wall_ms,
            )
            if log.topic_id is None and recovery_point > 0:
                # the id was durable before the recovery point moved: the write was complete, and the log has records
                raise OSError(
                    f"{dir_path}/partition.metadata is missing or damaged, so the topic of these records is unknown: "
                    f"restore it, or move {dir_path} away to have the partition copied again from another broker"
                )
            self._add(key, log)
            on_log(log)
        if self.was_clean and not self._holds(self._checkpoints.recovery_points):
            self.clean_broker_epoch = None
        self._loaded = True

    def _open_log(
        self,
        dir_path: str,
        key: TopicPartition,
        config: LogConfig,
        *,
        clean: bool = True,
        recovery_point: int = 0,
        log_start_offset: int = 0,
        wall_ms: int = 0,
    ) -> Log:
        slices = load_log(
            self._files,
            dir_path,
            *key,
            config,
            clean=clean,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
            wall_ms=wall_ms,
            open_files=self._open_files,
            listener=self._log_listener,
        )
        return at_once(slices)

    def _distrust_checkpoints(self, deleted: str) -> None:
        key = parse_directory_name(deleted.rpartition(".")[0])
        if key is not None:
            self._checkpoints.distrust(*key, is_cut=len(deleted) == _MAX_NAME_LENGTH)

    def _holds(self, recovery_points: Mapping[TopicPartition, int]) -> bool:
        """Whether everything is there that the clean stop had flushed.

        A log that was truncated, damaged or removed since must not stay in ISR and ELR because of the clean-shutdown
        file."""
        self.missing = [
            (key, offset, self.logs[key].log_end_offset if key in self.logs else 0)
            for key, offset in sorted(recovery_points.items())
            if key not in self.logs or self.logs[key].log_end_offset < offset
        ]
        return not self.missing

    def _add(self, key: TopicPartition, log: Log) -> None:
        self.logs[key] = log

    # logs

    def create_log(self, topic: str, partition: int, topic_id: Uuid, config: LogConfig) -> Log:
        """Create an empty log. Raises OSError, and StorageFormatError if a log of that name exists already."""
        key = topic, partition
        if key in self.logs:
            raise StorageFormatError(f"{self.path} has a log of {topic}-{partition} already")
        dir_path = f"{self.path}/{topic}-{partition}"
        self._files.mkdirs(dir_path)
        log = self._open_log(dir_path, key, config)
        log.set_topic_id(topic_id)
        self._add(key, log)
        self._files.sync_dir(self.path, self._background_done)
        return log

    def delete_log(self, topic: str, partition: int) -> Callable[[], None]:
        """Remove a log from the directory at once; its files are deleted when the returned function is called.

        The caller calls it after `file.delete.delay.ms`; otherwise the next claim deletes them. Raises OSError.
        """
        log = self._take_out(topic, partition)
        name = self._move_away(log, DELETE_SUFFIX)
        return self._once_forgotten(log, name, log.close)

    def _take_out(self, topic: str, partition: int) -> Log:
        log = self.logs.pop((topic, partition))
        log.detach()
        return log

    def _move_away(self, log: Log, kind: str) -> str:
        """The new name of its directory."""
        name = self._free_name(log, kind)
        self._files.rename(log.dir_path, f"{self.path}/{name}")
        self._files.sync_dir(self.path, self._background_done)
        return name

    def _once_forgotten(self, log: Log, name: str, close: Callable[[], None]) -> Callable[[], None]:
        """A function that removes the directory `name`, at once or as soon as no checkpoint names the log any more."""
        is_forgotten = is_wanted = False

        def remove_if_due() -> OSError | None:
            is_due = is_forgotten and is_wanted and self._files.exists(f"{self.path}/{name}")
            return self._remove([name]) if is_due else None

        def forgotten(error: OSError | None) -> None:
            nonlocal is_forgotten
            is_forgotten = error is None
            self._background_done(error or remove_if_due())

        def remove() -> None:
            nonlocal is_wanted
            is_wanted = True
            close()
            error = remove_if_due()
            if error is not None:
                raise error

        self._checkpoints.forget((log.topic, log.partition), forgotten)
        return remove

    def set_aside(self, topic: str, partition: int) -> str:
        """Move a log aside that the metadata does not know; returns the directory's new path. Raises OSError.

        Its records are flushed first, because they may exist nowhere else.
        """
        log = self._take_out(topic, partition)
        marker = self._free_name(log, DELETE_SUFFIX)
        self._files.mkdirs(f"{self.path}/{marker}")
        name = self._move_away(log, STRAY_SUFFIX)
        self._once_forgotten(log, marker, lambda: None)()
        log.flush_and_close(self._background_done)
        return f"{self.path}/{name}"

    def _note_stray(self, name: str) -> None:
        match = _STRAY_NAME.fullmatch(name)
        topic_id = PartitionMetadataFile(self._files, f"{self.path}/{name}").topic_id
        if match is not None and topic_id is not None:
            self.strays.append(Stray(name, topic_id, int(match[1])))

    def check_stray(self, stray: Stray, topic: str, config: LogConfig, wall_ms: int) -> Slices[Log]:
        """Read a log that was moved aside, batch by batch, and truncate incomplete or damaged batches at its end.

        The caller finishes and closes the log before it is brought back. Raises OSError.
        """
        return load_log(
            self._files,
            f"{self.path}/{stray.name}",
            topic,
            stray.partition,
            config,
            clean=False,
            recovery_point=0,
            log_start_offset=0,
            wall_ms=wall_ms,
            open_files=self._open_files,
        )

    def bring_back(self, stray: Stray, topic: str, config: LogConfig, wall_ms: int) -> Log:
        """The metadata knows the partition again: its log, checked and closed since the start, gets its name back.

        Raises OSError.
        """
        dir_path = f"{self.path}/{topic}-{stray.partition}"
        self._files.rename(f"{self.path}/{stray.name}", dir_path)
        self._files.sync_dir(self.path, self._background_done)
        self.strays.remove(stray)
        self.checked.remove(stray)
        log = self._open_log(dir_path, (topic, stray.partition), config, wall_ms=wall_ms)
        self._add((topic, stray.partition), log)
        return log

    def _free_name(self, log: Log, kind: str) -> str:
        """A free directory name: a partition may be created and deleted again before its old files are removed."""
        count = 0
        while True:
            unique = sha256(b"%b %d %d" % (log.topic_id or b"", log.partition, count)).hexdigest()[:32]
            suffix = f"-{log.partition}.{unique}{kind}"
            name = f"{log.topic[: _MAX_NAME_LENGTH - len(suffix)]}{suffix}"
            if not self._files.exists(f"{self.path}/{name}"):
                return name
            count += 1

    def space(self) -> tuple[int, int]:
        """Total and usable bytes of the directory's volume. Raises OSError."""
        return self._files.space(self.path)

    # checkpoints

    def write_checkpoints(
        self, high_watermarks: Mapping[TopicPartition, int], on_durable: OnDurable | None = None
    ) -> None:
        """Write recovery points, log starts and high watermarks; a partition not named keeps its last high watermark.

        Raises OSError; a later failure fails the directory. `on_durable` is called after the last of the three files.
        """
        self._checkpoints.write(high_watermarks, on_durable)

    # stopping

    def close_cleanly(
        self,
        broker_epoch: BrokerEpoch,
        on_done: Callable[[OSError | None], None],
        high_watermarks: Mapping[TopicPartition, int] | None = None,
    ) -> None:
        """Flush everything, then write .kafka_cleanshutdown. Raises OSError; `on_done` gets a later one.

        A directory that failed, or whose logs were never loaded, is not changed: it stays unclean, or as clean as
        before.
        """
        if self.failure is not None:
            raise self.failure
        if not self._loaded:
            raise OSError(f"the logs in {self.path} were not loaded: it was not changed")
        under_way = 1  # the directory itself
        first_error: OSError | None = None
        logs = list(reversed(self.logs.values()))

        def finish_some() -> None:
            nonlocal under_way
            while logs and under_way < FINISHED_AT_ONCE:
                under_way += 1
                logs.pop().finish(finished)

        def finished(error: OSError | None) -> None:
            nonlocal under_way, first_error
            under_way -= 1
            first_error = first_error or error
            if first_error is None:
                try:
                    finish_some()
                except OSError as failure:
                    under_way -= 1
                    first_error = failure
            if under_way:
                return
            if first_error is None:
                self._checkpoint_and_close(broker_epoch, high_watermarks or {}, on_done)
            else:
                on_done(first_error)

        finish_some()
        self._files.sync_dir(self.path, finished)

    def _checkpoint_and_close(
        self, broker_epoch: BrokerEpoch, high_watermarks: Mapping[TopicPartition, int], on_done: OnDurable
    ) -> None:
        def durable(error: OSError | None) -> None:
            self.close()
            on_done(error)

        def checkpointed(error: OSError | None) -> None:
            error = error or self.failure
            if error is None:
                try:
                    write_clean_shutdown(self._files, self.path, broker_epoch, durable)
                    return
                except OSError as failure:
                    error = failure
            on_done(error)

        try:
            self.write_checkpoints(high_watermarks, checkpointed)
        except OSError as failure:
            on_done(failure)

    def close(self) -> None:
        """Close the files without writing anything."""
        for log in self.logs.values():
            log.close()
        self._checkpoints.close()

    def _background_done(self, error: OSError | None) -> None:
        if error is not None:
            self._failed(error)

    def _failed(self, error: OSError) -> None:
        if self.failure is None:
            self.failure = error
            if self._listener is not None:
                self._listener.log_directory_failed(self, error)


def parse_directory_name(name: str) -> TopicPartition | None:
    """`orders-3` → ("orders", 3); None for any other name."""
    topic, dash, partition = name.rpartition("-")
    if not dash or not topic or not partition.isdecimal():
        return None
    return topic, int(partition)
