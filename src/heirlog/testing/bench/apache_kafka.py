"""Three combined nodes of Apache Kafka on this machine, from a directory of its jars, with the face of `Cluster`.

Each node is broker and controller, with a heap of 1 GiB and the JVM options that Kafka's own start scripts set. The
folders have the names that `Cluster` gives them (`broker-1/...`), so that the gauges find the log files of either.
"""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from heirlog.cli.ready import known_brokers

NODES = (1, 2, 3)
CLUSTER_ID = "q1Sh-9_ISia_zwGINzRvyQ"
HEAP = "1g"
JVM = (
    *(f"-Xms{HEAP}", f"-Xmx{HEAP}", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"),
    *("-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent", "-Djava.awt.headless=true"),
)
READY_TIMEOUT_S = 90.0
STOP_TIMEOUT_S = 60.0
HOST = "127.0.0.1"


class ApacheKafkaError(Exception):
    """A node did not do what was asked of it; says what it printed last."""


class ApacheKafka:
    """Started by `with`, and ended by leaving it: each node by its own handle."""

    def __init__(self, jars: Path) -> None:
        self._classpath = f"{jars}/*"
        self._held = ExitStack()
        self._ports: dict[int, tuple[int, int]] = {}
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._data = Path()
        self.started_s = 0.0
        """From the start of the processes to three brokers in Metadata."""

    def __enter__(self) -> ApacheKafka:
        self._data = Path(tempfile.mkdtemp(prefix="apache-kafka-"))
        self._held.callback(shutil.rmtree, self._data, ignore_errors=True)
        try:
            self._ports = dict(zip(NODES, _free_ports(len(NODES)), strict=True))
            for node in NODES:
                self._write_properties(node)
                self._format(node)
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
        for node in list(self._processes):
            self.kill(node)
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
        return {node: process.pid for node, process in self._processes.items() if process.poll() is None}

    def start(self, node: int) -> None:
        with (self._home(node) / "node.log").open("ab") as output:
            self._processes[node] = subprocess.Popen(
                ["java", *JVM, "-cp", self._classpath, "kafka.Kafka", str(self._properties(node))],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                cwd=self._home(node),
            )

    def kill(self, node: int) -> None:
        self._processes[node].kill()
        self._processes[node].wait(STOP_TIMEOUT_S)

    def stop(self, node: int) -> None:
        """A clean stop."""
        self._processes[node].send_signal(signal.SIGTERM)
        self._processes[node].wait(STOP_TIMEOUT_S)

    def wait_until_ready(self) -> None:
        """Until each broker names all of them in a Metadata answer. Raises ApacheKafkaError."""
        deadline = time.monotonic() + READY_TIMEOUT_S
        waiting = list(NODES)
        while waiting:
            for node in NODES:
                if self._processes[node].poll() is not None or time.monotonic() > deadline:
                    said = (self._home(node) / "node.log").read_text(errors="replace")[-2000:]
                    raise ApacheKafkaError(f"node {node} of Apache Kafka did not become ready; it said: {said}")
            waiting = [node for node in waiting if not set(NODES) <= known_brokers(self._address(node))]
            time.sleep(0.05 if waiting else 0.0)

    def _home(self, node: int) -> Path:
        return self._data / f"broker-{node}"

    def _properties(self, node: int) -> Path:
        return self._home(node) / "server.properties"

    def _address(self, node: int) -> str:
        return f"{HOST}:{self._ports[node][0]}"

    def _write_properties(self, node: int) -> None:
        self._home(node).mkdir()
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
        self._properties(node).write_text("".join(f"{name}={value}\n" for name, value in properties.items()))

    def _format(self, node: int) -> None:
        tool = ["kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(self._properties(node))]
        done = subprocess.run(
            ["java", "-cp", self._classpath, *tool], capture_output=True, text=True, cwd=self._home(node)
        )
        if done.returncode != 0:
            raise ApacheKafkaError(f"Apache Kafka's storage tool refused: {done.stdout[-1000:]}{done.stderr[-1000:]}")


def _free_ports(nodes: int) -> list[tuple[int, int]]:
    """Two per node. Free when asked: Kafka cannot share them with somebody who keeps them."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(2 * nodes)]
        for one in sockets:
            one.bind((HOST, 0))
        ports = [one.getsockname()[1] for one in sockets]
    return list(zip(ports[::2], ports[1::2], strict=True))
