"""DescribeGroups (key 15): state and members of groups.

v1 throttle time, v3 authorized operations, v4 static members, v5 flexible, v6 an error for groups that are not there.
Rules: `groups.admin`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heirlog.broker.groups import admin
from heirlog.context import Context
from heirlog.protocol.messages import DescribeGroupsRequest

if TYPE_CHECKING:
    from heirlog.node.node import Node


def handle(node: Node, request: DescribeGroupsRequest, context: Context) -> Any:
    return admin.describe_groups(node.broker.groups, request, context)
