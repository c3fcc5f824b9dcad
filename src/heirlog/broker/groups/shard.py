"""The groups of one partition of `__consumer_offsets`, while this broker leads it.

    loading ---- everything up to the start of this leader epoch is read, and below the high watermark ---> loaded
       \\______________________ the leader epoch is over, the disk failed, the broker stops ______________________/
                                                    |
                                                    v
                                closed: all state is dropped, waiting requests get NOT_COORDINATOR

One rule applies to loading and to writing: state changes when its record is below the high watermark, in the log's
order. So a later coordinator loads exactly the state for which this one has answered, and nothing that was answered can
be missing there. Groups of the consumer protocol have a second state, which is ahead (`consumer/protocol.py`); their
answers wait in the same way.

* A change and its answer wait for the high watermark (`broker/internal_topic_writer.py`). An answer may time out
  (`offsets.commit.timeout.ms`); the change still happens, because its record is in the log.
* While the partition is loading (`broker/internal_topic_loader.py`), clients get COORDINATOR_LOAD_IN_PROGRESS.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from heirlog.broker.groups.activity import GroupActivity
from heirlog.broker.groups.consumer.classic_members import ClassicMembers
from heirlog.broker.groups.consumer.conversion import (
    DOWNGRADES,
    UPGRADES,
    as_classic,
    may_become_classic,
    upgrade_records,
)
from heirlog.broker.groups.consumer.group import ConsumerGroup
from heirlog.broker.groups.consumer.heartbeats import group_tombstones
from heirlog.broker.groups.consumer.protocol import (
    ConsumerGroupConfig,
    ConsumerGroupProtocol,
    GroupTimes,
    heartbeat_refusal,
)
from heirlog.broker.groups.consumer.records import ConsumerGroupRecord, GroupEpoch, is_tombstone, write_consumer_record
from heirlog.broker.groups.consumer.values import JOINING_EPOCH
from heirlog.broker.groups.group import ClassicGroup, ClassicGroupMember, MemoryUse
from heirlog.broker.groups.membership import GroupLimits, Membership, join_refusal
from heirlog.broker.groups.offset_expiry import expired_offsets
from heirlog.broker.groups.offsets import OffsetAndMetadata, TopicPartition
from heirlog.broker.groups.records import KeyValue, StoredGroup, StoredOffset, group_record, offset_record, read_record
from heirlog.broker.groups.share.group import ShareGroup
from heirlog.broker.groups.share.protocol import ShareGroupConfig, ShareGroups, share_refusal
from heirlog.broker.groups.share.records import ShareGroupRecord
from heirlog.broker.groups.share.state_requests import StateRequests
from heirlog.broker.groups.transactional_offsets import TransactionalOffsets
from heirlog.broker.internal_topic_loader import InternalTopicLoader
from heirlog.broker.internal_topic_writer import AS_COORDINATOR, InternalTopicWriter, nothing
from heirlog.broker.partition import Partition
from heirlog.broker.replica_manager import ReplicaManager
from heirlog.context import Context
from heirlog.env import Cancel, Env
from heirlog.metadata.image import Image
from heirlog.pending import Pending
from heirlog.protocol.batch import BatchHeader, Record, encode_batch
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    JoinGroupRequest,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    SyncGroupResponse,
)
from heirlog.protocol.primitives import Malformed
from heirlog.protocol.transaction_marker import TransactionMarker
from heirlog.storage.verification import VerificationGuard

Group: TypeAlias = ClassicGroup | ConsumerGroup

RECORDS_PER_BATCH = 500
"""Limit for deletions of expired offsets; a client's commit is always one batch."""
_AS_COORDINATOR = {
    **AS_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
}
"""The error that a client of the coordinator gets if its record could not be appended."""


@dataclass(frozen=True, slots=True)
class GroupCoordinatorConfig:
    limits: GroupLimits
    consumer: ConsumerGroupConfig
    share: ShareGroupConfig
    commit_timeout_ms: int
    """offsets.commit.timeout.ms"""
    compression: int
    """offsets.topic.compression.codec"""
    retention_ms: int
    """offsets.retention.minutes"""
    retention_check_ms: int
    """offsets.retention.check.interval.ms"""


