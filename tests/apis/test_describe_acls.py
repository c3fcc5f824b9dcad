"""DescribeAcls through a node: what a filter matches, on brokers and controllers, and clients without permission."""

from __future__ import annotations

from typing import Any

import pytest
from apis.guarded import ADMIN, C_DENIED, CLUSTER, CONTROLLER, TOPIC, Guarded

from heirlog.metadata.acls import AclOperation, PatternType
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import DescribeAclsRequest


def describing(**more: Any) -> DescribeAclsRequest:
    return DescribeAclsRequest(
        **{"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1} | more
    )


EXAMPLE = describing(), None


def described(answer: Any) -> list[tuple[str, int]]:
    """Name and operation of each ACL; the answer has them by resource."""
    assert answer.error_code == ErrorCode.NONE
    return [(resource.resource_name, acl.operation) for resource in answer.resources for acl in resource.acls]


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("listener", ["PLAINTEXT", CONTROLLER])
def test_acls_are_described_by_the_resources_that_they_are_on(node: Guarded, version: int, listener: str) -> None:
    for name, operation in (("t", AclOperation.WRITE), ("a", AclOperation.READ), ("t", AclOperation.READ)):
        node.allow(operation, TOPIC, name)
    answer = node.ask(describing(), version, ADMIN, listener=listener)
    assert described(answer) == [("a", AclOperation.READ), ("t", AclOperation.READ), ("t", AclOperation.WRITE)]
    assert [resource.resource_name for resource in answer.resources] == ["a", "t"]
    reads = node.ask(describing(operation=AclOperation.READ, resource_name_filter="t"), version, ADMIN)
    assert described(reads) == [("t", AclOperation.READ)]


def test_the_pattern_type_match_finds_what_counts_for_a_name(node: Guarded) -> None:
    node.allow(AclOperation.READ, TOPIC, "orders", pattern=PatternType.PREFIXED)
    node.allow(AclOperation.WRITE, TOPIC, "other")
    wanted = {"resource_type_filter": TOPIC, "resource_name_filter": "orders-1"}
    found = node.ask(describing(pattern_type_filter=PatternType.MATCH, **wanted), principal=ADMIN)
    assert described(found) == [("orders", AclOperation.READ)]
    assert described(node.ask(describing(pattern_type_filter=PatternType.LITERAL, **wanted), principal=ADMIN)) == []


@pytest.mark.parametrize("field", ["resource_type_filter", "pattern_type_filter", "operation", "permission_type"])
def test_a_number_0_closes_the_connection(node: Guarded, field: str) -> None:
    assert node.ask(describing(**{field: 0}), principal=ADMIN) is None


def test_without_an_authorizer_there_are_no_acls() -> None:
    answer = Guarded(authorizer_class_name="", super_users="").ask(describing())
    assert (answer.error_code, answer.error_message) == (ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")


def test_the_cluster_must_allow_it(node: Guarded) -> None:
    node.allow(AclOperation.READ, TOPIC, "t")
    refused = node.ask(describing())
    assert (refused.error_code, refused.resources) == (C_DENIED, [])
    node.allow(AclOperation.DESCRIBE, CLUSTER)
    assert len(described(node.ask(describing()))) == 2
