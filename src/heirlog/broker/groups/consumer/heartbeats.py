"""What a heartbeat of a consumer group does: request in, records and the answer out.

    1  which member is it?           a new one joins with epoch 0; a static one may take the place of its instance
    2  is it where it should be?     its epoch, or the previous one if the last answer was lost
    3  what does it say of itself?   fields that are null did not change
    4  does the group change?        new subscriptions, or topics that changed, raise the group epoch
    5  who shall have what?          a new group epoch needs a new target assignment
    6  what may this member have?    it is reconciled with its target

Nothing changes here: the records are applied when they are in the log, so a group is never in a state that a later
coordinator could not load. A heartbeat that changes nothing returns no records and looks at no partition
(`is_unchanged`).

Source: KIP-848; KIP-1082 (ids made by clients), KAFKA-19233 (a member that lost its join answer).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from heirlog.broker.groups.consumer.reconciliation import reconciled
from heirlog.broker.groups.consumer.records import (
    ConsumerGroupRecord,
    CurrentMember,
    GroupEpoch,
    MemberSubscription,
    OldTopicMetadata,
    RegexTopics,
    TargetEpoch,
    TargetMember,
)
from heirlog.broker.groups.consumer.regular_expressions import compiled
from heirlog.broker.groups.consumer.state import ConsumerGroupState
from heirlog.broker.groups.consumer.subscriptions import known_topics, metadata_hash, subscribed_topics_of
from heirlog.broker.groups.consumer.target_assignment import (
    computed_targets,
    group_to_assign,
    is_large,
    preferred_assignor,
    target_records,
)
from heirlog.broker.groups.consumer.values import (
    JOINING_EPOCH,
    STATIC_LEAVING_EPOCH,
    Assignment,
    ConsumerGroupMember,
    MemberAssignment,
    MemberState,
    assignment_of,
    contains,
)
from heirlog.context import Context
from heirlog.metadata.image import Image
from heirlog.metadata.survey import at_once
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from heirlog.protocol.types import Uuid


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What decides besides the group."""

    image: Image
    assignors: Sequence[str]
    """group.consumer.assignors"""
    max_size: int
    """group.consumer.max.size"""
    metadata_is_due: bool
    """A subscribed topic may have changed."""


@dataclass(frozen=True, slots=True)
class HeartbeatPlan:
    records: list[ConsumerGroupRecord]
    member: ConsumerGroupMember
    current: MemberAssignment
    shows_assignment: bool
    replaced: str | None = None
    """Member id of the former process of this static member."""
    looked_at_topics: bool = False
    """The topics of the group were looked up in the image."""
    needs_assignment: bool = False
    """The group is large: the target is computed after the answer."""


def is_unchanged(group: ConsumerGroupState, request: ConsumerGroupHeartbeatRequest, context: Context) -> bool:
    """Whether the heartbeat of a member says nothing new and the group has nothing to tell it."""
    member = group.members.get(request.member_id)
    current = group.currents.get(request.member_id)
    epoch = request.member_epoch
    return (
        member is not None
        and current is not None
        and epoch > 0
        and epoch == current.epoch
        and epoch == group.assignment_epoch
        and epoch == group.epoch
        and current.state is MemberState.STABLE
        and member.classic is None
        and member.client_id == context.client_id
        and member.client_host == f"/{context.client_host}"
        and request.topic_partitions is None
        and request.subscribed_topic_names is None
        and request.subscribed_topic_regex is None
        and request.server_assignor is None
        and request.rebalance_timeout_ms == -1
        and request.rack_id is None
        and (request.instance_id is None or request.instance_id == member.instance_id)
    )


def owned_in(request: ConsumerGroupHeartbeatRequest) -> Assignment | None:
    if request.topic_partitions is None:
        return None
    return assignment_of((Uuid(bytes(each.topic_id)), each.partitions) for each in request.topic_partitions)