class GroupCoordinatorShard:
    def __init__(
        self,
        env: Env,
        replicas: ReplicaManager,
        partition: Partition,
        config: GroupCoordinatorConfig,
        has_room: Callable[[int], bool],
        image: Callable[[], Image],
        times_of: Callable[[str], GroupTimes],
        share_times_of: Callable[[str], GroupTimes],
        share_states: StateRequests,
        activity: GroupActivity,
    ) -> None:
        self.groups: dict[str, Group] = {}
        """All but share groups, which are in `shares`: an id is in one of them."""
        self.transactional = TransactionalOffsets()
        self.memory_use = MemoryUse()
        self.loaded = False
        self.activity = activity
        self.membership = Membership(
            env, config.limits, self._store_group, has_room, self.forget_if_no_record, self._completed
        )
        self.consumer = ConsumerGroupProtocol(
            env,
            config.consumer,
            image,
            times_of,
            self.write_consumer,
            self.after_writes,
            self._downgrade,
            has_room,
        )
        self.shares = ShareGroups(
            env,
            config.share,
            image,
            share_times_of,
            self._append,
            self.after_writes,
            has_room,
            self.memory_use,
            share_states,
            activity,
        )
        self.classic_members = ClassicMembers(env, image, self.consumer)
        self._image = image
        self._env = env
        self._created_ms = env.now_ms()
        self._partition = partition
        self._config = config
        self._replay = InternalTopicLoader(
            env,
            replicas,
            partition,
            on_record=self._take_over,
            on_marker=lambda producer_id, marker: self._transaction_ended(producer_id, commit=marker.commit),
            on_unreadable=self._unreadable,
            on_done=self._loading_is_done,
        )
        self._writer = InternalTopicWriter(
            env, replicas, partition, timeout_ms=config.commit_timeout_ms, on_closed=self._drop
        )
        self._cancel_sweep: Cancel | None = None

    @property
    def leads(self) -> bool:
        """Whether this broker still leads the partition in the epoch for which this shard was created."""
        return self._writer.leads

    @property
    def knows_committed(self) -> bool:
        """Whether the offsets here are those that are committed, as far as this broker knows.

        A partition below min ISR cannot be loaded to its end: nothing is committed until replicas return. Consumers may
        start meanwhile from what was committed before.
        """
        partition = self._partition
        return self.loaded or (self._replay.waits and len(partition.isr.committed) < partition.min_isr)

    def may_have_newer(self, group_id: str) -> bool:
        """Whether a commit of the group may be behind the high watermark: an earlier leader may have committed it, and
        with the offset before it a consumer would read records again."""
        if self.loaded:
            return False
        unread = self._replay.unread()
        return unread is None or any(_is_of(group_id, record) for record in unread)

    # -- loading ------------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Start loading; `loaded` is False until that is done."""
        self._replay.read()

    def _take_over(self, header: BatchHeader, record: Record) -> None:
        try:
            stored = read_record(record.key, record.value)
        except Malformed as error:
            self._unreadable(record.offset, error)
            return
        if isinstance(stored, StoredOffset) and header.is_transactional and stored.value is not None:
            self.transactional.written(header.producer_id, stored.group, stored.partition, stored.value)
        elif isinstance(stored, StoredOffset):
            self.set_offset(stored.group, stored.partition, stored.value)
        elif isinstance(stored, StoredGroup) and stored.value is not None:
            self.shares.groups.pop(stored.group, None)
            self.classic_or_new(stored.group).load(stored.value)
        elif isinstance(stored, StoredGroup):
            self._forget_group(stored.group)
        elif isinstance(stored, ShareGroupRecord):
            if stored.value is not None:
                self.groups.pop(stored.group, None)
            self.shares.load(stored)
        elif stored is not None:
            self._load_consumer(stored)

    def _load_consumer(self, record: ConsumerGroupRecord) -> None:
        """The record replaces a classic group, which was converted or deleted before it."""
        group = self.groups.get(record.group)
        if not isinstance(group, ConsumerGroup):
            if is_tombstone(record):
                return
            self.shares.groups.pop(record.group, None)
            group = ConsumerGroup.new(record.group, None if group is None else group.offsets)
            self.groups[record.group] = group
        group.load(record)

    def _unreadable(self, offset: int, error: Exception) -> None:
        """Skip a record that cannot be read: it must not block every group of the partition."""
        self._env.log(
            "error", "group-record-unreadable", partition=self._partition.index, offset=offset, error=str(error)
        )

    def _loading_is_done(self) -> None:
        self.loaded = True
        now_ms = self._env.now_ms()
        self.activity.load_times.add(now_ms, now_ms - self._created_ms)
        for group_id, group in list(self.groups.items()):
            if isinstance(group, ConsumerGroup):
                group.loaded()
                self.memory_use.bytes += group.state.members_bytes
                self.forget_if_gone(group)
                self.consumer.begin(group)
                self._downgrade(group, (), nothing)
            elif group.is_unused and group.protocol_type is None:
                del self.groups[group_id]
            else:
                self.membership.sessions.begin(group)
        self.shares.loaded()
        self._cancel_sweep = self._env.call_later(self._config.retention_check_ms, self._sweep)
        self._env.log(
            "info",
            "groups-loaded",
            partition=self._partition.index,
            leader_epoch=self._writer.leader_epoch,
            groups=len(self.groups) + len(self.shares.groups),
        )

    # -- state --------------------------------------------------------------------------------------------------

    def group_or_new(self, group_id: str) -> Group:
        """A group that does not exist is a classic one; a member of the consumer protocol may turn it into its own."""
        group = self.groups.get(group_id)
        if group is None:
            group = self.groups[group_id] = ClassicGroup(group_id, memory_use=self.memory_use)
        return group

    def classic_or_new(self, group_id: str) -> ClassicGroup:
        """A classic group under this id, in the place of one of another protocol."""
        group = self.groups.get(group_id)
        if isinstance(group, ClassicGroup):
            return group
        classic = ClassicGroup(group_id, memory_use=self.memory_use)
        if group is not None:
            classic.offsets = group.offsets
            group.close()
        self.groups[group_id] = classic
        return classic

    def why_no_consumer_group(self, group_id: str) -> str:
        is_other = isinstance(self.groups.get(group_id), ClassicGroup) or group_id in self.shares.groups
        return f"Group {group_id} {'is not a consumer group' if is_other else 'not found'}."

    def why_no_share_group(self, group_id: str) -> str:
        return f"Group {group_id} {'is not a share group' if group_id in self.groups else 'not found'}."

    def forget_if_no_record(self, group: ClassicGroup) -> None:
        if group.has_no_record and self.groups.get(group.group_id) is group:
            del self.groups[group.group_id]

    def forget_if_gone(self, group: ConsumerGroup) -> None:
        """A deleted group is forgotten once no write of it is in flight; offsets that are left make a classic one."""
        if group.state.exists or group.writes_in_flight or self.groups.get(group.group_id) is not group:
            return
        group.close()
        del self.groups[group.group_id]
        if group.offsets.committed:
            self.group_or_new(group.group_id).offsets = group.offsets

    def set_offset(self, group_id: str, partition: TopicPartition, committed: OffsetAndMetadata | None) -> None:
        """Apply a committed offset record."""
        if committed is not None:
            self.transactional.replaced(group_id, partition)
            self.group_or_new(group_id).offsets.committed[partition] = committed
            return
        self.transactional.forgotten(group_id, partition)
        if group_id in self.groups:
            self.groups[group_id].offsets.committed.pop(partition, None)

    def _transaction_ended(self, producer_id: int, *, commit: bool) -> None:
        """Apply a transaction marker."""
        for (group_id, partition), committed in self.transactional.ended(producer_id, commit=commit):
            self.group_or_new(group_id).offsets.committed[partition] = committed

    def _forget_group(self, group_id: str) -> None:
        """Apply a group's tombstone. Its offsets have tombstones of their own."""
        group = self.groups.get(group_id)
        if not isinstance(group, ClassicGroup) or (self.loaded and not group.is_empty):
            # a member joined before the tombstone was committed: the next generation writes the group again
            return
        self.memory_use.bytes -= sum(member.counted_bytes for member in group.members.values())
        group.mark_dead(self._env.wall_ms(), _refuse_as_moved)
        del self.groups[group_id]
        if group.offsets.committed:
            self.group_or_new(group_id).offsets = group.offsets

    # -- share groups -------------------------------------------------------------------------------------------

    def share_heartbeat(
        self, request: ShareGroupHeartbeatRequest, context: Context
    ) -> ShareGroupHeartbeatResponse | Pending[Any]:
        group = self.shares.groups.get(request.group_id)
        if group is None and request.member_epoch == JOINING_EPOCH and request.group_id not in self.groups:
            group = ShareGroup.new(request.group_id)
        if group is None or (request.member_epoch != JOINING_EPOCH and not group.exists):
            return share_refusal(
                ErrorCode.GROUP_ID_NOT_FOUND,
                f"Group {request.group_id} is not a share group."
                if request.group_id in self.groups
                else f"There is no share group {request.group_id}; join it again.",
            )
        if request.member_epoch < JOINING_EPOCH:
            return self.shares.leave(group, request)
        return self.shares.heartbeat(group, request, context)

    # -- the consumer protocol ----------------------------------------------------------------------------------

    def consumer_heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, context: Context
    ) -> ConsumerGroupHeartbeatResponse | Pending[Any]:
        group = self.groups.get(request.group_id)
        if request.member_epoch == JOINING_EPOCH:
            if isinstance(group, ClassicGroup):
                group = self._upgraded(group)
            elif group is None and request.group_id not in self.shares.groups:
                group = ConsumerGroup.new(request.group_id)
        if not isinstance(group, ConsumerGroup) or (request.member_epoch != JOINING_EPOCH and not group.exists):
            return heartbeat_refusal(
                ErrorCode.GROUP_ID_NOT_FOUND,
                f"Group {request.group_id} is not a consumer group."
                if request.group_id in self.shares.groups
                else f"There is no consumer group {request.group_id}; join it again.",
            )
        if request.member_epoch < JOINING_EPOCH:
            return self.consumer.leave(group, request)
        return self.consumer.heartbeat(group, request, context)

    def _upgraded(self, group: ClassicGroup) -> ConsumerGroup | None:
        """The consumer group that a classic one becomes with its first record; None if it may not."""
        upgraded = ConsumerGroup.new(group.group_id)
        if not group.is_empty:
            config = self._config.consumer
            if config.migration_policy not in UPGRADES:
                return None
            records = upgrade_records(group, self._image(), config.max_size)
            if records is None:
                return None
            upgraded.unwritten = records
            upgraded.state.apply(records)
        return upgraded

    def join_consumer_group(self, group: ConsumerGroup, request: JoinGroupRequest, context: Context) -> Any:
        """A member of the classic protocol joins. If it replaces the last other one, the group becomes classic."""
        answer = self.classic_members.join(group, request, context)
        self._downgrade(group, (), nothing)
        return answer

    def _downgrade(self, group: ConsumerGroup, leaving: Sequence[str], answer: Callable[[ErrorCode], None]) -> bool:
        """Without these members the group becomes a classic one, if it may; whether it does."""
        limit = self._config.limits.max_size
        if self._config.consumer.migration_policy not in DOWNGRADES or not may_become_classic(
            group.state, leaving, limit
        ):
            return False
        wall_ms = self._env.wall_ms()
        classic = as_classic(group.state, leaving, self._image(), MemoryUse(), wall_ms)
        assignments = {member.member_id: member.assignment for member in classic.members.values()}

        def applied() -> None:
            group.close()
            classic.offsets = group.offsets
            classic.memory_use = self.memory_use
            self.memory_use.bytes += sum(member.counted_bytes for member in classic.members.values())
            classic.records_written = 1
            self.groups[group.group_id] = classic
            self.membership.take_over(classic, "the last member of the consumer protocol is gone")

        record = group_record(group.group_id, classic.as_record(assignments))
        self.write_consumer(group, group_tombstones(group.state), applied, answer, behind=[record])
        return True

    def replace_by_classic(self, group: ConsumerGroup) -> ErrorCode:
        """A classic group takes the place of a consumer group without members; an error if that cannot be written."""
        refused = [ErrorCode.NONE]
        self.write_consumer(
            group, group_tombstones(group.state), lambda: self._become_classic(group.group_id), refused.append
        )
        return ErrorCode.NONE if group.is_closed else refused[-1]

    def _become_classic(self, group_id: str) -> None:
        self.classic_or_new(group_id)

    def topics_changed(self, names: Collection[str] | None, *, created: bool) -> None:
        """Topics were created, deleted, or got partitions; None: any of them."""
        for group in self.groups.values():
            if isinstance(group, ConsumerGroup):
                group.metadata_is_due |= names is None or any(map(group.is_subscribed_to, names))
                group.topics_were_created |= created
        self.shares.topics_changed(names)

    # -- writing ------------------------------------------------------------------------------------------------

    def _append(
        self,
        records: Sequence[KeyValue],
        apply: Callable[[], None],
        answer: Callable[[ErrorCode], None],
        appended: Callable[[], None] = nothing,
    ) -> None:
        """Write one batch. `apply` runs once it is committed; `answer` then, or earlier with an error or a timeout."""
        wall_ms = self._env.wall_ms()
        batch = encode_batch(
            [(key, value, (), wall_ms) for key, value in records], compression=self._config.compression
        )
        self._writer.append(batch, apply, lambda code: answer(_as_coordinator(code)), appended=appended)

    def write_consumer(
        self,
        group: ConsumerGroup,
        records: Sequence[ConsumerGroupRecord],
        applied: Callable[[], None],
        answer: Callable[[ErrorCode], None],
        behind: Sequence[KeyValue] = (),
    ) -> None:
        """Write records of a group, which change its state at once and what is committed of it later.

        applied: runs when they are in the log and in the group's state. behind: records of another kind, after them.
        """
        before: list[KeyValue] = []
        records = [*group.unwritten, *records]
        replaced = self.groups.get(group.group_id)
        if isinstance(replaced, ClassicGroup) and not replaced.has_no_record:
            before = [*before, group_record(group.group_id, None)]

        def appended() -> None:
            bytes_before = 0 if group.unwritten else group.state.members_bytes
            group.state.apply(records)
            self.memory_use.bytes += group.state.members_bytes - bytes_before
            self._take_place(group)
            group.writes_in_flight += 1
            self.activity.consumer_rebalances += sum(
                isinstance(record, GroupEpoch) and record.epoch is not None for record in records
            )
            applied()

        def committed() -> None:
            group.writes_in_flight -= 1
            group.committed.apply(records)
            self.forget_if_gone(group)

        def answered(code: ErrorCode) -> None:
            answer(ErrorCode.UNKNOWN_SERVER_ERROR if code is ErrorCode.INVALID_COMMIT_OFFSET_SIZE else code)

        self._append([*before, *map(write_consumer_record, records), *behind], committed, answered, appended)

    def _take_place(self, group: ConsumerGroup) -> None:
        """The first records of a group are in the log: it replaces a classic one."""
        known = self.groups.get(group.group_id)
        if known is group:
            return
        if isinstance(known, ClassicGroup):
            group.offsets = known.offsets
            self.memory_use.bytes -= sum(member.counted_bytes for member in known.members.values())
            known.mark_dead(self._env.wall_ms(), _refuse_as_rebalancing)
        self.groups[group.group_id] = group
        if group.unwritten:
            group.unwritten = []
            self.consumer.begin(group)

    def after_writes(self, answer: Callable[[ErrorCode], None]) -> None:
        """Answer once everything that is written by now is committed."""
        self._writer.after_writes(lambda code: answer(_as_coordinator(code)))

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
                self.activity.offset_commits += committed is not None

        self._append([offset_record(group_id, p, committed) for p, committed in offsets.items()], apply, answer)

    def commit_transactional(
        self,
        group_id: str,
        offsets: dict[TopicPartition, OffsetAndMetadata],
        producer: tuple[int, int],
        guard: VerificationGuard | None,
        answer: Callable[[ErrorCode], None],
    ) -> None:
        """Write offsets in a producer's transaction; they count once its marker commits them.

        producer: its id and epoch. guard: what allows it to begin a transaction in this partition.
        """
        wall_ms = self._env.wall_ms()
        records = [offset_record(group_id, partition, committed) for partition, committed in offsets.items()]
        batch = encode_batch(
            [(key, value, (), wall_ms) for key, value in records],
            compression=self._config.compression,
            producer_id=producer[0],
            producer_epoch=producer[1],
            base_sequence=0,
            transactional=True,
        )

        def apply() -> None:
            for partition, committed in offsets.items():
                self.transactional.written(producer[0], group_id, partition, committed)
            self.activity.offset_commits += len(offsets)

        self._writer.append(batch, apply, lambda code: answer(_as_coordinator(code)), guard)

    def end_transaction(
        self,
        marker: TransactionMarker,
        producer: tuple[int, int],
        transaction_version: int,
        answer: Callable[[ErrorCode], None],
    ) -> None:
        """Write a transaction marker, and take over what it commits. `answer` gets the error of the log."""

        def apply() -> None:
            self._transaction_ended(producer[0], commit=marker.commit)

        self._writer.append_marker(marker, producer, transaction_version, apply, answer)

    def verification_guard(self, producer: tuple[int, int], *, raises_epoch: bool) -> VerificationGuard | None:
        """The guard of a transaction that would begin in this partition; None if it is open. Raises KafkaError."""
        producers = self._partition.log.producers
        if not producers.needs_verification(*producer):
            return None
        wall_ms = self._env.wall_ms()
        return producers.guards.guard(*producer, 0, raises_epoch=raises_epoch, wall_ms=wall_ms)

    def delete_group(self, group: Group, answer: Callable[[ErrorCode], None]) -> None:
        """Delete an empty group with its offsets."""
        unstable = self.transactional.unstable(group.group_id)
        self._forget_offsets(group.group_id, [*group.offsets.committed, *unstable])
        if isinstance(group, ConsumerGroup):
            self.write_consumer(group, group_tombstones(group.state), nothing, answer)
            return

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
        self._append([group_record(group.group_id, group.as_record(assignments))], nothing, answer)

    def _completed(self) -> None:
        self.activity.completed_rebalances += 1

    # -- forgetting ---------------------------------------------------------------------------------------------

    def _sweep(self) -> None:
        """Delete expired offsets and unused groups, every offsets.retention.check.interval.ms."""
        if not self.leads:
            return
        wall_ms = self._env.wall_ms()
        for group in list(self.groups.values()):
            unstable = self.transactional.unstable(group.group_id)
            expired = [
                partition
                for partition in expired_offsets(group, wall_ms, self._config.retention_ms)
                if partition not in unstable
            ]
            self.activity.offset_expirations += len(expired)
            if unstable:
                self._forget_offsets(group.group_id, expired)
            elif _is_unused(group) and len(expired) == len(group.offsets.committed):
                self.delete_group(group, nothing)
            else:
                self._forget_offsets(group.group_id, expired)
        self._cancel_sweep = self._env.call_later(self._config.retention_check_ms, self._sweep)

    def forget_topics(self, topics: frozenset[str]) -> None:
        """Delete the offsets of deleted topics: a new topic of the same name is a different one."""
        if self.loaded:
            for group_id in dict.fromkeys([*self.groups, *self.transactional.groups()]):
                group = self.groups.get(group_id)
                stable = [] if group is None else group.offsets.of_topics(topics)
                unstable = [each for each in self.transactional.unstable(group_id) if each[0] in topics]
                self._forget_offsets(group_id, [*stable, *unstable])

    def _forget_offsets(self, group_id: str, partitions: list[TopicPartition]) -> None:
        for start in range(0, len(partitions), RECORDS_PER_BATCH):
            chunk: dict[TopicPartition, OffsetAndMetadata | None] = dict.fromkeys(
                partitions[start : start + RECORDS_PER_BATCH]
            )
            self.commit_offsets(group_id, chunk, nothing)

    # -- the end ------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """This broker is not the coordinator any more: drop everything, and answer the waiting requests."""
        self._writer.close()

    def _drop(self) -> None:
        self._replay.stop()
        if self._cancel_sweep is not None:
            self._cancel_sweep()
        self.shares.close()
        groups, self.groups = self.groups, {}
        for group in groups.values():
            if isinstance(group, ConsumerGroup):
                group.close()
            else:
                group.mark_dead(self._env.wall_ms(), _refuse_as_moved)


def _is_of(group_id: str, record: Record) -> bool:
    try:
        stored = read_record(record.key, record.value)
    except Malformed:
        return True
    return isinstance(stored, StoredOffset) and stored.group == group_id


def _is_unused(group: Group) -> bool:
    return group.is_empty and (isinstance(group, ConsumerGroup) or not group.pending_members)


def _as_coordinator(code: ErrorCode) -> ErrorCode:
    return _AS_COORDINATOR.get(code, ErrorCode.UNKNOWN_SERVER_ERROR)


def _refuse_as_moved(member: ClassicGroupMember) -> None:
    _refuse(member, ErrorCode.NOT_COORDINATOR)


def _refuse_as_rebalancing(member: ClassicGroupMember) -> None:
    """The group continues with another protocol: the member joins again."""
    _refuse(member, ErrorCode.REBALANCE_IN_PROGRESS)


def _refuse(member: ClassicGroupMember, code: ErrorCode) -> None:
    joining, member.joining = member.joining, None
    if joining is not None:
        joining.complete(join_refusal(code, member.joining_version, member.member_id))
    syncing, member.syncing = member.syncing, None
    if syncing is not None:
        syncing.complete(SyncGroupResponse(error_code=code))
