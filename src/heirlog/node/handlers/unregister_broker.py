"""UnregisterBroker (key 64): executed by the active controller, forwarded by brokers (KIP-631, KIP-590).

v0 only. The rules are in `controller.unregister`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heirlog.context import Context
from heirlog.controller.refusals import unregister_broker_refused
from heirlog.protocol.messages import UnregisterBrokerRequest

if TYPE_CHECKING:
    from heirlog.node.node import Node


def handle(node: Node, request: UnregisterBrokerRequest, context: Context) -> Any:
    if node.on_controller_listener(context):
        return node.controller.requests.unregister_broker(request, context)
    return node.forward(request, context, unregister_broker_refused)
