"""FindCoordinator (key 10): who coordinates a group or a transactional id.

v0 groups, v1 key types and messages, v3 flexible, v4 several keys at once, v5-6 nothing that changes the fields.
Neither coordinator is there yet, and the answer says so: a group gets COORDINATOR_NOT_AVAILABLE, which clients that
assign partitions themselves retry in the background without harm; a transactional id gets INVALID_REQUEST, which no
client retries. Served because librdkafka 2.16 sends lz4 uncompressed to a broker that does not advertise it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from heirlog.context import Context
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

if TYPE_CHECKING:
    from heirlog.node.node import Node

GROUP = 0
TRANSACTION = 1
BATCHED = 4
"""First version that asks for several keys."""


def handle(node: Node, request: FindCoordinatorRequest, context: Context) -> FindCoordinatorResponse:
    code, message = _verdict(request.key_type)
    if context.api_version < BATCHED:
        return FindCoordinatorResponse(error_code=code, error_message=message, node_id=-1, host="", port=-1)
    return FindCoordinatorResponse(
        coordinators=[
            FindCoordinatorResponse.Coordinator(
                key=key, node_id=-1, host="", port=-1, error_code=code, error_message=message
            )
            for key in request.coordinator_keys
        ]
    )


def _verdict(key_type: int) -> tuple[ErrorCode, str]:
    if key_type == GROUP:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE, (
            "consumer groups are not there yet: assign partitions in the consumer instead of subscribing"
        )
    if key_type == TRANSACTION:
        return ErrorCode.INVALID_REQUEST, (
            "transactions are not there yet: use an idempotent producer without a transactional id"
        )
    return ErrorCode.INVALID_REQUEST, f"coordinator key type {key_type} is unknown"
