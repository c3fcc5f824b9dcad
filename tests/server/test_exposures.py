"""What a node says of its own files and settings, for an operator who may not have meant them so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from heirlog.metadata.config_def import parse_static
from heirlog.server import exposures

LOGIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret of alice";'
FILE = {
    "process.roles": "broker",
    "node.id": "1",
    "controller.quorum.bootstrap.servers": "127.0.0.1:9093",
    "controller.listener.names": "CONTROLLER",
    "listeners": "CLIENTS://127.0.0.1:9092,OPEN://127.0.0.1:9094",
    "inter.broker.listener.name": "OPEN",
    "listener.security.protocol.map": "CLIENTS:PLAINTEXT,OPEN:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS;User:admin",
}
CLOSED = {
    "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT,OPEN:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.clients.plain.sasl.jaas.config": LOGIN,
}
CERTIFIED = {"listener.security.protocol.map": "CLIENTS:SSL,OPEN:SSL,CONTROLLER:PLAINTEXT", "ssl.client.auth": "none"}


def said(file: dict[str, str], config_file: Path | None = None) -> list[tuple[str, str, dict[str, Any]]]:
    lines: list[tuple[str, str, dict[str, Any]]] = []
    exposures.look(
        parse_static(file), str(config_file or ""), lambda level, event, **values: lines.append((level, event, values))
    )
    return lines


@pytest.mark.parametrize(
    ("changes", "listeners"),
    [
        ({}, None),
        (CLOSED, ["OPEN"]),
        (CLOSED | {"super.users": "User:admin"}, None),
        (CLOSED | {"authorizer.class.name": ""}, None),
        (CERTIFIED, ["CLIENTS", "OPEN"]),
        (CERTIFIED | {"listener.name.open.ssl.client.auth": "requested"}, ["CLIENTS", "OPEN"]),
        (CERTIFIED | {"ssl.client.auth": "required"}, None),
        (CERTIFIED | {"listener.name.clients.ssl.client.auth": "required"}, ["OPEN"]),
    ],
    ids=["all open", "one open", "not super", "everybody may", "without certificates", "requested", "required", "one"],
)
def test_a_door_beside_closed_ones_through_which_anybody_may_do_everything(
    changes: dict[str, str], listeners: list[str] | None
) -> None:
    found = [values["listeners"] for _, event, values in said(FILE | changes) if event == "anonymous-super-user"]
    assert found == ([] if listeners is None else [listeners])


def test_files_with_secrets_that_everybody_can_read(tmp_path: Path) -> None:
    key, properties = tmp_path / "node.pem", tmp_path / "server.properties"
    given = FILE | CERTIFIED | {"ssl.client.auth": "required", "ssl.keystore.location": str(key)}
    for path in (key, properties):
        path.write_text("")
        path.chmod(0o644)
    open_, secret = given, given | {"ssl.keystore.password": "store secret"}
    assert [values["file"] for _, _, values in said(open_, properties)] == [str(key)], "no secret in the properties"
    lines = said(secret, properties)
    assert [(level, event) for level, event, _ in lines] == [("warning", "secret-readable-by-all")] * 2
    assert [(values["file"], values["mode"]) for _, _, values in lines] == [
        (str(key), "0644"),
        (str(properties), "0644"),
    ]
    assert "store secret" not in str(lines)
    for path in (key, properties):
        path.chmod(0o640)
    assert said(secret, properties) == []
    key.unlink()
    assert said(secret, properties) == []


@pytest.mark.parametrize(
    ("changes", "address", "is_said"),
    [
        (CLOSED, "0.0.0.0:9404", True),
        (CLOSED, "10.0.0.1:0", True),
        (CERTIFIED, "[::]:9404", True),
        (CLOSED, "127.0.0.1:9404", False),
        (CLOSED, "localhost:9404", False),
        (CLOSED, "[::1]:9404", False),
        (CLOSED, "", False),
        ({}, "0.0.0.0:9404", False),
    ],
)
def test_metrics_that_other_machines_can_read_beside_closed_listeners(
    changes: dict[str, str], address: str, is_said: bool
) -> None:
    given = FILE | changes | {"super.users": "User:admin", "heirlog.metrics.listener": address}
    found = [event for _, event, _ in said({name: text for name, text in given.items() if text})]
    assert found == (["metrics-open-to-all"] if is_said else [])
