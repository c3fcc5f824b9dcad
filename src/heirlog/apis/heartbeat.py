"""Heartbeat (key 12): a member is alive; the answer says whether to join again.

v1 throttle time, v3 static members, v4 flexible.
The rules are in `broker.groups.membership`.
"""

from __future__ import annotations

from heirlog.apis.common.api import Api, Served
from heirlog.apis.common.membership import READ_GROUP, membership
from heirlog.apis.common.ports import CoordinatesGroups, OnBroker
from heirlog.context import Context, Reply
from heirlog.protocol.api import ApiKey
from heirlog.protocol.messages import HeartbeatRequest, HeartbeatResponse


def handle(node: OnBroker[CoordinatesGroups], request: HeartbeatRequest, context: Context) -> Reply[HeartbeatResponse]:
    return node.broker.groups.heartbeat(request, context)


API: Api[HeartbeatRequest, HeartbeatResponse] = Api(
    key=ApiKey.HEARTBEAT,
    broker=Served((0, 4), handle, needs=READ_GROUP, guard=membership),
    is_repeated=True,
)