def heartbeat_plan(
    group: ConsumerGroupState,
    member_id: str,
    request: ConsumerGroupHeartbeatRequest,
    client: tuple[str, str],
    around: Surroundings,
) -> HeartbeatPlan:
    """member_id: that of the request, or a new one if it has none. client: its id and host. Raises KafkaError."""
    epoch, owned = request.member_epoch, owned_in(request)
    if len(group.members) >= around.max_size and member_id not in group.members:
        raise KafkaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"the group has {len(group.members)} members, and group.consumer.max.size allows no more",
        )
    former = former_member(group, member_id, request.instance_id, epoch, is_classic=False)
    before = None if former is None else group.members[former]
    current = MemberAssignment()
    if former is not None and former != member_id:
        current = MemberAssignment(assigned=group.current(former).assigned)
    elif former is not None:
        current = group.current(former)
        if current.epoch == STATIC_LEAVING_EPOCH and epoch == JOINING_EPOCH:
            current = MemberAssignment(assigned=current.assigned)
        check_epoch(current, epoch, owned)
    after = _as_it_says(before or ConsumerGroupMember(member_id), member_id, request, client)
    plan = follow(group, before, after, current, owned, around, replaced=former if former != member_id else None)
    is_full = (
        request.rebalance_timeout_ms != -1
        and (request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None)
        and owned is not None
    )
    shows = epoch == JOINING_EPOCH or is_full or plan.current.assigned != current.assigned
    return replace(plan, shows_assignment=shows)


def heartbeat_answer(plan: HeartbeatPlan, interval_ms: int) -> ConsumerGroupHeartbeatResponse:
    Assigned = ConsumerGroupHeartbeatResponse.Assignment
    Topic = ConsumerGroupHeartbeatResponse.TopicPartitions
    return ConsumerGroupHeartbeatResponse(
        member_id=plan.member.member_id,
        member_epoch=plan.current.epoch,
        heartbeat_interval_ms=interval_ms,
        assignment=Assigned(
            topic_partitions=[
                Topic(topic_id=topic_id, partitions=sorted(numbers))
                for topic_id, numbers in sorted(plan.current.assigned.items())
            ]
        )
        if plan.shows_assignment
        else None,
    )


# -- 1, 2: the member -------------------------------------------------------------------------------------------------


def former_member(
    group: ConsumerGroupState, member_id: str, instance_id: str | None, epoch: int, *, is_classic: bool
) -> str | None:
    """The member that sends the request, or that a static member replaces; None for a new one. Raises KafkaError."""
    if instance_id is None:
        if member_id in group.members:
            return member_id
        if epoch != JOINING_EPOCH:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID, f"group {group.group_id} has no member {member_id}; join it again"
            )
        return None
    known = group.static_members.get(instance_id)
    if epoch == JOINING_EPOCH:
        if known is None:
            return member_id if member_id in group.members else None
        is_away = group.current(known).epoch == STATIC_LEAVING_EPOCH
        if not (is_away or is_classic or group.members[known].classic is not None):
            raise KafkaError(
                ErrorCode.UNRELEASED_INSTANCE_ID,
                f"instance {instance_id} is still used by member {known}; stop it first, or wait for its session",
            )
        return known
    check_static(group, member_id, instance_id)
    return member_id


def check_static(group: ConsumerGroupState, member_id: str, instance_id: str) -> None:
    """Raises KafkaError if the member does not have this instance."""
    known = group.static_members.get(instance_id)
    if known is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"group {group.group_id} has no instance {instance_id}")
    if known != member_id:
        raise KafkaError(
            ErrorCode.FENCED_INSTANCE_ID, f"instance {instance_id} is used by member {known}, which replaced this one"
        )


