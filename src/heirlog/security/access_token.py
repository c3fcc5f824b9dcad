"""Access tokens of OAUTHBEARER: what a JSON Web Token must say before its bearer is let in.

    SignedTokens      the signature is that of a key of the issuer, then `ClaimRules`
    UnsecuredTokens   without a signature (`alg: none`), for tests: a client that can write JSON may take any name

Both name the client by a claim (usually `sub`) and end its session with `exp`. What refuses a token is in the log and
never in the answer, which is `invalid_token` for all reasons but a missing scope.

    exp   required, in the future; may have passed by the clock skew
    iat   required (unsecured: optional), not in the future by more than the clock skew
    nbf   optional, likewise
    iss   the expected issuer, where one is configured
    aud   one of the expected audiences. Without any, a token that is meant for an audience is not meant for us

JSON with the same name twice is refused: two readers could see two tokens. Numbers, sizes and names have bounds, since
an issuer may let its users choose claims.

Source: KIP-255, KIP-768; RFC 7519. Kafka's BrokerJwtValidator and OAuthBearerUnsecuredValidatorCallbackHandler.
"""

from __future__ import annotations

import json
import math
import re
from binascii import Error as Base64Error
from binascii import a2b_base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

TOKEN_BYTES_MAX: Final = 64 * 1024
NAME_MAX: Final = 1024
"""Characters."""
END_OF_TIME_S: Final = 253_402_300_799
"""The last second of the year 9999: what ends later has no end that a session could reach."""
SHOWN_MAX: Final = 100
"""Characters of a claim in the log."""
_BASE64URL: Final = re.compile(r"[A-Za-z0-9_-]*", re.ASCII)


class RefusedToken(Exception):
    """Says why, for the log: nothing of the token but names. scope: what it lacks; the client gets this."""

    def __init__(self, why: str, scope: str = "", said_name: str = "") -> None:
        super().__init__(why)
        self.why = why
        self.scope = scope
        self.said_name = said_name


@dataclass(frozen=True, slots=True)
class AccessToken:
    name: str
    """Of the principal."""
    ends_at_ms: int


class TokenValidator(Protocol):
    def validate(self, token: str) -> AccessToken:
        """Raises RefusedToken."""


