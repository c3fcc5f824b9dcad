"""OffsetCommit (key 8): how far a group has read; answered when it is committed.

v2-4 a retention time, v3 throttle time, v6 leader epochs, v7 static members, v8 flexible, v9 member epochs (KIP-848),
v10 topic ids. Rules: `groups.offset_requests`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heirlog.broker.groups import offset_requests
from heirlog.context import Context
from heirlog.protocol.messages import OffsetCommitRequest

if TYPE_CHECKING:
    from heirlog.node.node import Node


def handle(node: Node, request: OffsetCommitRequest, context: Context) -> Any:
    return offset_requests.commit(node.broker.groups, node.env, request, context)
