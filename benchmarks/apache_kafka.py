"""Three combined nodes of Apache Kafka on this machine, from a directory of its jars, with the face of `Cluster`.

Each node is broker and controller, with a heap of 1 GiB and the JVM options that Kafka's own start scripts set. The
folders have the names that `Cluster` gives them (`broker-1/...`), so that the gauges find the log files of either.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from heirlog.local.layout import HOST
from heirlog.testing.apache_kafka import CLUSTER_ID, ApacheKafkaNode, free_ports, write_properties

NODES = (1, 2, 3)
HEAP = "1g"
JVM = (
    *(f"-Xms{HEAP}", f"-Xmx{HEAP}", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"),
    *("-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent", "-Djava.awt.headless=true"),
)


class ApacheKafka:
    """Started by `with`, and ended by leaving it: each node by its own handle."""

    def __init__(self, jars: Path) -> None:
        self._jars = jars
        self._held = ExitStack()
        self._ports: dict[int, tuple[int, int]] = {}
        self._nodes: dict[int, ApacheKafkaNode] = {}
        self._data = Path()
        self.started_s = 0.0
        """From the start of the processes to three brokers in Metadata."""

    def __enter__(self) -> ApacheKafka:
        self._data = Path(tempfile.mkdtemp(prefix="apache-kafka-"))
        self._held.callback(shutil.rmtree, self._data, ignore_errors=True)
        try:
            ports = free_ports(2 * len(NODES))
            self._ports = dict(zip(NODES, zip(ports[::2], ports[1::2], strict=True), strict=True))
            for node in NODES:
                self._write_properties(node)
                self._nodes[node] = ApacheKafkaNode(self._home(node), self._jars, JVM)
                self._nodes[node].format()
            began = time.monotonic()
            for node in NODES:
                self.start(node)
            self.wait_until_ready()
            self.started_s = time.monotonic() - began
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        for node in self._nodes.values():
            node.kill()
        self._held.close()

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(self._address(node) for node in NODES)

    @property
    def data(self) -> Path:
        return self._data

    @property
    def brokers(self) -> list[int]:
        return list(NODES)

    @property
    def pids(self) -> dict[int, int]:
        return {number: pid for number, node in self._nodes.items() if (pid := node.pid) is not None}

    def start(self, node: int) -> None:
        self._nodes[node].start()

    def kill(self, node: int) -> None:
        self._nodes[node].kill()

    def stop(self, node: int) -> None:
        """A clean stop."""
        self._nodes[node].stop()

    def wait_until_ready(self) -> None:
        """Until each broker names all of them in a Metadata answer. Raises ApacheKafkaError."""
        for number, node in self._nodes.items():
            node.wait_until_it_knows(NODES, self._address(number))

    def _home(self, node: int) -> Path:
        return self._data / f"broker-{node}"

    def _address(self, node: int) -> str:
        return f"{HOST}:{self._ports[node][0]}"

    def _write_properties(self, node: int) -> None:
        port, controller_port = self._ports[node]
        voters = ",".join(f"{voter}@{HOST}:{self._ports[voter][1]}" for voter in NODES)
        properties = {
            "process.roles": "broker,controller",
            "node.id": node,
            "controller.quorum.voters": voters,
            "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller_port}",
            "advertised.listeners": f"PLAINTEXT://{HOST}:{port}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "log.dirs": self._home(node) / "data",
            "offsets.topic.replication.factor": 3,
            "transaction.state.log.replication.factor": 3,
            "transaction.state.log.min.isr": 2,
        }
        write_properties(self._home(node), properties)


class ApacheKafkaControllers:
    """Three nodes that are controllers only; started by `with`, and ended by leaving it."""

    def __init__(self, jars: Path, settings: Mapping[str, str]) -> None:
        self._jars = jars
        self._settings = settings
        self._data = Path()
        self._nodes: dict[int, ApacheKafkaNode] = {}
        self.cluster_id = CLUSTER_ID
        self.addresses: dict[int, str] = {}

    def __enter__(self) -> ApacheKafkaControllers:
        self._data = Path(tempfile.mkdtemp(prefix="apache-kafka-"))
        try:
            ports = dict(zip(NODES, free_ports(len(NODES)), strict=True))
            self.addresses = {node: f"{HOST}:{port}" for node, port in ports.items()}
            for node, address in self.addresses.items():
                home = self._data / f"controller-{node}"
                properties = {
                    "process.roles": "controller",
                    "node.id": node,
                    "controller.quorum.voters": ",".join(f"{n}@{a}" for n, a in self.addresses.items()),
                    "listeners": f"CONTROLLER://{address}",
                    "controller.listener.names": "CONTROLLER",
                    "log.dirs": home / "data",
                    **self._settings,
                }
                write_properties(home, properties)
                self._nodes[node] = ApacheKafkaNode(home, self._jars, JVM)
                self._nodes[node].format()
                self.start(node)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for node in self._nodes.values():
            node.kill()
        shutil.rmtree(self._data, ignore_errors=True)

    @property
    def data(self) -> Path:
        return self._data

    @property
    def pids(self) -> dict[int, int]:
        return {number: pid for number, node in self._nodes.items() if (pid := node.pid) is not None}

    def start(self, node: int) -> None:
        self._nodes[node].start()

    def stop(self, node: int) -> None:
        self._nodes[node].stop()

    def kill(self, node: int) -> None:
        self._nodes[node].kill()