class Signatures(Protocol):
    def payload(self, token: str, header: Mapping[str, Any]) -> bytes:
        """What an issuer whom this node trusts has signed. Raises RefusedToken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRules:
    audience: tuple[str, ...] = ()
    issuer: str | None = None
    clock_skew_ms: int = 30_000
    name_claim: str = "sub"
    scope_claim: str = "scope"

    def judge(self, claims: Mapping[str, Any], now_ms: int) -> AccessToken:
        """Raises RefusedToken."""
        ends_at_ms = _unexpired(claims, now_ms, self.clock_skew_ms)
        _check_begun(claims, "iat", now_ms, self.clock_skew_ms, is_required=True)
        _check_begun(claims, "nbf", now_ms, self.clock_skew_ms, is_required=False)
        self._check_issuer(claims)
        self._check_audience(claims)
        scope = claims.get(self.scope_claim)
        if isinstance(scope, list) and len({str(one) for one in scope}) < len(scope):
            raise RefusedToken(f"{self.scope_claim} names a scope twice")
        return AccessToken(_name(claims, self.name_claim), ends_at_ms)

    def _check_issuer(self, claims: Mapping[str, Any]) -> None:
        found = claims.get("iss")
        if found is not None and not isinstance(found, str):
            raise RefusedToken("iss is not text")
        if self.issuer is not None and found != self.issuer:
            raise RefusedToken(f"iss is {shown(found)}, not sasl.oauthbearer.expected.issuer")

    def _check_audience(self, claims: Mapping[str, Any]) -> None:
        found = claims.get("aud")
        audience = [found] if isinstance(found, str) else found
        if audience is None:
            if self.audience:
                raise RefusedToken("aud is missing")
            return
        if not isinstance(audience, list) or not all(isinstance(one, str) for one in audience):
            raise RefusedToken("aud is neither text nor a list of texts")
        if not set(audience) & set(self.audience):
            raise RefusedToken(f"aud is {shown(found)}, none of sasl.oauthbearer.expected.audience")


class SignedTokens:
    def __init__(self, signatures: Signatures, rules: ClaimRules, now_ms: Callable[[], int]) -> None:
        """now_ms: wall time."""
        self._signatures = signatures
        self._rules = rules
        self._now_ms = now_ms

    def validate(self, token: str) -> AccessToken:
        header, _, signature = _parts(token)
        if not signature:
            raise RefusedToken("it is not signed")
        # the claims are read only once they are known to be the issuer's
        signed = _object(self._signatures.payload(token, _object(_decoded(header, "header"), "header")), "claims")
        try:
            return self._rules.judge(signed, self._now_ms())
        except RefusedToken as refused:
            raise RefusedToken(refused.why, refused.scope, shown(signed.get(self._rules.name_claim, ""))) from None


class UnsecuredTokens:
    """required_scope: each of it must be in the token."""

    def __init__(self, rules: ClaimRules, required_scope: tuple[str, ...], now_ms: Callable[[], int]) -> None:
        self._rules = rules
        self._required_scope = required_scope
        self._now_ms = now_ms

    def validate(self, token: str) -> AccessToken:
        header_text, claims_text, signature = _parts(token)
        header = _object(_decoded(header_text, "header"), "header")
        if header.get("alg") != "none" or signature:
            raise RefusedToken("it is signed, and this listener takes unsecured tokens only")
        claims = _object(_decoded(claims_text, "claims"), "claims")
        rules, now_ms = self._rules, self._now_ms()
        name = _name(claims, rules.name_claim)
        _check_begun(claims, "iat", now_ms, rules.clock_skew_ms, is_required=False)
        ends_at_ms = _unexpired(claims, now_ms, rules.clock_skew_ms)
        if (_seconds(claims, "iat") or 0) * 1000 >= ends_at_ms:
            raise RefusedToken("exp is not after iat", said_name=shown(name))
        scope = claims.get(rules.scope_claim, [])
        has = scope.split() if isinstance(scope, str) else scope
        if not isinstance(has, list):
            raise RefusedToken(f"{rules.scope_claim} is neither text nor a list", said_name=shown(name))
        for one in self._required_scope:
            if one not in has:
                raise RefusedToken(f"its scope lacks {one}", f"[{', '.join(self._required_scope)}]", shown(name))
        return AccessToken(name, ends_at_ms)


def shown(value: object) -> str:
    """A claim for the log: short, and text that can be written."""
    text = value if isinstance(value, str) else type(value).__name__
    return text[:SHOWN_MAX].encode("utf-8", "replace").decode()


def _parts(token: str) -> tuple[str, str, str]:
    if len(token) > TOKEN_BYTES_MAX:
        raise RefusedToken(f"it has {len(token)} bytes; at most {TOKEN_BYTES_MAX} are taken")
    parts = token.split(".", 3)
    if len(parts) != 3 or not parts[0] or not parts[1]:
        raise RefusedToken("it is not of the form header.claims.signature")
    return parts[0], parts[1], parts[2]


def _decoded(part: str, what: str) -> bytes:
    # the decoder skips what it does not know
    if _BASE64URL.fullmatch(part) is None:
        raise RefusedToken(f"its {what} is not base64url")
    try:
        return a2b_base64(part.replace("-", "+").replace("_", "/") + "=" * (-len(part) % 4), strict_mode=True)
    except (Base64Error, ValueError):
        raise RefusedToken(f"its {what} is not base64url") from None


def _object(text: bytes, what: str) -> dict[str, Any]:
    try:
        found = json.loads(text.decode(), object_pairs_hook=_once)
    except (ValueError, RecursionError):
        raise RefusedToken(f"its {what} is not JSON that names everything once") from None
    if not isinstance(found, dict):
        raise RefusedToken(f"its {what} is not a JSON object")
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands twice")
    return found


def _seconds(claims: Mapping[str, Any], claim: str) -> float | None:
    found = claims.get(claim)
    if found is None:
        return None
    is_number = isinstance(found, int | float) and not isinstance(found, bool)
    if not is_number or (isinstance(found, float) and not math.isfinite(found)) or found < 0:
        raise RefusedToken(f"{claim} is not a number of seconds")
    return float(min(found, END_OF_TIME_S))


def _unexpired(claims: Mapping[str, Any], now_ms: int, skew_ms: int) -> int:
    ends_s = _seconds(claims, "exp")
    if ends_s is None:
        raise RefusedToken("exp is missing")
    ends_at_ms = int(ends_s * 1000)
    if now_ms - skew_ms >= ends_at_ms:
        raise RefusedToken(f"it expired {(now_ms - ends_at_ms) // 1000} seconds ago")
    return ends_at_ms


def _check_begun(claims: Mapping[str, Any], claim: str, now_ms: int, skew_ms: int, *, is_required: bool) -> None:
    begins_s = _seconds(claims, claim)
    if begins_s is None:
        if is_required:
            raise RefusedToken(f"{claim} is missing")
        return
    if begins_s * 1000 > now_ms + skew_ms:
        raise RefusedToken(f"{claim} is {int(begins_s - now_ms / 1000)} seconds in the future: do the clocks differ?")


def _name(claims: Mapping[str, Any], claim: str) -> str:
    found = claims.get(claim)
    name = found if isinstance(found, str) else ""
    if not name.strip():
        raise RefusedToken(f"{claim}, which names the client, is missing or not text")
    if name != name.strip():
        # Kafka cuts it off: then two users of the issuer are one here
        raise RefusedToken(f"{claim} begins or ends with white space: it could pass for another name")
    if len(name) > NAME_MAX:
        raise RefusedToken(f"{claim} has {len(name)} characters; at most {NAME_MAX} are taken")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise RefusedToken(f"{claim} holds half of a character") from None
    return name
