"""The effective value of a configuration, and its source.

Strongest first (KIP-226):

    topic        topic value | broker's own dynamic value | cluster-wide dynamic value | static | default
    broker                     broker's own dynamic value | cluster-wide dynamic value | static | default
    group        group value | static | default

A topic configuration takes its server-level values from the synonyms of its definition (`retention.ms` from
`log.retention.ms`, `log.retention.minutes`, `log.retention.hours`), each with its unit.

`static` is the configuration of the node that resolves: values that no record stores may differ between nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import lru_cache
from itertools import dropwhile
from typing import Any, NamedTuple

from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.config_docs import documentation
from heirlog.metadata.definition import ConfigKey, ConfigType, Update
from heirlog.metadata.group_configs import GROUP_CONFIGS, default_of
from heirlog.metadata.image import BROKER_RESOURCE, GROUP_RESOURCE, TOPIC_RESOURCE, Image
from heirlog.metadata.listener_security import (
    PREFIX,
    is_listener_config,
    is_secret,
    limit_of_listener,
    store_of_listener,
)
from heirlog.metadata.server_configs import AUTHORIZERS, SERVER_CONFIGS, SHOWN_WHERE_SET, THROTTLES
from heirlog.metadata.topic_configs import TOPIC_CONFIGS

NAMES_OF_THE_NODE = ("broker.id", "node.id")
"""One configuration with two names: whichever is set, both are reported."""


class ConfigSource(IntEnum):
    """Where a value comes from: numbers of DescribeConfigs."""

    DYNAMIC_TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    DYNAMIC_GROUP = 8


class ConfigSynonym(NamedTuple):
    name: str
    value: str | None
    source: ConfigSource


@dataclass(slots=True)  # not frozen: an answer has dozens of them
class ConfigEntry:
    """One row of DescribeConfigs. `value` is None for a sensitive one and where nothing is set."""

    name: str
    value: str | None
    source: ConfigSource
    type: ConfigType
    read_only: bool
    sensitive: bool
    synonyms: tuple[ConfigSynonym, ...]
    documentation: str


def topic_value(image: Image, static: StaticConfig, topic: str, name: str) -> Any:
    """The typed value for the topic. KeyError for a name that is not a topic configuration."""
    definition = TOPIC_CONFIGS[name]
    for synonym, factor in _topic_levels(image, static, topic, definition, static.node_id):
        return None if synonym.value is None else definition.read_stored(_scaled(synonym.value, factor))
    return definition.default_value()


def topic_value_set(image: Image, static: StaticConfig, topic: str, name: str) -> Any:
    """The typed value that is set for the topic, at any level; None if only the default applies."""
    definition = TOPIC_CONFIGS[name]
    for synonym, factor in _topic_levels(image, static, topic, definition, static.node_id):
        if synonym.source is ConfigSource.DEFAULT or synonym.value is None:
            return None
        return definition.read_stored(_scaled(synonym.value, factor))
    return None


def topic_values(image: Image, static: StaticConfig, topic: str) -> dict[str, Any]:
    """Every topic configuration, resolved; logs are configured from it."""
    values = dict(_values_of_file(static))
    stored = {name for name in image.configs.get((TOPIC_RESOURCE, topic), ()) if name in TOPIC_CONFIGS}
    for broker in (str(static.node_id), ""):
        for server_name in image.configs.get((BROKER_RESOURCE, broker), ()):
            stored.update(_topic_names_of(server_name))
    for name in stored:
        values[name] = topic_value(image, static, topic, name)
    return values


@lru_cache(maxsize=16)
def _values_of_file(static: StaticConfig) -> Mapping[str, Any]:
    """Every topic configuration as it is without any record: resolved once, not for each partition."""
    nothing = Image()
    return {name: topic_value(nothing, static, "", name) for name in TOPIC_CONFIGS}


@lru_cache(maxsize=1000)
def _topic_names_of(server_name: str) -> Sequence[str]:
    """The topic configurations that a server configuration is the default of."""
    return [
        name
        for name, definition in TOPIC_CONFIGS.items()
        if any(synonym == server_name for synonym, _ in definition.synonyms)
    ]


def server_value(image: Image, static: StaticConfig, name: str) -> Any:
    """The typed value that counts on this node, dynamic values included."""
    for broker in (str(static.node_id), ""):
        text = image.config(BROKER_RESOURCE, broker, name)
        if text is not None:
            return SERVER_CONFIGS[name].parse(text)
    return static.node_id if name in NAMES_OF_THE_NODE else static[name]


def listener_limit(image: Image, static: StaticConfig, listener: str, name: str) -> int:
    """One of `LISTENER_LIMITS` that counts for one listener of this node; the greatest number where none is set."""
    own = f"{PREFIX}{listener.lower()}.{name}"
    definition = SERVER_CONFIGS[name]
    for kind in (ConfigSource.DYNAMIC_BROKER, ConfigSource.DYNAMIC_DEFAULT_BROKER, ConfigSource.STATIC_BROKER):
        text = _level(image, static, static.node_id, own, kind)
        if text is not None:
            return int(definition.parse(text))
    return int(definition.default_value())


def server_value_after(image: Image, static: StaticConfig, name: str, broker: str, value: str | None) -> Any:
    """The value on this node once `broker`, or all ("") have the dynamic value; None removes it.

    Raises ConfigError for an invalid value.
    """
    definition = SERVER_CONFIGS[name]
    changed = ConfigSource.DYNAMIC_BROKER if broker else ConfigSource.DYNAMIC_DEFAULT_BROKER
    for kind in (ConfigSource.DYNAMIC_BROKER, ConfigSource.DYNAMIC_DEFAULT_BROKER, ConfigSource.STATIC_BROKER):
        text = value if kind is changed else _level(image, static, static.node_id, name, kind)
        if text is not None:
            return definition.parse(text)
    return definition.default_value()


def describe_topic(image: Image, static: StaticConfig, topic: str) -> list[ConfigEntry]:
    """All configurations of a topic, by name."""
    entries = []
    for name in sorted(TOPIC_CONFIGS):
        definition = TOPIC_CONFIGS[name]
        if definition.is_internal:
            continue
        levels = tuple(_topic_levels(image, static, topic, definition, static.node_id))
        entry = _entry(definition, _listed(definition, [synonym for synonym, _ in levels]), read_only=False)
        if levels and levels[0][0].value is not None:
            entry.value = definition.canonical(_scaled(levels[0][0].value, levels[0][1]))
        entries.append(entry)
    return entries


def _listed(definition: ConfigKey, levels: Sequence[ConfigSynonym]) -> tuple[ConfigSynonym, ...]:
    """The synonyms that Kafka lists: the server's start with the first one of the finest unit, so often none is left.

    `log.retention.hours` alone is not listed, although its value counts.
    """
    own = [one for one in levels if one.source is ConfigSource.DYNAMIC_TOPIC]
    finest = definition.synonyms[0][0] if definition.synonyms else None
    return (*own, *dropwhile(lambda one: one.name != finest, levels[len(own) :]))


def describe_broker(image: Image, static: StaticConfig, broker: str) -> list[ConfigEntry]:
    """All configurations of this broker, by name; `broker` "" asks for the cluster-wide dynamic ones only."""
    if not broker:
        stored = image.configs.get((BROKER_RESOURCE, ""), {})
        return [
            _entry(
                _definition(name),
                (ConfigSynonym(name, value, ConfigSource.DYNAMIC_DEFAULT_BROKER),),
                read_only=_is_shown_read_only(_definition(name)),
            )
            for name, value in sorted(stored.items())
        ]
    entries = []
    of_listeners = (name for name in _set_on(image, static, broker) if is_listener_config(name))
    for name in sorted({*SERVER_CONFIGS, *of_listeners}):
        definition = _definition(name)
        if definition.is_internal:
            continue
        levels = tuple(_server_levels(image, static, int(broker), name))
        if name in SHOWN_WHERE_SET and all(level.source is ConfigSource.DEFAULT for level in levels):
            continue
        entries.append(_entry(definition, levels, read_only=_is_shown_read_only(definition)))
    return entries


def _set_on(image: Image, static: StaticConfig, broker: str) -> set[str]:
    """Names with a value of this broker's own, of all brokers, or of its file."""
    dynamic = (image.configs.get((BROKER_RESOURCE, name), {}) for name in (broker, ""))
    return {*static.given, *(name for stored in dynamic for name in stored)}


