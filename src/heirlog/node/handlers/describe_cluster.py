"""DescribeCluster (key 60): the cluster's id, its brokers and its controller (KIP-700).

v1 endpoint type (1 brokers, 2 controllers: only on a controller listener), v2 fenced brokers on request (KIP-1073).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from heirlog.context import Context
from heirlog.node.describe import CLUSTER_OPERATIONS, NOT_ASKED
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse

if TYPE_CHECKING:
    from heirlog.node.node import Node

BROKERS = 1
CONTROLLERS = 2


def handle(node: Node, request: DescribeClusterRequest, context: Context) -> DescribeClusterResponse:
    if request.endpoint_type != BROKERS:
        known = request.endpoint_type == CONTROLLERS
        return DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE if known else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            error_message="this is a broker's listener: it describes brokers (endpoint type 1)",
            endpoint_type=BROKERS,
        )
    brokers = []
    for broker in node.sorted_brokers():
        endpoint = broker.endpoint(context.listener)
        if endpoint is None or (broker.fenced and not request.include_fenced_brokers):
            continue
        brokers.append(
            DescribeClusterResponse.DescribeClusterBroker(
                broker_id=broker.id, host=endpoint.host, port=endpoint.port, rack=broker.rack, is_fenced=broker.fenced
            )
        )
    return DescribeClusterResponse(
        endpoint_type=BROKERS,
        cluster_id=node.cluster_id,
        controller_id=node.any_live_broker(),
        brokers=brokers,
        cluster_authorized_operations=(
            CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NOT_ASKED
        ),
    )
