"""TLS and SASL against a server of our own: who is believed, who is not, and what the error says."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import socket
import ssl
import threading
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from struct import unpack
from typing import Any

import pytest
from local.authorities import authority, issued

from heirlog.blocking import AuthenticationFailed, Client, Security, SecurityError
from heirlog.blocking.connection import tls_failure
from heirlog.blocking.credentials import Credentials
from heirlog.client.security import Store
from heirlog.protocol.frames import decode_request, encode_response, parse_header
from heirlog.protocol.messages import (
    ApiVersionsResponse,
    MetadataResponse,
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from heirlog.protocol.primitives import Message

CERTIFICATES = Path(__file__).resolve().parent / "certificates"
CA = Store("PEM", str(CERTIFICATES / "ca.pem"))
CLIENT = Store("PEM", str(CERTIFICATES / "client.pem"))
TOKEN = "eyJ.token.here"
SALT = b"salt"
ITERATIONS = 4096

Exchange = Callable[[list[bytes]], SaslAuthenticateResponse]
"""The answer to the SaslAuthenticate messages of one connection so far."""


class Door:
    """A broker that knows a password and no topics."""

    def __init__(self, tls: ssl.SSLContext | None, exchange: Exchange | None) -> None:
        self._tls = tls
        self._exchange = exchange
        self.connections = 0
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def stop(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listening.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        try:
            if self._tls is not None:
                sock = self._tls.wrap_socket(sock, server_side=True)
            with sock, sock.makefile("rb") as stream:
                said: list[bytes] = []
                while head := stream.read(4):
                    frame = memoryview(stream.read(*unpack(">i", head)))
                    header, position = parse_header(frame)
                    response = self._response(decode_request(header, frame, position), said)
                    parts = encode_response(header.api_key, header.api_version, header.correlation_id, response)
                    sock.sendall(b"".join(part for part in parts if isinstance(part, bytes)))
        except OSError:
            sock.close()

    def _response(self, request: Message, said: list[bytes]) -> Message:
        if isinstance(request, SaslHandshakeRequest):
            known = self._exchange is not None
            return SaslHandshakeResponse(error_code=0 if known else 33, mechanisms=[request.mechanism] if known else [])
        if isinstance(request, SaslAuthenticateRequest):
            assert self._exchange is not None
            said.append(bytes(request.auth_bytes))
            return self._exchange(said)
        if request.API_KEY == 18:
            keys = {18: 4, 3: 12, 17: 1, 36: 2}
            versions = [ApiVersionsResponse.ApiVersion(api_key=key, max_version=top) for key, top in keys.items()]
            return ApiVersionsResponse(api_keys=versions)
        return MetadataResponse(topics=[MetadataResponse.MetadataResponseTopic(name="let-in")])


@contextmanager
def door(exchange: Exchange | None = None, *, tls: bool = False, wants_certificate: bool = False) -> Iterator[Door]:
    context = None
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATES / "server.pem")
        if wants_certificate:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(CERTIFICATES / "ca.pem")
    made = Door(context, exchange)
    try:
        yield made
    finally:
        made.stop()


def enter(at: Door, security: Security, host: str = "localhost") -> list[str]:
    with Client(f"{host}:{at.port}", security=security, timeout_s=30) as client:
        return client.topic_names()


def refused(message: str) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(error_code=58, error_message=message)


def plain(said: list[bytes]) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse() if said == [b"\0alice\0secret"] else refused("Invalid username or password")


def bearer(said: list[bytes]) -> SaslAuthenticateResponse:
    if said == [f"n,,\x01auth=Bearer {TOKEN}\x01\x01".encode()]:
        return SaslAuthenticateResponse()
    if len(said) == 1:
        return SaslAuthenticateResponse(auth_bytes=b'{"status":"invalid_token"}')
    return refused("expired token")


def scram(algorithm: str, password: str = "secret", honest: bool = True) -> Exchange:
    """The server's side of RFC 5802, by its formulas."""

    def digest(key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, algorithm)

    def exchange(said: list[bytes]) -> SaslAuthenticateResponse:
        first = said[0].decode().removeprefix("n,,")
        nonce = first.partition("r=")[2] + "+server"
        server_first = f"r={nonce},s={b64encode(SALT).decode()},i={ITERATIONS}"
        if len(said) == 1:
            return SaslAuthenticateResponse(auth_bytes=server_first.encode())
        without_proof, _, proof = said[1].decode().rpartition(",p=")
        signed = f"{first},{server_first},{without_proof}".encode()
        salted = hashlib.pbkdf2_hmac(algorithm, password.encode(), SALT, ITERATIONS)
        client_key = digest(salted, b"Client Key")
        signature = digest(hashlib.new(algorithm, client_key).digest(), signed)
        if bytes(a ^ b for a, b in zip(client_key, signature, strict=True)) != b64decode(proof):
            return refused("invalid credentials")
        server_key = digest(salted, b"Server Key") if honest else b"guess"
        return SaslAuthenticateResponse(auth_bytes=b"v=" + b64encode(digest(server_key, signed)))

    return exchange


