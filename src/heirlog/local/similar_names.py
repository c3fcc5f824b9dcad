"""Which configuration was meant by a name that does not exist.

The names of a server's configurations are compared with those of heirlog; a name with a prefix (`listener.name.x.`) by
what follows the prefix. Client properties have no complete list: a client ignores what it does not know, and files are
shared with other programs. So only a name that is almost one of those that heirlog reads is a mistake, and only where
the file does not have that one too. A file that kcat reads has librdkafka's names for the login and for certificates:
they stop a command only where its `security.protocol` needs what they say.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from typing import Final

from heirlog.local.errors import LocalError
from heirlog.metadata.security_configs import STORES

_ALMOST: Final = 0.9
_LIKE: Final = 0.75
CLIENT_PROPERTIES: Final = (
    "bootstrap.servers",
    "client.id",
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.mechanism",
    "sasl.oauthbearer.client.credentials.client.id",
    "sasl.oauthbearer.client.credentials.client.secret",
    "sasl.oauthbearer.scope",
    "sasl.oauthbearer.token.endpoint.url",
    "security.protocol",
    "ssl.cipher.suites",
    "ssl.enabled.protocols",
    "ssl.endpoint.identification.algorithm",
    *STORES,
)
"""What heirlog's commands read."""
_OF_OTHERS: Final = ("sasl.client.callback.handler.class", "sasl.login.class", "ssl.protocol")
"""Kafka's, which must not be taken for a misspelled one."""
_CA: Final = ("ssl.truststore.location", "ssl.truststore.certificates")
_KEY: Final = ("ssl.keystore.location", "ssl.keystore.key")
_JAAS: Final = "sasl.jaas.config"
_OF_LIBRDKAFKA: Final = {
    "sasl.mechanisms": ("sasl.mechanism",),
    "sasl.username": (_JAAS,),
    "sasl.password": (_JAAS,),
    "ssl.ca.location": _CA,
    "ssl.certificate.location": _KEY,
    "ssl.key.location": _KEY,
}
"""And which of Kafka's says the same."""


_PROPERTY: Final = re.compile(r"[a-z][a-z0-9_-]*(\.[\w-]+)+|acks|debug|listeners|retries")
"""What names of properties look like; words of a text do not."""
_UNKNOWN_CONFIG: Final = re.compile(r"Unknown (?P<kind>topic|broker|group) config name: (?P<name>[^\s;]+)")
"""What heirlog and Apache Kafka say."""


def similar(name: str, known: Iterable[str], cutoff: float = _LIKE) -> str | None:
    """The known name that is most like it; None if there is none."""
    close = get_close_matches(name.lower(), list(known), 1, cutoff)
    return close[0] if close else None


def meant_config(sentence: str) -> str | None:
    """The configuration that is most like the one which, by a broker's sentence, does not exist; None if none is."""
    found = _UNKNOWN_CONFIG.search(sentence)
    if found is None:
        return None
    from heirlog.metadata.group_configs import GROUP_CONFIGS
    from heirlog.metadata.topic_configs import TOPIC_CONFIGS

    kind, name = found["kind"], found["name"].rstrip(".,")
    if kind == "broker":
        return server_config_like(name)
    return similar(name, TOPIC_CONFIGS if kind == "topic" else GROUP_CONFIGS)


def server_config_like(name: str) -> str | None:
    from heirlog.metadata.listener_security import LISTENER_LIMITS, PREFIX, SERVED_MECHANISMS, is_listener_config
    from heirlog.metadata.security_configs import SECURITY
    from heirlog.metadata.server_configs import SERVER_CONFIGS

    if not is_listener_config(name):
        return similar(name, SERVER_CONFIGS)
    listener, _, rest = name.removeprefix(PREFIX).partition(".")
    prefix = f"{PREFIX}{listener}."
    mechanism, _, of_mechanism = rest.partition(".")
    if mechanism.upper() in SERVED_MECHANISMS:
        prefix, rest = f"{prefix}{mechanism}.", of_mechanism
    found = similar(rest, [*(key.name for key in SECURITY), *LISTENER_LIMITS])
    return None if found is None else prefix + found


def check_client_properties(path: str, properties: Mapping[str, str]) -> None:
    """Raises LocalError for a name that is almost one which a command reads, or is librdkafka's for one it needs, and
    for a file of another kind.
    """
    if properties and not any(_PROPERTY.fullmatch(name) for name in properties):
        raise LocalError(f"{path} holds no property of a client, such as security.protocol: is it the file you mean?")
    parts = properties.get("security.protocol", "").strip().upper().split("_")
    for name in properties:
        kafkas = _OF_LIBRDKAFKA.get(name)
        if kafkas and name.partition(".")[0].upper() in parts and not any(each in properties for each in kafkas):
            pem = f", with {kafkas[0].rpartition('.')[0]}.type=PEM" if name.startswith("ssl.") else ""
            if kafkas == (_JAAS,):
                raise LocalError(f"{path}: {name} is librdkafka's name; write instead: {_login_line(properties)}")
            raise LocalError(f"{path}: {name} is librdkafka's name; write {' or '.join(kafkas)} instead{pem}")
        meant = _client_property_like(name, properties)
        if meant is not None:
            raise LocalError(f"{path}: {name} is not a property of a client; did you mean {meant}?")


def _login_line(properties: Mapping[str, str]) -> str:
    """The whole line, which is long; without the password, as errors are in logs."""
    mechanism = properties.get("sasl.mechanism", properties.get("sasl.mechanisms", "")).strip().upper()
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    user = properties.get("sasl.username", "NAME")
    return f'{_JAAS}=org.apache.kafka.common.security.{module} required username="{user}" password="PASSWORD";'


def _client_property_like(name: str, given: Collection[str]) -> str | None:
    if name in CLIENT_PROPERTIES or name in _OF_OTHERS or name in _OF_LIBRDKAFKA:
        return None
    meant = similar(name, CLIENT_PROPERTIES, _ALMOST)
    return None if meant in given else meant
