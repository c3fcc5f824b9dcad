"""CreateAcls (key 30): on a controller listener executed, on a broker listener forwarded (KIP-140, KIP-590).

v1 pattern types (KIP-290), v2 flexible, v3 the resource type USER. A creation with a number 0 in it closes the
connection, as on Kafka. The rules are in `controller.acls`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from heirlog.context import CLOSE, Context
from heirlog.controller.refusals import create_acls_refused
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import CreateAclsRequest

if TYPE_CHECKING:
    from heirlog.node.node import Node


def handle(node: Node, request: CreateAclsRequest, context: Context) -> Any:
    for creation in request.creations:
        kinds = (creation.resource_type, creation.resource_pattern_type)
        if 0 in (*kinds, creation.operation, creation.permission_type):
            return CLOSE
    if not node.on_controller_listener(context):
        return node.forward(request, context, partial(create_acls_refused, request))
    if node.authorizer is None:
        return create_acls_refused(request, ErrorCode.SECURITY_DISABLED)
    return node.controller.requests.create_acls(request, context)
