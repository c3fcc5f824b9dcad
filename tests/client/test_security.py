"""Kafka's client properties become a Security, and what is secret stays so."""

from __future__ import annotations

import pickle

import pytest

from heirlog.client.security import (
    PLAINTEXT,
    Security,
    SecurityError,
    Store,
    TokenEndpoint,
    UnsecuredToken,
    security_from_properties,
)
from heirlog.security.jaas import parse_jaas

PLAIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="hunter2";'
SCRAM = PLAIN.replace("plain.Plain", "scram.Scram")
BEARER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
SASL = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.jaas.config": PLAIN}


def test_nothing_said_is_plaintext() -> None:
    assert security_from_properties({"group.id": "g"}) == PLAINTEXT


def test_name_and_password_come_from_the_login_module() -> None:
    made = security_from_properties({**SASL, "sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": SCRAM})
    assert (made.protocol, made.mechanism, made.username, made.password) == (
        "SASL_SSL",
        "SCRAM-SHA-512",
        "alice",
        "hunter2",
    )
    assert made.check_host_name
    assert made.trust is None


def test_sasl_properties_mean_nothing_without_sasl() -> None:
    assert security_from_properties({**SASL, "security.protocol": "plaintext"}) == PLAINTEXT


def test_a_delegation_token_is_marked() -> None:
    text = SCRAM.replace(";", ' tokenauth="true";')
    assert security_from_properties(
        {**SASL, "sasl.mechanism": "SCRAM-SHA-256", "sasl.jaas.config": text}
    ).delegation_token


def test_a_token_comes_from_an_endpoint_a_file_or_a_test_login() -> None:
    base = {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}
    url = {"sasl.oauthbearer.token.endpoint.url": "https://login/token"}
    with_module = security_from_properties(
        {**base, **url, "sasl.jaas.config": f'{BEARER} clientId="me" clientSecret="hunter2" scope="s" extension_a="b";'}
    )
    assert with_module.token == TokenEndpoint("https://login/token", "me", "hunter2", "s")
    assert with_module.extensions == (("a", "b"),)
    newer = {
        "sasl.oauthbearer.client.credentials.client.id": "me",
        "sasl.oauthbearer.client.credentials.client.secret": "hunter2",
    }
    with_properties = security_from_properties({**base, **url, **newer, "sasl.jaas.config": f"{BEARER};"})
    assert with_properties.token == TokenEndpoint("https://login/token", "me", "hunter2")
    file = {"sasl.oauthbearer.token.endpoint.url": "file:///run/token"}
    assert security_from_properties({**base, **file, "sasl.jaas.config": f"{BEARER};"}).token == TokenEndpoint(
        "file:///run/token"
    )
    unsecured = f'{BEARER} unsecuredLoginStringClaim_sub="me" unsecuredLoginLifetimeSeconds="60";'
    assert security_from_properties({**base, "sasl.jaas.config": unsecured}).token == UnsecuredToken("me", 60)


def test_stores_are_files_or_pem_text() -> None:
    files = security_from_properties(
        {
            "security.protocol": "SSL",
            "ssl.truststore.location": "/t.jks",
            "ssl.truststore.password": "hunter2",
            "ssl.keystore.type": "pkcs12",
            "ssl.keystore.location": "/k.p12",
            "ssl.endpoint.identification.algorithm": "",
            "ssl.enabled.protocols": "TLSv1.3,TLSv1.1",
        }
    )
    assert files.trust == Store("JKS", "/t.jks", password="hunter2")
    assert files.key == Store("PKCS12", "/k.p12")
    assert not files.check_host_name
    assert files.tls_versions == ("TLSv1.3",)
    text = security_from_properties(
        {
            "security.protocol": "SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": "CERTS",
            "ssl.cipher.suites": " TLS_AES_128_GCM_SHA256,TLS_AES_256_GCM_SHA384",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": "CHAIN",
            "ssl.keystore.key": "KEY",
        }
    )
    assert text.trust == Store("PEM", pem="CERTS")
    assert text.key == Store("PEM", pem="KEY\nCHAIN\n")
    assert text.cipher_suites == ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384")


