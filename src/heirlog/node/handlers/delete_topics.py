"""DeleteTopics (key 20): on a controller listener executed, on a broker listener forwarded (KIP-4, KIP-590).

v1-3 by name, v4 flexible, v5 error messages, v6 by name or topic id. The rules are in `controller.topics`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from heirlog.context import Context
from heirlog.controller.refusals import delete_topics_refused
from heirlog.protocol.messages import DeleteTopicsRequest

if TYPE_CHECKING:
    from heirlog.node.node import Node


def handle(node: Node, request: DeleteTopicsRequest, context: Context) -> Any:
    if node.on_controller_listener(context):
        return node.controller.requests.delete_topics(request, context)
    return node.forward(request, context, partial(delete_topics_refused, request))
