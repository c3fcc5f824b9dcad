"""CreateAcls through a node: pattern types by version, bad creations, and clients without permission."""

from __future__ import annotations

from typing import Any

import pytest
from apis.guarded import ADMIN, C_DENIED, CLUSTER, CONTROLLER, Guarded
from controller.fakes import Harness

from heirlog.metadata.acls import AclOperation, AclPermissionType, PatternType, ResourceType
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import CreateAclsRequest


def creating(*names: str, **more: Any) -> CreateAclsRequest:
    values: dict[str, Any] = {"resource_type": ResourceType.TOPIC, "resource_pattern_type": PatternType.LITERAL}
    values |= {"principal": "User:x", "host": "*", "operation": AclOperation.READ}
    values |= {"permission_type": AclPermissionType.ALLOW}
    return CreateAclsRequest(
        creations=[CreateAclsRequest.AclCreation(resource_name=name, **(values | more)) for name in names]
    )


EXAMPLE = creating(""), None


def codes(answer: Any) -> list[int]:
    return [result.error_code for result in answer.results]


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("listener", ["PLAINTEXT", CONTROLLER])
def test_an_acl_is_created_once_by_brokers_and_controllers(node: Guarded, version: int, listener: str) -> None:
    request = creating("t", "t", resource_pattern_type=PatternType.PREFIXED)
    assert codes(node.ask(request, version, ADMIN, listener=listener)) == [ErrorCode.NONE] * 2
    (acl,) = node.node.image.acls.by_id.values()
    assert (acl.resource_name, acl.pattern_type, acl.principal) == ("t", PatternType.PREFIXED, "User:x")


@pytest.mark.parametrize(
    "change", [{"principal": "x"}, {"operation": 99}, {"resource_type": ResourceType.CLUSTER}, {"resource_name": ""}]
)
def test_a_bad_creation_is_refused_alone_and_with_a_message(node: Guarded, change: dict[str, Any]) -> None:
    request = creating("bad", "good")
    for name, value in change.items():
        setattr(request.creations[0], name, value)
    answer = node.ask(request, principal=ADMIN)
    assert codes(answer) == [ErrorCode.INVALID_REQUEST, ErrorCode.NONE]
    assert answer.results[0].error_message
    assert {acl.resource_name for acl in node.node.image.acls.by_id.values()} == {"good"}


@pytest.mark.parametrize("listener", ["PLAINTEXT", CONTROLLER])
@pytest.mark.parametrize("field", ["resource_type", "resource_pattern_type", "operation", "permission_type"])
def test_a_number_0_closes_the_connection(node: Guarded, field: str, listener: str) -> None:
    assert node.ask(creating("t", **{field: 0}), principal=ADMIN, listener=listener) is None


def test_a_controller_that_is_not_active_refuses_each_creation() -> None:
    assert codes(Harness().ask("create_acls", creating("a", "b"), 3)) == [ErrorCode.NOT_CONTROLLER] * 2


def test_without_an_authorizer_nothing_is_created() -> None:
    answer = Guarded(authorizer_class_name="", super_users="").ask(creating("t"))
    assert codes(answer) == [ErrorCode.SECURITY_DISABLED]
    assert answer.results[0].error_message == "No Authorizer is configured."


def test_the_cluster_must_allow_it(node: Guarded) -> None:
    assert codes(node.ask(creating("t"))) == [C_DENIED]
    node.allow(AclOperation.ALTER, CLUSTER)
    assert codes(node.ask(creating("t"))) == [ErrorCode.NONE]
