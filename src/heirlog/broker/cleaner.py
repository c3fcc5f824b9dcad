"""The log cleaner: chooses the next log with cleanup.policy=compact, and compacts it in small slices.

    resting --log.cleaner.backoff.ms, the dirtiest log that is due--> working --pass done--> the next one, or resting
                                                                         |  ^
                                                     a slice of 2 ms ----+--+  a pause of 4 ms, or a flush to wait for

It compacts one log at a time, in the event loop that also serves requests. A slice ends after about two milliseconds,
and the pause leaves two thirds of the time to other work. A thread would not do that: while a thread keeps the
interpreter busy, the loop answers only fifty requests a second. log.cleaner.io.max.bytes.per.second makes pauses
longer.

If a log is truncated, deleted, or goes offline, its pass is abandoned (`Log.cut_count`) and starts again later. A log
with a corrupt batch is skipped, and this is logged once: a pass could drop the only readable record of a key.

Leaders and followers compact in the same way, each its own log, below its own last stable offset.

Source: Kafka's LogCleaner and LogCleanerManager; KIP-354.
"""

from __future__ import annotations

from collections.abc import Callable

from heirlog.broker.partition import Partition
from heirlog.broker.replica_manager import ReplicaManager
from heirlog.env import Env
from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.configs import server_value
from heirlog.metadata.image import Image
from heirlog.protocol.errors import KafkaError
from heirlog.protocol.types import PartitionKey
from heirlog.storage.cleaning.checkpoint import CleanerCheckpoint
from heirlog.storage.cleaning.compaction import Compaction, Steps
from heirlog.storage.cleaning.offset_map import keys_within
from heirlog.storage.cleaning.plan import LogToClean, is_due, plan_of
from heirlog.storage.log_directory import LogDirectory

SLICE_MS = 2
PAUSE_MS = 4
MAX_STEPS_PER_SLICE = 2000
"""A second limit, for the simulator's clock, which does not move while we work."""


class _Pass:
    """A compaction in progress."""

    __slots__ = ("compaction", "cut_count", "partition", "started_ms", "steps")

    def __init__(self, partition: Partition, compaction: Compaction, started_ms: int) -> None:
        self.partition = partition
        self.compaction = compaction
        self.steps: Steps = compaction.steps()
        self.cut_count = partition.log.cut_count
        self.started_ms = started_ms

    @property
    def is_obsolete(self) -> bool:
        return self.partition.offline or self.partition.log.cut_count != self.cut_count


