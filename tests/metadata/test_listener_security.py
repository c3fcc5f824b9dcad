"""Settings of listeners: where a value comes from, and what is refused at start, with a sentence that says why."""

from __future__ import annotations

import pytest

from heirlog.client.security import TokenEndpoint, security_from_properties
from heirlog.metadata.config_def import ConfigError, StaticConfig, parse_static
from heirlog.metadata.listener_security import BearerTokens
from heirlog.security.access_token import ClaimRules

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required "
LOGIN = PLAIN + 'username="node" password="secret" user_node="secret" user_alice="a";'
BASE = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "listeners": "CLIENTS://:9092,CONTROLLER://:9093",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.bootstrap.servers": "localhost:9093",
    "inter.broker.listener.name": "CLIENTS",
    "listener.security.protocol.map": "CLIENTS:SASL_SSL,CONTROLLER:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "listener.name.clients.plain.sasl.jaas.config": LOGIN,
    "listener.name.controller.plain.sasl.jaas.config": LOGIN,
}


def parsed(**more: str | None) -> StaticConfig:
    given = BASE | {name.replace("__", "-").replace("_", ".").replace("-", "_"): text for name, text in more.items()}
    return parse_static({name: text for name, text in given.items() if text is not None})


def test_each_listener_has_its_protocol_and_its_number_in_registrations() -> None:
    config = parsed()
    assert [(one.name, one.security_protocol_id) for one in config.advertised_listeners] == [("CLIENTS", 3)]
    assert [one.security_protocol_id for one in config.advertised_controller_listeners] == [2]


def test_a_value_is_that_of_the_listener_and_of_the_mechanism_first() -> None:
    config = parsed(
        connections_max_reauth_ms="1",
        listener_name_clients_connections_max_reauth_ms="2",
        listener_name_clients_plain_connections_max_reauth_ms="3",
    )
    name = "connections.max.reauth.ms"
    clients, controller = config.security("CLIENTS"), config.security("CONTROLLER")
    assert (clients.value(name, "PLAIN"), clients.value(name, "SCRAM-SHA-256"), controller.value(name)) == (3, 2, 1)
    assert clients.value("sasl.server.max.receive.size") == 524_288


def test_client_certificates_on_sasl_ssl_need_the_prefix() -> None:
    assert parsed(ssl_client_auth="required").security("CLIENTS").value("ssl.client.auth") == "none"
    own = parsed(listener_name_clients_ssl_client_auth="required")
    assert own.security("CLIENTS").value("ssl.client.auth") == "required"


def test_users_are_in_the_jaas_entry_and_in_no_repr() -> None:
    security = parsed().security("CLIENTS")
    assert security.plain_users == {"node": "secret", "alice": "a"}
    assert "secret" not in repr(security)


def test_a_node_logs_in_to_others_with_the_same_entry() -> None:
    properties = parsed().security("CONTROLLER").peer_properties("PLAIN")
    assert properties["security.protocol"] == "SASL_PLAINTEXT" and properties["sasl.jaas.config"] == LOGIN


def test_a_broker_alone_needs_no_mechanisms_of_the_controllers_listener() -> None:
    config = parsed(
        process_roles="broker",
        listeners="CLIENTS://:9092",
        sasl_enabled_mechanisms=None,
        listener_name_clients_sasl_enabled_mechanisms="PLAIN",
    )
    assert config.security("CONTROLLER").protocol == "SASL_PLAINTEXT"


