"""AlterPartitionReassignments (key 45): executed by the active controller, forwarded by brokers (KIP-455, KIP-590).

v1 may forbid that the replication factor changes (KIP-860). The rules are in `controller.reassignments`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heirlog.context import Context
from heirlog.controller.refusals import alter_reassignments_refused
from heirlog.protocol.messages import AlterPartitionReassignmentsRequest

if TYPE_CHECKING:
    from heirlog.node.node import Node


def handle(node: Node, request: AlterPartitionReassignmentsRequest, context: Context) -> Any:
    if node.on_controller_listener(context):
        return node.controller.requests.alter_partition_reassignments(request, context)
    return node.forward(request, context, alter_reassignments_refused)
