"""OffsetForLeaderEpoch (key 23): where a leader epoch ends in this leader's log (KIP-101, KIP-320).

v2 current leader epoch, v3 replica id, v4 flexible. The rules are in `broker.leader_epochs`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heirlog.context import Context
from heirlog.protocol.messages import OffsetForLeaderEpochRequest

if TYPE_CHECKING:
    from heirlog.node.node import Node


def handle(node: Node, request: OffsetForLeaderEpochRequest, context: Context) -> Any:
    return node.broker.offset_for_leader_epoch(request, context)
