"""What a token must say: each claim, each way to get it wrong, and the bounds."""

from __future__ import annotations

import json
from typing import Any

import pytest
from issuing import part

from heirlog.security.access_token import (
    NAME_MAX,
    TOKEN_BYTES_MAX,
    AccessToken,
    ClaimRules,
    RefusedToken,
    SignedTokens,
    UnsecuredTokens,
)

NOW_S = 1_000_000
GOOD: dict[str, Any] = {"sub": "alice", "exp": NOW_S + 60, "iat": NOW_S, "iss": "me", "aud": "heirlog"}
RULES = ClaimRules(audience=("heirlog", "other"), issuer="me", clock_skew_ms=30_000)


def judged(rules: ClaimRules = RULES, **claims: object) -> AccessToken:
    given = {name: value for name, value in {**GOOD, **claims}.items() if value is not None}
    return rules.judge(given, NOW_S * 1000)


def test_a_good_token_names_the_client_and_ends_the_session() -> None:
    assert judged() == AccessToken("alice", (NOW_S + 60) * 1000)
    assert judged(exp=NOW_S + 0.5).ends_at_ms == NOW_S * 1000 + 500
    assert judged(aud=["x", "other"], nbf=NOW_S, scope="a b").name == "alice"
    by_mail = ClaimRules(audience=("heirlog",), name_claim="email", scope_claim="scp")
    assert judged(by_mail, email="a@b", sub=None, scp=["x"], scope=["a", "a"]).name == "a@b"


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ({"exp": None}, "exp is missing"),
        ({"exp": NOW_S - 30}, "expired 30 seconds ago"),
        ({"exp": "soon"}, "exp is not a number"),
        ({"exp": True}, "exp is not a number"),
        ({"exp": -1}, "exp is not a number"),
        ({"exp": float("nan")}, "exp is not a number"),
        ({"exp": float("inf")}, "exp is not a number"),
        ({"iat": None}, "iat is missing"),
        ({"iat": NOW_S + 31}, "iat is 31 seconds in the future"),
        ({"nbf": NOW_S + 31}, "nbf is 31 seconds in the future"),
        ({"nbf": []}, "nbf is not a number"),
        ({"iss": None}, "iss is"),
        ({"iss": "you"}, "iss is you"),
        ({"iss": ["me"]}, "iss is not text"),
        ({"aud": None}, "aud is missing"),
        ({"aud": "another"}, "aud is another"),
        ({"aud": []}, "aud is"),
        ({"aud": ["heirlog", 1]}, "aud is neither"),
        ({"aud": {"heirlog": 1}}, "aud is neither"),
        ({"sub": None}, "sub, which names the client"),
        ({"sub": "  "}, "sub, which names the client"),
        ({"sub": 7}, "sub, which names the client"),
        ({"sub": " alice"}, "could pass for another name"),
        ({"sub": "alice\u00a0"}, "could pass for another name"),
        ({"sub": "alice\n"}, "could pass for another name"),
        ({"sub": "x" * (NAME_MAX + 1)}, "at most 1024"),
        ({"sub": "\ud800"}, "half of a character"),
        ({"scope": ["a", "a"]}, "names a scope twice"),
    ],
)
def test_what_is_missing_or_wrong_refuses_it(claims: dict[str, object], why: str) -> None:
    with pytest.raises(RefusedToken, match=why):
        judged(**claims)


def test_clocks_may_differ_by_the_skew_and_no_more() -> None:
    for claims in ({"exp": NOW_S - 29.5}, {"iat": NOW_S + 30}, {"nbf": NOW_S + 30}):
        assert judged(**claims).name == "alice"
    exact = ClaimRules(audience=("heirlog",), clock_skew_ms=0)
    with pytest.raises(RefusedToken):
        judged(exact, exp=NOW_S)
    assert judged(exact, exp=NOW_S + 0.001).name == "alice"


def test_an_audience_that_nobody_expects_is_another_service() -> None:
    with pytest.raises(RefusedToken, match="aud"):
        judged(ClaimRules())
    assert judged(ClaimRules(), aud=None).name == "alice"


def test_an_end_beyond_all_calendars_is_the_end_of_the_calendar() -> None:
    assert judged(exp=10**300).ends_at_ms == judged(exp=1e300).ends_at_ms < 2**63


class Issued:
    """Signatures that are all right."""

    def __init__(self, payload: bytes) -> None:
        self._payload = payload

    def payload(self, token: str, header: Any) -> bytes:
        return self._payload


