"""The groups of one partition of `__consumer_offsets`, while this broker leads it.

    loading ---- everything up to the start of this leader epoch is read, and below the high watermark ---> loaded
       \\______________________ the leader epoch is over, the disk failed, the broker stops ______________________/
                                                    |
                                                    v
                                closed: all state is dropped, waiting requests get NOT_COORDINATOR

One rule applies to loading and to writing: state changes when its record is below the high watermark, in the log's
order. So a later coordinator loads exactly the state for which this one has answered, and nothing that was answered can
be missing there.

* `append` writes a batch, and queues its change and its answer. The queue is processed from its head as the high
  watermark moves. An answer may time out (`offsets.commit.timeout.ms`); the change still happens, because its record is
  in the log.
* While the partition is loading (`broker/internal_topic_loader.py`), clients get COORDINATOR_LOAD_IN_PROGRESS.

Trap: an answer may cause the client's next request, which may append, within the loop that processes the queue.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from heirlog.broker.groups.group import ClassicGroup, ClassicGroupMember, MemoryUse
from heirlog.broker.groups.membership import GroupLimits, Membership, join_refusal
from heirlog.broker.groups.offset_expiry import expired_offsets
from heirlog.broker.groups.offsets import OffsetAndMetadata, TopicPartition
from heirlog.broker.groups.records import KeyValue, StoredGroup, StoredOffset, group_record, offset_record, read_record
from heirlog.broker.internal_topic_loader import InternalTopicLoader
from heirlog.broker.partition import ALL_IN_SYNC, Partition, ReplicaRole
from heirlog.broker.replica_manager import ReplicaManager
from heirlog.env import Cancel, Env
from heirlog.protocol.batch import Record, encode_batch
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import SyncGroupResponse
from heirlog.protocol.primitives import Malformed
from heirlog.protocol.types import PartitionKey

RECORDS_PER_BATCH = 500
"""Limit for deletions of expired offsets; a client's commit is always one batch."""
WRITES_MAX = 100_000
"""Limit of writes that wait for the high watermark. One more is refused: COORDINATOR_NOT_AVAILABLE."""

_AS_COORDINATOR = {
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
}
"""The error that a client of the coordinator gets if its record could not be appended."""


@dataclass(frozen=True, slots=True)
class GroupCoordinatorConfig:
    limits: GroupLimits
    commit_timeout_ms: int
    """offsets.commit.timeout.ms"""
    compression: int
    """offsets.topic.compression.codec"""
    retention_ms: int
    """offsets.retention.minutes"""
    retention_check_ms: int
    """offsets.retention.check.interval.ms"""


@dataclass(slots=True)
class _Write:
    end_offset: int
    deadline_ms: int
    apply: Callable[[], None]
    answer: Callable[[ErrorCode], None]


def _nothing(code: ErrorCode = ErrorCode.NONE) -> None:
    pass


