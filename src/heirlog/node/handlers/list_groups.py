"""ListGroups (key 16): the groups that this broker coordinates; clients ask every broker.

v1 throttle time, v3 flexible, v4 states and a filter, v5 types and a filter. Rules: `groups.admin`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heirlog.broker.groups import admin
from heirlog.context import Context
from heirlog.protocol.messages import ListGroupsRequest

if TYPE_CHECKING:
    from heirlog.node.node import Node


def handle(node: Node, request: ListGroupsRequest, context: Context) -> Any:
    return admin.list_groups(node.broker.groups, request)