def _is_shown_read_only(definition: ConfigKey) -> bool:
    """As Kafka shows it, whose throttles can be changed all the same."""
    return definition.update is Update.READ_ONLY or definition.name in THROTTLES


def group_value(image: Image, static: StaticConfig, group: str, name: str) -> Any:
    """The typed value for the group. KeyError for a name that is not a configuration of groups."""
    definition = GROUP_CONFIGS[name]
    own = image.config(GROUP_RESOURCE, group, name)
    if own is not None:
        return definition.read_stored(own)
    # some have no configuration of the server that says it for all groups
    return static[definition.synonyms[0][0]] if definition.synonyms else definition.default_value()


def describe_group(image: Image, static: StaticConfig, group: str) -> list[ConfigEntry]:
    """All configurations of a group, by name; it need not exist."""
    entries = []
    for name in sorted(GROUP_CONFIGS):
        definition = GROUP_CONFIGS[name]
        own = image.config(GROUP_RESOURCE, group, name)
        levels = () if own is None else (ConfigSynonym(name, own, ConfigSource.DYNAMIC_GROUP),)
        default = ConfigSynonym(name, default_of(static, definition), ConfigSource.DEFAULT)
        # Kafka lists the default only where the group has no value of its own
        entries.append(_entry(definition, levels or (default,), read_only=False))
    return entries