class GroupCoordinatorShard:
    """Also the one operation that all its writes share in the purgatory of produce requests."""

    def __init__(
        self,
        env: Env,
        replicas: ReplicaManager,
        partition: Partition,
        config: GroupCoordinatorConfig,
        has_room: Callable[[int], bool],
    ) -> None:
        self.groups: dict[str, ClassicGroup] = {}
        self.memory_use = MemoryUse()
        self.loaded = False
        self.closed = False
        self.leader_epoch = partition.leader_epoch
        self.membership = Membership(env, config.limits, self._store_group, has_room, self.forget_if_no_record)
        self.number = -1
        self._env = env
        self._replicas = replicas
        self._partition = partition
        self._config = config
        self._replay = InternalTopicLoader(
            env,
            replicas,
            partition,
            on_record=self._take_over,
            on_unreadable=self._unreadable,
            on_done=self._loading_is_done,
        )
        self._queue: deque[_Write] = deque()
        self._settling = False
        self._watching = False
        self._cancel_sweep: Cancel | None = None

    @property
    def leads(self) -> bool:
        """Whether this broker still leads the partition in the epoch for which this shard was created."""
        partition = self._partition
        return partition.role is ReplicaRole.LEADER and partition.leader_epoch == self.leader_epoch and not self.closed

    # -- loading ------------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Start loading; `loaded` is False until that is done."""
        self._replay.read()

    def _take_over(self, record: Record) -> None:
        try:
            stored = read_record(record.key, record.value)
        except Malformed as error:
            self._unreadable(record.offset, error)
            return
        if isinstance(stored, StoredOffset):
            self.set_offset(stored.group, stored.partition, stored.value)
        elif isinstance(stored, StoredGroup) and stored.value is not None:
            self.group_or_new(stored.group).load(stored.value)
        elif isinstance(stored, StoredGroup):
            self._forget_group(stored.group)

    def _unreadable(self, offset: int, error: Exception) -> None:
        """Skip a record that cannot be read: it must not block every group of the partition."""
        self._env.log(
            "error", "group-record-unreadable", partition=self._partition.index, offset=offset, error=str(error)
        )

    def _loading_is_done(self) -> None:
        self.loaded = True
        for group_id, group in list(self.groups.items()):
            if group.is_unused and group.protocol_type is None:
                del self.groups[group_id]
            else:
                self.membership.sessions.begin(group)
        self._cancel_sweep = self._env.call_later(self._config.retention_check_ms, self._sweep)
        self._env.log(
            "info",
            "groups-loaded",
            partition=self._partition.index,
            leader_epoch=self.leader_epoch,
            groups=len(self.groups),
        )

    # -- state --------------------------------------------------------------------------------------------------

    def group_or_new(self, group_id: str) -> ClassicGroup:
        group = self.groups.get(group_id)
        if group is None:
            group = self.groups[group_id] = ClassicGroup(group_id, memory_use=self.memory_use)
        return group

    def forget_if_no_record(self, group: ClassicGroup) -> None:
        if group.has_no_record and self.groups.get(group.group_id) is group:
            del self.groups[group.group_id]

    def set_offset(self, group_id: str, partition: TopicPartition, committed: OffsetAndMetadata | None) -> None:
        """Apply a committed offset record."""
        if committed is not None:
            self.group_or_new(group_id).offsets.committed[partition] = committed
        elif group_id in self.groups:
            self.groups[group_id].offsets.committed.pop(partition, None)

    def _forget_group(self, group_id: str) -> None:
        """Apply a group's tombstone. Its offsets have tombstones of their own."""
        group = self.groups.get(group_id)
        if group is None or (self.loaded and not group.is_empty):
            # a member joined before the tombstone was committed: the next generation writes the group again
            return
        group.mark_dead(self._env.wall_ms(), _refuse_as_moved)
        del self.groups[group_id]
        if group.offsets.committed:
            self.group_or_new(group_id).offsets = group.offsets

    # -- writing ------------------------------------------------------------------------------------------------

    def _append(
        self, records: Sequence[KeyValue], apply: Callable[[], None], answer: Callable[[ErrorCode], None]
    ) -> None:
        """Write one batch. `apply` runs once it is committed; `answer` then, or earlier with an error or a timeout."""
        if not self.leads:
            answer(ErrorCode.NOT_COORDINATOR)
            return
        if len(self._queue) >= WRITES_MAX:
            answer(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return
        partition = self._partition
        wall_ms = self._env.wall_ms()
        batch = encode_batch(
            [(key, value, (), wall_ms) for key, value in records], compression=self._config.compression
        )
        watermark = partition.high_watermark
        try:
            appended = partition.append(batch, ALL_IN_SYNC, wall_ms, self._env.now_ms())
        except KafkaError as error:
            self._env.log(
                "warning", "group-record-refused", partition=partition.index, error=error.code.name, why=str(error)
            )
            answer(_AS_COORDINATOR.get(error.code, ErrorCode.UNKNOWN_SERVER_ERROR))
            return
        except OSError as error:
            self._replicas.storage_failed(partition, error)
            answer(ErrorCode.NOT_COORDINATOR)
            return
        self._queue.append(
            _Write(appended.last_offset + 1, self._env.now_ms() + self._config.commit_timeout_ms, apply, answer)
        )
        self._replicas.log_grew(partition, watermark, wall_ms)
        if self.leads:
            self._settle()
        else:
            # the disk failed in a flush that was due
            self.close()

    def _settle(self) -> None:
        """Process the writes that are below the high watermark."""
        if self._settling:
            return
        self._settling = True
        while self._queue and self._queue[0].end_offset <= self._partition.high_watermark and self.leads:
            write = self._queue.popleft()
            write.apply()
            write.answer(ErrorCode.NONE)
        self._settling = False
        if self._queue:
            self._watch()

    def after_writes(self, answer: Callable[[ErrorCode], None]) -> None:
        """Answer once everything that is written by now is committed."""
        if not self._queue:
            answer(ErrorCode.NONE)
            return
        if len(self._queue) >= WRITES_MAX:
            answer(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return
        last = self._queue[-1]
        self._queue.append(
            _Write(last.end_offset, self._env.now_ms() + self._config.commit_timeout_ms, _nothing, answer)
        )

    def commit_offsets(
        self,
        group_id: str,
        offsets: dict[TopicPartition, OffsetAndMetadata | None],
        answer: Callable[[ErrorCode], None],
    ) -> None:
        """Commit offsets in one batch; None deletes an offset."""

        def apply() -> None:
            for partition, committed in offsets.items():
                self.set_offset(group_id, partition, committed)

        self._append([offset_record(group_id, p, committed) for p, committed in offsets.items()], apply, answer)

    def delete_group(self, group: ClassicGroup, answer: Callable[[ErrorCode], None]) -> None:
        """Delete an empty group with its offsets."""
        self._forget_offsets(group, list(group.offsets.committed))

        group.records_written = number = group.records_written + 1

        def apply() -> None:
            # a record that was written after the tombstone stays
            if self.groups.get(group.group_id) is group and group.records_written == number:
                self._forget_group(group.group_id)

        if group.protocol_type is None and group.generation == 0:
            # there is no record of the group: it exists only through its offsets
            self.after_writes(lambda code: self._deleted(code, apply, answer))
        else:
            self._append([group_record(group.group_id, None)], apply, answer)

    def _deleted(self, code: ErrorCode, apply: Callable[[], None], answer: Callable[[ErrorCode], None]) -> None:
        if code is ErrorCode.NONE:
            apply()
        answer(code)

    def _store_group(
        self, group: ClassicGroup, assignments: dict[str, bytes], done: Callable[[ErrorCode], None]
    ) -> None:
        def answer(code: ErrorCode) -> None:
            done(ErrorCode.UNKNOWN_SERVER_ERROR if code is ErrorCode.INVALID_COMMIT_OFFSET_SIZE else code)

        group.records_written += 1
        self._append([group_record(group.group_id, group.as_record(assignments))], _nothing, answer)

    # -- forgetting ---------------------------------------------------------------------------------------------

    def _sweep(self) -> None:
        """Delete expired offsets and unused groups, every offsets.retention.check.interval.ms."""
        if not self.leads:
            return
        wall_ms = self._env.wall_ms()
        for group in list(self.groups.values()):
            expired = expired_offsets(group, wall_ms, self._config.retention_ms)
            if group.is_empty and not group.pending_members and len(expired) == len(group.offsets.committed):
                self.delete_group(group, _nothing)
            else:
                self._forget_offsets(group, expired)
        self._cancel_sweep = self._env.call_later(self._config.retention_check_ms, self._sweep)

    def forget_topics(self, topics: frozenset[str]) -> None:
        """Delete the offsets of deleted topics: a new topic of the same name is a different one."""
        if self.loaded:
            for group in list(self.groups.values()):
                self._forget_offsets(group, group.offsets.of_topics(topics))

    def _forget_offsets(self, group: ClassicGroup, partitions: list[TopicPartition]) -> None:
        for start in range(0, len(partitions), RECORDS_PER_BATCH):
            chunk: dict[TopicPartition, OffsetAndMetadata | None] = dict.fromkeys(
                partitions[start : start + RECORDS_PER_BATCH]
            )
            self.commit_offsets(group.group_id, chunk, _nothing)

    # -- waiting for the watermark ------------------------------------------------------------------------------

    @property
    def keys(self) -> tuple[PartitionKey, ...]:
        return (self._partition.key,)

    def _watch(self) -> None:
        if not self._watching and not self.closed:
            self._watching = True
            self._replicas.delayed.produce.watch(self, self._config.commit_timeout_ms)

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
            if write.deadline_ms <= now_ms and write.answer is not _nothing:
                overdue.append(write.answer)
                write.answer = _nothing
        for answer in overdue:
            answer(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if self._queue:
            self._watch()

    # -- the end ------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """This broker is not the coordinator any more: drop everything, and answer the waiting requests."""
        if self.closed:
            return
        self.closed = True
        self._replay.stop()
        if self._cancel_sweep is not None:
            self._cancel_sweep()
        if self._watching:
            self._replicas.delayed.produce.remove(self)
            self._watching = False
        groups, self.groups = self.groups, {}
        writes, self._queue = self._queue, deque()
        for group in groups.values():
            group.mark_dead(self._env.wall_ms(), _refuse_as_moved)
        for write in writes:
            write.answer(ErrorCode.NOT_COORDINATOR)


def _refuse_as_moved(member: ClassicGroupMember) -> None:
    joining, member.joining = member.joining, None
    if joining is not None:
        joining.complete(join_refusal(ErrorCode.NOT_COORDINATOR, member.joining_version, member.member_id))
    syncing, member.syncing = member.syncing, None
    if syncing is not None:
        syncing.complete(SyncGroupResponse(error_code=ErrorCode.NOT_COORDINATOR))
