"""server.properties, read and judged: which node this is, where it listens, where its logs are.

`parse_static` takes the properties as text and returns a `StaticConfig`, or raises ConfigError with one sentence that
names the property. What it decides once, for all other code:

* an unknown name, a bad value, or a value that needs something this version lacks is refused;
* roles, listeners and their advertised addresses, the quorum's voters and the log directories are parsed into values.

Defaults that Kafka computes from other properties (advertised.listeners from listeners, log.dirs from log.dir,
inter.broker.listener.name from security.inter.broker.protocol) are computed here and nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from heirlog.metadata.definition import MISSPELT, ConfigError
from heirlog.metadata.listener_security import (
    SCRAM,
    SECURITY_PROTOCOLS,
    ListenerSecurity,
    check_peer,
    is_listener_config,
    listener_security,
    parse_listener_config,
)
from heirlog.metadata.security_configs import ONLY_FOR_MECHANISM
from heirlog.metadata.server_configs import SERVER_CONFIGS
from heirlog.protocol.types import PORT_MAX, BrokerId, Endpoint, endpoint_from_text
from heirlog.security.delegation_token import TokenSecrets

__all__ = ["ConfigError", "ListenerConfig", "QuorumVoter", "StaticConfig", "parse_static"]

_LISTENER: Final = re.compile(r"^([A-Za-z0-9_]+)://(\[[0-9A-Fa-f:.%]*\]|[^:\[\]]*):(\d+)$")


@dataclass(frozen=True, slots=True)
class ListenerConfig:
    """One `NAME://host:port`. An empty host means all interfaces (where to listen), never in an advertised one."""

    name: str
    endpoint: Endpoint
    security_protocol: str = "PLAINTEXT"

    @property
    def security_protocol_id(self) -> int:
        """In registrations."""
        return SECURITY_PROTOCOLS.index(self.security_protocol)


@dataclass(frozen=True, slots=True)
class QuorumVoter:
    """One member of `controller.quorum.voters`."""

    id: BrokerId
    endpoint: Endpoint


class StaticConfig:
    """The judged properties of one node. `config["log.segment.bytes"]` is the typed value or Kafka's default."""

    def __init__(self, given: Mapping[str, str], values: Mapping[str, Any]) -> None:
        """`parse_static` makes these."""
        self.given: Mapping[str, str] = dict(given)
        """What the file said, as text: the source STATIC_BROKER_CONFIG."""
        self._values = dict(values)
        self.node_id = _node_id(self)
        self.roles: tuple[str, ...] = _roles(self)
        self.is_broker = "broker" in self.roles
        self.is_controller = "controller" in self.roles
        self.controller_listener_names = _controller_listener_names(self)
        protocols = _protocols(self)
        self.all_listeners: tuple[ListenerConfig, ...] = _listeners(self, "listeners", protocols)
        """Every listener of the process, broker's and controller's."""
        self.listeners = tuple(li for li in self.all_listeners if li.name not in self.controller_listener_names)
        """The broker's."""
        self.controller_listeners = tuple(li for li in self.all_listeners if li.name in self.controller_listener_names)
        advertised = _advertised(self, protocols)
        self.advertised_listeners: tuple[ListenerConfig, ...] = tuple(
            li for li in advertised if li.name not in self.controller_listener_names
        )
        """What the broker registers, controller listeners excluded."""
        self.advertised_controller_listeners: tuple[ListenerConfig, ...] = tuple(
            next((li for li in advertised if li.name == listener.name), _reachable(listener))
            for listener in self.controller_listeners
        )
        """What the controller registers, and voters are reached at."""
        self.inter_broker_listener_name: str = _inter_broker_listener_name(self)
        self.voters: tuple[QuorumVoter, ...] = tuple(_voter(text) for text in self["controller.quorum.voters"])
        self.bootstrap_servers: tuple[Endpoint, ...] = tuple(
            _address("controller.quorum.bootstrap.servers", text)
            for text in self["controller.quorum.bootstrap.servers"]
        )
        self.has_authorizer = bool(self["authorizer.class.name"])
        self.super_users: tuple[str, ...] = _super_users(self["super.users"])
        self.early_start_listeners: tuple[str, ...] = _early_start_listeners(self)
        """Those that do not wait for the ACLs."""
        self.log_dirs: tuple[str, ...] = self["log.dirs"] or self["log.dir"]
        self.metrics_listener: Endpoint | None = _metrics_listener(self["heirlog.metrics.listener"])
        """Where Prometheus may ask (port 0: any free one); None: nowhere."""
        self.metadata_log_dir: str = self["metadata.log.dir"] or self.log_dirs[0]
        _check_together(self)
        self._security = _security(self, protocols)

    def security(self, listener: str) -> ListenerSecurity:
        """Of a listener of this node, of the controllers, or between brokers."""
        return self._security[listener]

    def __getitem__(self, name: str) -> Any:
        """The typed value; KeyError for a name that no server configuration has (a mistake of the caller)."""
        if name not in self._values:
            # parsed once: a node asks for some of them at each change of the metadata
            self._values[name] = SERVER_CONFIGS[name].default_value()
        return self._values[name]

    def int(self, name: str) -> int:
        value = self[name]
        assert isinstance(value, int), f"{name} has no value"
        return value


