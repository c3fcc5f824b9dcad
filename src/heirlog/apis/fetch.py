"""Fetch (key 1): records for consumers and follower replicas; on a controller the metadata log, for its observers.

v5 log start offset, v7 fetch sessions, v9 current leader epoch, v11 rack, v12 flexible with the last fetched epoch and
DivergingEpoch, v13 topic ids, v15 replica state with the broker epoch (KIP-903), v16 node endpoints, v17 replica
directory id, v18 the follower's high watermark. The rules are in `broker.fetch`; on a controller in `raft`, where
replicas send v17 and v18.

A follower needs the permission for the cluster, a consumer the permission for each topic, also for the topics that its
session remembers. Sessions outlive a request, so the handler itself asks about each topic (`Context.refuses`).
"""

from __future__ import annotations

from typing import Protocol

from heirlog.apis.common.api import NODES_ONLY, Api, Limit, Need, Served
from heirlog.apis.common.call import Call
from heirlog.apis.common.ports import OnBroker, OnQuorum
from heirlog.context import Context, Reply
from heirlog.metadata.acls import AclOperation, ResourceType
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import FetchRequest, FetchResponse


class Fetches(Protocol):
    def fetch(self, request: FetchRequest, context: Context) -> Reply[FetchResponse]: ...


class FetchesMetadata(Protocol):
    def fetch(self, request: FetchRequest) -> Reply[FetchResponse]: ...


def guard(call: Call[FetchRequest, FetchResponse]) -> Reply[FetchResponse]:
    request = call.request
    if max(request.replica_id, request.replica_state.replica_id) < 0:
        return call.handle_refusing(lambda topic: not call.may(ResourceType.TOPIC, topic))
    return call.handle() if call.may(ResourceType.CLUSTER) else _follower_denied(request)


def _follower_denied(request: FetchRequest) -> FetchResponse:
    """In a session the follower has to name its partitions again, which are then refused one by one."""
    if request.session_epoch > 0:
        return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    return FetchResponse(
        responses=[
            FetchResponse.FetchableTopicResponse(
                topic=topic.topic,
                topic_id=topic.topic_id,
                partitions=[
                    FetchResponse.PartitionData(
                        partition_index=asked.partition,
                        error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                        high_watermark=-1,
                        records=b"",
                    )
                    for asked in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def handle(node: OnBroker[Fetches], request: FetchRequest, context: Context) -> Reply[FetchResponse]:
    return node.broker.fetch(request, context)


def handle_on_controller(
    node: OnQuorum[FetchesMetadata], request: FetchRequest, context: Context
) -> Reply[FetchResponse]:
    return node.quorum.fetch(request)


API = Api(
    key=ApiKey.FETCH,
    broker=Served(
        (4, 18),
        handle,
        needs=(
            Need(AclOperation.READ, ResourceType.TOPIC),
            Need(AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER),
        ),
        guard=guard,
    ),
    controller=Served((4, 18), handle_on_controller, needs=NODES_ONLY),
    has_large_answer=True,
    limits=(Limit("fetch.max.bytes", "bytes of records in an answer to a consumer"),),
    remarks=(
        "controllers serve `__cluster_metadata` only. Fetch sessions and their eviction as in Kafka. A newer request "
        "of a session ends the long poll of the older one. Partitions are answered in the order in which their new "
        "records arrived"
    ),
)
