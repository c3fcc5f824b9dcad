"""How many connections a node takes, in all and from one address.

    max.connections                    reached: at a listener with TLS or SASL, one that has not authenticated is
                                       closed for a new one. If there is none, and at any other listener, no connection
                                       is accepted: new ones wait in the kernel's queue until one is closed. The
                                       listeners between nodes are exempt, as in Kafka, so that many clients do not cut
                                       a broker off from its cluster: there the client that was idle for the longest
                                       time is closed
    max.connections.per.ip             reached: a new connection is closed at once
    max.connections.per.ip.overrides   `host:count,...` of addresses or names; a name is looked up once

    listener.name.<listener>.max.connections
                                       the same for one listener, also for one between nodes
    max.connection.creation.rate       per second, of the node (but for the listeners between nodes) and of a listener:
                                       a connection above it is served, and the next one is accepted later

All of them may change while the node runs.

Source: Kafka's ConnectionQuotas; KIP-402, KIP-308, KIP-612.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

from heirlog.metadata.config_def import StaticConfig

NONE = 2**31 - 1


class ConnectionLimits(NamedTuple):
    """rate: connections per second."""

    total: int = NONE
    per_host: int = NONE
    overrides: Mapping[str, int] = {}
    rate: int = NONE

    def of_host(self, host: str) -> int:
        return self.overrides.get(host, self.per_host)


class ListenerLimits(NamedTuple):
    """Of one listener."""

    total: int = NONE
    rate: int = NONE


UNLIMITED = ConnectionLimits()
ANY_LISTENER = ListenerLimits()


def connection_limits(value: Callable[[str], Any]) -> ConnectionLimits:
    """`value`: of a server configuration, as it counts now."""
    return ConnectionLimits(
        value("max.connections"),
        value("max.connections.per.ip"),
        _overrides(value("max.connections.per.ip.overrides") or ""),
        value("max.connection.creation.rate"),
    )


def listener_limits(value: Callable[[str], int]) -> ListenerLimits:
    """`value`: of a configuration of the listener, as it counts now."""
    return ListenerLimits(value("max.connections"), value("max.connection.creation.rate"))


def exempt_listeners(config: StaticConfig) -> frozenset[str]:
    """Listeners that `max.connections` does not close: those between nodes, where clients have others."""
    if not config.is_broker:
        return frozenset()
    exempt = {listener.name for listener in config.controller_listeners}
    if len(config.listeners) > 1:
        exempt.add(config.inter_broker_listener_name)
    return frozenset(exempt)


@cache
def _overrides(text: str) -> Mapping[str, int]:
    found: dict[str, int] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        host, _, count = entry.rpartition(":")
        for address in _addresses(host.strip().strip("[]")):
            found[address] = int(count)
    return found


def _addresses(host: str) -> list[str]:
    try:
        return [str(address[0]) for *_, address in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)]
    except OSError:
        return [host]  # no host has that name now, so no connection comes from it
