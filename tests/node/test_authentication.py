"""What a node answers to a client that guesses names of users."""

from __future__ import annotations

import pytest

from heirlog.metadata.config_def import StaticConfig, parse_static
from heirlog.metadata.image import Image
from heirlog.node.authentication import Authenticators
from heirlog.security.exchange import Challenge

CLUSTER = "AAAAAAAAAAAAAAAAAAAAAA"
LOGIN = 'org.apache.kafka.common.security.{0} required username="node" password="{1}";'


def node(node_id: int, between_nodes: str, **more: str) -> StaticConfig:
    properties = {
        "process.roles": "broker",
        "node.id": str(node_id),
        "listeners": "CLIENTS://127.0.0.1:9092,BROKERS://127.0.0.1:9094",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": "127.0.0.1:9093",
        "inter.broker.listener.name": "BROKERS",
        "listener.security.protocol.map": f"CLIENTS:SASL_SSL,BROKERS:{between_nodes},CONTROLLER:SSL",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256",
        "log.dirs": "/data",
    }
    return parse_static(properties | {name.replace("__", "."): value for name, value in more.items()})


def salt_of(config: StaticConfig, user: str, cluster: str = CLUSTER) -> bytes:
    security = config.security("CLIENTS")
    authenticators = Authenticators(config, Image, lambda: cluster, lambda: 0, {})
    exchange = authenticators.exchange(security, "SCRAM-SHA-256", bytes(32))
    challenge = exchange.respond(f"n,,n={user},r=nonce".encode())
    assert isinstance(challenge, Challenge)
    return challenge.token.split(b",")[1]


def brokers_log_in(password: str) -> dict[str, str]:
    name = "listener.name.brokers.scram-sha-256.sasl.jaas.config"
    return {name: LOGIN.format("scram.ScramLoginModule", password)}


def test_every_node_invents_the_same_salt_for_a_user_that_does_not_exist() -> None:
    nodes = [node(number, "SASL_SSL", **brokers_log_in("x")) for number in (1, 2)]
    first, second = (salt_of(config, "nobody") for config in nodes)
    assert first == second != salt_of(nodes[0], "another")


@pytest.mark.parametrize("cluster", [CLUSTER, "BBBBBBBBBBBBBBBBBBBBBB"])
def test_who_knows_the_cluster_id_cannot_compute_it_where_controllers_have_certificates_only(cluster: str) -> None:
    """Every user may ask for the cluster id, and then find out that a salt is invented, and the user with it."""
    with_password = node(1, "SASL_SSL", **brokers_log_in("x"))
    assert salt_of(with_password, "nobody", cluster) != salt_of(node(1, "SSL"), "nobody", cluster)
    assert salt_of(with_password, "nobody") != salt_of(node(1, "SASL_SSL", **brokers_log_in("y")), "nobody")
