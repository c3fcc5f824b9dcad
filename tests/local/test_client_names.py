"""How a user connects, in the names of each client."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from local.authorities import authority, issued

from heirlog.local.client_names import check, in_names_of
from heirlog.local.errors import LocalError
from heirlog.local.secure import scram_login

SERVERS = {"bootstrap.servers": "localhost:9092"}


@pytest.fixture
def with_certificate(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "ca.pem").write_text(authority().certificate_pem)
    (tmp_path / "alice.pem").write_text(issued("alice"))
    return {
        **SERVERS,
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(tmp_path / "ca.pem"),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(tmp_path / "alice.pem"),
    }


def test_a_password_with_quotes_is_the_same_everywhere() -> None:
    given = {**SERVERS, "security.protocol": "SASL_PLAINTEXT", **scram_login("alice", 'a"b\\c;=,')}
    assert in_names_of("java", given) == given
    assert in_names_of("spark", given) == {f"kafka.{name}": value for name, value in given.items()}
    assert in_names_of("librdkafka", given) == {
        **SERVERS,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "alice",
        "sasl.password": 'a"b\\c;=,',
    }
    of_python = {
        "bootstrap_servers": "localhost:9092",
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "alice",
        "sasl_plain_password": 'a"b\\c;=,',
    }
    assert in_names_of("kafka-python", given) == in_names_of("aiokafka", given) == of_python


def test_a_certificate_is_a_file_or_a_context(with_certificate: dict[str, str]) -> None:
    authorities, own = (with_certificate[f"ssl.{kind}store.location"] for kind in ("trust", "key"))
    found = in_names_of("librdkafka", with_certificate)
    assert found["ssl.ca.location"] == authorities
    assert found["ssl.certificate.location"] == found["ssl.key.location"] == own
    found = in_names_of("kafka-python", with_certificate)
    assert (found["ssl_cafile"], found["ssl_certfile"], found["ssl_keyfile"]) == (authorities, own, own)
    found = in_names_of("aiokafka", with_certificate)
    assert set(found) == {"bootstrap_servers", "security_protocol", "ssl_context"}
    assert found["ssl_context"].verify_mode == ssl.CERT_REQUIRED and found["ssl_context"].check_hostname


@pytest.mark.parametrize("library", ["java", "librdkafka", "kafka-python", "aiokafka", "spark"])
def test_without_listeners_that_are_closed_there_are_only_addresses(library: str) -> None:
    assert list(in_names_of(library, SERVERS).values()) == ["localhost:9092"]


def test_a_client_that_is_not_known_is_answered_with_those_that_are() -> None:
    with pytest.raises(LocalError, match="use one of java, librdkafka, kafka-python, aiokafka, spark"):
        check("kafkajs")
