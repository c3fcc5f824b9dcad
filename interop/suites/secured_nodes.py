"""One broker that is its own controller, with an authorizer, and with listeners with TLS and SASL beside an open one.

PLAINTEXT          where ACLs are tested; who comes here may do everything that no ACL is about
SASL_PLAINTEXT     alice, by PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512; sessions end after three seconds
SSL                a certificate for localhost
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from apache_kafka import started

from heirlog.blocking import Client
from heirlog.client.scram import set_password
from heirlog.local.certificates import Authority
from heirlog.local.layout import HOST
from heirlog.local.secure import new_salt
from heirlog.security.scram import ScramMechanism
from heirlog.testing import Cluster, apache_kafka
from heirlog.testing.apache_kafka import free_ports
from suites.nodes import CONFIG, NODE_ID

USER, PASSWORD = "alice", "alice-secret"
"""Those of kafka-python's fixture."""
SESSION_MS = 3000
LOGIN = "org.apache.kafka.common.security"
MODULES = {
    "plain": f'{LOGIN}.plain.PlainLoginModule required user_{USER}="{PASSWORD}";',
    "scram-sha-256": f"{LOGIN}.scram.ScramLoginModule required;",
    "scram-sha-512": f"{LOGIN}.scram.ScramLoginModule required;",
}


@dataclass(frozen=True)
class SecuredNode:
    directory: Path
    """Has `ca-cert`, the authority of its certificate."""
    ports: dict[str, int]
    """By protocol."""

    def address(self, protocol: str) -> str:
        return f"{HOST}:{self.ports[protocol]}"


@contextmanager
def heirlog_node() -> Iterator[SecuredNode]:
    with prepared() as node, Cluster(data=node.directory, ledger=False):
        add_users(node)
        yield node


@contextmanager
def kafka_node() -> Iterator[SecuredNode]:
    """Raises jars.Missing."""
    with prepared() as node, started(node.directory / f"broker-{NODE_ID}") as process:
        process.wait_until_it_knows({NODE_ID}, node.address("PLAINTEXT"))
        add_users(node)
        yield node


@contextmanager
def prepared() -> Iterator[SecuredNode]:
    """A directory with a node's server.properties, where `Cluster` looks for it."""
    with tempfile.TemporaryDirectory(prefix="secured-suites-") as name:
        directory = Path(name)
        home = directory / f"broker-{NODE_ID}"
        protocols = ("PLAINTEXT", "SASL_PLAINTEXT", "SSL")
        *open_ports, controller_port = free_ports(len(protocols) + 1)
        node = SecuredNode(directory, dict(zip(protocols, open_ports, strict=True)))
        authority = Authority.new("suites")
        (directory / "ca-cert").write_text(authority.certificate_pem)
        (directory / "node.pem").write_text(authority.issue("node", [HOST, "localhost"]))
        listeners = ",".join(f"{protocol}://{HOST}:{port}" for protocol, port in node.ports.items())
        properties = {
            "process.roles": "broker,controller",
            "node.id": NODE_ID,
            "listeners": f"{listeners},CONTROLLER://{HOST}:{controller_port}",
            "advertised.listeners": listeners,
            "listener.security.protocol.map": ",".join(f"{one}:{one}" for one in protocols) + ",CONTROLLER:PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": f"{NODE_ID}@{HOST}:{controller_port}",
            "inter.broker.listener.name": "PLAINTEXT",
            "log.dirs": home / "log",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": directory / "node.pem",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
            **{f"listener.name.sasl_plaintext.{name}.sasl.jaas.config": module for name, module in MODULES.items()},
            "connections.max.reauth.ms": SESSION_MS,
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "allow.everyone.if.no.acl.found": "true",
            **CONFIG,
        }
        apache_kafka.write_properties(home, properties)
        yield node


def add_users(node: SecuredNode) -> None:
    with Client(node.address("PLAINTEXT")) as client:
        for mechanism in (ScramMechanism.SHA_256, ScramMechanism.SHA_512):
            client.run(set_password(USER, mechanism, PASSWORD, new_salt(), 4096))
