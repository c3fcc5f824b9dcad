"""Which keys of an issuer are used for which token."""

from __future__ import annotations

import hashlib
import hmac
import json
import warnings
from base64 import urlsafe_b64decode
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from issuing import Issuer, part, rsa_key

from heirlog.oauth.jwk_set import KEYS_MAX, JwkSet, UnknownKey, UnusableKeySet
from heirlog.security.access_token import RefusedToken


def signer(token: str, keys: JwkSet) -> str:
    """The subject of the token, if its signature is right."""
    header = json.loads(urlsafe_b64decode(token.partition(".")[0] + "=="))
    subject: str = json.loads(keys.payload(token, header))["sub"]
    return subject


def jwks(*keys: dict[str, Any]) -> JwkSet:
    return JwkSet(json.dumps({"keys": keys}).encode())


@pytest.fixture(scope="module")
def issuer() -> Issuer:
    made = Issuer()
    made.add("rsa", "RS256", rsa_key())
    made.add("rsa-512", "RS512", rsa_key())
    made.add("pss", "PS256", rsa_key())
    made.add("ec-384", "ES384", ec.generate_private_key(ec.SECP384R1()))
    made.add("ec-521", "ES512", ec.generate_private_key(ec.SECP521R1()))
    made.add("ed", "EdDSA", ed25519.Ed25519PrivateKey.generate())
    return made


def test_each_algorithm(issuer: Issuer) -> None:
    keys = JwkSet(issuer.jwks())
    assert len(keys) == 7
    assert {signer(issuer.token(kid, kid), keys) for kid in issuer.keys} == set(issuer.keys)


def test_a_changed_token_is_refused(issuer: Issuer) -> None:
    keys = JwkSet(issuer.jwks())
    header, _, signature = issuer.token().split(".")
    with pytest.raises(RefusedToken, match="signature is wrong"):
        signer(f"{header}.{part({'sub': 'mallory'})}.{signature}", keys)
    with pytest.raises(RefusedToken, match="signature is wrong"):
        signer(f"{issuer.token().rpartition('.')[0]}.AAAA", keys)


def test_a_key_of_the_same_name_of_another_issuer_is_another_key(issuer: Issuer) -> None:
    with pytest.raises(RefusedToken, match="signature is wrong"):
        signer(Issuer().token(), JwkSet(issuer.jwks()))


def test_an_unknown_kid_may_be_a_new_key_and_nothing_else_may(issuer: Issuer) -> None:
    keys = JwkSet(issuer.jwks())
    token = issuer.token()
    with pytest.raises(UnknownKey, match="its key new is"):
        keys.payload(token, {"alg": "ES256", "kid": "new"})
    with pytest.raises(UnknownKey):
        keys.payload(token, {"alg": "ES256", "kid": "../../../etc/passwd"})
    for kid in (7, ["ec"], "x" * 1001, {"a": 1}):
        with pytest.raises(RefusedToken, match="its kid") as refused:
            keys.payload(token, {"alg": "ES256", "kid": kid})
        assert not isinstance(refused.value, UnknownKey)


def test_a_token_without_a_kid_is_checked_with_the_keys_that_fit(issuer: Issuer) -> None:
    assert json.loads(JwkSet(issuer.jwks()).payload(issuer.token(), {"alg": "ES256"}))["sub"] == "alice"


@pytest.mark.parametrize("algorithm", ["none", "None", "HS256", "HS512", "ES256K", "", None, 7, ["ES256"]])
def test_an_algorithm_that_is_not_listed_is_refused(issuer: Issuer, algorithm: object) -> None:
    with pytest.raises(RefusedToken, match="its alg is"):
        JwkSet(issuer.jwks()).payload(issuer.token(), {"alg": algorithm, "kid": "ec"})


def test_a_public_key_is_no_shared_secret(issuer: Issuer) -> None:
    """The attack: sign with HMAC, keyed with what everybody can download."""
    public = rsa_key().public_key()
    for form in (serialization.Encoding.PEM, serialization.Encoding.DER):
        secret = public.public_bytes(form, serialization.PublicFormat.SubjectPublicKeyInfo)
        signed = f"{part({'alg': 'HS256', 'kid': 'rsa'})}.{part({'sub': 'mallory'})}"
        forged = f"{signed}.{part(hmac.digest(secret, signed.encode(), hashlib.sha256))}"
        with pytest.raises(RefusedToken, match="its alg is HS256"):
            signer(forged, JwkSet(issuer.jwks()))


