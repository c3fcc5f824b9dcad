"""The calls about ACLs: what they ask, and what they make of the answers."""

from __future__ import annotations

from typing import Any

import pytest

from heirlog.client.acls import create_acls, delete_acls, describe_acls
from heirlog.client.call import To
from heirlog.metadata.acls import Acl, AclFilter, AclOperation, AclPermissionType, PatternType, ResourceType
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import CreateAclsResponse, DeleteAclsResponse, DescribeAclsResponse

ACL = Acl(ResourceType.TOPIC, "t", PatternType.LITERAL, "User:a", "*", AclOperation.READ, AclPermissionType.ALLOW)
EVERYTHING = AclFilter(ResourceType.ANY, None, PatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY)
Created = CreateAclsResponse.AclCreationResult
Deleted = DeleteAclsResponse.DeleteAclsFilterResult


def answered(call: Any, *answers: Any) -> Any:
    """What the call comes to; every question but the first follows an answer."""
    asked = next(call)
    try:
        for answer in answers:
            asked = call.send(answer)
    except StopIteration as end:
        return end.value
    return asked


def test_acls_are_described_one_by_one() -> None:
    of_acl = DescribeAclsResponse.AclDescription(principal="User:a", host="*", operation=3, permission_type=3)
    resource = DescribeAclsResponse.DescribeAclsResource(resource_type=2, resource_name="t", acls=[of_acl])
    assert answered(describe_acls(EVERYTHING), DescribeAclsResponse(resources=[resource])) == [ACL]


def test_without_an_authorizer_nothing_is_described() -> None:
    answer = DescribeAclsResponse(error_code=ErrorCode.SECURITY_DISABLED, error_message="No Authorizer is configured.")
    with pytest.raises(KafkaError, match="No Authorizer is configured"):
        answered(describe_acls(EVERYTHING), answer)


def test_each_creation_has_its_own_answer_and_a_controller_that_moved_is_asked_again() -> None:
    again = answered(create_acls([ACL, ACL]), CreateAclsResponse(results=[Created(error_code=41)] * 2))
    assert again.to is To.CONTROLLER and again.failure.code is ErrorCode.NOT_CONTROLLER
    refused = Created(error_code=ErrorCode.INVALID_REQUEST, error_message="Invalid empty resource name")
    fine, error = answered(create_acls([ACL, ACL]), CreateAclsResponse(results=[Created(), refused]))
    assert fine is None
    assert isinstance(error, KafkaError) and error.code is ErrorCode.INVALID_REQUEST


def test_what_several_filters_removed_is_told_once() -> None:
    gone = DeleteAclsResponse.DeleteAclsMatchingAcl(
        resource_type=2, resource_name="t", principal="User:a", host="*", operation=3, permission_type=3
    )
    answer = DeleteAclsResponse(filter_results=[Deleted(matching_acls=[gone]), Deleted(matching_acls=[gone])])
    assert answered(delete_acls([EVERYTHING, EVERYTHING]), answer) == [ACL]


def test_a_filter_that_is_refused_is_an_error() -> None:
    answer = DeleteAclsResponse(filter_results=[Deleted(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)])
    with pytest.raises(KafkaError, match="CLUSTER_AUTHORIZATION_FAILED"):
        answered(delete_acls([EVERYTHING]), answer)
