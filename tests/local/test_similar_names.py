"""A name that does not exist is answered with the one that was meant, and nothing else is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from heirlog.local.errors import LocalError
from heirlog.local.properties import read_static
from heirlog.local.similar_names import CLIENT_PROPERTIES, check_client_properties, server_config_like
from heirlog.metadata.security_configs import SECURITY
from heirlog.metadata.server_configs import SERVER_CONFIGS


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("log.retention.hour", "log.retention.hours"),
        ("NUM.PARTITIONS", "num.partitions"),
        ("min.insync.replica", "min.insync.replicas"),
        ("listener.name.x.ssl.keystore.locaton", "listener.name.x.ssl.keystore.location"),
        ("listener.name.x.max.connection", "listener.name.x.max.connections"),
        ("listener.name.x.scram-sha-512.sasl.jaas.confg", "listener.name.x.scram-sha-512.sasl.jaas.config"),
        ("zookeeper.connect", None),
        ("x", None),
    ],
)
def test_a_misspelt_configuration_of_a_server_has_one_that_is_like_it(name: str, meant: str | None) -> None:
    assert server_config_like(name) == meant


def test_a_file_with_a_misspelt_name_is_refused_with_the_name_that_was_meant(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    controller = "process.roles=controller\nnode.id=1\ncontroller.listener.names=C\nlisteners=C://:9093\n"
    controller += "controller.quorum.bootstrap.servers=localhost:9093\n"
    for line, ending in (
        ("log.retention.hour=1", "remove it; did you mean log.retention.hours?"),
        ("listener.name.c.max.conections=1", "remove it; did you mean listener.name.c.max.connections?"),
        ("completely.unlike.anything=1", "check the spelling or remove it"),
        ("log.retention.hours=x", "x"),
    ):
        path.write_text(f"{controller}{line}\n")
        with pytest.raises(LocalError) as refused:
            read_static(path)
        assert str(path) in str(refused.value)
        assert ("did you mean" in str(refused.value)) == ("did you mean" in ending)
        assert ending in str(refused.value)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("security.protcol", "security.protocol"),
        ("ssl.truststore.locaton", "ssl.truststore.location"),
        ("bootstrap.server", "bootstrap.servers"),
    ],
)
def test_a_misspelt_property_of_a_client_is_refused_unless_the_file_has_the_right_one_too(
    name: str, meant: str
) -> None:
    with pytest.raises(LocalError, match=f"c.properties: {name} .*; did you mean {meant}"):
        check_client_properties("c.properties", {name: "secret"})
    check_client_properties("c.properties", {name: "secret", meant: "x"})


LIBRDKAFKAS = {
    "sasl.mechanisms": "sasl.mechanism",
    "sasl.username": "sasl.jaas.config",
    "sasl.password": "sasl.jaas.config",
    "ssl.ca.location": "ssl.truststore.location",
    "ssl.certificate.location": "ssl.keystore.location",
    "ssl.key.location": "ssl.keystore.location",
}


@pytest.mark.parametrize("name", LIBRDKAFKAS)
@pytest.mark.parametrize("protocol", ["", "PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"])
def test_a_name_of_librdkafka_is_refused_only_where_the_protocol_needs_it(name: str, protocol: str) -> None:
    given = {name: "secret", **({"security.protocol": protocol} if protocol else {})}
    kind = name.partition(".")[0].upper()
    is_needed = kind in {"SSL": ["SSL"], "SASL_PLAINTEXT": ["SASL"], "SASL_SSL": ["SASL", "SSL"]}.get(protocol, [])
    if is_needed:
        with pytest.raises(LocalError, match=f"c.properties: {name} is librdkafka's name; write .*{LIBRDKAFKAS[name]}"):
            check_client_properties("c.properties", given)
    else:
        check_client_properties("c.properties", given)
    check_client_properties("c.properties", {**given, LIBRDKAFKAS[name]: "x"})


@pytest.mark.parametrize(("mechanism", "module"), [("PLAIN", "plain.Plain"), ("SCRAM-SHA-512", "scram.Scram")])
def test_the_line_with_the_login_is_whole_and_without_the_password(mechanism: str, module: str) -> None:
    given = {"security.protocol": "SASL_SSL", "sasl.mechanism": mechanism, "sasl.username": "alice"}
    line = f'sasl.jaas.config=org.apache.kafka.common.security.{module}LoginModule required username="alice" '
    with pytest.raises(LocalError, match=re.escape(f'{line}password="PASSWORD";')) as refused:
        check_client_properties("c.properties", {**given, "sasl.password": "secret"})
    assert "secret" not in str(refused.value)


def test_properties_of_kafka_and_of_other_clients_are_not_taken_for_misspelt_ones() -> None:
    of_others = [
        *LIBRDKAFKAS,
        "enable.idempotence",
        "request.timeout.ms",
        "client.rack",
        "client.dns.lookup",
        "sasl.login.refresh.window.factor",
        "ssl.trustmanager.algorithm",
        "sasl.oauthbearer.jwks.endpoint.url",
        "sasl.oauthbearer.jwt.retriever.class",
        "sasl.kerberos.service.name",
        "sasl.client.callback.handler.class",
        "ssl.engine.factory.class",
        "security.providers",
        "group.id",
        "metadata.max.age.ms",
    ]
    check_client_properties("c", dict.fromkeys([*of_others, *CLIENT_PROPERTIES], "x"))
    check_client_properties("c", dict.fromkeys(of_others, "x"))
    # a node's file may be given as a client's
    check_client_properties("c", dict.fromkeys([*SERVER_CONFIGS, *(key.name for key in SECURITY)], "x"))
    for name in (*SERVER_CONFIGS, *(key.name for key in SECURITY)):
        check_client_properties("c", {name: "x"})


def test_a_file_that_holds_no_property_is_not_the_one_that_was_meant() -> None:
    with pytest.raises(LocalError, match="readme holds no property of a client"):
        check_client_properties("readme", {"heirlog": "", "A": "Kafka-wire-compatible", "log.": "of records"})
    check_client_properties("empty", {})
    check_client_properties("c", {"acks": "all"})
