"""The broker's periodic tasks.

    every replica.lag.time.max.ms / 2                        members of the ISR that fell behind
    every replica.high.watermark.checkpoint.interval.ms      the checkpoint files of each log directory
    every log.retention.check.interval.ms                    roll by age, deletion of old segments, and of copies that a
                                                             recovery has kept
    every producer.id.expiration.check.interval.ms           producers that have been idle for too long
    every second (or log.flush.scheduler.interval.ms)        flush by age, where flush.ms asks for it
    when there is time (`cleaner.py`)                        compaction

If a disk fails during a task, the task reports it to the replica manager and continues with the next partition.
"""

from __future__ import annotations

from collections.abc import Callable

from heirlog.broker.cleaner import Cleaner
from heirlog.broker.partition import Partition
from heirlog.broker.replica_manager import ReplicaManager
from heirlog.env import Env
from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.image import Image
from heirlog.storage.config import NEVER

FLUSH_CHECK_MAX_MS = 1000


class PeriodicTasks:
    def __init__(self, env: Env, static: StaticConfig, replicas: ReplicaManager, image: Callable[[], Image]) -> None:
        self._env = env
        self._static = static
        self._replicas = replicas
        self._started = False
        self._stopped = False
        self._cleaner = Cleaner(env, static, replicas, image)

    def start(self) -> None:
        """A second call changes nothing: a broker may register again."""
        if self._started:
            return
        self._started = True
        static = self._static
        self._every(max(1, static.int("replica.lag.time.max.ms") // 2), self._replicas.check_isr_lag)
        self._every(static.int("replica.high.watermark.checkpoint.interval.ms"), self.checkpoint)
        self._every(static.int("log.retention.check.interval.ms"), self.enforce_retention)
        self._every(static.int("producer.id.expiration.check.interval.ms"), self.expire_producers)
        self._every(min(static.int("log.flush.scheduler.interval.ms"), FLUSH_CHECK_MAX_MS), self.flush_by_age)
        self._cleaner.start()

    def stop(self) -> None:
        self._stopped = True
        self._cleaner.stop()

    def _every(self, interval_ms: int, task: Callable[[], None]) -> None:
        def run() -> None:
            if not self._stopped:
                task()
                self._env.call_later(interval_ms, run)

        self._env.call_later(interval_ms, run)

    def checkpoint(self) -> None:
        """Write high watermark, recovery point and log start of every partition to the checkpoint files."""
        watermarks = self.high_watermarks()
        for directory in self._replicas.directories.online:
            try:
                directory.write_checkpoints(watermarks)
            except OSError as error:
                self._replicas.directories.failed(directory, error)

    def high_watermarks(self) -> dict[tuple[str, int], int]:
        return {(p.topic, p.index): p.high_watermark for p in self._replicas.all_partitions()}

    def enforce_retention(self) -> None:
        wall_ms = self._env.wall_ms()

        def enforce(partition: Partition) -> None:
            partition.log.maybe_roll(wall_ms)
            partition.log.delete_old_segments(wall_ms, partition.high_watermark)

        self._for_each(enforce)
        for directory in self._replicas.directories.online:
            try:
                self._replicas.discarded_records.trim(directory)
            except OSError as error:
                self._replicas.directories.failed(directory, error)

    def expire_producers(self) -> None:
        wall_ms = self._env.wall_ms()
        for partition in self._replicas.all_partitions():
            partition.log.producers.remove_expired(wall_ms, partition.log.config.producer_id_expiration_ms)

    def flush_by_age(self) -> None:
        """`flush.ms`: flush records at most that much later than their append, plus the interval of this check."""
        wall_ms = self._env.wall_ms()
        # this runs once a second: if flush.ms is never, the default, it must not cost a call per partition
        for partition in [p for p in self._replicas.all_partitions() if p.log.config.flush_ms < NEVER]:
            if not partition.offline:
                self._replicas.flush_if_due(partition, wall_ms)

    def _for_each(self, task: Callable[[Partition], None]) -> None:
        # iterate over a copy: a failing disk removes partitions from the manager
        for partition in self._replicas.all_partitions():
            if partition.offline:
                continue
            try:
                task(partition)
            except OSError as error:
                self._replicas.storage_failed(partition, error)
