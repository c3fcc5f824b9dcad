"""DeleteAcls (key 31): the active controller executes it, brokers forward it (KIP-140, KIP-590).

v1 pattern types (KIP-290), v2 flexible, v3 the resource type USER. A filter with a number 0 in it closes the
connection, as on Kafka. The rules are in `controller.acls`.
"""

from __future__ import annotations

from functools import partial
from typing import Protocol

from heirlog.apis.common.api import ALTER_CLUSTER, Api, Forwarded, Limit, Served
from heirlog.apis.common.ports import ChangesMetadata, Forwards, KnowsAuthorizer, OnController
from heirlog.context import CLOSE, Context, Reply
from heirlog.controller.acls import delete_acls
from heirlog.controller.error_messages import sentence
from heirlog.controller.record_limit import MAX_RECORDS_PER_USER_OP
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import DeleteAclsRequest, DeleteAclsResponse


class Node(OnController[ChangesMetadata], KnowsAuthorizer, Protocol):
    pass


def refused(request: DeleteAclsRequest, code: ErrorCode) -> DeleteAclsResponse:
    return DeleteAclsResponse(
        filter_results=[
            DeleteAclsResponse.DeleteAclsFilterResult(error_code=code, error_message=sentence(code))
            for _ in request.filters
        ]
    )


def _has_zero(request: DeleteAclsRequest) -> bool:
    return any(
        0 in (asked.resource_type_filter, asked.pattern_type_filter, asked.operation, asked.permission_type)
        for asked in request.filters
    )


def handle_on_broker(node: Forwards, request: DeleteAclsRequest, context: Context) -> Reply[DeleteAclsResponse]:
    return CLOSE if _has_zero(request) else node.forward(request, context, partial(refused, request))


def handle(node: Node, request: DeleteAclsRequest, context: Context) -> Reply[DeleteAclsResponse]:
    if _has_zero(request):
        return CLOSE
    if node.authorizer is None:
        return refused(request, ErrorCode.SECURITY_DISABLED)
    controller = node.controller
    return controller.submit(lambda: delete_acls(controller.image, request), partial(refused, request))


API = Api(
    key=ApiKey.DELETE_ACLS,
    broker=Forwarded((1, 3), handle_on_broker),
    controller=Served((1, 3), handle, needs=ALTER_CLUSTER),
    refused=refused,
    is_change=True,
    has_large_answer=True,
    limits=(Limit(MAX_RECORDS_PER_USER_OP, "metadata records", ErrorCode.POLICY_VIOLATION),),
)