def token_secrets(config: StaticConfig) -> TokenSecrets | None:
    """None: delegation tokens are off on this node."""
    secret_key: str | None = config["delegation.token.secret.key"]
    return TokenSecrets(secret_key) if secret_key else None


def parse_static(properties: Mapping[str, str]) -> StaticConfig:
    """Raises ConfigError, with a sentence for the operator that names the property."""
    values: dict[str, Any] = {}
    for name, text in properties.items():
        if is_listener_config(name):
            continue  # judged with the listeners
        definition = SERVER_CONFIGS.get(name)
        if definition is None:
            raise ConfigError(name, _unknown(name))
        values[name] = definition.parse(text)
    return StaticConfig(properties, values)


def _unknown(name: str) -> str:
    return f"{name} is not a configuration that heirlog knows; {MISSPELT}"


def _metrics_listener(text: str) -> Endpoint | None:
    if not text:
        return None
    key = "heirlog.metrics.listener"
    try:
        return endpoint_from_text(text)
    except ValueError as error:
        hint = "127.0.0.1:9404 serves this machine, 0.0.0.0:9404 serves every host"
        raise ConfigError(key, f"{key}: {error}; {hint}") from error


def _node_id(config: StaticConfig) -> BrokerId:
    node_id, broker_id = config["node.id"], config["broker.id"]
    if node_id is None:
        node_id = broker_id
    if node_id is None:
        raise ConfigError("node.id", "node.id is missing: give every node its own number, 0 or more")
    if broker_id is not None and broker_id != node_id:
        raise ConfigError("broker.id", f"broker.id={broker_id} contradicts node.id={node_id}; remove broker.id")
    return BrokerId(node_id)


def _roles(config: StaticConfig) -> tuple[str, ...]:
    roles: tuple[str, ...] = config["process.roles"] or ()
    if not roles:
        raise ConfigError("process.roles", "process.roles is missing: write broker, controller, or broker,controller")
    if len(set(roles)) != len(roles):
        raise ConfigError("process.roles", f"process.roles={','.join(roles)} names a role twice")
    return roles


def _controller_listener_names(config: StaticConfig) -> tuple[str, ...]:
    names: tuple[str, ...] = config["controller.listener.names"] or ()
    if not names:
        raise ConfigError(
            "controller.listener.names",
            "controller.listener.names is missing: give the listener name of the controllers",
        )
    return tuple(name.upper() for name in names)


WILDCARDS: Final = ("0.0.0.0", "::")
"""Hosts that stand for every address of the machine."""


def _protocols(config: StaticConfig) -> dict[str, str]:
    """Listener name → security protocol. Controller listeners default to PLAINTEXT where Kafka's do."""
    key = "listener.security.protocol.map"
    protocols: dict[str, str] = {}
    if key not in config.given and not _names_a_secure_listener(config):
        protocols = dict.fromkeys(config.controller_listener_names, "PLAINTEXT")
    for entry in config[key]:
        name, _, protocol = entry.partition(":")
        if not name or protocol not in SECURITY_PROTOCOLS:
            raise ConfigError(key, f"{key}: {entry!r} is not of the form NAME:PROTOCOL")
        protocols[name.upper()] = protocol
    for name in config.controller_listener_names:
        if name not in protocols and key in config.given and set(protocols.values()) <= {"PLAINTEXT"}:
            protocols[name] = "PLAINTEXT"
        if name not in protocols:
            raise ConfigError(
                key,
                f"{key}: listener {name} of the controllers has no security protocol; add {name}:SASL_SSL, {name}:"
                "SSL or, on a trusted network, " + f"{name}:PLAINTEXT",
            )
    return protocols


