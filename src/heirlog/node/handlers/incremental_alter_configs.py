"""IncrementalAlterConfigs (key 44): on a controller listener executed, on a broker listener forwarded (KIP-339).

v0, v1 flexible. What the request does not name stays. The rules are in `controller.alter_configs`; loggers are changed
by the node that is asked (`node.broker_loggers`).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from heirlog.context import Context
from heirlog.controller.alter_configs import increments
from heirlog.controller.refusals import incremental_alter_configs_refused
from heirlog.node import broker_loggers
from heirlog.node.broker_loggers import BROKER_LOGGER
from heirlog.node.config_resources import answer_with, refusals
from heirlog.protocol.messages import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

if TYPE_CHECKING:
    from heirlog.node.node import Node


def handle(node: Node, request: IncrementalAlterConfigsRequest, context: Context) -> Any:
    is_controller = node.on_controller_listener(context)

    def ask(others: IncrementalAlterConfigsRequest) -> Any:
        if is_controller:
            return node.controller.requests.incremental_alter_configs(others, context)
        return node.forward(others, context, partial(incremental_alter_configs_refused, others))

    refused = [None] * len(request.resources)
    if not is_controller:
        refused = refusals(node, request.resources, increments, IncrementalAlterConfigsResponse)

    def local(resource: IncrementalAlterConfigsRequest.AlterConfigsResource, mine: Any) -> Any:
        if resource.resource_type == BROKER_LOGGER and mine is None:
            return broker_loggers.alter(node, resource, request.validate_only)
        return mine

    return answer_with(
        request.resources,
        [local(resource, mine) for resource, mine in zip(request.resources, refused, strict=True)],
        lambda others: IncrementalAlterConfigsRequest(resources=others, validate_only=request.validate_only),
        IncrementalAlterConfigsResponse,
        ask,
    )
