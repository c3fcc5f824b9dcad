"""Keeps what a recovery discards: a follower copies records that a lossy election gave up, before it truncates them.

    a leader elected on a lossy basis (metadata/basis.py) began leader epoch E
    a follower whose last epoch is older than E has not followed that leader yet: the records that it must truncate
    are those that the election of E gave up
    a truncation in a later divergence under the same leader, or after a clean election: nothing to keep

There is one copy per partition; up to `COPIES_AT_ONCE` run at the same time, the others wait. A copy shares the event
loop with all other work (`storage/discarded.py` has its steps). Then the log is truncated:

    waiting --> copying --complete, no more room, or an OSError--> flushed --> truncated
       |           |                                                  |
       +-----------+-------------------TIME_LIMIT_MS------------------+--> truncated at once; the records copied so far
                                                                           are flushed afterwards

So a copy never delays a truncation by more than TIME_LIMIT_MS: availability is more important than a complete copy.
Records that are not kept are logged with their offsets.
"""

from __future__ import annotations

from collections.abc import Callable

from heirlog.broker.partition import Partition
from heirlog.env import Cancel, Env
from heirlog.metadata.config_def import StaticConfig
from heirlog.protocol.errors import KafkaError
from heirlog.storage.discarded import DiscardedCopy, DiscardedLimits, DiscardedStore
from heirlog.storage.log_directory import LogDirectory

COPIES_AT_ONCE = 4
TIME_LIMIT_MS = 60_000
"""Longest time between the request to truncate and the truncation."""


class DiscardedRecordsManager:
    """directory_of: the directory of a partition's log; None if the partition is no longer on this broker."""

    def __init__(
        self, env: Env, static: StaticConfig, directory_of: Callable[[Partition], LogDirectory | None]
    ) -> None:
        self._env = env
        self._directory_of = directory_of
        self._enabled = bool(static["heirlog.discarded.enable"])
        self._limits = DiscardedLimits(
            max_bytes=static["heirlog.discarded.max.bytes"],
            min_free_bytes=static["heirlog.discarded.min.free.bytes"],
            retention_ms=static["heirlog.discarded.retention.ms"],
        )
        self._stores: dict[str, DiscardedStore] = {}
        self._waiting: dict[Partition, _Job] = {}
        self._running: dict[Partition, _Job] = {}
        self.records_discarded = 0
        """Records (counted as offsets) that this broker has truncated because a leader elected on a lossy basis did not
        have them."""

    def must_keep(self, partition: Partition, offset: int) -> bool:
        """Whether a truncation to `offset` removes records that should be copied first."""
        return self._enabled and partition.precedes_lossy_election and offset < partition.log.log_end_offset

    def keep(self, partition: Partition, offset: int, truncate: Callable[[], None]) -> None:
        """Copy the records from `offset` on, then call `truncate`: in a later turn, and not after `forget`."""
        self.forget(partition)
        job = self._waiting[partition] = _Job(self._env, partition, offset, truncate, self._job_done)
        job.start_timer()
        self._start_waiting_jobs()

    def count(self, partition: Partition, offset: int) -> None:
        """Count the records from `offset` on, which are about to be truncated."""
        if partition.precedes_lossy_election:
            log = partition.log
            self.records_discarded += max(0, log.log_end_offset - max(offset, log.log_start_offset))

    def forget(self, partition: Partition) -> None:
        """The truncation is cancelled: the partition has another leader or none, or left this broker."""
        job = self._waiting.pop(partition, None) or self._running.pop(partition, None)
        if job is not None:
            job.drop()
            self._start_waiting_jobs()

    def trim(self, directory: LogDirectory) -> None:
        """Delete copies that are too old, or that exceed the space limit. Called periodically. Raises OSError."""
        self._store_of(directory).trim(self._env.wall_ms())

    def _store_of(self, directory: LogDirectory) -> DiscardedStore:
        store = self._stores.get(directory.path)
        if store is None:
            store = self._stores[directory.path] = DiscardedStore(
                self._env.files,
                directory.path,
                lambda: [log.dir_path for _, log in sorted(directory.logs.items())],
                self._limits,
            )
        return store

    def _start_waiting_jobs(self) -> None:
        while self._waiting and len(self._running) < COPIES_AT_ONCE:
            partition = next(iter(self._waiting))
            job = self._running[partition] = self._waiting.pop(partition)
            directory = self._directory_of(partition)
            job.begin(None if directory is None else self._store_of(directory))

    def _job_done(self, job: _Job) -> None:
        """The job's truncation may be done."""
        self._waiting.pop(job.partition, None)
        self._running.pop(job.partition, None)
        job.truncate()
        self._start_waiting_jobs()


