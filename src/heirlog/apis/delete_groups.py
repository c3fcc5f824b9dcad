"""DeleteGroups (key 42): delete groups without members, with their offsets; answered when that is committed.

v1 throttle time, v2 flexible. The rules are in `broker.groups.admin`.
"""

from __future__ import annotations

from heirlog.apis.common.api import Api, Need, Served
from heirlog.apis.common.call import Call, changed, parted, without
from heirlog.apis.common.ports import CoordinatesGroups, OnBroker
from heirlog.broker.groups import admin
from heirlog.context import Context, Reply
from heirlog.metadata.acls import AclOperation, ResourceType
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import DeleteGroupsRequest, DeleteGroupsResponse


def guard(call: Call[DeleteGroupsRequest, DeleteGroupsResponse]) -> Reply[DeleteGroupsResponse]:
    request = call.request
    allowed, denied = parted(dict.fromkeys(request.groups_names), lambda group: call.may(ResourceType.GROUP, group))

    def finish(response: DeleteGroupsResponse) -> None:
        response.results += [
            DeleteGroupsResponse.DeletableGroupResult(group_id=group, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
            for group in denied
        ]

    answer: Reply[DeleteGroupsResponse] = DeleteGroupsResponse()
    if allowed or not denied:
        answer = call.handle(without(request, groups_names=allowed))
    return changed(answer, finish)


def handle(
    node: OnBroker[CoordinatesGroups], request: DeleteGroupsRequest, context: Context
) -> Reply[DeleteGroupsResponse]:
    return admin.delete_groups(node.broker.groups, request)


API = Api(
    key=ApiKey.DELETE_GROUPS,
    broker=Served((0, 2), handle, needs=(Need(AclOperation.DELETE, ResourceType.GROUP),), guard=guard),
    is_audited=True,
)
