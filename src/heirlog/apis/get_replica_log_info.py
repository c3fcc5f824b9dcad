"""GetReplicaLogInfo (key 10093): what the replicas of this broker hold, for the active controller (KIP-966).

v0 only. The key is ours, so ApiVersions does not show it: a broker that serves it registers the feature
heirlog.recovery.version. Served on the inter-broker listener alone, since broker epochs must not reach clients. The
rules are in `broker.replica_log_info`.
"""

from __future__ import annotations

from typing import Protocol

from heirlog.apis.common.api import NODES_ONLY, Api, Limit, Served
from heirlog.apis.common.ports import HasConfig, OnBroker
from heirlog.broker.replica_log_info import PARTITIONS_MAX, refused
from heirlog.context import Context
from heirlog.controller.error_messages import sentence
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import GetReplicaLogInfoRequest, GetReplicaLogInfoResponse


class HoldsReplicas(Protocol):
    def replica_log_info(self, request: GetReplicaLogInfoRequest) -> GetReplicaLogInfoResponse: ...


class Node(OnBroker[HoldsReplicas], HasConfig, Protocol):
    pass


def handle(node: Node, request: GetReplicaLogInfoRequest, context: Context) -> GetReplicaLogInfoResponse:
    between_brokers = node.config.inter_broker_listener_name
    if context.listener != between_brokers:
        why = f"only controllers send this request, on the listener {between_brokers}"
        return refused(request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, why)
    return node.broker.replica_log_info(request)


API = Api(
    key=ApiKey.GET_REPLICA_LOG_INFO,
    broker=Served((0, 0), handle, needs=NODES_ONLY),
    refused=lambda request, code: refused(request, code, sentence(code)),
    limits=(Limit(PARTITIONS_MAX, "partitions", ErrorCode.REQUEST_LIMIT_REACHED),),
    remarks=(
        "the fields of KIP-966 under a key of heirlog, never advertised. Brokers serve it to controllers on the "
        "inter-broker listener"
    ),
)
