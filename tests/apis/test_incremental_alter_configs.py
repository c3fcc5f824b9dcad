"""IncrementalAlterConfigs through a node: operations, loggers of each node, and clients without permission."""

from __future__ import annotations

from typing import Any

import pytest
from apis.guarded import ADMIN, C_DENIED, CLUSTER, CONTROLLER, G_DENIED, T_DENIED, TOPIC, Guarded
from controller.fakes import Harness

from heirlog.controller.alter_configs import AlterConfigOpType
from heirlog.metadata.acls import AclOperation
from heirlog.metadata.image import BROKER_RESOURCE, GROUP_RESOURCE, TOPIC_RESOURCE
from heirlog.metadata.state import BROKER_LOGGER_RESOURCE as BROKER_LOGGER
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import IncrementalAlterConfigsRequest

SET, DELETE, APPEND, SUBTRACT = AlterConfigOpType
LOGGER = "heirlog.broker"


def resource(
    kind: int, name: str, *changes: tuple[str, int, str | None]
) -> IncrementalAlterConfigsRequest.AlterConfigsResource:
    Change = IncrementalAlterConfigsRequest.AlterableConfig
    return IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[Change(name=key, config_operation=operation, value=value) for key, operation, value in changes],
    )


def altering(
    *resources: IncrementalAlterConfigsRequest.AlterConfigsResource, **more: Any
) -> IncrementalAlterConfigsRequest:
    return IncrementalAlterConfigsRequest(resources=list(resources), **more)


EXAMPLE = altering(resource(BROKER_LOGGER, "1"), validate_only=True), None


def codes(answer: Any) -> list[tuple[str, int]]:
    return [(result.resource_name, result.error_code) for result in answer.responses]


@pytest.mark.parametrize("version", range(2))
def test_what_the_request_does_not_name_stays(node: Guarded, version: int) -> None:
    def alter(*changes: tuple[str, int, str | None]) -> dict[str, str]:
        answer = node.ask(altering(resource(TOPIC_RESOURCE, "t", *changes)), version, ADMIN)
        assert codes(answer) == [("t", ErrorCode.NONE)]
        return dict(node.node.image.configs.get((TOPIC_RESOURCE, "t"), {}))

    assert alter(("segment.ms", SET, "2000"), ("cleanup.policy", APPEND, "compact")) == {
        "segment.ms": "2000",
        "cleanup.policy": "delete,compact",
    }
    assert alter(("cleanup.policy", SUBTRACT, "delete")) == {"segment.ms": "2000", "cleanup.policy": "compact"}
    assert alter(("segment.ms", DELETE, None), ("cleanup.policy", DELETE, None)) == {}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (("segment.ms", APPEND, "1"), ErrorCode.INVALID_CONFIG),
        (("segment.ms", 9, "1"), ErrorCode.INVALID_REQUEST),
        (("segment.ms", SET, None), ErrorCode.INVALID_REQUEST),
        (("segment.ms", SET, "soon"), ErrorCode.INVALID_CONFIG),
        (("no.such.name", SET, "1"), ErrorCode.INVALID_CONFIG),
    ],
)
def test_a_bad_change_refuses_its_resource_alone(
    node: Guarded, change: tuple[str, int, str | None], code: ErrorCode
) -> None:
    good = resource(TOPIC_RESOURCE, "hidden", ("segment.ms", SET, "1000"))
    answer = node.ask(altering(resource(TOPIC_RESOURCE, "t", change), good, validate_only=True), principal=ADMIN)
    assert codes(answer) == [("t", code), ("hidden", ErrorCode.NONE)]
    assert answer.responses[0].error_message


@pytest.mark.parametrize("listener", ["PLAINTEXT", CONTROLLER])
def test_a_node_changes_its_own_loggers(node: Guarded, listener: str) -> None:
    answer = node.ask(
        altering(
            resource(BROKER_LOGGER, "1", (LOGGER, SET, "DEBUG")),
            resource(BROKER_LOGGER, "2", (LOGGER, SET, "DEBUG")),
            resource(TOPIC_RESOURCE, "t", ("segment.ms", SET, "1000")),
        ),
        principal=ADMIN,
        listener=listener,
    )
    assert codes(answer) == [("1", ErrorCode.NONE), ("2", ErrorCode.INVALID_REQUEST), ("t", ErrorCode.NONE)]
    assert node.node.log_levels.level_of(LOGGER) == "DEBUG"
    node.ask(altering(resource(BROKER_LOGGER, "1", (LOGGER, DELETE, None))), principal=ADMIN, listener=listener)
    assert node.node.log_levels.level_of(LOGGER) == "INFO"


