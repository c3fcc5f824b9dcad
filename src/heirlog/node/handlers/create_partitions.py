"""CreatePartitions (key 37): on a controller listener executed, on a broker listener forwarded (KIP-195, KIP-590).

v0-1, v2 flexible, v3 throttling errors. The rules are in `controller.create_partitions`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from heirlog.context import Context
from heirlog.controller.refusals import create_partitions_refused
from heirlog.protocol.messages import CreatePartitionsRequest

if TYPE_CHECKING:
    from heirlog.node.node import Node


def handle(node: Node, request: CreatePartitionsRequest, context: Context) -> Any:
    if node.on_controller_listener(context):
        return node.controller.requests.create_partitions(request, context)
    return node.forward(request, context, partial(create_partitions_refused, request))
