"""All families of a node, in the order in which they are written.

The names are what the JMX exporter's usual rules make of Apache Kafka's beans: `kafka_<domain>_<type>_<name>` in lower
case, a rate as a counter `..._total`, the keys of a bean as labels. Dashboards and alerts made for Kafka find here what
they look for; `heirlog_*` and KIP-966's own names stand beside. A node shows the families of the roles that it has.

`None` between families, and between parts of a count, is where others may have their turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version

from heirlog.node.node import Node
from heirlog.node.request_meter import Recent
from heirlog.server.metrics import broker, controller, process, quorum, requests
from heirlog.server.metrics.family import Family, gauge, gauges


class NodeFamilies:
    """connections: how many each listener has."""

    def __init__(self, node: Node, connections: Callable[[], Mapping[str, int]]) -> None:
        self._node = node
        self._connections = connections
        self._recent: dict[str, Recent] = {}
        self._version = version("heirlog")

    def all(self) -> Iterator[Family | None]:
        node = self._node
        parts = node.parts
        yield gauges("heirlog_build_info", "The version of heirlog.", [({"version": self._version}, 1)])
        yield from process.families()
        yield self._socket_server()
        if parts.quorum is not None:
            yield from quorum.families(node, parts.quorum)
        if parts.controller is not None:
            yield from controller.families(node, parts.controller)
        if parts.broker is not None:
            yield from broker.families(node, parts.broker)
        yield gauge(
            "kafka_network_requestchannel_requestqueuesize",
            "Requests that wait to be handled: those that came before the broker had metadata.",
            node.held_count,
        )
        yield None
        yield from requests.families(node.requests.meters(), self._recent, node.env.now_ms())

    def _socket_server(self) -> Family:
        return gauges(
            "kafka_server_socket_server_metrics_connection_count",
            "Open connections.",
            [({"listener": name, "networkProcessor": "0"}, n) for name, n in sorted(self._connections().items())],
        )