def check_epoch(current: MemberAssignment, epoch: int, owned: Assignment | None) -> None:
    """A member continues only from the epoch that it has. Raises KafkaError with FENCED_MEMBER_EPOCH.

    The previous epoch is accepted where the answer with the newer one was lost: if the member has nothing else than
    what it is assigned.
    """
    if epoch in (JOINING_EPOCH, current.epoch):
        return
    is_repeated = epoch == current.previous_epoch and owned is not None and contains(current.assigned, owned)
    if epoch > current.epoch or not is_repeated:
        raise KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"the member is at epoch {epoch} and the coordinator knows it at {current.epoch}; "
            "it must give up its partitions and join again",
        )


# -- 3: what it says --------------------------------------------------------------------------------------------------


def _as_it_says(
    before: ConsumerGroupMember, member_id: str, request: ConsumerGroupHeartbeatRequest, client: tuple[str, str]
) -> ConsumerGroupMember:
    names, regex, timeout_ms = (
        request.subscribed_topic_names,
        request.subscribed_topic_regex,
        request.rebalance_timeout_ms,
    )
    return ConsumerGroupMember(
        member_id=member_id,
        instance_id=before.instance_id if request.instance_id is None else request.instance_id,
        rack_id=before.rack_id if request.rack_id is None else request.rack_id,
        client_id=client[0],
        client_host=client[1],
        topics=before.topics if names is None else frozenset(names),
        regex=before.regex if regex is None else regex or None,
        rebalance_timeout_ms=before.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        server_assignor=before.server_assignor if request.server_assignor is None else request.server_assignor,
        classic=None,
    )


# -- 4 to 6: the group, the target, the member ------------------------------------------------------------------------


def follow(
    group: ConsumerGroupState,
    before: ConsumerGroupMember | None,
    after: ConsumerGroupMember,
    current: MemberAssignment,
    owned: Assignment | None,
    around: Surroundings,
    *,
    replaced: str | None = None,
) -> HeartbeatPlan:
    """before: what the member, or the one that it replaces, said so far. current: what it has. Raises KafkaError."""
    group_id, member_id = group.group_id, after.member_id
    records: list[ConsumerGroupRecord] = []
    targets: Mapping[str, Assignment] = group.targets
    if replaced is not None:
        records += member_tombstones(group, replaced)
        targets = {each: target for each, target in group.targets.items() if each != replaced}
        targets[member_id] = group.target(replaced)
    if after != before:
        records.append(MemberSubscription(group_id, member_id, after))
    if replaced is not None:
        records.append(TargetMember(group_id, member_id, targets[member_id]))

    is_bumped = _subscribes_differently(group, before, after) or group.epoch == 0
    records += _forgotten_regexes(group, before, after)
    epoch, topics = group.epoch, None
    if is_bumped or around.metadata_is_due:
        names = subscribed_topics_of(group, after, without=() if replaced is None else (replaced,))
        topics = known_topics(around.image, names)
        new_hash = metadata_hash(topics)
        if is_bumped or new_hash != group.metadata_hash:
            epoch += 1
            records.append(GroupEpoch(group_id, epoch, new_hash))
        if group.has_old_metadata:
            records.append(OldTopicMetadata(group_id))

    target_epoch, target, needs_assignment = group.assignment_epoch, targets.get(member_id, {}), False
    if epoch > group.assignment_epoch:
        members = {each: member for each, member in group.members.items() if each != replaced}
        members[member_id] = after
        if topics is None:
            names = subscribed_topics_of(group, after, without=() if replaced is None else (replaced,))
            topics = known_topics(around.image, names)
        needs_assignment = group.assignment_epoch > 0 and is_large(len(members), topics)
        if not needs_assignment:
            assignor = preferred_assignor(members.values(), around.assignors)
            found = at_once(computed_targets(assignor, group_to_assign(group, members, targets, topics)))
            records += target_records(group, found, epoch, targets)
            target_epoch, target = epoch, found[member_id]

    subscribed = known_topics(around.image, group.topics_of(after))
    moved = reconciled(
        member_id,
        current,
        target_epoch=target_epoch,
        target=target,
        subscribed=frozenset(topic.topic_id for topic in subscribed.values()),
        owners=_owners_without(group, replaced),
        owned=owned,
        subscription_changed=before is not None and group.topics_of(before) != group.topics_of(after),
    )
    if moved is not current or current is not group.currents.get(member_id):
        records.append(CurrentMember(group_id, member_id, moved))
    return HeartbeatPlan(
        records,
        after,
        moved,
        shows_assignment=False,
        replaced=replaced,
        looked_at_topics=topics is not None,
        needs_assignment=needs_assignment,
    )


