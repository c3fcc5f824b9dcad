"""Share groups of one partition of `__consumer_offsets`: writes what is decided (`heartbeats`, `initialization`), and
keeps the sessions.

State is visible as soon as it is in the log of this broker, and answers wait until everything that is written of the
group is committed, as in a consumer group (`consumer/protocol.py`).

    a heartbeat finds partitions without a state   they become "initializing", in the batch of the heartbeat
    that is committed                              their share coordinators are asked
    they answer                                    the partitions become "initialized", or are taken back
    the next heartbeat of any member               the group epoch rises, and they are assigned

Source: KIP-932.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from heirlog.broker.groups.activity import GroupActivity
from heirlog.broker.groups.consumer.protocol import GroupTimes
from heirlog.broker.groups.consumer.values import LEAVING_EPOCH
from heirlog.broker.groups.group import MemoryUse
from heirlog.broker.groups.session_timers import SessionTimers
from heirlog.broker.groups.share import initialization
from heirlog.broker.groups.share.group import ShareGroup
from heirlog.broker.groups.share.heartbeats import (
    ShareSurroundings,
    group_tombstones,
    heartbeat_answer,
    heartbeat_plan,
    is_unchanged,
    removal_records,
)
from heirlog.broker.groups.share.records import ShareGroupEpoch, ShareGroupRecord, ShareTopics, write_share_record
from heirlog.broker.groups.share.state import member_bytes
from heirlog.broker.groups.share.state_requests import Results, StateRequests, first_error
from heirlog.broker.groups.share.values import StateTopics, Topics, with_partitions, without_partitions
from heirlog.broker.internal_topic_writer import nothing
from heirlog.broker.share_coordinator.state import LOWEST_STATE_EPOCH, UNINITIALIZED_OFFSET, SharePartitionKey
from heirlog.context import Context
from heirlog.env import Env
from heirlog.metadata.image import Image
from heirlog.metadata.topic_name import SHARE_STATE_TOPIC
from heirlog.pending import Pending
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from heirlog.protocol.types import Uuid

DELETE_AGAIN_MS = RESTORE_AGAIN_MS = 5_000
"""Pause after what failed."""
T = TypeVar("T")
Answer: TypeAlias = Callable[[ErrorCode], None]
OnAltered: TypeAlias = Callable[[Results | ErrorCode], None]


@dataclass(frozen=True, slots=True)
class ShareGroupConfig:
    max_size: int
    """group.share.max.size"""


def share_refusal(code: ErrorCode, message: str | None = None) -> ShareGroupHeartbeatResponse:
    return ShareGroupHeartbeatResponse(error_code=code, error_message=message)


class ShareGroups:
    def __init__(
        self,
        env: Env,
        config: ShareGroupConfig,
        image: Callable[[], Image],
        times_of: Callable[[str], GroupTimes],
        append: Callable[..., None],
        after_writes: Callable[[Answer], None],
        has_room: Callable[[int], bool],
        memory_use: MemoryUse,
        states: StateRequests,
        activity: GroupActivity,
    ) -> None:
        """append: `append(records, committed, answer, appended)` writes one batch. has_room: whether the groups of this
        broker may use that many bytes more. states: what share coordinators are asked.
        """
        self.groups: dict[str, ShareGroup] = {}
        self._env = env
        self._config = config
        self._image = image
        self._times_of = times_of
        self._append = append
        self._after_writes = after_writes
        self._has_room = has_room
        self._memory_use = memory_use
        self.states = states
        self._activity = activity
        self._sessions: SessionTimers[ShareGroup] = SessionTimers(env, self._expire)

    # -- loading ------------------------------------------------------------------------------------------------

    def load(self, record: ShareGroupRecord) -> None:
        group = self.groups.get(record.group)
        if group is None:
            if record.value is None:
                return
            group = self.groups[record.group] = ShareGroup.new(record.group)
        group.load(record)

    def loaded(self) -> None:
        for group in list(self.groups.values()):
            group.loaded()
            self._memory_use.bytes += group.state.members_bytes
            self._forget_if_gone(group)
            for member_id in group.state.members:
                self._sessions.touch(group, member_id, self._times_of(group.group_id).session_ms)
        self.forget_topics(None)
        for group in list(self.groups.values()):
            if group.state.topics.deleting:
                self.delete_topics(group, (), nothing)
        if has_lost_states(self._image()):
            self.restore_states()

    # -- requests -----------------------------------------------------------------------------------------------

    def unchanged_heartbeat(
        self, group: ShareGroup, request: ShareGroupHeartbeatRequest, context: Context
    ) -> ShareGroupHeartbeatResponse | Pending[Any] | None:
        """The answer to a heartbeat that changes nothing; None for any other one."""
        if group.is_due or not is_unchanged(group.state, request, context):
            return None
        times = self._times_of(group.group_id)
        self._sessions.touch(group, request.member_id, times.session_ms)
        answer = ShareGroupHeartbeatResponse(
            member_id=request.member_id,
            member_epoch=request.member_epoch,
            heartbeat_interval_ms=times.interval_ms,
        )
        return self._once_committed(group, answer)

    def heartbeat(
        self, group: ShareGroup, request: ShareGroupHeartbeatRequest, context: Context
    ) -> ShareGroupHeartbeatResponse | Pending[Any]:
        """Of one that changes something. The group exists, possibly new: then the request joins it."""
        times = self._times_of(group.group_id)
        client = (context.client_id, f"/{context.client_host}")
        try:
            around = ShareSurroundings(self._image(), self._config.max_size, group.is_due)
            plan = heartbeat_plan(group.state, request, client, around)
            known = group.state.members.get(request.member_id)
            more_bytes = member_bytes(plan.member) - (0 if known is None else member_bytes(known))
            if more_bytes > 0 and not self._has_room(more_bytes):
                raise KafkaError(
                    ErrorCode.GROUP_MAX_SIZE_REACHED,
                    "the members of all groups of this broker use as much memory as they may; try again later",
                )
        except KafkaError as error:
            return self._once_committed(group, share_refusal(error.code, str(error)))
        answer = heartbeat_answer(plan, times.interval_ms)
        records = plan.records
        missing: Topics = {}
        if plan.looked_at_topics:
            names = plan.member.topics | group.state.subscribers.keys()
            missing = initialization.to_initialize(group.state.topics, names, group.in_progress, self._image())
            if missing:
                records.append(ShareTopics(group.group_id, initialization.begun(group.state.topics, missing)))

        def applied() -> None:
            group.is_due = group.is_due and not plan.looked_at_topics
            group.in_progress = with_partitions(group.in_progress, missing)
            self._sessions.touch(group, request.member_id, times.session_ms)

        if not records:
            applied()
            return self._once_committed(group, answer)
        pending: Pending[Any] = Pending()

        def answered(code: ErrorCode) -> None:
            pending.complete(answer if code is ErrorCode.NONE else share_refusal(code))

        self._write(group, records, applied, answered, lambda: self._initialize(group, missing))
        return pending

    def leave(
        self, group: ShareGroup, request: ShareGroupHeartbeatRequest
    ) -> ShareGroupHeartbeatResponse | Pending[Any]:
        assert request.member_epoch == LEAVING_EPOCH
        member_id = request.member_id
        if member_id not in group.state.members:
            why = f"group {group.group_id} has no member {member_id}: it has left"
            return self._once_committed(group, share_refusal(ErrorCode.UNKNOWN_MEMBER_ID, why))
        answer = ShareGroupHeartbeatResponse(member_id=member_id, member_epoch=LEAVING_EPOCH)
        pending: Pending[Any] = Pending()
        self._remove(
            group,
            member_id,
            "leaves",
            lambda code: pending.complete(answer if code is ErrorCode.NONE else share_refusal(code)),
        )
        return pending

    def _expire(self, group: ShareGroup, member_id: str, settled: Answer) -> None:
        if member_id in group.state.members:
            self._remove(group, member_id, "sent no heartbeat in time", settled)

    def _remove(self, group: ShareGroup, member_id: str, why: str, answer: Answer) -> None:
        def applied() -> None:
            group.stop_timers(member_id)
            self._env.log(
                "info",
                "group-member-removed",
                group=group.group_id,
                members=member_id,
                why=why,
                epoch=group.state.epoch,
            )

        self._write(group, removal_records(group.state, [member_id], self._image()), applied, answer)

    def _once_committed(
        self, group: ShareGroup, answer: ShareGroupHeartbeatResponse
    ) -> ShareGroupHeartbeatResponse | Pending[Any]:
        """An answer says nothing that a later coordinator may not know."""
        if not group.writes_in_flight:
            return answer
        pending: Pending[Any] = Pending()
        self._after_writes(lambda code: pending.complete(answer if code is ErrorCode.NONE else share_refusal(code)))
        return pending

    # -- the state of partitions --------------------------------------------------------------------------------

    def _initialize(self, group: ShareGroup, partitions: Topics) -> None:
        """That they are being initialized is committed."""
        if not partitions or group.is_closed:
            return
        keys = initialization.keys_of(group.group_id, partitions)
        self.states.initialize(
            group.state.epoch,
            dict.fromkeys(keys, UNINITIALIZED_OFFSET),
            lambda results: self._initialized(group, partitions, results),
        )

    def _initialized(self, group: ShareGroup, partitions: Topics, results: Results) -> None:
        if group.is_closed:
            return
        group.in_progress = without_partitions(group.in_progress, partitions)
        # a state with a higher epoch exists: this coordinator lost newer records of the group, and may use it
        usable = (ErrorCode.NONE, ErrorCode.FENCED_STATE_EPOCH)
        failed = {key: result.code for key, result in results.items() if result.code not in usable}
        if failed:
            key, code = next(iter(failed.items()))
            self._env.log(
                "warning",
                "share-state-not-initialized",
                group=group.group_id,
                partitions=len(failed),
                first=key.text,
                error=code.name,
            )
        succeeded = {
            topic_id: known._replace(
                partitions=frozenset(
                    n for n in known.partitions if SharePartitionKey(group.group_id, topic_id, n) not in failed
                )
            )
            for topic_id, known in partitions.items()
        }
        self.write_topics(group, initialization.finished(group.state.topics, partitions, succeeded), nothing)

    def restore_states(self) -> None:
        """Initialize what an election of `__share_group_state` on a lossy basis has lost of the initialized states.

        No leader could load such a state. The lowest epoch initializes what does not exist, and nothing else.
        """
        for group in self.groups.values():
            self._restore_states(group)

    def _restore_states(self, group: ShareGroup) -> None:
        def is_wanted(key: SharePartitionKey) -> bool:
            known = group.state.topics.initialized.get(key.topic_id)
            return known is not None and key.partition in known.partitions and not group.is_closed

        def restored(results: Results) -> None:
            if any(result.code is ErrorCode.COORDINATOR_NOT_AVAILABLE for result in results.values()):
                self._env.call_later(RESTORE_AGAIN_MS, lambda: self._restore_states(group))

        keys = initialization.keys_of(group.group_id, group.state.topics.initialized)
        if keys and not group.is_closed:
            offsets = dict.fromkeys(keys, UNINITIALIZED_OFFSET)
            self.states.initialize(LOWEST_STATE_EPOCH, offsets, restored, is_wanted)

    def write_topics(
        self, group: ShareGroup, topics: StateTopics, answer: Answer, committed: Callable[[], None] = nothing
    ) -> None:
        """The next heartbeat looks at them, whatever happens."""
        group.is_due = True
        if topics == group.state.topics:
            self._after_writes(lambda code: _both(code, committed, answer))
        else:
            self._write(group, [ShareTopics(group.group_id, topics)], nothing, answer, committed)

    def topics_changed(self, names: Collection[str] | None) -> None:
        """Topics were created, deleted, or got partitions; None: any of them."""
        for group in self.groups.values():
            group.is_due |= names is None or any(name in group.state.subscribers for name in names)

    def forget_topics(self, topic_ids: Collection[Uuid] | None) -> None:
        """Deleted topics leave the lists; None: whatever is not in the image."""
        image = self._image()
        for group in list(self.groups.values()):
            listed = initialization.topic_ids_in(group.state.topics)
            gone = {each for each in listed if (each not in image.topics if topic_ids is None else each in topic_ids)}
            if gone:
                self.write_topics(group, initialization.without_topics(group.state.topics, gone), nothing)

    def delete_topics(self, group: ShareGroup, topic_ids: Collection[Uuid], answer: Answer) -> None:
        """Delete the state of these topics, and of those whose deletion was begun. `answer` gets the first error.

        Then it is tried again later, because until it is done no member gets these topics.
        """
        topics = initialization.deletion_begun(group.state.topics, topic_ids)
        partitions = initialization.all_partitions(topics.deleting, topics.deleting, self._image())
        settle = once(answer)

        def is_wanted(key: SharePartitionKey) -> bool:
            return key.topic_id in group.state.topics.deleting and not group.is_closed

        def deleted(results: Results) -> None:
            code = ErrorCode.NOT_COORDINATOR if group.is_closed else first_error(results)
            if code is not ErrorCode.NONE:
                settle(code)
                self._delete_later(group)
            else:
                left = initialization.without_topics(group.state.topics, topics.deleting)
                self.write_topics(group, left, settle)

        self.write_topics(
            group,
            topics,
            only_errors(settle),
            lambda: self.states.delete(initialization.keys_of(group.group_id, partitions), deleted, is_wanted),
        )

    def _delete_later(self, group: ShareGroup) -> None:
        if not group.deletes_later:
            group.deletes_later = True
            self._env.call_later(DELETE_AGAIN_MS, lambda: self._delete_again(group))

    def _delete_again(self, group: ShareGroup) -> None:
        group.deletes_later = False
        if group.state.topics.deleting and not group.is_closed:
            self.delete_topics(group, (), nothing)

    def alter_offsets(
        self, group: ShareGroup, partitions: Topics, start_offsets: Mapping[SharePartitionKey, int], on_done: OnAltered
    ) -> None:
        """Begin the state of partitions of an empty group again, at these offsets. A leader that has loaded the state
        before is fenced by the new epoch."""
        epoch = group.state.epoch + 1
        records: list[ShareGroupRecord] = [
            ShareGroupEpoch(group.group_id, epoch, group.state.metadata_hash),
            ShareTopics(group.group_id, initialization.begun(group.state.topics, partitions)),
        ]
        done = once(on_done)

        def initialized(results: Results) -> None:
            if group.is_closed:
                done(ErrorCode.NOT_COORDINATOR)
                return
            self._initialized(group, partitions, results)
            self._after_writes(lambda code: done(results if code is ErrorCode.NONE else code))

        def applied() -> None:
            # before the commit: a member that joins meanwhile must not begin the state once more, at no offset
            group.in_progress = with_partitions(group.in_progress, partitions)

        def begun() -> None:
            self.states.initialize(epoch, start_offsets, initialized)

        self._write(group, records, applied, only_errors(done), begun)

    def delete(self, group: ShareGroup, answer: Answer) -> None:
        """Delete an empty group: the state of its partitions first."""

        def deleted(code: ErrorCode) -> None:
            if code is ErrorCode.NONE and not group.is_empty:
                code = ErrorCode.NON_EMPTY_GROUP
            if code is not ErrorCode.NONE or group.is_closed:
                answer(code)
            else:
                self._write(group, group_tombstones(group.state), nothing, answer)

        topics = group.state.topics
        if topics.is_empty:
            deleted(ErrorCode.NONE)
        else:
            self.delete_topics(group, initialization.topic_ids_in(topics), deleted)

    # -- writing ------------------------------------------------------------------------------------------------

    def _write(
        self,
        group: ShareGroup,
        records: Sequence[ShareGroupRecord],
        applied: Callable[[], None],
        answer: Answer,
        committed: Callable[[], None] = nothing,
    ) -> None:
        """Write records of a group, which change its state at once and what is committed of it later.

        applied: runs when they are in the log and in the group's state. committed: runs once they are committed.
        """

        def appended() -> None:
            bytes_before = group.state.members_bytes
            group.state.apply(records)
            self._memory_use.bytes += group.state.members_bytes - bytes_before
            self.groups[group.group_id] = group
            group.writes_in_flight += 1
            self._activity.share_rebalances += sum(
                isinstance(record, ShareGroupEpoch) and record.value is not None for record in records
            )
            applied()

        def now_committed() -> None:
            group.writes_in_flight -= 1
            group.committed.apply(records)
            self._forget_if_gone(group)
            committed()

        def answered(code: ErrorCode) -> None:
            answer(ErrorCode.UNKNOWN_SERVER_ERROR if code is ErrorCode.INVALID_COMMIT_OFFSET_SIZE else code)

        self._append([write_share_record(record) for record in records], now_committed, answered, appended)

    def _forget_if_gone(self, group: ShareGroup) -> None:
        if not group.state.exists and not group.writes_in_flight and self.groups.get(group.group_id) is group:
            group.close()
            del self.groups[group.group_id]

    def close(self) -> None:
        """This broker no longer coordinates the groups."""
        groups, self.groups = self.groups, {}
        for group in groups.values():
            group.close()


def has_lost_states(image: Image) -> bool:
    """Whether a partition of `__share_group_state` ever had a leader that may lack records."""
    topic = image.topic_named(SHARE_STATE_TOPIC)
    return topic is not None and any(state.basis is not None for state in image.partitions[topic.id].values())


def once(answer: Callable[[T], None]) -> Callable[[T], None]:
    """Calls it the first time only: what timed out may still happen."""
    left = [answer]

    def call(result: T) -> None:
        if left:
            left.pop()(result)

    return call


def only_errors(answer: Callable[[ErrorCode], None]) -> Answer:
    def call(code: ErrorCode) -> None:
        if code is not ErrorCode.NONE:
            answer(code)

    return call


def _both(code: ErrorCode, committed: Callable[[], None], answer: Answer) -> None:
    if code is ErrorCode.NONE:
        committed()
    answer(code)
