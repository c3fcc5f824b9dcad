"""An authority for a local cluster, and the certificates that it signs.

    ca.pem          the authority's certificate: what every client and node trusts
    ca.key          its private key: with it, certificates for any name can be made
    node.pem        the private key and the certificate of the nodes, for 127.0.0.1 and localhost

Keys are on the curve P-256: a handshake costs a third of one with RSA. Imported where certificates are made, for it
needs the package cryptography.
"""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Sequence
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DAYS = 3650


class Authority:
    def __init__(self, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> None:
        self._key = key
        self._name = certificate.subject
        self.certificate_pem = _pem(certificate)
        self.key_pem = _key_pem(key)

    @classmethod
    def new(cls, name: str = "heirlog local authority", days: int = DAYS) -> Self:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        return cls(
            key,
            _builder(subject, subject, key.public_key(), days)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_key_usage(signs=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .sign(key, hashes.SHA256()),
        )

    @classmethod
    def of(cls, key_pem: str, certificate_pem: str) -> Self:
        """One that was made before."""
        key = load_pem_private_key(key_pem.encode(), None)
        assert isinstance(key, ec.EllipticCurvePrivateKey), "as `new` makes it"
        return cls(key, x509.load_pem_x509_certificate(certificate_pem.encode()))

    def issue(
        self,
        name: str | x509.Name,
        hosts: Sequence[str] = (),
        days: int = DAYS,
        purposes: Sequence[x509.ObjectIdentifier] | None = None,
    ) -> str:
        """A new private key and its certificate, as PEM. hosts: names and addresses at which it may serve.

        purposes: None for a client, and with hosts for a server, too.
        """
        if purposes is None:
            purposes = (ExtendedKeyUsageOID.CLIENT_AUTH, *((ExtendedKeyUsageOID.SERVER_AUTH,) if hosts else ()))
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]) if isinstance(name, str) else name
        builder = (
            _builder(subject, self._name, key.public_key(), days)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(list(purposes)), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        if hosts:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([_host(host) for host in hosts]), critical=False
            )
        return _key_pem(key) + _pem(builder.sign(self._key, hashes.SHA256()))


def _builder(
    subject: x509.Name, issuer: x509.Name, public_key: ec.EllipticCurvePublicKey, days: int
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    end = now + datetime.timedelta(days=days)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        # an hour before, for clocks differ; a negative number of days makes one that has expired
        .not_valid_before(min(now, end) - datetime.timedelta(hours=1))
        .not_valid_after(end)
    )


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _key_usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(Encoding.PEM).decode()


def _key_pem(key: ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