def _owners_without(group: ConsumerGroupState, replaced: str | None) -> Mapping[Uuid, Mapping[int, str]]:
    """Who has each partition, once `replaced` has nothing any more."""
    if replaced is None:
        return group.owners
    return {
        topic_id: {number: owner for number, owner in owners.items() if owner != replaced}
        for topic_id, owners in group.owners.items()
    }


def _subscribes_differently(
    group: ConsumerGroupState, before: ConsumerGroupMember | None, after: ConsumerGroupMember
) -> bool:
    """Whether the group must be assigned again. Raises KafkaError for a bad regular expression.

    A member that brings an expression without known topics changes nothing yet: its lookup raises the epoch.
    """
    known = before or ConsumerGroupMember(after.member_id)
    if after.regex != known.regex:
        if after.regex is not None and after.regex not in group.regex_subscribers:
            compiled(after.regex)
        if after.regex is None or after.regex in group.regexes:
            return True
    return after.topics != known.topics


def _forgotten_regexes(
    group: ConsumerGroupState, before: ConsumerGroupMember | None, after: ConsumerGroupMember
) -> list[ConsumerGroupRecord]:
    if before is None or before.regex is None or before.regex == after.regex:
        return []
    is_last = group.regex_subscribers[before.regex] == 1
    return [RegexTopics(group.group_id, before.regex, None)] if is_last and before.regex in group.regexes else []


def member_tombstones(group: ConsumerGroupState, member_id: str) -> list[ConsumerGroupRecord]:
    return [
        CurrentMember(group.group_id, member_id, None),
        TargetMember(group.group_id, member_id, None),
        MemberSubscription(group.group_id, member_id, None),
    ]


# -- leaving ----------------------------------------------------------------------------------------------------------


def removal_records(group: ConsumerGroupState, member_ids: Sequence[str], image: Image) -> list[ConsumerGroupRecord]:
    """Members leave for good, or are fenced: their records go, and the group epoch rises once."""
    records: list[ConsumerGroupRecord] = []
    for member_id in member_ids:
        records += member_tombstones(group, member_id)
    left = {each: member for each, member in group.members.items() if each not in set(member_ids)}
    still_used = {member.regex for member in left.values()}
    records += [RegexTopics(group.group_id, regex, None) for regex in group.regexes if regex not in still_used]
    topics = known_topics(image, subscribed_topics_of(group, without=member_ids))
    records.append(GroupEpoch(group.group_id, group.epoch + 1, metadata_hash(topics)))
    return records


def static_leave_record(group: ConsumerGroupState, member_id: str) -> ConsumerGroupRecord:
    """A static member leaves for a while: what it has stays its own."""
    current = group.current(member_id)
    return CurrentMember(
        group.group_id,
        member_id,
        MemberAssignment(STATIC_LEAVING_EPOCH, current.previous_epoch, current.state, current.assigned),
    )


def group_tombstones(group: ConsumerGroupState) -> list[ConsumerGroupRecord]:
    """All records of the group."""
    group_id = group.group_id
    records: list[ConsumerGroupRecord] = [CurrentMember(group_id, each, None) for each in group.currents]
    records += [TargetMember(group_id, each, None) for each in group.targets]
    records.append(TargetEpoch(group_id, None))
    records += [MemberSubscription(group_id, each, None) for each in group.members]
    records += [RegexTopics(group_id, regex, None) for regex in group.regexes]
    if group.has_old_metadata:
        records.append(OldTopicMetadata(group_id))
    records.append(GroupEpoch(group_id, None))
    return records
