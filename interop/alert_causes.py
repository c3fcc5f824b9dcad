"""The causes of the alerts that no drill fires: each on nodes that run, until the alert was seen, and then mended.

    few_files             connections, under a low limit of open files
    busy                  clients that ask again at once
    markers_wait          a transaction is committed while the only broker of one of its partitions is down
    late_transaction      a transaction is open, and its coordinator is down
    damaged_copy          a byte of the only complete replica has changed on its disk
    full_disk             one of a broker's two log directories takes no more bytes

What a failing disk would do is done by limits of the process (`prlimit`), which need no root.
"""

from __future__ import annotations

import os
import resource
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from heirlog.broker.replica_manager_metrics import LATE_TRANSACTION_BUFFER_MS
from heirlog.local import layout as layouts
from heirlog.protocol.frames import RequestHeader, encode_request
from heirlog.protocol.messages import ApiVersionsRequest
from heirlog.testing import Cluster
from heirlog.testing.apache_kafka import free_ports

CONFIG = {
    "min.insync.replicas": 1,
    "transaction.state.log.num.partitions": 1,
    "transaction.state.log.replication.factor": 1,
    "transaction.max.timeout.ms": 900_000,
}
TRANSACTIONS = "__transaction_state"
BROKERS = 3
MORE = "more"
"""The second log directory."""
EACH = "each"
"""A topic with a partition of one replica on each broker."""
LIMIT_S = 30
USED = 0.84
"""Of the open files: an eighth is never given to connections."""
CLIENTS = 4
REQUESTS = 100
"""Of each client at once: so few that a reading of the metrics comes in between."""
FULL_BYTES = 300_000
BIG = b"x" * 50_000


@contextmanager
def running() -> Iterator[Cluster]:
    """Broker 1 has two log directories. Metrics keep their ports: Prometheus takes seconds to notice others."""
    ports = free_ports(2 * (BROKERS + 1))
    brokers, (controller, *metrics) = ports[:BROKERS], ports[BROKERS:]
    with tempfile.TemporaryDirectory() as folder:
        config = {name: str(value) for name, value in CONFIG.items()}
        layout = layouts.create(Path(folder), brokers, [controller], config=config, metrics_ports=metrics)
        home = layout.brokers[0]
        directories = f"log.dirs={home.log_dir}"
        text = home.properties_path.read_text()
        home.properties_path.write_text(text.replace(directories, f"{directories},{home.directory / MORE}"))
        with Cluster(data=folder) as cluster:
            cluster.create_topic(EACH, BROKERS, 1)
            yield cluster


@contextmanager
def few_files(cluster: Cluster) -> Iterator[None]:
    pid = cluster.pids[1]
    open_now = len(os.listdir(f"/proc/{pid}/fd"))
    limit = 2 * open_now + 100
    with ExitStack() as undo:
        before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (limit, before[1]))
        undo.callback(resource.prlimit, pid, resource.RLIMIT_NOFILE, before)
        for _ in range(int(USED * limit) - open_now):
            undo.enter_context(socket.create_connection(_address(cluster, 1), LIMIT_S))
        yield


@contextmanager
def busy(cluster: Cluster) -> Iterator[None]:
    over = threading.Event()
    clients = [threading.Thread(target=_ask_again, args=(_address(cluster, 1), over)) for _ in range(CLIENTS)]
    for client in clients:
        client.start()
    try:
        yield
    finally:
        over.set()
        for client in clients:
            client.join()


def _ask_again(address: tuple[str, int], over: threading.Event) -> None:
    parts = encode_request(RequestHeader(ApiVersionsRequest.API_KEY, 0, 0, "busy"), ApiVersionsRequest())
    request = b"".join(bytes(part) for part in parts)  # type: ignore[arg-type]
    with socket.create_connection(address, LIMIT_S) as connection, connection.makefile("rb") as answers:
        while not over.is_set():
            connection.sendall(REQUESTS * request)
            for _ in range(REQUESTS):
                answers.read(int.from_bytes(answers.read(4), "big"))


