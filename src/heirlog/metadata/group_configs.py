"""The configurations of groups: Kafka's names, types and limits (KIP-848, KIP-932, KIP-1071).

Those of consumer and share groups count from the next heartbeat, fetch or acknowledgement of a member on. Those of
streams groups, which this version does not have, are checked, stored and described, and have no effect yet. A group
need not exist to have them. Defaults and limits are configurations of the server.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.definition import ConfigError, ConfigKey, integer, string

_DURATIONS_PATTERN: Final = r"latest|earliest|by_duration:P(?=.)(\d+D)?(T(?=.)(\d+H)?(\d+M)?(\d+(\.\d+)?S)?)?"

_DEFINITIONS: Final = (
    integer("consumer.heartbeat.interval.ms", 5000, 1, synonyms=(("group.consumer.heartbeat.interval.ms", 1),)),
    integer("consumer.session.timeout.ms", 45_000, 1, synonyms=(("group.consumer.session.timeout.ms", 1),)),
    string(
        "share.auto.offset.reset",
        "latest",
        form=(_DURATIONS_PATTERN, "expected earliest, latest, or by_duration: and a duration as in PT1H"),
    ),
    integer("share.heartbeat.interval.ms", 5000, 1, synonyms=(("group.share.heartbeat.interval.ms", 1),)),
    string("share.isolation.level", "read_uncommitted", choices=("read_uncommitted", "read_committed")),
    integer("share.record.lock.duration.ms", 30_000, 1000, synonyms=(("group.share.record.lock.duration.ms", 1),)),
    integer("share.session.timeout.ms", 45_000, 1, synonyms=(("group.share.session.timeout.ms", 1),)),
    integer("streams.heartbeat.interval.ms", 5000, 1, synonyms=(("group.streams.heartbeat.interval.ms", 1),)),
    integer("streams.initial.rebalance.delay.ms", 3000, 0, synonyms=(("group.streams.initial.rebalance.delay.ms", 1),)),
    integer("streams.num.standby.replicas", 0, 0, synonyms=(("group.streams.num.standby.replicas", 1),)),
    integer("streams.session.timeout.ms", 45_000, 1, synonyms=(("group.streams.session.timeout.ms", 1),)),
)

GROUP_CONFIGS: Final[Mapping[str, ConfigKey]] = {definition.name: definition for definition in _DEFINITIONS}

_BOUNDED: Final = ("heartbeat.interval.ms", "session.timeout.ms", "record.lock.duration.ms", "standby.replicas")
"""Ends of names whose bounds the server's `min` and `max` of the same name give."""


def default_of(static: StaticConfig, definition: ConfigKey) -> str | None:
    """As text: what the server says for groups that say nothing."""
    for name, _ in definition.synonyms:
        return str(static[name])
    return definition.default


def validate_group_configs(configs: Mapping[str, str], static: StaticConfig) -> None:
    """Raises ConfigError for the first unknown name or bad value, or for values that do not go together.

    configs: all that the group would have then.
    """
    values = {}
    for name, text in configs.items():
        definition = GROUP_CONFIGS.get(name)
        if definition is None:
            raise ConfigError(name, f"Unknown group config name: {name}")
        values[name] = definition.parse(text)
        _check_bounds(static, name, values[name])
    for kind in ("consumer", "share", "streams"):
        heartbeat, session = (
            values.get(name, static[f"group.{name}"])
            for name in (f"{kind}.heartbeat.interval.ms", f"{kind}.session.timeout.ms")
        )
        if session <= heartbeat:
            name = f"{kind}.session.timeout.ms"
            raise ConfigError(name, f"{name} must be greater than {kind}.heartbeat.interval.ms")


def _check_bounds(static: StaticConfig, name: str, value: int) -> None:
    kind, _, rest = name.partition(".")
    if not rest.endswith(_BOUNDED):
        return
    rest = rest.removeprefix("num.")
    least, most = f"group.{kind}.min.{rest}", f"group.{kind}.max.{rest}"
    # there is no least number of standby replicas
    if rest != "standby.replicas" and value < static[least]:
        raise ConfigError(name, f"{name} must be greater than or equal to {least}, which is {static[least]}")
    if value > static[most]:
        raise ConfigError(name, f"{name} must be less than or equal to {most}, which is {static[most]}")
