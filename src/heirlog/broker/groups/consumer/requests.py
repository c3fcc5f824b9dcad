"""ConsumerGroupHeartbeat before the group is looked at, and ConsumerGroupDescribe.

A heartbeat is checked for what it can never mean, then the coordinator is found. Describe shows what is committed; a
topic that was deleted meanwhile is left out, because it has no name any more.

Source: KIP-848, KIP-1082 (clients make the member id from version 1 on), KIP-1099 (type of a member).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from heirlog.broker.groups.consumer.state import ConsumerGroupState
from heirlog.broker.groups.consumer.target_assignment import preferred_assignor
from heirlog.broker.groups.consumer.values import (
    JOINING_EPOCH,
    LEAVING_EPOCH,
    STATIC_LEAVING_EPOCH,
    Assignment,
    ConsumerGroupMember,
)
from heirlog.metadata.image import Image
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import ConsumerGroupDescribeResponse, ConsumerGroupHeartbeatRequest

NOT_NAMED = -1
"""RebalanceTimeoutMs of a heartbeat that changes none."""
CLIENT_ID_VERSION = 1
"""ConsumerGroupHeartbeat: the client makes the member id."""
MEMBER_TYPE_CLASSIC, MEMBER_TYPE_CONSUMER = 0, 1
NAME_MAX_CHARACTERS = 8191
"""Limit of ids and names in a request: a record has no room for more than 32,767 bytes of each."""

DescribedConsumerGroup = ConsumerGroupDescribeResponse.DescribedGroup


def check_heartbeat(request: ConsumerGroupHeartbeatRequest, version: int, assignors: Sequence[str]) -> None:
    """Raises KafkaError for a heartbeat that is refused by every group."""
    epoch = request.member_epoch
    if not request.member_id.strip() and (version >= CLIENT_ID_VERSION or epoch > 0 or epoch == LEAVING_EPOCH):
        raise _invalid("MemberId can't be empty.")
    if not request.group_id.strip():
        raise _invalid("GroupId can't be empty.")
    for name, text in (("InstanceId", request.instance_id), ("RackId", request.rack_id)):
        if text is not None and not text.strip():
            raise _invalid(f"{name} can't be empty.")
    if request.rebalance_timeout_ms < NOT_NAMED:
        raise _invalid("RebalanceTimeoutMs must not be negative.")
    if epoch == JOINING_EPOCH:
        if request.rebalance_timeout_ms == NOT_NAMED:
            raise _invalid("RebalanceTimeoutMs must be provided in first request.")
        if request.topic_partitions is None or request.topic_partitions:
            raise _invalid("TopicPartitions must be empty when (re-)joining.")
        if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
            raise _invalid("Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.")
    elif epoch == STATIC_LEAVING_EPOCH and request.instance_id is None:
        raise _invalid("InstanceId can't be null.")
    elif epoch < STATIC_LEAVING_EPOCH:
        raise _invalid("MemberEpoch is invalid.")
    names = (request.member_id, request.instance_id or "", request.rack_id or "", request.server_assignor or "")
    if any(len(name) > NAME_MAX_CHARACTERS for name in (*names, *(request.subscribed_topic_names or ()))):
        raise _invalid(f"An id or a name has more than {NAME_MAX_CHARACTERS} characters.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: {', '.join(assignors)}.",
        )


def _invalid(why: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, why)


def described(
    group: ConsumerGroupState,
    image: Image,
    assignors: Sequence[str],
    operations: int,
    may_describe: Callable[[str], bool] | None,
) -> ConsumerGroupDescribeResponse.DescribedGroup:
    """may_describe: whether the client may describe a topic; None: every topic.

    The group is refused if there is an assigned topic that it may not.
    """
    members = []
    for member_id, member in group.members.items():
        shown = _member(group, member_id, member, image)
        topics = (*shown.assignment.topic_partitions, *shown.target_assignment.topic_partitions)
        if may_describe is not None and not all(may_describe(topic.topic_name) for topic in topics):
            return DescribedConsumerGroup(
                group_id=group.group_id,
                error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                error_message="The group has described topic(s) that the client is not authorized to describe.",
            )
        members.append(shown)
    return DescribedConsumerGroup(
        group_id=group.group_id,
        group_state=group.phase.value,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=preferred_assignor(group.members.values(), assignors),
        members=members,
        authorized_operations=operations,
    )


def _member(
    group: ConsumerGroupState, member_id: str, member: ConsumerGroupMember, image: Image
) -> ConsumerGroupDescribeResponse.Member:
    current = group.current(member_id)
    return ConsumerGroupDescribeResponse.Member(
        member_id=member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=current.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topics),
        subscribed_topic_regex=member.regex or "",
        assignment=_assignment(current.assigned, image),
        target_assignment=_assignment(group.target(member_id), image),
        member_type=MEMBER_TYPE_CONSUMER if member.classic is None else MEMBER_TYPE_CLASSIC,
    )


def _assignment(assignment: Assignment, image: Image) -> ConsumerGroupDescribeResponse.Assignment:
    Topic = ConsumerGroupDescribeResponse.TopicPartitions
    named = ((image.topics.get(topic_id), numbers) for topic_id, numbers in assignment.items())
    return ConsumerGroupDescribeResponse.Assignment(
        topic_partitions=sorted(
            (
                Topic(topic_id=topic.id, topic_name=topic.name, partitions=sorted(numbers))
                for topic, numbers in named
                if topic is not None
            ),
            key=lambda each: each.topic_name,
        )
    )
