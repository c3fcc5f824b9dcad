"""DescribeCluster (key 60): the cluster's id, and its brokers or its controllers (KIP-700, KIP-919).

v1 endpoint type (1 brokers, on their listeners; 2 controllers, on theirs), v2 fenced brokers on request (KIP-1073).
"""

from __future__ import annotations

from typing import Protocol

from heirlog.apis.common.api import ALTER_CLUSTER, DESCRIBE_CLUSTER, Api, Served
from heirlog.apis.common.call import Call, changed
from heirlog.apis.common.cluster_operations import cluster_operations
from heirlog.apis.common.describe import CLUSTER_OPERATIONS, live_brokers
from heirlog.apis.common.ports import Describes, HasCluster, NamesBrokers, OnQuorum
from heirlog.context import Context, Reply
from heirlog.metadata.acls import NOT_ASKED, ResourceType
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import DescribeClusterRequest, DescribeClusterResponse

BROKERS = 1
CONTROLLERS = 2


class HasLeader(Protocol):
    @property
    def leader_id(self) -> int: ...


class Node(Describes, HasCluster, NamesBrokers, Protocol):
    pass


class Controller(Node, OnQuorum[HasLeader], Protocol):
    pass


def guard(call: Call[DescribeClusterRequest, DescribeClusterResponse]) -> Reply[DescribeClusterResponse]:
    """Every client sees the brokers; a client that must not describe the cluster sees no operations on it."""

    def show_operations(response: DescribeClusterResponse) -> None:
        if response.cluster_authorized_operations != NOT_ASKED:
            response.cluster_authorized_operations = cluster_operations(call)

    return changed(call.handle(), show_operations)


def guard_on_controller(
    call: Call[DescribeClusterRequest, DescribeClusterResponse],
) -> Reply[DescribeClusterResponse]:
    """Only operators send requests to controllers."""
    return guard(call) if call.may(ResourceType.CLUSTER) else call.refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


def handle(node: Node, request: DescribeClusterRequest, context: Context) -> DescribeClusterResponse:
    if request.endpoint_type != BROKERS:
        return _other_type(request, context, BROKERS, "brokers")
    shown = _brokers(node, request, context.listener)
    # the broker to which clients send admin requests
    return _described(node, request, BROKERS, node.any_live_broker(), shown)


def handle_on_controller(
    node: Controller, request: DescribeClusterRequest, context: Context
) -> DescribeClusterResponse:
    if request.endpoint_type != CONTROLLERS:
        return _other_type(request, context, CONTROLLERS, "controllers")
    return _described(node, request, CONTROLLERS, node.quorum.leader_id, _controllers(node, context.listener))


def _other_type(request: DescribeClusterRequest, context: Context, mine: int, what: str) -> DescribeClusterResponse:
    return DescribeClusterResponse(
        error_code=_mismatch(request.endpoint_type, context.api_version),
        error_message=f"this is a listener of {what}, and describes them (endpoint type {mine})",
    )


def _mismatch(endpoint_type: int, version: int) -> ErrorCode:
    if version == 0:
        # which has no endpoint types
        return ErrorCode.INVALID_REQUEST
    is_known = endpoint_type in (BROKERS, CONTROLLERS)
    return ErrorCode.MISMATCHED_ENDPOINT_TYPE if is_known else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE


def _described(
    node: Node,
    request: DescribeClusterRequest,
    endpoint_type: int,
    controller_id: int,
    shown: list[DescribeClusterResponse.DescribeClusterBroker],
) -> DescribeClusterResponse:
    return DescribeClusterResponse(
        endpoint_type=endpoint_type,
        cluster_id=node.cluster_id,
        controller_id=controller_id,
        brokers=shown,
        cluster_authorized_operations=(
            CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NOT_ASKED
        ),
    )


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


API = Api(
    key=ApiKey.DESCRIBE_CLUSTER,
    broker=Served((0, 2), handle, also=DESCRIBE_CLUSTER, guard=guard),
    controller=Served(
        (0, 2), handle_on_controller, needs=ALTER_CLUSTER, also=DESCRIBE_CLUSTER, guard=guard_on_controller
    ),
    remarks="brokers on their listeners, controllers on theirs",
)
