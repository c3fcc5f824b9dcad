"""ListOffsets (key 2): the offset for a timestamp, or one of the named positions.

v1 one offset per partition, v2 isolation level, v4 leader epochs, v6 flexible, v7 max timestamp (-3), v8 earliest local
(-4), v9 latest tiered (-5), v10 timeout, v11 earliest pending upload. The rules are in `broker.list_offsets`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heirlog.context import Context
from heirlog.protocol.messages import ListOffsetsRequest

if TYPE_CHECKING:
    from heirlog.node.node import Node


def handle(node: Node, request: ListOffsetsRequest, context: Context) -> Any:
    return node.broker.list_offsets(request, context)