def test_controllers_default_to_plaintext_only_where_no_listener_is_secure() -> None:
    plain = {"listeners": "PLAINTEXT://:9092,CONTROLLER://:9093", "inter.broker.listener.name": "PLAINTEXT"}
    given = {name: text for name, text in BASE.items() if not name.startswith(("listener.", "sasl."))} | plain
    assert parse_static(given).security("CONTROLLER").protocol == "PLAINTEXT"
    given["listeners"] += ",SSL://:9094"
    with pytest.raises(ConfigError, match="add CONTROLLER:SASL_SSL"):
        parse_static(given)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"sasl_enabled_mechanisms": None}, "sasl.enabled.mechanisms is missing"),
        ({"sasl_enabled_mechanisms": "GSSAPI"}, "GSSAPI is not a mechanism of heirlog"),
        ({"sasl_enabled_mechanisms": "plain"}, "plain is not a mechanism of heirlog"),
        ({"sasl_mechanism_inter_broker_protocol": None}, "sasl.mechanism.inter.broker.protocol=GSSAPI"),
        ({"sasl_mechanism_inter_broker_protocol": "SCRAM-SHA-512"}, "is not among the sasl.enabled.mechanisms"),
        ({"sasl_mechanism_inter_broker_protocol": "SCRAM-SHA-256"}, "needs a username and a password"),
        ({"sasl_mechanism_controller_protocol": "SCRAM-SHA-256"}, "before they have elected a leader"),
        ({"listener_name_clients_plain_sasl_jaas_config": None}, "it has the users of PLAIN"),
        ({"listener_name_clients_plain_sasl_jaas_config": PLAIN + 'user_a="b";'}, "needs a username and a password"),
        ({"listener_name_clients_plain_sasl_jaas_config": PLAIN + 'hidden="x'}, "cannot be read"),
        ({"listener_name_clients_plain_sasl_jaas_config": 'x.Other required hidden="x";'}, "another login module"),
        ({"listener_name_clients_plain_sasl_jaas_config": LOGIN[:-1] + ' user_="x";'}, "a user without a name"),
        ({"sasl_jaas_config": LOGIN}, "needs the listener and the SASL mechanism in its name"),
        ({"listener_name_clients_sasl_jaas_config": LOGIN}, "needs the SASL mechanism in its name"),
        ({"listener_name_clients_gssapi_sasl_jaas_config": LOGIN}, "gssapi is not a SASL mechanism"),
        ({"listener_name_others_ssl_client_auth": "none"}, "OTHERS is not a listener of this node"),
        ({"listener_name_clients_ssl_keystore_locaton": "x"}, "check the spelling"),
        ({"listener_name_clients_sasl_mechanism_controller_protocol": "PLAIN"}, "one listener can have"),
        ({"listener_name_clients_ssl_client_auth": "maybe"}, "expected one of none, requested, required"),
        ({"ssl_enabled_protocols": "TLSv1.1"}, "expected one of TLSv1.2, TLSv1.3"),
        ({"ssl_keystore_type": "BKS"}, "expected one of JKS, PKCS12, PEM"),
        ({"security_inter_broker_protocol": "SASL_SSL"}, "both set: remove one"),
        ({"listener_security_protocol_map": "CLIENTS:TLS,CONTROLLER:SSL"}, "not of the form NAME:PROTOCOL"),
        ({"listener_security_protocol_map": "CLIENTS:SSL"}, "listener CONTROLLER of the controllers has no"),
    ],
)
def test_what_cannot_work_is_refused_and_no_password_is_shown(changes: dict[str, str | None], sentence: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        parsed(**changes)
    assert sentence in refusal.value.sentence
    assert "secret" not in refusal.value.sentence and "hidden" not in refusal.value.sentence


KEYS = "https://issuer/keys"
BEARER = "org.apache.kafka.common.security.oauthbearer"
UNSECURED = f"{BEARER}.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
VALIDATOR = "listener_name_clients_oauthbearer_sasl_server_callback_handler_class"
JAAS = "listener_name_clients_oauthbearer_sasl_jaas_config"
OPTIONS = "OAuthBearerLoginModule required unsecuredValidator"


def bearer(**more: str | None) -> BearerTokens | None:
    given = {"listener_name_clients_sasl_enabled_mechanisms": "PLAIN,OAUTHBEARER", **more}
    return parsed(**given).security("CLIENTS").bearer


def test_tokens_are_judged_by_the_rules_of_their_listener() -> None:
    assert parsed().security("CLIENTS").bearer is None
    assert bearer(sasl_oauthbearer_jwks_endpoint_url=KEYS) == BearerTokens(ClaimRules(), KEYS)
    own = bearer(
        listener_name_clients_oauthbearer_sasl_oauthbearer_jwks_endpoint_url="file:///keys",
        sasl_oauthbearer_jwks_endpoint_url=KEYS,
        listener_name_clients_sasl_oauthbearer_expected_audience="a, b",
        sasl_oauthbearer_expected_issuer="me",
        sasl_oauthbearer_clock_skew_seconds="0",
        sasl_oauthbearer_sub_claim_name="email",
        sasl_oauthbearer_scope_claim_name="scp",
    )
    rules = ClaimRules(audience=("a", "b"), issuer="me", clock_skew_ms=0, name_claim="email", scope_claim="scp")
    assert own == BearerTokens(rules, "file:///keys")


def test_an_http_url_has_to_be_listed() -> None:
    url = "http://issuer/keys"
    allowed = {"heirlog_sasl_oauthbearer_allowed_urls": f"http://other, {url}"}
    found = bearer(sasl_oauthbearer_jwks_endpoint_url=url, **allowed)
    assert found is not None and found.jwks_url == url


def test_tokens_without_a_signature_are_taken_only_where_that_is_said() -> None:
    assert bearer(**{VALIDATOR: UNSECURED}) == BearerTokens(ClaimRules(clock_skew_ms=0))
    text = (
        f'{OPTIONS}PrincipalClaimName="email" unsecuredValidatorScopeClaimName="scp" '
        'unsecuredValidatorRequiredScope="a b" unsecuredValidatorAllowableClockSkewMs="7";'
    )
    rules = ClaimRules(clock_skew_ms=7, name_claim="email", scope_claim="scp")
    assert bearer(**{VALIDATOR: UNSECURED, JAAS: text}) == BearerTokens(rules, required_scope=("a", "b"))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({}, f"to take them set listener.name.clients.oauthbearer.sasl.server.callback.handler.class={UNSECURED}"),
        ({VALIDATOR: f"{BEARER}.OAuthBearerValidatorCallbackHandler"}, "jwks.endpoint.url is missing"),
        ({VALIDATOR: "com.example.Mine"}, "expected one of"),
        ({"sasl_server_callback_handler_class": UNSECURED}, "needs the listener and the SASL mechanism in its name"),
        ({"sasl_oauthbearer_jwks_endpoint_url": "http://issuer/keys"}, "heirlog.sasl.oauthbearer.allowed.urls"),
        ({"sasl_oauthbearer_jwks_endpoint_url": "ftp://issuer/keys"}, "none of https://, http://, file:///"),
        ({"sasl_oauthbearer_jwks_endpoint_url": KEYS, JAAS: LOGIN}, "another login module"),
        ({"sasl_oauthbearer_clock_skew_seconds": "-1"}, "at least 0"),
        ({VALIDATOR: UNSECURED, JAAS: f'{OPTIONS}AllowableClockSkewMs="-1";'}, "not a number of milliseconds"),
        ({"listener_name_clients_heirlog_sasl_oauthbearer_allowed_urls": "x"}, "one listener can have"),
    ],
)
def test_what_would_take_tokens_of_anybody_is_refused(changes: dict[str, str | None], sentence: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        bearer(**changes)
    assert sentence in refusal.value.sentence and "secret" not in refusal.value.sentence


def test_a_node_gets_its_own_token_by_the_settings_of_the_listener() -> None:
    properties = parsed(
        listener_name_clients_sasl_enabled_mechanisms="OAUTHBEARER",
        sasl_mechanism_inter_broker_protocol="OAUTHBEARER",
        sasl_oauthbearer_jwks_endpoint_url=KEYS,
        sasl_oauthbearer_token_endpoint_url="https://issuer/other",
        listener_name_clients_oauthbearer_sasl_oauthbearer_token_endpoint_url="https://issuer/token",
        **{JAAS: 'OAuthBearerLoginModule required clientId="node" clientSecret="secret" scope="x";'},
    )
    found = security_from_properties(properties.security("CLIENTS").peer_properties("OAUTHBEARER"))
    assert found.token == TokenEndpoint("https://issuer/token", "node", "secret", "x")
    assert "secret" not in repr(found)


def test_bad_mapping_rules_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"of listener CLIENTS: .* does not begin with DEFAULT"):
        parsed(listener_security_protocol_map="CLIENTS:SSL,CONTROLLER:SSL", ssl_principal_mapping_rules="nonsense")
