"""Addresses as ACLs write them, against Python's own reading of addresses."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heirlog.metadata.address import UNNAMED_HOST, host_bytes, host_text, kafka_host


@settings(max_examples=60, deadline=None)
@given(st.ip_addresses(), st.booleans())
def test_every_address_is_read_as_it_is_meant_and_written_as_java_does(address: object, short: bool) -> None:
    assert isinstance(address, ipaddress.IPv4Address | ipaddress.IPv6Address)
    text = address.compressed if short else address.exploded
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    meant = mapped or address
    assert host_bytes(text) == meant.packed
    if isinstance(meant, ipaddress.IPv4Address):
        assert host_text(meant.packed) == str(meant)
    else:
        groups = [f"{int(group, 16):x}" for group in meant.exploded.split(":")]
        assert host_text(meant.packed) == ":".join(groups)


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("::1", "0:0:0:0:0:0:0:1"),
        ("::ffff:10.1.2.3", "10.1.2.3"),
        ("fe80::1%eth0", "fe80:0:0:0:0:0:0:1%eth0"),
        ("::", "0:0:0:0:0:0:0:0"),
        ("client-1", "client-1"),
    ],
)
def test_hosts(host: str, expected: str) -> None:
    assert kafka_host(host) == expected


@pytest.mark.parametrize("text", ["", "1.2.3", "1.2.3.256", "1:2", "::1::", "1:2:3:4:5:6:7:8:9", "g::1", "client", ":"])
def test_what_is_no_address_has_no_bytes(text: str) -> None:
    assert host_bytes(text) == UNNAMED_HOST