def test_the_algorithm_is_that_of_the_key(issuer: Issuer) -> None:
    token = issuer.token(kid="rsa")
    assert signer(token, jwks(issuer.jwk("rsa", alg="RS256"))) == "alice"
    with pytest.raises(RefusedToken, match="not one for RS256"):
        signer(token, jwks(issuer.jwk("rsa", alg="PS256")))
    with pytest.raises(RefusedToken, match="not one for ES256"):
        JwkSet(issuer.jwks()).payload(token, {"alg": "ES256", "kid": "ec-384"})


def test_two_keys_of_one_name_are_told_apart_by_what_they_can_check(issuer: Issuer) -> None:
    keys = jwks(issuer.jwk("ec-384", kid="ec"), issuer.jwk("rsa", kid="ec"), issuer.jwk("ec"))
    assert signer(issuer.token(), keys) == "alice"
    others = [Issuer().jwk("ec") for _ in range(8)]
    with pytest.raises(RefusedToken, match="signature is wrong"):
        signer(issuer.token(), jwks(*others, issuer.jwk("ec")))


@pytest.mark.parametrize(
    "change",
    [
        {"use": "enc"},
        {"key_ops": ["sign"]},
        {"key_ops": "verify"},
        {"kty": "oct", "k": "c2VjcmV0"},
        {"kty": ["EC"]},
        {"crv": "secp256k1"},
        {"alg": "HS256"},
        {"x": None},
        {"x": 5},
        {"kid": 5},
    ],
)
def test_a_key_that_is_for_something_else_is_left_out(issuer: Issuer, change: dict[str, object]) -> None:
    assert len(jwks(issuer.jwk("ec"), issuer.jwk("ec", **change))) == 1


def test_a_weak_or_gigantic_rsa_key_is_left_out(issuer: Issuer) -> None:
    weak = Issuer()
    weak.add("weak", "RS256", rsa_key(1024))
    huge = issuer.jwk("rsa", n="_" * 12_000)
    slow = issuer.jwk("rsa", e="_" * 340)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(jwks(issuer.jwk("ec"), weak.jwk("weak"), huge, slow, issuer.jwk("rsa", n="!"))) == 1


def test_a_point_that_is_on_no_curve_refuses_the_token_only(issuer: Issuer) -> None:
    with pytest.raises(RefusedToken, match="signature is wrong"):
        signer(issuer.token(), jwks(issuer.jwk("ec", x="AAAA")))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"", "not JSON"),
        (b"<html>", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "no list of keys"),
        (b"{}", "no list of keys"),
        (b'{"keys":{}}', "no list of keys"),
        (b'{"keys":[]}', "none of its keys"),
        (b'{"keys":[1,null,"x",{}]}', "none of its keys"),
        (b'{"keys":[' + b"1," * KEYS_MAX + b"1]}", "1001 keys; at most 1000"),
    ],
)
def test_what_is_no_set_of_keys_is_refused(text: bytes, why: str) -> None:
    with pytest.raises(UnusableKeySet, match=why):
        JwkSet(text)


def test_headers_that_ask_for_more_are_refused(issuer: Issuer) -> None:
    """Neither a key that the token brings, nor a detached payload, nor an extension that has to be understood."""
    keys = JwkSet(issuer.jwks())
    _, key = issuer.keys["ec"]
    mine = Issuer()
    own = jwt.encode({"sub": "mallory"}, mine.keys["ec"][1], "ES256", headers={"kid": "ec", "jwk": mine.jwk("ec")})
    with pytest.raises(RefusedToken, match="signature is wrong"):
        signer(own, keys)
    for token in (
        # PyJWT before 2.12 does not look at it
        jwt.encode({"sub": "mallory"}, key, "ES256", headers={"kid": "ec", "crit": ["exp"], "exp": 1}),
        jwt.PyJWS().encode(
            b"{}", key, "ES256", headers={"kid": "ec", "b64": False, "crit": ["b64"]}, is_payload_detached=True
        ),
    ):
        with pytest.raises(RefusedToken, match="crit"):
            signer(token, keys)
