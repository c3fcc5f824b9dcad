"""AlterConfigs (key 33): on a controller listener executed, on a broker listener forwarded (KIP-133, KIP-590).

v0-1, v2 flexible. What the request does not name is deleted. The rules are in `controller.alter_configs`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from heirlog.context import Context
from heirlog.controller.alter_configs import replacement
from heirlog.controller.refusals import alter_configs_refused
from heirlog.node.config_resources import answer_with, refusals
from heirlog.protocol.messages import AlterConfigsRequest, AlterConfigsResponse

if TYPE_CHECKING:
    from heirlog.node.node import Node


def handle(node: Node, request: AlterConfigsRequest, context: Context) -> Any:
    if node.on_controller_listener(context):
        return node.controller.requests.alter_configs(request, context)
    return answer_with(
        request.resources,
        refusals(node, request.resources, replacement, AlterConfigsResponse),
        lambda own: AlterConfigsRequest(resources=own, validate_only=request.validate_only),
        AlterConfigsResponse,
        lambda forwarded: node.forward(forwarded, context, partial(alter_configs_refused, forwarded)),
    )