def _names_a_secure_listener(config: StaticConfig) -> bool:
    """Whether a listener has the name of a protocol that protects it."""
    names = {text.partition("://")[0].upper() for text in config["listeners"]} | set(config.controller_listener_names)
    return bool(names & set(SECURITY_PROTOCOLS[1:]))


def _inter_broker_listener_name(config: StaticConfig) -> str:
    name, protocol = config["inter.broker.listener.name"], config["security.inter.broker.protocol"]
    if name and "security.inter.broker.protocol" in config.given:
        raise ConfigError(
            "inter.broker.listener.name",
            "inter.broker.listener.name and security.inter.broker.protocol are both set: remove one of them",
        )
    return str(name.upper() if name else protocol)


def _security(config: StaticConfig, protocols: Mapping[str, str]) -> dict[str, ListenerSecurity]:
    """Of each listener of this node, and of those of the controllers that it connects to."""
    for name in ONLY_FOR_MECHANISM:
        if name in config.given:
            raise ConfigError(
                name,
                f"{name} needs the listener and the SASL mechanism in its name, such as "
                f"listener.name.sasl_ssl.plain.{name}",
            )
    used = {listener.name: listener.security_protocol for listener in config.all_listeners}
    served = set(used)
    controllers, brokers = config.controller_listener_names[0], config.inter_broker_listener_name
    used.setdefault(controllers, protocols[controllers])
    # a controller asks brokers what their logs have (unclean recovery)
    used.setdefault(brokers, protocols.get(brokers, "PLAINTEXT"))
    known = {*used, *config.controller_listener_names, *protocols}
    for name, text in config.given.items():
        if is_listener_config(name):
            parse_listener_config(name, text, known)
    found = {
        name: listener_security(config.given, name, protocol, is_served=name in served)
        for name, protocol in used.items()
    }
    key = "sasl.mechanism.controller.protocol"
    if found[controllers].uses_sasl and config[key] in SCRAM:
        raise ConfigError(
            key,
            f"{key}={config[key]}: controllers keep SCRAM users in the metadata, which they cannot read before they "
            "have elected a leader; use PLAIN (within TLS: SASL_SSL), or certificates on a listener with SSL",
        )
    check_peer(found[controllers], config[key], key)
    key = "sasl.mechanism.inter.broker.protocol"
    check_peer(found[brokers], config[key], key)
    return found


def _listeners(config: StaticConfig, key: str, protocols: Mapping[str, str]) -> tuple[ListenerConfig, ...]:
    found: list[ListenerConfig] = []
    for text in config[key]:
        match = _LISTENER.match(text)
        if match is None or int(match[3]) > PORT_MAX:
            raise ConfigError(key, f"{key}: {text!r} is not of the form NAME://host:port")
        name, host, port = match[1].upper(), match[2].strip("[]"), int(match[3])
        protocol = protocols.get(name)
        if protocol is None:
            raise ConfigError(
                key,
                f"{key}: listener {name} has no security protocol; add {name}:PLAINTEXT to the "
                "listener.security.protocol.map",
            )
        if any(other.name == name for other in found):
            raise ConfigError(key, f"{key}: each listener needs its own name, and {name} is used twice")
        if port and any(other.endpoint.port == port and other.endpoint.host == host for other in found):
            raise ConfigError(key, f"{key}: each listener needs its own port, and {port} is used twice")
        found.append(ListenerConfig(name, Endpoint(host, port), protocol))
    return tuple(found)


def _advertised(config: StaticConfig, protocols: Mapping[str, str]) -> tuple[ListenerConfig, ...]:
    key = "advertised.listeners"
    if config[key] is None:
        for listener in config.listeners:
            if listener.endpoint.host in WILDCARDS:
                sentence = (
                    f"{listener.name} listens on every address, so {key} must name one that a client can connect to"
                )
                raise ConfigError(key, f"{key} is missing: {sentence}")
        return tuple(_reachable(listener) for listener in config.listeners)
    names = {listener.name for listener in config.all_listeners}
    advertised = _listeners(config, key, protocols)
    for listener in advertised:
        if listener.name not in names:
            raise ConfigError(key, f"{key}: {listener.name} is advertised but not among the listeners")
        if listener.endpoint.host in ("", *WILDCARDS):
            raise ConfigError(key, f"{key}: {listener.name} needs an address that a client can connect to")
    return advertised


