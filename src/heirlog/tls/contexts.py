"""An `ssl.SSLContext` for one listener, or for the connections to one kind of peer, made from its settings.

Keys are given to OpenSSL through files in memory where the system has them, so that none is written to a disk.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from heirlog.bounded_file import read_bounded
from heirlog.client.keystore import is_pkcs12, read_jks
from heirlog.client.pkcs12 import read_pkcs12
from heirlog.client.security import Security, SecurityError, Store
from heirlog.security.der import NotReadable
from heirlog.security.encrypted_key import check_cost
from heirlog.security.pem import in_lines

VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
CLIENT_AUTH: Final = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
STORE_MAX_BYTES: Final = 1 << 20
"""A node reads stores in its event loop, also those that a client names."""


def client_context(security: Security) -> ssl.SSLContext:
    """Raises SecurityError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = security.check_host_name
    # a name that is only the common name was not given to a host
    context.hostname_checks_common_name = False
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.verify_mode = ssl.CERT_REQUIRED
    _set_versions(context, security)
    if security.trust is None:
        context.load_default_certs()
    else:
        _load_trust(context, security.trust)
    if security.key is not None:
        _load_key(context, security.key, security.key_password)
    _set_cipher_suites(context, security.cipher_suites)
    return context


def server_context(security: Security, client_auth: str, cipher_suites: Sequence[str] = ()) -> ssl.SSLContext:
    """client_auth: none, requested or required. cipher_suites: by their standard names; none: OpenSSL's own choice.

    Raises SecurityError.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _set_versions(context, security)
    # off by default in Python: a client could make the server compute without end
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.verify_mode = CLIENT_AUTH[client_auth]
    if context.verify_mode is not ssl.CERT_NONE:
        if security.trust is None:
            raise SecurityError(
                f"ssl.client.auth={client_auth} needs the certificates of the authorities that sign clients' "
                "certificates: set ssl.truststore.location or ssl.truststore.certificates"
            )
        # a session that is resumed would be that of the certificate which was trusted then
        context.num_tickets = 0
        context.options |= ssl.OP_NO_TICKET
    if security.trust is not None:
        _load_trust(context, security.trust)
    if security.key is None:
        raise SecurityError(
            "a listener with TLS needs a certificate and its private key: set ssl.keystore.location (and "
            "ssl.keystore.type), or ssl.keystore.key with ssl.keystore.certificate.chain"
        )
    _load_key(context, security.key, security.key_password)
    _set_cipher_suites(context, cipher_suites)
    return context


def certificate_of(security: Security) -> bytes:
    """The certificate of the key store itself, in DER. Raises SecurityError."""
    assert security.key is not None, "a server has one"
    text = security.key.pem or _text_of(security.key, "ssl.keystore", security.key_password)
    _, begin, rest = text.partition(ssl.PEM_HEADER)
    inside, end, _ = rest.partition(ssl.PEM_FOOTER)
    try:
        return ssl.PEM_cert_to_DER_cert(begin + inside + end)
    except ValueError as error:
        raise SecurityError("ssl.keystore: there is no certificate in it that can be read") from error


def _set_versions(context: ssl.SSLContext, security: Security) -> None:
    wanted = [VERSIONS[version] for version in security.tls_versions]
    context.minimum_version, context.maximum_version = min(wanted), max(wanted)


def _set_cipher_suites(context: ssl.SSLContext, names: Sequence[str]) -> None:
    """OpenSSL chooses those of TLS 1.3 itself; naming none of them, or only them, chooses the version."""
    if not names:
        return
    known = {cipher["name"] for cipher in context.get_ciphers()}
    newest = [name for name in names if name in known and name.startswith("TLS_")]
    older = [openssl_name(name) for name in names if name not in newest]
    for name, given in zip(older, (name for name in names if name not in newest), strict=True):
        if name not in known:
            raise SecurityError(f"ssl.cipher.suites: {given} is not a cipher suite of this machine's OpenSSL")
    if older:
        context.set_ciphers(":".join(older))
    else:
        context.minimum_version = ssl.TLSVersion.TLSv1_3
    if not newest:
        context.maximum_version = ssl.TLSVersion.TLSv1_2
    if context.minimum_version > context.maximum_version:
        raise SecurityError("ssl.cipher.suites has no cipher suite of the versions in ssl.enabled.protocols")


def openssl_name(standard: str) -> str:
    """OpenSSL's name of a cipher suite of TLS 1.2: TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 is
    ECDHE-RSA-AES128-GCM-SHA256."""
    exchange, _, cipher = standard.removeprefix("TLS_").partition("_WITH_")
    cipher = cipher.replace("CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305").replace("AES_", "AES")
    parts = [] if exchange == "RSA" else [exchange]
    return "_".join([*parts, cipher]).replace("_CBC", "").replace("_", "-")


def _load_trust(context: ssl.SSLContext, store: Store) -> None:
    text = store.pem
    if store.location:
        text = _text_of(store, "ssl.truststore")
    # as in Java, each certificate of the store is trusted: also one that another authority has signed
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        # comments may be in any language, and Python takes ASCII only
        context.load_verify_locations(cadata=text.encode("ascii", "ignore").decode())
    except (ssl.SSLError, TypeError, ValueError) as error:
        raise SecurityError("ssl.truststore: there is no certificate in it that can be read") from error


def _load_key(context: ssl.SSLContext, store: Store, key_password: str) -> None:
    text = store.pem or _text_of(store, "ssl.keystore", key_password)
    try:
        check_cost(text)
    except NotReadable as error:
        raise SecurityError(f"ssl.keystore: {error}") from error
    # a JKS key has been unprotected already; for PEM, Kafka takes ssl.key.password
    password = key_password or store.password
    try:
        with _as_file(text) as path:
            # never None: OpenSSL would ask for the password on the terminal
            context.load_cert_chain(path, password=password or (lambda: ""))
    except (ssl.SSLError, TypeError, ValueError, OSError) as error:
        raise SecurityError(
            "ssl.keystore: no private key with its certificate can be read from it (is ssl.key.password right?)"
        ) from error


@contextmanager
def _as_file(text: str) -> Iterator[str]:
    """OpenSSL reads a key from a file only."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("heirlog-key")
        try:
            os.write(descriptor, text.encode())
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
        return
    descriptor, path = tempfile.mkstemp(prefix="heirlog-key-")  # its mode is 0600
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
        yield path
    finally:
        os.unlink(path)


def _text_of(store: Store, name: str, key_password: str = "") -> str:
    """A store's content as PEM. Raises SecurityError."""
    try:
        data = read_bounded(store.location, STORE_MAX_BYTES)
    except OSError as error:
        raise SecurityError(f"{name}.location cannot be read: {error.strerror}: {store.location}") from error
    if len(data) > STORE_MAX_BYTES:
        raise SecurityError(f"{name}.location is larger than {STORE_MAX_BYTES} bytes: {store.location}")
    if store.type == "PEM":
        return in_lines(data.decode("ascii", "ignore"))
    try:
        # as in Java, the content says which of the two it is, whatever the type says
        content = read_pkcs12(data, store.password) if is_pkcs12(data) else read_jks(data, store.password)
        return content.trusted_pem() if name == "ssl.truststore" else content.key_pem(key_password or store.password)
    except NotReadable as error:
        raise SecurityError(f"{name}.location {store.location}: {error}") from error
