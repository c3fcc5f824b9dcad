"""All families of a node, in the order in which they are written.

The names are what the JMX exporter's usual rules make of Apache Kafka's beans: `kafka_<domain>_<type>_<name>` in lower
case, a rate as a counter `..._total`, the keys of a bean as labels. So dashboards and alerts made for Kafka work here.
In addition there are `heirlog_*` and KIP-966's own names. A node shows the families of the roles that it has.

`None` between families, and between parts of a count, is where others may have their turn.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping

from heirlog.node.node import Node
from heirlog.node.request_metrics import RecentIncrease
from heirlog.server.metrics import broker, controller, process, quorum, requests
from heirlog.server.metrics.family import Family, counters, gauge, gauges
from heirlog.server.metrics.groups import GroupFamilies
from heirlog.server.metrics.growth import GrowthRate
from heirlog.version import __version__


class NodeFamilies:
    """connections: how many each listener has."""

    def __init__(self, node: Node, connections: Callable[[], Mapping[str, int]]) -> None:
        self._node = node
        self._connections = connections
        self._recent: dict[str, RecentIncrease] = {}
        self._growth = GrowthRate()
        self._groups = GroupFamilies()
        self._read_at_s = self._busy_s = 0.0

    def all(self) -> Iterator[Family | None]:
        node = self._node
        parts = node.parts
        yield gauges("heirlog_build_info", "The version of heirlog.", [({"version": __version__}, 1)])
        yield from process.families()
        yield self._socket_server()
        for kind, text, counts in (
            ("successful", "Clients that have proved who they are", node.authentications.successful),
            ("failed", "Clients that could not prove who they are", node.authentications.failed),
        ):
            yield counters(
                f"kafka_server_socket_server_metrics_{kind}_authentication_total",
                f"{text}, by SASL or by the name in a certificate, of each listener with TLS or SASL.",
                [({"listener": name}, counts[name]) for name in node.secured_listeners],
            )
        yield gauge(
            "kafka_network_socketserver_networkprocessoravgidlepercent",
            "Share of the time, from 0 to 1, that the node's thread had nothing to do since the previous reading.",
            self._idle_share(),
        )
        if parts.quorum is not None:
            yield from quorum.families(node, parts.quorum, self._growth)
        if parts.controller is not None:
            yield from controller.families(node, parts.controller)
        if parts.broker is not None:
            yield from broker.families(node, parts.broker, self._groups)
        yield gauge(
            "kafka_network_requestchannel_requestqueuesize",
            "Requests that wait to be handled, because they came before the broker had metadata.",
            node.held_count,
        )
        if node.client_quotas is not None:
            yield counters(
                "heirlog_quota_throttled_total",
                "Answers after which the client had to wait, by quota. Not there while no client has a quota.",
                [({"quota": quota}, count) for quota, count in sorted(node.client_quotas.throttled.items())],
            )
        yield None
        if node.requests is not None:
            yield from requests.families(node.requests.all(), self._recent, node.env.now_ms())

    def _idle_share(self) -> float:
        """Of the thread that asks, which is the loop's; at first, since that thread began."""
        now_s, busy_s = time.monotonic(), process.busy_s()
        if not self._read_at_s:
            self._read_at_s = process.started_monotonic_s()
        passed_s = now_s - self._read_at_s
        share = 1 - (busy_s - self._busy_s) / passed_s if passed_s > 0 else 1.0
        self._read_at_s, self._busy_s = now_s, busy_s
        return min(max(share, 0.0), 1.0)

    def _socket_server(self) -> Family:
        return gauges(
            "kafka_server_socket_server_metrics_connection_count",
            "Open connections.",
            [({"listener": name, "networkProcessor": "0"}, n) for name, n in sorted(self._connections().items())],
        )
