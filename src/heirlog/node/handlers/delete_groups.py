"""DeleteGroups (key 42): groups without members, with their offsets; answered when that is committed.

v1 throttle time, v2 flexible. Rules: `groups.admin`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heirlog.broker.groups import admin
from heirlog.context import Context
from heirlog.protocol.messages import DeleteGroupsRequest

if TYPE_CHECKING:
    from heirlog.node.node import Node


def handle(node: Node, request: DeleteGroupsRequest, context: Context) -> Any:
    return admin.delete_groups(node.broker.groups, request)
