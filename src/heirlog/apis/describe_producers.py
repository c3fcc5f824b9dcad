"""DescribeProducers (key 61): the producers that a partition remembers (KIP-664).

v0 only. The rules are in `broker.describe_producers`.
"""

from __future__ import annotations

from typing import Protocol

from heirlog.apis.common.api import Api, Need, Served
from heirlog.apis.common.call import Call, parted, split
from heirlog.apis.common.ports import OnBroker
from heirlog.context import Context, Reply
from heirlog.controller.error_messages import sentence
from heirlog.metadata.acls import AclOperation, ResourceType
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import DescribeProducersRequest, DescribeProducersResponse

DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


class KnowsProducers(Protocol):
    def describe_producers(self, request: DescribeProducersRequest) -> DescribeProducersResponse: ...


def guard(call: Call[DescribeProducersRequest, DescribeProducersResponse]) -> Reply[DescribeProducersResponse]:
    allowed, denied = parted(call.request.topics, lambda topic: call.may(ResourceType.TOPIC, topic.name))
    return split(call, "topics", "topics", allowed, denied, _denied)


def _denied(topic: DescribeProducersRequest.TopicRequest) -> DescribeProducersResponse.TopicResponse:
    return DescribeProducersResponse.TopicResponse(
        name=topic.name,
        partitions=[
            DescribeProducersResponse.PartitionResponse(
                partition_index=index, error_code=DENIED, error_message=sentence(DENIED)
            )
            for index in topic.partition_indexes
        ],
    )


def handle(
    node: OnBroker[KnowsProducers], request: DescribeProducersRequest, context: Context
) -> DescribeProducersResponse:
    return node.broker.describe_producers(request)


API = Api(
    key=ApiKey.DESCRIBE_PRODUCERS,
    broker=Served((0, 0), handle, needs=(Need(AclOperation.READ, ResourceType.TOPIC),), guard=guard),
    has_large_answer=True,
    remarks="idempotent producers and open transactions",
)
