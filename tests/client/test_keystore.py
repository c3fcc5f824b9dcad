"""Java's old key stores, made by keytool (tests/blocking/certificates)."""

from __future__ import annotations

from pathlib import Path

import pytest

from heirlog.client.keystore import NotReadable, read_jks

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
        (content("client.p12"), PASSWORD, "PKCS12"),
        (b"nonsense", "", "no JKS store"),
        (b"", "", "middle of an entry"),
    ],
)
def test_what_cannot_be_read_says_why(data: bytes, password: str, complaint: str) -> None:
    with pytest.raises(NotReadable, match=complaint):
        read_jks(data, password)
