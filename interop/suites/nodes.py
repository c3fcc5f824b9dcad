"""One broker that is its own controller, of heirlog or of Apache Kafka, from the same server.properties.

The clients' suites expect what their authors start for themselves: a single broker, with id 0, small internal topics,
and groups that form at once.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from apache_kafka import started

from heirlog.local.layout import HOST
from heirlog.testing import Cluster, apache_kafka
from heirlog.testing.apache_kafka import free_ports

NODE_ID = 0
CONFIG = {
    "num.partitions": 4,
    "default.replication.factor": 1,
    "min.insync.replicas": 1,
    "offsets.topic.replication.factor": 1,
    "offsets.topic.num.partitions": 2,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "transaction.state.log.num.partitions": 2,
    "share.coordinator.state.topic.replication.factor": 1,
    "share.coordinator.state.topic.min.isr": 1,
    "share.coordinator.state.topic.num.partitions": 2,
    # librdkafka's tests wait until locks end
    "group.share.min.record.lock.duration.ms": 1000,
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
    with tempfile.TemporaryDirectory(prefix="kafka-suites-") as directory:
        address = write_properties(Path(directory))
        home = Path(directory) / f"broker-{NODE_ID}"
        with started(home) as node:
            node.wait_until_it_knows({NODE_ID}, address)
            yield address


def write_properties(data: Path) -> str:
    """Where `Cluster` looks for its nodes. Returns the address for clients."""
    home = data / f"broker-{NODE_ID}"
    port, controller_port = free_ports(2)
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
    apache_kafka.write_properties(home, properties)
    return f"{HOST}:{port}"
