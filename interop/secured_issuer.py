"""Tokens of an issuer that both sides reach by HTTPS: Java fetches tokens by client credentials, heirlog its keys.

rotation   a Java producer writes all the time and logs in again with each new token (KIP-368); the issuer publishes a
           new key, signs with it, and withdraws the old one. Each record is confirmed, and a token of the old key is
           refused
failures   the issuer's end is down, slow, huge, garbage, an error or a redirect: the old keys stay good, new logins
           work, and the log says why. A node that starts meanwhile serves all other clients, and tokens once
           the issuer answers
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import issuer
import jars
from apache_kafka import eventually
from clients import java_command, output_of
from confluent_kafka import KafkaException, Producer
from secured_clients import TOPIC, client_file, end_of, librdkafka, may_write

from heirlog.blocking import Client, security_from_properties
from heirlog.client.errors import AuthenticationFailed
from heirlog.local import properties
from heirlog.testing import Cluster
from tools import started as started_tools

BEARER = "org.apache.kafka.common.security.oauthbearer"
ALLOWED = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
WRITER = "writer"
SHORT_S = 6.0
"""Lifetime of the tokens of the rotation."""
LONG_S = 600.0
REFRESH_MS = 500
PAUSE_S = 0.2


def check() -> str:
    """Raises jars.Missing."""
    jars.fetch()
    with issuer.started() as made, closed(made) as running:
        with started_tools(running.bootstrap_servers) as tools:
            may_write(tools, running, WRITER)
        written = rotation(running, made)
        failures(running, made)
        restart(running, made)
    return (
        f"{written} records of Java while keys rotated, {len(issuer.FAILURES)} failures of the issuer, a start without"
    )


@contextmanager
def closed(made: issuer.Issuer) -> Iterator[Cluster]:
    trust = f'ssl.truststore.type="PEM" ssl.truststore.location="{made.trust}"'
    config = {
        "listener.name.sasl_ssl.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        "listener.name.sasl_ssl.oauthbearer.sasl.jaas.config": f"{BEARER}.OAuthBearerLoginModule required {trust};",
        "sasl.oauthbearer.jwks.endpoint.url": f"{made.url}/keys",
        "sasl.oauthbearer.jwks.endpoint.refresh.ms": REFRESH_MS,
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": 100,
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": 500,
        "sasl.oauthbearer.expected.audience": issuer.AUDIENCE,
        "sasl.oauthbearer.expected.issuer": issuer.NAME,
        "sasl.oauthbearer.clock.skew.seconds": 0,
    }
    with Cluster(nodes=1, combined=True, security="SASL_SSL", config=config, ledger=False) as running:
        running.create_topic(TOPIC, 1, 1)
        yield running


def java_writer(running: Cluster, made: issuer.Issuer) -> list[str]:
    """A producer that fetches its tokens itself."""
    trust = f'ssl.truststore.type="PEM" ssl.truststore.location="{made.trust}"'
    login = f'clientId="{WRITER}" clientSecret="{issuer.SECRET}" scope="write" {trust}'
    given = properties.read(running.data / "client.properties") | {
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": f"{BEARER}.OAuthBearerLoginModule required {login};",
        "sasl.login.callback.handler.class": f"{BEARER}.OAuthBearerLoginCallbackHandler",
        "sasl.oauthbearer.token.endpoint.url": f"{made.url}/token",
        "sasl.login.refresh.window.factor": "0.5",
        "sasl.login.refresh.window.jitter": "0",
        "sasl.login.refresh.min.period.seconds": "0",
        "sasl.login.refresh.buffer.seconds": "1",
    }
    java, *program = java_command(
        "Lines", "produce", running.bootstrap_servers, TOPIC, "", client_file(running, "issuer", given)
    )
    return [java, f"-D{ALLOWED}={made.url}/token", *program]


def rotation(running: Cluster, made: issuer.Issuer) -> int:
    """How many records were confirmed."""
    before, made.lifetime_s = end_of(running), SHORT_S
    eventually(lambda: is_let_in(running, made.token(WRITER)), "the keys of the issuer")
    java = subprocess.Popen(java_writer(running, made), stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert java.stdin is not None
    sent = 0

    def write_for(seconds: float) -> None:
        nonlocal sent
        end_s = time.monotonic() + seconds
        while time.monotonic() < end_s:
            try:
                java.stdin.write(f"{sent}\n")
                java.stdin.flush()
            except BrokenPipeError:
                raise AssertionError(f"Java ended: {java.communicate()[1][-3000:]}") from None
            sent += 1
            time.sleep(PAUSE_S)

    try:
        write_for(1.0)
        eventually(lambda: end_of(running) > before, "the first record of Java")
        write_for(SHORT_S)
        made.rotate("two")
        fetched = made.asked["/keys"]
        eventually(lambda: made.asked["/keys"] >= fetched + 2, "heirlog fetches the keys again")
        made.signs_with = "two"
        tokens = made.asked["two"]
        # until the last token of the old key has ended
        write_for(SHORT_S + 1)
        made.withdrawn.add("one")
        write_for(2 * SHORT_S)
        assert made.asked["two"] >= tokens + 2, "Java fetches new tokens while it is connected"
        eventually(lambda: not is_let_in(running, made.token(WRITER, "one")), "a withdrawn key is not good any more")
        assert is_let_in(running, made.token(WRITER))
        _, problems = java.communicate(timeout=120)
    finally:
        java.kill()
    assert java.returncode == 0, problems[-2000:]
    assert end_of(running) == before + sent
    made.lifetime_s = LONG_S
    return sent


def failures(running: Cluster, made: issuer.Issuer) -> None:
    """Whatever becomes of the issuer, the keys that heirlog has stay."""
    command = java_writer(running, made)
    token = made.token(WRITER)
    for failure in issuer.FAILURES:
        before, fetched = end_of(running), made.asked["/keys"]
        made.failure = failure
        eventually(lambda fetched=fetched: made.asked["/keys"] > fetched, f"heirlog asks for the keys: {failure}")
        assert is_let_in(running, token), failure
        wrote = rdkafka_writes(running, token)
        assert wrote and end_of(running) == before + 1, failure
        made.failure = ""
    # one line in ten seconds, however many fetches fail
    assert "issuer-keys-not-fetched" in running.output(1)
    # no answer of the issuer is needed for a token that it has signed before; for a new one Java needs it
    made.failure = "garbage"
    try:
        output_of(command, "x\n")
    except RuntimeError as error:
        assert "OAuthBearer" in str(error), error
    else:
        raise AssertionError("Java wrote without a token")
    finally:
        made.failure = ""
    before = end_of(running)
    output_of(command, "y\n")
    assert end_of(running) == before + 1


def restart(running: Cluster, made: issuer.Issuer) -> None:
    """A node that starts while the issuer is down serves all other clients."""
    made.failure = "down"
    running.stop(1)
    running.start(1)
    token = made.token(WRITER)
    assert end_of(running) > 0
    assert not is_let_in(running, token)
    made.failure = ""
    eventually(lambda: is_let_in(running, token), "the keys of an issuer that answers again")


def is_let_in(running: Cluster, token: str) -> bool:
    path = running.data / "issuer.jwt"
    path.write_text(token)
    given = properties.read(running.data / "client.properties") | {
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": f"{BEARER}.OAuthBearerLoginModule required;",
        "sasl.oauthbearer.token.endpoint.url": Path(path).as_uri(),
    }
    try:
        with Client(running.bootstrap_servers, security=security_from_properties(given)) as client:
            client.metadata([])
    except AuthenticationFailed:
        return False
    return True


def rdkafka_writes(running: Cluster, token: str) -> bool:
    results: list[Any] = []
    config = librdkafka(running.client_config()) | {"sasl.mechanisms": "OAUTHBEARER", "message.timeout.ms": 30_000}
    for name in ("sasl.username", "sasl.password"):
        del config[name]
    producer = Producer(config | {"oauth_cb": lambda _: (token, time.time() + LONG_S)})
    try:
        producer.produce(TOPIC, b"e", on_delivery=lambda error, _: results.append(error))
        return producer.flush(60) == 0 and results == [None]
    except KafkaException:
        return False
