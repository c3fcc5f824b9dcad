"""JoinGroup (key 11): a member joins the next generation of its group; answered when all members have joined.

v1 rebalance timeout, v2 throttle time, v4 a new member joins again with the id that it got (KIP-394), v5 static
members, v6 flexible, v7 protocol type and null names, v8 a reason, v9 the leader may have to skip the assignment. The
rules are in `broker.groups.membership`.
"""

from __future__ import annotations

from heirlog.apis.common.api import Api, Limit, Served
from heirlog.apis.common.call import Call
from heirlog.apis.common.membership import READ_GROUP, may_read_group
from heirlog.apis.common.ports import CoordinatesGroups, OnBroker
from heirlog.broker.groups.member_answers import join_refusal
from heirlog.context import Context, Reply
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import JoinGroupRequest, JoinGroupResponse


def guard(call: Call[JoinGroupRequest, JoinGroupResponse]) -> Reply[JoinGroupResponse]:
    if may_read_group(call):
        return call.handle()
    return join_refusal(ErrorCode.GROUP_AUTHORIZATION_FAILED, call.context.api_version)


def handle(node: OnBroker[CoordinatesGroups], request: JoinGroupRequest, context: Context) -> Reply[JoinGroupResponse]:
    return node.broker.groups.join_group(request, context)


API = Api(
    key=ApiKey.JOIN_GROUP,
    broker=Served((0, 9), handle, needs=READ_GROUP, guard=guard),
    has_large_answer=True,
    limits=(Limit("group.max.size", "members of a group", ErrorCode.GROUP_MAX_SIZE_REACHED),),
)
