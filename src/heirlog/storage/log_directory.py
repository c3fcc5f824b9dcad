"""One entry of `log.dirs`: who it belongs to, how it was stopped, and the logs in it.

    open          meta.properties checked, .kafka_cleanshutdown and the checkpoints read
    load_logs     logs are opened. After a clean stop nothing is changed: a node that ends here, for whatever reason, is
                  as clean as before. After an unclean stop logs are cut and repaired, which the next start may repeat
    claim         the broker is registered: .kafka_cleanshutdown is unlinked and the directory synced
    running       create_log, delete_log, write_checkpoints
    close_cleanly every log finished and flushed, checkpoints durable, then .kafka_cleanshutdown, last of all
    failed        a background write failed: `failure` is set, `on_failure` told once; never closed cleanly

A partition's directory is `<topic>-<partition>`. Deleting renames it to `<topic>-<partition>.<32 hex digits>-delete` at
once, so that the name is free; the bytes go later (file.delete.delay.ms), or at the next claim. Setting aside renames
it to `<topic>-<partition>.<32 hex digits>-stray`; its bytes stay until an operator removes them, or the metadata know
the partition again. The metadata log may be in here too: it belongs to `raft` and is skipped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import NamedTuple, TypeAlias

from heirlog.env import Files
from heirlog.protocol.types import METADATA_TOPIC, BrokerEpoch, Uuid
from heirlog.storage.atomic import AtomicFile, OnDurable
from heirlog.storage.checkpoints import (
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    read_offsets,
    render_offsets,
)
from heirlog.storage.clean_shutdown import read_clean_shutdown, remove_clean_shutdown, write_clean_shutdown
from heirlog.storage.config import LogConfig
from heirlog.storage.errors import ForeignDirectory, StorageFormatError
from heirlog.storage.identity import PartitionMetadataFile, read_meta_properties
from heirlog.storage.log import Log
from heirlog.storage.recovery import Slices
from heirlog.storage.turns import Turns

TopicPartition: TypeAlias = tuple[str, int]
Offsets: TypeAlias = dict[TopicPartition, int]

DELETE_SUFFIX = "-delete"
STRAY_SUFFIX = "-stray"
"""Kafka's suffix for logs that the metadata do not know."""
_STRAY_NAME = re.compile(r".*-(\d+)\.[0-9a-f]{32}" + STRAY_SUFFIX)
_MAX_NAME_LENGTH = 255
FINISHED_AT_ONCE = 64
"""Logs in a clean stop: each has several files open until they are flushed."""


class Stray(NamedTuple):
    """A log that was set aside."""

    name: str
    """Of its directory."""
    topic_id: Uuid
    partition: int


