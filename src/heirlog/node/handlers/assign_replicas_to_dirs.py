"""AssignReplicasToDirs (key 73): a broker says in which log directories its replicas lie (KIP-858).

v0 only. The rules are in `controller.assign_directories`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heirlog.context import Context
from heirlog.protocol.messages import AssignReplicasToDirsRequest

if TYPE_CHECKING:
    from heirlog.node.node import Node


def handle(node: Node, request: AssignReplicasToDirsRequest, context: Context) -> Any:
    return node.controller.requests.assign_replicas_to_dirs(request, context)
