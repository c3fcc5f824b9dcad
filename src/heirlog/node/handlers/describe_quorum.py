"""DescribeQuorum (key 55): leader, voters and observers of the metadata quorum (KIP-595); brokers forward it.

v1 fetch and caught-up times, v2 directory ids, voters' listeners and error messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heirlog.context import Context
from heirlog.controller.refusals import describe_quorum_refused
from heirlog.protocol.messages import DescribeQuorumRequest

if TYPE_CHECKING:
    from heirlog.node.node import Node


def handle(node: Node, request: DescribeQuorumRequest, context: Context) -> Any:
    if node.on_controller_listener(context):
        return node.quorum.describe_quorum(request)
    return node.forward(request, context, describe_quorum_refused)
