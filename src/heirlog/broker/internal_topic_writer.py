"""Writes the state of an internal topic's partition: a change takes effect once its record is below the high watermark.

    append --refused--> answered with the error; nothing changes
      |
      v
    queued, in the log's order --the high watermark passes it--> applied, then answered
      |                  |
      |                  +--the time limit--> answered with REQUEST_TIMED_OUT; the change still happens later
      v
    closed: the leader epoch is over, or the disk failed: answered with NOT_LEADER_OR_FOLLOWER, and never applied here

The next leader applies what is in its log (`internal_topic_loader.py`), so it has exactly the state for which this one
has answered, and perhaps some changes without an answer.

Trap: an answer may cause the client's next request, which may append, within the loop that processes the queue.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from heirlog.broker.partition import ALL_IN_SYNC, Partition, ReplicaRole
from heirlog.broker.replica_manager import ReplicaManager
from heirlog.env import Env
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.transaction_marker import TransactionMarker
from heirlog.protocol.types import PartitionKey
from heirlog.rate_limited_log import RateLimitedLog
from heirlog.storage.log import LogAppendInfo
from heirlog.storage.verification import VerificationGuard

WRITES_MAX = 100_000
"""Limit of writes that wait for the high watermark. One more gets NOT_ENOUGH_REPLICAS, and is not written."""
AS_COORDINATOR = {
    ErrorCode.NONE: ErrorCode.NONE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
}
"""The error that a coordinator's client gets if its change was not written, or is not committed in time."""


@dataclass(slots=True)
class _Write:
    end_offset: int
    deadline_ms: int
    apply: Callable[[], None]
    answer: Callable[[ErrorCode], None]


def nothing(code: ErrorCode = ErrorCode.NONE) -> None:
    """A change or an answer that has no effect."""


def takes_effect(end_offset: int, high_watermark: int) -> bool:
    """Guard 24: what a coordinator writes takes effect once it is below the high watermark.

    Without it markers of an outcome are written that the next coordinator does not know, and may decide otherwise.
    """
    return end_offset <= high_watermark


