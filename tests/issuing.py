"""An issuer of tokens for tests: its keys, tokens that it signs, and a real server of OAuth 2 that hands both out."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Iterator
from functools import cache
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

ISSUER = "https://issuer.example"
AUDIENCE = "heirlog"


@cache
def rsa_key(bits: int = 2048) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, bits)


class Issuer:
    """Keys by kid, each with its algorithm."""

    def __init__(self) -> None:
        self.keys: dict[str, tuple[str, Any]] = {}
        self.add("ec", "ES256", ec.generate_private_key(ec.SECP256R1()))

    def add(self, kid: str, algorithm: str, key: Any) -> None:
        self.keys[kid] = algorithm, key

    def jwk(self, kid: str, /, **more: object) -> dict[str, object]:
        algorithm, key = self.keys[kid]
        kinds: dict[str, Any] = {"E": ECAlgorithm, "O": OKPAlgorithm}
        kind = OKPAlgorithm if isinstance(key, ed25519.Ed25519PrivateKey) else kinds.get(algorithm[0], RSAAlgorithm)
        found: dict[str, object] = kind.to_jwk(key.public_key(), as_dict=True)
        return {name: value for name, value in {**found, "kid": kid, "use": "sig", **more}.items() if value is not None}

    def jwks(self) -> bytes:
        return json.dumps({"keys": [self.jwk(kid) for kid in self.keys]}).encode()

    def token(self, subject: str = "alice", kid: str = "ec", lifetime_s: float = 60, **claims: object) -> str:
        """claims: None leaves one out."""
        now_s = time.time()
        given = {
            "sub": subject,
            "iat": int(now_s),
            "exp": now_s + lifetime_s,
            "iss": ISSUER,
            "aud": AUDIENCE,
            **claims,
        }
        algorithm, key = self.keys[kid]
        return jwt.encode({n: v for n, v in given.items() if v is not None}, key, algorithm, headers={"kid": kid})


def part(content: object) -> str:
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    return urlsafe_b64encode(text).decode().rstrip("=")


class OAuthServer:
    """`/jwks`, and `/token` by client credentials: a client's id is the subject of its token, its secret is SECRET."""

    SECRET = "client secret"

    def __init__(self, issuer: Issuer) -> None:
        self.issuer = issuer
        self.lifetime_s = 60.0
        self.asked: list[str] = []
        """Paths, and the scope of each token."""
        self.url = ""

    def app(self) -> Any:
        from starlette.applications import Starlette
        from starlette.requests import Request
        from starlette.responses import JSONResponse, Response
        from starlette.routing import Route

        async def jwks(request: Request) -> Response:
            self.asked.append("/jwks")
            return Response(self.issuer.jwks(), media_type="application/json")

        async def token(request: Request) -> Response:
            body = (await request.body()).decode()
            self.asked.append(f"/token {body}")
            client, _, secret = b64decode(request.headers["authorization"].partition(" ")[2]).decode().partition(":")
            if secret != self.SECRET or "grant_type=client_credentials" not in body:
                return JSONResponse({"error": "invalid_client"}, 401)
            made = self.issuer.token(client, lifetime_s=self.lifetime_s)
            return JSONResponse({"access_token": made, "token_type": "Bearer", "expires_in": int(self.lifetime_s)})

        return Starlette(routes=[Route("/jwks", jwks), Route("/token", token, methods=["POST"])])


@contextlib.contextmanager
def oauth_server(issuer: Issuer) -> Iterator[OAuthServer]:
    import uvicorn

    made = OAuthServer(issuer)
    listening = socket.create_server(("127.0.0.1", 0))
    made.url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    server = uvicorn.Server(uvicorn.Config(made.app(), log_level="error", lifespan="off", timeout_graceful_shutdown=1))
    # the socket listens already: requests wait until the thread takes them
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        server.should_exit = True
        thread.join(20)
        listening.close()
