"""Produce (key 0): append record batches to partitions that this broker leads.

v3-13. v5 log start offset, v8 per-record errors, v9 flexible, v10 current leader and node endpoints in tags, v13 topic
ids instead of names. The records are bytes all the way; the rules are in `broker.produce`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heirlog.context import Context
from heirlog.protocol.messages import ProduceRequest

if TYPE_CHECKING:
    from heirlog.node.node import Node


def handle(node: Node, request: ProduceRequest, context: Context) -> Any:
    return node.broker.produce(request, context)
