"""The definition of one configuration: its name, type, default, limits, and how it can be changed.

The text of a value is what files, records and requests carry; `parse` turns it into the typed value, or refuses it with
a sentence that names configuration, value and reason. Types and their numbers are those of DescribeConfigs (KIP-226,
KIP-569).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum
from functools import lru_cache
from typing import Any, Final

from heirlog.protocol.errors import ErrorCode, KafkaError

INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1
DOUBLE_MAX: Final = "1.7976931348623157E308"
"""As Java writes it."""


MISSPELT: Final = "check the spelling or remove it"
"""Ends the sentence on a name that no configuration has."""


class ConfigError(KafkaError):
    """The configuration `name` was refused."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(ErrorCode.INVALID_CONFIG, message)
        self.name = name
        self.sentence = message


class ConfigType(IntEnum):
    """Numbers on the wire (DescribeConfigs v3+)."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Update(Enum):
    """Whether a value can change while a broker runs (KIP-226)."""

    READ_ONLY = "read-only"
    CLUSTER_WIDE = "cluster-wide"
    """For all brokers, or for one."""
    PER_BROKER = "per-broker"
    """For one broker only."""


_LIMITS: Final[Mapping[ConfigType, tuple[int, int]]] = {
    ConfigType.INT: (-(2**31), INT_MAX),
    ConfigType.SHORT: (-(2**15), 2**15 - 1),
    ConfigType.LONG: (-(2**63), LONG_MAX),
}


_NUMBERS: Final = (ConfigType.INT, ConfigType.SHORT, ConfigType.LONG, ConfigType.DOUBLE)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ConfigKey:
    name: str
    type: ConfigType
    default: str | None
    """Text form; None where Kafka's default is null."""
    at_least: float | None = None
    at_most: float | None = None
    choices: tuple[str, ...] = ()
    form: tuple[str, str] | None = None
    """A regular expression that the whole text must match, and the sentence for a text that does not."""
    refused: Mapping[str, str] | None = None
    """Values that Kafka accepts and this version refuses, each with the message."""
    lacking: str | None = None
    """The message for a configuration of a missing feature. A number only tunes the feature, and is accepted without
    effect; any other value than the default would need the feature, and is refused.
    """
    update: Update = Update.READ_ONLY
    synonyms: tuple[tuple[str, int], ...] = ()
    """For a topic configuration: the server's configurations that give its default, strongest first, each with the
    factor from its unit to ours."""

    @property
    def is_sensitive(self) -> bool:
        return self.type is ConfigType.PASSWORD

    @property
    def is_internal(self) -> bool:
        """For tests: it can be set and is never shown."""
        return self.name.startswith("internal.")

    def canonical(self, text: str) -> str:
        """As Apache Kafka describes the value: without spaces around it, numbers and booleans in one spelling."""
        text = text.strip()
        if self.type is ConfigType.BOOLEAN:
            return text.lower()
        if self.type is ConfigType.LIST:
            return ",".join(part.strip() for part in text.split(","))
        if self.type in (ConfigType.SHORT, ConfigType.INT, ConfigType.LONG):
            try:
                return str(int(text))
            except ValueError:
                return text
        return text

    def parse(self, text: str) -> Any:
        """The typed value. Raises ConfigError."""
        self._check_refused(text.strip())
        value = self.read_stored(text)
        if self.lacking is not None and self.type not in _NUMBERS and value != self.default_value():
            raise self.refusal(text, self.lacking)
        return value

    def read_stored(self, text: str) -> Any:
        """The typed value of a record's text, also of a value that Kafka accepts and heirlog refuses."""
        return _read_stored(self, text)

    def _read(self, text: str) -> Any:
        text = text.strip()
        value = self._typed(text)
        if isinstance(value, int | float) and not isinstance(value, bool):
            self._check_range(text, value)
        self._check_choices(text, value)
        if self.form is not None and re.fullmatch(self.form[0], text) is None:
            raise self.refusal(text, self.form[1])
        return value

    def default_value(self) -> Any:
        return None if self.default is None else self._typed(self.default)

    def _typed(self, text: str) -> Any:
        match self.type:
            case ConfigType.BOOLEAN:
                if text.lower() not in ("true", "false"):
                    raise self.refusal(text, "expected true or false")
                return text.lower() == "true"
            case ConfigType.INT | ConfigType.SHORT | ConfigType.LONG:
                try:
                    value = int(text)
                except ValueError:
                    raise self.refusal(text, f"not a number of type {self.type.name}") from None
                low, high = _LIMITS[self.type]
                if not low <= value <= high:
                    raise self.refusal(text, f"not a number of type {self.type.name}")
                return value
            case ConfigType.DOUBLE:
                try:
                    return float(text)
                except ValueError:
                    raise self.refusal(text, "not a number of type DOUBLE") from None
            case ConfigType.LIST:
                return tuple(part.strip() for part in text.split(",")) if text else ()
            case _:
                return text

    def _check_refused(self, text: str) -> None:
        if not self.refused:
            return
        parts = [part.strip() for part in text.split(",")] if self.type is ConfigType.LIST else [text]
        for part in parts:
            reason = self.refused.get(part.lower())
            if reason is not None:
                raise self.refusal(text, reason)

    def _check_range(self, text: str, value: float) -> None:
        if self.at_least is not None and value < self.at_least:
            raise self.refusal(text, f"value must be at least {self.at_least}")
        if self.at_most is not None and value > self.at_most:
            raise self.refusal(text, f"value must be no more than {self.at_most}")

    def _check_choices(self, text: str, value: Any) -> None:
        if not self.choices:
            return
        for part in value if self.type is ConfigType.LIST else (value,):
            if part not in self.choices:
                raise self.refusal(text, f"expected one of {', '.join(self.choices)}")

    def refusal(self, text: str, reason: str) -> ConfigError:
        shown = "[hidden]" if self.is_sensitive else text
        return ConfigError(self.name, f"Invalid value {shown} for configuration {self.name}: {reason}")


