"""CreateAcls (key 30): the active controller executes it, brokers forward it (KIP-140, KIP-590).

v1 pattern types (KIP-290), v2 flexible, v3 the resource type USER. A creation with a number 0 in it closes the
connection, as on Kafka. The rules are in `controller.acls`.
"""

from __future__ import annotations

from functools import partial
from typing import Protocol

from heirlog.apis.common.api import ALTER_CLUSTER, Api, Forwarded, Limit, Served
from heirlog.apis.common.ports import ChangesMetadata, Forwards, KnowsAuthorizer, OnController
from heirlog.context import CLOSE, Context, Reply
from heirlog.controller.acls import create_acls
from heirlog.controller.error_messages import sentence
from heirlog.controller.record_limit import MAX_RECORDS_PER_USER_OP
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import CreateAclsRequest, CreateAclsResponse


class Node(OnController[ChangesMetadata], KnowsAuthorizer, Protocol):
    pass


def refused(request: CreateAclsRequest, code: ErrorCode) -> CreateAclsResponse:
    return CreateAclsResponse(
        results=[
            CreateAclsResponse.AclCreationResult(error_code=code, error_message=sentence(code))
            for _ in request.creations
        ]
    )


def _has_zero(request: CreateAclsRequest) -> bool:
    return any(
        0 in (acl.resource_type, acl.resource_pattern_type, acl.operation, acl.permission_type)
        for acl in request.creations
    )


def handle_on_broker(node: Forwards, request: CreateAclsRequest, context: Context) -> Reply[CreateAclsResponse]:
    return CLOSE if _has_zero(request) else node.forward(request, context, partial(refused, request))


def handle(node: Node, request: CreateAclsRequest, context: Context) -> Reply[CreateAclsResponse]:
    if _has_zero(request):
        return CLOSE
    if node.authorizer is None:
        return refused(request, ErrorCode.SECURITY_DISABLED)
    controller = node.controller
    return controller.submit(
        lambda: create_acls(controller.image, request, controller.env.random), partial(refused, request)
    )


API = Api(
    key=ApiKey.CREATE_ACLS,
    broker=Forwarded((1, 3), handle_on_broker),
    controller=Served((1, 3), handle, needs=ALTER_CLUSTER),
    refused=refused,
    is_change=True,
    limits=(Limit(MAX_RECORDS_PER_USER_OP, "metadata records", ErrorCode.POLICY_VIOLATION),),
)
