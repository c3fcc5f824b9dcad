"""AllocateProducerIds (key 67): a block of producer ids for a broker (KIP-730)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heirlog.context import Context
from heirlog.protocol.messages import AllocateProducerIdsRequest

if TYPE_CHECKING:
    from heirlog.node.node import Node


def handle(node: Node, request: AllocateProducerIdsRequest, context: Context) -> Any:
    return node.controller.requests.allocate_producer_ids(request, context)
