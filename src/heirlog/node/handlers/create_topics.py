"""CreateTopics (key 19): on a controller listener executed, on a broker listener forwarded (KIP-4, KIP-590).

v2-4 partitions and assignments, v5 flexible and the configs in the answer, v6 throttling errors, v7 topic ids.
The rules are in `controller.topics`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from heirlog.context import Context
from heirlog.controller.refusals import create_topics_refused
from heirlog.protocol.messages import CreateTopicsRequest

if TYPE_CHECKING:
    from heirlog.node.node import Node


def handle(node: Node, request: CreateTopicsRequest, context: Context) -> Any:
    if node.on_controller_listener(context):
        return node.controller.requests.create_topics(request, context)
    return node.forward(request, context, partial(create_topics_refused, request))
