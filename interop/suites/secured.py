"""What librdkafka and kafka-python test about TLS, SASL and ACLs in their own suites, on a node that has all of them.

librdkafka      ACLs over PLAINTEXT; credentials, sessions that end and some of the other tests over each mechanism.
                Its tests of certificates want those that its own tool makes, and OIDC wants a server and libcurl: left
                out
kafka-python    clients over each mechanism, TLS, ACLs
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import jars

from heirlog.security.jaas import parse_jaas
from heirlog.testing import Cluster
from suites import kafka_python, librdkafka, running
from suites.librdkafka_runner import ADMIN, run_once
from suites.running import Suite
from suites.secured_nodes import PASSWORD, SESSION_MS, USER, SecuredNode, heirlog_node, kafka_node
from suites.verdict import Outcomes, expectation

CLIENT = "secured"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
OVER_SASL = ("0001", "0005", "0012", "0022", "0030", "0135")
"""Metadata and topics, order, produce and consume, batches, offsets; credentials."""
OF_SESSIONS = "0142"
"""It logs in again while it writes, reads and commits, on three brokers; asked of heirlog alone."""
OF_ACLS = ("0115", "0119")
ACL_PARTS = ("do_test_CreateAcls", "do_test_DescribeAcls", "do_test_DeleteAcls", "do_test_UserScramCredentials")
OF_KAFKA_PYTHON = (
    "test/integration/test_sasl_integration.py",
    "test/integration/test_ssl_integration.py",
    "test/integration/test_admin_integration.py::test_create_describe_delete_acls",
)
COMMAND_CONFIG = "security.protocol={transport}\nsasl.mechanism={sasl_mechanism}\nsasl.jaas.config={jaas_config}\n"
"""A template of kafka-python's, which its source distribution lacks."""
TOOLS = {"kafka-topics.sh": "org.apache.kafka.tools.TopicCommand", "kafka-acls.sh": "org.apache.kafka.tools.AclCommand"}


def check() -> str:
    """For `make interop`. Raises AssertionError with every test that is not as it should be."""
    prepare()
    problems, asked = [], 0
    with heirlog_node() as node:
        for suite, run in suites(node).items():
            expected = expectation(CLIENT, suite)
            outcomes = dict(run())
            if expected.missed(outcomes):
                outcomes.update(run())
            problems += [f"{suite}: {problem}" for problem in expected.problems(outcomes)]
            asked += len(expected.asked)
    if problems:
        raise AssertionError("\n".join(problems))
    sessions()
    return f"{asked + 1} tests of librdkafka and kafka-python"


def record(node: Callable[[], AbstractContextManager[SecuredNode]] = kafka_node) -> dict[str, Outcomes]:
    """What each test comes to."""
    prepare()
    with node() as running_node:
        return {suite: run() for suite, run in suites(running_node).items()}


def prepare() -> None:
    """Raises jars.Missing."""
    librdkafka.build()
    if not librdkafka.has_tls():
        raise jars.Missing("OpenSSL's headers (on Debian: apt install libssl-dev), and remove .cache/interop/suites")
    for release in kafka_python.RELEASES:
        kafka_python.fetch(release)


def suites(node: SecuredNode) -> dict[str, Callable[[], Outcomes]]:
    """By their names in the lists of what is expected."""
    found: dict[str, Callable[[], Outcomes]] = {"librdkafka ACLs": lambda: acls(node)}
    for mechanism in MECHANISMS:
        found[f"librdkafka {mechanism}"] = lambda mechanism=mechanism: over_sasl(node, mechanism)  # type: ignore[misc]
    for release in kafka_python.RELEASES:
        found[f"kafka-python {release.version}"] = lambda release=release: of_kafka_python(node, release)  # type: ignore[misc]
    return found


# -- librdkafka


def acls(node: SecuredNode) -> Outcomes:
    found = dict(run_librdkafka(node, "PLAINTEXT", {}, {"TESTS": ",".join(OF_ACLS)}))
    for part in ACL_PARTS:
        ran = run_librdkafka(node, "PLAINTEXT", {}, {"TESTS": ADMIN, "SUBTESTS": part})
        found[f"{ADMIN}/{part}"] = ran.get("0081_admin", "failed")
    return found


def over_sasl(node: SecuredNode, mechanism: str) -> Outcomes:
    login = {"sasl.mechanisms": mechanism, "sasl.username": USER, "sasl.password": PASSWORD}
    return run_librdkafka(node, "SASL_PLAINTEXT", login, {"TESTS": ",".join(OVER_SASL)})


def sessions() -> None:
    """Raises AssertionError."""
    config = {"connections.max.reauth.ms": SESSION_MS}
    with Cluster(nodes=3, security="SASL_PLAINTEXT", config=config, ledger=False) as cluster, tools() as home:
        login = in_librdkafkas_names(cluster.client_config())
        chosen = {"TESTS": OF_SESSIONS}
        found = run_once(librdkafka.HOME, cluster.bootstrap_servers, chosen, "-p1", loud=True, login=login, kafka=home)
    assert list(found.values()) == ["passed"], found


def in_librdkafkas_names(given: Mapping[str, str]) -> dict[str, str]:
    login = parse_jaas(given["sasl.jaas.config"]).options
    return {
        "security.protocol": given["security.protocol"],
        "sasl.mechanisms": given["sasl.mechanism"],
        "sasl.username": login["username"],
        "sasl.password": login["password"],
    }


def run_librdkafka(node: SecuredNode, protocol: str, login: Mapping[str, str], chosen: Mapping[str, str]) -> Outcomes:
    given = {"security.protocol": protocol, **login} if login else {}
    with tools() as home:
        return run_once(librdkafka.HOME, node.address(protocol), dict(chosen), "-p4", login=given, kafka=home)


# -- kafka-python


def of_kafka_python(node: SecuredNode, release: kafka_python.Release) -> Outcomes:
    with tools() as home:
        resources = home / "servers" / "resources" / "default"
        resources.mkdir(parents=True)
        (resources / "sasl_command.conf").write_text(COMMAND_CONFIG)
        environment = {
            "KAFKA_VERSION": "4.2.0",
            "KAFKA_ROOT": str(home),
            "PROJECT_ROOT": str(home),
            "HEIRLOG_SECURED_PORTS": json.dumps(node.ports),
            "HEIRLOG_SECURED_HOME": str(node.directory),
            "PYTEST_PLUGINS": "secured_broker",
        }
        there = [name for name in OF_KAFKA_PYTHON if (release.home / name.partition("::")[0]).exists()]
        suite = Suite(release.version, release.home, tuple(there), (release.home,), lambda _: environment)
        return running.run(suite, node.address("PLAINTEXT"), loud=True)


@contextmanager
def tools() -> Iterator[Path]:
    """A folder as that of a Kafka distribution. Raises jars.Missing."""
    jars.fetch()
    with tempfile.TemporaryDirectory(prefix="secured-tools-") as name:
        scripts = Path(name) / "bin"
        scripts.mkdir()
        for script, command in TOOLS.items():
            options = f"-Xmx256m -XX:TieredStopAtLevel=1 -cp '{jars.classpath()}'"
            path = scripts / script
            path.write_text(f'#!/bin/sh\nexec java {options} {command} "$@"\n')
            path.chmod(0o755)
        yield Path(name)
