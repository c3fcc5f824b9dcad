"""ShareGroupHeartbeat (key 76): a member joins, stays in, or leaves a share group (KIP-932).

v1 is the first version; v0 was for early access in Apache Kafka 4.0. The rules are in `broker.groups.share`.
"""

from __future__ import annotations

from heirlog.apis.common.api import Api, Limit, Need, Served
from heirlog.apis.common.call import Call
from heirlog.apis.common.ports import CoordinatesGroups, OnBroker
from heirlog.context import Context, Reply
from heirlog.metadata.acls import AclOperation, ResourceType
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse


def guard(call: Call[ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse]) -> Reply[ShareGroupHeartbeatResponse]:
    """The group first, then each topic."""
    request = call.request
    if not call.may(ResourceType.GROUP, request.group_id):
        return call.refusal(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not all(call.may(ResourceType.TOPIC, name) for name in request.subscribed_topic_names or ()):
        return call.refusal(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return call.handle()


def handle(
    node: OnBroker[CoordinatesGroups], request: ShareGroupHeartbeatRequest, context: Context
) -> Reply[ShareGroupHeartbeatResponse]:
    return node.broker.groups.share_group_heartbeat(request, context)


API = Api(
    key=ApiKey.SHARE_GROUP_HEARTBEAT,
    broker=Served(
        (1, 1),
        handle,
        needs=(Need(AclOperation.READ, ResourceType.GROUP), Need(AclOperation.DESCRIBE, ResourceType.TOPIC)),
        guard=guard,
    ),
    has_large_answer=True,
    is_repeated=True,
    limits=(Limit("group.share.max.size", "members of a group", ErrorCode.GROUP_MAX_SIZE_REACHED),),
)
