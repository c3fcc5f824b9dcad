"""What a heartbeat of a share group does: request in, records and the answer out.

    1  which member is it?         a new one joins with epoch 0
    2  is it where it should be?   its epoch, or the previous one if the last answer was lost
    3  what does it say?           fields that are null did not change
    4  does the group change?      other subscriptions, topics that changed, and partitions whose state became ready
                                   raise the group epoch
    5  who may fetch what?         a new group epoch needs a new target assignment
    6  the member has its target

Only partitions whose state is initialized are assigned (`initialization.py`): the leader of another one would refuse
its members.

Source: KIP-932; KAFKA-19233 (a member that lost its join answer).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from heirlog.broker.groups.consumer.subscriptions import SubscribedTopic, known_topics, metadata_hash
from heirlog.broker.groups.consumer.values import (
    JOINING_EPOCH,
    Assignment,
    MemberAssignment,
    assignment_of,
    plus,
)
from heirlog.broker.groups.share.assignor import ShareMemberToAssign, simple
from heirlog.broker.groups.share.records import (
    ShareCurrentMember,
    ShareGroupEpoch,
    ShareGroupRecord,
    ShareSubscription,
    ShareTargetEpoch,
    ShareTargetMember,
    ShareTopics,
)
from heirlog.broker.groups.share.state import ShareGroupState
from heirlog.broker.groups.share.values import ShareSubscriber
from heirlog.context import Context
from heirlog.metadata.image import Image
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from heirlog.protocol.types import Uuid


@dataclass(frozen=True, slots=True)
class ShareSurroundings:
    """What decides besides the group."""

    image: Image
    max_size: int
    """group.share.max.size"""
    is_due: bool
    """A subscribed topic, or the state of its partitions, may have changed."""


@dataclass(frozen=True, slots=True)
class SharePlan:
    records: list[ShareGroupRecord]
    member: ShareSubscriber
    current: MemberAssignment
    shows_assignment: bool
    looked_at_topics: bool


def is_unchanged(group: ShareGroupState, request: ShareGroupHeartbeatRequest, context: Context) -> bool:
    """Whether the heartbeat of a member says nothing new and the group has nothing to tell it."""
    member = group.members.get(request.member_id)
    current = group.currents.get(request.member_id)
    return (
        member is not None
        and current is not None
        and request.member_epoch == current.epoch == group.assignment_epoch == group.epoch > 0
        and member.client_id == context.client_id
        and member.client_host == f"/{context.client_host}"
        and request.subscribed_topic_names is None
        and request.rack_id in (None, member.rack_id)
    )


def heartbeat_plan(
    group: ShareGroupState, request: ShareGroupHeartbeatRequest, client: tuple[str, str], around: ShareSurroundings
) -> SharePlan:
    """client: its id and host. Raises KafkaError."""
    member_id = request.member_id
    before = group.members.get(member_id)
    if before is None and len(group.members) >= around.max_size:
        raise KafkaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"the group has {len(group.members)} members, and group.share.max.size allows no more",
        )
    current = group.current(member_id)
    _check_epoch(group, before, current, request)
    after = _as_it_says(before or ShareSubscriber(member_id), request, client)
    records: list[ShareGroupRecord] = []
    if after != before:
        records.append(ShareSubscription(group.group_id, member_id, after))

    subscribes_differently = before is None or before.topics != after.topics
    looks = around.is_due or subscribes_differently or group.epoch == 0 or group.epoch > group.assignment_epoch
    epoch, target_epoch, target = group.epoch, group.assignment_epoch, group.target(member_id)
    known: Mapping[str, SubscribedTopic] = {}
    if looks:
        members = {**group.members, member_id: after}
        known = known_topics(around.image, {topic for member in members.values() for topic in member.topics})
        assignable = _assignable(group, known)
        new_hash = metadata_hash(known)
        if (
            subscribes_differently
            or epoch == 0
            or new_hash != group.metadata_hash
            or (epoch == target_epoch and _assigned(group.targets) != assignable)
        ):
            epoch += 1
            records.append(ShareGroupEpoch(group.group_id, epoch, new_hash))
        if epoch > target_epoch:
            found = simple(_to_assign(group, members, known, assignable), assignable)
            records += [
                ShareTargetMember(group.group_id, each, assigned)
                for each, assigned in found.items()
                if each not in group.targets or group.targets[each] != assigned
            ]
            records.append(ShareTargetEpoch(group.group_id, epoch))
            target_epoch, target = epoch, found[member_id]

    moved = current
    if current.epoch != target_epoch or current.assigned != target or member_id not in group.currents:
        moved = MemberAssignment(target_epoch, current.epoch, assigned=target)
        records.append(ShareCurrentMember(group.group_id, member_id, moved))
    return SharePlan(
        records,
        after,
        moved,
        # at the previous epoch: the answer with the assignment was lost
        shows_assignment=request.member_epoch == JOINING_EPOCH
        or request.member_epoch != current.epoch
        or request.subscribed_topic_names is not None
        or moved.assigned != current.assigned,
        looked_at_topics=looks,
    )


def heartbeat_answer(plan: SharePlan, interval_ms: int) -> ShareGroupHeartbeatResponse:
    R = ShareGroupHeartbeatResponse
    return R(
        member_id=plan.member.member_id,
        member_epoch=plan.current.epoch,
        heartbeat_interval_ms=interval_ms,
        assignment=R.Assignment(
            topic_partitions=[
                R.TopicPartitions(topic_id=topic_id, partitions=sorted(numbers))
                for topic_id, numbers in sorted(plan.current.assigned.items())
            ]
        )
        if plan.shows_assignment
        else None,
    )


def _check_epoch(
    group: ShareGroupState,
    before: ShareSubscriber | None,
    current: MemberAssignment,
    request: ShareGroupHeartbeatRequest,
) -> None:
    epoch = request.member_epoch
    if epoch == JOINING_EPOCH:
        return
    if before is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_MEMBER_ID, f"group {group.group_id} has no member {request.member_id}; join it again"
        )
    if epoch not in (current.epoch, current.previous_epoch):
        raise KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"the member is at epoch {epoch} and the coordinator knows it at {current.epoch}; it must join again",
        )


def _as_it_says(
    before: ShareSubscriber, request: ShareGroupHeartbeatRequest, client: tuple[str, str]
) -> ShareSubscriber:
    names = request.subscribed_topic_names
    return ShareSubscriber(
        before.member_id,
        before.rack_id if request.rack_id is None else request.rack_id,
        *client,
        before.topics if names is None else frozenset(names),
    )


# -- the target -------------------------------------------------------------------------------------------------------


def _assignable(group: ShareGroupState, known: Mapping[str, SubscribedTopic]) -> dict[Uuid, frozenset[int]]:
    """Partitions of subscribed topics whose state is initialized."""
    wanted = {topic.topic_id for topic in known.values()}
    return {
        topic_id: partitions
        for topic_id, (_, partitions) in group.topics.initialized.items()
        if topic_id in wanted and topic_id not in group.topics.deleting and partitions
    }


def _assigned(targets: Mapping[str, Assignment]) -> Assignment:
    together: Assignment = assignment_of(())
    for target in targets.values():
        together = plus(together, target)
    return together


def _to_assign(
    group: ShareGroupState,
    members: Mapping[str, ShareSubscriber],
    known: Mapping[str, SubscribedTopic],
    assignable: Mapping[Uuid, frozenset[int]],
) -> dict[str, ShareMemberToAssign]:
    ids = {name: topic.topic_id for name, topic in known.items() if topic.topic_id in assignable}
    return {
        member_id: ShareMemberToAssign(
            frozenset(ids[name] for name in member.topics if name in ids), group.target(member_id)
        )
        for member_id, member in members.items()
    }


# -- leaving ----------------------------------------------------------------------------------------------------------


def removal_records(group: ShareGroupState, member_ids: Sequence[str], image: Image) -> list[ShareGroupRecord]:
    """Members leave, or their sessions ended: their records go, and the group epoch rises once."""
    records: list[ShareGroupRecord] = []
    for member_id in member_ids:
        records += _member_tombstones(group.group_id, member_id)
    gone = Counter(topic for each in member_ids for topic in group.members[each].topics)
    topics = known_topics(image, group.subscribers - gone)
    records.append(ShareGroupEpoch(group.group_id, group.epoch + 1, metadata_hash(topics)))
    return records


def group_tombstones(group: ShareGroupState) -> list[ShareGroupRecord]:
    """All records of the group."""
    group_id = group.group_id
    records: list[ShareGroupRecord] = []
    for member_id in dict.fromkeys((*group.members, *group.targets, *group.currents)):
        records += _member_tombstones(group_id, member_id)
    records += [ShareTargetEpoch(group_id, None), ShareTopics(group_id, None), ShareGroupEpoch(group_id, None)]
    return records


def _member_tombstones(group_id: str, member_id: str) -> list[ShareGroupRecord]:
    return [
        ShareCurrentMember(group_id, member_id, None),
        ShareTargetMember(group_id, member_id, None),
        ShareSubscription(group_id, member_id, None),
    ]