class _Job:
    """A partition's truncation that waits for its copy. Ends once, by `_end` or by `drop`."""

    def __init__(
        self,
        env: Env,
        partition: Partition,
        offset: int,
        truncate: Callable[[], None],
        on_done: Callable[[_Job], None],
    ) -> None:
        self._env = env
        self.partition = partition
        self.truncate = truncate
        self._leader_epoch = partition.doubts.lossy_epoch
        self._offset = offset
        self._on_done = on_done
        self._copy: DiscardedCopy | None = None
        self._is_finishing = False
        self._is_done = False
        self._cancel_limit: Cancel | None = None

    def start_timer(self) -> None:
        self._cancel_limit = self._env.call_later(TIME_LIMIT_MS, self._timed_out)

    def begin(self, store: DiscardedStore | None) -> None:
        if store is not None:
            self._copy = DiscardedCopy(self._env.files, self.partition.log, self._offset, self._leader_epoch, store)
        # the caller that requested the truncation is still running
        self._env.call_later(0, self._begin_copy)

    def _begin_copy(self) -> None:
        if self._is_done:
            return
        try:
            if self._copy is not None and self._copy.begin():
                self._step()
            else:
                self._end(None)
        except (KafkaError, OSError) as error:
            self._failed(error)

    def _step(self) -> None:
        copy = self._copy
        if self._is_done or copy is None:
            return
        try:
            if copy.step():
                self._env.call_later(0, self._step)
            else:
                self._is_finishing = True
                copy.finish(self._finished)
        except (KafkaError, OSError) as error:
            self._failed(error)

    def _finished(self, error: OSError | None) -> None:
        if error is not None:
            self._failed(error)
        else:
            self._end(None)

    def _failed(self, error: Exception) -> None:
        if self._copy is not None:
            self._copy.drop()
        self._end(error)

    def _timed_out(self) -> None:
        copy = self._copy
        if copy is not None and not self._is_finishing:
            self._is_finishing = True
            try:
                copy.finish(_nothing)
            except OSError:
                copy.drop()
        self._end(TimeoutError(f"not done within {TIME_LIMIT_MS} ms"))

    def drop(self) -> None:
        self._close()
        if self._copy is not None and not self._is_finishing:
            self._copy.drop()

    def _end(self, error: Exception | None) -> None:
        if self._is_done:
            return
        self._close()
        self._log_result(error)
        self._on_done(self)

    def _close(self) -> None:
        self._is_done = True
        if self._cancel_limit is not None:
            self._cancel_limit()

    def _log_result(self, error: Exception | None) -> None:
        copy, end_offset = self._copy, self.partition.log.log_end_offset
        kept_upto = self._offset if copy is None or error is not None else copy.next_offset
        is_whole = kept_upto >= end_offset
        level, event = ("info", "discarded-records-kept") if is_whole else ("warning", "discarded-records-not-kept")
        self._env.log(
            level,
            event,
            topic=self.partition.topic,
            partition=self.partition.index,
            leader_epoch=self._leader_epoch,
            offset=self._offset,
            kept_upto=kept_upto,
            end_offset=end_offset,
            path="" if copy is None else copy.path,
            error="" if error is None else str(error),
        )


def _nothing(error: OSError | None) -> None:
    pass
