"""DeleteAcls through a node: what filters match, bad filters, and clients without permission."""

from __future__ import annotations

from typing import Any

import pytest
from apis.guarded import ADMIN, C_DENIED, CLUSTER, CONTROLLER, TOPIC, Guarded
from controller.fakes import Harness

from heirlog.metadata.acls import AclOperation
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import DeleteAclsRequest


def matching(**more: Any) -> DeleteAclsRequest.DeleteAclsFilter:
    anything = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1}
    return DeleteAclsRequest.DeleteAclsFilter(**(anything | more))


EXAMPLE = DeleteAclsRequest(filters=[matching(principal_filter="User:nobody")]), None


def deleting(*filters: DeleteAclsRequest.DeleteAclsFilter) -> DeleteAclsRequest:
    return DeleteAclsRequest(filters=list(filters))


@pytest.mark.parametrize("version", [1, 2, 3])
def test_each_filter_names_what_it_has_deleted(node: Guarded, version: int) -> None:
    node.allow(AclOperation.READ, TOPIC, "t")
    node.allow(AclOperation.WRITE, TOPIC, "t")
    reads, nothing = matching(operation=AclOperation.READ), matching(resource_name_filter="none")
    first, second = node.ask(deleting(reads, nothing), version, ADMIN).filter_results
    assert [(acl.resource_name, acl.operation) for acl in first.matching_acls] == [("t", AclOperation.READ)]
    assert (second.error_code, second.matching_acls) == (ErrorCode.NONE, [])
    assert [acl.operation for acl in node.node.image.acls.by_id.values()] == [AclOperation.WRITE]


def test_a_filter_with_an_unknown_number_is_refused_alone(node: Guarded) -> None:
    node.allow(AclOperation.READ, TOPIC, "t")
    bad, good = node.ask(deleting(matching(operation=99), matching()), principal=ADMIN).filter_results
    assert (bad.error_code, bad.error_message) == (ErrorCode.INVALID_REQUEST, "Unknown entryFilter.")
    assert len(good.matching_acls) == 1


@pytest.mark.parametrize("listener", ["PLAINTEXT", CONTROLLER])
@pytest.mark.parametrize("field", ["resource_type_filter", "pattern_type_filter", "operation", "permission_type"])
def test_a_number_0_closes_the_connection(node: Guarded, field: str, listener: str) -> None:
    assert node.ask(deleting(matching(**{field: 0})), principal=ADMIN, listener=listener) is None


def test_a_controller_that_is_not_active_refuses_each_filter() -> None:
    results = Harness().ask("delete_acls", deleting(matching(), matching()), 3).filter_results
    assert [result.error_code for result in results] == [ErrorCode.NOT_CONTROLLER] * 2


def test_without_an_authorizer_nothing_is_deleted() -> None:
    (result,) = Guarded(authorizer_class_name="", super_users="").ask(deleting(matching())).filter_results
    assert (result.error_code, result.error_message) == (ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")


def test_the_cluster_must_allow_it(node: Guarded) -> None:
    node.allow(AclOperation.READ, TOPIC, "t")
    (refused,) = node.ask(deleting(matching())).filter_results
    assert (refused.error_code, refused.matching_acls) == (C_DENIED, [])
    node.allow(AclOperation.ALTER, CLUSTER)
    assert len(node.ask(deleting(matching())).filter_results[0].matching_acls) == 2
