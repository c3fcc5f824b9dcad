"""Fetch (key 1) on a controller listener: the metadata log, for brokers and other observers.

Versions as on a broker listener; v17 and v18 are what replicas send. The rules are in `raft`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heirlog.context import Context
from heirlog.protocol.messages import FetchRequest

if TYPE_CHECKING:
    from heirlog.node.node import Node


def handle(node: Node, request: FetchRequest, context: Context) -> Any:
    return node.quorum.fetch(request)
