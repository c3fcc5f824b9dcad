"""PKCS 12, the key store format that `keytool` writes since Java 9 and `openssl pkcs12 -export` always wrote.

The package `cryptography` (in the extra `heirlog[tls]`) reads it, old forms with RC2 and triple DES included. It is
imported on first use, so that clients without such a store need not install it.

Source: RFC 7292.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from heirlog.client.keystore import KeyStore
from heirlog.security.der import NotReadable
from heirlog.security.pkcs12_cost import check_store_cost

if TYPE_CHECKING:
    from cryptography.x509 import Certificate


def read_pkcs12(data: bytes, password: str) -> KeyStore:
    """Raises NotReadable."""
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.serialization import pkcs12
    except ImportError as error:
        raise NotReadable(
            "a PKCS12 store is read by the package cryptography: install it (it is part of the extra tls), or use PEM"
        ) from error
    check_store_cost(data)
    try:
        content = pkcs12.load_pkcs12(data, password.encode())
    except UnsupportedAlgorithm as error:
        raise NotReadable(f"it is encrypted in a way that this machine's OpenSSL does not support: {error}") from error
    except ValueError as error:
        wrong = "the password is wrong, or it is damaged" if "password" in str(error) else "it is damaged"
        raise NotReadable(f"{wrong}, or it is not a PKCS12 store") from error
    others = [found.certificate for found in content.additional_certs]
    chain = [] if content.cert is None else _chain(content.cert.certificate, others)
    encoded = {one: one.public_bytes(serialization.Encoding.DER) for one in [*chain, *others]}
    store = KeyStore(list(encoded.values()))
    if content.key is not None:
        key = content.key.private_bytes(
            serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        store.keys.append((partial(_as_it_is, key), [encoded[one] for one in chain]))
    return store


def _chain(own: Certificate, others: Sequence[Certificate]) -> list[Certificate]:
    """A key's own certificate, the one that signed it, and so on, as TLS wants them.

    A store may have certificates of other keys and authorities, in any order, which peers need not see. An authority
    that got a new key may be there twice under its name: the signature says which one it was.
    """
    chain, left = [own], list(others)
    while chain[-1].issuer != chain[-1].subject:
        named = [one for one in left if one.subject == chain[-1].issuer]
        if not named:
            break
        above = next((one for one in named if _has_signed(one, chain[-1])), named[0])
        left.remove(above)
        chain.append(above)
    return chain


def _has_signed(issuer: Certificate, certificate: Certificate) -> bool:
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm

    try:
        certificate.verify_directly_issued_by(issuer)
    except (InvalidSignature, UnsupportedAlgorithm, TypeError, ValueError):
        return False
    return True


def _as_it_is(key: bytes, password: str) -> bytes:
    """The store's password has opened the key already: Java knows no other for this format."""
    return key
