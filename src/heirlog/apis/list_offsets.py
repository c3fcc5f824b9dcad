"""ListOffsets (key 2): the offset for a timestamp, or one of the named positions.

v1 one offset per partition, v2 isolation level, v4 leader epochs, v5 OFFSET_NOT_AVAILABLE, v6 flexible, v7 max
timestamp (-3), v8 earliest local (-4), v9 latest tiered (-5), v10 timeout, v11 earliest pending upload (-6). The rules
are in `broker.list_offsets`.
"""

from __future__ import annotations

from typing import Protocol

from heirlog.apis.common.api import Api, Need, Served
from heirlog.apis.common.call import Call, parted, split
from heirlog.apis.common.ports import OnBroker
from heirlog.context import Context, Reply
from heirlog.metadata.acls import AclOperation, ResourceType
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import ListOffsetsRequest, ListOffsetsResponse


class ListsOffsets(Protocol):
    def list_offsets(self, request: ListOffsetsRequest, context: Context) -> ListOffsetsResponse: ...


def guard(call: Call[ListOffsetsRequest, ListOffsetsResponse]) -> Reply[ListOffsetsResponse]:
    allowed, denied = parted(call.request.topics, lambda topic: call.may(ResourceType.TOPIC, topic.name))
    return split(call, "topics", "topics", allowed, denied, _denied)


def _denied(topic: ListOffsetsRequest.ListOffsetsTopic) -> ListOffsetsResponse.ListOffsetsTopicResponse:
    return ListOffsetsResponse.ListOffsetsTopicResponse(
        name=topic.name,
        partitions=[
            ListOffsetsResponse.ListOffsetsPartitionResponse(
                partition_index=partition.partition_index, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED
            )
            for partition in topic.partitions
        ],
    )


def handle(node: OnBroker[ListsOffsets], request: ListOffsetsRequest, context: Context) -> ListOffsetsResponse:
    return node.broker.list_offsets(request, context)


API = Api(
    key=ApiKey.LIST_OFFSETS,
    broker=Served((1, 11), handle, needs=(Need(AclOperation.DESCRIBE, ResourceType.TOPIC),), guard=guard),
    remarks="timestamps -1 to -6; without tiered storage, the answer to -5 and -6 is offset -1",
)
