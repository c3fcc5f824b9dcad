"""DescribeAcls (key 29): the ACLs that a filter matches, by the resources that they are on (KIP-140).

v1 pattern types (KIP-290), v2 flexible, v3 the resource type USER. Answered from this node's own image, on brokers and
controllers alike. A filter with a number 0 in it has no meaning: the connection is closed, as on Kafka.
"""

from __future__ import annotations

from typing import Protocol

from heirlog.apis.common.api import DESCRIBE_CLUSTER, Api, Served
from heirlog.apis.common.ports import HasImage, KnowsAuthorizer
from heirlog.context import CLOSE, Context, Reply
from heirlog.metadata.acl_messages import entry_members, filter_of, pattern_members
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import DescribeAclsRequest, DescribeAclsResponse

Resource = DescribeAclsResponse.DescribeAclsResource
Description = DescribeAclsResponse.AclDescription


class Node(HasImage, KnowsAuthorizer, Protocol):
    pass


def handle(node: Node, request: DescribeAclsRequest, context: Context) -> Reply[DescribeAclsResponse]:
    numbers = (request.resource_type_filter, request.pattern_type_filter, request.operation, request.permission_type)
    if 0 in numbers:
        return CLOSE
    if node.authorizer is None:
        return API.refusal(request, ErrorCode.SECURITY_DISABLED)
    resources: dict[tuple[int, str, int], Resource] = {}
    for acl in sorted({acl for _, acl in node.image.acls.matching(filter_of(request))}):
        place = (acl.resource_type, acl.resource_name, acl.pattern_type)
        if place not in resources:
            resources[place] = Resource(**pattern_members(acl))
        resources[place].acls.append(Description(**entry_members(acl)))
    return DescribeAclsResponse(error_message="", resources=list(resources.values()))


API = Api(
    key=ApiKey.DESCRIBE_ACLS,
    broker=Served((1, 3), handle, needs=DESCRIBE_CLUSTER),
    controller=Served((1, 3), handle, needs=DESCRIBE_CLUSTER),
    has_large_answer=True,
    remarks="without an authorizer SECURITY_DISABLED, also for the next two",
)
