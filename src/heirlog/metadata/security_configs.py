"""The configurations of TLS and SASL, each for one listener: `listener.name.<listener>.<name>`, else `<name>`.

    listener.name.external.ssl.keystore.location=...               for the listener EXTERNAL
    listener.name.external.scram-sha-512.sasl.jaas.config=...      for one SASL mechanism of it
    ssl.keystore.location=...                                      for every listener without its own

Names and defaults are Kafka's. `listener_security.py` has the rules.
"""

from __future__ import annotations

from typing import Final

from heirlog.metadata.definition import ConfigKey, Update, integer, list_of, long, password, string

STORE_TYPES: Final = ("JKS", "PKCS12", "PEM")
TLS_VERSIONS: Final = ("TLSv1.2", "TLSv1.3")

SECURITY: Final[tuple[ConfigKey, ...]] = (
    long("connections.max.reauth.ms", 0),
    list_of("sasl.enabled.mechanisms", "GSSAPI", update=Update.PER_BROKER),
    password("sasl.jaas.config", update=Update.PER_BROKER),
    string("sasl.mechanism.controller.protocol", "GSSAPI"),
    string("sasl.mechanism.inter.broker.protocol", "GSSAPI", update=Update.PER_BROKER),
    integer("sasl.server.max.receive.size", 524_288, 1),
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

ONLY_FOR_MECHANISM: Final = ("sasl.jaas.config",)
FOR_MECHANISM: Final = (*ONLY_FOR_MECHANISM, "connections.max.reauth.ms")
"""What may differ between the SASL mechanisms of one listener."""
OF_SERVERS: Final = ("ssl.client.auth", "ssl.cipher.suites", "ssl.principal.mapping.rules")
"""What has no meaning for a node that connects to others."""
NOT_FOR_LISTENER: Final = ("sasl.mechanism.controller.protocol", "sasl.mechanism.inter.broker.protocol")
"""Of the node as a client of other nodes: one for all."""
