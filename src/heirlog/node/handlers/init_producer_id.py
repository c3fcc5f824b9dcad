"""InitProducerId (key 22): an id for an idempotent producer (KIP-98).

v2 flexible, v3 the current id and epoch of a producer that wants a higher epoch, v4 PRODUCER_FENCED, v5 transactions
v2. A transactional id is refused: transactions are not there yet. The rules are in `broker.init_producer_id`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heirlog.context import Context
from heirlog.protocol.messages import InitProducerIdRequest

if TYPE_CHECKING:
    from heirlog.node.node import Node


def handle(node: Node, request: InitProducerIdRequest, context: Context) -> Any:
    return node.broker.init_producer_id(request, context)
