"""AlterPartition: the leader of a partition asks for a new ISR (KIP-497, KIP-704, KIP-841, KIP-903).

The checks in their order; the first one that fails decides the error:

     1  the sender's broker epoch is not the registered one       STALE_BROKER_EPOCH, for the whole request
     2  unknown topic id                                          UNKNOWN_TOPIC_ID
     3  unknown partition                                         UNKNOWN_TOPIC_OR_PARTITION
     4  a newer leader epoch, or 5 a newer partition epoch        NOT_CONTROLLER: it has seen records that we have not
     6  an older leader epoch                                     FENCED_LEADER_EPOCH
     7  the sender does not lead                                  INVALID_REQUEST
     8  an older partition epoch                                  INVALID_UPDATE_VERSION
     9  not a duplicate-free subset of the replicas with the leader in it        INVALID_REQUEST
    10  RECOVERING with more than one member, or RECOVERED back to RECOVERING    INVALID_REQUEST
    11  a member that is not registered, is fenced, shuts down, or whose epoch
        is neither -1 nor its current one, or whose replica is
        in a log directory that is offline                        INELIGIBLE_REPLICA

If a change completes a reassignment and moves the leadership to another broker, the record is written and the old
leader gets NEW_LEADER_ELECTED. A successful answer also names the offset at which the change is committed (tagged field
10000). The leader may use the new ISR for its high watermark only together with a min ISR that is at least as new.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from heirlog.controller.controller_result import ControllerResult, answer
from heirlog.controller.leadership import Changes, Leadership
from heirlog.controller.partition_change import TargetState
from heirlog.controller.recovery.manager import MANY_ELECTIONS_MS, RecoveryManager
from heirlog.env import Env
from heirlog.metadata.apply import merged
from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.image import Image
from heirlog.metadata.state import RECOVERED, RECOVERING, Ids, PartitionRegistration
from heirlog.pending import Pending
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import AlterPartitionRequest, AlterPartitionResponse
from heirlog.protocol.types import BrokerId, Uuid

_EPOCHS_VERSION = 3
"""The first version that names each member's broker epoch (KIP-903)."""
_ANY_EPOCH = -1
ISR_CHANGE_WAITS_MS: Final = 1000
"""A follower is out of sync for 30 s before it has to leave the ISR."""

T = TypeVar("T")

Asked = AlterPartitionRequest.PartitionData
Answered = AlterPartitionResponse.PartitionData
Members = list[tuple[BrokerId, int]]


def member_is_eligible(image: Image, broker: BrokerId, epoch: int) -> bool:
    """Guard 6: members are unfenced and have the registered broker epoch (KIP-903).

    Without it a follower that restarted with a shorter log enters the ISR because of what it had before the restart.
    """
    registered = image.brokers.get(broker)
    return registered is not None and registered.is_active and epoch in (_ANY_EPOCH, registered.epoch)


def partition_epoch_is_current(state: PartitionRegistration, partition_epoch: int) -> bool:
    """Guard 7: the partition epoch equals the stored one.

    Without it a request based on an old ISR overwrites a record that its sender never saw.
    """
    return partition_epoch == state.partition_epoch


def after_elections(env: Env, recovery: RecoveryManager, handle: Callable[[], T | Pending[T]]) -> T | Pending[T]:
    """Handle a leader's request once few partitions are left for which the controller elects a leader.

    When thousands of partitions recover, the first new leaders ask at once to add their followers to the ISR. That is
    as much work as all elections. The partitions that still have no leader would wait for it.
    """
    return _after_elections(env, recovery, handle, env.now_ms() + ISR_CHANGE_WAITS_MS)


def _after_elections(
    env: Env, recovery: RecoveryManager, handle: Callable[[], T | Pending[T]], latest_ms: int
) -> T | Pending[T]:
    if not recovery.elects_many or env.now_ms() >= latest_ms:
        return handle()
    pending: Pending[T] = Pending()

    def later() -> None:
        answered = _after_elections(env, recovery, handle, latest_ms)
        if isinstance(answered, Pending):
            answered.then(pending.complete)
        else:
            pending.complete(answered)

    env.call_later(MANY_ELECTIONS_MS, later)
    return pending


