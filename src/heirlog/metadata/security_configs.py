"""The configurations of TLS and SASL, each for one listener: `listener.name.<listener>.<name>`, else `<name>`.

    listener.name.external.ssl.keystore.location=...               for the listener EXTERNAL
    listener.name.external.scram-sha-512.sasl.jaas.config=...      for one SASL mechanism of it
    ssl.keystore.location=...                                      for every listener without its own

Names and defaults are Kafka's. `listener_security.py` has the rules.
"""

from __future__ import annotations

from typing import Final

from heirlog.metadata.definition import ConfigKey, Update, boolean, class_name, integer, list_of, long, password, string
from heirlog.security.allowed_urls import ALLOWED_URLS

STORE_TYPES: Final = ("JKS", "PKCS12", "PEM")
TLS_VERSIONS: Final = ("TLSv1.2", "TLSv1.3")

_BEARER: Final = "org.apache.kafka.common.security.oauthbearer"
SIGNED_TOKENS: Final = (
    f"{_BEARER}.OAuthBearerValidatorCallbackHandler",
    f"{_BEARER}.secured.OAuthBearerValidatorCallbackHandler",
)
UNSECURED_TOKENS: Final = f"{_BEARER}.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"

SECURITY: Final[tuple[ConfigKey, ...]] = (
    long("connections.max.reauth.ms", 0),
    list_of(ALLOWED_URLS, ""),
    list_of("sasl.enabled.mechanisms", "GSSAPI", update=Update.PER_BROKER),
    password("sasl.jaas.config", update=Update.PER_BROKER),
    string("sasl.mechanism.controller.protocol", "GSSAPI"),
    string("sasl.mechanism.inter.broker.protocol", "GSSAPI", update=Update.PER_BROKER),
    class_name(
        "sasl.login.callback.handler.class",
        choices=(
            f"{_BEARER}.OAuthBearerLoginCallbackHandler",
            f"{_BEARER}.secured.OAuthBearerLoginCallbackHandler",
            f"{_BEARER}.internals.unsecured.OAuthBearerUnsecuredLoginCallbackHandler",
        ),
    ),
    string("sasl.oauthbearer.client.credentials.client.id", None),
    password("sasl.oauthbearer.client.credentials.client.secret"),
    integer("sasl.oauthbearer.clock.skew.seconds", 30, 0),
    list_of("sasl.oauthbearer.expected.audience", ""),
    string("sasl.oauthbearer.expected.issuer", None),
    long("sasl.oauthbearer.jwks.endpoint.refresh.ms", 3_600_000, 1),
    long("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", 10_000, 1),
    long("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", 100, 1),
    string("sasl.oauthbearer.jwks.endpoint.url", None),
    string("sasl.oauthbearer.scope", None),
    string("sasl.oauthbearer.scope.claim.name", "scope"),
    string("sasl.oauthbearer.sub.claim.name", "sub"),
    string("sasl.oauthbearer.token.endpoint.url", None),
    class_name("sasl.server.callback.handler.class", choices=(*SIGNED_TOKENS, UNSECURED_TOKENS)),
    integer("sasl.server.max.receive.size", 524_288, 1),
    boolean("ssl.allow.dn.changes", False),
    boolean("ssl.allow.san.changes", False),
    list_of("ssl.cipher.suites", "", update=Update.PER_BROKER),
    string("ssl.client.auth", "none", choices=("none", "requested", "required"), update=Update.PER_BROKER),
    list_of("ssl.enabled.protocols", "TLSv1.2,TLSv1.3", choices=TLS_VERSIONS, update=Update.PER_BROKER),
    string("ssl.endpoint.identification.algorithm", "https", choices=("https", "HTTPS", ""), update=Update.PER_BROKER),
    password("ssl.key.password", update=Update.PER_BROKER),
    password("ssl.keystore.certificate.chain", update=Update.PER_BROKER),
    password("ssl.keystore.key", update=Update.PER_BROKER),
    string("ssl.keystore.location", None, update=Update.PER_BROKER),
    password("ssl.keystore.password", update=Update.PER_BROKER),
    string("ssl.keystore.type", "JKS", choices=STORE_TYPES, update=Update.PER_BROKER),
    string("ssl.principal.mapping.rules", "DEFAULT"),
    password("ssl.truststore.certificates", update=Update.PER_BROKER),
    string("ssl.truststore.location", None, update=Update.PER_BROKER),
    password("ssl.truststore.password", update=Update.PER_BROKER),
    string("ssl.truststore.type", "JKS", choices=STORE_TYPES, update=Update.PER_BROKER),
)

STORES: Final = (
    "ssl.key.password",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.keystore.type",
    "ssl.truststore.certificates",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.type",
)
"""What may change for a listener while its node runs (KIP-226)."""
ONLY_FOR_MECHANISM: Final = (
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.server.callback.handler.class",
)
FOR_MECHANISM: Final = (
    *ONLY_FOR_MECHANISM,
    "connections.max.reauth.ms",
    *(key.name for key in SECURITY if key.name.startswith("sasl.oauthbearer.")),
)
"""What may differ between the SASL mechanisms of one listener."""
OF_SERVERS: Final = (
    "ssl.allow.dn.changes",
    "ssl.allow.san.changes",
    "ssl.cipher.suites",
    "ssl.client.auth",
    "ssl.principal.mapping.rules",
)
"""What has no meaning for a node that connects to others."""
NOT_FOR_LISTENER: Final = (
    "sasl.mechanism.controller.protocol",
    "sasl.mechanism.inter.broker.protocol",
    ALLOWED_URLS,
)
"""Of the node, one for all its listeners."""
OF_TOKENS: Final = (
    "sasl.login.callback.handler.class",
    "sasl.oauthbearer.client.credentials.client.id",
    "sasl.oauthbearer.client.credentials.client.secret",
    "sasl.oauthbearer.scope",
    "sasl.oauthbearer.token.endpoint.url",
)
"""By which a node gets the token that it shows to other nodes."""
