"""ElectLeaders (key 43): on a controller listener executed, on a broker listener forwarded (KIP-460, KIP-590).

v0 preferred only, v1 election type, v2 flexible. The rules are in `controller.elect_leaders`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heirlog.context import Context
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse

if TYPE_CHECKING:
    from heirlog.node.node import Node


def handle(node: Node, request: ElectLeadersRequest, context: Context) -> Any:
    if node.on_controller_listener(context):
        return node.controller.elect_leaders(request, context)
    return node.forward(request, context, lambda code: refusal(request, code))


def refusal(request: ElectLeadersRequest, code: ErrorCode) -> ElectLeadersResponse:
    return ElectLeadersResponse(
        error_code=code,
        replica_election_results=[
            ElectLeadersResponse.ReplicaElectionResult(
                topic=topic.topic,
                partition_result=[
                    ElectLeadersResponse.PartitionResult(
                        partition_id=index,
                        error_code=code,
                        error_message="the active controller did not answer in time",
                    )
                    for index in topic.partitions
                ],
            )
            for topic in request.topic_partitions or []
        ],
    )
