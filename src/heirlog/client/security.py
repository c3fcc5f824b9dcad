"""How a client proves who it is and whom it talks to: one value, and how Kafka's client properties become one.

    protocol          PLAINTEXT, SSL (TLS), SASL_PLAINTEXT, SASL_SSL
    SASL_*            PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512 (name and password), OAUTHBEARER (a token)
    SSL, SASL_SSL     trust: certificates of authorities (none: those of the system); key: our own, where asked for

A `Security` is plain data: it can be compared, hashed, pickled and printed, and what is secret is not in its repr.
Errors name the property and say what to do; they never hold a value of one.

Kerberos (GSSAPI) is not supported. Java classes cannot be loaded: a property that names one is refused unless heirlog
does the same as Kafka's class of that name. Properties without a meaning here (refresh windows, providers of random
numbers) are ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from heirlog.security.allowed_urls import ALLOWED_URLS, why_refused
from heirlog.security.jaas import LoginModule, parse_jaas
from heirlog.security.pem import in_lines

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
PASSWORD_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
MECHANISMS = (*PASSWORD_MECHANISMS, "OAUTHBEARER")
STORE_TYPES = ("PEM", "JKS", "PKCS12")
TLS_VERSIONS = ("TLSv1.2", "TLSv1.3")
MODULES = {
    "PLAIN": "PlainLoginModule",
    "SCRAM-SHA-256": "ScramLoginModule",
    "SCRAM-SHA-512": "ScramLoginModule",
    "OAUTHBEARER": "OAuthBearerLoginModule",
}
REFUSED = {
    "ssl.engine.factory.class": "heirlog cannot load Java classes",
    "ssl.provider": "heirlog cannot load Java security providers",
    "sasl.login.class": "heirlog cannot load Java classes",
    "sasl.client.callback.handler.class": "heirlog cannot load Java classes",
    "security.providers": "heirlog cannot load Java security providers",
}
KAFKAS_OWN_CLASSES = {
    "sasl.login.callback.handler.class": (
        "OAuthBearerLoginCallbackHandler",
        "OAuthBearerUnsecuredLoginCallbackHandler",
    ),
    "sasl.oauthbearer.jwt.retriever.class": (
        "DefaultJwtRetriever",
        "ClientCredentialsJwtRetriever",
        "FileJwtRetriever",
    ),
}


class SecurityError(ValueError):
    """The security properties are incomplete or wrong. The message has their names, never their values."""


@dataclass(frozen=True, slots=True)
class UnsecuredToken:
    """A JWT without a signature, which a broker accepts in tests only."""

    subject: str
    lifetime_s: int = 3600
    scope: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TokenEndpoint:
    """Where a token is fetched: OAuth 2 client credentials at an https URL, or a file that holds one (file URL)."""

    url: str
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    scope: str = ""
    tls: Security | None = None
    """How https is spoken; None: with the system's authorities."""

    @property
    def is_file(self) -> bool:
        return self.url.startswith("file:")


TokenSource: TypeAlias = UnsecuredToken | TokenEndpoint | Callable[[], str]
"""A function is asked for a token at each new connection."""


