"""Fetch (key 1) on a broker listener: records for consumers and follower replicas.

v5 log start offset, v7 fetch sessions, v9 current leader epoch, v11 rack, v12 flexible with the last fetched epoch and
DivergingEpoch, v13 topic ids, v15 replica state with the broker epoch (KIP-903), v16 node endpoints, v17 replica
directory id, v18 the follower's high watermark. The rules are in `broker.fetch`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heirlog.context import Context
from heirlog.protocol.messages import FetchRequest

if TYPE_CHECKING:
    from heirlog.node.node import Node


def handle(node: Node, request: FetchRequest, context: Context) -> Any:
    return node.broker.fetch(request, context)
