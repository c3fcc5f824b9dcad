"""Apache Kafka's tools, its Java client and librdkafka at the closed doors of heirlog.

SASL_SSL   users made by kafka-configs log in here, users made by `heirlog users` are shown by it and log in from
           Java; the broker's certificate is replaced again and again, by SIGHUP and by kafka-configs, while both
           clients write on connections that they close between two records
SSL        who a client is, its certificate says: with ACLs of kafka-acls it may write, without them not
"""

from __future__ import annotations

import os
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jars
from apache_kafka import eventually
from clients import java_command, output_of
from confluent_kafka import Producer

from heirlog.blocking import Client, security_from_properties
from heirlog.client.errors import AuthenticationFailed
from heirlog.client.offsets import LATEST
from heirlog.local import properties
from heirlog.local.certificates import Authority
from heirlog.local.secure import scram_login, write_private
from heirlog.testing import Cluster
from tools import Tools
from tools import started as started_tools

TOPIC = "closed"
ROTATIONS = 3
PAUSE_S = 0.3
"""Between two records: longer than a connection of the clients may be idle."""
IDLE_MS = "100"
MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")


def check() -> str:
    """Raises jars.Missing."""
    jars.fetch()
    with closed("SASL_SSL") as running, started_tools(running.bootstrap_servers) as tools:
        users(tools, running)
        written = rotate(tools, running)
    with closed("SSL") as running, started_tools(running.bootstrap_servers) as tools:
        certificates(tools, running)
    return f"users both ways, {written} records while {ROTATIONS} certificates were replaced, ACLs of certificates"


@contextmanager
def closed(protocol: str) -> Iterator[Cluster]:
    with Cluster(nodes=1, combined=True, security=protocol, ledger=False) as running:
        running.create_topic(TOPIC, 1, 1)
        yield running


def as_admin(running: Cluster) -> tuple[str, str]:
    return "--command-config", str(running.data / "client.properties")


def client_file(running: Cluster, name: str, given: dict[str, str], **more: str) -> str:
    path = running.data / f"{name}.properties"
    write_private(path, properties.render(given | {key.replace("_", "."): text for key, text in more.items()}, name))
    return str(path)


def may_write(tools: Tools, running: Cluster, user: str) -> None:
    allowed = ("--allow-principal", f"User:{user}", "--producer", "--topic", TOPIC)
    tools("kafka-acls", "--add", *allowed, *as_admin(running))


def java_writes(running: Cluster, file: str, *lines: str) -> None:
    """Raises RuntimeError."""
    output_of(java_command("Lines", "produce", running.bootstrap_servers, TOPIC, "", file), "\n".join(lines) + "\n")


def end_of(running: Cluster) -> int:
    given = security_from_properties(properties.read(running.data / "client.properties"))
    with Client(running.bootstrap_servers, security=given) as client:
        (found,) = client.list_offsets({(TOPIC, 0): LATEST}).values()
    return int(found.offset)


# -- SCRAM


def users(tools: Tools, running: Cluster) -> None:
    given = running.client_config()

    def logs_in(user: str, password: str, mechanism: str) -> bool:
        security = security_from_properties(given | scram_login(user, password, mechanism))
        try:
            with Client(running.bootstrap_servers, security=security) as client:
                client.metadata([])
        except AuthenticationFailed:
            return False
        return True

    carol = ("--entity-type", "users", "--entity-name", "carol", *as_admin(running))
    for mechanism in MECHANISMS:
        credential = f"{mechanism}=[iterations=8192,password=s-{mechanism}]"
        tools("kafka-configs", "--alter", "--add-config", credential, *carol)
        eventually(lambda m=mechanism: logs_in("carol", f"s-{m}", m), f"carol of kafka-configs logs in by {mechanism}")
        assert not logs_in("carol", "wrong", mechanism)
    tools("kafka-configs", "--alter", "--delete-config", "SCRAM-SHA-256", *carol)
    eventually(lambda: not logs_in("carol", "s-SCRAM-SHA-256", "SCRAM-SHA-256"), "a deleted password is refused")
    assert logs_in("carol", "s-SCRAM-SHA-512", "SCRAM-SHA-512")

    output_of(
        [sys.executable, "-m", "heirlog", "users", "set", "dave", "-b", running.bootstrap_servers, *as_admin(running)],
        "dave's secret\n",
    )
    dave = ("--entity-type", "users", "--entity-name", "dave", *as_admin(running))
    shown = eventually(
        lambda: "SCRAM-SHA-512=iterations=4096" in (said := tools("kafka-configs", "--describe", *dave)) and said,
        "dave of heirlog users",
    )
    assert "dave" in shown
    may_write(tools, running, "dave")
    file = client_file(running, "dave", given | scram_login("dave", "dave's secret"))
    java_writes(running, file, "a", "b")
    assert end_of(running) == 2