def named(mechanism: str, password: str = "secret", protocol: str = "SASL_PLAINTEXT") -> Security:
    return Security(protocol, mechanism, "alice", password, trust=CA)


@pytest.mark.parametrize(
    ("mechanism", "exchange"),
    [("PLAIN", plain), ("SCRAM-SHA-256", scram("sha256")), ("SCRAM-SHA-512", scram("sha512"))],
)
@pytest.mark.parametrize("tls", [False, True])
def test_the_right_password_opens_and_a_wrong_one_is_tried_once(mechanism: str, exchange: Exchange, tls: bool) -> None:
    protocol = "SASL_SSL" if tls else "SASL_PLAINTEXT"
    with door(exchange, tls=tls) as at:
        assert enter(at, named(mechanism, protocol=protocol)) == ["let-in"]
        entered = at.connections
        with pytest.raises(AuthenticationFailed, match="nvalid") as failed:
            enter(at, named(mechanism, "hunter2", protocol))
        assert at.connections == entered + 1
        assert "hunter2" not in str(failed.value)


def test_a_server_that_does_not_know_the_password_is_left() -> None:
    with door(scram("sha256", honest=False)) as at, pytest.raises(AuthenticationFailed, match="signature"):
        enter(at, named("SCRAM-SHA-256"))


def test_a_token_opens_and_a_refused_one_says_why() -> None:
    with door(bearer) as at:
        assert enter(at, Security("SASL_PLAINTEXT", "OAUTHBEARER", token=lambda: TOKEN)) == ["let-in"]
        with pytest.raises(AuthenticationFailed, match="expired token"):
            enter(at, Security("SASL_PLAINTEXT", "OAUTHBEARER", token=lambda: "old"))


def test_a_certificate_is_checked_for_its_authority_and_its_name() -> None:
    with door(tls=True) as at:
        assert enter(at, Security("SSL", trust=CA)) == ["let-in"]
        java = Store("JKS", str(CERTIFICATES / "trust.jks"), password="store-password")
        assert enter(at, Security("SSL", trust=java)) == ["let-in"]
        assert enter(at, Security("SSL", trust=CA, check_host_name=False), "127.0.0.1") == ["let-in"]
        assert enter(at, Security("SSL", trust=CA, tls_versions=("TLSv1.2",))) == ["let-in"]
        with pytest.raises(AuthenticationFailed, match=r"not valid for '127\.0\.0\.1'"):
            enter(at, Security("SSL", trust=CA), "127.0.0.1")
        with pytest.raises(AuthenticationFailed, match=r"is not accepted: .*; ssl\.truststore\.location names"):
            enter(at, Security("SSL"))


