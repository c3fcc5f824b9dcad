"""ShareGroupDescribe (key 77): state, epochs and members of share groups (KIP-932).

v1 is the first version; v0 was for early access in Apache Kafka 4.0. The rules are in `broker.groups.share.requests`.
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
from heirlog.protocol.messages import ShareGroupDescribeRequest, ShareGroupDescribeResponse


def guard(
    call: Call[ShareGroupDescribeRequest, ShareGroupDescribeResponse],
) -> Reply[ShareGroupDescribeResponse]:
    """Each group. A group that reads a topic that the client must not describe is refused without its members."""
    request = call.request
    allowed, denied = parted(dict.fromkeys(request.group_ids), lambda group: call.may(ResourceType.GROUP, group))

    def finish(response: ShareGroupDescribeResponse) -> None:
        for group in response.groups:
            if group.authorized_operations != NOT_ASKED:
                group.authorized_operations = call.operations(ResourceType.GROUP, group.group_id)
        response.groups += [
            ShareGroupDescribeResponse.DescribedGroup(group_id=group, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
            for group in denied
        ]

    def refuses(topic: str) -> bool:
        return not call.may(ResourceType.TOPIC, topic)

    answer: Reply[ShareGroupDescribeResponse] = ShareGroupDescribeResponse()
    if allowed or not denied:
        answer = call.handle(without(request, group_ids=allowed), replace(call.context, refuses=refuses))
    return changed(answer, finish)


def handle(
    node: OnBroker[CoordinatesGroups], request: ShareGroupDescribeRequest, context: Context
) -> ShareGroupDescribeResponse:
    return admin.describe_share_groups(node.broker.groups, request, context)


API = Api(
    key=ApiKey.SHARE_GROUP_DESCRIBE,
    broker=Served(
        (1, 1),
        handle,
        needs=(Need(AclOperation.DESCRIBE, ResourceType.GROUP), Need(AclOperation.DESCRIBE, ResourceType.TOPIC)),
        guard=guard,
    ),
    has_large_answer=True,
)
