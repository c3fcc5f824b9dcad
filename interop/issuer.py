"""An issuer of tokens on loopback, over HTTPS: `/token` by client credentials, `/keys`, and ways in which both fail.

A client's id is the subject of its tokens.
"""

from __future__ import annotations

import json
import ssl
import tempfile
import threading
import time
from base64 import b64decode
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

from heirlog.local.certificates import Authority
from heirlog.local.secure import write_private

NAME, AUDIENCE, SECRET = "https://issuer.example", "heirlog", "the client's secret"
HUGE_BYTES = 3 << 20
FAILURES = ("down", "slow", "huge", "garbage", "error", "redirect")


class Issuer:
    """`failure`: one of FAILURES, or none. `withdrawn`: keys that it no longer publishes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = ""
        self.failure = ""
        self.lifetime_s = 600.0
        self.asked: Counter[str] = Counter()
        """Requests by path, and tokens by the key that signed them."""
        self.keys: dict[str, Any] = {}
        self.withdrawn: set[str] = set()
        self.signs_with = ""
        self.is_over = threading.Event()
        self.rotate("one")

    def rotate(self, kid: str) -> None:
        """A further key, which is only published so far unless it is the first."""
        self.keys[kid] = ec.generate_private_key(ec.SECP256R1())
        self.signs_with = self.signs_with or kid

    def token(self, subject: str, kid: str = "") -> str:
        kid = kid or self.signs_with
        now_s = time.time()
        claims = {"sub": subject, "iss": NAME, "aud": AUDIENCE, "iat": int(now_s), "exp": int(now_s + self.lifetime_s)}
        self.asked[kid] += 1
        return jwt.encode(claims, self.keys[kid], "ES256", headers={"kid": kid})

    def key_set(self) -> bytes:
        def jwk(kid: str) -> dict[str, Any]:
            public = ECAlgorithm.to_jwk(self.keys[kid].public_key(), as_dict=True)
            return public | {"kid": kid, "use": "sig", "alg": "ES256"}

        return json.dumps({"keys": [jwk(kid) for kid in self.keys if kid not in self.withdrawn]}).encode()

    @property
    def trust(self) -> Path:
        return self.folder / "issuer-ca.pem"


class _Handler(BaseHTTPRequestHandler):
    issuer: Issuer

    def do_GET(self) -> None:
        self.issuer.asked[self.path] += 1
        self._answer(self.issuer.key_set() if self.path == "/keys" else None)

    def do_POST(self) -> None:
        issuer = self.issuer
        issuer.asked[self.path] += 1
        form = self.rfile.read(int(self.headers["Content-Length"])).decode()
        given = b64decode(self.headers.get("Authorization", "").partition(" ")[2]).decode()
        client, _, secret = given.partition(":")
        if self.path != "/token" or "grant_type=client_credentials" not in form or secret != SECRET:
            self._answer(None, 401)
            return
        content = {"access_token": issuer.token(client), "token_type": "Bearer", "expires_in": int(issuer.lifetime_s)}
        self._answer(json.dumps(content).encode())

    def _answer(self, content: bytes | None, status: int = 404) -> None:
        failure = self.issuer.failure
        if failure == "down":
            self.close_connection = True
            return
        status = 200 if content is not None else status
        if failure == "error":
            status = 503
        elif failure == "redirect":
            status = 302
        elif failure == "huge":
            content = b'{"keys": [' + b" " * HUGE_BYTES
        elif failure == "garbage":
            content = b'{"keys": [[], {"kty": "EC"}, 7, null]'
        self.send_response(status)
        if failure == "redirect":
            self.send_header("Location", f"{self.issuer.url}/keys")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content or b"")))
        self.end_headers()
        if failure == "slow":
            # one byte now and then: it answers, and never ends
            for byte in content or b"":
                self.wfile.write(bytes([byte]))
                if self.issuer.failure != "slow" or self.issuer.is_over.wait(0.5):
                    self.close_connection = True
                    return
            return
        self.wfile.write(content or b"")

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: what comes is counted."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away."""


@contextmanager
def started() -> Iterator[Issuer]:
    with tempfile.TemporaryDirectory(prefix="heirlog-issuer-") as directory:
        issuer = Issuer(Path(directory))
        authority = Authority.new("authority of the issuer")
        issuer.trust.write_text(authority.certificate_pem)
        write_private(issuer.folder / "issuer.pem", authority.issue("issuer", ["127.0.0.1", "localhost"]))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(issuer.folder / "issuer.pem")
        server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"issuer": issuer}))
        # the handshake in the thread of the connection: one that does not come stops no other
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        issuer.url = f"https://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield issuer
        finally:
            issuer.is_over.set()
            with suppress(OSError):
                server.shutdown()
            server.server_close()
