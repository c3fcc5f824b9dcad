"""What a running broker can be changed to by dynamic configuration, beyond what a value alone must be.

    threads   a pool may change to between half and double its size
    limits    zero connections would lock out every client, including the one that wants to undo it; zero per address
              is allowed only if some address has a limit of its own
    cleaner   more than 1 MiB of its buffer for each of its threads
    kept      a retention time is a time, or -1; the local retention is not longer

The broker that a client asks judges what would count on itself, whatever is changed: its own value, or that of all
brokers, which counts where it has none. heirlog has no thread pools and keeps those numbers only; it refuses what
Apache Kafka refuses, so that a tool that grows a pool in steps finds the same steps.

Source: KIP-226; what Kafka 4.2 answers to each value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.configs import server_value, server_value_after
from heirlog.metadata.definition import ConfigError
from heirlog.metadata.image import Image
from heirlog.metadata.listener_security import PREFIX, limit_of_listener
from heirlog.metadata.topic_configs import TOPIC_CONFIGS

_CLEANER: Final = "log.cleaner.threads"
POOLS: Final = (
    "num.io.threads",
    "num.network.threads",
    "num.replica.fetchers",
    "num.recovery.threads.per.data.dir",
    "background.threads",
    "remote.log.reader.threads",
    "remote.log.manager.copier.thread.pool.size",
    "remote.log.manager.expiration.thread.pool.size",
    "remote.log.manager.follower.thread.pool.size",
    _CLEANER,
)
_NOT_ZERO: Final = ("max.connections", "max.connection.creation.rate")
_LOCKED_OUT: Final = "no client could connect any more; it must be at least 1"
_PER_IP: Final = "max.connections.per.ip"
_OVERRIDES: Final = "max.connections.per.ip.overrides"
_CLEANER_BUFFER: Final = "log.cleaner.dedupe.buffer.size"
_CLEANER_BUFFER_BYTES: Final = 1024 * 1024
"""Of each thread, and one more."""
_RETENTION_MS: Final = "log.retention.ms"
_LOCAL_MS: Final = "log.local.retention.ms"
_RETENTION_BYTES: Final = "log.retention.bytes"
_LOCAL_BYTES: Final = "log.local.retention.bytes"
_UNLIMITED: Final = -1

_Value: TypeAlias = Callable[[str], Any]
"""Of a name, what would count."""


def reason_against(image: Image, static: StaticConfig, broker: str, changes: Mapping[str, str | None]) -> str | None:
    """Why this node does not make `changes` (None deletes) of `broker`'s configuration, "" for that of all brokers.

    Values that do not parse are refused elsewhere (controller/configs.py).
    """

    def then(name: str) -> Any:
        if name in changes:
            return server_value_after(image, static, name, broker, changes[name])
        return server_value(image, static, name)

    try:
        return (
            _first(_pool(name, server_value(image, static, name), then) for name in POOLS if name in changes)
            or _first(f"Invalid {name} 0: {_LOCKED_OUT}" for name in _NOT_ZERO if name in changes and then(name) == 0)
            or _first(f"Invalid {name} 0: {_LOCKED_OUT}" for name in changes if _closes_listener(static, name, changes))
            or _cleaner(changes, then)
            or _per_ip(changes, then)
            or _kept(changes, then)
        )
    except ConfigError:
        return None


def _first(reasons: Iterable[str | None]) -> str | None:
    return next(filter(None, reasons), None)


def _closes_listener(static: StaticConfig, name: str, changes: Mapping[str, str | None]) -> bool:
    limit, value = limit_of_listener(name), changes[name]
    names = (f"{PREFIX}{listener.name.lower()}." for listener in static.listeners)
    return limit is not None and value is not None and limit.parse(value) == 0 and name.startswith(tuple(names))


def _pool(name: str, now: int, value: _Value) -> str | None:
    then: int = value(name)
    if then == now or (then > 0 and now // 2 <= then <= now * 2):
        return None
    if name == _CLEANER:
        if then < 1:
            return "Log cleaner threads should be at least 1"
        if then < now:
            return f"Log cleaner threads cannot be reduced to less than half the current value {now}"
        return f"Log cleaner threads cannot be increased to more than double the current value {now}"
    text = f"Dynamic thread count update validation failed for {name}={then}, value should"
    if then < 1:
        return f"{text} be at least 1"
    if then < now:
        return f"{text} be at least half the current value {now}"
    return f"{text} not be greater than double the current value {now}"


def _cleaner(changes: Mapping[str, str | None], then: _Value) -> str | None:
    if _CLEANER not in changes and _CLEANER_BUFFER not in changes:
        return None
    # (server.properties may say that there are no threads)
    if then(_CLEANER_BUFFER) // max(1, then(_CLEANER)) > _CLEANER_BUFFER_BYTES:
        return None
    return f"{_CLEANER_BUFFER} must be at least 1MB per cleaner thread."


def _per_ip(changes: Mapping[str, str | None], then: _Value) -> str | None:
    if (_PER_IP not in changes and _OVERRIDES not in changes) or then(_PER_IP) != 0 or then(_OVERRIDES):
        return None
    return f"{_PER_IP} can be set to zero only if {_OVERRIDES} property is set."


def _kept(changes: Mapping[str, str | None], then: _Value) -> str | None:
    if _RETENTION_MS in changes and then(_RETENTION_MS) == 0:
        return f"{_RETENTION_MS} must be unlimited (-1) or, greater than or equal to 1"
    if _LOCAL_MS in changes or _RETENTION_MS in changes:
        units = TOPIC_CONFIGS["retention.ms"].synonyms
        kept_ms = next(found * unit for name, unit in units if (found := then(name)) is not None)
        reason = _local(_LOCAL_MS, then(_LOCAL_MS), _RETENTION_MS, kept_ms)
        if reason is not None:
            return reason
    if _LOCAL_BYTES in changes or _RETENTION_BYTES in changes:
        return _local(_LOCAL_BYTES, then(_LOCAL_BYTES), _RETENTION_BYTES, then(_RETENTION_BYTES))
    return None


def _local(name: str, local: int | None, of: str, kept: int | None) -> str | None:
    if local is None or kept is None or kept <= _UNLIMITED:
        return None
    if local == _UNLIMITED:
        return f"Invalid value {local} for configuration {name}: Value must not be -1 as {of} value is set as {kept}."
    if local > kept:
        return (
            f"Invalid value {local} for configuration {name}: Value must not be more than {of} property value: {kept}"
        )
    return None
