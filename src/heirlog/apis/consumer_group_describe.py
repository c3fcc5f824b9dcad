"""ConsumerGroupDescribe (key 69): state, epochs and members of groups of the consumer protocol (KIP-848).

v1 the protocol of each member (KIP-1099). The rules are in `broker.groups.consumer.requests`.
"""

from __future__ import annotations

from dataclasses import replace

from heirlog.apis.common.api import Api, Need, Served
from heirlog.apis.common.call import Call, changed, parted, without
from heirlog.apis.common.ports import CoordinatesGroups, OnBroker
from heirlog.broker.groups import admin
from heirlog.context import Context, Reply
from heirlog.metadata.acls import NOT_ASKED, AclOperation, ResourceType
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse


def guard(
    call: Call[ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse],
) -> Reply[ConsumerGroupDescribeResponse]:
    """Each group. A group that reads a topic that the client must not describe is refused without its members."""
    request = call.request
    allowed, denied = parted(dict.fromkeys(request.group_ids), lambda group: call.may(ResourceType.GROUP, group))

    def finish(response: ConsumerGroupDescribeResponse) -> None:
        for group in response.groups:
            if group.authorized_operations != NOT_ASKED:
                group.authorized_operations = call.operations(ResourceType.GROUP, group.group_id)
        response.groups += [
            ConsumerGroupDescribeResponse.DescribedGroup(
                group_id=group, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED
            )
            for group in denied
        ]

    def refuses(topic: str) -> bool:
        return not call.may(ResourceType.TOPIC, topic)

    answer: Reply[ConsumerGroupDescribeResponse] = ConsumerGroupDescribeResponse()
    if allowed or not denied:
        answer = call.handle(without(request, group_ids=allowed), replace(call.context, refuses=refuses))
    return changed(answer, finish)


def handle(
    node: OnBroker[CoordinatesGroups], request: ConsumerGroupDescribeRequest, context: Context
) -> ConsumerGroupDescribeResponse:
    return admin.describe_consumer_groups(node.broker.groups, request, context)


API = Api(
    key=ApiKey.CONSUMER_GROUP_DESCRIBE,
    broker=Served(
        (0, 1),
        handle,
        needs=(Need(AclOperation.DESCRIBE, ResourceType.GROUP), Need(AclOperation.DESCRIBE, ResourceType.TOPIC)),
        guard=guard,
    ),
    has_large_answer=True,
)