@dataclass(frozen=True, slots=True)
class Store:
    """Certificates, and for a key store the private key: a file, or PEM text itself."""

    type: str
    location: str = ""
    pem: str = field(default="", repr=False)
    password: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Security:
    """How a client connects: protocol, login and TLS. Raises SecurityError for values that cannot work."""

    protocol: str = "PLAINTEXT"
    mechanism: str = ""
    username: str = ""
    password: str = field(default="", repr=False)
    delegation_token: bool = False
    """username and password are a delegation token's id and HMAC (KIP-48)."""
    token: TokenSource | None = field(default=None, repr=False)
    extensions: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Of an OAUTHBEARER exchange (KIP-342)."""
    trust: Store | None = None
    key: Store | None = None
    key_password: str = field(default="", repr=False)
    check_host_name: bool = True
    tls_versions: tuple[str, ...] = TLS_VERSIONS
    cipher_suites: tuple[str, ...] = ()
    """By their standard names, as Java's; none: OpenSSL's own choice."""

    def __post_init__(self) -> None:
        if self.protocol not in PROTOCOLS:
            raise SecurityError(f"security.protocol is none of {', '.join(PROTOCOLS)}")
        if not self.uses_sasl:
            return
        if self.mechanism not in MECHANISMS:
            raise SecurityError(
                f"sasl.mechanism is none of {', '.join(MECHANISMS)} (GSSAPI, Kafka's default, is not supported)"
            )
        if self.mechanism == "OAUTHBEARER":
            if self.token is None:
                raise SecurityError(
                    "OAUTHBEARER needs a token: set sasl.oauthbearer.token.endpoint.url to where it is fetched, or "
                    "to a file (file:///...)"
                )
        elif not self.username or not self.password:
            raise SecurityError(f"{self.mechanism} needs a username and a password in sasl.jaas.config")

    @property
    def uses_tls(self) -> bool:
        return self.protocol in ("SSL", "SASL_SSL")

    @property
    def uses_sasl(self) -> bool:
        return self.protocol in ("SASL_PLAINTEXT", "SASL_SSL")


PLAINTEXT = Security()


def security_from_properties(properties: Mapping[str, str]) -> Security:
    """The security settings in Kafka's client properties; other properties are ignored. Raises SecurityError."""
    _refuse(properties)
    protocol = properties.get("security.protocol", "PLAINTEXT").strip().upper()
    sasl: dict[str, object] = {}
    tls: dict[str, object] = {}
    if protocol.startswith("SASL_"):
        sasl = _sasl(properties)
    if protocol.endswith("SSL"):
        tls = _tls(properties)
    return Security(protocol=protocol, **sasl, **tls)  # type: ignore[arg-type]  # made from the fields' own names


def _refuse(properties: Mapping[str, str]) -> None:
    for name, reason in REFUSED.items():
        if properties.get(name):
            raise SecurityError(f"{name} is not supported: {reason}")
    for name, known in KAFKAS_OWN_CLASSES.items():
        if properties.get(name, known[0]).rpartition(".")[2] not in known:
            raise SecurityError(f"{name} is not supported except for Kafka's own {', '.join(known)}")


# ------------------------------------------------------------------------------------------------------------ SASL


def _sasl(properties: Mapping[str, str]) -> dict[str, object]:
    mechanism = properties.get("sasl.mechanism", "GSSAPI").strip()
    if mechanism not in MECHANISMS:
        return {"mechanism": mechanism}
    text = properties.get("sasl.jaas.config", "")
    if not text.strip():
        raise SecurityError(f"sasl.mechanism {mechanism} needs sasl.jaas.config")
    try:
        module = parse_jaas(text)
    except ValueError as error:
        raise SecurityError(f"sasl.jaas.config cannot be read: {error}") from None
    if module.name != MODULES[mechanism]:
        raise SecurityError(f"sasl.jaas.config names another login module than {MODULES[mechanism]} for {mechanism}")
    options = module.options
    if mechanism == "OAUTHBEARER":
        extensions = tuple(
            sorted((name.removeprefix("extension_"), v) for name, v in options.items() if name.startswith("extension_"))
        )
        return {"mechanism": mechanism, "token": _token_source(properties, module), "extensions": extensions}
    return {
        "mechanism": mechanism,
        "username": options.get("username", ""),
        "password": options.get("password", ""),
        "delegation_token": options.get("tokenauth", "").lower() == "true",
    }