def boolean(name: str, default: bool, **more: Any) -> ConfigKey:
    return ConfigKey(name=name, type=ConfigType.BOOLEAN, default=str(default).lower(), **more)


def integer(name: str, default: int | None, at_least: int | None = None, **more: Any) -> ConfigKey:
    return ConfigKey(name=name, type=ConfigType.INT, default=_text(default), at_least=at_least, **more)


def short(name: str, default: int, at_least: int | None = None, **more: Any) -> ConfigKey:
    return ConfigKey(name=name, type=ConfigType.SHORT, default=_text(default), at_least=at_least, **more)


def long(name: str, default: int | None, at_least: int | None = None, **more: Any) -> ConfigKey:
    return ConfigKey(name=name, type=ConfigType.LONG, default=_text(default), at_least=at_least, **more)


def double(name: str, default: float | str, at_least: float | None = None, **more: Any) -> ConfigKey:
    return ConfigKey(name=name, type=ConfigType.DOUBLE, default=_text(default), at_least=at_least, **more)


def string(name: str, default: str | None, **more: Any) -> ConfigKey:
    return ConfigKey(name=name, type=ConfigType.STRING, default=default, **more)


def list_of(name: str, default: str | None, **more: Any) -> ConfigKey:
    return ConfigKey(name=name, type=ConfigType.LIST, default=default, **more)


def class_name(name: str, default: str | None = None, **more: Any) -> ConfigKey:
    return ConfigKey(name=name, type=ConfigType.CLASS, default=default, **more)


def password(name: str, **more: Any) -> ConfigKey:
    return ConfigKey(name=name, type=ConfigType.PASSWORD, default=None, **more)


def _text(value: float | str | None) -> str | None:
    return None if value is None else str(value)


@lru_cache(maxsize=4096)
def _read_stored(key: ConfigKey, text: str) -> Any:
    """For each log of a topic, all of the topic's configurations are read."""
    return key._read(text)