class LogDirectory:
    """Open with `LogDirectory.open`."""

    def __init__(self, files: Files, path: str, directory_id: Uuid, clean_epoch: BrokerEpoch | None) -> None:
        self.path = path
        self.directory_id = directory_id
        self.clean_broker_epoch = clean_epoch
        """From .kafka_cleanshutdown: None after an unclean stop, also where loading finds less than that stop had
        flushed; -1 if the broker had no epoch. The node decides over all its directories:
        `clean_shutdown.decide_previous_broker_epoch`."""
        self.logs: dict[TopicPartition, Log] = {}
        self.high_watermarks: dict[TopicPartition, int] = read_offsets(files, f"{path}/{HIGH_WATERMARK_CHECKPOINT}")
        """As last written; of the logs on disk at start."""
        self.failure: OSError | None = None
        self.on_failure: Callable[[OSError], None] | None = None
        self.missing: list[tuple[TopicPartition, int, int]] = []
        """After loading: logs that end below what the clean stop before had flushed, with both ends."""
        self.strays: list[Stray] = []
        """After loading: logs that an earlier incarnation set aside."""
        self.checked: list[Stray] = []
        """Of `strays`, those that were checked, finished and closed since: only they may be brought back."""
        self._deleted: list[str] = []
        self._files = files
        self._turns = Turns()
        self._loaded = False
        self._recovery_points = AtomicFile(files, path, RECOVERY_POINT_CHECKPOINT)
        self._log_starts = AtomicFile(files, path, LOG_START_CHECKPOINT)
        self._watermarks = AtomicFile(files, path, HIGH_WATERMARK_CHECKPOINT)
        self._written: dict[AtomicFile, Offsets] = {}
        """What each of them was last given."""

    @classmethod
    def open(cls, files: Files, path: str, *, cluster_id: str | None, node_id: int) -> LogDirectory:
        """Check whose directory it is (`cluster_id` None: not known yet) and read how it was left.

        Raises ForeignDirectory: nothing may be done with it. StorageFormatError (not formatted, damaged; it says what
        to do) or OSError: the directory counts as offline.
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
        return cls(files, path, found.directory_id, read_clean_shutdown(files, path))

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
        """Open every log there is, repairing what an unclean stop left.

        on_log: told of each log as soon as it is open.
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

        Before `on_claimed(None)` no log may be changed, or a crash could pass for a clean stop. Raises OSError.
        """

        def synced(error: OSError | None) -> None:
            if error is None:
                try:
                    for name in self._deleted:
                        self._files.rmdir(f"{self.path}/{name}")
                    self._deleted = []
                except OSError as failure:
                    error = failure
            self._background_done(error)
            on_claimed(error)

        remove_clean_shutdown(self._files, self.path, synced)

    def _load_all(self, config_for: Callable[[str], LogConfig], wall_ms: int, on_log: Callable[[Log], None]) -> None:
        recovery_points = read_offsets(self._files, f"{self.path}/{RECOVERY_POINT_CHECKPOINT}")
        log_starts = read_offsets(self._files, f"{self.path}/{LOG_START_CHECKPOINT}")
        for name in self._files.list(self.path):
            dir_path = f"{self.path}/{name}"
            if name.endswith(DELETE_SUFFIX):
                self._deleted.append(name)
                continue
            if name.endswith(STRAY_SUFFIX):
                self._note_stray(name)
                continue
            key = parse_directory_name(name)
            if key is None or key[0] == METADATA_TOPIC or not self._files.is_dir(dir_path):
                continue
            log = Log.open(
                self._files,
                dir_path,
                *key,
                config_for(key[0]),
                clean=self.was_clean,
                recovery_point=recovery_points.get(key, 0),
                log_start_offset=self._credible_start(key, log_starts, recovery_points),
                wall_ms=wall_ms,
                turns=self._turns,
            )
            if log.topic_id is None and recovery_points.get(key, 0) > 0:
                # the id was durable before the recovery point rose: not a torn write, and the log has records
                raise OSError(
                    f"{dir_path}/partition.metadata is missing or damaged, so the topic of these records is unknown: "
                    f"restore it, or move {dir_path} away to have the partition copied again from another broker"
                )
            self._add(key, log)
            on_log(log)
        if self.was_clean and not self._holds(recovery_points):
            self.clean_broker_epoch = None
        self._loaded = True

    def _credible_start(
        self,
        key: TopicPartition,
        log_starts: Mapping[TopicPartition, int],
        recovery_points: Mapping[TopicPartition, int],
    ) -> int:
        """After a clean stop no log begins above its end: such a checkpoint is damaged, and obeying it would empty the
        log."""
        start = log_starts.get(key, 0)
        if self.was_clean and key in recovery_points and start > recovery_points[key]:
            return 0
        return start

    def _holds(self, recovery_points: Mapping[TopicPartition, int]) -> bool:
        """Is everything there that the clean stop had flushed? A log that was cut, damaged or removed since must not
        keep the seats that the clean-shutdown file would give it."""
        self.missing = [
            (key, offset, self.logs[key].log_end_offset if key in self.logs else 0)
            for key, offset in sorted(recovery_points.items())
            if key not in self.logs or self.logs[key].log_end_offset < offset
        ]
        return not self.missing

    def _add(self, key: TopicPartition, log: Log) -> None:
        log.on_failure = self._failed
        log.on_truncated = self._write_recovery_points
        self.logs[key] = log

    # logs

    def create_log(self, topic: str, partition: int, topic_id: Uuid, config: LogConfig) -> Log:
        """Begin an empty log. Raises OSError, and StorageFormatError if a log of that name is there already."""
        key = topic, partition
        if key in self.logs:
            raise StorageFormatError(f"{self.path} has a log of {topic}-{partition} already")
        dir_path = f"{self.path}/{topic}-{partition}"
        self._files.mkdirs(dir_path)
        log = Log.open(
            self._files,
            dir_path,
            topic,
            partition,
            config,
            clean=True,
            recovery_point=0,
            log_start_offset=0,
            wall_ms=0,
            turns=self._turns,
        )
        log.set_topic_id(topic_id)
        self._add(key, log)
        self._files.sync_dir(self.path, self._background_done)
        return log

    def delete_log(self, topic: str, partition: int) -> Callable[[], None]:
        """Take a log out of the directory at once; its bytes go when the returned function is called.

        The caller does that after `file.delete.delay.ms`; if it never does, the next load does. Raises OSError.
        """
        log = self.logs.pop((topic, partition))
        self.high_watermarks.pop((topic, partition), None)
        log.detach()
        target = self._free_path(log, DELETE_SUFFIX)
        self._files.rename(log.dir_path, target)
        self._files.sync_dir(self.path, self._background_done)

        def remove() -> None:
            log.close()
            if self._files.exists(target):
                self._files.rmdir(target)

        return remove

    def set_aside(self, topic: str, partition: int) -> str:
        """Take a log out that the metadata do not know, and keep its bytes; the directory's new path. Raises OSError.

        Its records are flushed first: nothing else has to have them.
        """
        log = self.logs.pop((topic, partition))
        self.high_watermarks.pop((topic, partition), None)
        log.detach()
        target = self._free_path(log, STRAY_SUFFIX)
        self._files.rename(log.dir_path, target)
        self._files.sync_dir(self.path, self._background_done)
        log.flush_and_close(self._background_done)
        return target

    def _note_stray(self, name: str) -> None:
        match = _STRAY_NAME.fullmatch(name)
        topic_id = PartitionMetadataFile(self._files, f"{self.path}/{name}").topic_id
        if match is not None and topic_id is not None:
            self.strays.append(Stray(name, topic_id, int(match[1])))

    def check_stray(self, stray: Stray, topic: str, config: LogConfig, wall_ms: int) -> Slices[Log]:
        """Read a log that was set aside, batch by batch: what is torn or damaged at its end is cut.

        The caller finishes and closes the log before it is brought back. Raises OSError.
        """
        return Log.opening(
            self._files,
            f"{self.path}/{stray.name}",
            topic,
            stray.partition,
            config,
            clean=False,
            recovery_point=0,
            log_start_offset=0,
            wall_ms=wall_ms,
            turns=self._turns,
        )

    def bring_back(self, stray: Stray, topic: str, config: LogConfig, wall_ms: int) -> Log:
        """The metadata know the partition again: its log, checked and closed since the start, gets its name back.

        Raises OSError.
        """
        dir_path = f"{self.path}/{topic}-{stray.partition}"
        self._files.rename(f"{self.path}/{stray.name}", dir_path)
        self._files.sync_dir(self.path, self._background_done)
        self.strays.remove(stray)
        self.checked.remove(stray)
        log = Log.open(
            self._files,
            dir_path,
            topic,
            stray.partition,
            config,
            clean=True,
            recovery_point=0,
            log_start_offset=0,
            wall_ms=wall_ms,
            turns=self._turns,
        )
        self._add((topic, stray.partition), log)
        return log

    def _free_path(self, log: Log, kind: str) -> str:
        """A free name: the same partition may be created and deleted again before the bytes of the first are gone."""
        count = 0
        while True:
            unique = sha256(b"%b %d %d" % (log.topic_id or b"", log.partition, count)).hexdigest()[:32]
            suffix = f"-{log.partition}.{unique}{kind}"
            path = f"{self.path}/{log.topic[: _MAX_NAME_LENGTH - len(suffix)]}{suffix}"
            if not self._files.exists(path):
                return path
            count += 1

    def space(self) -> tuple[int, int]:
        """Total and usable bytes of the volume that it lies on. Raises OSError."""
        return self._files.space(self.path)

    # checkpoints

    def write_checkpoints(
        self, high_watermarks: Mapping[TopicPartition, int], on_durable: OnDurable | None = None
    ) -> None:
        """Recovery points, log starts and high watermarks; a partition not named keeps its last watermark.

        What holds the same as the last time is written only where somebody waits for it: ten thousand partitions that
        nobody writes to are no reason to flush three files every five seconds.

        Raises OSError; what fails later fails the directory. `on_durable` hears of the last of the three.
        """
        for key in self.logs:
            if key in high_watermarks:
                self.high_watermarks[key] = high_watermarks[key]
        left = 3
        first_error: OSError | None = None

        def done(error: OSError | None) -> None:
            nonlocal left, first_error
            left -= 1
            first_error = first_error or error
            self._background_done(error)
            if left == 0 and on_durable is not None:
                on_durable(first_error)

        for file, offsets_now in (
            (self._recovery_points, self._recovery_points_now),
            (self._log_starts, self._log_starts_now),
            (self._watermarks, self._watermarks_now),
        ):
            if on_durable is None and self._written.get(file) == offsets_now():
                continue
            self._write(file, offsets_now, done)

    def _write_recovery_points(self) -> None:
        self._write(self._recovery_points, self._recovery_points_now, self._background_done)

    def _write(self, file: AtomicFile, offsets_now: Callable[[], Offsets], on_durable: OnDurable) -> None:
        def render() -> bytes:
            offsets = self._written[file] = offsets_now()
            return render_offsets(offsets)

        file.write_rendered(render, on_durable)

    def _recovery_points_now(self) -> Offsets:
        # without a topic id there is none: a recovery point says that the id was durable, too
        return {key: log.recovery_point for key, log in self.logs.items() if log.topic_id is not None}

    def _log_starts_now(self) -> Offsets:
        return {key: log.log_start_offset for key, log in self.logs.items() if log.log_start_offset}

    def _watermarks_now(self) -> Offsets:
        return {key: self.high_watermarks[key] for key in self.logs if key in self.high_watermarks}

    # stopping

    def close_cleanly(
        self,
        broker_epoch: BrokerEpoch,
        on_done: Callable[[OSError | None], None],
        high_watermarks: Mapping[TopicPartition, int] | None = None,
    ) -> None:
        """Flush everything, then say so on disk. Raises OSError; `on_done` hears of a later one.

        A directory that failed, or whose logs were never loaded, is left as it is: unclean, or as clean as before.
        """
        if self.failure is not None:
            raise self.failure
        if not self._loaded:
            raise OSError(f"the logs in {self.path} were not loaded: it stays as the last stop left it")
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
        """Give back the files, writing nothing."""
        for log in self.logs.values():
            log.close()
        for file in (self._recovery_points, self._log_starts, self._watermarks):
            file.close()

    def _background_done(self, error: OSError | None) -> None:
        if error is not None:
            self._failed(error)

    def _failed(self, error: OSError) -> None:
        if self.failure is None:
            self.failure = error
            if self.on_failure is not None:
                self.on_failure(error)


def parse_directory_name(name: str) -> TopicPartition | None:
    """`orders-3` → ("orders", 3); None for what is not a partition's directory."""
    topic, dash, partition = name.rpartition("-")
    if not dash or not topic or not partition.isdecimal():
        return None
    return topic, int(partition)
