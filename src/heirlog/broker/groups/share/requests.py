"""ShareGroupHeartbeat before the group is looked at, and ShareGroupDescribe.

Describe shows what is committed; a topic that was deleted meanwhile is left out, because it has no name any more.

Source: KIP-932.
"""

from __future__ import annotations

from collections.abc import Callable

from heirlog.broker.groups.consumer.requests import NAME_MAX_CHARACTERS
from heirlog.broker.groups.consumer.values import JOINING_EPOCH, LEAVING_EPOCH, Assignment
from heirlog.broker.groups.share.state import ShareGroupState
from heirlog.broker.groups.share.values import ShareSubscriber
from heirlog.metadata.image import Image
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import ShareGroupDescribeResponse, ShareGroupHeartbeatRequest

MEMBER_ID_MAX_CHARACTERS = 36
"""A UUID as text."""

DescribedShareGroup = ShareGroupDescribeResponse.DescribedGroup


def check_share_heartbeat(request: ShareGroupHeartbeatRequest) -> None:
    """Raises KafkaError for a heartbeat that is refused by every group."""
    if not request.member_id.strip():
        raise _invalid("MemberId can't be empty.")
    if len(request.member_id) > MEMBER_ID_MAX_CHARACTERS:
        raise _invalid(f"MemberId has more than {MEMBER_ID_MAX_CHARACTERS} characters.")
    if not request.group_id.strip():
        raise _invalid("GroupId can't be empty.")
    if request.rack_id is not None and not request.rack_id.strip():
        raise _invalid("RackId can't be empty.")
    if request.member_epoch == JOINING_EPOCH and not request.subscribed_topic_names:
        raise _invalid("SubscribedTopicNames must be set in first request.")
    if request.member_epoch < LEAVING_EPOCH:
        raise _invalid("MemberEpoch is invalid.")
    names = (request.rack_id or "", *(request.subscribed_topic_names or ()))
    if any(len(name) > NAME_MAX_CHARACTERS for name in names):
        raise _invalid(f"An id or a name has more than {NAME_MAX_CHARACTERS} characters.")


def _invalid(why: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, why)


def described(
    group: ShareGroupState,
    image: Image,
    assignor: str,
    operations: int,
    may_describe: Callable[[str], bool] | None,
) -> ShareGroupDescribeResponse.DescribedGroup:
    """may_describe: whether the client may describe a topic; None: every topic.

    The group is refused if there is an assigned topic that it may not.
    """
    members = [_member(group, member, image) for member in group.members.values()]
    if may_describe is not None and not all(
        may_describe(topic.topic_name) for member in members for topic in member.assignment.topic_partitions
    ):
        return DescribedShareGroup(
            group_id=group.group_id,
            error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            error_message="The group has described topic(s) that the client is not authorized to describe.",
        )
    return DescribedShareGroup(
        group_id=group.group_id,
        group_state=group.phase.value,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=assignor,
        members=members,
        authorized_operations=operations,
    )


def _member(group: ShareGroupState, member: ShareSubscriber, image: Image) -> ShareGroupDescribeResponse.Member:
    current = group.current(member.member_id)
    return ShareGroupDescribeResponse.Member(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=current.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topics),
        assignment=_assignment(current.assigned, image),
    )


def _assignment(assignment: Assignment, image: Image) -> ShareGroupDescribeResponse.Assignment:
    Topic = ShareGroupDescribeResponse.TopicPartitions
    named = ((image.topics.get(topic_id), numbers) for topic_id, numbers in assignment.items())
    return ShareGroupDescribeResponse.Assignment(
        topic_partitions=sorted(
            (
                Topic(topic_id=topic.id, topic_name=topic.name, partitions=sorted(numbers))
                for topic, numbers in named
                if topic is not None
            ),
            key=lambda each: each.topic_name,
        )
    )
