"""The group coordinator of this broker: the requests of the groups whose partition of `__consumer_offsets` it leads.

Every request first finds its shard, or gets NOT_COORDINATOR (find the coordinator again) or
COORDINATOR_LOAD_IN_PROGRESS (retry). Two answers differ while the shard is loading, because the members' state is not
known yet. A Heartbeat succeeds. A SyncGroup gets REBALANCE_IN_PROGRESS, so that the member joins again without looking
for a coordinator.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from heirlog.broker.groups.activity import GroupActivity
from heirlog.broker.groups.consumer.group import ConsumerGroup
from heirlog.broker.groups.consumer.protocol import ConsumerGroupConfig, GroupTimes, heartbeat_refusal
from heirlog.broker.groups.consumer.requests import check_heartbeat
from heirlog.broker.groups.consumer.values import ConsumerGroupPhase
from heirlog.broker.groups.group import CONSUMER, ClassicGroup, GroupState
from heirlog.broker.groups.group_registry import Group
from heirlog.broker.groups.member_answers import join_refusal
from heirlog.broker.groups.membership import GroupLimits, request_bytes
from heirlog.broker.groups.shard import GroupCoordinatorConfig, GroupCoordinatorShard
from heirlog.broker.groups.share.protocol import ShareGroupConfig, share_refusal
from heirlog.broker.groups.share.requests import check_share_heartbeat
from heirlog.broker.groups.share.state_requests import StateRequests
from heirlog.broker.groups.share.values import ShareGroupPhase
from heirlog.broker.internal_topic_shards import InternalTopicShards
from heirlog.broker.partition import Partition
from heirlog.broker.replica_manager import ReplicaManager
from heirlog.context import Context
from heirlog.env import Env
from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.configs import group_value
from heirlog.metadata.image import Image
from heirlog.metadata.journal import ImageJournal
from heirlog.metadata.survey import Survey, in_groups
from heirlog.metadata.topic_name import OFFSETS_TOPIC, SHARE_STATE_TOPIC
from heirlog.pending import Pending
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from heirlog.protocol.types import Uuid

if TYPE_CHECKING:
    from functools import _lru_cache_wrapper

NAMED_MEMBERS_VERSION = 3
"""LeaveGroup: several members, each with an error of its own."""
PROTOCOL_NAMED_VERSION = 5
"""SyncGroup: from this version on the member names the protocol that it believes the group has (KIP-559)."""
_MINUTE_MS = 60_000
_TIMES = ("consumer.session.timeout.ms", "consumer.heartbeat.interval.ms")
_SHARE_TIMES = ("share.session.timeout.ms", "share.heartbeat.interval.ms")
NAME_MAX_CHARACTERS = 8191
"""Limit of group and instance ids, protocol types and names. Newer requests of Kafka allow longer ones, but neither
records nor the responses of older versions have room for more than 32,767 bytes.
"""
MEMBER_BYTES_MAX = 8 * 1024 * 1024
"""Limit of one member's protocols and subscriptions. A record of a group has room for far less (max.message.bytes)."""
MEMBERS_BYTES_MAX = 256 * 1024 * 1024
"""Limit of all members of all groups of this broker, with their ids, subscriptions and assignments. Beyond it no new
member is accepted and no member may grow. Enough for some 100,000 members with short subscriptions.
"""


TIMES_KEPT = 1000
"""Groups whose configurations are looked up once."""


@dataclass(slots=True)
class GroupCounts:
    """Groups of a broker by state, for each protocol, and their committed offsets."""

    classic: Counter[GroupState] = field(default_factory=Counter)
    consumer: Counter[ConsumerGroupPhase] = field(default_factory=Counter)
    share: Counter[ShareGroupPhase] = field(default_factory=Counter)
    offsets: int = 0


def group_id_error(group_id: str) -> str | None:
    """Why no group can have this id; None if one can."""
    return f"a group id has at most {NAME_MAX_CHARACTERS} characters" if len(group_id) > NAME_MAX_CHARACTERS else None