@pytest.mark.parametrize(
    "key",
    [
        CLIENT,
        Store("PEM", pem=Path(CLIENT.location).read_text()),
        Store("JKS", str(CERTIFICATES / "client.jks"), password="store-password"),
        Store("PKCS12", str(CERTIFICATES / "java.p12"), password="store-password"),
        Store("JKS", str(CERTIFICATES / "client.p12"), password="store-password"),
    ],
)
def test_a_server_that_wants_a_certificate_gets_ours(key: Store) -> None:
    trust = Store("JKS", str(CERTIFICATES / "trust.p12"), password="store-password")
    with door(tls=True, wants_certificate=True) as at:
        assert enter(at, Security("SSL", trust=trust, key=key)) == ["let-in"]


def test_without_a_certificate_such_a_server_says_so() -> None:
    with (
        door(tls=True, wants_certificate=True) as at,
        pytest.raises((AuthenticationFailed, ConnectionError)),
    ):
        enter(at, Security("SSL", trust=CA))


def test_a_port_of_the_other_kind_is_suspected() -> None:
    with (
        door(tls=True) as at,
        Client(f"localhost:{at.port}", timeout_s=3.0) as client,
        pytest.raises(OSError, match="does it want TLS"),
    ):
        client.topic_names()
    with door() as at, pytest.raises(AuthenticationFailed, match="does not accept PLAIN"):
        enter(at, named("PLAIN"))


@pytest.mark.parametrize(
    ("security", "complaint"),
    [
        (Security("SSL", trust=Store("PEM", "/nowhere/ca.pem")), "/nowhere/ca.pem"),
        (Security("SSL", trust=Store("PEM", pem="hunter2")), "no certificate"),
        (Security("SSL", key=Store("PEM", pem="hunter2")), "no private key"),
        (
            Security("SSL", key=Store("PKCS12", str(CERTIFICATES / "client.p12"), password="hunter2")),
            "password is wrong",
        ),
        (
            Security("SSL", key=Store("JKS", str(CERTIFICATES / "old.p12"), password="hunter2")),
            "password is wrong, or it is damaged",
        ),
        (Security("SSL", key=Store("JKS", str(CERTIFICATES / "client.jks"), password="hunter2")), "password is wrong"),
    ],
)
def test_a_store_that_cannot_be_read_is_named_without_its_password(security: Security, complaint: str) -> None:
    with pytest.raises(SecurityError, match=complaint) as failed:
        Credentials(security)
    assert "hunter2" not in str(failed.value)


@pytest.mark.parametrize(
    ("shown", "host", "what", "advice"),
    [
        (
            {"days": -1},
            "127.0.0.1",
            "certificate has expired",
            "replace it on the broker, or set the clock of this machine",
        ),
        ({}, "10.0.0.9", "IP address mismatch", "connect to a name or an address that it has"),
        ({}, "elsewhere", "Hostname mismatch", "connect to a name or an address that it has"),
        ({"by": "stranger"}, "127.0.0.1", "issuer certificate", "ssl.truststore.location names the authorities"),
    ],
)
def test_a_certificate_that_is_not_accepted_is_answered_with_what_helps(
    tmp_path: Path, shown: dict[str, Any], host: str, what: str, advice: str
) -> None:
    (tmp_path / "node.pem").write_text(issued("node", "127.0.0.1", **shown))
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    server.load_cert_chain(tmp_path / "node.pem")
    client.load_verify_locations(cadata=authority().certificate_pem)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [client.wrap_bio(to_client, to_server, server_hostname=host)]
    ends.append(server.wrap_bio(to_server, to_client, server_side=True))
    with pytest.raises(ssl.SSLCertVerificationError) as refused:
        for end in ends * 3:
            with contextlib.suppress(ssl.SSLWantReadError):
                end.do_handshake()
    sentence = str(tls_failure(refused.value))
    assert what in sentence and advice in sentence
