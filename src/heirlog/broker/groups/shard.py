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

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from heirlog.broker.groups.activity import GroupActivity
from heirlog.broker.groups.cleanup import GroupCleanup
from heirlog.broker.groups.consumer.classic_members import ClassicMembers
from heirlog.broker.groups.consumer.group import ConsumerGroup
from heirlog.broker.groups.consumer.migration import ProtocolMigration
from heirlog.broker.groups.consumer.protocol import (
    ConsumerGroupConfig,
    ConsumerGroupProtocol,
    GroupTimes,
    heartbeat_refusal,
)
from heirlog.broker.groups.consumer.records import ConsumerGroupRecord, is_tombstone
from heirlog.broker.groups.consumer.values import JOINING_EPOCH
from heirlog.broker.groups.group import ClassicGroup
from heirlog.broker.groups.group_registry import GroupRegistry
from heirlog.broker.groups.group_writer import GroupWriter
from heirlog.broker.groups.membership import GroupLimits, Membership
from heirlog.broker.groups.records import StoredGroup, StoredOffset, read_record
from heirlog.broker.groups.share.group import ShareGroup
from heirlog.broker.groups.share.protocol import ShareGroupConfig, ShareGroups, share_refusal
from heirlog.broker.groups.share.records import ShareGroupRecord
from heirlog.broker.groups.share.state_requests import StateRequests
from heirlog.broker.internal_topic_loader import InternalTopicLoader
from heirlog.broker.internal_topic_writer import InternalTopicWriter, nothing
from heirlog.broker.partition import Partition
from heirlog.broker.replica_manager import ReplicaManager
from heirlog.context import Context
from heirlog.env import Env
from heirlog.metadata.image import Image
from heirlog.pending import Pending
from heirlog.protocol.batch import BatchHeader, Record
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    JoinGroupRequest,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from heirlog.protocol.primitives import Malformed


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
        self.registry = GroupRegistry(env)
        self.groups = self.registry.groups
        """All but share groups, which are in `shares`: an id is in one of them."""
        self.memory_use = self.registry.memory_use
        """Of all groups."""
        self.loaded = False
        self.activity = activity
        self._image = image
        self._env = env
        self._created_ms = env.now_ms()
        self._partition = partition
        self._replay = InternalTopicLoader(
            env,
            replicas,
            partition,
            on_record=self._take_over,
            on_marker=lambda producer_id, marker: self.registry.transaction_ended(producer_id, commit=marker.commit),
            on_unreadable=self._unreadable,
            on_done=self._loading_is_done,
        )
        self._log_writer = InternalTopicWriter(
            env, replicas, partition, timeout_ms=config.commit_timeout_ms, on_closed=self._drop
        )
        self.writer = GroupWriter(
            env,
            partition,
            self._log_writer,
            config.compression,
            self.registry,
            activity,
            on_upgraded=lambda group: self.consumer.begin(group),
        )
        self.cleanup = GroupCleanup(
            env,
            self.registry,
            self.writer,
            activity,
            config.retention_ms,
            config.retention_check_ms,
            lambda: self.leads,
        )
        self.membership = Membership(
            env,
            config.limits,
            self.writer.store_classic,
            has_room,
            self.registry.forget_if_no_record,
            self._completed,
        )
        self.migration = ProtocolMigration(
            env, config.consumer, config.limits.max_size, image, self.registry, self.writer, self.membership
        )
        self.consumer = ConsumerGroupProtocol(
            env,
            config.consumer,
            image,
            times_of,
            self.writer.write_consumer,
            self.writer.after_writes,
            self.migration.downgrade,
            has_room,
        )
        self.shares = ShareGroups(
            env,
            config.share,
            image,
            share_times_of,
            self.writer.append,
            self.writer.after_writes,
            has_room,
            self.memory_use,
            share_states,
            activity,
        )
        self.classic_members = ClassicMembers(env, image, self.consumer)

    @property
    def leads(self) -> bool:
        """Whether this broker still leads the partition in the epoch for which this shard was created."""
        return self._log_writer.leads

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
            self.registry.transactional.written(header.producer_id, stored.group, stored.partition, stored.value)
        elif isinstance(stored, StoredOffset):
            self.registry.set_offset(stored.group, stored.partition, stored.value)
        elif isinstance(stored, StoredGroup) and stored.value is not None:
            self.shares.groups.pop(stored.group, None)
            self.registry.classic_or_new(stored.group).load(stored.value)
        elif isinstance(stored, StoredGroup):
            self.registry.forget_classic(stored.group)
        elif isinstance(stored, ShareGroupRecord):
            if stored.value is not None:
                self.groups.pop(stored.group, None)
            self.shares.load(stored)
        elif stored is not None:
            self._load_consumer(stored)

    def _load_consumer(self, record: ConsumerGroupRecord) -> None:
        """The record replaces a classic group, which was converted or deleted before it."""
        if not isinstance(self.groups.get(record.group), ConsumerGroup):
            if is_tombstone(record):
                return
            self.shares.groups.pop(record.group, None)
        self.registry.consumer_or_new(record.group).load(record)

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
                self.registry.forget_if_gone(group)
                self.consumer.begin(group)
                self.migration.downgrade(group, (), nothing)
            elif group.is_unused and group.protocol_type is None:
                del self.groups[group_id]
            else:
                self.membership.sessions.begin(group)
        self.shares.loaded()
        self.cleanup.begin()
        self._env.log(
            "info",
            "groups-loaded",
            partition=self._partition.index,
            leader_epoch=self._log_writer.leader_epoch,
            groups=len(self.groups) + len(self.shares.groups),
        )

    # -- groups of each protocol ---------------------------------------------------------------------------------

    def why_no_consumer_group(self, group_id: str) -> str:
        is_other = isinstance(self.groups.get(group_id), ClassicGroup) or group_id in self.shares.groups
        return f"Group {group_id} {'is not a consumer group' if is_other else 'not found'}."

    def why_no_share_group(self, group_id: str) -> str:
        return f"Group {group_id} {'is not a share group' if group_id in self.groups else 'not found'}."

    def unchanged_share_heartbeat(
        self, request: ShareGroupHeartbeatRequest, context: Context
    ) -> ShareGroupHeartbeatResponse | Pending[Any] | None:
        """The answer to a heartbeat that changes nothing; None for any other one."""
        group = self.shares.groups.get(request.group_id)
        return None if group is None else self.shares.unchanged_heartbeat(group, request, context)

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

    def unchanged_consumer_heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, context: Context
    ) -> ConsumerGroupHeartbeatResponse | Pending[Any] | None:
        """The answer to a heartbeat that changes nothing; None for any other one."""
        group = self.groups.get(request.group_id)
        if not isinstance(group, ConsumerGroup):
            return None
        return self.consumer.unchanged_heartbeat(group, request, context)

    def consumer_heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, context: Context
    ) -> ConsumerGroupHeartbeatResponse | Pending[Any]:
        group = self.groups.get(request.group_id)
        if request.member_epoch == JOINING_EPOCH:
            if isinstance(group, ClassicGroup):
                group = self.migration.upgraded(group)
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

    def join_consumer_group(self, group: ConsumerGroup, request: JoinGroupRequest, context: Context) -> Any:
        """A member of the classic protocol joins. If it replaces the last other one, the group becomes classic."""
        answer = self.classic_members.join(group, request, context)
        self.migration.downgrade(group, (), nothing)
        return answer

    def topics_changed(self, names: Collection[str] | None, *, created: bool) -> None:
        """Topics were created, deleted, or got partitions; None: any of them."""
        for group in self.groups.values():
            if isinstance(group, ConsumerGroup):
                group.metadata_is_due |= names is None or any(map(group.is_subscribed_to, names))
                group.topics_were_created |= created
        self.shares.topics_changed(names)

    def _completed(self) -> None:
        self.activity.completed_rebalances += 1

    def forget_topics(self, topics: frozenset[str]) -> None:
        """These topics are deleted."""
        if self.loaded:
            self.cleanup.forget_topics(topics)

    # -- the end ------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """This broker is not the coordinator any more: drop everything, and answer the waiting requests."""
        self._log_writer.close()

    def _drop(self) -> None:
        self._replay.stop()
        self.cleanup.stop()
        self.shares.close()
        self.registry.close()


def _is_of(group_id: str, record: Record) -> bool:
    try:
        stored = read_record(record.key, record.value)
    except Malformed:
        return True
    return isinstance(stored, StoredOffset) and stored.group == group_id
