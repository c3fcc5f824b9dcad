"""Delegation tokens as credentials: what their bearers log in with, and how a node knows it again.

    id      22 characters, at random; no secret
    HMAC    HMAC-SHA-512 of the id, keyed with `delegation.token.secret.key`; in base64 it is the token's password

A client logs in with SCRAM, the id as its name and the extension `tokenauth=true`; it is then the token's owner. The
HMAC is stored nowhere: each node computes it again. The SCRAM credential of a token costs a login of 4,096 iterations,
so a node derives it at the token's first login and remembers some.

Source: KIP-48.
"""

from __future__ import annotations

import hmac
from binascii import b2a_base64
from collections.abc import Mapping
from typing import Final

from heirlog.security.scram import (
    ITERATIONS_MIN,
    ScramCredential,
    ScramMechanism,
    credential_of,
    random_text,
    salted_password,
)

REMEMBERED_MAX: Final = 1000
"""Credentials; the oldest is derived again when it is used."""


class TokenSecrets:
    """secret_key: `delegation.token.secret.key`."""

    def __init__(self, secret_key: str) -> None:
        self._key = secret_key.encode()
        self._ids: dict[bytes, str] = {}
        """By HMAC: of the tokens that were there at the last look-up."""
        self._credentials: dict[tuple[str, ScramMechanism], ScramCredential] = {}

    def hmac_of(self, token_id: str) -> bytes:
        return hmac.digest(self._key, token_id.encode(), "sha512")

    def id_of(self, token_hmac: bytes, tokens: Mapping[str, object]) -> str | None:
        """Which of the tokens, by id, has this HMAC."""
        found = self._ids.get(token_hmac)
        if found in tokens:
            return found
        known = set(self._ids.values())
        self._ids = {mac: token_id for mac, token_id in self._ids.items() if token_id in tokens}
        self._ids |= {self.hmac_of(token_id): token_id for token_id in tokens if token_id not in known}
        return self._ids.get(token_hmac)

    def credential(self, token_id: str, mechanism: ScramMechanism) -> ScramCredential:
        key = token_id, mechanism
        found = self._credentials.pop(key, None)
        if found is None:
            token_hmac = self.hmac_of(token_id)
            # the same at each attempt, and known to no client before it logs in
            salt = random_text(hmac.digest(self._key, b"salt " + token_hmac, "sha256")).encode()
            password = b2a_base64(token_hmac, newline=False).decode()
            salted = salted_password(mechanism, password, salt, ITERATIONS_MIN)
            found = credential_of(mechanism, salted, salt, ITERATIONS_MIN)
            while len(self._credentials) >= REMEMBERED_MAX:
                del self._credentials[next(iter(self._credentials))]
        self._credentials[key] = found
        return found
