"""What Apache Kafka 4.2 and heirlog tell of their configurations, started from the same server.properties.

Every configuration of a broker, a topic and a group that Kafka describes has to be described here, with the same type,
value, source and synonyms, sensitive where Kafka's is, and changeable where Kafka's is. `DIFFERENT` names those that
are not, each with what differs. Then each broker configuration that can be changed is set to the value it has, for one
broker and for all, without effect: both have to agree on whether that may be asked.

A listener that Kafka opens while it runs is shown to be of no use: `advertised.listeners` cannot change, so who
connects there finds no broker. This is why heirlog refuses it.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from apache_kafka import eventually
from permissions import make
from secured_requests import Talk
from suites.nodes import NODE_ID, heirlog_node, kafka_node

from heirlog.blocking import Client
from heirlog.local.layout import HOST
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import CreateTopicsRequest, DescribeConfigsRequest, IncrementalAlterConfigsRequest
from heirlog.testing.apache_kafka import free_ports

TOPIC, BROKER, GROUP = 2, 4, 32
NAME = "described"
RESOURCES = {TOPIC: NAME, BROKER: str(NODE_ID), GROUP: NAME}
SET = 0
DIFFERENT = {
    "listeners": "needs a restart, see above",
    "listener.security.protocol.map": "needs a restart, see above; a list here",
    "broker.id": "has no default here",
    "ssl.keystore.type": "Kafka then looks for the store",
    "ssl.truststore.type": "Kafka then looks for the store",
    "log.dirs": "another directory",
    "advertised.listeners": "another port",
    "controller.quorum.voters": "another port",
}
ONLY_WITH_PREFIX = (
    "sasl.mechanism.inter.broker.protocol",
    "sasl.enabled.mechanisms",
    "ssl.endpoint.identification.algorithm",
    "ssl.cipher.suites",
    "ssl.client.auth",
    "ssl.enabled.protocols",
)
"""Kafka stores a change of these for listeners that are added later; here listeners stay, and the change is refused."""
Told = Mapping[str, Mapping[str, Any]]
"""Name -> what is told of it."""


def check() -> str:
    """For `make interop`. Raises AssertionError with every difference."""
    with kafka_node() as address:
        theirs, their_answers = told_by(address)
        added_listener(address, {name: str(received["value"]) for name, received in theirs.items()})
    with heirlog_node() as address:
        ours, our_answers = told_by(address)
    problems = [
        f"{name}: {what} is {ours[name].get(what)!r} here and {value!r} there" if name in ours else f"{name} is unknown"
        for name, received in theirs.items()
        for what, value in received.items()
        if name.split(" ")[-1] not in DIFFERENT and ours.get(name, {}).get(what) != value
    ]
    problems += [
        f"{asked}: {our_answers.get(asked)} here and {code} there"
        for asked, code in their_answers.items()
        if asked[1] not in (*DIFFERENT, *ONLY_WITH_PREFIX) and our_answers.get(asked) != code
    ]
    if problems:
        raise AssertionError("\n".join(problems))
    return f"{len(theirs)} configurations, {len(their_answers)} changes"


def told_by(address: str) -> tuple[Told, Mapping[tuple[str, str], int]]:
    with Client(address, timeout_s=30) as client:
        topic = CreateTopicsRequest.CreatableTopic(name=NAME, num_partitions=1, replication_factor=1)
        created = client.send_to_any(CreateTopicsRequest(topics=[topic])).topics[0]
        assert created.error_code == 0, created.error_message
        asked = [
            DescribeConfigsRequest.DescribeConfigsResource(resource_type=kind, resource_name=name)
            for kind, name in RESOURCES.items()
        ]
        results = client.send_to_any(DescribeConfigsRequest(resources=asked, include_synonyms=True)).results
        received: dict[str, dict[str, Any]] = {}
        for result in results:
            assert result.error_code == 0, result.error_message
            for entry in result.configs:
                received[f"{result.resource_type} {entry.name}"] = {
                    "type": entry.config_type,
                    "value": entry.value,
                    "read-only": entry.read_only,
                    "sensitive": entry.is_sensitive,
                    "source": entry.config_source,
                    "synonyms": [(one.name, one.value, one.source) for one in entry.synonyms],
                }
        changes = {
            (resource, name): changed(client, resource, name, entry["value"])
            for full_name, entry in received.items()
            for kind, name in [full_name.split(" ")]
            if kind == str(BROKER) and not entry["read-only"] and entry["value"] is not None
            for resource in (str(NODE_ID), "")
        }
    return received, changes


def changed(client: Client, resource: str, name: str, value: str) -> int:
    """The error code of setting what is there already; nothing is changed."""
    one = IncrementalAlterConfigsRequest.AlterableConfig(name=name, config_operation=SET, value=value)
    asked = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=BROKER, resource_name=resource, configs=[one]
    )
    answer = client.send_to_any(IncrementalAlterConfigsRequest(resources=[asked], validate_only=True)).responses[0]
    code: int = answer.error_code
    return code


def added_listener(address: str, values: Mapping[str, str]) -> None:
    """Of Apache Kafka: it serves clients, and tells them of no broker."""
    (port,) = free_ports(1)
    added = {"listeners": f"EXTRA://{HOST}:{port}", "listener.security.protocol.map": "EXTRA:PLAINTEXT"}
    configs = [
        {"name": name, "config_operation": SET, "value": f"{values[f'{BROKER} {name}']},{more}"}
        for name, more in added.items()
    ]
    resource = {"resource_type": BROKER, "resource_name": str(NODE_ID), "configs": configs}
    with Client(address, timeout_s=30) as client:
        (answer,) = client.send_to_any(make(44, resources=[resource])).responses
    assert answer.error_code == 0, answer.error_message
    eventually(lambda: is_open(port), "the listener is not opened")
    asked = Talk(port).ask(make(3, topics=[{"name": NAME, "topic_id": bytes(16)}]), 12)
    (partition,) = asked.topics[0].partitions
    assert not asked.brokers and partition.error_code == ErrorCode.LISTENER_NOT_FOUND, asked


def is_open(port: int) -> bool:
    with suppress(OSError), socket.create_connection((HOST, port), 1):
        return True
    return False
