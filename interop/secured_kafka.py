"""Apache Kafka 4.2 with a listener for each way to come in, and certificates made for the occasion.

    PLAIN SASLP TLS MTLS SASLS     PLAINTEXT, SASL_PLAINTEXT, SSL, SSL with a client certificate, SASL_SSL
    SHORT                          SASL_PLAINTEXT whose sessions last two seconds (connections.max.reauth.ms)

Every SASL listener takes PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 and OAUTHBEARER (unsigned tokens). The server's
certificate names `localhost` and no address, so that 127.0.0.1 is a wrong name for it.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import jars
from apache_kafka import started

from heirlog.testing.apache_kafka import free_ports

USER = "alice"
PASSWORD = "s=cret-pässword"
"""Not ASCII, and with what SCRAM would have to escape in a name."""
STORE_PASSWORD = "store-password"
LISTENERS = {
    "PLAIN": "PLAINTEXT",
    "SASLP": "SASL_PLAINTEXT",
    "TLS": "SSL",
    "MTLS": "SSL",
    "SASLS": "SASL_SSL",
    "SHORT": "SASL_PLAINTEXT",
    "CONTROLLER": "PLAINTEXT",
}
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
LOGIN = "org.apache.kafka.common.security"


@dataclass
class SecuredKafka:
    ports: dict[str, int]
    directory: Path

    def address(self, listener: str, host: str = "localhost") -> str:
        return f"{host}:{self.ports[listener]}"

    def file(self, name: str) -> str:
        return str(self.directory / name)


def jaas_quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def jaas(mechanism: str, user: str = USER, password: str = PASSWORD) -> str:
    """The client's sasl.jaas.config."""
    if mechanism == "OAUTHBEARER":
        return f"{LOGIN}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub={jaas_quoted(user)};"
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    return f"{LOGIN}.{module} required username={jaas_quoted(user)} password={jaas_quoted(password)};"


@contextmanager
def secured_kafka() -> Iterator[SecuredKafka]:
    """Raises jars.Missing."""
    jars.need("openssl", install="openssl")
    with tempfile.TemporaryDirectory(prefix="kafka-secured-") as name:
        kafka = SecuredKafka(dict(zip(LISTENERS, free_ports(len(LISTENERS)), strict=True)), Path(name))
        make_certificates(kafka.directory)
        (kafka.directory / "server.properties").write_text(server_properties(kafka))
        users = [
            option
            for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
            for option in ("--add-scram", f"{mechanism}=[name={USER},password={PASSWORD}]")
        ]
        with started(kafka.directory, *users) as node:
            node.wait_until_it_knows({1}, kafka.address("PLAIN", "127.0.0.1"))
            yield kafka


def server_properties(kafka: SecuredKafka) -> str:
    properties = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in kafka.ports.items()),
        "advertised.listeners": ",".join(
            f"{name}://localhost:{port}" for name, port in kafka.ports.items() if name != "CONTROLLER"
        ),
        "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in LISTENERS.items()),
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": f"1@127.0.0.1:{kafka.ports['CONTROLLER']}",
        "inter.broker.listener.name": "PLAIN",
        "log.dirs": kafka.file("log"),
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": kafka.file("server.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": kafka.file("ca.pem"),
        "listener.name.mtls.ssl.client.auth": "required",
        "listener.name.short.connections.max.reauth.ms": "2000",
        "num.partitions": "2",
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "2",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "2",
        "group.initial.rebalance.delay.ms": "0",
    }
    users = f"user_{USER}={jaas_quoted(PASSWORD)}"
    modules = {
        "plain": f"plain.PlainLoginModule required {users};",
        "scram-sha-256": "scram.ScramLoginModule required;",
        "scram-sha-512": "scram.ScramLoginModule required;",
        "oauthbearer": 'oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";',
    }
    for listener in ("saslp", "sasls", "short"):
        for mechanism, module in modules.items():
            name = f"listener.name.{listener}.{mechanism}.sasl.jaas.config"
            properties[name] = f"{LOGIN}.{module}"
    return escaped("".join(f"{name}={value}\n" for name, value in properties.items()))


def escaped(text: str) -> str:
    """For a Java properties file, which is ASCII."""
    return "".join(char if char.isascii() else f"\\u{ord(char):04x}" for char in text)


def make_certificates(directory: Path) -> None:
    """ca.pem; server.pem and client.pem (key and chain); stranger.pem, a CA that signed nothing; Java's stores."""

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], check=True, capture_output=True, cwd=directory)

    def authority(name: str) -> None:
        openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}",
                "-keyout", f"{name}.key", "-out", f"{name}.pem")  # fmt: skip

    authority("ca")
    authority("stranger")
    for name, names in (("server", "subjectAltName=DNS:localhost"), ("client", "subjectAltName=DNS:client")):
        (directory / f"{name}.ext").write_text(names)
        openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}",
                "-keyout", f"{name}.key", "-out", f"{name}.csr")  # fmt: skip
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-days", "2",
                "-extfile", f"{name}.ext", "-out", f"{name}.crt")  # fmt: skip
        texts = [(directory / f"{name}{kind}").read_text() for kind in (".key", ".crt")]
        (directory / f"{name}.pem").write_text("".join(texts))
    openssl("pkcs8", "-topk8", "-in", "client.key", "-out", "client-locked.key", "-passout", f"pass:{STORE_PASSWORD}")
    locked = [(directory / name).read_text() for name in ("client-locked.key", "client.crt")]
    (directory / "client-locked.pem").write_text("".join(locked))
    openssl("pkcs12", "-export", "-in", "client.pem", "-name", "client", "-out", "client.p12",
            "-passout", f"pass:{STORE_PASSWORD}")  # fmt: skip


def make_java_stores(kafka: SecuredKafka) -> None:
    """trust.jks and client.jks in Java's old format, trust.p12 in its present one. Raises jars.Missing."""
    jars.need("keytool", install="a JDK (on Debian: apt install openjdk-17-jdk-headless)")
    secret = ["-storepass", STORE_PASSWORD, "-noprompt"]
    for arguments in (
        ["-importcert", "-alias", "ca", "-file", "ca.pem", "-keystore", "trust.jks", "-storetype", "JKS", *secret],
        ["-importcert", "-alias", "ca", "-file", "ca.pem", "-keystore", "trust.p12", "-storetype", "PKCS12", *secret],
        [
            "-importkeystore", "-srckeystore", "client.p12", "-srcstoretype", "PKCS12", "-srcstorepass", STORE_PASSWORD,
            "-destkeystore", "client.jks", "-deststoretype", "JKS", "-deststorepass", STORE_PASSWORD, "-noprompt",
        ],
    ):  # fmt: skip
        subprocess.run(["keytool", *arguments], check=True, capture_output=True, cwd=kafka.directory)
