"""WriteTxnMarkers (key 27): the outcome of transactions, for the leaders of their partitions (KIP-98).

v1 flexible, v2 the level of transaction.version under which the transaction was ended (KIP-1228). Coordinators send it,
and administrators for a transaction that no coordinator ends. The rules are in `broker.write_txn_markers`.
"""

from __future__ import annotations

from typing import Protocol

from heirlog.apis.common.api import Api, Need, Served
from heirlog.apis.common.ports import OnBroker
from heirlog.context import Context, Reply
from heirlog.metadata.acls import AclOperation, ResourceType
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import WriteTxnMarkersRequest, WriteTxnMarkersResponse


class WritesMarkers(Protocol):
    def write_txn_markers(self, request: WriteTxnMarkersRequest) -> Reply[WriteTxnMarkersResponse]: ...


def refused(request: WriteTxnMarkersRequest, code: ErrorCode) -> WriteTxnMarkersResponse:
    """The error of every partition."""
    nested = WriteTxnMarkersResponse
    return nested(
        markers=[
            nested.WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    nested.WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            nested.WritableTxnMarkerPartitionResult(partition_index=index, error_code=code)
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )


def handle(
    node: OnBroker[WritesMarkers], request: WriteTxnMarkersRequest, context: Context
) -> Reply[WriteTxnMarkersResponse]:
    return node.broker.write_txn_markers(request)


API = Api(
    key=ApiKey.WRITE_TXN_MARKERS,
    has_no_quota=True,
    broker=Served(
        (1, 2),
        handle,
        needs=(
            Need(AclOperation.ALTER, ResourceType.CLUSTER),
            Need(AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER),
        ),
    ),
    refused=refused,
)
