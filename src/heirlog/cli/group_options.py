"""How `heirlog consume --group` is a member: Kafka's consumer properties, by their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from heirlog.cli.errors import UsageError
from heirlog.client.assignment import JAVA_CLASSES, AssignmentStrategy

OPTIONS = {
    "group.id": "--group",
    "auto.offset.reset": "--from-beginning",
    "isolation.level": "--isolation-level",
    "bootstrap.servers": "--bootstrap-server",
}
"""Properties that have an option of their own."""

PROTOCOL, CLASSIC = "group.protocol", "classic"


@dataclass(frozen=True, slots=True)
class GroupOptions:
    strategies: tuple[AssignmentStrategy, ...] = tuple(AssignmentStrategy)
    """The preferred one first. All of them by default, so that a member can join any group."""
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    rebalance_timeout_ms: int = 60_000
    metadata_max_age_ms: int = 5_000
    """Shorter than Kafka's five minutes: a person waits for the topic that was created in the next window."""
    instance_id: str | None = None


def group_options(properties: Sequence[str]) -> GroupOptions:
    """From NAME=VALUE texts. Raises UsageError."""
    found: dict[str, Any] = {}
    for text in properties:
        name, equals, value = text.partition("=")
        if not equals or not value:
            raise UsageError(f"--consumer-property {text} is not of the form NAME=VALUE")
        if name in OPTIONS:
            raise UsageError(f"--consumer-property {name}: use {OPTIONS[name]}")
        if name == PROTOCOL:
            _check_protocol(value)
            continue
        if name not in PROPERTIES:
            raise UsageError(
                f"--consumer-property {name} has no effect here; known are {', '.join(sorted(PROPERTIES))}. What a "
                "connection needs (TLS, SASL) is in a context: heirlog context create --help"
            )
        field, read = PROPERTIES[name]
        found[field] = read(name, value)
    options = replace(GroupOptions(), **found)
    if options.heartbeat_interval_ms >= options.session_timeout_ms:
        raise UsageError("--consumer-property heartbeat.interval.ms must be lower than session.timeout.ms")
    return options


def _check_protocol(value: str) -> None:
    """Raises UsageError."""
    if value.lower() != CLASSIC:
        raise UsageError(
            f"--consumer-property {PROTOCOL}={value}: heirlog consume is a member by the classic protocol only; the "
            "cluster serves the consumer protocol to other clients"
        )


def _milliseconds(name: str, value: str) -> int:
    if not value.isdecimal() or not 0 < int(value) < 1 << 31:
        raise UsageError(f"--consumer-property {name}={value} is not a number of milliseconds")
    return int(value)


def _strategies(name: str, value: str) -> tuple[AssignmentStrategy, ...]:
    found = []
    for text in value.split(","):
        try:
            found.append(JAVA_CLASSES.get(text.strip()) or AssignmentStrategy(text.strip()))
        except ValueError as error:
            raise UsageError(
                f"--consumer-property {name}: {text.strip() or 'an empty name'} is not a strategy of this client; "
                f"there are {', '.join(AssignmentStrategy)}, also by the names of their Java classes"
            ) from error
    return tuple(dict.fromkeys(found))


def _text(name: str, value: str) -> str:
    return value


PROPERTIES: Mapping[str, tuple[str, Callable[[str, str], Any]]] = {
    "partition.assignment.strategy": ("strategies", _strategies),
    "session.timeout.ms": ("session_timeout_ms", _milliseconds),
    "heartbeat.interval.ms": ("heartbeat_interval_ms", _milliseconds),
    "max.poll.interval.ms": ("rebalance_timeout_ms", _milliseconds),
    "metadata.max.age.ms": ("metadata_max_age_ms", _milliseconds),
    "group.instance.id": ("instance_id", _text),
}
"""Each with the field of `GroupOptions`, and what reads its value."""
