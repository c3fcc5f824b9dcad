"""Who may connect to a listener, and how it proves itself: the security settings of one listener, judged.

    PLAINTEXT        every client is User:ANONYMOUS
    SSL              TLS; with `ssl.client.auth` a client is the subject of its certificate, mapped by rules
    SASL_PLAINTEXT   a client is who its SASL mechanism says; tokens travel in clear
    SASL_SSL         the same within TLS; a client's certificate only lets its connection in

A value is that of `listener.name.<listener>.<name>`, else that of `<name>`; what belongs to one SASL mechanism is
`listener.name.<listener>.<mechanism>.<name>` first, names in lower case. Two exceptions, as in Kafka: `ssl.client.auth`
of a SASL_SSL listener counts only with the listener's prefix (KIP-684), and `sasl.jaas.config` only with listener and
mechanism. Where Kafka ignores such a setting with a warning, a setting that could be meant for something is refused.

A node is also a client: of other brokers on the inter-broker listener, and of controllers. It then uses the same
settings of that listener (`peer_properties`).

Source: KIP-43, KIP-103, KIP-684.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from heirlog.metadata.definition import INT_MAX, MISSPELT, ConfigError, ConfigKey
from heirlog.metadata.security_configs import (
    FOR_MECHANISM,
    NOT_FOR_LISTENER,
    OF_SERVERS,
    OF_TOKENS,
    ONLY_FOR_MECHANISM,
    SECURITY,
    STORES,
    UNSECURED_TOKENS,
)
from heirlog.metadata.server_configs import SERVER_CONFIGS
from heirlog.security.access_token import ClaimRules
from heirlog.security.allowed_urls import ALLOWED_URLS, why_refused
from heirlog.security.jaas import LoginModule, parse_jaas
from heirlog.security.oauthbearer import OAUTHBEARER
from heirlog.security.principal_mapping import MappingError, PrincipalMapper

SECURITY_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
"""By their numbers in registrations."""
PLAIN: Final = "PLAIN"
SCRAM: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
SERVED_MECHANISMS: Final = (PLAIN, *SCRAM, OAUTHBEARER)
PREFIX: Final = "listener.name."
PLAIN_USER: Final = "user_"
"""Begins the option of a JAAS entry that has the password of a user."""
_LOGIN_MODULES: Final = {
    PLAIN: "PlainLoginModule",
    "SCRAM-SHA-256": "ScramLoginModule",
    "SCRAM-SHA-512": "ScramLoginModule",
    OAUTHBEARER: "OAuthBearerLoginModule",
}
_BY_NAME: Final[Mapping[str, ConfigKey]] = {key.name: key for key in SECURITY}
LISTENER_LIMITS: Final = ("max.connections", "max.connection.creation.rate")
"""What is no matter of security, and may be limited for a listener in addition to the node."""
_INSTEAD_OF: Final[Mapping[str, tuple[str, ...]]] = {
    "ssl.keystore.key": ("ssl.keystore.location", "ssl.keystore.password"),
    "ssl.keystore.location": ("ssl.keystore.key", "ssl.keystore.certificate.chain"),
    "ssl.truststore.certificates": ("ssl.truststore.location", "ssl.truststore.password"),
    "ssl.truststore.location": ("ssl.truststore.certificates",),
}
_JAAS: Final = "sasl.jaas.config"
_MECHANISMS: Final = "sasl.enabled.mechanisms"
_VALIDATOR: Final = "sasl.server.callback.handler.class"


@dataclass(frozen=True, slots=True)
class BearerTokens:
    """What OAUTHBEARER takes on a listener."""

    rules: ClaimRules
    jwks_url: str = ""
    """Where the keys are that sign tokens; empty: tokens are not signed."""
    required_scope: tuple[str, ...] = ()
    """Of unsecured tokens."""


@dataclass(frozen=True, slots=True)
class ListenerSecurity:
    """Plain data; what is secret is not in its repr."""

    listener: str
    protocol: str
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What the file says for this listener: names without the listener's prefix."""
    mechanisms: tuple[str, ...] = ()
    """SASL mechanisms that clients may use."""
    mapper: PrincipalMapper | None = field(default=None, repr=False, compare=False)
    """For certificates; None on a listener where they do not name the client."""
    plain_users: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Passwords of the users of PLAIN."""
    bearer: BearerTokens | None = None
    """None on a listener without OAUTHBEARER."""

    def with_stores(self, stores: Mapping[str, str]) -> ListenerSecurity:
        """With the stores that dynamic configurations give it.

        A store that is text replaces one that is a file, and the reverse: the file's lines cannot be deleted meanwhile.
        """
        if not stores:
            return self
        replaced = {name for new, others in _INSTEAD_OF.items() if stores.get(new) for name in others}
        kept = {name: text for name, text in self.properties.items() if name not in replaced}
        return replace(self, properties={**kept, **stores})

    @property
    def uses_tls(self) -> bool:
        return self.protocol in ("SSL", "SASL_SSL")

    @property
    def uses_sasl(self) -> bool:
        return self.protocol.startswith("SASL_")

    def value(self, name: str, mechanism: str = "") -> Any:
        """The typed value of a security configuration, or its default."""
        text = self.properties.get(f"{mechanism.lower()}.{name}") if mechanism else None
        if text is None:
            text = self.properties.get(name)
        return _BY_NAME[name].default_value() if text is None else _BY_NAME[name].parse(text)

    def peer_properties(self, mechanism: str) -> dict[str, str]:
        """For this node as a client of such a listener of another node: Kafka's client properties."""
        found = {
            name: text
            for name, text in self.properties.items()
            if name.startswith("ssl.") and name in _BY_NAME and name not in OF_SERVERS
        }
        found["security.protocol"] = self.protocol
        if self.uses_sasl:
            found["sasl.mechanism"] = mechanism
            found[_JAAS] = self.properties.get(f"{mechanism.lower()}.{_JAAS}", "")
        if mechanism == OAUTHBEARER:
            for name in (*OF_TOKENS, ALLOWED_URLS):
                text = self.properties.get(f"{mechanism.lower()}.{name}") or self.properties.get(name)
                if text:
                    found[name] = text
        return found


