"""GetReplicaLogInfo (key 10093): what the replicas here hold, asked by the active controller (KIP-966).

v0 only, never advertised: a broker that serves it registers the feature heirlog.recovery.version. On the inter-broker
listener alone, since broker epochs must not reach clients. The rules are in `broker.replica_log_info`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from heirlog.broker.replica_log_info import refused
from heirlog.context import Context
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import GetReplicaLogInfoRequest, GetReplicaLogInfoResponse

if TYPE_CHECKING:
    from heirlog.node.node import Node


def handle(node: Node, request: GetReplicaLogInfoRequest, context: Context) -> GetReplicaLogInfoResponse:
    between_brokers = node.config.inter_broker_listener_name
    if context.listener != between_brokers:
        sentence = f"only controllers ask this, on the listener {between_brokers}"
        return refused(request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, sentence)
    return node.broker.replica_log_info(request)
