"""ConsumerGroupHeartbeat (key 68): a member joins, stays in, or leaves a group of the consumer protocol (KIP-848).

v1 regular expressions; the client makes the member id (KIP-1082). The rules are in `broker.groups.consumer`.
"""

from __future__ import annotations

from heirlog.apis.common.api import Api, Limit, Need, Served
from heirlog.apis.common.call import Call
from heirlog.apis.common.ports import CoordinatesGroups, OnBroker
from heirlog.context import Context, Reply
from heirlog.metadata.acls import AclOperation, ResourceType
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse


def guard(
    call: Call[ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse],
) -> Reply[ConsumerGroupHeartbeatResponse]:
    """The group first, then each topic by name. Topics of a regular expression are left out silently."""
    request = call.request
    if not call.port.broker.groups.serves_consumer_protocol:
        return call.handle()
    if not call.may(ResourceType.GROUP, request.group_id):
        return call.refusal(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not all(call.may(ResourceType.TOPIC, name) for name in request.subscribed_topic_names or ()):
        return call.refusal(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return call.handle_refusing(lambda name: not call.may(ResourceType.TOPIC, name, is_denial=False))


def handle(
    node: OnBroker[CoordinatesGroups], request: ConsumerGroupHeartbeatRequest, context: Context
) -> Reply[ConsumerGroupHeartbeatResponse]:
    return node.broker.groups.consumer_group_heartbeat(request, context)


API = Api(
    key=ApiKey.CONSUMER_GROUP_HEARTBEAT,
    broker=Served(
        (0, 1),
        handle,
        needs=(Need(AclOperation.READ, ResourceType.GROUP), Need(AclOperation.DESCRIBE, ResourceType.TOPIC)),
        guard=guard,
    ),
    has_large_answer=True,
    is_repeated=True,
    limits=(Limit("group.consumer.max.size", "members of a group", ErrorCode.GROUP_MAX_SIZE_REACHED),),
)
