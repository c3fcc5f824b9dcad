"""LeaveGroup (key 13): members leave at once, before their sessions end.

v1 throttle time, v3 several members, by id or instance, v4 flexible, v5 a reason.
The rules are in `broker.groups.membership`.
"""

from __future__ import annotations

from heirlog.apis.common.api import Api, Served
from heirlog.apis.common.membership import READ_GROUP, membership
from heirlog.apis.common.ports import CoordinatesGroups, OnBroker
from heirlog.context import Context, Reply
from heirlog.protocol.api import ApiKey
from heirlog.protocol.messages import LeaveGroupRequest, LeaveGroupResponse


def handle(
    node: OnBroker[CoordinatesGroups], request: LeaveGroupRequest, context: Context
) -> Reply[LeaveGroupResponse]:
    return node.broker.groups.leave_group(request, context)


API: Api[LeaveGroupRequest, LeaveGroupResponse] = Api(
    key=ApiKey.LEAVE_GROUP,
    broker=Served((0, 5), handle, needs=READ_GROUP, guard=membership),
)
