"""Three brokers and a controller behind closed doors: every channel between nodes is secured too."""

from __future__ import annotations

import os
import signal
import ssl
import time
from binascii import b2a_base64
from pathlib import Path
from typing import Any

import pytest
from issuing import AUDIENCE, Issuer, oauth_server
from patience import eventually

from heirlog.blocking import Client
from heirlog.client.delegation_tokens import create_delegation_token
from heirlog.client.errors import AuthenticationFailed
from heirlog.client.offsets import LATEST
from heirlog.client.scram import set_password
from heirlog.client.security import security_from_properties
from heirlog.local import layout as layouts
from heirlog.local import properties
from heirlog.local.certificates import Authority
from heirlog.local.secure import new_salt, scram_login, write_private
from heirlog.protocol.batch import encode_batch
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import IncrementalAlterConfigsRequest
from heirlog.security.scram import ScramMechanism
from heirlog.testing import Cluster

HOST = "127.0.0.1"


def admin(cluster: Cluster, **more: str) -> Client:
    given = properties.read(cluster.data / "client.properties") | more
    return Client(cluster.bootstrap_servers, security=security_from_properties(given), timeout_s=20.0)


def modes(path: Path) -> dict[str, int]:
    files = [file for ending in ("pem", "key", "properties") for file in path.rglob(f"*.{ending}")]
    assert len(files) > 5
    return {file.name: file.stat().st_mode & 0o777 for file in files}


@pytest.mark.parametrize("protocol", ["SSL", "SASL_PLAINTEXT", "SASL_SSL"])
def test_a_cluster_elects_replicates_and_takes_a_broker_back(protocol: str) -> None:
    with Cluster(nodes=3, security=protocol) as cluster:
        cluster.create_topic("t", 3, 3)
        with admin(cluster) as client:
            assert len(client.metadata([]).brokers) == 3
        leader = cluster.leader("t")
        cluster.kill(leader)
        assert cluster.leader("t") != leader
        cluster.start(leader)
        cluster.wait_until_ready()
        cluster.wait_until_in_sync()
        open_to_all = {name for name, mode in modes(cluster.data).items() if mode != 0o600}
        assert open_to_all <= {"ca.pem", "meta.properties"}
        if protocol != "SSL":
            wrong: Any = properties.read(cluster.data / "client.properties")["sasl.jaas.config"].replace(
                'password="', 'password="x'
            )
            with pytest.raises(AuthenticationFailed), admin(cluster, **{"sasl.jaas.config": wrong}) as client:
                client.metadata([])
            said = "".join(cluster.output(node) for node in cluster.node_ids)
            for file in cluster.data.rglob("*.properties"):
                for password in _passwords(file):
                    assert password not in said


def test_what_was_answered_about_users_survives_a_power_cut_of_all_nodes() -> None:
    config = {
        "delegation.token.secret.key": "known to all nodes",
        # whose next process waits for the end of its session, since the controller dies together with it
        "broker.session.timeout.ms": 4_000,
        "broker.heartbeat.interval.ms": 500,
    }
    with Cluster(nodes=1, security="SASL_SSL", config=config) as cluster:
        given = cluster.client_config()
        with admin(cluster) as client:
            client.run(set_password("bob", ScramMechanism.SHA_512, "replaced", new_salt(), 4096))
            client.run(set_password("bob", ScramMechanism.SHA_512, "his secret", new_salt(), 4096))
            token = client.run(create_delegation_token())
        for node in cluster.node_ids:
            cluster.kill(node)
        for node in cluster.node_ids:
            cluster.lose_unflushed(node)
        for node in reversed(cluster.node_ids):
            cluster.start(node)
        cluster.wait_until_ready()
        by_token = scram_login(token.id, b2a_base64(token.hmac, newline=False).decode())
        by_token["sasl.jaas.config"] = by_token["sasl.jaas.config"].replace(";", ' tokenauth="true";')
        for login in ({}, scram_login("bob", "his secret"), by_token):
            with admin(cluster, **given | login) as client:
                client.metadata([])
        with pytest.raises(AuthenticationFailed), admin(cluster, **scram_login("bob", "replaced")) as client:
            client.metadata([])


