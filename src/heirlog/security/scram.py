"""SCRAM: a password is proved without being sent, and the server keeps nothing from which it could be used.

    client                                   server
    n,,n=alice,r=<nonce>           -->
                                   <--       r=<nonce><more>,s=<salt>,i=<iterations>
    c=biws,r=<nonce><more>,p=<proof>  -->
                                   <--       v=<signature of the server>

Kept of a user: the salt, the iterations and two keys. With the stored key the server checks a proof; whoever has it and
sees one login can pose as the user from then on, so it is in no log and no description.

Kafka's own ways: user names are ASCII, in which `,` and `=` are written =2C and =3D; passwords are UTF-8 without
SASLprep; only channel binding `n`; at least 4,096 iterations. Here the signature is over the bytes as they came, where
Kafka puts them together again from their parts.

A user that was deleted, or whose password was changed, between the two messages of a client is refused. A client may
log in again on its connection (KIP-368), and could otherwise be half-way through that for as long as it likes.

A user that does not exist gets a salt, too, always the same one, and is refused at the end like a wrong password, so
that nobody learns which users there are. Randomness comes from the caller.

Source: RFC 5802, RFC 7677; KIP-84. CVE-2024-56128 for the nonce.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from binascii import Error as Base64Error
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from heirlog.security.exchange import FAILED, Accepted, Challenge, ExchangeStep, Refused, check_name

ITERATIONS_MIN: Final = 4096
ITERATIONS_MAX: Final = 16384
"""What a request may store; Kafka's bound."""
SALT_BYTES_MAX: Final = 1024
USER_NAME_MAX: Final = 1024
"""Characters. Kafka has neither bound; each stored user is in the memory of every node."""
MESSAGE_BYTES_MAX: Final = 16 * 1024
"""To read one takes time in proportion, in which no other client is served; frames before a login may be longer."""
RANDOM_BYTES: Final = 17
_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
TOKEN_AUTHENTICATION: Final = "tokenauth=true"
"""The extension by which the name is the id of a delegation token (KIP-48)."""
_BIND_NOTHING: Final = "biws"
"""Base64 of `n,,`."""
_FIRST: Final = re.compile(r"n,(a=[^,]*)?,(n=([^,]+),r=([\x21-\x2b\x2d-\x7e]+)((?:,[A-Za-z]+=[^,]*)*))", re.ASCII)
_LAST: Final = re.compile(r"(c=([^,]*),r=([^,]*)(?:,[A-Za-z]+=[^,]*)*),p=([^,]+)", re.ASCII)
_NAME: Final = re.compile(r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+", re.ASCII)


class ScramMechanism(Enum):
    """Its number in requests and records, its name and its hash."""

    SHA_256 = (1, "SCRAM-SHA-256", "sha256")
    SHA_512 = (2, "SCRAM-SHA-512", "sha512")

    def __init__(self, number: int, mechanism: str, hash_name: str) -> None:
        self.number = number
        self.mechanism = mechanism
        self.hash_name = hash_name

    @property
    def key_bytes(self) -> int:
        return hashlib.new(self.hash_name).digest_size


BY_NUMBER: Final = {one.number: one for one in ScramMechanism}
BY_MECHANISM: Final = {one.mechanism: one for one in ScramMechanism}


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """What is kept of a user for one mechanism."""

    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int


@dataclass(frozen=True, slots=True)
class TokenLogin:
    """What a login with a delegation token needs, and what it leads to (`delegation_token.py`)."""

    credential: ScramCredential = field(repr=False)
    owner: str
    """Name of the principal."""
    ends_at_ms: int
    has_ended: bool = False
    """By the clock of this node: the right password lets nobody in, and the log says why."""


def salted_password(mechanism: ScramMechanism, password: str, salt: bytes, iterations: int) -> bytes:
    return hashlib.pbkdf2_hmac(mechanism.hash_name, password.encode(), salt, iterations)


def credential_of(mechanism: ScramMechanism, salted: bytes, salt: bytes, iterations: int) -> ScramCredential:
    """What to keep for a password that was salted and hashed (`salted_password`)."""
    client_key = hmac.digest(salted, b"Client Key", mechanism.hash_name)
    return ScramCredential(
        salt,
        hashlib.new(mechanism.hash_name, client_key).digest(),
        hmac.digest(salted, b"Server Key", mechanism.hash_name),
        iterations,
    )


def random_text(raw: bytes) -> str:
    """130 bits of `raw` in base 36: salts and nonces look like Kafka's, those of users that do not exist included."""
    number, text = int.from_bytes(raw[:RANDOM_BYTES], "big") >> 6, ""
    while number:
        number, digit = divmod(number, 36)
        text += _DIGITS[digit]
    return text or "0"


def invented_credential(mechanism: ScramMechanism, secret: bytes, user: str) -> ScramCredential:
    """For a user that does not exist: looks like one, and no password fits. secret: the same on every node."""
    seed = hmac.digest(secret, f"{mechanism.mechanism} {user}".encode(), "sha512")
    return ScramCredential(
        random_text(seed).encode(), bytes(mechanism.key_bytes), bytes(mechanism.key_bytes), ITERATIONS_MIN
    )


class ScramExchange:
    """find: the credential of a user, None if there is none. nonce: of this attempt alone, printable ASCII.

    secret: see `invented_credential`. find_token: by the id of a delegation token.
    """

    def __init__(
        self,
        mechanism: ScramMechanism,
        find: Callable[[str], ScramCredential | None],
        nonce: str,
        secret: bytes,
        find_token: Callable[[str], TokenLogin | None] = lambda token_id: None,
    ) -> None:
        self._mechanism = mechanism
        self._find = find
        self._find_token = find_token
        self._is_token = False
        self._nonce = nonce
        self._secret = secret
        self._user = ""
        self._signed_so_far = ""
        self._bindings = {_BIND_NOTHING}
        self._credential: ScramCredential | None = None
        self._exists = False
        self._is_over = False

    def respond(self, token: bytes) -> ExchangeStep:
        if self._is_over:
            raise self._refused()
        self._is_over = True
        if len(token) > MESSAGE_BYTES_MAX:
            raise self._refused()
        try:
            text = token.decode()
        except UnicodeDecodeError:
            raise self._refused() from None
        if self._credential is not None:
            return self._last(text, self._credential)
        challenge = self._first(text)
        self._is_over = False
        return challenge

    def _first(self, text: str) -> Challenge:
        match = _FIRST.fullmatch(text)
        if match is None:
            raise self._refused()
        asked_for, bare, escaped, nonce, extensions = match.groups()
        user = user_of(escaped)
        if user is None or ",m=" in extensions:
            raise self._refused()
        self._user = user
        if asked_for and user_of(asked_for[2:]) != user:
            raise Refused("Authentication failed: Client requested an authorization id that is different from username")
        self._bindings.add(_base64(text[: match.start(2)].encode()))
        self._is_token = any(part.lower() == TOKEN_AUTHENTICATION for part in extensions.split(","))
        found, _ = self._found()
        self._exists = found is not None and found.iterations >= ITERATIONS_MIN
        credential = found if found is not None and self._exists else None
        self._credential = credential or invented_credential(self._mechanism, self._secret, user)
        self._nonce = nonce + self._nonce
        answer = f"r={self._nonce},s={_base64(self._credential.salt)},i={self._credential.iterations}"
        self._signed_so_far = f"{bare},{answer}"
        return Challenge(answer.encode())

    def _last(self, text: str, credential: ScramCredential) -> Accepted:
        match = _LAST.fullmatch(text)
        if match is None:
            raise self._refused()
        without_proof, binding, nonce, proof_text = match.groups()
        if binding not in self._bindings or not hmac.compare_digest(nonce.encode(), self._nonce.encode()):
            raise self._refused()
        try:
            proof = a2b_base64(proof_text, strict_mode=True)
        except (Base64Error, ValueError):
            raise self._refused() from None
        signed = f"{self._signed_so_far},{without_proof}".encode()
        hash_name = self._mechanism.hash_name
        signature = hmac.digest(credential.stored_key, signed, hash_name)
        if len(proof) != len(signature):
            raise self._refused()
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
        is_right = hmac.compare_digest(hashlib.new(hash_name, client_key).digest(), credential.stored_key)
        found, token = self._found()
        if not is_right or not self._exists or found != credential:
            raise self._refused()
        if token is not None and token.has_ended:
            raise self._refused("the delegation token has ended by the clock of this node")
        proof_of_server = b"v=" + _base64(hmac.digest(credential.server_key, signed, hash_name)).encode()
        if token is not None:
            check_name(token.owner)
            return Accepted(token.owner, proof_of_server, token.ends_at_ms, by_delegation_token=True)
        check_name(self._user)
        return Accepted(self._user, proof_of_server)

    def _found(self) -> tuple[ScramCredential | None, TokenLogin | None]:
        """Of the user, or of the token, as they are now."""
        if not self._is_token:
            return self._find(self._user), None
        token = self._find_token(self._user)
        return (None if token is None else token.credential), token

    def _refused(self, why: str = "") -> Refused:
        return Refused(FAILED.format(self._mechanism.mechanism), self._user, why)


def user_of(escaped: str) -> str | None:
    """The name that is written with =2C and =3D; None for one that no SCRAM client can write."""
    if _NAME.fullmatch(escaped) is None:
        return None
    return escaped.replace("=2C", ",").replace("=3D", "=")


def _base64(data: bytes) -> str:
    return b2a_base64(data, newline=False).decode()
