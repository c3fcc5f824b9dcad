"""AlterShareGroupOffsets (key 91): an operator moves the start offsets of a share group without members (KIP-932).

v0 only. The rules are in `broker.groups.share.offset_requests`.
"""

from __future__ import annotations

from heirlog.apis.common.api import Api, Need, Served
from heirlog.apis.common.call import Call, changed, parted, without
from heirlog.apis.common.ports import CoordinatesGroups, OnBroker
from heirlog.broker.groups.share import offset_requests
from heirlog.context import Context, Reply
from heirlog.controller.error_messages import sentence
from heirlog.metadata.acls import AclOperation, ResourceType
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse

DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


def guard(
    call: Call[AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse],
) -> Reply[AlterShareGroupOffsetsResponse]:
    request = call.request
    if not call.may(ResourceType.GROUP, request.group_id):
        return call.refusal(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    allowed, denied = parted(request.topics, lambda topic: call.may(ResourceType.TOPIC, topic.topic_name))
    # also where no topic is left: what is wrong with the group is reported before its topics
    answer = call.handle(without(request, topics=allowed))

    def finish(response: AlterShareGroupOffsetsResponse) -> None:
        if response.error_code == ErrorCode.NONE:
            response.responses += [_refused(topic) for topic in denied]

    return changed(answer, finish)


def _refused(
    topic: AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic,
) -> AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponseTopic:
    return AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponseTopic(
        topic_name=topic.topic_name,
        partitions=[
            AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponsePartition(
                partition_index=partition.partition_index, error_code=DENIED, error_message=sentence(DENIED)
            )
            for partition in topic.partitions
        ],
    )


def handle(
    node: OnBroker[CoordinatesGroups], request: AlterShareGroupOffsetsRequest, context: Context
) -> Reply[AlterShareGroupOffsetsResponse]:
    return offset_requests.alter(node.broker.groups, request)


API = Api(
    key=ApiKey.ALTER_SHARE_GROUP_OFFSETS,
    broker=Served(
        (0, 0),
        handle,
        needs=(Need(AclOperation.READ, ResourceType.GROUP), Need(AclOperation.READ, ResourceType.TOPIC)),
        guard=guard,
    ),
    is_audited=True,
)
