"""Key stores of Java, and PEM, which everything becomes; this module reads Java's old format (JKS).

    0xFEEDFEED | version | count | entries | SHA-1 over password, "Mighty Aphrodite" and all before it
    entry      1: private key, protected, with its chain      2: a trusted certificate

A key is protected by XOR with a chain of SHA-1 hashes of the password and a salt, and proved by one more hash: weak,
hence the file's permissions are what protects it. Since Java 9 `keytool` writes PKCS12 unless told otherwise, also into
files named .jks, and Java looks at the content, not at the name: `is_pkcs12`.
"""

from __future__ import annotations

import hashlib
import hmac
from binascii import b2a_base64
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from heirlog.security.der import OCTETS, SEQUENCE, NotReadable, elements

MAGIC = 0xFEEDFEED
PRIVATE_KEY, TRUSTED = 1, 2
WHITENER = b"Mighty Aphrodite"
SHA1_BYTES = 20
PROTECTOR = "2b060104012a02110101"
"""1.3.6.1.4.1.42.2.17.1.1, Sun's key protector."""
MAX_ENTRIES = 100_000


@dataclass(slots=True)
class KeyStore:
    """DER, in the order of the file."""

    certificates: list[bytes] = field(default_factory=list)
    """Of trusted entries, and the own certificates of keys: whom Java trusts for such a store."""
    keys: list[tuple[Callable[[str], bytes], list[bytes]]] = field(default_factory=list)
    """What yields PKCS 8 for the key's password, and the chain, the key's own certificate first."""

    def trusted_pem(self) -> str:
        return "".join(pem("CERTIFICATE", certificate) for certificate in self.certificates)

    def key_pem(self, password: str) -> str:
        """The first private key with its chain. Raises NotReadable without one, or if the password is another."""
        if not self.keys:
            raise NotReadable("it holds no private key")
        unprotect, chain = self.keys[0]
        return pem("PRIVATE KEY", unprotect(password)) + "".join(
            pem("CERTIFICATE", certificate) for certificate in chain
        )


def is_pkcs12(data: bytes) -> bool:
    return data[:1] == bytes([SEQUENCE])


def pem(label: str, der: bytes) -> str:
    text = b2a_base64(der, newline=False).decode()
    lines = [text[at : at + 64] for at in range(0, len(text), 64)]
    return "\n".join([f"-----BEGIN {label}-----", *lines, f"-----END {label}-----", ""])


def read_jks(data: bytes, password: str) -> KeyStore:
    """password "": the check of the whole is left out, as Java does. Raises NotReadable."""
    reader = _Reader(data)
    if reader.number(4) != MAGIC or reader.number(4) != 2:
        if data.lstrip().startswith(b"-----BEGIN"):
            raise NotReadable("it is a PEM file: set the type of the store to PEM (Kafka's default is JKS)")
        raise NotReadable("it is not a JKS store")
    body, digest = data[:-SHA1_BYTES], data[-SHA1_BYTES:]
    secret = password.encode("utf-16-be")
    if password and not hmac.compare_digest(hashlib.sha1(secret + WHITENER + body).digest(), digest):
        raise NotReadable("the password is wrong, or the file was changed")
    store = KeyStore()
    for _ in range(min(reader.number(4), MAX_ENTRIES)):
        kind = reader.number(4)
        reader.text()
        reader.number(8)
        if kind == TRUSTED:
            store.certificates.append(reader.certificate())
        elif kind == PRIVATE_KEY:
            protected = reader.counted(4)
            chain = [reader.certificate() for _ in range(min(reader.number(4), MAX_ENTRIES))]
            store.keys.append((partial(_unprotected, protected), chain))
            store.certificates += chain[:1]
        else:
            raise NotReadable(f"it has an entry of the unknown kind {kind}")
    return store


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def take(self, size: int) -> bytes:
        end = self._position + size
        if end > len(self._data):
            raise NotReadable("it ends in the middle of an entry")
        taken = self._data[self._position : end]
        self._position = end
        return taken

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def counted(self, width: int) -> bytes:
        return self.take(self.number(width))

    def text(self) -> bytes:
        return self.counted(2)

    def certificate(self) -> bytes:
        kind = self.text()
        if kind != b"X.509":
            raise NotReadable("it has a certificate that is not X.509")
        return self.counted(4)


def _unprotected(protected: bytes, password: str) -> bytes:
    """PKCS 8 out of EncryptedPrivateKeyInfo: a sequence of the algorithm and an octet string."""
    try:
        (info,) = elements(protected)
        algorithm, content = info.children()
        protector, *_ = algorithm.children()
    except ValueError as error:
        raise NotReadable("its private key is damaged") from error
    if protector.oid() != PROTECTOR:
        raise NotReadable("its private key is protected in an unknown way")
    secret, data = password.encode("utf-16-be"), content.content(OCTETS)
    salt, body, check = data[:SHA1_BYTES], data[SHA1_BYTES:-SHA1_BYTES], data[-SHA1_BYTES:]
    stream, link = bytearray(), salt
    while len(stream) < len(body):
        link = hashlib.sha1(secret + link).digest()
        stream += link
    key = bytes(a ^ b for a, b in zip(body, stream, strict=False))
    if not hmac.compare_digest(hashlib.sha1(secret + key).digest(), check):
        raise NotReadable("the password of its private key is wrong")
    return key
