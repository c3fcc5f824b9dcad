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

Descriptors of the process are a limit, too (`ulimit -n`). The last ones are kept for files: a node that cannot open a
file of its metadata log ends, and clients that only connect, to every node, would end the cluster. A connection that
gets one of these descriptors is closed, and one that has not authenticated is closed for the next. Listeners between
nodes may take half of them.

Source: Kafka's ConnectionQuotas; KIP-402, KIP-308, KIP-612.
"""

from __future__ import annotations

import resource
import socket
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

from heirlog.metadata.config_def import StaticConfig

NONE = 2**31 - 1
DESCRIPTORS_KEPT = 256
"""For files; but an eighth of a low limit."""


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


def descriptors_for_connections(*, between_nodes: bool) -> int:
    """Connections may have the descriptors below this one."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return NONE
    kept = min(DESCRIPTORS_KEPT, limit // 8)
    return limit - (kept // 2 if between_nodes else kept)


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