# -- a certificate


def rotate(tools: Tools, running: Cluster) -> int:
    """How many records were written meanwhile, all of them confirmed."""
    before = end_of(running)
    folder = running.data / "security"
    authority = Authority.of((folder / "ca.key").read_text(), (folder / "ca.pem").read_text())
    given = running.client_config("dave-of-librdkafka")
    may_write(tools, running, "dave-of-librdkafka")
    results: list[Any] = []
    rdkafka = Producer(librdkafka(given) | {"connections.max.idle.ms": int(IDLE_MS)})
    file = client_file(
        running, "idle", properties.read(running.data / "dave.properties"), connections_max_idle_ms=IDLE_MS
    )
    java = subprocess.Popen(
        java_command("Lines", "produce", running.bootstrap_servers, TOPIC, "", file),
        stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert java.stdin is not None
    sent = 0
    seen: set[str] = set()
    try:
        for number in range(ROTATIONS + 1):
            seen.add(served_certificate(running))
            for _ in range(4):
                java.stdin.write(f"{sent}\n")
                java.stdin.flush()
                rdkafka.produce(TOPIC, str(sent).encode(), on_delivery=lambda error, _: results.append(error))
                sent += 1
                rdkafka.poll(PAUSE_S)
                time.sleep(PAUSE_S)
            if number < ROTATIONS:
                renewed = authority.issue("node", ["127.0.0.1", "localhost"])
                if number % 2:
                    by_configuration(tools, running, folder, number, renewed)
                else:
                    write_private(store_of(folder, number - 1), renewed)
                    os.kill(running.pids[1], signal.SIGHUP)
                eventually(lambda: served_certificate(running) not in seen, "the new certificate")
        assert rdkafka.flush(60) == 0
        _, problems = java.communicate(timeout=120)
    finally:
        java.kill()
    assert java.returncode == 0, problems[-2000:]
    assert results == [None] * sent, results
    assert end_of(running) == before + 2 * sent
    assert len(seen) == ROTATIONS + 1
    return 2 * sent


def store_of(folder: Path, number: int) -> Path:
    """The key store since this rotation."""
    return folder / ("node.pem" if number < 0 else f"renewed-{number}.pem")


def by_configuration(tools: Tools, running: Cluster, folder: Path, number: int, renewed: str) -> None:
    """As kafka-configs does it (KIP-226); a store that is not there is refused."""
    write_private(store_of(folder, number), renewed)
    node = ("--entity-type", "brokers", "--entity-name", "1", "--alter", *as_admin(running))
    where = "listener.name.sasl_ssl.ssl.keystore.location={}"
    refused = tools.ask("kafka-configs", "--add-config", where.format(folder / "none.pem"), *node)
    assert refused.code != 0 and "cannot be read" in refused.err, refused
    tools("kafka-configs", "--add-config", where.format(store_of(folder, number)), *node)


def served_certificate(running: Cluster) -> str:
    host, _, port = running.bootstrap_servers.partition(":")
    return ssl.get_server_certificate((host, int(port)))


def librdkafka(given: dict[str, str]) -> dict[str, Any]:
    """The same connection in the names of librdkafka."""
    found: dict[str, Any] = {
        "bootstrap.servers": given["bootstrap.servers"],
        "security.protocol": given["security.protocol"],
        "ssl.ca.location": given["ssl.truststore.location"],
        "log_level": 0,
    }
    if "sasl.jaas.config" in given:
        from heirlog.security.jaas import parse_jaas

        login = parse_jaas(given["sasl.jaas.config"]).options
        found |= {"sasl.mechanisms": given["sasl.mechanism"], "sasl.username": login["username"]}
        found["sasl.password"] = login["password"]
    else:
        found |= {"ssl.certificate.location": given["ssl.keystore.location"]}
        found["ssl.key.location"] = given["ssl.keystore.location"]
    return found


# -- client certificates


def certificates(tools: Tools, running: Cluster) -> None:
    alice, mallory = (running.client_config(user) for user in ("alice", "mallory"))
    may_write(tools, running, "alice")
    java_writes(running, client_file(running, "alice", alice), "a")
    try:
        java_writes(running, client_file(running, "mallory", mallory), "b")
        raise AssertionError("mallory may write")
    except RuntimeError as error:
        assert "TopicAuthorizationException" in str(error), error
    results: list[Any] = []
    producer = Producer(librdkafka(alice))
    producer.produce(TOPIC, b"c", on_delivery=lambda error, _: results.append(error))
    assert producer.flush(60) == 0 and results == [None]
    assert end_of(running) == 2
    nobody = {key: text for key, text in alice.items() if "keystore" not in key}
    refused = tools.ask("kafka-topics", "--list", "--command-config", client_file(running, "nobody", nobody))
    assert refused.code != 0, refused