def is_listener_config(name: str) -> bool:
    return name.startswith(PREFIX)


def is_setting_of_listener(name: str) -> bool:
    """Whether the name is `listener.name.<listener>.` and one of TLS or SASL, of a mechanism or of all."""
    rest = name.removeprefix(PREFIX).partition(".")[2]
    return is_listener_config(name) and (rest in _BY_NAME or rest.partition(".")[2] in _BY_NAME)


def is_secret(name: str) -> bool:
    """Whether the value of a broker's configuration must not be shown: passwords, and, as in Kafka, what is unknown.

    A log that Kafka has written may have any name in it.
    """
    definition = SERVER_CONFIGS.get(name)
    if is_listener_config(name):
        rest = name.removeprefix(PREFIX).partition(".")[2]
        definition = _BY_NAME.get(rest) or _BY_NAME.get(rest.partition(".")[2]) or limit_of_listener(name)
    return definition is None or definition.is_sensitive


def limit_of_listener(name: str) -> ConfigKey | None:
    """The definition of `listener.name.<listener>.<limit>`; None for any other name."""
    rest = name.removeprefix(PREFIX).partition(".")[2]
    return SERVER_CONFIGS[rest] if is_listener_config(name) and rest in LISTENER_LIMITS else None


def store_of_listener(name: str) -> ConfigKey | None:
    """The definition of `listener.name.<listener>.<store>`, one of `STORES`; None for any other name."""
    rest = name.removeprefix(PREFIX).partition(".")[2]
    return _BY_NAME[rest] if is_listener_config(name) and rest in STORES else None


