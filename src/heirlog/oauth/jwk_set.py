"""The keys of an issuer (a JSON Web Key Set), and whether one of them has signed a token.

    kty    RSA with 2,048 to 8,192 bits, EC, OKP (Ed25519). Symmetric keys are never used: a server that can check
           with one can sign with it
    use    `sig` or nothing; key_ops: `verify` or nothing
    alg    a key that names one is good for that one only; else for each of `ALGORITHMS` that fits its type and curve

A token names its key by `kid`. The algorithm is taken from the key's side: the token's `alg` has to be among those that
the key is good for, so that a public key is never read as a shared secret. What a token says of where keys are (`jku`,
`x5u`, `jwk`) is not read, and a token that says that something else has to be understood (`crit`) is refused, as not
all versions of the library do. Keys that cannot be used are left out, as an issuer may have some for other purposes.

Source: RFC 7515, 7517, 7518.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Final

from jwt import PyJWK, PyJWS
from jwt.exceptions import PyJWTError

from heirlog.security.access_token import RefusedToken, shown

ALGORITHMS: Final[Mapping[str, tuple[str, str]]] = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), ("RSA", "")),
    "ES256": ("EC", "P-256"),
    "ES384": ("EC", "P-384"),
    "ES512": ("EC", "P-521"),
    "EdDSA": ("OKP", "Ed25519"),
}
"""Type and curve of the keys."""
KEYS_MAX: Final = 1000
SAME_KID_MAX: Final = 8
"""Keys that one token is checked with."""
KID_MAX: Final = 1000
"""Characters."""
_PUBLIC: Final = {"RSA": ("n", "e"), "EC": ("crv", "x", "y"), "OKP": ("crv", "x")}
_RSA_BITS: Final = range(2048, 8193)
_RSA_EXPONENT_BITS: Final = range(2, 33)
"""A check takes time in proportion to the bits of both."""


class UnusableKeySet(Exception):
    """Says why, for the log."""


class UnknownKey(RefusedToken):
    """The token names a key that is not in the set: the issuer may have a new one."""


class _Key:
    """Made into an object of the library when a token first needs it."""

    def __init__(self, public: dict[str, str], algorithms: tuple[str, ...]) -> None:
        self._public = public
        self.algorithms = algorithms
        self._made: dict[str, PyJWK] = {}

    def of(self, algorithm: str) -> PyJWK:
        """Raises PyJWTError."""
        made = self._made.get(algorithm)
        if made is None:
            made = self._made[algorithm] = PyJWK(self._public, algorithm)
        return made


class JwkSet:
    def __init__(self, text: bytes) -> None:
        """text: the JSON document. Raises UnusableKeySet."""
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            raise UnusableKeySet("it is not JSON") from None
        keys = document.get("keys") if isinstance(document, dict) else None
        if not isinstance(keys, list):
            raise UnusableKeySet("it has no list of keys")
        if len(keys) > KEYS_MAX:
            raise UnusableKeySet(f"it has {len(keys)} keys; at most {KEYS_MAX} are taken")
        self._by_kid: defaultdict[str | None, list[_Key]] = defaultdict(list)
        for one in keys:
            key = _usable(one)
            if key is not None:
                self._by_kid[one.get("kid")].append(key)
        if not self._by_kid:
            raise UnusableKeySet("none of its keys can check a signature by " + ", ".join(ALGORITHMS))

    def __len__(self) -> int:
        return sum(len(keys) for keys in self._by_kid.values())

    def payload(self, token: str, header: Mapping[str, Any]) -> bytes:
        """What was signed. header: of the token. Raises RefusedToken; UnknownKey if a newer set may have the key."""
        kid, algorithm = header.get("kid"), header.get("alg")
        if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
            raise RefusedToken(f"its alg is {shown(algorithm)}, none of {', '.join(ALGORITHMS)}")
        if kid is not None and (not isinstance(kid, str) or len(kid) > KID_MAX):
            raise RefusedToken(f"its kid is not text of at most {KID_MAX} characters")
        if "crit" in header:
            raise RefusedToken("its header says that something has to be understood which is not (crit)")
        named = self._by_kid.get(kid, [])
        if kid is None and not named:
            # as in Kafka, a token that names no key may be of any
            named = [key for keys in self._by_kid.values() for key in keys]
        if not named:
            raise UnknownKey(f"its key {shown(kid)} is not among the issuer's")
        fitting = [key for key in named if algorithm in key.algorithms]
        if not fitting:
            raise RefusedToken(f"its key is not one for {algorithm}")
        for key in fitting[:SAME_KID_MAX]:
            try:
                found = PyJWS(algorithms=[algorithm]).decode_complete(token, key.of(algorithm), [algorithm])
            except (PyJWTError, ValueError, TypeError, RecursionError):
                continue
            signed = found["payload"]
            assert isinstance(signed, bytes), "detached payloads are refused"
            return signed
        raise RefusedToken("its signature is wrong")


def _usable(key: object) -> _Key | None:
    if not isinstance(key, dict):
        return None
    kty, kid, algorithm, use, operations = (key.get(name) for name in ("kty", "kid", "alg", "use", "key_ops"))
    if not isinstance(kty, str) or kty not in _PUBLIC or not isinstance(kid, str | None) or use not in (None, "sig"):
        return None
    if operations is not None and not (isinstance(operations, list) and "verify" in operations):
        return None
    public = {name: key[name] for name in _PUBLIC[kty] if isinstance(key.get(name), str)}
    if len(public) < len(_PUBLIC[kty]):
        return None
    if kty == "RSA" and not _is_fit_rsa(public["n"], public["e"]):
        return None
    fit = tuple(
        name
        for name, (of_type, curve) in ALGORITHMS.items()
        if of_type == kty and curve in ("", public.get("crv")) and algorithm in (None, name)
    )
    return _Key({"kty": kty, **public}, fit) if fit else None


def _is_fit_rsa(modulus: str, exponent: str) -> bool:
    return _bits(modulus) in _RSA_BITS and _bits(exponent) in _RSA_EXPONENT_BITS


def _bits(text: str) -> int:
    try:
        return int.from_bytes(urlsafe_b64decode(text + "=" * (-len(text) % 4)), "big").bit_length()
    except ValueError:
        return 0
