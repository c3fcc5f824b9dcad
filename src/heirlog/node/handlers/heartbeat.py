"""Heartbeat (key 12): a member is alive; the answer says whether to join again.

v1 throttle time, v3 static members, v4 flexible. Rules: `groups.membership`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heirlog.context import Context
from heirlog.protocol.messages import HeartbeatRequest

if TYPE_CHECKING:
    from heirlog.node.node import Node


def handle(node: Node, request: HeartbeatRequest, context: Context) -> Any:
    return node.broker.groups.heartbeat(request, context)
