"""ListGroups, DescribeGroups, Consumer- and ShareGroupDescribe, DeleteGroups: groups as an operator sees them.

A group that does not exist is described as Dead, as on Apache Kafka; from DescribeGroups 6 on also with
GROUP_ID_NOT_FOUND. Subscriptions are only shown for a Stable group: in other states the members have not agreed on a
protocol. Assignments are those of the last generation until the next one has its own. A group with members is not
deleted (NON_EMPTY_GROUP).

Source: KIP-229, KIP-518 (states filter), KIP-848 (types filter), KIP-1043 (DescribeGroups 6).
"""

from __future__ import annotations

from functools import partial
from typing import Any

from heirlog.broker.groups.consumer.group import ConsumerGroup
from heirlog.broker.groups.consumer.requests import DescribedConsumerGroup, described
from heirlog.broker.groups.coordinator import GroupCoordinator
from heirlog.broker.groups.group import CONSUMER, ClassicGroup, GroupState
from heirlog.broker.groups.group_registry import Group
from heirlog.broker.groups.share import requests as share_requests
from heirlog.broker.groups.share.group import ShareGroup
from heirlog.context import Context
from heirlog.metadata.acls import NOT_ASKED, OPERATIONS, ResourceType, bit_field
from heirlog.pending import Pending
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)

CLASSIC, SHARE = "classic", "share"
NOT_FOUND_VERSION = 6
# without an authorizer every operation is allowed; with one, the guard of the API removes those that are not
GROUP_OPERATIONS = bit_field(OPERATIONS[ResourceType.GROUP])

Described = DescribeGroupsResponse.DescribedGroup


def list_groups(coordinator: GroupCoordinator, request: ListGroupsRequest) -> ListGroupsResponse:
    """Groups that this broker coordinates; an error next to the list says that some are still loading."""
    states = {state.lower() for state in request.states_filter}
    types = {kind.lower() for kind in request.types_filter}
    response = ListGroupsResponse()
    for shard in coordinator.shards():
        if not shard.loaded:
            response.error_code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        else:
            response.groups += [
                listed
                for listed in map(_listed, (*shard.groups.values(), *shard.shares.groups.values()))
                if listed is not None
                and (not types or listed.group_type in types)
                and (not states or listed.group_state.lower() in states)
            ]
    return response


def _listed(group: Group | ShareGroup) -> ListGroupsResponse.ListedGroup | None:
    """None for a group that nothing committed says of yet."""
    if isinstance(group, ClassicGroup):
        protocol_type, state, kind = group.protocol_type or "", group.state.value, CLASSIC
    elif isinstance(group, ShareGroup) and group.committed.exists:
        protocol_type, state, kind = SHARE, group.committed.phase.value, SHARE
    elif group.committed.exists:
        protocol_type, state, kind = CONSUMER, group.committed.phase.value, CONSUMER
    else:
        return None
    return ListGroupsResponse.ListedGroup(
        group_id=group.group_id, protocol_type=protocol_type, group_state=state, group_type=kind
    )


def describe_consumer_groups(
    coordinator: GroupCoordinator, request: ConsumerGroupDescribeRequest, context: Context
) -> ConsumerGroupDescribeResponse:
    operations = GROUP_OPERATIONS if request.include_authorized_operations else NOT_ASKED
    return ConsumerGroupDescribeResponse(
        groups=[
            _describe_consumer(coordinator, group_id, operations, context)
            for group_id in dict.fromkeys(request.group_ids)
        ]
    )


def _describe_consumer(
    coordinator: GroupCoordinator, group_id: str, operations: int, context: Context
) -> ConsumerGroupDescribeResponse.DescribedGroup:
    refused = partial(DescribedConsumerGroup, group_id=group_id)
    if not coordinator.serves_consumer_protocol:
        return refused(error_code=ErrorCode.UNSUPPORTED_VERSION)
    if not group_id:
        return refused(error_code=ErrorCode.INVALID_GROUP_ID)
    shard = coordinator.shard_of(group_id)
    if isinstance(shard, ErrorCode):
        return refused(error_code=shard)
    group = shard.groups.get(group_id)
    if not isinstance(group, ConsumerGroup) or not group.committed.exists:
        why = shard.why_no_consumer_group(group_id)
        return refused(error_code=ErrorCode.GROUP_ID_NOT_FOUND, error_message=why)
    refuses = context.refuses
    may_describe = None if refuses is None else lambda topic: not refuses(topic)
    return described(group.committed, coordinator.image(), coordinator.assignors, operations, may_describe)


