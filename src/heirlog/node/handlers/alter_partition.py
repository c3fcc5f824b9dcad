"""AlterPartition (key 56): a leader asks for another ISR (KIP-497).

v2 topic ids, v3 a broker epoch per ISR member (KIP-903). The answer carries, in our tagged field 10000, the offset at
which the change was committed. The rules are in `controller.alter_partition`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heirlog.context import Context
from heirlog.protocol.messages import AlterPartitionRequest

if TYPE_CHECKING:
    from heirlog.node.node import Node


def handle(node: Node, request: AlterPartitionRequest, context: Context) -> Any:
    return node.controller.requests.alter_partition(request, context)