class GroupCoordinator:
    def __init__(
        self,
        env: Env,
        static: StaticConfig,
        replicas: ReplicaManager,
        image: Callable[[], Image],
        share_states: StateRequests,
    ) -> None:
        """share_states: what share coordinators are asked."""
        self._env = env
        self._share_states = share_states
        self._replicas = replicas
        self.image = image
        self.activity = GroupActivity()
        self._shards = InternalTopicShards(OFFSETS_TOPIC, replicas, self._new_shard)
        self.metadata_max_bytes = static.int("offset.metadata.max.bytes")
        self._limits = GroupLimits(
            initial_rebalance_delay_ms=static.int("group.initial.rebalance.delay.ms"),
            min_session_timeout_ms=static.int("group.min.session.timeout.ms"),
            max_session_timeout_ms=static.int("group.max.session.timeout.ms"),
            max_size=static.int("group.max.size"),
        )
        self._has_consumer_protocol = CONSUMER in static["group.coordinator.rebalance.protocols"]
        self._times_of = _times_by_group(image, static, _TIMES)
        self._share_times_of = _times_by_group(image, static, _SHARE_TIMES)
        self.assignors: Sequence[str] = static["group.consumer.assignors"]
        (self.share_assignor,) = static["group.share.assignors"]
        self._config = GroupCoordinatorConfig(
            limits=self._limits,
            consumer=ConsumerGroupConfig(
                self.assignors,
                static.int("group.consumer.max.size"),
                str(static["group.consumer.migration.policy"]).lower(),
            ),
            share=ShareGroupConfig(static.int("group.share.max.size")),
            commit_timeout_ms=static.int("offsets.commit.timeout.ms"),
            compression=static.int("offsets.topic.compression.codec"),
            retention_ms=static.int("offsets.retention.minutes") * _MINUTE_MS,
            retention_check_ms=static.int("offsets.retention.check.interval.ms"),
        )

    # -- which groups this broker coordinates --------------------------------------------------------------------

    def on_image(self, image: Image, changed: ImageJournal | None) -> None:
        """Called after the partitions have followed the image. `changed` is None if anything may differ."""
        if changed is None or changed.configs:
            self._times_of.cache_clear()
            self._share_times_of.cache_clear()
        if changed is None:
            for shard in self._shards.shards():
                shard.topics_changed(None, created=True)
                if shard.loaded:
                    shard.shares.forget_topics(None)
        else:
            gone = frozenset(
                before.name
                for changed_id, before in changed.topics.items()
                if before is not None and changed_id not in image.topics
            )
            if gone:
                for shard in self._shards.shards():
                    shard.forget_topics(gone)
            gone_ids = {
                changed_id
                for changed_id, before in changed.topics.items()
                if before is not None and changed_id not in image.topics
            }
            for shard in self._shards.shards() if gone_ids else ():
                if shard.loaded:
                    shard.shares.forget_topics(gone_ids)
            if _has_lost_states(image, changed):
                for shard in self._shards.shards():
                    if shard.loaded:
                        shard.shares.restore_states()
            grown = {topic_id for (topic_id, _), before in changed.partitions.items() if before is None}
            topics = grown | set(changed.topics)
            if topics:
                self._topics_changed(image, changed, topics)
        self._shards.on_image(image, changed)

    def _topics_changed(self, image: Image, changed: ImageJournal, topic_ids: Collection[Uuid]) -> None:
        """Topics were created, deleted, or got partitions: their groups look at them again."""
        images = (each for topic_id in topic_ids for each in (changed.topics.get(topic_id), image.topics.get(topic_id)))
        names = frozenset(each.name for each in images if each is not None)
        created = any(changed.topics.get(topic_id, image) is None for topic_id in topic_ids)
        for shard in self._shards.shards():
            shard.topics_changed(names, created=created)

    def _new_shard(self, partition: Partition) -> GroupCoordinatorShard:
        return GroupCoordinatorShard(
            self._env,
            self._replicas,
            partition,
            self._config,
            self._has_room,
            self.image,
            self._times_of,
            self._share_times_of,
            self._share_states,
            self.activity,
        )

    def _has_room(self, more_bytes: int) -> bool:
        return sum(shard.memory_use.bytes for shard in self._shards.shards()) + more_bytes <= MEMBERS_BYTES_MAX

    def stop(self) -> None:
        """The broker stops serving."""
        self._shards.stop()

    def partition_of(self, group_id: str) -> int | None:
        """The partition of `__consumer_offsets` for this group; None while the topic does not exist."""
        return self._shards.partition_of(group_id)

    def shard_at(self, index: int) -> GroupCoordinatorShard | None:
        """The loaded shard of a partition of `__consumer_offsets`, if this broker coordinates its groups."""
        shard = self._shards.shard_at(index)
        return shard if shard is not None and shard.loaded else None

    def shard_of(self, group_id: str) -> GroupCoordinatorShard | ErrorCode:
        """The loaded shard of this group, or the error for the client."""
        if len(group_id) > NAME_MAX_CHARACTERS:
            return ErrorCode.INVALID_GROUP_ID
        shard = self._shards.shard_of(group_id)
        if shard is None:
            return ErrorCode.NOT_COORDINATOR
        return shard if shard.loaded else ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    def shard_to_fetch(self, group_id: str, *, stable: bool) -> GroupCoordinatorShard | ErrorCode:
        """As `shard_of`, for a client that reads committed offsets. stable: open transactions must be known, too."""
        found = self.shard_of(group_id)
        shard = self._shards.shard_of(group_id)
        if found is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and not stable and shard is not None:
            return shard if shard.knows_committed else found
        return found

    def counts(self) -> Survey[GroupCounts]:
        """Groups by state, and committed offsets."""
        counts = GroupCounts()
        for shard in self.shards():
            for groups in in_groups(shard.groups.values()):
                for group in groups:
                    if isinstance(group, ClassicGroup):
                        counts.classic[group.state] += 1
                    elif group.committed.exists:
                        counts.consumer[group.committed.phase] += 1
                    counts.offsets += len(group.offsets.committed)
                yield
            for share_groups in in_groups(shard.shares.groups.values()):
                counts.share.update(group.committed.phase for group in share_groups if group.committed.exists)
                yield
        return counts

    def shards(self) -> list[GroupCoordinatorShard]:
        """All shards of this broker, loaded or not."""
        return self._shards.shards()

    def _shard_with_members(self, group_id: str) -> GroupCoordinatorShard | ErrorCode:
        return self.shard_of(group_id) if group_id else ErrorCode.INVALID_GROUP_ID

    # -- the consumer protocol ----------------------------------------------------------------------------------

    @property
    def serves_consumer_protocol(self) -> bool:
        """Whether groups may use the consumer protocol, by this broker's configuration and the cluster's features."""
        return self._has_consumer_protocol and self.image().group_version >= 1

    def consumer_group_heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, context: Context
    ) -> ConsumerGroupHeartbeatResponse | Pending[Any]:
        if not self.serves_consumer_protocol:
            return heartbeat_refusal(ErrorCode.UNSUPPORTED_VERSION)
        shard = self.shard_of(request.group_id)
        if not isinstance(shard, ErrorCode):
            # nearly every heartbeat; what it says was checked when the member joined
            unchanged = shard.unchanged_consumer_heartbeat(request, context)
            if unchanged is not None:
                return unchanged
        try:
            check_heartbeat(request, context.api_version, self.assignors)
        except KafkaError as error:
            return heartbeat_refusal(error.code, str(error))
        if isinstance(shard, ErrorCode):
            return heartbeat_refusal(shard)
        return shard.consumer_heartbeat(request, context)

    # -- share groups -------------------------------------------------------------------------------------------

    @property
    def serves_share_groups(self) -> bool:
        """Whether there are share groups, by the cluster's features."""
        return self.image().share_version >= 1

    def share_group_heartbeat(
        self, request: ShareGroupHeartbeatRequest, context: Context
    ) -> ShareGroupHeartbeatResponse | Pending[Any]:
        if not self.serves_share_groups:
            return share_refusal(ErrorCode.UNSUPPORTED_VERSION)
        shard = self.shard_of(request.group_id)
        if not isinstance(shard, ErrorCode):
            unchanged = shard.unchanged_share_heartbeat(request, context)
            if unchanged is not None:
                return unchanged
        try:
            check_share_heartbeat(request)
        except KafkaError as error:
            return share_refusal(error.code, str(error))
        if isinstance(shard, ErrorCode):
            return share_refusal(shard)
        return shard.share_heartbeat(request, context)

    # -- the group protocol -------------------------------------------------------------------------------------

    def join_group(self, request: JoinGroupRequest, context: Context) -> JoinGroupResponse | Pending[Any]:
        shard, version = self._shard_with_members(request.group_id), context.api_version
        code = shard if isinstance(shard, ErrorCode) else self._session_refusal(request)
        if isinstance(shard, ErrorCode) or code is not ErrorCode.NONE:
            return join_refusal(code, version, request.member_id)
        if request.group_id in shard.shares.groups:
            return join_refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, version)
        found = shard.groups.get(request.group_id)
        group = found if isinstance(found, ConsumerGroup) and found.exists else None
        has_members = group is not None and not group.is_empty
        code = self._join_refusal(shard, request)
        if code is not ErrorCode.NONE:
            return join_refusal(code, version, "" if has_members else request.member_id)
        if group is not None:
            if has_members:
                joined: JoinGroupResponse | Pending[Any] = shard.join_consumer_group(group, request, context)
                return joined
            code = shard.migration.replace_by_classic(group)
            if code is not ErrorCode.NONE:
                return join_refusal(code, version, request.member_id)
        classic = shard.registry.classic_or_new(request.group_id)
        answer: JoinGroupResponse | Pending[Any] = shard.membership.join(classic, request, context)
        shard.registry.forget_if_no_record(classic)
        return answer

    def _session_refusal(self, request: JoinGroupRequest) -> ErrorCode:
        limits = self._limits
        fits = limits.min_session_timeout_ms <= request.session_timeout_ms <= limits.max_session_timeout_ms
        return ErrorCode.NONE if fits else ErrorCode.INVALID_SESSION_TIMEOUT

    def _join_refusal(self, shard: GroupCoordinatorShard, request: JoinGroupRequest) -> ErrorCode:
        if request.member_id and request.group_id not in shard.groups:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if not request.protocols or not request.protocol_type:
            # checked before a group is created for it
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        names = (request.group_instance_id or "", request.protocol_type, *(each.name for each in request.protocols))
        if any(len(name) > NAME_MAX_CHARACTERS for name in names):
            return ErrorCode.INVALID_REQUEST
        return ErrorCode.INVALID_REQUEST if request_bytes(request) > MEMBER_BYTES_MAX else ErrorCode.NONE

    def sync_group(self, request: SyncGroupRequest, context: Context) -> SyncGroupResponse | Pending[Any]:
        names_protocol = request.protocol_type is not None and request.protocol_name is not None
        if context.api_version >= PROTOCOL_NAMED_VERSION and not names_protocol:
            return SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        group = self._group(request.group_id)
        if group is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            return SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
        if isinstance(group, ErrorCode):
            return SyncGroupResponse(error_code=group)
        shard, found = group
        if isinstance(found, ConsumerGroup):
            return shard.classic_members.sync(found, request)
        answer: SyncGroupResponse | Pending[Any] = shard.membership.sync(found, request)
        return answer

    def heartbeat(self, request: HeartbeatRequest, context: Context) -> HeartbeatResponse | Pending[Any]:
        group = self._group(request.group_id)
        if group is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            return HeartbeatResponse()
        if isinstance(group, ErrorCode):
            return HeartbeatResponse(error_code=group)
        shard, found = group
        if isinstance(found, ConsumerGroup):
            return shard.classic_members.heartbeat(found, request)
        return HeartbeatResponse(error_code=shard.membership.heartbeat(found, request))

    def _group(self, group_id: str) -> tuple[GroupCoordinatorShard, Group] | ErrorCode:
        shard = self._shard_with_members(group_id)
        if isinstance(shard, ErrorCode):
            return shard
        group = shard.groups.get(group_id)
        return ErrorCode.UNKNOWN_MEMBER_ID if group is None or not group.exists else (shard, group)

    def leave_group(self, request: LeaveGroupRequest, context: Context) -> LeaveGroupResponse | Pending[Any]:
        if context.api_version < NAMED_MEMBERS_VERSION:
            request = LeaveGroupRequest(
                group_id=request.group_id, members=[LeaveGroupRequest.MemberIdentity(member_id=request.member_id)]
            )
        shard = self._shard_with_members(request.group_id)
        if isinstance(shard, ErrorCode):
            return LeaveGroupResponse(error_code=shard)
        group = shard.groups.get(request.group_id)
        pending: Pending[Any] = Pending()

        def answer(code: ErrorCode, members: Sequence[LeaveGroupResponse.MemberResponse]) -> None:
            if code is ErrorCode.NONE and context.api_version < NAMED_MEMBERS_VERSION:
                code = ErrorCode(members[0].error_code)
            pending.complete(LeaveGroupResponse(error_code=code, members=list(members)))

        if isinstance(group, ConsumerGroup) and group.exists:
            shard.classic_members.leave(group, request, answer)
            return pending
        if not isinstance(group, ClassicGroup):
            members = [
                LeaveGroupResponse.MemberResponse(
                    member_id=member.member_id,
                    group_instance_id=member.group_instance_id,
                    error_code=ErrorCode.UNKNOWN_MEMBER_ID,
                )
                for member in request.members
            ]
        else:
            members = shard.membership.leave(group, request)
        shard.writer.after_writes(lambda code: answer(code, members))
        return pending


def _times_by_group(
    image: Callable[[], Image], static: StaticConfig, names: Sequence[str]
) -> _lru_cache_wrapper[GroupTimes]:
    """`GroupTimes` by group id. What was found is kept until a configuration changes: each heartbeat asks."""

    @lru_cache(maxsize=TIMES_KEPT)
    def times_of(group_id: str) -> GroupTimes:
        return GroupTimes(*(group_value(image(), static, group_id, name) for name in names))

    return times_of


def _has_lost_states(image: Image, changed: ImageJournal) -> bool:
    """Whether a partition of `__share_group_state` got a leader that may lack records."""
    topic = image.topic_named(SHARE_STATE_TOPIC)
    if topic is None:
        return False
    for (topic_id, index), before in changed.partitions.items():
        after = image.partition(topic_id, index) if topic_id == topic.id else None
        if after is not None and before is not None and after.basis not in (None, before.basis):
            return True
    return False