def _reachable(listener: ListenerConfig) -> ListenerConfig:
    """The listener at an address to give to others; an empty host listens everywhere, which is no such address."""
    host, port = listener.endpoint.host, listener.endpoint.port
    endpoint = Endpoint("localhost" if host in ("", *WILDCARDS) else host, port)
    return ListenerConfig(listener.name, endpoint, listener.security_protocol)


def _voter(text: str) -> QuorumVoter:
    key = "controller.quorum.voters"
    node, at, address = text.partition("@")
    if not at or not node.isdigit():
        raise ConfigError(key, f"{key}: {text!r} is not of the form id@host:port")
    return QuorumVoter(BrokerId(int(node)), _address(key, address))


def _super_users(text: str) -> tuple[str, ...]:
    names = [part.strip() for part in text.split(";") if part.strip()]
    for name in names:
        if ":" not in name:
            raise ConfigError("super.users", f"super.users: {name!r} is not of the form type:name, as in User:admin")
    return tuple(names)


def _early_start_listeners(config: StaticConfig) -> tuple[str, ...]:
    """By default the controllers': without them no ACL could be learned."""
    key = "early.start.listeners"
    if config[key] is None:
        return config.controller_listener_names
    known = {*config.controller_listener_names, *(listener.name for listener in config.all_listeners)}
    for name in config[key]:
        if name not in known:
            raise ConfigError(key, f"{key}: {name} is neither among the listeners nor the controller.listener.names")
    return tuple(config[key])


def _address(key: str, text: str) -> Endpoint:
    try:
        return endpoint_from_text(text)
    except ValueError as error:
        raise ConfigError(key, f"{key}: {error}") from error


def _check_together(config: StaticConfig) -> None:
    """What no single property can show."""
    if not config.voters and not config.bootstrap_servers:
        raise ConfigError(
            "controller.quorum.bootstrap.servers",
            "set controller.quorum.bootstrap.servers (or controller.quorum.voters) to the controllers' addresses",
        )
    if config.is_controller and not config.controller_listeners:
        raise ConfigError(
            "listeners",
            f"listeners: this node is a controller and needs a listener {config.controller_listener_names[0]}",
        )
    if config.is_broker:
        if not config.listeners:
            raise ConfigError("listeners", "listeners: this node is a broker and needs a listener for its clients")
        if all(listener.name != config.inter_broker_listener_name for listener in config.advertised_listeners):
            raise ConfigError(
                "inter.broker.listener.name",
                f"inter.broker.listener.name: {config.inter_broker_listener_name} is not among the listeners",
            )
    elif config.listeners:
        raise ConfigError(
            "listeners",
            f"listeners: this node is a controller only, so {config.listeners[0].name} must be among "
            "controller.listener.names or be removed",
        )
    _check_group_times(config)
    if config["broker.heartbeat.interval.ms"] * 2 > config["broker.session.timeout.ms"]:
        raise ConfigError(
            "broker.session.timeout.ms", "broker.session.timeout.ms must be at least twice broker.heartbeat.interval.ms"
        )


def _check_group_times(config: StaticConfig) -> None:
    """Groups get the default of the server, so it has to be within the bounds of what a group may have."""
    for kind in ("consumer", "share", "streams"):
        times = ["heartbeat.interval.ms", "session.timeout.ms"]
        for name in times if kind != "share" else [*times, "record.lock.duration.ms"]:
            least, most, value = (f"group.{kind}.{which}{name}" for which in ("min.", "max.", ""))
            _check_order(config, least, most)
            _check_order(config, least, value)
            _check_order(config, value, most)
        heartbeat, session = (f"group.{kind}.{name}" for name in times)
        if config[heartbeat] >= config[session]:
            raise ConfigError(heartbeat, f"{heartbeat} must be less than {session}, which is {config[session]}")
    _check_order(config, "group.share.max.size", "group.share.max.share.sessions")


def _check_order(config: StaticConfig, lower: str, upper: str) -> None:
    if config[lower] > config[upper]:
        raise ConfigError(
            upper, f"{upper} is {config[upper]} and must not be less than {lower}, which is {config[lower]}"
        )
