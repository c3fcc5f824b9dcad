"""OffsetCommit (key 8): how far a group has read; answered when it is committed.

v2-4 a retention time, v3 throttle time, v6 leader epochs, v7 static members, v8 flexible, v9 member epochs (KIP-848),
v10 topic ids. The rules are in `broker.groups.offset_requests`.
"""

from __future__ import annotations

from typing import Protocol

from heirlog.apis.common.api import Api, Limit, Need, Served
from heirlog.apis.common.call import Call, parted, split
from heirlog.apis.common.ports import CoordinatesGroups, HasEnv, OnBroker
from heirlog.broker.groups import offset_requests
from heirlog.context import Context, Reply
from heirlog.metadata.acls import AclOperation, ResourceType
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import OffsetCommitRequest, OffsetCommitResponse


class Commits(OnBroker[CoordinatesGroups], HasEnv, Protocol):
    pass


def guard(call: Call[OffsetCommitRequest, OffsetCommitResponse]) -> Reply[OffsetCommitResponse]:
    """The group first, then each topic."""
    request = call.request
    if not call.may(ResourceType.GROUP, request.group_id):
        denied_code = ErrorCode.GROUP_AUTHORIZATION_FAILED
        return OffsetCommitResponse(topics=[_not_committed(topic, denied_code) for topic in request.topics])
    by_id = call.context.api_version >= offset_requests.TOPIC_ID_VERSION
    allowed, denied = parted(request.topics, lambda topic: call.may_topic(topic.name, topic.topic_id, by_id=by_id))
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return split(call, "topics", "topics", allowed, denied, lambda topic: _not_committed(topic, code))


def _not_committed(
    topic: OffsetCommitRequest.OffsetCommitRequestTopic, code: ErrorCode
) -> OffsetCommitResponse.OffsetCommitResponseTopic:
    return OffsetCommitResponse.OffsetCommitResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            OffsetCommitResponse.OffsetCommitResponsePartition(
                partition_index=partition.partition_index, error_code=code
            )
            for partition in topic.partitions
        ],
    )


def handle(node: Commits, request: OffsetCommitRequest, context: Context) -> Reply[OffsetCommitResponse]:
    return offset_requests.commit(node.broker.groups, node.env, request, context)


API = Api(
    key=ApiKey.OFFSET_COMMIT,
    broker=Served(
        (2, 10),
        handle,
        needs=(Need(AclOperation.READ, ResourceType.GROUP), Need(AclOperation.READ, ResourceType.TOPIC)),
        guard=guard,
    ),
    limits=(Limit("offset.metadata.max.bytes", "bytes of metadata", ErrorCode.OFFSET_METADATA_TOO_LARGE),),
)
