"""How the values of options are read, for the source and for the sink.

Names are not case-sensitive. What `kafka.*` and the file `commandConfig` say goes to Kafka's client; its values may be
secrets, and no message here repeats one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from heirlog.local import properties
from heirlog.local.errors import LocalError
from heirlog.spark import option_names
from heirlog.spark.option_names import KAFKA

LARGEST = 2**63 - 1
"""Of an offset, a time, a count: Java's long."""
LARGEST_INT = 2**31 - 1
DEFAULT_POLL_TIMEOUT_MS = 120_000
_DURATION = re.compile(r"\s*([0-9]{1,15})(us|ms|s|m|min|h|d)?\s*", re.IGNORECASE)
_UNIT_MS = {"us": 0.001, "ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


class OptionError(ValueError):
    """An option that is missing, wrong, or contradicts another one. The message names it."""


def refuse_misspelled(given: Mapping[str, str]) -> None:
    sentence = option_names.misspelled(given)
    if sentence is not None:
        raise OptionError(sentence)


def complete(given: Mapping[str, str]) -> dict[str, str]:
    """With names in lower case, because they are not case-sensitive, and the properties in the file `commandConfig`.

    The file is read where Spark plans, so that only that machine needs it. Raises OptionError.
    """
    options = {name.lower(): value for name, value in given.items()}
    file = options.get("commandconfig", "").strip()
    if not file:
        return options
    try:
        found = properties.read(file)
    except LocalError as error:
        raise OptionError(f"option commandConfig: {error}") from error
    return {**{f"{KAFKA}{name}": value for name, value in found.items()}, **options}


def kafka_properties(given: Mapping[str, str], refused: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    """What the options say to Kafka's client. Raises OptionError."""
    of_client = {name[len(KAFKA) :]: value for name, value in complete(given).items() if name.startswith(KAFKA)}
    for name, why in refused.items():
        if name in of_client:
            raise OptionError(f"Kafka option '{name}' is not supported: {why}")
    if not of_client.get("bootstrap.servers", "").strip():
        raise OptionError(
            "option 'kafka.bootstrap.servers' must be specified: host:port,host:port, or a commandConfig that has it"
        )
    return of_client


def boolean(options: Mapping[str, str], name: str, default: bool) -> bool:
    value = options.get(name.lower())
    if value is None:
        return default
    if value.lower() not in ("true", "false"):
        raise OptionError(f"{name} is '{value}'; it can be true or false")
    return value.lower() == "true"


def number(options: Mapping[str, str], name: str, default: int, largest: int = LARGEST) -> int:
    value = options.get(name.lower())
    return default if value is None else whole(name, value, 0, largest)


def whole(name: str, value: str, smallest: int, largest: int) -> int:
    """As Java reads it: a sign is allowed, spaces are not."""
    # the length is checked first: Python refuses to read a number of thousands of digits
    if not re.fullmatch(r"[+-]?\d{1,19}", value) or not smallest <= int(value) <= largest:
        raise OptionError(f"{name} is '{value}'; it must be a number from {smallest} to {largest}")
    return int(value)


def positive(options: Mapping[str, str], name: str, largest: int = LARGEST) -> int | None:
    value = number(options, name, -1, largest)
    if value == 0:
        raise OptionError(f"{name} must be positive")
    return None if value < 0 else value


def duration_ms(options: Mapping[str, str], name: str, default: int) -> int:
    """Spark's time strings: 15m, 30s, 500ms; a bare number is milliseconds."""
    value = options.get(name.lower())
    if value is None:
        return default
    found = _DURATION.fullmatch(value)
    if found is None:
        raise OptionError(f"{name} is '{value}'; it must be a time like 15m, 30s or 500ms")
    return int(int(found[1]) * _UNIT_MS[(found[2] or "ms").lower()])
