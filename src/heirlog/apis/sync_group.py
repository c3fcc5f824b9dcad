"""SyncGroup (key 14): the leader sends the assignment, each member fetches its part; answered when it is stored.

v1 throttle time, v3 static members, v4 flexible, v5 protocol type and name.
The rules are in `broker.groups.membership`.
"""

from __future__ import annotations

from heirlog.apis.common.api import Api, Served
from heirlog.apis.common.membership import READ_GROUP, membership
from heirlog.apis.common.ports import CoordinatesGroups, OnBroker
from heirlog.context import Context, Reply
from heirlog.protocol.api import ApiKey
from heirlog.protocol.messages import SyncGroupRequest, SyncGroupResponse


def handle(node: OnBroker[CoordinatesGroups], request: SyncGroupRequest, context: Context) -> Reply[SyncGroupResponse]:
    return node.broker.groups.sync_group(request, context)


API: Api[SyncGroupRequest, SyncGroupResponse] = Api(
    key=ApiKey.SYNC_GROUP,
    broker=Served((0, 5), handle, needs=READ_GROUP, guard=membership),
)
