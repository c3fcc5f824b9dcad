"""OAUTHBEARER over sockets: our client and others with tokens of a real OAuth server, and the same byte by byte."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from issuing import AUDIENCE, ISSUER, Issuer, OAuthServer, oauth_server
from patience import eventually
from processes.talking import Talk

from heirlog.blocking import Client
from heirlog.client.errors import AuthenticationFailed
from heirlog.client.security import Security, security_from_properties
from heirlog.protocol.messages import MetadataRequest
from heirlog.testing import Cluster

TOPIC = "orders"
OAUTHBEARER = "OAUTHBEARER"
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"


@pytest.fixture(scope="module")
def server() -> Iterator[OAuthServer]:
    with oauth_server(Issuer()) as made:
        yield made


@pytest.fixture(scope="module")
def cluster(server: OAuthServer) -> Iterator[Cluster]:
    config = {
        "listener.name.sasl_plaintext.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512,OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": f"{server.url}/jwks",
        "sasl.oauthbearer.jwks.endpoint.refresh.ms": 200,
        "heirlog.sasl.oauthbearer.allowed.urls": f"{server.url}/jwks",
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "sasl.oauthbearer.expected.issuer": ISSUER,
        "super.users": "User:node;User:admin;User:alice",
        "connection.failed.authentication.delay.ms": 0,
    }
    with Cluster(nodes=1, combined=True, security="SASL_PLAINTEXT", config=config) as running:
        running.create_topic(TOPIC, 1, 1)
        eventually(lambda: "issuer-keys-fetched" in running.output(1))
        yield running


@pytest.fixture
def talk(cluster: Cluster) -> Iterator[Talk]:
    made = Talk(cluster)
    yield made
    made.sock.close()


def first(token: str) -> bytes:
    return f"n,,\x01auth=Bearer {token}\x01\x01".encode()


# -- our client


def properties(server: OAuthServer, **more: str) -> dict[str, str]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": OAUTHBEARER,
        "sasl.jaas.config": f'{MODULE} clientId="alice" clientSecret="{server.SECRET}" scope="logs" extension_x="1";',
        "sasl.oauthbearer.token.endpoint.url": f"{server.url}/token",
        "heirlog.sasl.oauthbearer.allowed.urls": f"{server.url}/token",
        **more,
    }


def topics(cluster: Cluster, security: Security) -> list[str]:
    with Client(cluster.bootstrap_servers, security=security, timeout_s=20) as client:
        return client.topic_names()


def test_our_client_fetches_a_token_by_client_credentials(cluster: Cluster, server: OAuthServer) -> None:
    assert topics(cluster, security_from_properties(properties(server))) == [TOPIC]
    assert [path for path in server.asked if "scope=logs" in path]


def test_our_client_reads_a_token_from_a_file_or_from_a_function(
    cluster: Cluster, server: OAuthServer, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text(server.issuer.token())
    file = properties(server) | {"sasl.oauthbearer.token.endpoint.url": (tmp_path / "token").as_uri()}
    assert topics(cluster, security_from_properties(file)) == [TOPIC]
    assert topics(cluster, Security("SASL_PLAINTEXT", OAUTHBEARER, token=server.issuer.token)) == [TOPIC]


def test_our_client_says_what_is_wrong_and_shows_no_secret(cluster: Cluster, server: OAuthServer) -> None:
    wrong = f'{MODULE} clientId="alice" clientSecret="x";'
    for security, complaint in (
        (security_from_properties(properties(server, **{"sasl.jaas.config": wrong})), "401"),
        (Security("SASL_PLAINTEXT", OAUTHBEARER, token=lambda: server.issuer.token(aud="other")), "invalid_token"),
    ):
        with pytest.raises(AuthenticationFailed, match=complaint) as failed:
            topics(cluster, security)
        assert server.SECRET not in str(failed.value)
    output = cluster.output(1)
    assert "aud is other, none of sasl.oauthbearer.expected.audience" in output
    assert "eyJ" not in output, "a token is in the log"


# -- clients that are not ours


def test_librdkafka_with_a_callback_writes_and_reads(cluster: Cluster, server: OAuthServer) -> None:
    from confluent_kafka import Consumer, Producer

    def token(config: str) -> tuple[str, float]:
        return server.issuer.token(), time.time() + 60

    given: dict[str, Any] = {
        "bootstrap.servers": cluster.bootstrap_servers,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanisms": OAUTHBEARER,
        "oauth_cb": token,
        "log_level": 0,
    }
    assert_librdkafka_writes_and_reads(Producer(given | {"acks": "all"}), Consumer(given | {"group.id": "g1"}))


def test_librdkafka_with_client_credentials_writes_and_reads(cluster: Cluster, server: OAuthServer) -> None:
    from confluent_kafka import Consumer, Producer

    given = {
        "bootstrap.servers": cluster.bootstrap_servers,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanisms": OAUTHBEARER,
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.client.id": "alice",
        "sasl.oauthbearer.client.secret": server.SECRET,
        "sasl.oauthbearer.token.endpoint.url": f"{server.url}/token",
        "sasl.oauthbearer.scope": "by-librdkafka",
        "log_level": 0,
    }
    assert_librdkafka_writes_and_reads(Producer(given | {"acks": "all"}), Consumer(given | {"group.id": "g2"}))
    assert [path for path in server.asked if "by-librdkafka" in path]


def assert_librdkafka_writes_and_reads(producer: Any, consumer: Any) -> None:
    from confluent_kafka import TopicPartition

    delivered: list[tuple[Any, Any]] = []
    producer.produce(TOPIC, b"by librdkafka", on_delivery=lambda error, message: delivered.append((error, message)))
    assert producer.flush(60) == 0
    ((error, message),) = delivered
    assert error is None
    consumer.assign([TopicPartition(TOPIC, 0, message.offset())])
    read = consumer.poll(60)
    assert read is not None and read.error() is None and read.value() == b"by librdkafka"
    consumer.close()


def test_librdkafka_learns_that_its_token_is_refused(cluster: Cluster, server: OAuthServer) -> None:
    from confluent_kafka import Producer

    errors: list[str] = []
    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanisms": OAUTHBEARER,
            "oauth_cb": lambda config: (server.issuer.token(iss="other"), time.time() + 60),
            "error_cb": lambda error: errors.append(error.str()),
            "log_level": 0,
        }
    )

    def said() -> bool:
        producer.poll(0.1)
        return any("invalid_token" in error for error in errors)

    eventually(said)


def test_kafka_python_writes_and_reads(cluster: Cluster, server: OAuthServer) -> None:
    from kafka import KafkaConsumer, KafkaProducer, TopicPartition
    from kafka.net.sasl.oauth import AbstractTokenProvider

    class Provider(AbstractTokenProvider):  # type: ignore[misc]
        def token(self) -> str:
            return server.issuer.token()

    given = {
        "bootstrap_servers": cluster.bootstrap_servers,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": OAUTHBEARER,
        "sasl_oauth_token_provider": Provider(),
    }
    producer = KafkaProducer(**given)
    offset = producer.send(TOPIC, b"by kafka-python").get(60).offset
    producer.close()
    consumer = KafkaConsumer(**given, consumer_timeout_ms=60_000)
    consumer.assign([TopicPartition(TOPIC, 0)])
    consumer.seek(TopicPartition(TOPIC, 0), offset)
    assert next(iter(consumer)).value == b"by kafka-python"
    consumer.close()


def test_aiokafka_writes_and_reads(cluster: Cluster, server: OAuthServer) -> None:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
    from aiokafka.abc import AbstractTokenProvider

    class Provider(AbstractTokenProvider):  # type: ignore[misc]
        async def token(self) -> str:
            return server.issuer.token()

    async def scenario() -> None:
        given = {
            "bootstrap_servers": cluster.bootstrap_servers,
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": OAUTHBEARER,
            "sasl_oauth_token_provider": Provider(),
        }
        async with AIOKafkaProducer(**given) as producer:
            sent = await producer.send_and_wait(TOPIC, b"by aiokafka")
        async with AIOKafkaConsumer(**given) as consumer:
            consumer.assign([TopicPartition(TOPIC, 0)])
            consumer.seek(TopicPartition(TOPIC, 0), sent.offset)
            assert (await asyncio.wait_for(consumer.getone(), 60)).value == b"by aiokafka"

    asyncio.run(scenario())


# -- byte by byte


def test_a_token_ends_the_session_and_a_new_one_continues_it(talk: Talk, server: OAuthServer) -> None:
    """KIP-368: the lifetime is that of the token, though connections.max.reauth.ms is 0."""
    answer = talk.log_in(first(server.issuer.token(lifetime_s=60)), OAUTHBEARER)
    assert answer.auth_bytes == b"" and 0 < answer.session_lifetime_ms <= 60_000
    assert len(talk.metadata().brokers) == 1
    time.sleep(1.01)  # a connection authenticates at most once per second
    answer = talk.log_in(first(server.issuer.token(lifetime_s=3600)), OAUTHBEARER)
    assert 3_500_000 < answer.session_lifetime_ms <= 3_600_000
    assert len(talk.metadata().brokers) == 1


def test_a_connection_whose_token_has_ended_is_closed_at_its_next_request(talk: Talk, server: OAuthServer) -> None:
    """Within the clock skew a token that has ended lets in, and the session has no length."""
    answer = talk.log_in(first(server.issuer.token(lifetime_s=-5)), OAUTHBEARER)
    assert answer.error_code == 0 and answer.session_lifetime_ms == 0
    talk.send(MetadataRequest(topics=[]), 12)
    assert talk.is_closed()


def test_a_token_is_good_until_it_ends_and_not_after_it(cluster: Cluster, server: OAuthServer) -> None:
    token = first(server.issuer.token(iat=int(time.time()) - 3600, lifetime_s=3600))
    for _ in range(2):
        Talk(cluster).log_in(token, OAUTHBEARER)
    expired = Talk(cluster)
    expired.handshake(OAUTHBEARER)
    assert expired.token(first(server.issuer.token(lifetime_s=-31))).auth_bytes == b'{"status":"invalid_token"}'


def test_another_user_cannot_take_over_a_connection(talk: Talk, server: OAuthServer) -> None:
    talk.log_in(first(server.issuer.token()), OAUTHBEARER)
    time.sleep(1.01)
    talk.handshake(OAUTHBEARER)
    answer = talk.token(first(server.issuer.token("bob")))
    assert (answer.error_code, answer.error_message) == (58, "Cannot change principals during re-authentication")
    assert talk.is_closed()


def test_a_refused_token_is_answered_in_two_steps(talk: Talk, server: OAuthServer) -> None:
    talk.handshake(OAUTHBEARER)
    status = '{"status":"invalid_token"}'
    answer = talk.token(first(Issuer().token()))
    assert (answer.error_code, answer.auth_bytes.decode()) == (0, status)
    answer = talk.token(b"\x01")
    assert (answer.error_code, answer.error_message) == (58, status)
    assert talk.is_closed()


def test_who_leaves_with_the_first_step_of_a_refusal_is_in_the_log(cluster: Cluster, server: OAuthServer) -> None:
    stranger = Talk(cluster, "127.0.0.9")
    stranger.handshake(OAUTHBEARER)
    assert stranger.token(first(server.issuer.token(aud="another"))).error_code == 0
    stranger.sock.close()
    eventually(
        lambda: any('"127.0.0.9"' in line and "aud is another" in line for line in cluster.output(1).splitlines())
    )


def test_a_token_of_half_a_megabyte_is_refused_unread(talk: Talk) -> None:
    talk.handshake(OAUTHBEARER)
    assert talk.token(first("a." * 250_000)).auth_bytes == b'{"status":"invalid_token"}'


def test_keys_rotate_and_stay_while_the_issuer_talks_nonsense(cluster: Cluster, server: OAuthServer) -> None:
    """The last of this file: the issuer is not what it was afterwards."""
    old, issuer = server.issuer.token(), server.issuer
    del issuer.keys["ec"]
    issuer.add("next", "ES256", ec.generate_private_key(ec.SECP256R1()))
    new = issuer.token(kid="next")
    eventually(lambda: is_in(cluster, new))
    assert not is_in(cluster, old)
    server.issuer = Nonsense()
    eventually(lambda: "issuer-keys-not-fetched" in cluster.output(1))
    assert is_in(cluster, new)


class Nonsense(Issuer):
    def jwks(self) -> bytes:
        return b"<html>"


def is_in(cluster: Cluster, token: str) -> bool:
    talk = Talk(cluster)
    talk.handshake(OAUTHBEARER)
    answer = talk.token(first(token))
    talk.sock.close()
    return not answer.auth_bytes
