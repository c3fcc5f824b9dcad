from __future__ import annotations

import datetime
import ssl

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from local.authorities import authority

from heirlog.security.der import NotReadable
from heirlog.security.validity import not_after


def ending(end: datetime.datetime) -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "node")])
    return (
        x509.CertificateBuilder(name, name, key.public_key(), 1)
        .not_valid_before(datetime.datetime(1960, 1, 1))
        .not_valid_after(end)
        .sign(key, hashes.SHA256())
        .public_bytes(serialization.Encoding.DER)
    )


@pytest.mark.parametrize("year", [1999, 2026, 2049, 2050, 9999])
def test_the_end_is_read_in_both_ways_of_writing_it(year: int) -> None:
    # from 2050 on with four digits for the year
    assert not_after(ending(datetime.datetime(year, 3, 4, 5, 6, 7))) == f"{year}0304050607Z"


def test_a_certificate_of_ours_has_an_end_and_what_is_no_certificate_has_none() -> None:
    certificate = ssl.PEM_cert_to_DER_cert(authority().certificate_pem)
    assert ssl.cert_time_to_seconds is not None and len(not_after(certificate)) == 15
    for broken in (b"", certificate[:100], b"\x30\x02\x30\x00"):
        with pytest.raises((NotReadable, ValueError, IndexError)):
            not_after(broken)