def describe(image: Image, static: StaticConfig, kind: int, name: str) -> list[ConfigEntry]:
    """DescribeConfigs of one resource: TOPIC_RESOURCE (the topic must exist), BROKER_RESOURCE or GROUP_RESOURCE."""
    if kind == TOPIC_RESOURCE:
        return describe_topic(image, static, name)
    if kind == GROUP_RESOURCE:
        return describe_group(image, static, name)
    return describe_broker(image, static, name)


def _definition(name: str) -> ConfigKey:
    known = SERVER_CONFIGS.get(name)
    if known is not None:
        return known
    of_listener = limit_of_listener(name) or store_of_listener(name)
    if of_listener is not None:
        return replace(of_listener, name=name, default=None)
    # a log written by a Kafka controller may store dynamic configurations of features that heirlog lacks
    return ConfigKey(name=name, type=ConfigType.PASSWORD if is_secret(name) else ConfigType.STRING, default=None)


def _entry(definition: ConfigKey, levels: tuple[ConfigSynonym, ...], read_only: bool) -> ConfigEntry:
    strongest = levels[0] if levels else ConfigSynonym(definition.name, definition.default, ConfigSource.DEFAULT)
    hidden = definition.is_sensitive or definition.name in AUTHORIZERS
    if definition.name in AUTHORIZERS:
        # which Apache Kafka has no defaults of
        levels = tuple(level for level in levels if level.source is not ConfigSource.DEFAULT)
    return ConfigEntry(
        name=definition.name,
        value=None if hidden or strongest.value is None else definition.canonical(strongest.value),
        source=strongest.source,
        type=ConfigType.UNKNOWN if definition.name in AUTHORIZERS else definition.type,
        read_only=read_only,
        sensitive=hidden,
        synonyms=tuple(ConfigSynonym(s.name, None, s.source) for s in levels) if hidden else levels,
        documentation="" if definition.name in AUTHORIZERS else documentation(definition),
    )


def _topic_levels(
    image: Image, static: StaticConfig, topic: str, definition: ConfigKey, node_id: int
) -> Iterator[tuple[ConfigSynonym, int]]:
    """Every level that says something about a topic configuration, strongest first, and its unit in the topic's."""
    own = image.config(TOPIC_RESOURCE, topic, definition.name)
    if own is not None:
        yield ConfigSynonym(definition.name, own, ConfigSource.DYNAMIC_TOPIC), 1
    for kind in (ConfigSource.DYNAMIC_BROKER, ConfigSource.DYNAMIC_DEFAULT_BROKER, ConfigSource.STATIC_BROKER):
        for name, factor in definition.synonyms:
            value = _level(image, static, node_id, name, kind)
            if value is not None:
                yield ConfigSynonym(name, value, kind), factor
    for name, factor in definition.synonyms:
        default = SERVER_CONFIGS[name].default
        if default is not None:
            yield ConfigSynonym(name, default, ConfigSource.DEFAULT), factor


def _server_levels(image: Image, static: StaticConfig, node_id: int, name: str) -> Iterator[ConfigSynonym]:
    for kind in (ConfigSource.DYNAMIC_BROKER, ConfigSource.DYNAMIC_DEFAULT_BROKER, ConfigSource.STATIC_BROKER):
        value = _level(image, static, node_id, name, kind)
        if value is not None:
            yield ConfigSynonym(name, value, kind)
    default = _definition(name).default
    if default is not None:
        yield ConfigSynonym(name, default, ConfigSource.DEFAULT)


def _level(image: Image, static: StaticConfig, node_id: int, name: str, kind: ConfigSource) -> str | None:
    if kind is ConfigSource.DYNAMIC_BROKER:
        return image.config(BROKER_RESOURCE, str(node_id), name)
    if kind is ConfigSource.DYNAMIC_DEFAULT_BROKER:
        return image.config(BROKER_RESOURCE, "", name)
    if name in NAMES_OF_THE_NODE:
        return str(static.node_id)
    return static.given.get(name)


def _scaled(value: str, factor: int) -> str:
    if factor == 1:
        return value
    number = int(value)
    # -1 means "no limit" in every unit
    return str(number if number < 0 else number * factor)
