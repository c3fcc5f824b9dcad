"""Delegation tokens over sockets, on three nodes: made at one, used at the others, and after a fail-over."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from patience import eventually
from processes.talking import Talk

from heirlog.blocking import Client
from heirlog.client.acls import create_acls
from heirlog.client.delegation_tokens import (
    IssuedToken,
    create_delegation_token,
    describe_delegation_tokens,
    expire_delegation_token,
    renew_delegation_token,
)
from heirlog.client.errors import AuthenticationFailed
from heirlog.client.sasl import Scram
from heirlog.client.security import Security, security_from_properties
from heirlog.local import properties
from heirlog.metadata.acls import Acl, AclOperation, AclPermissionType, PatternType, ResourceType
from heirlog.protocol.batch import encode_batch
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import MetadataRequest
from heirlog.testing import Cluster

TOPIC = "orders"
SECRET_KEY = "the secret key of all tokens"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    config = {"delegation.token.secret.key": SECRET_KEY, "connection.failed.authentication.delay.ms": 0}
    with Cluster(nodes=3, combined=True, security="SASL_PLAINTEXT", config=config) as running:
        running.create_topic(TOPIC, 1, 3)
        with connect(running, user(running, "admin")) as client:
            acl = Acl(
                ResourceType.TOPIC,
                TOPIC,
                PatternType.LITERAL,
                "User:alice",
                "*",
                AclOperation.ALL,
                AclPermissionType.ALLOW,
            )
            client.run(create_acls([acl]))
        yield running


def user(cluster: Cluster, name: str) -> Security:
    return security_from_properties(cluster.client_config(name))


def bearer(token: IssuedToken, mechanism: str = "SCRAM-SHA-256") -> Security:
    password = b64encode(token.hmac).decode()
    return Security("SASL_PLAINTEXT", mechanism, token.id, password, delegation_token=True)


def connect(cluster: Cluster, security: Security, server: str = "") -> Client:
    return Client(server or cluster.bootstrap_servers, security=security, timeout_s=20)


def create(cluster: Cluster, name: str = "alice", **more: int) -> IssuedToken:
    with connect(cluster, user(cluster, name)) as client:
        return client.run(create_delegation_token(["User:bob"], **more))


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_token_is_good_at_every_broker_at_once_and_its_bearer_is_the_owner(cluster: Cluster, mechanism: str) -> None:
    token = create(cluster)
    for server in cluster.bootstrap_servers.split(","):
        with connect(cluster, bearer(token, mechanism), server) as client:
            assert client.topic_names() == [TOPIC]
    with connect(cluster, bearer(token, mechanism)) as client, client.producer() as producer:
        producer.send(TOPIC, 0, encode_batch([(None, b"x", (), 0)]))
        producer.flush()


def test_a_token_makes_renews_ends_and_shows_no_token(cluster: Cluster) -> None:
    token = create(cluster)
    with connect(cluster, bearer(token)) as client:
        for conversation in (
            create_delegation_token(),
            renew_delegation_token(token.hmac),
            expire_delegation_token(token.hmac),
            describe_delegation_tokens(),
        ):
            with pytest.raises(KafkaError) as refused:
                client.run(conversation)  # type: ignore[arg-type]
            assert refused.value.code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


def test_a_renewer_renews_and_ends_it_and_others_do_not(cluster: Cluster) -> None:
    token = create(cluster, max_lifetime_ms=60_000)
    with connect(cluster, user(cluster, "carol")) as client:
        with pytest.raises(KafkaError, match="only the token's owner and its renewers"):
            client.run(renew_delegation_token(token.hmac))
        assert token.id not in {one.id for one in client.run(describe_delegation_tokens())}
    with connect(cluster, user(cluster, "bob")) as client:
        assert client.run(renew_delegation_token(token.hmac, 30_000)) < token.max_ms
        assert client.run(renew_delegation_token(token.hmac)) == token.max_ms
        client.run(expire_delegation_token(token.hmac))
        with pytest.raises(KafkaError, match="no such delegation token"):
            client.run(renew_delegation_token(token.hmac))
    with pytest.raises(AuthenticationFailed), connect(cluster, bearer(token)) as client:
        client.topic_names()


def test_a_wrong_secret_is_refused(cluster: Cluster) -> None:
    token = create(cluster)
    for wrong in (replace(token, hmac=b"x" * 64), replace(token, id=create(cluster).id)):
        with pytest.raises(AuthenticationFailed), connect(cluster, bearer(wrong)) as client:
            client.topic_names()


def test_the_session_ends_with_the_token(cluster: Cluster) -> None:
    for lifetime_ms in (2000, 10_000, 30_000):  # a loaded machine may not log in within two seconds
        token = create(cluster, max_lifetime_ms=lifetime_ms)
        talk = Talk(cluster)
        assert talk.handshake("SCRAM-SHA-256").error_code == 0
        client = Scram("SCRAM-SHA-256", token.id, b64encode(token.hmac).decode(), "nonce", delegation_token=True)
        answer = talk.token(client.answer(talk.token(client.first()).auth_bytes) or b"")
        if answer.error_code == 0:
            break
    assert answer.error_code == 0 and 0 < answer.session_lifetime_ms <= lifetime_ms
    eventually(lambda: time.time() * 1000 > token.max_ms + 100)
    talk.send(MetadataRequest(topics=[]), 12)
    assert talk.is_closed()
    talk.sock.close()
    with pytest.raises(AuthenticationFailed), connect(cluster, bearer(token)) as late:
        late.topic_names()
    with connect(cluster, user(cluster, "alice")) as owner, pytest.raises(KafkaError, match="has ended"):
        owner.run(renew_delegation_token(token.hmac))


def heirlog(cluster: Cluster, *arguments: str) -> str:
    login = ("--command-config", str(cluster.data / "client.properties"))
    done = subprocess.run(
        [sys.executable, "-m", "heirlog", "tokens", *arguments, *login], capture_output=True, text=True, timeout=60
    )
    return done.stdout + done.stderr


def test_the_commands(cluster: Cluster, tmp_path: Path) -> None:
    created = heirlog(
        cluster, "create", "--owner-principal", "User:alice", "--renewer-principal", "User:admin", "--json"
    )
    made = json.loads(created)
    assert (made["owner"], made["requester"], made["renewers"]) == ("User:alice", "User:admin", ["User:admin"])
    module = "org.apache.kafka.common.security.scram.ScramLoginModule required"
    given = cluster.client_config("alice")
    given["sasl.jaas.config"] = f'{module} username="{made["token_id"]}" password="{made["hmac"]}" tokenauth="true";'
    (tmp_path / "bearer.properties").write_text(properties.render(given, "a token"))
    bearer_login = ("--command-config", str(tmp_path / "bearer.properties"))
    listed = subprocess.run(
        [sys.executable, "-m", "heirlog", "topics", "list", *bearer_login], capture_output=True, text=True, timeout=60
    )
    assert TOPIC in listed.stdout, listed.stderr
    rows = {row["token_id"]: row for row in json.loads(heirlog(cluster, "list", "--json"))}
    assert rows[made["token_id"]] == {name: value for name, value in made.items() if name != "hmac"}
    shown = heirlog(cluster, "list", "--owner-principal", "User:alice")
    assert made["token_id"] in shown and made["hmac"] not in shown
    assert f"{made['token_id']} ends at " in heirlog(cluster, "renew", made["token_id"], "--renew-time-period", "60000")
    assert "is removed" in heirlog(cluster, "expire", made["token_id"])
    assert "is no delegation token that you may see" in heirlog(cluster, "expire", made["token_id"])
    text = heirlog(cluster, "create")
    assert text.startswith("Token ") and "HMAC: " in text and "tokenauth=true" in text
    assert "is not of the form User:name" in heirlog(cluster, "create", "--renewer-principal", "bob")


def test_a_token_outlives_the_controller_that_made_it_and_every_restart(cluster: Cluster) -> None:
    token = create(cluster)
    active = cluster.active_controller()
    assert active is not None
    cluster.kill(active)
    others = ",".join(
        server
        for node, server in zip(cluster.node_ids, cluster.bootstrap_servers.split(","), strict=True)
        if node != active
    )
    with connect(cluster, bearer(token), others) as client:
        assert client.topic_names() == [TOPIC]
    with connect(cluster, user(cluster, "alice"), others) as client:
        assert client.run(renew_delegation_token(token.hmac)) <= token.max_ms
    cluster.start(active)
    cluster.wait_until_ready()
    with connect(cluster, bearer(token)) as client:
        assert client.topic_names() == [TOPIC]
    said = "".join(cluster.output(node) for node in cluster.node_ids)
    assert SECRET_KEY not in said and b64encode(token.hmac).decode() not in said
