"""One entry of `log.dirs`: its owner, whether it was closed cleanly, and the logs in it.

    open          meta.properties checked, .kafka_cleanshutdown and the checkpoints read
    load_logs     logs are opened. After a clean stop nothing is changed: if the node stops here, for whatever reason,
                  it is as clean as before. After an unclean stop logs are truncated and repaired; the next start may
                  repeat that
    claim         the broker is registered: .kafka_cleanshutdown is unlinked and the directory synced
    running       create_log, delete_log, set_aside, write_checkpoints
    close_cleanly every log that has changed finished and flushed, checkpoints durable, .kafka_cleanshutdown last of all
    failed        a background write failed: `failure` is set, the listener is called once; never closed cleanly

A partition's directory is `<topic>-<partition>` (`directory_names.py`). Logs that were deleted or set aside are in
`removed_logs.py`. The metadata log may be in this directory too: it belongs to `raft` and is skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from heirlog.env import Files
from heirlog.protocol.types import METADATA_TOPIC, BrokerEpoch, PartitionKey, Uuid
from heirlog.storage.atomic import OnDurable
from heirlog.storage.boot_mark import BootMark
from heirlog.storage.clean_shutdown import read_clean_shutdown, remove_clean_shutdown, write_clean_shutdown
from heirlog.storage.config import LogConfig
from heirlog.storage.directory_checkpoints import DirectoryCheckpoints
from heirlog.storage.directory_names import STRAY_SUFFIX, TopicPartition, parse_directory_name
from heirlog.storage.errors import ForeignDirectory, StorageFormatError
from heirlog.storage.identity import read_meta_properties
from heirlog.storage.log import Log
from heirlog.storage.log_listener import IGNORED, LogListener
from heirlog.storage.log_loader import load_log
from heirlog.storage.open_files import OpenFileLimit
from heirlog.storage.recovery import CLOSED, LastStop, Slices, at_once
from heirlog.storage.removed_logs import RemovedLogs, Stray

FINISHED_AT_ONCE = 64
"""Logs finished at the same time in a clean stop: each has several open files until they are flushed."""


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
        self.unproven: list[TopicPartition] = []
        """After loading: logs that the checkpoint of the clean stop does not name."""
        self.removed = RemovedLogs(files, path, self._checkpoints, self._background_done)
        self._files = files
        self._boot_mark = BootMark(files, path, stopped_cleanly=clean_epoch is not None)
        self._open_files = OpenFileLimit()
        self._log_listener = LogListener(
            on_failure=self._write_failed,
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

    def doubt_older_copy(self, newest: BrokerEpoch) -> None:
        """newest: of the starts of this broker before the current one that are known elsewhere. If the clean stop was
        that of an earlier start, this is an older copy of the directory, such as a backup."""
        if self.clean_broker_epoch is not None and self.clean_broker_epoch < newest:
            for log in self.logs.values():
                log.may_lack_records = True

    def claim(self, on_claimed: OnDurable) -> None:
        """This incarnation is registered and is about to write: the clean stop before it no longer counts.

        Before `on_claimed(None)` no log may be changed, or a crash could look like a clean stop. Raises OSError.
        """

        self._write_boot_mark()

        def synced(error: OSError | None) -> None:
            if error is None:
                self.removed.finish_deletions(done)
            else:
                done(error)

        def done(error: OSError | None) -> None:
            self._background_done(error)
            on_claimed(error)

        remove_clean_shutdown(self._files, self.path, synced)

    def _load_all(self, config_for: Callable[[str], LogConfig], wall_ms: int, on_log: Callable[[Log], None]) -> None:
        names = self._files.list(self.path)
        self.removed.found_deleted(names, stopped_cleanly=self.was_clean)
        for name in names:
            dir_path = f"{self.path}/{name}"
            if name.endswith(STRAY_SUFFIX):
                self.removed.found_stray(name)
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
                LastStop(self.was_clean, recovery_point, log_start_offset, flushed=self.was_clean),
                wall_ms,
            )
            if log.topic_id is None and recovery_point > 0:
                # the id was durable before the recovery point moved: the write was complete, and the log has records
                raise OSError(
                    f"{dir_path}/partition.metadata is missing or damaged, so the topic of these records is unknown: "
                    f"restore it, or move {dir_path} away to have the partition copied again from another broker"
                )
            log.may_lack_records |= self._boot_mark.may_lack_records(str(log))
            self._add(key, log)
            on_log(log)
        if self.was_clean and not self._is_as_it_was_stopped():
            self.clean_broker_epoch = None
            for log in self.logs.values():
                log.distrust_stop()
        if any(log.may_lack_records for log in self.logs.values()):
            # the next start has to know it, whichever way this one ends
            self._write_boot_mark()
        self._loaded = True

    def _open_log(
        self,
        dir_path: str,
        key: TopicPartition,
        config: LogConfig,
        last_stop: LastStop,
        wall_ms: int,
    ) -> Log:
        slices = load_log(
            self._files,
            dir_path,
            *key,
            config,
            last_stop,
            wall_ms=wall_ms,
            open_files=self._open_files,
            listener=self._log_listener,
        )
        return at_once(slices)

    def _is_as_it_was_stopped(self) -> bool:
        names_all, holds = self._names_all_logs(), self._holds(self._checkpoints.recovery_points)
        for key in (*self.unproven, *(key for key, _, _ in self.missing)):
            if key in self.logs:
                self.logs[key].may_lack_records = True
        return names_all and holds

    def _names_all_logs(self) -> bool:
        """Whether the checkpoint of recovery points names every log, as a clean stop leaves it.

        Without it nothing proves that the logs are as long as they were."""
        named = self._checkpoints.recovery_points
        self.unproven = [key for key, log in sorted(self.logs.items()) if log.topic_id is not None and key not in named]
        return not self.unproven

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
        log = self._open_log(dir_path, key, config, CLOSED, 0)
        log.set_topic_id(topic_id)
        self._add(key, log)
        self._files.sync_dir(self.path, self._background_done)
        return log

    def delete_log(self, topic: str, partition: int) -> Callable[[], None]:
        """Remove a log from the directory at once; its files are deleted when the returned function is called.

        The caller calls it after `file.delete.delay.ms`; otherwise the next claim deletes them. Raises OSError.
        """
        return self.removed.delete(self._take_out(topic, partition))

    def _take_out(self, topic: str, partition: int) -> Log:
        log = self.logs.pop((topic, partition))
        log.detach()
        return log

    def set_aside(self, topic: str, partition: int) -> str:
        """Move a log aside that the metadata does not know; returns the directory's new path. Raises OSError.

        Its records are flushed first, because they may exist nowhere else.
        """
        return self.removed.set_aside(self._take_out(topic, partition))

    def check_stray(self, stray: Stray, topic: str, config: LogConfig, wall_ms: int) -> Slices[Log]:
        """Read a log that was set aside, batch by batch, and truncate incomplete or damaged batches at its end.

        The caller finishes and closes the log before it is brought back. Raises OSError.
        """
        return load_log(
            self._files,
            f"{self.path}/{stray.name}",
            topic,
            stray.partition,
            config,
            LastStop(),
            wall_ms=wall_ms,
            open_files=self._open_files,
        )

    def bring_back(self, stray: Stray, topic: str, config: LogConfig, wall_ms: int) -> Log:
        """The metadata knows the partition again: its log, checked and closed since the start, gets its name back.

        Raises OSError.
        """
        dir_path = self.removed.take_back(stray, topic)
        log = self._open_log(dir_path, (topic, stray.partition), config, CLOSED, wall_ms)
        # it may have been here at any start of the machine, and is older than others
        log.may_lack_records = True
        self._add((topic, stray.partition), log)
        return log

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
        self._write_boot_mark()
        self._checkpoints.write(high_watermarks, on_durable)

    def _write_boot_mark(self) -> None:
        incomplete = [str(log) for log in self.logs.values() if log.may_lack_records]
        self._boot_mark.write(incomplete, self._background_done)

    def distrust(self, log: Log, offset: int, on_durable: OnDurable) -> None:
        """Damaged records were found in the segment of `log` that begins at `offset`; the next start reads it again.

        on_durable: called once that start would know. Raises OSError.
        """
        log.distrust(offset)
        self._checkpoints.write({}, on_durable)

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
        # a broker may have thousands of logs that nothing was written to since its last clean stop
        logs = [log for log in reversed(self.logs.values()) if not log.has_nothing_to_finish]

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
            if error is None:
                self._boot_mark.when_durable(all_written)
            else:
                on_done(error)

        def all_written(error: OSError | None) -> None:
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
        self._boot_mark.close()

    def _background_done(self, error: OSError | None) -> None:
        if error is not None:
            self._write_failed(error)

    def _write_failed(self, error: OSError) -> None:
        """In the background: a flush, after which the page cache may be without what it could not write."""
        self._boot_mark.remove()
        self._failed(error)

    def _failed(self, error: OSError) -> None:
        if self.failure is None:
            self.failure = error
            if self._listener is not None:
                self._listener.log_directory_failed(self, error)
