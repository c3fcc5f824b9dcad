"""ElectLeaders (key 43): on a controller listener executed, on a broker listener forwarded (KIP-460, KIP-590).

v0 preferred only, v1 election type, v2 flexible; v3 is ours: longest log, designation, DesiredLeaders, SkipWait. The
rules are in `controller.elect_leaders`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from heirlog.context import Context
from heirlog.controller.refusals import elect_leaders_refused
from heirlog.protocol.messages import ElectLeadersRequest

if TYPE_CHECKING:
    from heirlog.node.node import Node


def handle(node: Node, request: ElectLeadersRequest, context: Context) -> Any:
    if node.on_controller_listener(context):
        return node.controller.requests.elect_leaders(request, context)
    return node.forward(request, context, partial(elect_leaders_refused, request))
