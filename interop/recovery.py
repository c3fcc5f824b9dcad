"""U11 of the unclean recovery on Apache Kafka 4.2 and on heirlog: one script, the figures side by side.

    3 stops cleanly; 1 and 2 acknowledge records at acks=all; 2 is killed; 1 is killed and its log cut in half, as a
    power cut would; 3, 2 and 1 return in this order

2 holds every acknowledged record. Apache Kafka waits for the last known leader, 1, and truncates 2 to match; heirlog
asks everybody and elects 2. Both run three brokers and a controller of its own, with the same topic.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import jars

from heirlog.drill.unclean_recovery import SCENARIOS, TOPIC, Recovery, Verdict, config
from heirlog.local.layout import HOST
from heirlog.testing import Cluster
from heirlog.testing.apache_kafka import ApacheKafkaNode, free_ports, write_properties

BROKERS = (1, 2, 3)
CONTROLLER = 100
SCENARIO = "U11"


def check() -> str:
    # at once: both wait most of the time, for sessions to end and for what must not happen
    with ThreadPoolExecutor(2) as pool:
        theirs, ours = [side.result() for side in (pool.submit(on_kafka), pool.submit(on_heirlog))]
    figures = f"Apache Kafka: {received(theirs)}; heirlog: {received(ours)}"
    if ours.lost or ours.leader != 2:
        raise AssertionError(f"heirlog lost what broker 2 had. {figures}")
    if not theirs.lost:
        raise AssertionError(f"Apache Kafka kept everything: the script no longer shows what it is for. {figures}")
    return figures


def on_kafka() -> Verdict:
    with kafka_nodes() as kafka:
        return play(kafka, kafka.data, manager=False)


def on_heirlog() -> Verdict:
    with Cluster(nodes=len(BROKERS), config=config(manager=True)) as cluster:
        return play(cluster, cluster.data, manager=True)


def received(verdict: Verdict) -> str:
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
        self._jars = jars.fetch()
        self._nodes = {node: self._made(node) for node in self._ports}

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(self._address(broker) for broker in BROKERS)

    def _address(self, node: int) -> str:
        return f"{HOST}:{self._ports[node]}"

    def _made(self, number: int) -> ApacheKafkaNode:
        is_controller = number == CONTROLLER
        home = self.data / (f"controller-{number}" if is_controller else f"broker-{number}")
        properties = {
            "process.roles": "controller" if is_controller else "broker",
            "node.id": number,
            "controller.quorum.voters": f"{CONTROLLER}@{self._address(CONTROLLER)}",
            "listeners": f"{'CONTROLLER' if is_controller else 'PLAINTEXT'}://{self._address(number)}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": home / "data",
        }
        write_properties(home, properties)
        node = ApacheKafkaNode(home, self._jars, ["-Xmx256m"])
        node.format()
        return node

    def start(self, node: int) -> None:
        self._nodes[node].start()

    def kill(self, node: int) -> None:
        self._nodes[node].kill()

    def stop(self, node: int) -> None:
        self._nodes[node].stop()

    def start_all(self) -> None:
        for node in (CONTROLLER, *BROKERS):
            self.start(node)
        for broker in BROKERS:
            self._nodes[broker].wait_until_it_knows(BROKERS, self._address(broker))

    def close(self) -> None:
        for node in self._nodes.values():
            node.kill()


@contextmanager
def kafka_nodes() -> Iterator[KafkaNodes]:
    """Raises jars.Missing."""
    with ExitStack() as held:
        data = Path(tempfile.mkdtemp(prefix="kafka-recovery-"))
        held.callback(shutil.rmtree, data, ignore_errors=True)
        nodes = KafkaNodes(data)
        held.callback(nodes.close)
        nodes.start_all()
        yield nodes
