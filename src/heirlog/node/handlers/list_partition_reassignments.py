"""ListPartitionReassignments (key 46): answered by the active controller, forwarded by brokers (KIP-455, KIP-590).

v0 only. The rules are in `controller.reassignments`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heirlog.context import Context
from heirlog.controller.refusals import list_reassignments_refused
from heirlog.protocol.messages import ListPartitionReassignmentsRequest

if TYPE_CHECKING:
    from heirlog.node.node import Node


def handle(node: Node, request: ListPartitionReassignmentsRequest, context: Context) -> Any:
    if node.on_controller_listener(context):
        return node.controller.requests.list_partition_reassignments(request, context)
    return node.forward(request, context, list_reassignments_refused)
