"""DescribeCluster (key 60): the cluster's id, and its brokers or its controllers (KIP-700, KIP-919).

v1 endpoint type (1 brokers, on their listeners; 2 controllers, on theirs), v2 fenced brokers on request (KIP-1073).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from heirlog.context import Context
from heirlog.node.describe import CLUSTER_OPERATIONS, NOT_ASKED, live_brokers
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import DescribeClusterRequest, DescribeClusterResponse

if TYPE_CHECKING:
    from heirlog.node.node import Node

BROKERS = 1
CONTROLLERS = 2


def handle(node: Node, request: DescribeClusterRequest, context: Context) -> DescribeClusterResponse:
    mine = CONTROLLERS if node.on_controller_listener(context) else BROKERS
    if request.endpoint_type != mine:
        what = "brokers" if mine == BROKERS else "controllers"
        return DescribeClusterResponse(
            error_code=_mismatch(request.endpoint_type, context.api_version),
            error_message=f"this is a listener of {what}, and describes them (endpoint type {mine})",
        )
    shown = _controllers(node, context.listener) if mine == CONTROLLERS else _brokers(node, request, context.listener)
    return DescribeClusterResponse(
        endpoint_type=mine,
        cluster_id=node.cluster_id,
        # clients of a controller's listener are told who leads, those of a broker whom to send admin requests
        controller_id=node.quorum.leader_id if mine == CONTROLLERS else node.any_live_broker(),
        brokers=shown,
        cluster_authorized_operations=(
            CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NOT_ASKED
        ),
    )


def _mismatch(endpoint_type: int, version: int) -> ErrorCode:
    if version == 0:
        # which has no endpoint types
        return ErrorCode.INVALID_REQUEST
    is_known = endpoint_type in (BROKERS, CONTROLLERS)
    return ErrorCode.MISMATCHED_ENDPOINT_TYPE if is_known else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE


def _controllers(node: Node, listener: str) -> list[DescribeClusterResponse.DescribeClusterBroker]:
    return [
        DescribeClusterResponse.DescribeClusterBroker(
            broker_id=controller.id, host=known.endpoint.host, port=known.endpoint.port, rack=None
        )
        for _, controller in sorted(node.image.controllers.items())
        for known in controller.listeners
        if known.name == listener
    ]


def _brokers(
    node: Node, request: DescribeClusterRequest, listener: str
) -> list[DescribeClusterResponse.DescribeClusterBroker]:
    if request.include_fenced_brokers:
        known = [(broker, broker.endpoint(listener)) for broker in node.sorted_brokers()]
        shown = [(broker, endpoint) for broker, endpoint in known if endpoint is not None]
    else:
        shown = live_brokers(node.image, node.config.node_id, listener)
    return [
        DescribeClusterResponse.DescribeClusterBroker(
            broker_id=broker.id, host=endpoint.host, port=endpoint.port, rack=broker.rack, is_fenced=broker.fenced
        )
        for broker, endpoint in shown
    ]
