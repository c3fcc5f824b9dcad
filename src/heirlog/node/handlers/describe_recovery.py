"""DescribeRecovery (key 10094): executed by the active controller, forwarded by brokers.

v0 only, never advertised: a node that serves it shows the feature heirlog.recovery.version. The rules are in
`controller.recovery.status`.

Who asks has an outage. Where no controller is active the broker says so, and where it has looked, before the client's
patience ends (30 s by default); a bare time-out would leave the operator to guess.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from heirlog.context import Context
from heirlog.controller.refusals import describe_recovery_refused
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import DescribeRecoveryRequest, DescribeRecoveryResponse

if TYPE_CHECKING:
    from heirlog.node.node import Node


WAIT_MS: Final = 10_000
"""Longer than another controller takes to become active."""


def handle(node: Node, request: DescribeRecoveryRequest, context: Context) -> Any:
    if node.on_controller_listener(context):
        return node.controller.requests.describe_recovery(request, context)

    def refused(code: ErrorCode) -> DescribeRecoveryResponse:
        response = describe_recovery_refused(code)
        if code is ErrorCode.REQUEST_TIMED_OUT:
            asked = ", ".join(map(str, node.controllers()))
            response.error_message = (
                f"no controller is active: broker {node.config.node_id} had no answer from {asked} within "
                f"{WAIT_MS // 1000} s; start the controllers there, or look into their logs if they run, and ask again"
            )
        return response

    return node.forward(request, context, refused, WAIT_MS)
