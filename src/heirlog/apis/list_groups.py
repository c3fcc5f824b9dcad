"""ListGroups (key 16): the groups that this broker coordinates; clients ask every broker.

v1 throttle time, v3 flexible, v4 states and a filter, v5 types and a filter. The rules are in `broker.groups.admin`.
"""

from __future__ import annotations

from heirlog.apis.common.api import Api, Need, Served
from heirlog.apis.common.call import Call, changed
from heirlog.apis.common.ports import CoordinatesGroups, OnBroker
from heirlog.broker.groups import admin
from heirlog.context import Context, Reply
from heirlog.metadata.acls import AclOperation, ResourceType
from heirlog.protocol.api import ApiKey
from heirlog.protocol.messages import ListGroupsRequest, ListGroupsResponse


def guard(call: Call[ListGroupsRequest, ListGroupsResponse]) -> Reply[ListGroupsResponse]:
    """A client that may describe the cluster sees every group, any other client the groups that it may describe."""

    def keep(response: ListGroupsResponse) -> None:
        response.groups = [
            group for group in response.groups if call.may(ResourceType.GROUP, group.group_id, is_denial=False)
        ]

    return call.handle() if call.may(ResourceType.CLUSTER, is_denial=False) else changed(call.handle(), keep)


def handle(node: OnBroker[CoordinatesGroups], request: ListGroupsRequest, context: Context) -> ListGroupsResponse:
    return admin.list_groups(node.broker.groups, request)


API = Api(
    key=ApiKey.LIST_GROUPS,
    broker=Served(
        (0, 5),
        handle,
        needs=(Need(AclOperation.DESCRIBE, ResourceType.CLUSTER), Need(AclOperation.DESCRIBE, ResourceType.GROUP)),
        guard=guard,
    ),
    has_large_answer=True,
)
