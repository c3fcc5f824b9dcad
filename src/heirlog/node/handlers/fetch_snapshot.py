"""FetchSnapshot (key 59): a byte range of a metadata snapshot (KIP-630). v1 adds the replica's directory id."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heirlog.context import Context
from heirlog.protocol.messages import FetchSnapshotRequest

if TYPE_CHECKING:
    from heirlog.node.node import Node


def handle(node: Node, request: FetchSnapshotRequest, context: Context) -> Any:
    return node.quorum.fetch_snapshot(request)
