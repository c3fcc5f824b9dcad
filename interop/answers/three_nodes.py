"""heirlog, a node of Apache Kafka and its control, from the same configuration, until all of them can be asked.

Where transactional ids are to be nearly used up (`worn_ids`), the nodes are restarted once, because a coordinator reads
its log when it starts.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from apache_kafka import started
from suites import nodes

from answers import worn_ids
from answers.players import HEIRLOG, Player, Table
from answers.shape import Plan, request_of
from answers.wire import Server
from heirlog.testing import Cluster
from heirlog.testing.apache_kafka import ApacheKafkaNode

RELEASE = "4.2-IV1"
"""The metadata version that heirlog formats with."""
CONFIG = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS;User:admin",
    "auto.create.topics.enable": "false",
    # a transaction that is open for too long is aborted soon afterwards
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 300,
    # InitProducerId 6, with two-phase commit
    "unstable.api.versions.enable": "true",
    "transaction.two.phase.commit.enable": "true",
    # the time of the records is in the past (world.TIME_MS)
    "log.retention.ms": -1,
    "group.consumer.assignors": "range,uniform",
    # for locks that end, and for members that are refused
    "group.share.min.record.lock.duration.ms": 1000,
    "group.share.max.size": 3,
    "share.coordinator.state.topic.replication.factor": 1,
    "share.coordinator.state.topic.min.isr": 1,
    "share.coordinator.state.topic.num.partitions": 2,
}


@contextmanager
def three_nodes(*, worn: bool = False) -> Iterator[Table]:
    """worn: the transactional ids of the sequences have used up nearly all of their epochs."""
    with ExitStack() as stack:
        homes = {}
        for name in ("kafka", "control", HEIRLOG):
            directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=f"answers-{name}-")))
            homes[name] = (directory, *prepare(directory))
        kafkas: list[tuple[ApacheKafkaNode, int]] = []
        for name in ("kafka", "control"):
            directory, broker, _ = homes[name]
            home = directory / f"broker-{nodes.NODE_ID}"
            kafkas.append((stack.enter_context(started(home, "--release-version", RELEASE)), broker))
        heirlog = stack.enter_context(Cluster(data=homes[HEIRLOG][0], ledger=False))
        for node, broker in kafkas:
            node.wait_until_it_knows({nodes.NODE_ID}, f"127.0.0.1:{broker}")
        players = [Player(name, Server(broker, controller)) for name, (_, broker, controller) in homes.items()]
        table = Table(*players)
        warm_up(table)
        if worn:
            for _, broker, _ in homes.values():
                worn_ids.store(broker)
            table.disconnect()
            for node, _ in kafkas:
                node.stop()
                node.start()
            heirlog.stop(nodes.NODE_ID)
            heirlog.start(nodes.NODE_ID)
            for node, broker in kafkas:
                node.wait_until_it_knows({nodes.NODE_ID}, f"127.0.0.1:{broker}")
            warm_up(table)
        try:
            yield table
        finally:
            table.disconnect()


def prepare(directory: Path) -> tuple[int, int]:
    """A node's server.properties; the ports of its broker and its controller."""
    address = nodes.write_properties(directory)
    properties = directory / f"broker-{nodes.NODE_ID}" / "server.properties"
    text = properties.read_text()
    properties.write_text(text + "".join(f"{name}={value}\n" for name, value in CONFIG.items()))
    (listeners,) = [line for line in text.splitlines() if line.startswith("listeners=")]
    return int(address.rpartition(":")[2]), int(listeners.rpartition(":")[2])


def warm_up(table: Table) -> None:
    """Until groups can be coordinated, and producers get ids."""
    for player in table.players:
        deadline = time.monotonic() + 60
        while True:
            found = player.server.ask(request_of(Plan(10, 4, {"coordinator_keys": ["warm"]}), player.world), 4)
            listed = player.server.ask(request_of(Plan(16, 4, {}), player.world), 4)
            producer = player.server.ask(request_of(Plan(22, 4, {"transaction_timeout_ms": 1000}), player.world), 4)
            state = player.server.ask(
                request_of(Plan(10, 4, {"key_type": 1, "coordinator_keys": ["w"]}), player.world), 4
            )
            shares = {"key_type": 2, "coordinator_keys": ["w:AAAAAAAAAAAAAAAAAAAAAQ:0"]}
            share = player.server.ask(request_of(Plan(10, 6, shares), player.world), 6)
            transactions = player.server.ask(request_of(Plan(66, 1, {}), player.world), 1)
            codes = [answer.error_code for answer in (*found.coordinators, *state.coordinators, *share.coordinators)]
            if not any((*codes, listed.error_code, producer.error_code, transactions.error_code)):
                break
            assert time.monotonic() < deadline, f"{player.name} has no coordinator"
            time.sleep(0.1)
    table.settle()
