"""Apache Kafka on this machine, from a directory of its jars, with the face of `Cluster`.

`ApacheKafka` is three nodes that are broker and controller; `ApacheKafkaApart` has a process for each role. Each has a
heap of 1 GiB and the JVM options that Kafka's own start scripts set. The folders have the names that `Cluster` gives
them (`broker-1/...`), so that the gauges find the log files of either.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from heirlog.local.layout import CONTROLLER_ID, HOST
from heirlog.local.ready import led_epoch
from heirlog.testing.apache_kafka import CLUSTER_ID, ApacheKafkaNode, free_ports, write_properties

NODES = (1, 2, 3)
HEAP = "1g"
READY_TIMEOUT_S = 300.0
"""Of six processes that start at the same time."""
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


class ApacheKafkaApart:
    """Three controllers, and brokers, each in a process; started by `with`, and ended by leaving it."""

    def __init__(self, jars: Path, brokers: int, settings: Mapping[str, str] | None = None) -> None:
        """settings: for every node, in addition to Apache Kafka's defaults."""
        self._jars = jars
        self._settings = settings or {}
        self._data = Path()
        self._nodes: dict[int, ApacheKafkaNode] = {}
        self._paused: set[int] = set()
        self._listeners: dict[int, str] = {}
        self.brokers = list(range(1, brokers + 1))
        self.controllers = [CONTROLLER_ID + number for number in range(len(NODES))]
        self.cluster_id = CLUSTER_ID

    def __enter__(self) -> ApacheKafkaApart:
        self._data = Path(tempfile.mkdtemp(prefix="apache-kafka-"))
        nodes = [*self.controllers, *self.brokers]
        try:
            for node, port in zip(nodes, free_ports(len(nodes)), strict=True):
                self._listeners[node] = f"{HOST}:{port}"
            for node in nodes:
                home = self._data / f"{'broker' if node in self.brokers else 'controller'}-{node}"
                write_properties(home, self._properties(node, home))
                self._nodes[node] = ApacheKafkaNode(home, self._jars, JVM)
                self._nodes[node].format()
            for node in nodes:
                self.start(node)
            self.wait_until_ready()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for node in self._nodes.values():
            node.kill()
        shutil.rmtree(self._data, ignore_errors=True)

    def _properties(self, node: int, home: Path) -> dict[str, object]:
        role, listener = ("broker", "PLAINTEXT") if node in self.brokers else ("controller", "CONTROLLER")
        return {
            "process.roles": role,
            "node.id": node,
            "controller.quorum.voters": ",".join(f"{voter}@{self._listeners[voter]}" for voter in self.controllers),
            "listeners": f"{listener}://{self._listeners[node]}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": home / "data",
            **self._settings,
        }

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(self._listeners[broker] for broker in self.brokers)

    @property
    def addresses(self) -> dict[int, str]:
        """Of the controllers."""
        return {controller: self._listeners[controller] for controller in self.controllers}

    @property
    def data(self) -> Path:
        return self._data

    @property
    def pids(self) -> dict[int, int]:
        return {number: pid for number, node in self._nodes.items() if (pid := node.pid) is not None}

    def active_controller(self) -> int | None:
        """None while none of the running ones leads."""
        running = [node for node in self.controllers if node in self.pids and node not in self._paused]
        epochs = {epoch: node for node in running if (epoch := led_epoch(self._listeners[node])) is not None}
        return epochs[max(epochs)] if epochs else None

    def start(self, node: int) -> None:
        self._nodes[node].start()

    def stop(self, node: int) -> None:
        """A clean stop."""
        self._nodes[node].stop()

    def kill(self, node: int) -> None:
        self._nodes[node].kill()

    def pause(self, node: int) -> None:
        """SIGSTOP: it answers nothing, and its connections stay open."""
        os.kill(self.pids[node], signal.SIGSTOP)
        self._paused.add(node)

    def resume(self, node: int) -> None:
        os.kill(self.pids[node], signal.SIGCONT)
        self._paused.remove(node)

    def wait_until_ready(self) -> None:
        """Until each running broker names all brokers that run. Raises ApacheKafkaError."""
        running = [broker for broker in self.brokers if broker in self.pids]
        for broker in running:
            self._nodes[broker].wait_until_it_knows(running, self._listeners[broker], READY_TIMEOUT_S)