class InternalTopicWriter:
    """Writes one partition in its leader epoch at creation.

    on_closed: called when the leader epoch is over or the disk failed, before the waiting requests are answered. The
    object is also the one operation that all its writes share in the purgatory of produce requests.
    """

    def __init__(
        self,
        env: Env,
        replicas: ReplicaManager,
        partition: Partition,
        *,
        timeout_ms: int,
        on_closed: Callable[[], None],
    ) -> None:
        self.number = -1
        self.leader_epoch = partition.leader_epoch
        self._closed = False
        self._env = env
        self._log_limited = RateLimitedLog(env.log, env.now_ms)
        self._replicas = replicas
        self._partition = partition
        self._timeout_ms = timeout_ms
        self._on_closed = on_closed
        self._queue: deque[_Write] = deque()
        self._settling = False
        self._watching = False

    @property
    def leads(self) -> bool:
        """Whether this broker still leads the partition in the leader epoch of this writer."""
        partition = self._partition
        return partition.role is ReplicaRole.LEADER and partition.leader_epoch == self.leader_epoch and not self._closed

    def append(
        self,
        batch: bytearray,
        apply: Callable[[], None],
        answer: Callable[[ErrorCode], None],
        guard: VerificationGuard | None = None,
        appended: Callable[[], None] = nothing,
    ) -> None:
        """Write one batch. `apply` runs once it is committed; `answer` then, or earlier with an error of the log.

        guard: of a batch that is part of a transaction (`storage/verification.py`). appended: runs when the batch is in
        the log, before anything else can happen; not if it is refused.
        """

        def write(wall_ms: int, now_ms: int) -> LogAppendInfo:
            return self._partition.append(batch, ALL_IN_SYNC, wall_ms, now_ms, guard, of_coordinator=True)

        self._write(write, apply, answer, appended)

    def append_marker(
        self,
        marker: TransactionMarker,
        producer: tuple[int, int],
        transaction_version: int,
        apply: Callable[[], None],
        answer: Callable[[ErrorCode], None],
    ) -> None:
        """Write the marker that ends a producer's transaction; see `append`. producer: its id and epoch."""

        def write(wall_ms: int, now_ms: int) -> LogAppendInfo:
            return self._partition.append_marker(marker, *producer, transaction_version, wall_ms, now_ms)

        self._write(write, apply, answer)

    def _write(
        self,
        write: Callable[[int, int], LogAppendInfo],
        apply: Callable[[], None],
        answer: Callable[[ErrorCode], None],
        appended: Callable[[], None] = nothing,
    ) -> None:
        if not self.leads:
            answer(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return
        if len(self._queue) >= WRITES_MAX:
            answer(ErrorCode.NOT_ENOUGH_REPLICAS)
            return
        partition = self._partition
        wall_ms = self._env.wall_ms()
        watermark = partition.high_watermark
        try:
            written = write(wall_ms, self._env.now_ms())
        except KafkaError as error:
            self._log_limited(
                "warning",
                "internal-record-refused",
                topic=partition.topic,
                partition=partition.index,
                error=error.code.name,
                why=str(error),
            )
            answer(error.code)
            return
        except OSError as error:
            self._replicas.storage_failed(partition, error)
            answer(ErrorCode.KAFKA_STORAGE_ERROR)
            return
        self._queue.append(_Write(written.last_offset + 1, self._env.now_ms() + self._timeout_ms, apply, answer))
        appended()
        self._replicas.log_grew(partition, watermark, wall_ms)
        if self.leads:
            self._settle()
        else:
            # the disk failed in a flush that was due
            self.close()

    def after_writes(self, answer: Callable[[ErrorCode], None]) -> None:
        """Answer once everything that is written by now is committed."""
        if not self._queue:
            answer(ErrorCode.NONE)
            return
        if len(self._queue) >= WRITES_MAX:
            answer(ErrorCode.NOT_ENOUGH_REPLICAS)
            return
        last = self._queue[-1]
        self._queue.append(_Write(last.end_offset, self._env.now_ms() + self._timeout_ms, nothing, answer))

    def _settle(self) -> None:
        """Process the writes that are below the high watermark."""
        if self._settling:
            return
        self._settling = True
        while self._queue and takes_effect(self._queue[0].end_offset, self._partition.high_watermark) and self.leads:
            write = self._queue.popleft()
            write.apply()
            write.answer(ErrorCode.NONE)
        self._settling = False
        if self._queue:
            self._watch()

    # waiting for the high watermark

    @property
    def keys(self) -> tuple[PartitionKey, ...]:
        return (self._partition.key,)

    def _watch(self) -> None:
        if not self._watching and not self._closed:
            self._watching = True
            self._replicas.delayed.produce.watch(self, self._timeout_ms)

    def try_complete(self, key: PartitionKey) -> bool:
        if not self.leads:
            self.close()
            return True
        self._settle()
        if self._queue:
            return False
        self._watching = False
        return True

    def on_expiration(self) -> None:
        """Some answers timed out; the writes that they wait for still take effect."""
        self._watching = False
        now_ms = self._env.now_ms()
        overdue = []
        for write in self._queue:
            if write.deadline_ms <= now_ms and write.answer is not nothing:
                overdue.append(write.answer)
                write.answer = nothing
        for answer in overdue:
            answer(ErrorCode.REQUEST_TIMED_OUT)
        if self._queue:
            self._watch()

    def close(self) -> None:
        """This broker does not write the partition any more: drop everything, and answer the waiting requests."""
        if self._closed:
            return
        self._closed = True
        if self._watching:
            self._replicas.delayed.produce.remove(self)
            self._watching = False
        writes, self._queue = self._queue, deque()
        self._on_closed()
        for write in writes:
            write.answer(ErrorCode.NOT_LEADER_OR_FOLLOWER)