def signed(payload: object, token: str | None = None) -> AccessToken:
    text = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    validator = SignedTokens(Issued(text), RULES, lambda: NOW_S * 1000)
    return validator.validate(f"{part({'alg': 'ES256'})}.{part(text)}.c2ln" if token is None else token)


def test_only_what_was_signed_is_read() -> None:
    other = f"{part({'alg': 'ES256'})}.{part({**GOOD, 'sub': 'mallory'})}.c2ln"
    assert signed(GOOD, other).name == "alice"


@pytest.mark.parametrize(
    ("token", "why"),
    [
        ("", "header.claims.signature"),
        ("a.b", "header.claims.signature"),
        ("a.b.c.d", "header.claims.signature"),
        (f"{part({'alg': 'none'})}.{part(GOOD)}.", "not signed"),
        ("a.b.c", "not base64url"),
        ("a+b=.b.c", "not base64url"),
        (f"{part(b'no')}.b.c", "not JSON"),
        (f"{part([])}.b.c", "not a JSON object"),
        (part(b'{"alg":"ES256","alg":"none"}') + ".b.c", "names everything once"),
        (part(b"[" * 30_000) + ".b.c", "not JSON"),
        ("x" * (TOKEN_BYTES_MAX + 1), "at most 65536"),
    ],
)
def test_what_is_no_token_is_refused(token: str, why: str) -> None:
    with pytest.raises(RefusedToken, match=why):
        signed(GOOD, token)


@pytest.mark.parametrize(
    "payload", [b"", b"{", b"[]", b'{"sub":"a","sub":"b"}', b'{"exp":' + b"9" * 5000 + b"}", b"\xff"]
)
def test_claims_that_can_be_read_in_two_ways_or_none_are_refused(payload: bytes) -> None:
    with pytest.raises(RefusedToken):
        signed(payload)


def test_the_log_gets_the_name_that_was_signed_in_a_form_that_can_be_written() -> None:
    with pytest.raises(RefusedToken) as refused:
        signed({**GOOD, "aud": "x", "sub": "\ud800" * 200})
    assert refused.value.said_name == "?" * 100


# -- without a signature


def unsecured(header: object, claims: object, signature: str = "", scope: tuple[str, ...] = ()) -> AccessToken:
    validator = UnsecuredTokens(ClaimRules(clock_skew_ms=0), scope, lambda: NOW_S * 1000)
    return validator.validate(f"{part(header)}.{part(claims)}.{signature}")


NONE = {"alg": "none"}
PLAIN = {"sub": "alice", "exp": NOW_S + 60}


def test_an_unsecured_token_needs_a_name_and_an_end_only() -> None:
    assert unsecured(NONE, PLAIN) == AccessToken("alice", (NOW_S + 60) * 1000)
    assert unsecured(NONE, {**PLAIN, "aud": "any", "iss": "any", "iat": None}).name == "alice"
    for scope in ("a b", ["b", "a"]):
        assert unsecured(NONE, {**PLAIN, "scope": scope}, scope=("a", "b")).name == "alice"


@pytest.mark.parametrize(
    ("header", "claims", "signature", "why"),
    [
        ({"alg": "ES256"}, PLAIN, "", "unsecured tokens only"),
        ({}, PLAIN, "", "unsecured tokens only"),
        (NONE, PLAIN, "c2ln", "unsecured tokens only"),
        (NONE, {"sub": "alice"}, "", "exp is missing"),
        (NONE, {**PLAIN, "exp": NOW_S}, "", "expired 0 seconds ago"),
        (NONE, {**PLAIN, "iat": NOW_S + 1}, "", "iat is 1 seconds"),
        (NONE, {"exp": NOW_S + 60}, "", "sub, which names"),
        (NONE, {**PLAIN, "scope": 7}, "", "neither text nor a list"),
    ],
)
def test_an_unsecured_token_that_is_refused(header: object, claims: object, signature: str, why: str) -> None:
    with pytest.raises(RefusedToken, match=why):
        unsecured(header, claims, signature)


def test_a_missing_scope_is_named_to_the_client() -> None:
    with pytest.raises(RefusedToken) as refused:
        unsecured(NONE, {**PLAIN, "scope": "a"}, scope=("a", "b"))
    assert refused.value.scope == "[a, b]" and refused.value.said_name == "alice"
