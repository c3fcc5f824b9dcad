"""DeleteRecords (key 21): remove the records of a partition below an offset (KIP-107).

v0-1, v2 flexible. The rules are in `broker.delete_records`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heirlog.context import Context
from heirlog.protocol.messages import DeleteRecordsRequest

if TYPE_CHECKING:
    from heirlog.node.node import Node


def handle(node: Node, request: DeleteRecordsRequest, context: Context) -> Any:
    return node.broker.delete_records(request)
