"""A whole node whose listener for clients wants a login (SASL), spoken to in bytes as in `brain`.

Each input is a connection of its own that nobody has logged in yet. In addition to what `brain` judges: without the
password of alice nobody is alice, and with it nobody is anyone else. A client with a token that has no signature is the
user whom the token names: this listener takes such tokens, so that a fuzzer can make them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fuzz.brain import CONFIG, Brain, Finding, Wire, joined

from heirlog.client.sasl import Plain, Scram
from heirlog.client.security import UnsecuredToken
from heirlog.metadata.security_configs import UNSECURED_TOKENS
from heirlog.node.sasl_connection import SaslConnection
from heirlog.oauth.tokens import unsecured_jwt
from heirlog.protocol.frames import RequestHeader, encode_request
from heirlog.protocol.messages import (
    AlterUserScramCredentialsRequest,
    ApiVersionsRequest,
    MetadataRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)
from heirlog.security.exchange import Challenge
from heirlog.security.oauthbearer import OAUTHBEARER
from heirlog.security.scram import ScramCredential, ScramExchange, ScramMechanism, credential_of, random_text
from heirlog.security.scram import salted_password as salted

SHA_256 = ScramMechanism.SHA_256
ALICE, PASSWORD, SALT, ITERATIONS = "alice", "secret", b"salt", 4096
SESSION_MS = 10_000
_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


class ClosedBrain(Brain):
    config = CONFIG | {
        "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": f"PLAIN,{SHA_256.mechanism},{OAUTHBEARER}",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.plaintext.plain.sasl.jaas.config": (
            f'{_MODULE} required username="{ALICE}" password="{PASSWORD}" user_{ALICE}="{PASSWORD}";'
        ),
        "listener.name.plaintext.oauthbearer.sasl.server.callback.handler.class": UNSECURED_TOKENS,
        "connections.max.reauth.ms": str(SESSION_MS),
    }

    def prepare(self) -> None:
        upsertion = AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
            name=ALICE,
            mechanism=SHA_256.number,
            iterations=ITERATIONS,
            salt=SALT,
            salted_password=salted(SHA_256, PASSWORD, SALT, ITERATIONS),
        )
        self.ask(AlterUserScramCredentialsRequest(upsertions=[upsertion]))
        self._wait(lambda: bool(self.node.image.scram))

    def ask(self, request: Any, version: int | None = None) -> bytes:
        connection = self.connect()
        for frame in (*plain_login(), framed(request, request.MAX_VERSION if version is None else version)):
            answered = len(connection.answers)
            self.receive(connection, frame)
            self._wait(lambda before=answered: len(connection.answers) > before)  # type: ignore[misc]
        self.hang_up(connection)
        return connection.answers[-1][1]

    def feed(self, data: bytes) -> Wire:
        connection = super().feed(data)
        client: Any = connection.client
        if isinstance(client, SaslConnection):
            by, principal = client._authenticated_by, client._within.principal
            if by != OAUTHBEARER and principal != (f"User:{ALICE}" if by else "User:ANONYMOUS"):
                raise Finding(f"{by or 'nothing'} made it {principal}")
        return connection


def framed(request: Any, version: int) -> bytes:
    header = RequestHeader(request.API_KEY, version, 1, "closed")
    return b"".join(bytes(part) for part in encode_request(header, request))[4:]  # type: ignore[arg-type]


def plain_login() -> list[bytes]:
    token = Plain(ALICE, PASSWORD).first()
    return [
        framed(SaslHandshakeRequest(mechanism="PLAIN"), 1),
        framed(SaslAuthenticateRequest(auth_bytes=token), 2),
    ]


def credential(user: str) -> ScramCredential | None:
    return credential_of(SHA_256, salted(SHA_256, PASSWORD, SALT, ITERATIONS), SALT, ITERATIONS)


def tokens() -> Iterator[tuple[str, list[bytes]]]:
    """By mechanism, what a client sends to log in; that of SCRAM fits the nonce of `Wire.random_bytes`."""
    yield "PLAIN", [Plain(ALICE, PASSWORD).first()]
    client = Scram(SHA_256.mechanism, ALICE, PASSWORD, "nonce")
    first = client.first()
    step = ScramExchange(SHA_256, credential, random_text(bytes(range(32))), b"").respond(first)
    assert isinstance(step, Challenge)
    yield SHA_256.mechanism, [first, client.answer(step.token) or b""]
    # of the time at which a simulation begins
    shown = unsecured_jwt(UnsecuredToken(ALICE, lifetime_s=10**9), 1_700_000_000)
    yield OAUTHBEARER, [f"n,,\x01auth=Bearer {shown}\x01\x01".encode(), b"\x01"]


def seeds() -> Iterator[bytes]:
    versions = framed(ApiVersionsRequest(client_software_name="x", client_software_version="1"), 4)
    asks = framed(MetadataRequest(topics=[]), 12)
    for flags in (0, 4, 12):
        for mechanism, shown in tokens():
            bare = [framed(SaslHandshakeRequest(mechanism=mechanism), 0), *shown]
            usual = [framed(SaslHandshakeRequest(mechanism=mechanism), 1)]
            usual += [framed(SaslAuthenticateRequest(auth_bytes=token), 2) for token in shown]
            yield joined(flags, [*bare, asks])
            yield joined(flags, [versions, *usual, asks])
            # on the same connection again; after the longer times, and once too late
            yield joined(flags, [*usual, asks, *usual, asks, asks, *bare])
    yield joined(0, [framed(SaslHandshakeRequest(mechanism="GSSAPI"), 1), asks])