@contextmanager
def markers_wait(cluster: Cluster) -> Iterator[None]:
    producer = _in_transaction(cluster, "decided")
    partition, broker = _led_by_another(cluster, cluster.leader(TRANSACTIONS))
    _write(producer, EACH, partition, b"decided")
    cluster.kill(broker)
    producer.commit_transaction(LIMIT_S)
    yield
    cluster.start(broker)


@contextmanager
def late_transaction(cluster: Cluster) -> Iterator[None]:
    producer = _in_transaction(cluster, "late")
    coordinator = cluster.leader(TRANSACTIONS)
    partition, _ = _led_by_another(cluster, coordinator)
    # the leader compares the record's time with its clock: this one was written that long ago
    allowed_ms = CONFIG["transaction.max.timeout.ms"] + LATE_TRANSACTION_BUFFER_MS
    _write(producer, EACH, partition, b"late", timestamp=int(time.time() * 1000) - allowed_ms - 1000)
    cluster.kill(coordinator)
    yield
    cluster.start(coordinator)
    cluster.wait_until_ready()
    producer.abort_transaction(LIMIT_S)


@contextmanager
def damaged_copy(cluster: Cluster) -> Iterator[None]:
    cluster.create_topic("copied", 1, 2)
    leader = cluster.leader("copied")
    (follower,) = (broker for broker in cluster.brokers if broker != leader and _logs(cluster, broker, "copied-0"))
    cluster.kill(follower)
    producer = _producer(cluster, acks=1)
    _write(producer, "copied", 0, b"whole")
    _write(producer, "copied", 0, b"newest")  # that one is sent from memory
    (log,) = _logs(cluster, leader, "copied-0")
    (path,) = log.glob("*.log")
    at = path.read_bytes().index(b"whole")
    _change(path, at, b"W")
    cluster.start(follower)
    cluster.wait_until_ready()
    yield
    _change(path, at, b"w")


def _change(path: Path, at: int, byte: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(byte)


@contextmanager
def full_disk(cluster: Cluster) -> Iterator[None]:
    cluster.create_topic("filled", 2 * BROKERS, 1)
    more = cluster.data / "broker-1" / MORE
    index = next(index for index in range(2 * BROKERS) if (more / f"filled-{index}").exists())
    pid = cluster.pids[1]
    _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (FULL_BYTES, hard))
    producer = _producer(cluster)
    for _ in range(2 * FULL_BYTES // len(BIG)):
        producer.produce("filled", BIG, partition=index)
    yield
    # it is back with the next start, with as much room as ever
    cluster.kill(1)
    cluster.start(1)
    assert producer.flush(LIMIT_S) == 0


CAUSES: Mapping[str, Callable[[Cluster], AbstractContextManager[None]]] = {
    "HeirlogFewFilesLeft": few_files,
    "HeirlogNodeBusy": busy,
    "HeirlogMarkersWait": markers_wait,
    "HeirlogLateTransactions": late_transaction,
    "HeirlogFollowersFailed": damaged_copy,
    "HeirlogDiskFailed": full_disk,
}


def _address(cluster: Cluster, broker: int) -> tuple[str, int]:
    host, _, port = cluster.bootstrap_servers.split(",")[broker - 1].rpartition(":")
    return host, int(port)


def _producer(cluster: Cluster, **config: Any) -> Producer:
    # what it logs of brokers that are down is no news here
    return Producer({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0, **config})


def _in_transaction(cluster: Cluster, name: str) -> Producer:
    producer = _producer(cluster, **{"transactional.id": name})
    producer.init_transactions(LIMIT_S)
    producer.begin_transaction()
    return producer


def _led_by_another(cluster: Cluster, broker: int) -> tuple[int, int]:
    """A partition and its leader."""
    leaders = {index: cluster.leader(EACH, index) for index in range(BROKERS)}
    return next((index, leader) for index, leader in leaders.items() if leader != broker)


def _write(producer: Producer, topic: str, partition: int, value: bytes, timestamp: int = 0) -> None:
    errors: list[object] = []
    producer.produce(
        topic, value, partition=partition, timestamp=timestamp, on_delivery=lambda error, _: errors.append(error)
    )
    assert producer.flush(LIMIT_S) == 0 and errors == [None], errors


def _logs(cluster: Cluster, broker: int, name: str) -> list[Path]:
    return list((cluster.data / f"broker-{broker}").glob(f"*/{name}"))
