"""OffsetDelete (key 47): an operator makes a group forget offsets that none of its members reads (KIP-496).

Rules: `groups.offset_requests`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heirlog.broker.groups import offset_requests
from heirlog.context import Context
from heirlog.protocol.messages import OffsetDeleteRequest

if TYPE_CHECKING:
    from heirlog.node.node import Node


def handle(node: Node, request: OffsetDeleteRequest, context: Context) -> Any:
    return offset_requests.delete(node.broker.groups, request)
