"""Tokens at the closed doors of heirlog, as Apache Kafka's tools and its Java client use them.

delegation tokens   kafka-delegation-tokens creates, describes, renews and ends them; a Java producer logs in with one,
                    and with one that `heirlog tokens create` made. A token that has ended is refused
OAUTHBEARER         kafka-topics and a Java producer show a token that an issuer has signed, from a file; librdkafka
                    shows one that its program gives it
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import jars
import jwt
from apache_kafka import eventually
from clients import java_command, output_of
from confluent_kafka import Producer
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm
from secured_clients import TOPIC, client_file, end_of, librdkafka, may_write

from heirlog.local import properties
from heirlog.local.secure import scram_login
from heirlog.testing import Cluster
from tools import CLASSES, Tools
from tools import started as started_tools

ISSUER, AUDIENCE, KEY_ID = "https://issuer.example", "heirlog", "one"
LOGIN = "org.apache.kafka.common.security"
ALLOWED = "org.apache.kafka.sasl.oauthbearer.allowed"
LIFETIME_S = 600


def check() -> str:
    """Raises jars.Missing."""
    jars.fetch()
    key = ec.generate_private_key(ec.SECP256R1())
    jwk = ECAlgorithm.to_jwk(key.public_key(), as_dict=True) | {"kid": KEY_ID, "use": "sig", "alg": "ES256"}
    with tempfile.TemporaryDirectory(prefix="heirlog-interop-") as directory:
        keys = Path(directory) / "keys.json"
        keys.write_text(json.dumps({"keys": [jwk]}))
        config = {
            "delegation.token.secret.key": "the secret of all tokens",
            "listener.name.sasl_ssl.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
            "sasl.oauthbearer.jwks.endpoint.url": f"file://{keys}",
            "sasl.oauthbearer.expected.audience": AUDIENCE,
            "sasl.oauthbearer.expected.issuer": ISSUER,
        }
        with (
            Cluster(nodes=1, combined=True, security="SASL_SSL", config=config, ledger=False) as running,
            started_tools(running.bootstrap_servers) as tools,
        ):
            running.create_topic(TOPIC, 1, 1)
            delegation_tokens(tools, running)
            bearer_tokens(tools, running, key)
    return "delegation tokens both ways, OAUTHBEARER of Java and librdkafka"


# -- delegation tokens


def delegation_tokens(tools: Tools, running: Cluster) -> None:
    for user in ("alice", "scheduler"):
        running.client_config(user)
    may_write(tools, running, "alice")
    alice, scheduler = (
        ("--command-config", client_file(running, user, running.client_config(user))) for user in ("alice", "scheduler")
    )
    made = tools(
        "kafka-delegation-tokens", "--create", "--max-life-time-period", "-1",
        "--renewer-principal", "User:scheduler", *alice,
    )  # fmt: skip
    token_id, hmac = first_token(made)
    with_token(running, token_id, hmac, "a")
    for who in (alice, scheduler):
        shown = tools("kafka-delegation-tokens", "--describe", "--owner-principal", "User:alice", *who)
        assert first_token(shown) == (token_id, hmac) and "User:scheduler" in shown, shown
    renewed = tools("kafka-delegation-tokens", "--renew", "--renew-time-period", "-1", "--hmac", hmac, *scheduler)
    assert "Completed renew operation" in renewed, renewed
    listed = json.loads(heirlog(running, "list", file=alice[1]))
    assert [(each["token_id"], each["owner"], each["renewers"]) for each in listed] == [
        (token_id, "User:alice", ["User:scheduler"])
    ]
    # the other way round
    own = json.loads(heirlog(running, "create", file=alice[1]))
    with_token(running, own["token_id"], own["hmac"], "b")
    # (without an owner the tool asks for the tokens of none, and gets none)
    shown = tools("kafka-delegation-tokens", "--describe", "--owner-principal", "User:alice", *alice)
    assert own["token_id"] in shown and own["hmac"] in shown, shown
    assert end_of(running) == 2
    # with a token there is no other one, as on Kafka
    file = token_file(running, token_id, hmac)
    refused = tools.ask("kafka-delegation-tokens", "--create", "--max-life-time-period", "-1", "--command-config", file)
    assert refused.code != 0 and "DelegationTokenDisabled" not in refused.err, refused
    ended = tools("kafka-delegation-tokens", "--expire", "--expiry-time-period", "-1", "--hmac", hmac, *alice)
    assert "Completed expire operation" in ended, ended
    eventually(lambda: not logs_in(running, token_id, hmac), "a token that has ended is refused")
    assert logs_in(running, own["token_id"], own["hmac"])


def first_token(table: str) -> tuple[str, str]:
    """Id and HMAC in what the tool prints."""
    found = re.search(r"^(\S{22})\s+(\S{80,})\s", table, re.MULTILINE)
    assert found is not None, table
    return found[1], found[2]


def token_file(running: Cluster, token_id: str, hmac: str) -> str:
    login = scram_login(token_id, hmac, "SCRAM-SHA-256")
    login["sasl.jaas.config"] = login["sasl.jaas.config"].replace(";", ' tokenauth="true";')
    return client_file(running, f"token-{token_id}", running.client_config() | login)


def with_token(running: Cluster, token_id: str, hmac: str, line: str) -> None:
    file = token_file(running, token_id, hmac)
    output_of(java_command("Lines", "produce", running.bootstrap_servers, TOPIC, "", file), f"{line}\n")


def logs_in(running: Cluster, token_id: str, hmac: str) -> bool:
    try:
        heirlog(running, "list", file=token_file(running, token_id, hmac))
    except RuntimeError as error:
        return "authenticat" not in str(error)
    return True


def heirlog(running: Cluster, command: str, *, file: str) -> str:
    words = ["tokens", command, "-b", running.bootstrap_servers, "--command-config", file, "--json"]
    return output_of([sys.executable, "-m", "heirlog", *words])


# -- OAUTHBEARER


def token(key: Any, subject: str, lifetime_s: float = LIFETIME_S) -> str:
    now_s = int(time.time())
    claims = {"sub": subject, "iss": ISSUER, "aud": AUDIENCE, "iat": now_s, "exp": int(now_s + lifetime_s)}
    return jwt.encode(claims, key, "ES256", headers={"kid": KEY_ID})


def bearer_tokens(tools: Tools, running: Cluster, key: Any) -> None:
    may_write(tools, running, "bearer")
    before = end_of(running)
    path = running.data / "bearer.jwt"
    path.write_text(token(key, "bearer"))
    given = properties.read(running.data / "client.properties") | {
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": f"{LOGIN}.oauthbearer.OAuthBearerLoginModule required;",
        "sasl.login.callback.handler.class": f"{LOGIN}.oauthbearer.OAuthBearerLoginCallbackHandler",
        "sasl.oauthbearer.token.endpoint.url": f"file://{path}",
    }
    file = client_file(running, "bearer", given)
    allowed = [f"-D{ALLOWED}.urls=file://{path}", f"-D{ALLOWED}.files={path}"]
    java, *program = java_command("Lines", "produce", running.bootstrap_servers, TOPIC, "", file)
    output_of([java, *allowed, *program], "a\nb\n")
    listing = ["-Xmx256m", "-cp", jars.classpath(), CLASSES["kafka-topics"], "--list", "--command-config", file]
    said = output_of([java, *allowed, *listing, "--bootstrap-server", running.bootstrap_servers])
    assert TOPIC in said.split(), said
    assert end_of(running) == before + 2
    # who the token does not name may not write, and one that is not signed by the issuer does not get in
    path.write_text(token(key, "another"))
    refused(lambda: output_of([java, *allowed, *program], "c\n"), "TopicAuthorizationException")
    path.write_text(token(ec.generate_private_key(ec.SECP256R1()), "bearer"))
    refused(lambda: output_of([java, *allowed, *program], "d\n"), "SaslAuthenticationException")

    results: list[Any] = []
    config = librdkafka(running.client_config()) | {"sasl.mechanisms": "OAUTHBEARER"}
    for name in ("sasl.username", "sasl.password"):
        del config[name]
    producer = Producer(config | {"oauth_cb": lambda _: (token(key, "bearer"), time.time() + LIFETIME_S)})
    producer.produce(TOPIC, b"e", on_delivery=lambda error, _: results.append(error))
    assert producer.flush(60) == 0 and results == [None], results
    assert end_of(running) == before + 3


def refused(attempt: Any, why: str) -> None:
    try:
        attempt()
    except RuntimeError as error:
        assert why in str(error), error
    else:
        raise AssertionError(f"it was let in, not refused with {why}")
