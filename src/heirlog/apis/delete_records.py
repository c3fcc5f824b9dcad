"""DeleteRecords (key 21): remove the records of a partition below an offset (KIP-107).

v0-1, v2 flexible. The rules are in `broker.delete_records`.
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
from heirlog.protocol.messages import DeleteRecordsRequest, DeleteRecordsResponse


class DeletesRecords(Protocol):
    def delete_records(self, request: DeleteRecordsRequest) -> Reply[DeleteRecordsResponse]: ...


def guard(call: Call[DeleteRecordsRequest, DeleteRecordsResponse]) -> Reply[DeleteRecordsResponse]:
    allowed, denied = parted(call.request.topics, lambda topic: call.may(ResourceType.TOPIC, topic.name))
    return split(call, "topics", "topics", allowed, denied, _denied)


def _denied(topic: DeleteRecordsRequest.DeleteRecordsTopic) -> DeleteRecordsResponse.DeleteRecordsTopicResult:
    return DeleteRecordsResponse.DeleteRecordsTopicResult(
        name=topic.name,
        partitions=[
            DeleteRecordsResponse.DeleteRecordsPartitionResult(
                partition_index=partition.partition_index,
                low_watermark=-1,
                error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            )
            for partition in topic.partitions
        ],
    )


def handle(
    node: OnBroker[DeletesRecords], request: DeleteRecordsRequest, context: Context
) -> Reply[DeleteRecordsResponse]:
    return node.broker.delete_records(request)


API = Api(
    key=ApiKey.DELETE_RECORDS,
    broker=Served((0, 2), handle, needs=(Need(AclOperation.DELETE, ResourceType.TOPIC),), guard=guard),
    is_audited=True,
)
