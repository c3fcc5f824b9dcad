"""A cluster in which every fault can be played: proxies between all nodes, and disks that fail on command."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from heirlog.drill.disk_faults import NAME, DiskSwitch
from heirlog.drill.links import Links
from heirlog.local.cluster import Cluster, ClusterError
from heirlog.local.layout import CONTROLLER_ID, NodeLayout
from heirlog.local.processes import NodeProcess


class ChaosCluster(Cluster):
    """Every connection to a node goes through `links`: nodes and clients know only its advertised listener."""

    def __init__(
        self, nodes: int, controllers: int, config: Mapping[str, Any], *, elr: bool = True, security: str = "PLAINTEXT"
    ) -> None:
        if security != "PLAINTEXT" and sys.platform != "linux":
            raise ClusterError(
                "with --secure, the drill knows nodes by their addresses on the loopback interface, of which only "
                "Linux has more than one; run it without --secure"
            )
        super().__init__(nodes=nodes, controllers=controllers, config=config, elr=elr, security=security)
        self._count = nodes
        self._links: Links | None = None
        self._switches: dict[int, DiskSwitch] = {}

    @property
    def links(self) -> Links:
        assert self._links is not None, "the cluster is not open"
        return self._links

    def disk(self, node: int) -> DiskSwitch:
        return self._switches[node]

    def ask_to_stop(self, node: int) -> None:
        """SIGTERM, without waiting for its end."""
        self._process(node).ask_to_stop()

    def is_paused(self, node: int) -> bool:
        return self._process(node).paused

    def exit_code(self, node: int) -> int | None:
        """None while it runs; negative: the signal that ended it."""
        return self._process(node).exit_code

    def why_it_ended(self, node: int) -> str:
        return self._process(node).last_output()

    def open(self) -> None:
        self._links = Links()
        super().open()

    def close(self) -> None:
        super().close()
        for switch in self._switches.values():
            switch.close()
        self._switches.clear()
        if self._links is not None:
            self._links.close()
            self._links = None

    def _advertised(self, ports: Sequence[int]) -> Mapping[int, int]:
        nodes = [*range(1, self._count + 1), *range(CONTROLLER_ID, CONTROLLER_ID + len(ports) - self._count)]
        return {port: self.links.listen(node, port) for node, port in zip(nodes, ports, strict=True)}

    def _process_for(self, node: NodeLayout) -> NodeProcess:
        self._switches[node.node_id] = DiskSwitch(node.directory / NAME)
        return NodeProcess(node, ledger=True, reuse_port=True, module="heirlog.drill.faulty_node")
