"""IncrementalAlterConfigs (key 44): on a controller listener executed, on a broker listener forwarded (KIP-339).

v0, v1 flexible. What the request does not name stays. The rules are in `controller.alter_configs`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from heirlog.context import Context
from heirlog.controller.refusals import incremental_alter_configs_refused
from heirlog.node.config_resources import forward_own
from heirlog.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

if TYPE_CHECKING:
    from heirlog.node.node import Node


def handle(node: Node, request: IncrementalAlterConfigsRequest, context: Context) -> Any:
    if node.on_controller_listener(context):
        return node.controller.incremental_alter_configs(request, context)
    return forward_own(
        node,
        request.resources,
        lambda own: IncrementalAlterConfigsRequest(resources=own, validate_only=request.validate_only),
        IncrementalAlterConfigsResponse,
        lambda forwarded: node.forward(forwarded, context, partial(incremental_alter_configs_refused, forwarded)),
    )