@pytest.mark.parametrize(
    ("properties", "named"),
    [
        ({"security.protocol": "TLS"}, "security.protocol"),
        ({"security.protocol": "SASL_SSL"}, "sasl.mechanism"),
        ({**SASL, "sasl.mechanism": "GSSAPI"}, "GSSAPI"),
        ({**SASL, "sasl.jaas.config": ""}, "sasl.jaas.config"),
        ({**SASL, "sasl.jaas.config": PLAIN[:-1]}, "sasl.jaas.config"),
        ({**SASL, "sasl.jaas.config": PLAIN.replace('2"', "2")}, "quotes"),
        ({**SASL, "sasl.jaas.config": SCRAM}, "PlainLoginModule"),
        ({**SASL, "sasl.jaas.config": PLAIN + PLAIN}, "more than one"),
        ({**SASL, "sasl.jaas.config": "x.PlainLoginModule required username=alice;"}, "username and a password"),
        ({**SASL, "sasl.mechanism": "OAUTHBEARER", "sasl.jaas.config": f"{BEARER};"}, "token.endpoint.url"),
        (
            {
                **SASL,
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.jaas.config": f"{BEARER};",
                "sasl.oauthbearer.token.endpoint.url": "https://x",
            },
            "clientSecret",
        ),
        ({**SASL, "sasl.login.callback.handler.class": "com.example.Mine"}, "sasl.login.callback.handler.class"),
        ({"ssl.engine.factory.class": "com.example.Mine"}, "ssl.engine.factory.class"),
        ({"security.protocol": "SSL", "ssl.truststore.type": "BKS"}, "ssl.truststore.type"),
        ({"security.protocol": "SSL", "ssl.truststore.certificates": "hunter2"}, "ssl.truststore.type=PEM"),
        (
            {"security.protocol": "SSL", "ssl.keystore.type": "PEM", "ssl.keystore.key": "hunter2"},
            "certificate.chain",
        ),
        ({"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": "ldaps"}, "identification"),
        ({"security.protocol": "SSL", "ssl.enabled.protocols": "TLSv1.1"}, "ssl.enabled.protocols"),
    ],
)
def test_what_cannot_work_is_named_and_no_secret_is_shown(properties: dict[str, str], named: str) -> None:
    with pytest.raises(SecurityError, match=named) as refused:
        security_from_properties(properties)
    assert "hunter2" not in str(refused.value)
    assert "hunter2" not in str(refused.value.__cause__)


def test_kafkas_own_callback_handlers_are_what_happens_here_anyway() -> None:
    name = "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerLoginCallbackHandler"
    assert security_from_properties({**SASL, "sasl.login.callback.handler.class": name}).mechanism == "PLAIN"


def test_a_security_can_be_compared_pickled_and_printed_without_its_secrets() -> None:
    made = Security(
        "SASL_SSL",
        "PLAIN",
        "alice",
        "hunter2",
        token=TokenEndpoint("https://x", "me", "hunter2"),
        extensions=(("a", "hunter2"),),
        trust=Store("JKS", "/t", password="hunter2"),
        key=Store("PEM", pem="hunter2"),
        key_password="hunter2",
    )
    assert pickle.loads(pickle.dumps(made)) == made
    assert hash(made) == hash(pickle.loads(pickle.dumps(made)))
    assert "hunter2" not in repr(made)
    assert "hunter2" not in repr(made.token)
    assert "alice" in repr(made)


def test_jaas_values_may_be_quoted_escaped_or_bare() -> None:
    module = parse_jaas("""a.b.Login Required one="x \\"y\\" \\\\ ; =" two='it"s' three=bare four = "spaced" ; """)
    assert module.name == "Login"
    assert module.options == {"one": 'x "y" \\ ; =', "two": 'it"s', "three": "bare", "four": "spaced"}
    assert "bare" not in repr(module)


def test_comments_of_java_are_no_part_of_a_jaas_entry() -> None:
    text = """// who we are
        a.b.Login /* always */ required // one="no" ;
        url=https://x.example/*y two="a // b /* c */"/**/;// the end"""
    module = parse_jaas(text)
    assert module.options == {"url": "https://x.example/*y", "two": "a // b /* c */"}


@pytest.mark.parametrize("text", ["", ";", "Login;", "Login maybe a=b;", "Login required a;", "Login required a b c;"])
def test_what_is_no_jaas_entry_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="it"):
        parse_jaas(text)