class Cleaner:
    def __init__(self, env: Env, static: StaticConfig, replicas: ReplicaManager, image: Callable[[], Image]) -> None:
        self._env = env
        self._static = static
        self._replicas = replicas
        self._image = image
        self._checkpoints: dict[str, CleanerCheckpoint] = {}
        self._uncleanable: set[PartitionKey] = set()
        self._running: _Pass | None = None
        self._stopped = False

    def start(self) -> None:
        """Start; the logs are loaded."""
        if not self._static["log.cleaner.enable"]:
            return
        for directory in self._replicas.directories.online:
            checkpoint = self._checkpoints[directory.path] = CleanerCheckpoint(self._env.files, directory)
            try:
                checkpoint.read()
            except OSError as error:
                self._replicas.directories.failed(directory, error)
        self._wait()

    def stop(self) -> None:
        """The logs are about to be closed: do not touch their directories any more."""
        self._stopped = True
        self._give_up()
        for checkpoint in self._checkpoints.values():
            checkpoint.close()

    def _setting(self, name: str) -> int | float:
        value: int | float = server_value(self._image(), self._static, name)
        return value

    # -- which log ----------------------------------------------------------------------------------------------

    def _wait(self) -> None:
        self._env.call_later(int(self._setting("log.cleaner.backoff.ms")), self._find_log_to_clean)

    def _find_log_to_clean(self) -> None:
        if self._stopped:
            return
        found = self._dirtiest()
        if found is None:
            self._wait()
        else:
            self._begin(*found)

    def _dirtiest(self) -> tuple[Partition, LogToClean] | None:
        best: tuple[Partition, LogToClean] | None = None
        wall_ms = self._env.wall_ms()
        for partition in self._replicas.all_partitions():
            if not partition.log.config.compact or partition.offline or partition.key in self._uncleanable:
                continue
            try:
                plan = plan_of(partition.log, partition.last_stable_offset, wall_ms)
            except OSError as error:
                self._replicas.storage_failed(partition, error)
                continue
            if plan is None or not is_due(plan, partition.log):
                continue
            if best is None or plan.dirty_ratio > best[1].dirty_ratio:
                best = partition, plan
        return best

    def _begin(self, partition: Partition, plan: LogToClean) -> None:
        capacity = keys_within(
            int(self._setting("log.cleaner.dedupe.buffer.size")), self._setting("log.cleaner.io.buffer.load.factor")
        )

        def on_replaced(remove: Callable[[], None]) -> None:
            self._env.call_later(partition.log.config.file_delete_delay_ms, lambda: self._remove(partition, remove))

        compaction = Compaction(self._env.files, partition.log, plan, capacity, self._env.wall_ms(), on_replaced)
        self._running = _Pass(partition, compaction, self._env.now_ms())
        self._slice()

    def _remove(self, partition: Partition, remove: Callable[[], None]) -> None:
        try:
            remove()
        except OSError as error:
            self._replicas.storage_failed(partition, error)

    # -- working ------------------------------------------------------------------------------------------------

    def _slice(self, failure: OSError | None = None) -> None:
        """Work for one slice. `failure`: the error of the flush that was waited for, if it failed."""
        running = self._running
        if running is None or self._stopped:
            return
        if running.is_obsolete:
            self._give_up()
            self._find_log_to_clean()
            return
        try:
            self._work(running, failure)
        except StopIteration:
            self._finished(running)
        except OSError as error:
            # before giving up: on a failed disk that may fail as well
            self._replicas.storage_failed(running.partition, error)
            self._give_up()
            self._wait()
        except KafkaError as error:
            self._damaged(running, error)

    def _work(self, running: _Pass, failure: OSError | None) -> None:
        """Raises StopIteration at the end of the pass."""
        if failure is not None:
            running.steps.throw(failure)
        began_ms, bytes_before = self._env.now_ms(), running.compaction.outcome.bytes_read
        for _ in range(MAX_STEPS_PER_SLICE):
            wait = next(running.steps)
            if wait is not None:
                wait(lambda error: self._resume(running, error))
                return
            if self._env.now_ms() - began_ms >= SLICE_MS:
                break
        read = running.compaction.outcome.bytes_read - bytes_before
        self._env.call_later(max(PAUSE_MS, self._pause_for(read)), lambda: self._resume(running, None))

    def _pause_for(self, bytes_read: int) -> int:
        """At most as many bytes are written as are read."""
        return int(min(2 * bytes_read * 1000 / self._setting("log.cleaner.io.max.bytes.per.second"), 60_000))

    def _resume(self, running: _Pass, failure: OSError | None) -> None:
        if running is self._running:
            self._slice(failure)

    def _finished(self, running: _Pass) -> None:
        self._running = None
        partition, outcome = running.partition, running.compaction.outcome
        self._env.log(
            "info",
            "log-compacted",
            topic=partition.topic,
            partition=partition.index,
            clean_offset=outcome.mapped_to,
            keys=outcome.keys,
            bytes_before=outcome.bytes_before,
            bytes_after=outcome.bytes_after,
            duration_ms=self._env.now_ms() - running.started_ms,
        )
        self._write_checkpoint(partition)
        self._find_log_to_clean()

    def _write_checkpoint(self, partition: Partition) -> None:
        directory = self._replicas.directory_of(partition)
        checkpoint = None if directory is None else self._checkpoints.get(directory.path)
        if directory is None or checkpoint is None:
            return

        def durable(error: OSError | None, directory: LogDirectory = directory) -> None:
            if error is not None:
                self._replicas.directories.failed(directory, error)

        try:
            checkpoint.write(durable)
        except OSError as error:
            self._replicas.directories.failed(directory, error)

    def _damaged(self, running: _Pass, error: KafkaError) -> None:
        partition = running.partition
        self._give_up()
        self._uncleanable.add(partition.key)
        self._env.log("error", "log-uncleanable", topic=partition.topic, partition=partition.index, error=error.message)
        self._wait()

    def _give_up(self) -> None:
        running, self._running = self._running, None
        if running is None:
            return
        try:
            running.compaction.give_up()
        except OSError as error:
            self._replicas.storage_failed(running.partition, error)