def test_nodes_log_in_to_each_other_with_tokens_that_end() -> None:
    """Brokers and controller alike: sessions of five seconds, which are continued with new tokens."""
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
    with oauth_server(Issuer()) as server:
        server.lifetime_s = 5.0
        login = f'{module} clientId="node" clientSecret="{server.SECRET}";'
        config = {
            "sasl.enabled.mechanisms": "OAUTHBEARER,SCRAM-SHA-512",
            "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
            "sasl.mechanism.controller.protocol": "OAUTHBEARER",
            "sasl.oauthbearer.jwks.endpoint.url": f"{server.url}/jwks",
            "sasl.oauthbearer.token.endpoint.url": f"{server.url}/token",
            "heirlog.sasl.oauthbearer.allowed.urls": f"{server.url}/jwks,{server.url}/token",
            "sasl.oauthbearer.expected.audience": AUDIENCE,
            "listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config": login,
            "listener.name.controller.oauthbearer.sasl.jaas.config": login,
        }
        with Cluster(nodes=2, security="SASL_PLAINTEXT", config=config) as cluster:
            cluster.create_topic("t", 1, 2, {"min.insync.replicas": "2"})
            fetched = len(server.asked)
            with admin(cluster) as client, client.producer() as producer:
                # of three nodes as clients of brokers and of the controller: the sessions of all have ended once
                while len([path for path in server.asked[fetched:] if path.startswith("/token")]) < 10:
                    producer.send("t", 0, encode_batch([(None, b"x", (), 0)]))
                    producer.flush()
            for node in cluster.node_ids:
                output = cluster.output(node)
                assert "authentication-failed" not in output and "isr-shrunk" not in output
                assert server.SECRET not in output and "eyJ" not in output


def _passwords(file: Path) -> set[str]:
    words = [word for text in properties.read(file).values() for word in text.split('"')]
    return {word for word in words if len(word) == 24 and os.sep not in word}


def test_certificates_are_replaced_while_clients_are_connected() -> None:
    """SIGHUP: old connections stay, new ones see the new certificate; one that cannot be used changes nothing."""
    with Cluster(nodes=1, combined=True, security="SASL_SSL") as cluster, admin(cluster) as before:
        before.metadata([])
        folder = cluster.data / "security"
        old = (folder / "node.pem").read_text()
        assert served_certificate(cluster) in old
        made = Authority.of((folder / "ca.key").read_text(), (folder / "ca.pem").read_text())
        write_private(folder / "node.pem", made.issue("renewed", ["127.0.0.1"]))
        os.kill(cluster.pids[1], signal.SIGHUP)
        eventually(lambda: served_certificate(cluster) not in old)
        before.metadata([])
        with admin(cluster) as after:
            after.metadata([])
        good = (folder / "node.pem").read_text()
        key, certificate = (part.partition("-----BEGIN CERTIFICATE") for part in (made.issue("new", [HOST]), good))
        unusable = {
            "no key": "no private key",
            key[0] + certificate[1] + certificate[2]: "no private key",
            made.issue("elsewhere", ["10.0.0.1"]): "IP address mismatch",
            made.issue(HOST): "unsuitable certificate purpose",
            made.issue("late", [HOST], days=-1): "certificate has expired",
            Authority.new("another").issue("foreign", [HOST]): "unable to get local issuer certificate",
        }
        for count, (text, why) in enumerate(unusable.items(), 1):
            write_private(folder / "node.pem", text)
            os.kill(cluster.pids[1], signal.SIGHUP)
            eventually(lambda count=count: cluster.output(1).count("certificates-not-reloaded") == count)
            assert why in cluster.output(1)
            assert served_certificate(cluster) in good
            with admin(cluster) as after:
                after.metadata([])


