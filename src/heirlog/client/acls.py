"""Administration of ACLs, as the calls of `admin.py` are: what to ask, and what the answers mean.

An ACL that exists already is created with success, and a filter that matches nothing removes nothing, so a request that
is sent again does no harm.

Source: KIP-140, KIP-290.
"""

from __future__ import annotations

from collections.abc import Sequence

from heirlog.client.admin import to_controller
from heirlog.client.call import Ask, Conversation
from heirlog.metadata.acl_messages import acl_of, creation_of, filter_members
from heirlog.metadata.acls import Acl, AclFilter
from heirlog.protocol.errors import ErrorCode, KafkaError, error_code
from heirlog.protocol.messages import (
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResponse,
)


def describe_acls(wanted: AclFilter) -> Conversation[list[Acl]]:
    """Those that the filter means. Raises KafkaError (SECURITY_DISABLED: the brokers have no authorizer)."""
    response: DescribeAclsResponse = yield Ask(DescribeAclsRequest(**filter_members(wanted)))
    _check(response.error_code, response.error_message, "the ACLs are not shown")
    return [acl_of(on, entry) for on in response.resources for entry in on.acls]


def create_acls(acls: Sequence[Acl]) -> Conversation[list[KafkaError | None]]:
    """Why each of them was refused, or None."""
    request = CreateAclsRequest(creations=[creation_of(acl) for acl in acls])
    response: CreateAclsResponse = yield from to_controller(
        request, lambda answer: [result.error_code for result in answer.results]
    )
    return [
        KafkaError(error_code(result.error_code), result.error_message or "the ACL was refused")
        if result.error_code
        else None
        for result in response.results
    ]


def delete_acls(filters: Sequence[AclFilter]) -> Conversation[list[Acl]]:
    """What was removed, each once. Raises KafkaError if a filter was refused; others may have removed theirs."""
    request = DeleteAclsRequest(
        filters=[DeleteAclsRequest.DeleteAclsFilter(**filter_members(wanted)) for wanted in filters]
    )
    response: DeleteAclsResponse = yield from to_controller(
        request, lambda answer: [result.error_code for result in answer.filter_results]
    )
    removed: dict[Acl, None] = {}
    for result in response.filter_results:
        _check(result.error_code, result.error_message, "the ACLs are not removed")
        for acl in result.matching_acls:
            _check(acl.error_code, acl.error_message, "an ACL is not removed")
            removed[acl_of(acl, acl)] = None
    return list(removed)


def _check(code: int, message: str | None, what: str) -> None:
    """Raises KafkaError."""
    if code != ErrorCode.NONE:
        raise KafkaError(error_code(code), f"{what}: {message}" if message else what)
