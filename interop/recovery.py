"""U11 of the unclean recovery on Apache Kafka 4.2 and on heirlog: one script, the figures side by side.

    3 stops cleanly; 1 and 2 acknowledge records at acks=all; 2 is killed; 1 is killed and its log cut in half, as a
    power cut would; 3, 2 and 1 return in this order

2 holds every acknowledged record. Apache Kafka waits for the last known leader, 1, and truncates 2 to match; heirlog
asks everybody and elects 2. Both run three brokers and a controller of its own, with the same topic.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import jars

from heirlog.cli.ready import known_brokers
from heirlog.testing import Cluster
from heirlog.testing.drill.unclean_recovery import SCENARIOS, TOPIC, Recovery, Verdict, config

CLUSTER_ID = "q1Sh-9_ISia_zwGINzRvyQ"
HOST = "127.0.0.1"
BROKERS = (1, 2, 3)
CONTROLLER = 100
READY_TIMEOUT_S = 90.0
STOP_TIMEOUT_S = 60.0
SCENARIO = "U11"


def check() -> str:
    with kafka_nodes() as kafka:
        theirs = play(kafka, kafka.data, manager=False)
    with Cluster(nodes=len(BROKERS), config=config(manager=True)) as cluster:
        ours = play(cluster, cluster.data, manager=True)
    figures = f"Apache Kafka: {told(theirs)}; heirlog: {told(ours)}"
    if ours.lost or ours.leader != 2:
        raise AssertionError(f"heirlog lost what broker 2 had. {figures}")
    if not theirs.lost:
        raise AssertionError(f"Apache Kafka kept everything: the script no longer shows what it is for. {figures}")
    return figures


def told(verdict: Verdict) -> str:
    return (
        f"{verdict.acknowledged} acknowledged, {verdict.readable} readable, {verdict.lost} lost, "
        f"broker {verdict.leader} elected"
    )


def play(nodes: Cluster | KafkaNodes, data: Path, *, manager: bool) -> Verdict:
    recovery = Recovery(nodes, SCENARIO, manager, lambda node: cut_in_half(data / f"broker-{node}"))
    try:
        return recovery.run(SCENARIOS[SCENARIO])[0]
    finally:
        recovery.close()


def cut_in_half(home: Path) -> None:
    """The partition's only segment."""
    (segment,) = home.glob(f"**/{TOPIC}-0/*.log")
    os.truncate(segment, segment.stat().st_size // 2)


class KafkaNodes:
    """Three brokers and a controller, each a JVM of its own."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self._ports = dict(zip((*BROKERS, CONTROLLER), free_ports(len(BROKERS) + 1), strict=True))
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._java = ["java", "-Xmx256m", "-cp", jars.classpath()]
        for node in self._ports:
            self._format(node)

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"{HOST}:{self._ports[broker]}" for broker in BROKERS)

    def _home(self, node: int) -> Path:
        return self.data / (f"controller-{node}" if node == CONTROLLER else f"broker-{node}")

    def _format(self, node: int) -> None:
        home = self._home(node)
        home.mkdir()
        role, listener = ("controller", "CONTROLLER") if node == CONTROLLER else ("broker", "PLAINTEXT")
        properties = {
            "process.roles": role,
            "node.id": node,
            "controller.quorum.voters": f"{CONTROLLER}@{HOST}:{self._ports[CONTROLLER]}",
            "listeners": f"{listener}://{HOST}:{self._ports[node]}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": home / "data",
        }
        path = home / "server.properties"
        path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        command = [*self._java, "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=home)
        if done.returncode:
            raise RuntimeError(f"kafka-storage format: {done.stdout}{done.stderr}")

    def start(self, node: int) -> None:
        home = self._home(node)
        with (home / "node.log").open("ab") as output:
            self._processes[node] = subprocess.Popen(
                [*self._java, "kafka.Kafka", str(home / "server.properties")],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=home,
            )

    def kill(self, node: int) -> None:
        self._processes[node].kill()
        self._processes[node].wait(STOP_TIMEOUT_S)

    def stop(self, node: int) -> None:
        self._processes[node].send_signal(signal.SIGTERM)
        self._processes[node].wait(STOP_TIMEOUT_S)

    def start_all(self) -> None:
        for node in (CONTROLLER, *BROKERS):
            self.start(node)
        deadline = time.monotonic() + READY_TIMEOUT_S
        for broker in BROKERS:
            while not set(BROKERS) <= known_brokers(f"{HOST}:{self._ports[broker]}"):
                if self._processes[broker].poll() is not None or time.monotonic() > deadline:
                    said = (self._home(broker) / "node.log").read_text(errors="replace")[-2000:]
                    raise RuntimeError(f"broker {broker} of Apache Kafka did not become ready; it said: {said}")
                time.sleep(0.1)

    def close(self) -> None:
        for process in self._processes.values():
            process.kill()
            process.wait(STOP_TIMEOUT_S)


@contextmanager
def kafka_nodes() -> Iterator[KafkaNodes]:
    """Raises jars.Missing."""
    jars.fetch()
    with ExitStack() as held:
        data = Path(tempfile.mkdtemp(prefix="kafka-recovery-"))
        held.callback(shutil.rmtree, data, ignore_errors=True)
        nodes = KafkaNodes(data)
        held.callback(nodes.close)
        nodes.start_all()
        yield nodes


def free_ports(count: int) -> list[int]:
    """Free when asked: Kafka cannot share them with somebody who keeps them."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind((HOST, 0))
        return [one.getsockname()[1] for one in sockets]
