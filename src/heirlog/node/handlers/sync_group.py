"""SyncGroup (key 14): the leader brings the assignment, everybody fetches their part; answered when it is stored.

v1 throttle time, v3 static members, v4 flexible, v5 protocol type and name. Rules: `groups.membership`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heirlog.context import Context
from heirlog.protocol.messages import SyncGroupRequest

if TYPE_CHECKING:
    from heirlog.node.node import Node


def handle(node: Node, request: SyncGroupRequest, context: Context) -> Any:
    return node.broker.groups.sync_group(request, context)
