from __future__ import annotations

import ssl
import textwrap

import pytest
from local.authorities import authority, issued

from heirlog.client.security import security_from_properties
from heirlog.security.pem import in_lines
from heirlog.tls.contexts import client_context, server_context

ONE = authority().certificate_pem
PAIR = issued("node", "127.0.0.1")


def one_line(text: str) -> str:
    return " ".join(text.split("\n"))


@pytest.mark.parametrize("text", [ONE, PAIR])
def test_what_is_in_one_line_has_the_lines_of_openssl_again(text: str) -> None:
    assert in_lines(one_line(text)).split() == text.split()
    assert in_lines(text).split() == text.split(), "what has them keeps them"


@pytest.mark.parametrize("indent", ["  ", "\t", "\r"])
def test_white_space_within_is_no_part_of_it(indent: str) -> None:
    assert in_lines(textwrap.indent(ONE, indent)).split() == ONE.split()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "subject=CN = someone\n",
        "-----BEGIN CERTIFICATE-----\nMII",
        "-----BEGIN CERTIFICATE-----\nMII\n-----END PRIVATE KEY-----\n",
        "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nMII\n"
        "-----END RSA PRIVATE KEY-----\n",
    ],
    ids=["nothing", "a comment", "without an end", "another end", "with headers"],
)
def test_anything_else_is_left_as_it_is(text: str) -> None:
    assert in_lines(text) == text


def test_very_many_beginnings_take_no_time() -> None:
    text = "-----BEGIN CERTIFICATE-----" * 40_000
    assert in_lines(text) == text


def test_stores_of_one_line_serve_and_are_trusted() -> None:
    """As in a properties file that was made from environment variables."""
    key, end, chain = PAIR.partition("-----END PRIVATE KEY-----\n")
    given = {"security.protocol": "SSL", "ssl.truststore.type": "PEM", "ssl.keystore.type": "PEM"}
    given |= {"ssl.truststore.certificates": one_line(ONE + ONE), "ssl.keystore.key": one_line(key + end)}
    security = security_from_properties(given | {"ssl.keystore.certificate.chain": one_line(chain)})
    server, client = server_context(security, "required"), client_context(security)
    assert len(client.get_ca_certs()) == 1
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname="127.0.0.1"),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    while ends:
        try:
            ends[0].do_handshake()
        except ssl.SSLWantReadError:
            ends.reverse()
        else:
            del ends[0]
