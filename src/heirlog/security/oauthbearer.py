r"""OAUTHBEARER from the server's side: a client shows a token, and is whom the token names.

    client                                                       server
    n,,^Aauth=Bearer <token>^A[<name>=<value>^A]*^A   -->
                                                       <--       nothing: it is let in
                                                       <--       {"status":"invalid_token"}
    ^A                                                -->
                                                       <--       SASL_AUTHENTICATION_FAILED with the same JSON

`^A` is the byte 1. `token` is judged by `access_token.py`; the name in it must be that of `a=`, if the client gives
one. Extensions (`name=value`, `EXTENSIONS_MAX` at most) are taken and mean nothing, as with Kafka's own validators. A
first message that cannot be read is refused at once. After a refusal only `^A` is taken: another token needs another
handshake and its delay.

Source: RFC 7628; KIP-255, KIP-342. Kafka's OAuthBearerSaslServer.
"""

from __future__ import annotations

import json
import re
from typing import Final

from heirlog.security.access_token import RefusedToken, TokenValidator
from heirlog.security.exchange import FAILED, Accepted, Challenge, ExchangeStep, Refused, check_name
from heirlog.security.scram import user_of

OAUTHBEARER: Final = "OAUTHBEARER"
SEPARATOR: Final = "\x01"
EXTENSIONS_MAX: Final = 100
"""To read each takes a microsecond, in which no other client is served; without a login one could send 100,000."""
_HEADER: Final = re.compile(r"n,(?:a=([^,\x01]+))?,", re.ASCII)
_PAIR: Final = re.compile(r"([A-Za-z]+)=([\x21-\x7e \t\r\n]+)", re.ASCII)
_AUTH: Final = re.compile(r"(\w+) +([-_~+/.a-zA-Z0-9]+=*)", re.ASCII)


class OAuthBearerExchange:
    def __init__(self, validator: TokenValidator) -> None:
        self._validator = validator
        self._refusal: Refused | None = None
        self._is_over = False

    def respond(self, token: bytes) -> ExchangeStep:
        if self._refusal is not None:
            refusal, self._refusal = self._refusal, None
            raise (refusal if token == SEPARATOR.encode() else _malformed("after an error it is not one byte 1"))
        if self._is_over:
            raise _malformed("a token after the end")
        self._is_over = True
        shown, asked_for = _read(token)
        try:
            found = self._validator.validate(shown)
        except RefusedToken as refused:
            status = {"status": "insufficient_scope", "scope": refused.scope}
            answer = json.dumps(status if refused.scope else {"status": "invalid_token"}, separators=(",", ":"))
            self._refusal = Refused(answer, refused.said_name, f"the token is refused: {refused.why}")
            return Challenge(answer.encode(), self._refusal)
        if asked_for and asked_for != found.name:
            raise Refused(
                "Authentication failed: Client requested an authorization id that is different from the token's "
                "principal name",
                found.name,
            )
        check_name(found.name)
        return Accepted(found.name, ends_at_ms=found.ends_at_ms)


def _read(message: bytes) -> tuple[str, str]:
    """The token, and the name that the client wants to have, or none. Raises Refused."""
    try:
        # what is beyond the maximum stays in one piece, which is no pair and no end
        head, *pairs = message.decode().split(SEPARATOR, EXTENSIONS_MAX + 3)
    except UnicodeDecodeError:
        raise _malformed("it is not UTF-8") from None
    match = _HEADER.fullmatch(head)
    asked_for = None if match is None else user_of(match[1]) if match[1] else ""
    # a separator ends each pair, and another one the message
    if asked_for is None or pairs[-2:] != ["", ""]:
        raise _malformed("it is not of the form n,,^Aauth=Bearer token^A^A")
    values: dict[str, str] = {}
    for pair in pairs[:-2]:
        found = _PAIR.fullmatch(pair)
        if found is None or found[1] in values:
            raise _malformed("an extension is not name=value, or is given twice")
        values[found[1]] = found[2]
    auth = _AUTH.fullmatch(values.get("auth", ""))
    if auth is None or auth[1].lower() != "bearer":
        raise _malformed("there is no auth=Bearer with a token")
    return auth[2], asked_for


def _malformed(why: str) -> Refused:
    return Refused(FAILED.format(OAUTHBEARER), why=f"the client's message cannot be taken: {why}")
