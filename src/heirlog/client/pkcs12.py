"""PKCS 12, the key store format that `keytool` writes since Java 9 and `openssl pkcs12 -export` always wrote.

The package `cryptography` (in the extra `heirlog[tls]`) reads it, old forms with RC2 and triple DES included. It is
imported on first use, so that clients without such a store need not install it.

Source: RFC 7292.
"""

from __future__ import annotations

from functools import partial

from heirlog.client.keystore import KeyStore
from heirlog.security.der import NotReadable


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
    try:
        content = pkcs12.load_pkcs12(data, password.encode())
    except UnsupportedAlgorithm as error:
        raise NotReadable(f"it is encrypted in a way that this machine's OpenSSL does not support: {error}") from error
    except ValueError as error:
        wrong = "the password is wrong, or it is damaged" if "password" in str(error) else "it is damaged"
        raise NotReadable(f"{wrong}, or it is not a PKCS12 store") from error
    # TLS wants the key's own certificate first
    own = [] if content.cert is None else [content.cert]
    certificates = [
        found.certificate.public_bytes(serialization.Encoding.DER) for found in [*own, *content.additional_certs]
    ]
    store = KeyStore(certificates)
    if content.key is not None:
        key = content.key.private_bytes(
            serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        store.keys.append((partial(_as_it_is, key), certificates))
    return store


def _as_it_is(key: bytes, password: str) -> bytes:
    """The store's password has opened the key already: Java knows no other for this format."""
    return key
