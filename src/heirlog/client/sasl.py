"""SASL from the client's side: what is said to prove who we are, one state machine per mechanism.

    first()                     the first message
    answer(challenge)           the next one, or None: the exchange is over and, for SCRAM, the server has proved itself

    PLAIN          name and password, in clear: only over TLS or on a trusted network
    SCRAM-SHA-n    --nonce--> <--nonce', salt, iterations-- --proof--> <--signature--
    OAUTHBEARER    --token--> <--nothing, or JSON with the reason; that is answered by one 0x01, and then refused--

Kafka's own ways: passwords are UTF-8 as typed, without SASLprep; SCRAM demands at least 4,096 iterations; a token of
a delegation (KIP-48) says so by the extension `tokenauth=true`. Randomness comes from the caller.

Source: RFC 4616, RFC 5802, RFC 7628; KIP-84, KIP-255.
"""

from __future__ import annotations

import hashlib
import hmac
from binascii import Error as Base64Error
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable, Mapping
from typing import Protocol

from heirlog.client.errors import AuthenticationFailed

MIN_ITERATIONS = 4096
MAX_ITERATIONS = 10_000_000
"""What a client would compute for minutes is an attack or a mistake."""
DIGITS_MAX = len(str(MAX_ITERATIONS))
HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
GS2_HEADER = "n,,"


class Mechanism(Protocol):
    """One attempt to authenticate."""

    def first(self) -> bytes:
        """What opens the exchange."""

    def answer(self, challenge: bytes) -> bytes | None:
        """What to send next; None if nothing is left to say. Raises AuthenticationFailed."""


class Plain:
    def __init__(self, username: str, password: str) -> None:
        self._message = b"\0".join([b"", username.encode(), password.encode()])

    def first(self) -> bytes:
        return self._message

    def answer(self, challenge: bytes) -> bytes | None:
        return None


class Scram:
    """mechanism: a key of `HASHES`. nonce: printable ASCII without a comma, never used before."""

    def __init__(
        self,
        mechanism: str,
        username: str,
        password: str,
        nonce: str,
        *,
        delegation_token: bool = False,
        max_iterations: int = MAX_ITERATIONS,
    ) -> None:
        self._hash = HASHES[mechanism]
        self._password = password.encode()
        self._nonce = nonce
        self._max_iterations = max_iterations
        name = username.replace("=", "=3D").replace(",", "=2C")
        extension = ",tokenauth=true" if delegation_token else ""
        self._first_bare = f"n={name},r={nonce}{extension}"
        self._expected_signature: bytes | None = None
        self._finished = False

    def first(self) -> bytes:
        return (GS2_HEADER + self._first_bare).encode()

    def answer(self, challenge: bytes) -> bytes | None:
        if self._finished:
            return None
        fields = _scram_fields(challenge)
        if self._expected_signature is None:
            return self._proof(challenge.decode(), fields)
        if "e" in fields:
            raise AuthenticationFailed(f"the broker refused the SCRAM proof: {fields['e']}")
        if not hmac.compare_digest(_from_base64(fields.get("v", "")), self._expected_signature):
            raise AuthenticationFailed("the broker does not know the password either: its SCRAM signature is wrong")
        self._finished = True
        return None

    def _proof(self, server_first: str, fields: Mapping[str, str]) -> bytes:
        if "e" in fields:
            raise AuthenticationFailed(f"the broker refused the SCRAM exchange: {fields['e']}")
        nonce, salt, iterations = fields.get("r", ""), _from_base64(fields.get("s", "")), fields.get("i", "")
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise AuthenticationFailed(
                "the broker's SCRAM nonce does not extend the client's: the connection may be intercepted"
            )
        # Python refuses to read a number of thousands of digits
        is_number = iterations.isdecimal() and len(iterations) <= DIGITS_MAX
        if not is_number or not MIN_ITERATIONS <= int(iterations) <= self._max_iterations or not salt:
            raise AuthenticationFailed(
                f"the broker asks for SCRAM with {iterations[:20]!r} iterations; "
                f"{MIN_ITERATIONS} to {self._max_iterations} are taken"
            )
        salted = hashlib.pbkdf2_hmac(self._hash, self._password, salt, int(iterations))
        client_key = self._hmac(salted, b"Client Key")
        without_proof = f"c={_base64(GS2_HEADER.encode())},r={nonce}"
        signed = ",".join([self._first_bare, server_first, without_proof]).encode()
        signature = self._hmac(hashlib.new(self._hash, client_key).digest(), signed)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        self._expected_signature = self._hmac(self._hmac(salted, b"Server Key"), signed)
        return f"{without_proof},p={_base64(proof)}".encode()

    def _hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, self._hash)


class OAuthBearer:
    """token: asked when the exchange begins, so that each connection gets one that is still good."""

    def __init__(self, token: Callable[[], str], extensions: Mapping[str, str] | None = None) -> None:
        self._token = token
        self._extensions = dict(extensions or {})
        self._refused: str | None = None

    def first(self) -> bytes:
        pairs = [f"auth=Bearer {self._token()}", *(f"{name}={value}" for name, value in self._extensions.items())]
        return (GS2_HEADER + "\x01" + "".join(pair + "\x01" for pair in pairs) + "\x01").encode()

    def answer(self, challenge: bytes) -> bytes | None:
        if not challenge:
            return None
        if self._refused is not None:
            raise AuthenticationFailed(f"the broker refused the token: {self._refused}")
        self._refused = challenge.decode("utf-8", "replace")
        return b"\x01"


def _scram_fields(message: bytes) -> dict[str, str]:
    try:
        pairs = [part.partition("=") for part in message.decode().split(",")]
    except UnicodeDecodeError as error:
        raise AuthenticationFailed("the broker's SCRAM message is not UTF-8") from error
    return {name: value for name, _, value in pairs}


def _base64(data: bytes) -> str:
    return b2a_base64(data, newline=False).decode()


def _from_base64(text: str) -> bytes:
    try:
        return a2b_base64(text)
    except (Base64Error, ValueError) as error:
        raise AuthenticationFailed("the broker's SCRAM message contains text that is not base64") from error
