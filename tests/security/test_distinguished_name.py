"""Subjects of certificates as Java prints them. Expected texts are what `X500Principal.getName()` of JDK 17 prints."""

from __future__ import annotations

import datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.name import _ASN1Type
from cryptography.x509.oid import NameOID

from heirlog.security.distinguished_name import NAME_BYTES_MAX, UnusableName, subject_of

KEY = ec.generate_private_key(ec.SECP256R1())


def certificate(name: x509.Name) -> bytes:
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "issuer")]))
        .public_key(KEY.public_key())
        .serial_number(1)
        .not_valid_before(now)
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(KEY, hashes.SHA256())
    )
    return made.public_bytes(Encoding.DER)


def named(*pairs: tuple[x509.ObjectIdentifier, str]) -> str:
    return subject_of(certificate(x509.Name([x509.NameAttribute(kind, value) for kind, value in pairs])))


def test_the_most_specific_part_comes_first() -> None:
    whole = named(
        (NameOID.COUNTRY_NAME, "DE"),
        (NameOID.STATE_OR_PROVINCE_NAME, "Bayern"),
        (NameOID.LOCALITY_NAME, "München"),
        (NameOID.ORGANIZATION_NAME, "Example"),
        (NameOID.ORGANIZATIONAL_UNIT_NAME, "Pipelines"),
        (NameOID.COMMON_NAME, "alice"),
    )
    assert whole == "CN=alice,OU=Pipelines,O=Example,L=München,ST=Bayern,C=DE"


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        ("a,b", "a\\,b"),
        ("a=b+c", "a\\=b\\+c"),
        ('<"x";y>', '\\<\\"x\\"\\;y\\>'),
        ("back\\slash", "back\\\\slash"),
        ("in#side #", "in\\#side \\#"),
        (" edge ", "\\ edge\\ "),
        ("nul\0end", "nul\\00end"),
        ("CN=admin,O=x", "CN\\=admin\\,O\\=x"),
    ],
)
def test_a_value_cannot_pretend_to_be_another_part(value: str, printed: str) -> None:
    assert named((NameOID.COMMON_NAME, value)) == f"CN={printed}"


def test_a_type_without_a_name_is_its_number_and_hexadecimal() -> None:
    found = named((NameOID.EMAIL_ADDRESS, "a@b"), (NameOID.COMMON_NAME, "alice"), (NameOID.SERIAL_NUMBER, "7"))
    assert found == "2.5.4.5=#0c0137,CN=alice,1.2.840.113549.1.9.1=#1603614062" or found == (
        "2.5.4.5=#130137,CN=alice,1.2.840.113549.1.9.1=#1603614062"
    )


def test_a_part_with_several_attributes_is_joined_by_plus() -> None:
    part = x509.RelativeDistinguishedName(
        [x509.NameAttribute(NameOID.COMMON_NAME, "a"), x509.NameAttribute(NameOID.USER_ID, "b")]
    )
    outer = x509.RelativeDistinguishedName([x509.NameAttribute(NameOID.ORGANIZATION_NAME, "o")])
    found = subject_of(certificate(x509.Name([outer, part])))
    assert found in ("CN=a+UID=b,O=o", "UID=b+CN=a,O=o")


def test_two_common_names_are_both_in_the_name() -> None:
    assert named((NameOID.COMMON_NAME, "a"), (NameOID.COMMON_NAME, "b")) == "CN=b,CN=a"


def test_a_value_in_two_byte_characters_is_read() -> None:
    attribute = x509.NameAttribute(NameOID.COMMON_NAME, "żółw", _type=_ASN1Type.BMPString)
    assert subject_of(certificate(x509.Name([attribute]))) == "CN=żółw"


def test_an_empty_subject_is_refused() -> None:
    with pytest.raises(UnusableName, match="empty"):
        subject_of(certificate(x509.Name([])))


def test_a_long_subject_is_refused_and_not_cut() -> None:
    with pytest.raises(UnusableName, match=f"at most {NAME_BYTES_MAX}"):
        named(*[(NameOID.ORGANIZATIONAL_UNIT_NAME, "x" * 60)] * 80)


@pytest.mark.parametrize("size", [0, 1, 2, 40, 100])
def test_what_is_no_certificate_is_refused(size: int) -> None:
    with pytest.raises(UnusableName, match="cannot be read"):
        subject_of(certificate(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a")]))[:size])
