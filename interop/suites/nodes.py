"""One broker that is its own controller, of heirlog or of Apache Kafka, from the same server.properties.

The clients' suites expect what their authors start for themselves: a single broker, with id 0, small internal topics,
and groups that form at once.
"""

from __future__ import annotations

import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import jars

from heirlog.cli.ready import known_brokers
from heirlog.testing import Cluster

HOST = "127.0.0.1"
NODE_ID = 0
CLUSTER_ID = "q1Sh-9_ISia_zwGINzRvyQ"
READY_TIMEOUT_S = 90.0
STOP_TIMEOUT_S = 30.0
CONFIG = {
    "num.partitions": 4,
    "default.replication.factor": 1,
    "min.insync.replicas": 1,
    "offsets.topic.replication.factor": 1,
    "offsets.topic.num.partitions": 2,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "transaction.state.log.num.partitions": 2,
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 1000,
}


@contextmanager
def heirlog_node() -> Iterator[str]:
    """The broker's address."""
    with tempfile.TemporaryDirectory(prefix="heirlog-suites-") as directory:
        address = write_properties(Path(directory))
        with Cluster(data=directory, ledger=False):
            yield address


@contextmanager
def kafka_node() -> Iterator[str]:
    """The broker's address. Raises jars.Missing."""
    jars.fetch()
    with tempfile.TemporaryDirectory(prefix="kafka-suites-") as directory:
        address = write_properties(Path(directory))
        home = Path(directory) / f"broker-{NODE_ID}"
        with kafka_process(home) as node:
            wait_until_ready(node, address, {NODE_ID}, home / "node.log")
            yield address


@contextmanager
def kafka_process(home: Path, memory: str = "512m") -> Iterator[subprocess.Popen[bytes]]:
    """A node of Apache Kafka, formatted and started from `home`/server.properties; it prints into node.log there."""
    java = ["java", f"-Xmx{memory}", "-cp", jars.classpath()]
    properties = str(home / "server.properties")
    formatting = [*java, "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", properties]
    subprocess.run(formatting, check=True, capture_output=True, cwd=home)
    with (home / "node.log").open("wb") as output:
        node = subprocess.Popen(
            [*java, "kafka.Kafka", properties], stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=home
        )
        try:
            yield node
        finally:
            node.terminate()
            try:
                node.wait(STOP_TIMEOUT_S)
            finally:
                node.kill()


def wait_until_ready(node: subprocess.Popen[bytes], address: str, brokers: set[int], log: Path) -> None:
    """Until the node, which listens at `address`, knows these brokers."""
    deadline = time.monotonic() + READY_TIMEOUT_S
    while not brokers <= known_brokers(address):
        if node.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"Apache Kafka did not become ready; it said: {log.read_text(errors='replace')[-2000:]}")
        time.sleep(0.1)


def write_properties(data: Path) -> str:
    """Where `Cluster` looks for its nodes. Returns the address for clients."""
    home = data / f"broker-{NODE_ID}"
    home.mkdir(parents=True)
    port, controller_port = free_ports()
    properties = {
        "process.roles": "broker,controller",
        "node.id": NODE_ID,
        "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": f"{NODE_ID}@{HOST}:{controller_port}",
        "inter.broker.listener.name": "PLAINTEXT",
        "log.dirs": home / "log",
        **CONFIG,
    }
    (home / "server.properties").write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    return f"{HOST}:{port}"


def free_ports() -> tuple[int, int]:
    with socket.socket() as one, socket.socket() as other:
        one.bind((HOST, 0))
        other.bind((HOST, 0))
        return one.getsockname()[1], other.getsockname()[1]