def alter_partition(
    image: Image, static: StaticConfig, request: AlterPartitionRequest, version: int, next_offset: int
) -> ControllerResult[AlterPartitionResponse]:
    """Returns records and results for all partitions of one request."""
    sender = image.brokers.get(BrokerId(request.broker_id))
    if sender is None or sender.epoch != request.broker_epoch:
        return answer(AlterPartitionResponse(error_code=ErrorCode.STALE_BROKER_EPOCH))
    handling = _Handling(image, static, sender.id, version, next_offset)
    response = AlterPartitionResponse(
        topics=[
            AlterPartitionResponse.TopicData(
                topic_id=topic.topic_id,
                partitions=[handling.partition(Uuid(topic.topic_id), asked) for asked in topic.partitions],
            )
            for topic in request.topics
        ]
    )
    return ControllerResult(lambda base_offset: response, [*handling.changes.records], handling.changes.elections)


class _Handling:
    """The state of one request while it is handled."""

    def __init__(self, image: Image, static: StaticConfig, sender: BrokerId, version: int, next_offset: int) -> None:
        self._image = image
        self._sender = sender
        self._version = version
        self._next_offset = next_offset
        self._leadership = Leadership(image, static)
        self._seen: set[tuple[Uuid, int]] = set()
        self.changes = Changes()

    def partition(self, topic_id: Uuid, asked: Asked) -> Answered:
        members = self._members(asked)
        error = self._refusal(topic_id, asked, members)
        if error is not ErrorCode.NONE:
            return Answered(partition_index=asked.partition_index, error_code=error)
        self._seen.add((topic_id, asked.partition_index))
        before = self._image.partitions[topic_id][asked.partition_index]
        built = self._leadership.change(
            topic_id,
            asked.partition_index,
            TargetState(isr=tuple(broker for broker, _ in members), recovery_state=asked.leader_recovery_state),
        )
        if built.record is None:
            return _answered(asked.partition_index, before, self._next_offset - 1)
        self.changes.add(built)
        offset = self._next_offset + len(self.changes.records) - 1
        after = merged(self._image, before, built.record)
        if after.leader != self._sender:
            return Answered(partition_index=asked.partition_index, error_code=ErrorCode.NEW_LEADER_ELECTED)
        return _answered(asked.partition_index, after, offset)

    def _members(self, asked: Asked) -> Members:
        if self._version < _EPOCHS_VERSION:
            return [(BrokerId(broker), _ANY_EPOCH) for broker in asked.new_isr]
        return [(BrokerId(member.broker_id), member.broker_epoch) for member in asked.new_isr_with_epochs]

    def _refusal(self, topic_id: Uuid, asked: Asked, members: Members) -> ErrorCode:
        """Checks 2 to 11."""
        partitions = self._image.partitions.get(topic_id)
        if partitions is None:
            return ErrorCode.UNKNOWN_TOPIC_ID
        state = partitions.get(asked.partition_index)
        if state is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if asked.leader_epoch > state.leader_epoch or asked.partition_epoch > state.partition_epoch:
            return ErrorCode.NOT_CONTROLLER
        if asked.leader_epoch < state.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if self._sender != state.leader or (topic_id, asked.partition_index) in self._seen:
            return ErrorCode.INVALID_REQUEST
        if not partition_epoch_is_current(state, asked.partition_epoch):
            return ErrorCode.INVALID_UPDATE_VERSION
        if not _is_valid_isr(state, tuple(broker for broker, _ in members)):
            return ErrorCode.INVALID_REQUEST
        if not _recovery_state_may_follow(state, asked.leader_recovery_state, len(members)):
            return ErrorCode.INVALID_REQUEST
        if not all(member_is_eligible(self._image, broker, epoch) for broker, epoch in members):
            return ErrorCode.INELIGIBLE_REPLICA
        if not all(self._image.brokers[broker].has_online(state.directory_of(broker)) for broker, _ in members):
            return ErrorCode.INELIGIBLE_REPLICA
        return ErrorCode.NONE


def _is_valid_isr(state: PartitionRegistration, isr: Ids) -> bool:
    return len(set(isr)) == len(isr) and state.leader in isr and all(broker in state.replicas for broker in isr)


def _recovery_state_may_follow(state: PartitionRegistration, wanted: int, members: int) -> bool:
    if wanted not in (RECOVERED, RECOVERING):
        return False
    if wanted == RECOVERING:
        # a leader that has not dealt with the loss yet must not let followers in
        return members == 1 and state.leader_recovery_state == RECOVERING
    return True


def _answered(partition: int, state: PartitionRegistration, committed_offset: int) -> Answered:
    return Answered(
        partition_index=partition,
        leader_id=state.leader,
        leader_epoch=state.leader_epoch,
        isr=list(state.isr),
        leader_recovery_state=state.leader_recovery_state,
        partition_epoch=state.partition_epoch,
        committed_offset=committed_offset,
    )
