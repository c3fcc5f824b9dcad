"""Key stores made by keytool and openssl (tests/blocking/certificates)."""

from __future__ import annotations

import datetime
import sys
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import NoEncryption, pkcs12
from cryptography.x509.oid import NameOID
from hypothesis import given, settings
from hypothesis import strategies as st

from heirlog.client.keystore import NotReadable, is_pkcs12, read_jks
from heirlog.client.pkcs12 import read_pkcs12

STORES = Path(__file__).resolve().parent.parent / "blocking" / "certificates"
PASSWORD = "store-password"


def content(name: str) -> bytes:
    return (STORES / name).read_bytes()


def test_a_trust_store_yields_its_certificates() -> None:
    store = read_jks(content("trust.jks"), PASSWORD)
    assert store.trusted_pem().split() == content("ca.pem").decode().split()
    with pytest.raises(NotReadable, match="no private key"):
        store.key_pem(PASSWORD)


def test_a_trust_store_is_read_without_its_password_as_java_does() -> None:
    assert len(read_jks(content("trust.jks"), "").certificates) == 1


def test_a_key_store_yields_the_key_and_its_chain() -> None:
    store = read_jks(content("client.jks"), PASSWORD)
    assert store.key_pem(PASSWORD).split() == content("client.pem").decode().split()
    assert store.trusted_pem() in store.key_pem(PASSWORD)
    with pytest.raises(NotReadable, match="private key is wrong"):
        store.key_pem("other")


@pytest.mark.parametrize(
    ("data", "password", "complaint"),
    [
        (content("trust.jks"), "other", "password is wrong"),
        (content("trust.jks")[:200], "", "middle of an entry"),
        (content("trust.jks").replace(b"X.509", b"X.510"), "", "not X.509"),
        (content("client.p12"), PASSWORD, "not a JKS"),
        (b"nonsense", "", "not a JKS store"),
        (content("client.pem"), "", "a PEM file: set the type of the store to PEM"),
        (b"", "", "middle of an entry"),
    ],
)
def test_what_cannot_be_read_says_why(data: bytes, password: str, complaint: str) -> None:
    with pytest.raises(NotReadable, match=complaint):
        read_jks(data, password)


@pytest.mark.parametrize("name", ["client.p12", "java.p12", "old.p12"])
def test_a_pkcs12_store_yields_the_key_and_its_chain(name: str) -> None:
    assert is_pkcs12(content(name))
    store = read_pkcs12(content(name), PASSWORD)
    assert store.key_pem("").split() == content("client.pem").decode().split()


def certificate(name: str, by: str, keys: dict[str, ec.EllipticCurvePrivateKey]) -> x509.Certificate:
    def named(text: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])

    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder(named(by), named(name), keys[name].public_key(), x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(keys[by], hashes.SHA256())
    )


def test_a_pkcs12_store_with_several_entries_yields_the_chain_of_its_key_only() -> None:
    """As keytool makes one for a node with a second key, with certificates of authorities in any order."""
    keys = {name: ec.generate_private_key(ec.SECP256R1()) for name in ("node", "middle", "root", "other")}
    issuers = {"node": "middle", "middle": "root", "root": "root", "other": "other"}
    made = {name: certificate(name, by, keys) for name, by in issuers.items()}
    others = [made[name] for name in ("other", "root", "middle")]
    data = pkcs12.serialize_key_and_certificates(b"node", keys["node"], made["node"], others, NoEncryption())
    store = read_pkcs12(data, "")
    shown = x509.load_pem_x509_certificates(store.key_pem("").encode())
    assert shown == [made[name] for name in ("node", "middle", "root")]
    assert len(store.certificates) == 4, "it trusts all of them"


@pytest.mark.parametrize("at", [0, 1])
def test_a_chain_has_the_key_of_the_authority_that_signed(at: int) -> None:
    """An authority has the same name after it got a new key."""
    before, now = ({name: ec.generate_private_key(ec.SECP256R1()) for name in ("node", "root")} for _ in range(2))
    roots = [certificate("root", "root", keys) for keys in (before, now)]
    node = certificate("node", "root", (before, now)[at])
    data = pkcs12.serialize_key_and_certificates(b"node", (before, now)[at]["node"], node, roots, NoEncryption())
    shown = x509.load_pem_x509_certificates(read_pkcs12(data, "").key_pem("").encode())
    assert shown == [node, roots[at]]


def test_a_pkcs12_trust_store_yields_its_certificates() -> None:
    store = read_pkcs12(content("trust.p12"), PASSWORD)
    assert store.trusted_pem().split() == content("ca.pem").decode().split()
    assert not is_pkcs12(content("trust.jks"))


@pytest.mark.parametrize(
    ("data", "password", "complaint"),
    [
        (content("client.p12"), "other", "password is wrong"),
        (content("trust.p12"), "", "password is wrong"),
        (content("client.p12")[:-300], PASSWORD, "damaged"),
        (content("client.p12")[:1], PASSWORD, "damaged"),
        (b"0\x03\x02\x01\x03", PASSWORD, "damaged"),
        (b"0\x06\x02\x01\x040\x01\x00", PASSWORD, "damaged"),
    ],
)
def test_a_pkcs12_store_that_cannot_be_read_says_why(data: bytes, password: str, complaint: str) -> None:
    with pytest.raises(NotReadable, match=complaint):
        read_pkcs12(data, password)


def test_without_the_package_that_reads_it_a_pkcs12_store_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.exceptions", None)
    with pytest.raises(NotReadable, match="cryptography: install it"):
        read_pkcs12(content("client.p12"), PASSWORD)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_damage_is_never_another_error(data: st.DataObject) -> None:
    for name, read in (("client.p12", read_pkcs12), ("client.jks", read_jks)):
        damaged = bytearray(content(name))
        at = data.draw(st.integers(0, len(damaged) - 1))
        damaged[at] ^= data.draw(st.integers(1, 255))
        try:
            store = read(bytes(damaged), "" if name == "client.jks" else PASSWORD)
            store.key_pem(PASSWORD)
        except NotReadable:
            continue
