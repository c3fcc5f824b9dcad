"""DeleteShareGroupOffsets (key 92): a share group without members forgets topics (KIP-932).

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
from heirlog.protocol.messages import DeleteShareGroupOffsetsRequest, DeleteShareGroupOffsetsResponse

DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


def guard(
    call: Call[DeleteShareGroupOffsetsRequest, DeleteShareGroupOffsetsResponse],
) -> Reply[DeleteShareGroupOffsetsResponse]:
    request = call.request
    if not call.may(ResourceType.GROUP, request.group_id):
        return call.refusal(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    allowed, denied = parted(request.topics, lambda topic: call.may(ResourceType.TOPIC, topic.topic_name))
    # also where no topic is left: what is wrong with the group is reported before its topics
    answer = call.handle(without(request, topics=allowed))

    def finish(response: DeleteShareGroupOffsetsResponse) -> None:
        if response.error_code == ErrorCode.NONE:
            response.responses += [_refused(topic) for topic in denied]

    return changed(answer, finish)


def _refused(
    topic: DeleteShareGroupOffsetsRequest.DeleteShareGroupOffsetsRequestTopic,
) -> DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic:
    return DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic(
        topic_name=topic.topic_name, error_code=DENIED, error_message=sentence(DENIED)
    )


def handle(
    node: OnBroker[CoordinatesGroups], request: DeleteShareGroupOffsetsRequest, context: Context
) -> Reply[DeleteShareGroupOffsetsResponse]:
    return offset_requests.delete(node.broker.groups, request)


API = Api(
    key=ApiKey.DELETE_SHARE_GROUP_OFFSETS,
    broker=Served(
        (0, 0),
        handle,
        needs=(Need(AclOperation.DELETE, ResourceType.GROUP), Need(AclOperation.READ, ResourceType.TOPIC)),
        guard=guard,
    ),
    is_audited=True,
)
