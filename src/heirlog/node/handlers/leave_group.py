"""LeaveGroup (key 13): members leave at once, instead of at the end of their sessions.

v1 throttle time, v3 several members, by id or instance, v4 flexible, v5 a reason. Rules: `groups.membership`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heirlog.context import Context
from heirlog.protocol.messages import LeaveGroupRequest

if TYPE_CHECKING:
    from heirlog.node.node import Node


def handle(node: Node, request: LeaveGroupRequest, context: Context) -> Any:
    return node.broker.groups.leave_group(request, context)
