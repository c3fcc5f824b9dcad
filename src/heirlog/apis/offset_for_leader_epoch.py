"""OffsetForLeaderEpoch (key 23): where a leader epoch ends in this leader's log (KIP-101, KIP-320).

v2 current leader epoch, v3 replica id, v4 flexible. The rules are in `broker.leader_epochs`.
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
from heirlog.protocol.messages import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse


class KnowsLeaderEpochs(Protocol):
    def offset_for_leader_epoch(
        self, request: OffsetForLeaderEpochRequest, context: Context
    ) -> OffsetForLeaderEpochResponse: ...


def guard(
    call: Call[OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse],
) -> Reply[OffsetForLeaderEpochResponse]:
    """Replicas use the permission of the cluster, consumers the permission of their topics (KIP-320)."""
    if call.may(ResourceType.CLUSTER, is_denial=False):
        return call.handle()
    allowed, denied = parted(call.request.topics, lambda topic: call.may(ResourceType.TOPIC, topic.topic))
    return split(call, "topics", "topics", allowed, denied, _denied)


def _denied(
    topic: OffsetForLeaderEpochRequest.OffsetForLeaderTopic,
) -> OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult:
    return OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult(
        topic=topic.topic,
        partitions=[
            OffsetForLeaderEpochResponse.EpochEndOffset(
                partition=partition.partition, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED
            )
            for partition in topic.partitions
        ],
    )


def handle(
    node: OnBroker[KnowsLeaderEpochs], request: OffsetForLeaderEpochRequest, context: Context
) -> OffsetForLeaderEpochResponse:
    return node.broker.offset_for_leader_epoch(request, context)


API = Api(
    key=ApiKey.OFFSET_FOR_LEADER_EPOCH,
    broker=Served(
        (2, 4),
        handle,
        needs=(
            Need(AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER),
            Need(AclOperation.DESCRIBE, ResourceType.TOPIC),
        ),
        guard=guard,
    ),
)
