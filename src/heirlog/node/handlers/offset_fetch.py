"""OffsetFetch (key 9): how far a group has read, as far as that is committed.

v2 all topics and an error of the group, v3 throttle time, v5 leader epochs, v6 flexible, v7 `require_stable` (nothing
is ever unstable without transactions), v8 several groups, v9 member epochs, v10 topic ids. Rules:
`groups.offset_requests`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heirlog.broker.groups import offset_requests
from heirlog.context import Context
from heirlog.protocol.messages import OffsetFetchRequest

if TYPE_CHECKING:
    from heirlog.node.node import Node


def handle(node: Node, request: OffsetFetchRequest, context: Context) -> Any:
    return offset_requests.fetch(node.broker.groups, request, context)