def _token_source(properties: Mapping[str, str], module: LoginModule) -> TokenSource | None:
    options = module.options
    url = properties.get("sasl.oauthbearer.token.endpoint.url", "").strip()
    if url:
        refused = why_refused("sasl.oauthbearer.token.endpoint.url", url, properties.get(ALLOWED_URLS, ""))
        if refused is not None:
            raise SecurityError(refused)
        of_endpoint = {name: text for name, text in options.items() if name.startswith("ssl.")}
        made = TokenEndpoint(
            url,
            options.get("clientId") or properties.get("sasl.oauthbearer.client.credentials.client.id", ""),
            options.get("clientSecret") or properties.get("sasl.oauthbearer.client.credentials.client.secret", ""),
            options.get("scope") or properties.get("sasl.oauthbearer.scope", ""),
            Security("SSL", **_tls(of_endpoint)) if of_endpoint else None,  # type: ignore[arg-type]  # as below
        )
        if not made.is_file and not (made.client_id and made.client_secret):
            raise SecurityError(
                "sasl.oauthbearer.token.endpoint.url needs clientId and clientSecret in sasl.jaas.config, "
                "or sasl.oauthbearer.client.credentials.client.id and .secret"
            )
        return made
    subject = options.get("unsecuredLoginStringClaim_sub")
    if subject is None:
        return None
    try:
        lifetime_s = int(options.get("unsecuredLoginLifetimeSeconds", "3600"))
    except ValueError:
        raise SecurityError("sasl.jaas.config: unsecuredLoginLifetimeSeconds is not a whole number") from None
    return UnsecuredToken(subject, lifetime_s, tuple(options.get("unsecuredLoginStringClaim_scope", "").split()))


# ------------------------------------------------------------------------------------------------------------- TLS


def _tls(properties: Mapping[str, str]) -> dict[str, object]:
    algorithm = properties.get("ssl.endpoint.identification.algorithm", "https").strip().lower()
    if algorithm not in ("https", ""):
        raise SecurityError("ssl.endpoint.identification.algorithm is neither https nor empty (which checks no name)")
    return {
        "trust": _trust_store(properties),
        "key": _key_store(properties),
        "key_password": properties.get("ssl.key.password", ""),
        "check_host_name": algorithm == "https",
        "tls_versions": _tls_versions(properties),
        "cipher_suites": _names(properties.get("ssl.cipher.suites", "")),
    }


def _tls_versions(properties: Mapping[str, str]) -> tuple[str, ...]:
    wanted = _names(properties.get("ssl.enabled.protocols", ""))
    if not wanted:
        return TLS_VERSIONS
    spoken = tuple(version for version in TLS_VERSIONS if version in wanted)
    if not spoken:
        raise SecurityError(f"ssl.enabled.protocols has none of {', '.join(TLS_VERSIONS)}")
    return spoken


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _trust_store(properties: Mapping[str, str]) -> Store | None:
    kind = _store_type(properties, "ssl.truststore.type")
    location = properties.get("ssl.truststore.location", "").strip()
    pem = in_lines(properties.get("ssl.truststore.certificates", ""))
    _check_store("ssl.truststore", kind, location, pem, "ssl.truststore.certificates")
    if not location and not pem:
        return None
    return Store(kind, location, pem, properties.get("ssl.truststore.password", ""))


def _key_store(properties: Mapping[str, str]) -> Store | None:
    kind = _store_type(properties, "ssl.keystore.type")
    location = properties.get("ssl.keystore.location", "").strip()
    chain, key = properties.get("ssl.keystore.certificate.chain", ""), properties.get("ssl.keystore.key", "")
    if bool(chain) != bool(key):
        raise SecurityError("ssl.keystore.certificate.chain and ssl.keystore.key belong together: one is missing")
    pem = in_lines(f"{key.strip()}\n{chain.strip()}\n") if key else ""
    _check_store("ssl.keystore", kind, location, pem, "ssl.keystore.key")
    if not location and not pem:
        return None
    return Store(kind, location, pem, properties.get("ssl.keystore.password", ""))


def _store_type(properties: Mapping[str, str], name: str) -> str:
    kind = properties.get(name, "JKS").strip().upper()
    if kind not in STORE_TYPES:
        raise SecurityError(f"{name} is none of {', '.join(STORE_TYPES)}")
    return kind


def _check_store(prefix: str, kind: str, location: str, pem: str, pem_name: str) -> None:
    if pem and kind != "PEM":
        raise SecurityError(f"{pem_name} needs {prefix}.type=PEM")
    if pem and location:
        raise SecurityError(f"{pem_name} and {prefix}.location are both set: remove one of them")
