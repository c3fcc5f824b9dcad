"""PKCS 12, the format that `keytool` writes since Java 9 and `openssl pkcs12 -export` always wrote.

    PFX --data--> safes --data, or encrypted data--> bags: certificates, keys (each encrypted by itself)

Read is the present form: PBES2 with PBKDF2 and AES in CBC mode (Java from 16 on and 8u301, OpenSSL from 3.0 on). What
is older uses RC2 and triple DES, which the standard library lacks: `NotReadable` says so. The store's own checksum is
not looked at, since a wrong password shows in the padding of what was decrypted.

Source: RFC 7292; RFC 8018 (PBES2).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from heirlog.client.aes import Aes
from heirlog.client.keystore import Element, KeyStore, NotReadable, OldForm, elements

SEQUENCE, OCTETS, INTEGER, OID, CONTEXT_0 = 0x30, 0x04, 0x02, 0x06, 0xA0
IMPLICIT_OCTETS = 0x80
DATA = "2a864886f70d010701"
ENCRYPTED_DATA = "2a864886f70d010706"
KEY_BAG = "2a864886f70d010c0a0101"
SHROUDED_KEY_BAG = "2a864886f70d010c0a0102"
CERTIFICATE_BAG = "2a864886f70d010c0a0103"
X509 = "2a864886f70d01091601"
LOCAL_KEY_ID = "2a864886f70d010915"
PBES2 = "2a864886f70d01050d"
PBKDF2 = "2a864886f70d01050c"
PSEUDORANDOM = {
    "2a864886f70d0207": "sha1",
    "2a864886f70d0208": "sha224",
    "2a864886f70d0209": "sha256",
    "2a864886f70d020a": "sha384",
    "2a864886f70d020b": "sha512",
}
AES_KEY_BYTES = {"608648016503040102": 16, "608648016503040116": 24, "60864801650304012a": 32}
MAX_ITERATIONS = 2_000_000


@dataclass(slots=True)
class Bag:
    kind: str
    value: Element
    local_key_id: bytes | None


def read_pkcs12(data: bytes, password: str) -> KeyStore:
    """Raises NotReadable."""
    try:
        return _read(data, password)
    except NotReadable:
        raise
    except (ValueError, IndexError) as error:  # another number of elements than there should be
        raise NotReadable("it is damaged, or no PKCS12 store") from error


def _read(data: bytes, password: str) -> KeyStore:
    store = KeyStore()
    keys: list[tuple[bytes, bytes | None]] = []
    certificates: list[tuple[bytes, bytes | None]] = []
    for bag in _bags(data, password):
        if bag.kind == CERTIFICATE_BAG:
            kind, content = bag.value.children()
            if kind.oid() == X509:
                certificates.append((content.only_child().content(OCTETS), bag.local_key_id))
        elif bag.kind == SHROUDED_KEY_BAG:
            keys.append((_shrouded(bag.value, password), bag.local_key_id))
        elif bag.kind == KEY_BAG:
            keys.append((bag.value.whole, bag.local_key_id))
    store.certificates = [certificate for certificate, _ in certificates]
    for key, key_id in keys:
        # TLS wants the key's own certificate first
        chain = sorted(certificates, key=lambda found: key_id is None or found[1] != key_id)
        store.keys.append((partial(_as_it_is, key), [certificate for certificate, _ in chain]))
    return store


def _as_it_is(key: bytes, password: str) -> bytes:
    """Keys have been opened with the store's password: Java knows no other for this format."""
    return key


def _bags(data: bytes, password: str) -> Iterator[Bag]:
    (pfx,) = elements(data)
    version, safes, *_ = pfx.children()
    if version.content(INTEGER) != b"\x03":
        raise NotReadable("it is no PKCS12 store of version 3")
    (sequence,) = elements(_plain(safes, password))
    for safe in sequence.children():
        (contents,) = elements(_plain(safe, password))
        for bag in contents.children():
            kind, value, *attributes = bag.children()
            yield Bag(kind.oid(), value.only_child(), _local_key_id(attributes))


def _local_key_id(attributes: list[Element]) -> bytes | None:
    for group in attributes:
        for attribute in group.children():
            name, values = attribute.children()
            if name.oid() == LOCAL_KEY_ID:
                return values.only_child().content(OCTETS)
    return None


def _plain(info: Element, password: str) -> bytes:
    """The content of a ContentInfo, decrypted."""
    kind, content = info.children()
    if kind.oid() == DATA:
        return content.only_child().content(OCTETS)
    if kind.oid() != ENCRYPTED_DATA:
        raise NotReadable("it is protected by public keys")
    _, encrypted = content.only_child().children()
    _, algorithm, data = encrypted.children()
    return _decrypted(algorithm, data.content(IMPLICIT_OCTETS), password)


def _shrouded(info: Element, password: str) -> bytes:
    algorithm, data = info.children()
    return _decrypted(algorithm, data.content(OCTETS), password)


def _decrypted(algorithm: Element, data: bytes, password: str) -> bytes:
    kind, *parameters = algorithm.children()
    if kind.oid() != PBES2:
        raise OldForm("it is a PKCS12 store in an old form (RC2 or triple DES)")
    derivation, cipher = parameters[0].children()
    derived_by, derivation_parameters = derivation.children()
    encrypted_by, iv = cipher.children()
    key_bytes = AES_KEY_BYTES.get(encrypted_by.oid())
    if derived_by.oid() != PBKDF2 or key_bytes is None:
        raise OldForm("it is a PKCS12 store that is encrypted by something else than AES in CBC mode")
    salt, iterations, *rest = derivation_parameters.children()
    digest = "sha1"
    for optional in rest:
        if optional.tag == SEQUENCE:
            digest = PSEUDORANDOM.get(optional.children()[0].oid(), "")
    count = int.from_bytes(iterations.content(INTEGER), "big")
    if not digest or not 0 < count <= MAX_ITERATIONS:
        raise NotReadable("its key is derived in an unknown way")
    key = hashlib.pbkdf2_hmac(digest, password.encode(), salt.content(OCTETS), count, key_bytes)
    try:
        return Aes(key).decrypt_cbc(iv.content(OCTETS), data)
    except ValueError as error:
        raise NotReadable("the password is wrong") from error
