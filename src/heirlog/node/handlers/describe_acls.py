"""DescribeAcls (key 29): the ACLs that a filter means, by the resources that they stand on (KIP-140).

v1 pattern types (KIP-290), v2 flexible, v3 the resource type USER. Answered from this node's own image, on brokers and
controllers alike. A filter with a number 0 in it cannot be meant by anybody: the connection is closed, as on Kafka.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heirlog.context import CLOSE, Context
from heirlog.controller.refusals import sentence
from heirlog.metadata.acl_messages import entry_members, filter_of, pattern_members
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import DescribeAclsRequest, DescribeAclsResponse

if TYPE_CHECKING:
    from heirlog.node.node import Node

Resource = DescribeAclsResponse.DescribeAclsResource
Description = DescribeAclsResponse.AclDescription


def handle(node: Node, request: DescribeAclsRequest, context: Context) -> Any:
    numbers = (request.resource_type_filter, request.pattern_type_filter, request.operation, request.permission_type)
    if 0 in numbers:
        return CLOSE
    if node.authorizer is None:
        code = ErrorCode.SECURITY_DISABLED
        return DescribeAclsResponse(error_code=code, error_message=sentence(code))
    resources: dict[tuple[int, str, int], Resource] = {}
    for acl in sorted({acl for _, acl in node.image.acls.matching(filter_of(request))}):
        place = (acl.resource_type, acl.resource_name, acl.pattern_type)
        if place not in resources:
            resources[place] = Resource(**pattern_members(acl))
        resources[place].acls.append(Description(**entry_members(acl)))
    return DescribeAclsResponse(error_message="", resources=list(resources.values()))
