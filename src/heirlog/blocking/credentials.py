"""What a client shows at the door of each broker: TLS around the socket, and a SASL exchange.

Made once per client, because reading stores and certificates takes longer than connecting. The certificate of a broker
is always checked against the authorities; its name too unless `check_host_name` is off.
"""

from __future__ import annotations

import os
import secrets
import socket
import ssl
import tempfile
from pathlib import Path

from heirlog.blocking.tokens import Tokens
from heirlog.client.keystore import NotReadable, is_pkcs12, read_jks
from heirlog.client.pkcs12 import read_pkcs12
from heirlog.client.sasl import Mechanism, OAuthBearer, Plain, Scram
from heirlog.client.security import Security, SecurityError, Store

NONCE_BYTES = 24
VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


class Credentials:
    """Raises SecurityError for stores that cannot be read."""

    def __init__(self, security: Security) -> None:
        self._security = security
        self._tls = tls_context(security) if security.uses_tls else None
        source = security.token
        self._tokens = None if source is None else Tokens(source)

    @property
    def mechanism_name(self) -> str | None:
        return self._security.mechanism if self._security.uses_sasl else None

    def wrap(self, sock: socket.socket, host: str) -> socket.socket:
        """`sock` inside TLS, where it is wanted. Raises OSError, of which SSLError is one."""
        if self._tls is None:
            return sock
        try:
            return self._tls.wrap_socket(sock, server_hostname=host)
        except (ssl.SSLEOFError, ConnectionResetError) as error:
            raise ConnectionError("closed during the TLS handshake") from error

    def mechanism(self) -> Mechanism:
        """A fresh exchange."""
        security = self._security
        if security.mechanism == "PLAIN":
            return Plain(security.username, security.password)
        if security.mechanism == "OAUTHBEARER":
            assert self._tokens is not None, "checked by Security"
            return OAuthBearer(self._tokens.token, dict(security.extensions))
        return Scram(
            security.mechanism,
            security.username,
            security.password,
            secrets.token_urlsafe(NONCE_BYTES),
            delegation_token=security.delegation_token,
        )


def tls_context(security: Security) -> ssl.SSLContext:
    """Raises SecurityError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = security.check_host_name
    context.verify_mode = ssl.CERT_REQUIRED
    wanted = [VERSIONS[version] for version in security.tls_versions]
    context.minimum_version, context.maximum_version = min(wanted), max(wanted)
    if security.trust is None:
        context.load_default_certs()
    else:
        _load_trust(context, security.trust)
    if security.key is not None:
        _load_key(context, security.key, security.key_password)
    return context


def _load_trust(context: ssl.SSLContext, store: Store) -> None:
    text = store.pem
    if store.location:
        text = _text_of(store, "ssl.truststore")
    try:
        context.load_verify_locations(cadata=text)
    except (ssl.SSLError, ValueError) as error:
        raise SecurityError("ssl.truststore: there is no certificate in it that can be read") from error


def _load_key(context: ssl.SSLContext, store: Store, key_password: str) -> None:
    text = store.pem or _text_of(store, "ssl.keystore", key_password)
    # a JKS key has been unprotected already; for PEM, Kafka takes ssl.key.password
    password = key_password or store.password
    handle, path = tempfile.mkstemp(prefix="heirlog-key-")  # OpenSSL takes a key from a file only; its mode is 0600
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
        # never None: OpenSSL would ask for the password on the terminal
        context.load_cert_chain(path, password=password or (lambda: ""))
    except (ssl.SSLError, ValueError, OSError) as error:
        raise SecurityError(
            "ssl.keystore: no private key with its certificate can be read from it (is ssl.key.password right?)"
        ) from error
    finally:
        os.unlink(path)


def _text_of(store: Store, name: str, key_password: str = "") -> str:
    """A store's content as PEM. Raises SecurityError."""
    try:
        data = Path(store.location).read_bytes()
    except OSError as error:
        raise SecurityError(f"{name}.location cannot be read: {error.strerror}: {store.location}") from error
    if store.type == "PEM":
        return data.decode("ascii", "replace")
    try:
        # as in Java, the content says which of the two it is, whatever the type says
        content = read_pkcs12(data, store.password) if is_pkcs12(data) else read_jks(data, store.password)
        return content.trusted_pem() if name == "ssl.truststore" else content.key_pem(key_password or store.password)
    except NotReadable as error:
        raise SecurityError(f"{name}.location {store.location}: {error}") from error
