"""DescribeGroups (key 15): state and members of groups.

v1 throttle time, v3 authorized operations, v4 static members, v5 flexible, v6 an error for groups that do not exist.
The rules are in `broker.groups.admin`.
"""

from __future__ import annotations

from heirlog.apis.common.api import Api, Need, Served
from heirlog.apis.common.call import Call, changed, parted, without
from heirlog.apis.common.ports import CoordinatesGroups, OnBroker
from heirlog.broker.groups import admin
from heirlog.context import Context, Reply
from heirlog.controller.error_messages import sentence
from heirlog.metadata.acls import NOT_ASKED, AclOperation, ResourceType
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import DescribeGroupsRequest, DescribeGroupsResponse

DENIED = ErrorCode.GROUP_AUTHORIZATION_FAILED


def guard(call: Call[DescribeGroupsRequest, DescribeGroupsResponse]) -> Reply[DescribeGroupsResponse]:
    request = call.request
    allowed, denied = parted(dict.fromkeys(request.groups), lambda group: call.may(ResourceType.GROUP, group))

    def finish(response: DescribeGroupsResponse) -> None:
        for group in response.groups:
            if group.authorized_operations != NOT_ASKED:
                group.authorized_operations = call.operations(ResourceType.GROUP, group.group_id)
        response.groups += [
            DescribeGroupsResponse.DescribedGroup(group_id=group, error_code=DENIED, error_message=sentence(DENIED))
            for group in denied
        ]

    answer = call.handle(without(request, groups=allowed)) if allowed or not denied else DescribeGroupsResponse()
    return changed(answer, finish)


def handle(
    node: OnBroker[CoordinatesGroups], request: DescribeGroupsRequest, context: Context
) -> DescribeGroupsResponse:
    return admin.describe_groups(node.broker.groups, request, context)


API = Api(
    key=ApiKey.DESCRIBE_GROUPS,
    broker=Served((0, 6), handle, needs=(Need(AclOperation.DESCRIBE, ResourceType.GROUP),), guard=guard),
    has_large_answer=True,
)
