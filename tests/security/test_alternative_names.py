"""Where a certificate may serve is read from its DER."""

from __future__ import annotations

import ssl

import pytest
from local.authorities import issued

from heirlog.security.alternative_names import alternative_names
from heirlog.security.der import NotReadable


@pytest.mark.parametrize("hosts", [(), ("127.0.0.1", "broker.example.com"), ("::1", "localhost")])
def test_hosts_and_addresses_are_found(hosts: tuple[str, ...]) -> None:
    pem = issued("node", *hosts)
    der = ssl.PEM_cert_to_DER_cert(pem[pem.index(ssl.PEM_HEADER) :])
    expected = {"::1": "0000:0000:0000:0000:0000:0000:0000:0001"}
    assert alternative_names(der) == {expected.get(host, host) for host in hosts}


def test_what_is_cut_short_is_not_readable() -> None:
    pem = issued("node", "127.0.0.1")
    der = ssl.PEM_cert_to_DER_cert(pem[pem.index(ssl.PEM_HEADER) :])
    for end in range(0, len(der), 7):
        with pytest.raises((NotReadable, ValueError, IndexError)):
            alternative_names(der[:end])
