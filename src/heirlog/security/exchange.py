"""SASL from the server's side: what one mechanism answers to the tokens of a client that proves who it is.

    respond(token)   Challenge: send it, another token follows
                     Accepted: the client is who it says; its last answer, and when its credentials end
                     or Refused is raised, with the sentence that the client gets

PLAIN is one token with name and password. For the others see `scram.py` and `oauthbearer.py`. No sentence tells whether
a user exists.

Source: RFC 4616; KIP-43, KIP-152.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

NOBODY_ELSE: Final = ("*", "ANONYMOUS")
"""Names that an ACL reads in another way."""
FAILED: Final = "Authentication failed during authentication due to invalid credentials with SASL mechanism {}"
"""Kafka's sentence for everything that it does not explain to the client."""


class Refused(Exception):
    """The client is not who it says. For the log: `said_name`, as the client has it, and `why`, if it says more."""

    def __init__(self, sentence: str, said_name: str = "", why: str = "") -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.said_name = said_name
        self.why = why or sentence


@dataclass(frozen=True, slots=True)
class Challenge:
    token: bytes


@dataclass(frozen=True, slots=True)
class Accepted:
    name: str
    """Of the principal, whose type is User."""
    token: bytes = b""
    ends_at_ms: int | None = None
    """Wall time at which the credentials end; None: they do not."""
    by_delegation_token: bool = False


ExchangeStep: TypeAlias = Challenge | Accepted


class Exchange(Protocol):
    """One attempt."""

    def respond(self, token: bytes) -> ExchangeStep:
        """Raises Refused."""


class PlainExchange:
    """passwords: by user."""

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._passwords = passwords

    def respond(self, token: bytes) -> ExchangeStep:
        try:
            parts = token.decode().split("\0", 3)
        except UnicodeDecodeError:
            raise Refused("Authentication failed: the SASL/PLAIN message is not UTF-8") from None
        if len(parts) != 3:
            raise Refused(f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}")
        asked_for, user, password = parts
        if not user:
            raise Refused("Authentication failed: username not specified")
        if not password:
            raise Refused("Authentication failed: password not specified", user)
        expected = self._passwords.get(user)
        # compared also for a user that does not exist, so that the time says nothing
        is_right = hmac.compare_digest(password.encode(), (expected or password + "x").encode())
        if expected is None or not is_right:
            raise Refused("Authentication failed: Invalid username or password", user)
        if asked_for and asked_for != user:
            raise Refused("Authentication failed: Client requested an authorization id that is different from username")
        check_name(user)
        return Accepted(user)


def check_name(name: str) -> None:
    """Raises Refused for a name that would be read as another principal."""
    if name in NOBODY_ELSE:
        raise Refused(f"Authentication failed: the name {name} is reserved", name)