def test_the_store_of_a_listener_is_changed_by_a_dynamic_configuration_and_survives_a_restart() -> None:
    """Open connections stay, new ones see the new certificate; a store that cannot be used is refused."""
    with Cluster(nodes=1, combined=True, security="SASL_SSL") as cluster:
        folder = cluster.data / "security"
        made = Authority.of((folder / "ca.key").read_text(), (folder / "ca.pem").read_text())
        stored = "listener.name.sasl_ssl.ssl.keystore.location"
        with admin(cluster) as before:
            renewed, foreign = folder / "renewed.pem", folder / "foreign.pem"
            write_private(renewed, made.issue("node", [HOST, "localhost"]))
            write_private(foreign, Authority.new("another").issue("node", [HOST, "localhost"]))
            old = served_certificate(cluster)
            for path, why in ((folder / "none.pem", "cannot be read"), (foreign, "unable to get local issuer")):
                refused = set_configs(before, "1", {stored: str(path)})
                assert refused.error_code == ErrorCode.INVALID_REQUEST and why in refused.error_message
            assert set_configs(before, "", {stored: str(renewed)}).error_code == ErrorCode.INVALID_REQUEST
            assert served_certificate(cluster) == old
            assert set_configs(before, "1", {stored: str(renewed)}).error_code == ErrorCode.NONE
            eventually(lambda: served_certificate(cluster) in renewed.read_text())
            # the usual rotation: another file at the same place
            write_private(renewed, made.issue("node", [HOST, "localhost"]))
            assert set_configs(before, "1", {stored: str(renewed)}).error_code == ErrorCode.NONE
            eventually(lambda: served_certificate(cluster) in renewed.read_text())
            before.metadata([])
            with admin(cluster) as after:
                after.metadata([])
        cluster.kill(1)
        cluster.start(1)
        cluster.wait_until_ready()
        eventually(lambda: served_certificate(cluster) in renewed.read_text())
        with admin(cluster) as client:
            assert set_configs(client, "1", {stored: None}).error_code == ErrorCode.NONE
            eventually(lambda: served_certificate(cluster) == old)
        assert "certificates-not-reloaded" not in cluster.output(1)


def set_configs(client: Client, broker: str, configs: dict[str, str | None]) -> Any:
    R = IncrementalAlterConfigsRequest
    changes = [
        R.AlterableConfig(name=name, config_operation=text is None, value=text) for name, text in configs.items()
    ]
    resource = R.AlterConfigsResource(resource_type=4, resource_name=broker, configs=changes)
    (answer,) = client.send_to_any(R(resources=[resource])).responses
    return answer


def served_certificate(cluster: Cluster) -> str:
    host, _, port = cluster.bootstrap_servers.partition(":")
    return ssl.get_server_certificate((host, int(port)))


def test_three_controllers_elect_again_and_sessions_end_without_a_gap(tmp_path: Path) -> None:
    """Nodes log in again to each other every second, by SCRAM between brokers; then all of them are killed at once."""
    config = {
        "connections.max.reauth.ms": 1500,
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "replica.fetch.wait.max.ms": 100,
    }
    data = tmp_path / "d"
    with Cluster(nodes=3, combined=True, security="SASL_SSL", config=config, data=data) as cluster:
        with admin(cluster) as client:
            for mechanism in (ScramMechanism.SHA_256, ScramMechanism.SHA_512):
                client.run(set_password("node", mechanism, "between brokers", new_salt(), 4096))
        cluster.create_topic("t", 1, 3)
    scram = (
        'org.apache.kafka.common.security.scram.ScramLoginModule required username="node" password="between brokers";'
    )
    for node in layouts.load(data).nodes:  # type: ignore[union-attr]
        given = properties.read(node.properties_path)
        given["sasl.mechanism.inter.broker.protocol"] = "SCRAM-SHA-256"
        given["listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config"] = scram
        write_private(node.properties_path, properties.render(given, "edited"))
    with Cluster(data=data) as cluster:
        with admin(cluster) as client, client.producer() as producer:
            ends = time.monotonic() + 4
            count = 0
            while time.monotonic() < ends:
                producer.send("t", 0, encode_batch([(None, b"x", (), 0)]))
                producer.flush()
                count += 1
        for node in cluster.node_ids:
            assert "authentication-failed" not in cluster.output(node)
            assert "isr-shrunk" not in cluster.output(node)
        for node in cluster.node_ids:
            cluster.kill(node)
        for node in cluster.node_ids:
            cluster.start(node)
        cluster.wait_until_ready()
        cluster.wait_until_in_sync()
        with admin(cluster) as client:
            (found,) = client.list_offsets({("t", 0): LATEST}).values()
            assert found.offset == count


def test_controllers_know_where_brokers_listen_for_each_other() -> None:
    """Unclean recovery asks them there, and so does the probe that tells a dead process from a silent one."""
    with Cluster(nodes=3, security="SASL_SSL") as cluster:
        cluster.wait_until_ready()
        cluster.kill(1)
        eventually(lambda: "and nothing listens at 127.0.0.1:" in cluster.output(100))
        assert "authentication-failed" not in cluster.output(2) + cluster.output(3)
