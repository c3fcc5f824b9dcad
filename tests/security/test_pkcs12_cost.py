"""PKCS 12 stores whose parts ask for more iterations than a node computes in its event loop."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import PrivateFormat, load_pem_private_key, pkcs12
from cryptography.x509 import load_pem_x509_certificate
from local.authorities import authority, issued
from security.making_keys import AES, PBE_MD5_DES, PBES2, PBKDF2, SCRYPT, der, number, oid

from heirlog.client.pkcs12 import read_pkcs12
from heirlog.security.der import NotReadable
from heirlog.security.pkcs12_cost import STORE_ITERATIONS_MAX, check_store_cost

CERTIFICATES = Path(__file__).parent.parent / "blocking" / "certificates"
DATA = "2a864886f70d010701"
ENCRYPTED_DATA = "2a864886f70d010706"
KEY_BAG = "2a864886f70d010c0a0102"
ROUNDS = 65_537
SALT = der(4, b"\xff" * 16)


def algorithm(function: str, *numbers: int) -> bytes:
    parameters = der(0x30, SALT, *map(number, numbers))
    return der(0x30, oid(PBES2), der(0x30, der(0x30, oid(function), parameters), der(0x30, oid(AES), SALT)))


def encrypted(how: bytes) -> bytes:
    content = der(0x30, oid(DATA), how, der(0x80, bytes(64)))
    return der(0x30, oid(ENCRYPTED_DATA), der(0xA0, der(0x30, number(0), content)))


def plain(*bags: bytes) -> bytes:
    return der(0x30, oid(DATA), der(0xA0, der(4, der(0x30, *bags))))


def key_bag(how: bytes) -> bytes:
    return der(0x30, oid(KEY_BAG), der(0xA0, der(0x30, how, der(4, bytes(64)))))


def store(*parts: bytes, mac: int = 2048) -> bytes:
    safe = der(0x30, oid(DATA), der(0xA0, der(4, der(0x30, *parts))))
    digest = der(0x30, der(0x30, oid(PBE_MD5_DES)), der(4, bytes(20)))
    return der(0x30, number(3), safe, der(0x30, digest, SALT, number(mac)))


def without_lengths(element: bytes, tag: int) -> bytes:
    """In BER: the same with an end in place of its length."""
    start = 4 if element[1] == 0x82 else 2
    return bytes([tag, 0x80]) + element[start:] + b"\0\0"


PART = encrypted(algorithm(PBKDF2, 10_000))
LONG = algorithm(PBKDF2, 2**31 - 1, 32)
IN_PIECES = der(
    0x30,
    number(3),
    der(
        0x30,
        oid(DATA),
        der(
            0xA0,
            b"\x24\x80"
            + der(4, der(0x30, encrypted(LONG))[:50])
            + der(0x24, der(4, der(0x30, encrypted(LONG))[50:]))
            + b"\0\0",
        ),
    ),
)


@pytest.mark.parametrize(
    "data",
    [
        store(PART, mac=2**31 - 1),
        store(PART, mac=1 << 30_000),
        store(encrypted(LONG)),
        store(PART, plain(key_bag(LONG))),
        store(encrypted(algorithm(SCRYPT, 1 << 20, 8, 16))),
        store(encrypted(der(0x30, oid(PBE_MD5_DES), der(0x30, SALT, number(2**40))))),
        store(*[encrypted(algorithm(PBKDF2, 1_000_000))] * 5),
        store(PART, mac=2**31 - 1) + b"what follows is not read",
        without_lengths(store(encrypted(LONG)), 0x30),
        IN_PIECES,
    ],
    ids=[
        "its hash",
        "a long number",
        "a part",
        "a key",
        "scrypt",
        "an older algorithm",
        "the sum",
        "with more",
        "BER",
        "in pieces",
    ],
)
def test_a_store_that_takes_long_is_refused_unopened(data: bytes) -> None:
    with pytest.raises(NotReadable, match=r"takes (\d+|very many) iterations"):
        read_pkcs12(data, "secret")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x30",
        b"\x30\x80",
        store(PART, plain(key_bag(algorithm(PBKDF2, 100_000)))),
        store(encrypted(algorithm(SCRYPT, 1 << 17, 8, 1))),
        store(plain(key_bag(algorithm(PBKDF2, STORE_ITERATIONS_MAX - 10_000))), mac=10_000),
    ],
)
def test_a_usual_store_is_taken(data: bytes) -> None:
    check_store_cost(data)


@pytest.mark.parametrize("name", ["client.p12", "java.p12", "trust.p12"])
def test_the_stores_of_keytool_and_openssl_are_taken(name: str) -> None:
    check_store_cost((CERTIFICATES / name).read_bytes())


def test_every_place_where_a_library_writes_iterations_counts() -> None:
    text = issued("node")
    how = PrivateFormat.PKCS12.encryption_builder().kdf_rounds(ROUNDS).hmac_hash(hashes.SHA256()).build(b"secret")
    made = pkcs12.serialize_key_and_certificates(
        b"node",
        load_pem_private_key(text.encode(), None),  # type: ignore[arg-type]  # of the kinds that a store takes
        load_pem_x509_certificate(text[text.index("-----BEGIN CERTIFICATE") :].encode()),
        [load_pem_x509_certificate(authority().certificate_pem.encode())],
        how,
    )
    check_store_cost(made)
    assert read_pkcs12(made, "secret").keys
    told = number(ROUNDS)
    places = [at for at in range(len(made)) if made.startswith(told, at)]
    assert len(places) >= 2
    for at in places:
        with pytest.raises(NotReadable, match="iterations"):
            check_store_cost(made[:at] + number(0x7FFFFF) + made[at + len(told) :])


@pytest.mark.parametrize("part", [b"\x30\0", b"\x30\x80"])
def test_a_store_of_nothing_but_parts_is_read_to_a_bound(part: bytes) -> None:
    with pytest.raises(NotReadable, match="too many parts"):
        check_store_cost(b"\x30\x80" + part * ((1 << 20) // len(part)))
