"""AlterConfigs through a node: a replacement of all values, bad resources, and clients without permission."""

from __future__ import annotations

from typing import Any

import pytest
from apis.guarded import ADMIN, C_DENIED, CLUSTER, G_DENIED, T_DENIED, TOPIC, Guarded
from controller.fakes import Harness

from heirlog.metadata.acls import AclOperation
from heirlog.metadata.image import BROKER_RESOURCE, GROUP_RESOURCE, TOPIC_RESOURCE
from heirlog.metadata.state import BROKER_LOGGER_RESOURCE as BROKER_LOGGER
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import AlterConfigsRequest


def resource(kind: int, name: str, **values: str) -> AlterConfigsRequest.AlterConfigsResource:
    changes = [
        AlterConfigsRequest.AlterableConfig(name=key.replace("_", "."), value=value) for key, value in values.items()
    ]
    return AlterConfigsRequest.AlterConfigsResource(resource_type=kind, resource_name=name, configs=changes)


def altering(*resources: AlterConfigsRequest.AlterConfigsResource, **more: Any) -> AlterConfigsRequest:
    return AlterConfigsRequest(resources=list(resources), **more)


EXAMPLE = altering(resource(BROKER_RESOURCE, ""), validate_only=True), None


def codes(answer: Any) -> list[tuple[str, int]]:
    return [(result.resource_name, result.error_code) for result in answer.responses]


@pytest.mark.parametrize("version", range(3))
def test_what_the_request_does_not_name_is_deleted(node: Guarded, version: int) -> None:
    first = altering(resource(TOPIC_RESOURCE, "t", retention_ms="1000", segment_ms="2000"))
    assert codes(node.ask(first, version, ADMIN)) == [("t", ErrorCode.NONE)]
    assert codes(node.ask(altering(resource(TOPIC_RESOURCE, "t", segment_ms="3000")), version, ADMIN)) == [("t", 0)]
    assert node.node.image.configs[TOPIC_RESOURCE, "t"] == {"segment.ms": "3000"}


def test_a_dry_run_changes_nothing(node: Guarded) -> None:
    asked = altering(resource(TOPIC_RESOURCE, "hidden", retention_ms="1000"), validate_only=True)
    assert codes(node.ask(asked, principal=ADMIN)) == [("hidden", ErrorCode.NONE)]
    assert (TOPIC_RESOURCE, "hidden") not in node.node.image.configs


def test_bad_resources_are_refused_one_by_one_in_the_order_of_the_request(node: Guarded) -> None:
    answer = node.ask(
        altering(
            resource(TOPIC_RESOURCE, "none", retention_ms="1"),
            resource(TOPIC_RESOURCE, "t", retention_ms="soon"),
            resource(BROKER_RESOURCE, "2"),
            resource(BROKER_LOGGER, "1", root="INFO"),
            resource(99, "x"),
            resource(GROUP_RESOURCE, "g", consumer_session_timeout_ms="50000"),
        ),
        principal=ADMIN,
    )
    assert codes(answer) == [
        ("none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", ErrorCode.INVALID_CONFIG),
        ("2", ErrorCode.INVALID_REQUEST),
        ("1", ErrorCode.INVALID_REQUEST),
        ("x", ErrorCode.INVALID_REQUEST),
        ("g", ErrorCode.NONE),
    ]
    assert all(result.error_message for result in answer.responses[:-1])


def test_a_controller_that_is_not_active_refuses_each_resource() -> None:
    refused = Harness().ask("alter_configs", altering(resource(TOPIC_RESOURCE, "a"), resource(TOPIC_RESOURCE, "b")), 2)
    assert codes(refused) == [("a", ErrorCode.NOT_CONTROLLER), ("b", ErrorCode.NOT_CONTROLLER)]


def test_each_kind_of_resource_has_its_own_permission(node: Guarded) -> None:
    brokers = resource(BROKER_RESOURCE, "", min_insync_replicas="1")
    asked = altering(resource(TOPIC_RESOURCE, "t"), resource(GROUP_RESOURCE, "g"), brokers, validate_only=True)
    assert dict(codes(node.ask(asked))) == {"t": T_DENIED, "g": G_DENIED, "": C_DENIED}
    node.allow(AclOperation.ALTER_CONFIGS, TOPIC, "t")
    assert dict(codes(node.ask(asked))) == {"t": 0, "g": G_DENIED, "": C_DENIED}
    node.allow(AclOperation.ALTER_CONFIGS, CLUSTER)
    assert dict(codes(node.ask(asked))) == {"t": 0, "g": G_DENIED, "": 0}


def test_a_broker_looks_into_no_store_for_a_client_without_permission(
    node: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[Any] = []
    monkeypatch.setattr(node.node, "reason_against_stores", looked.append)
    store = resource(BROKER_RESOURCE, "1", listener_name_plaintext_ssl_keystore_location="/dev/zero")
    answer = node.ask(altering(store, validate_only=True))
    assert codes(answer) == [("1", C_DENIED)] and not looked
    node.ask(altering(store, validate_only=True), principal=ADMIN)
    assert looked


def test_a_resource_that_is_named_twice_is_invalid_for_every_client(node: Guarded) -> None:
    Resource = AlterConfigsRequest.AlterConfigsResource
    asked = [Resource(resource_type=2, resource_name=name) for name in ("t", "t", "hidden")]
    answer = node.ask(AlterConfigsRequest(resources=asked))
    assert [(one.resource_name, one.error_code) for one in answer.responses] == [("t", 42), ("t", 42), ("hidden", 29)]
