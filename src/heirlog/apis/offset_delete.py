"""OffsetDelete (key 47): an operator deletes offsets of a group that none of its members reads (KIP-496).

v0 only. The rules are in `broker.groups.offset_requests`.
"""

from __future__ import annotations

from heirlog.apis.common.api import Api, Need, Served
from heirlog.apis.common.call import Call, changed, parted, without
from heirlog.apis.common.ports import CoordinatesGroups, OnBroker
from heirlog.broker.groups import offset_requests
from heirlog.context import Context, Reply
from heirlog.metadata.acls import AclOperation, ResourceType
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import OffsetDeleteRequest, OffsetDeleteResponse


def guard(call: Call[OffsetDeleteRequest, OffsetDeleteResponse]) -> Reply[OffsetDeleteResponse]:
    request = call.request
    if not call.may(ResourceType.GROUP, request.group_id):
        return call.refusal(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    allowed, denied = parted(request.topics, lambda topic: call.may(ResourceType.TOPIC, topic.name))
    # also where no topic is left: an unknown group is reported before its topics
    answer = call.handle(without(request, topics=allowed))

    def finish(response: OffsetDeleteResponse) -> None:
        if response.error_code == ErrorCode.NONE:
            response.topics += [_not_deleted(topic) for topic in denied]

    return changed(answer, finish)


def _not_deleted(
    topic: OffsetDeleteRequest.OffsetDeleteRequestTopic,
) -> OffsetDeleteResponse.OffsetDeleteResponseTopic:
    return OffsetDeleteResponse.OffsetDeleteResponseTopic(
        name=topic.name,
        partitions=[
            OffsetDeleteResponse.OffsetDeleteResponsePartition(
                partition_index=partition.partition_index, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED
            )
            for partition in topic.partitions
        ],
    )


def handle(
    node: OnBroker[CoordinatesGroups], request: OffsetDeleteRequest, context: Context
) -> Reply[OffsetDeleteResponse]:
    return offset_requests.delete(node.broker.groups, request)


API = Api(
    key=ApiKey.OFFSET_DELETE,
    broker=Served(
        (0, 0),
        handle,
        needs=(Need(AclOperation.DELETE, ResourceType.GROUP), Need(AclOperation.READ, ResourceType.TOPIC)),
        guard=guard,
    ),
    is_audited=True,
)