def test_a_controller_that_is_not_active_still_changes_its_loggers() -> None:
    loggers = resource(BROKER_LOGGER, "3000", (LOGGER, SET, "DEBUG"))
    answer = Harness().ask("incremental_alter_configs", altering(resource(TOPIC_RESOURCE, "a"), loggers), 1)
    assert codes(answer) == [("a", ErrorCode.NOT_CONTROLLER), ("3000", ErrorCode.NONE)]


def test_each_kind_of_resource_has_its_own_permission(node: Guarded) -> None:
    asked = altering(
        resource(TOPIC_RESOURCE, "t"),
        resource(GROUP_RESOURCE, "g"),
        resource(BROKER_RESOURCE, ""),
        resource(BROKER_LOGGER, "1"),
        validate_only=True,
    )
    denied = {"t": T_DENIED, "g": G_DENIED, "": C_DENIED, "1": C_DENIED}
    assert dict(codes(node.ask(asked))) == denied
    node.allow(AclOperation.ALTER_CONFIGS, TOPIC, "t")
    assert dict(codes(node.ask(asked))) == denied | {"t": 0}
    node.allow(AclOperation.ALTER_CONFIGS, CLUSTER)
    assert dict(codes(node.ask(asked))) == {"t": 0, "g": G_DENIED, "": 0, "1": 0}


def test_the_loggers_of_a_controller_need_the_permission_of_its_peers(node: Guarded) -> None:
    asked = altering(resource(BROKER_LOGGER, "1"), validate_only=True)
    node.allow(AclOperation.ALTER_CONFIGS, CLUSTER)
    assert codes(node.ask(asked, listener=CONTROLLER)) == [("1", C_DENIED)]
    node.allow(AclOperation.CLUSTER_ACTION, CLUSTER)
    assert codes(node.ask(asked, listener=CONTROLLER)) == [("1", ErrorCode.NONE)]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (("no.such.logger", SET, "DEBUG"), ErrorCode.INVALID_CONFIG),
        ((LOGGER, SET, "LOUD"), ErrorCode.INVALID_CONFIG),
        (("root", DELETE, None), ErrorCode.INVALID_REQUEST),
        ((LOGGER, APPEND, "DEBUG"), ErrorCode.INVALID_REQUEST),
        ((LOGGER, 9, "DEBUG"), ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_bad_change_of_a_logger_changes_none_of_them(
    node: Guarded, change: tuple[str, int, str | None], code: ErrorCode
) -> None:
    good = ("heirlog.node", SET, "DEBUG")
    answer = node.ask(altering(resource(BROKER_LOGGER, "1", good, change)), principal=ADMIN)
    assert codes(answer) == [("1", code)]
    assert answer.responses[0].error_message
    assert node.node.log_levels.level_of("heirlog.node") == "INFO"


@pytest.mark.parametrize(("name", "said"), [("2", "expected 1, but received 2"), ("x", "must be an integer")])
def test_a_broker_refuses_the_configuration_of_another(node: Guarded, name: str, said: str) -> None:
    answer = node.ask(altering(resource(BROKER_RESOURCE, name, ("log.level", SET, "DEBUG"))), principal=ADMIN)
    assert codes(answer) == [(name, ErrorCode.INVALID_REQUEST)]
    assert said in answer.responses[0].error_message


def test_a_broker_looks_into_no_store_for_a_client_without_permission(
    node: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[Any] = []
    monkeypatch.setattr(node.node, "reason_against_stores", looked.append)
    location = "listener.name.plaintext.ssl.keystore.location"
    asked = altering(resource(BROKER_RESOURCE, "1", (location, SET, "/dev/zero")), validate_only=True)
    assert codes(node.ask(asked)) == [("1", C_DENIED)] and not looked
    node.ask(asked, principal=ADMIN)
    assert looked


def test_a_denial_is_logged_once(node: Guarded) -> None:
    node.world.run_for(20_000)
    node.log.clear()
    node.ask(altering(resource(TOPIC_RESOURCE, "t"), resource(TOPIC_RESOURCE, "hidden")))
    node.world.run_for(20_000)
    node.ask(altering(resource(TOPIC_RESOURCE, "t")))
    *_, last = [dict(line.values) for line in node.log if line.event == "authorization-denied"]
    assert last["suppressed"] == 1, "that of the second topic"


def test_a_broker_refuses_itself_what_no_broker_has(node: Guarded) -> None:
    answer = node.ask(altering(resource(BROKER_RESOURCE, "1", ("no.such.name", SET, "1"))), principal=ADMIN)
    assert codes(answer) == [("1", ErrorCode.INVALID_REQUEST)]
    assert "no.such.name" in answer.responses[0].error_message
