"""JoinGroup (key 11): a member joins the next generation of its group; answered when everybody has.

v1 rebalance timeout, v4 a new member comes back with the id it is given (KIP-394), v5 static members, v6 flexible, v7
protocol type and null names, v8 a reason, v9 the leader may be told to skip the assignment. Rules: `groups.membership`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heirlog.context import Context
from heirlog.protocol.messages import JoinGroupRequest

if TYPE_CHECKING:
    from heirlog.node.node import Node


def handle(node: Node, request: JoinGroupRequest, context: Context) -> Any:
    return node.broker.groups.join_group(request, context)
