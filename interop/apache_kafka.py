"""Nodes of Apache Kafka 4.2, from the jars of `jars`, and the wait for what a cluster brings about."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import jars

from heirlog.testing.apache_kafka import ApacheKafkaNode

PATIENCE_S = 60.0
POLL_S = 0.1
T = TypeVar("T")


def on_one_node(home: Path, plain: str, controller: str) -> dict[str, object]:
    """server.properties of a node with both roles, number 1, which has no other node to copy its internal topics to.

    plain, controller: addresses of its listeners.
    """
    return {
        "process.roles": "broker,controller",
        "node.id": 1,
        "listeners": f"PLAIN://{plain},CONTROLLER://{controller}",
        "listener.security.protocol.map": "PLAIN:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": f"1@{controller}",
        "inter.broker.listener.name": "PLAIN",
        "log.dirs": home / "log",
        "offsets.topic.replication.factor": 1,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "transaction.state.log.num.partitions": 2,
    }


@contextmanager
def started(home: Path, *options: str, jvm: Sequence[str] = ("-Xmx512m",)) -> Iterator[ApacheKafkaNode]:
    """A node from `home`/server.properties; it is ended with the block.

    options: of the storage tool, which formats its directories. Raises jars.Missing, ApacheKafkaError.
    """
    node = ApacheKafkaNode(home, jars.fetch(), jvm)
    node.format(*options)
    with node:
        yield node


def eventually(condition: Callable[[], T], what: str) -> T:
    """The first true value of `condition`: brokers follow the controller, followers their leaders.

    Raises AssertionError.
    """
    deadline = time.monotonic() + PATIENCE_S
    while not (found := condition()):
        assert time.monotonic() < deadline, f"not within {PATIENCE_S:g} s: {what}"
        time.sleep(POLL_S)
    return found