def stores_by_listener(configs: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """The stores among dynamic configurations of a node, by listener, without the prefix."""
    found: dict[str, dict[str, str]] = {}
    for name, text in configs.items():
        if store_of_listener(name) is not None:
            listener, _, rest = name.removeprefix(PREFIX).partition(".")
            found.setdefault(listener.upper(), {})[rest] = text
    return found


def parse_listener_config(name: str, text: str, listeners: Collection[str]) -> None:
    """Check one `listener.name.` property on its own. Raises ConfigError.

    listeners: the names of all listeners that this node knows.
    """
    listener, _, rest = name.removeprefix(PREFIX).partition(".")
    if listener.upper() not in listeners:
        raise ConfigError(
            name,
            f"{name}: {listener.upper()} is not a listener of this node; it has {', '.join(sorted(listeners))}",
        )
    definition = _BY_NAME.get(rest) or limit_of_listener(name)
    if definition is None:
        mechanism, _, of_mechanism = rest.partition(".")
        definition = _BY_NAME.get(of_mechanism) if of_mechanism in FOR_MECHANISM else None
        if definition is not None and mechanism.upper() not in SERVED_MECHANISMS:
            raise ConfigError(
                name, f"{name}: {mechanism} is not a SASL mechanism of heirlog; it has {', '.join(SERVED_MECHANISMS)}"
            )
    elif rest in ONLY_FOR_MECHANISM:
        raise ConfigError(
            name,
            f"{name} needs the SASL mechanism in its name, such as {PREFIX}{listener}.plain.{rest}",
        )
    if definition is None or definition.name in NOT_FOR_LISTENER:
        raise ConfigError(name, f"{name}: {rest} is not a configuration that one listener can have; {MISSPELT}")
    definition.parse(text)


def listener_security(
    given: Mapping[str, str], listener: str, protocol: str, is_served: bool = True
) -> ListenerSecurity:
    """The settings of one listener from the properties of a node. Raises ConfigError.

    is_served: False: only other nodes have it, and this node connects to it.
    """
    prefix = f"{PREFIX}{listener.lower()}."
    own = {name.removeprefix(prefix): text for name, text in given.items() if name.startswith(prefix)}
    common = {name: text for name, text in given.items() if name in _BY_NAME and name not in ONLY_FOR_MECHANISM}
    if protocol == "SASL_SSL":
        common.pop("ssl.client.auth", None)
    made = ListenerSecurity(listener, protocol, {**common, **own})
    if not is_served:
        return made
    mechanisms = _mechanisms(made) if made.uses_sasl else ()
    return ListenerSecurity(
        listener,
        protocol,
        made.properties,
        mechanisms,
        _mapper(made) if protocol == "SSL" else None,
        _plain_users(made) if PLAIN in mechanisms else {},
        _bearer_tokens(made) if OAUTHBEARER in mechanisms else None,
    )


def _mechanisms(security: ListenerSecurity) -> tuple[str, ...]:
    if _MECHANISMS not in security.properties:
        raise ConfigError(
            _MECHANISMS,
            f"{_MECHANISMS} is missing: listener {security.listener} is {security.protocol}, so name the mechanisms of "
            f"its clients ({', '.join(SERVED_MECHANISMS)}; Kafka's default GSSAPI is not one of heirlog's)",
        )
    names: tuple[str, ...] = security.value(_MECHANISMS)
    for name in names:
        if name not in SERVED_MECHANISMS:
            raise ConfigError(
                _MECHANISMS,
                f"{_MECHANISMS}: {name} is not a mechanism of heirlog; it has {', '.join(SERVED_MECHANISMS)}",
            )
    return names


def _mapper(security: ListenerSecurity) -> PrincipalMapper:
    name = "ssl.principal.mapping.rules"
    try:
        return PrincipalMapper(security.value(name))
    except MappingError as error:
        raise ConfigError(name, f"{name} of listener {security.listener}: {error}") from error


def jaas_module(security: ListenerSecurity, mechanism: str) -> LoginModule | None:
    """The entry of one mechanism; None if it has none. Raises ConfigError."""
    name = f"{PREFIX}{security.listener.lower()}.{mechanism.lower()}.{_JAAS}"
    text = security.properties.get(f"{mechanism.lower()}.{_JAAS}")
    if text is None:
        return None
    try:
        module = parse_jaas(text)
    except ValueError as error:
        raise ConfigError(name, f"{name} cannot be read: {error}") from None
    if module.name != _LOGIN_MODULES[mechanism]:
        raise ConfigError(name, f"{name} names another login module than {_LOGIN_MODULES[mechanism]}")
    return module


def _plain_users(security: ListenerSecurity) -> dict[str, str]:
    module = jaas_module(security, PLAIN)
    name = f"{PREFIX}{security.listener.lower()}.{PLAIN.lower()}.{_JAAS}"
    if module is None:
        raise ConfigError(
            name,
            f"{name} is missing: it has the users of PLAIN on listener {security.listener}, such as "
            'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="her password";',
        )
    users = {
        option.removeprefix(PLAIN_USER): password
        for option, password in module.options.items()
        if option.startswith(PLAIN_USER)
    }
    for user, password in users.items():
        if not user or not password:
            raise ConfigError(name, f"{name}: a user without a name or without a password")
    return users


def _bearer_tokens(security: ListenerSecurity) -> BearerTokens:
    validator = security.properties.get(f"{OAUTHBEARER.lower()}.{_VALIDATOR}", "")
    url = security.value("sasl.oauthbearer.jwks.endpoint.url", OAUTHBEARER) or ""
    if validator == UNSECURED_TOKENS:
        return _unsecured_tokens(security)
    name = "sasl.oauthbearer.jwks.endpoint.url"
    if not url:
        raise ConfigError(
            name,
            f"{name} is missing: listener {security.listener} takes OAUTHBEARER, so name the address, or the file "
            "(file:///...), of the keys that sign tokens. Tokens without a signature, Kafka's default, are for tests; "
            f"to take them set {PREFIX}{security.listener.lower()}.{OAUTHBEARER.lower()}.{_VALIDATOR}="
            f"{UNSECURED_TOKENS}",
        )
    refused = why_refused(name, url, security.properties.get(ALLOWED_URLS, ""))
    if refused is not None:
        raise ConfigError(name, refused)
    jaas_module(security, OAUTHBEARER)
    audience: tuple[str, ...] = security.value("sasl.oauthbearer.expected.audience", OAUTHBEARER)
    rules = ClaimRules(
        audience=tuple(one for one in audience if one),
        issuer=security.value("sasl.oauthbearer.expected.issuer", OAUTHBEARER) or None,
        clock_skew_ms=1000 * security.value("sasl.oauthbearer.clock.skew.seconds", OAUTHBEARER),
        name_claim=security.value("sasl.oauthbearer.sub.claim.name", OAUTHBEARER),
        scope_claim=security.value("sasl.oauthbearer.scope.claim.name", OAUTHBEARER),
    )
    return BearerTokens(rules, url)


def _unsecured_tokens(security: ListenerSecurity) -> BearerTokens:
    """By the options of the JAAS entry, as in Kafka."""
    module = jaas_module(security, OAUTHBEARER)
    options = {} if module is None else module.options
    skew = options.get("unsecuredValidatorAllowableClockSkewMs", "0").strip()
    if not skew.isdecimal() or len(skew) > len(str(INT_MAX)):
        name = f"{PREFIX}{security.listener.lower()}.{OAUTHBEARER.lower()}.{_JAAS}"
        raise ConfigError(name, f"{name}: unsecuredValidatorAllowableClockSkewMs is not a number of milliseconds")
    rules = ClaimRules(
        clock_skew_ms=int(skew),
        name_claim=options.get("unsecuredValidatorPrincipalClaimName", "").strip() or "sub",
        scope_claim=options.get("unsecuredValidatorScopeClaimName", "").strip() or "scope",
    )
    scope = options.get("unsecuredValidatorRequiredScope", "").split()
    return BearerTokens(rules, required_scope=tuple(scope))


def check_peer(security: ListenerSecurity, mechanism: str, setting: str) -> None:
    """This node connects to such a listener of other nodes by `mechanism`, of `setting`. Raises ConfigError."""
    if not security.uses_sasl:
        return
    if mechanism not in SERVED_MECHANISMS:
        raise ConfigError(
            setting,
            f"{setting}={mechanism}: this node cannot log in to listener {security.listener} of other nodes by it; "
            f"set one of {', '.join(SERVED_MECHANISMS)}",
        )
    if security.mechanisms and mechanism not in security.mechanisms:
        raise ConfigError(
            setting, f"{setting}={mechanism} is not among the {_MECHANISMS} of listener {security.listener}"
        )
    module = jaas_module(security, mechanism)
    if mechanism == OAUTHBEARER:
        return  # where its token comes from is judged with the node's own connections
    if module is None or not module.options.get("username") or not module.options.get("password"):
        name = f"{PREFIX}{security.listener.lower()}.{mechanism.lower()}.{_JAAS}"
        raise ConfigError(
            name, f"{name} needs a username and a password, by which this node logs in to the other nodes"
        )
