"""DescribeRecovery (key 10094): executed by the active controller, forwarded by brokers.

v0 only, never advertised: a node that serves it shows the feature heirlog.recovery.version. The rules are in
`controller.recovery.status`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heirlog.context import Context
from heirlog.controller.refusals import describe_recovery_refused
from heirlog.protocol.messages.describe_recovery import DescribeRecoveryRequest

if TYPE_CHECKING:
    from heirlog.node.node import Node


def handle(node: Node, request: DescribeRecoveryRequest, context: Context) -> Any:
    if node.on_controller_listener(context):
        return node.controller.requests.describe_recovery(request, context)
    return node.forward(request, context, describe_recovery_refused)