def describe_share_groups(
    coordinator: GroupCoordinator, request: ShareGroupDescribeRequest, context: Context
) -> ShareGroupDescribeResponse:
    operations = GROUP_OPERATIONS if request.include_authorized_operations else NOT_ASKED
    return ShareGroupDescribeResponse(
        groups=[
            _describe_share(coordinator, group_id, operations, context) for group_id in dict.fromkeys(request.group_ids)
        ]
    )


def _describe_share(
    coordinator: GroupCoordinator, group_id: str, operations: int, context: Context
) -> ShareGroupDescribeResponse.DescribedGroup:
    refused = partial(share_requests.DescribedShareGroup, group_id=group_id)
    if not coordinator.serves_share_groups:
        return refused(error_code=ErrorCode.UNSUPPORTED_VERSION)
    if not group_id:
        return refused(error_code=ErrorCode.INVALID_GROUP_ID)
    shard = coordinator.shard_of(group_id)
    if isinstance(shard, ErrorCode):
        return refused(error_code=shard)
    group = shard.shares.groups.get(group_id)
    if group is None or not group.committed.exists:
        why = shard.why_no_share_group(group_id)
        return refused(error_code=ErrorCode.GROUP_ID_NOT_FOUND, error_message=why)
    refuses = context.refuses
    may_describe = None if refuses is None else lambda topic: not refuses(topic)
    return share_requests.described(
        group.committed, coordinator.image(), coordinator.share_assignor, operations, may_describe
    )


def describe_groups(
    coordinator: GroupCoordinator, request: DescribeGroupsRequest, context: Context
) -> DescribeGroupsResponse:
    operations = GROUP_OPERATIONS if request.include_authorized_operations else NOT_ASKED
    return DescribeGroupsResponse(
        groups=[
            _describe(coordinator, group_id, operations, context.api_version)
            for group_id in dict.fromkeys(request.groups)
        ]
    )


def _describe(
    coordinator: GroupCoordinator, group_id: str, operations: int, version: int
) -> DescribeGroupsResponse.DescribedGroup:
    shard = coordinator.shard_of(group_id)
    if isinstance(shard, ErrorCode):
        return Described(group_id=group_id, error_code=shard, error_message=None)
    group = shard.groups.get(group_id)
    if not isinstance(group, ClassicGroup):
        # one of another protocol looks as if it did not exist
        answer = Described(group_id=group_id, group_state=GroupState.DEAD.value, error_message=None)
        if version >= NOT_FOUND_VERSION:
            answer.error_code = ErrorCode.GROUP_ID_NOT_FOUND
            answer.error_message = f"Group {group_id} not found."
        else:
            answer.authorized_operations = operations
        return answer
    return Described(
        group_id=group_id,
        error_message=None,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=group.protocol or "" if group.state is GroupState.STABLE else "",
        members=_members(group),
        authorized_operations=operations,
    )


def _members(group: ClassicGroup) -> list[DescribeGroupsResponse.DescribedGroupMember]:
    stable = group.state is GroupState.STABLE
    return [
        DescribeGroupsResponse.DescribedGroupMember(
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            member_metadata=member.subscription(group.protocol) if stable else b"",
            member_assignment=member.assignment,
        )
        for member in group.members.values()
    ]


def delete_groups(coordinator: GroupCoordinator, request: DeleteGroupsRequest) -> DeleteGroupsResponse | Pending[Any]:
    """Delete groups; answered when every deletion is committed or refused."""
    pending: Pending[Any] = Pending()
    results = dict.fromkeys(request.groups_names, ErrorCode.NONE)
    waiting = dict.fromkeys(results)

    def settled(group_id: str, code: ErrorCode) -> None:
        results[group_id] = code
        del waiting[group_id]
        if not waiting:
            pending.complete(
                DeleteGroupsResponse(
                    results=[
                        DeleteGroupsResponse.DeletableGroupResult(group_id=each, error_code=result)
                        for each, result in results.items()
                    ]
                )
            )

    if not results:
        return DeleteGroupsResponse()
    for group_id in list(results):
        shard = coordinator.shard_of(group_id)
        if isinstance(shard, ErrorCode):
            settled(group_id, shard)
            continue
        share_group = shard.shares.groups.get(group_id)
        if share_group is not None and share_group.exists:
            if share_group.is_empty:
                shard.shares.delete(share_group, partial(settled, group_id))
            else:
                settled(group_id, ErrorCode.NON_EMPTY_GROUP)
            continue
        group = shard.groups.get(group_id)
        if group is None or not group.exists:
            settled(group_id, ErrorCode.GROUP_ID_NOT_FOUND)
            continue
        if isinstance(group, ClassicGroup):
            shard.membership.sessions.end_overdue(group)
        if not group.is_empty:
            settled(group_id, ErrorCode.NON_EMPTY_GROUP)
        else:
            shard.cleanup.delete_group(group, partial(settled, group_id))
    return pending
