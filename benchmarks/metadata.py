"""What a quorum of three controllers needs for many partitions, of heirlog or of Apache Kafka, under the same client.

No broker runs: this process registers three brokers and sends their heartbeats, so that the figures are those of the
controllers alone. Each of the three brokers has a replica of every partition.

python -m benchmarks.metadata [--jars DIR] [--partitions N]
"""

from __future__ import annotations

import argparse
import contextlib
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from benchmarks.apache_kafka import ApacheKafkaControllers
from benchmarks.gauges import MIB, Cost
from heirlog.blocking import Client
from heirlog.local import layout as layouts
from heirlog.local.cluster import Cluster
from heirlog.local.ready import led_epoch
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import (
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    CreateTopicsRequest,
    DescribeClusterRequest,
    DescribeQuorumRequest,
)
from heirlog.protocol.types import METADATA_TOPIC

PARTITIONS = 100_000
PER_TOPIC = 1_000
TOPICS_PER_REQUEST = 2
BROKERS = (11, 12, 13)
TIMEOUT_S = 120.0
POLL_S = 0.02
APPLIED_EVERYTHING = 2**40
SETTINGS = {
    "broker.session.timeout.ms": "600000",
    "heirlog.broker.disconnect.grace.ms": "-1",
    # one snapshot or two while the topics are created
    "metadata.log.max.record.bytes.between.snapshots": "5000000",
}
FEATURES = {
    "metadata.version": (7, 29),
    "kraft.version": (0, 1),
    "eligible.leader.replicas.version": (0, 1),
    "group.version": (0, 1),
    "transaction.version": (0, 2),
    "share.version": (0, 1),
    "streams.version": (0, 1),
}


class Controllers(Protocol):
    """Processes of controllers, and where each listens."""

    @property
    def cluster_id(self) -> str: ...

    @property
    def addresses(self) -> Mapping[int, str]: ...

    @property
    def pids(self) -> Mapping[int, int]: ...

    @property
    def data(self) -> Path: ...

    def start(self, node: int) -> None: ...

    def stop(self, node: int) -> None: ...

    def kill(self, node: int) -> None: ...


class HeirlogControllers:
    """Three controllers; the one broker of their cluster is stopped."""

    def __init__(self) -> None:
        self._cluster = Cluster(nodes=1, controllers=3, ledger=False, config=SETTINGS)

    def __enter__(self) -> HeirlogControllers:
        self._cluster.open()
        with Client(self._cluster.bootstrap_servers) as client:
            self.cluster_id = client.send_to_any(DescribeClusterRequest()).cluster_id
        self._cluster.stop(1)
        layout = layouts.load(self._cluster.data)
        assert layout is not None
        self.addresses = {
            node.node_id: address for node in layout.nodes if (address := node.controller_address()) is not None
        }
        return self

    def __exit__(self, *_: object) -> None:
        self._cluster.close()

    @property
    def pids(self) -> Mapping[int, int]:
        return self._cluster.pids

    @property
    def data(self) -> Path:
        return self._cluster.data

    def start(self, node: int) -> None:
        self._cluster.start(node)

    def stop(self, node: int) -> None:
        self._cluster.stop(node)

    def kill(self, node: int) -> None:
        self._cluster.kill(node)


class Figures(NamedTuple):
    partitions: int
    create_s: float
    records: int
    """In the metadata log, for the topics."""
    longest_wait_s: float
    """Of a heartbeat while the topics were created and snapshots written."""
    memory_mib: float
    """Of the active controller after that."""
    snapshot_mib: float
    elections: int
    """Of the quorum, while the topics were created: the goal is none."""
    fence_s: float
    fence_records: int
    fail_over_s: float
    restart_s: float
    """All three controllers, until one answers a heartbeat."""


class Quorum:
    """The client: finds the active controller, and plays the brokers."""

    def __init__(self, controllers: Controllers) -> None:
        self._controllers = controllers
        self._epochs: dict[int, int] = {}
        self.active = self._find_active()

    def _find_active(self) -> int:
        deadline = time.monotonic() + TIMEOUT_S
        while time.monotonic() < deadline:
            known = self._controllers.addresses
            led = {node: led_epoch(known[node]) for node in known if node in self._controllers.pids}
            epochs = {epoch: node for node, epoch in led.items() if epoch is not None}
            if epochs:
                return epochs[max(epochs)]
            time.sleep(POLL_S)
        raise RuntimeError("no controller leads")

    def client(self) -> Client:
        return Client(self._controllers.addresses[self.active], timeout_s=TIMEOUT_S)

    def register(self) -> None:
        nested = BrokerRegistrationRequest
        with self.client() as client:
            for broker in BROKERS:
                answer = client.send_to_any(
                    nested(
                        broker_id=broker,
                        cluster_id=self._controllers.cluster_id,
                        incarnation_id=uuid.uuid4().bytes,
                        listeners=[nested.Listener(name="PLAINTEXT", host="127.0.0.1", port=broker)],
                        features=[
                            nested.Feature(name=name, min_supported_version=low, max_supported_version=high)
                            for name, (low, high) in FEATURES.items()
                        ],
                        log_dirs=[uuid.uuid4().bytes],
                        previous_broker_epoch=-1,
                    )
                )
                if answer.error_code:
                    raise RuntimeError(f"broker {broker} was refused: {answer}")
                self._epochs[broker] = answer.broker_epoch
                while self.heartbeat(client, broker).is_fenced:
                    time.sleep(POLL_S)

    def heartbeat(self, client: Client, broker: int, *, want_fence: bool = False) -> Any:
        answer = client.send_to_any(
            BrokerHeartbeatRequest(
                broker_id=broker,
                broker_epoch=self._epochs[broker],
                current_metadata_offset=APPLIED_EVERYTHING,
                want_fence=want_fence,
            )
        )
        if answer.error_code:
            raise KafkaError(ErrorCode(answer.error_code), "a heartbeat was refused")
        return answer

    def epoch(self) -> int:
        return led_epoch(self._controllers.addresses[self.active]) or 0

    def end_offset(self) -> int:
        nested = DescribeQuorumRequest
        asked = nested.TopicData(topic_name=METADATA_TOPIC, partitions=[nested.PartitionData(partition_index=0)])
        with self.client() as client:
            found = client.send_to_any(nested(topics=[asked])).topics[0].partitions[0]
        return int(found.high_watermark)

    def create(self, partitions: int) -> None:
        names = [f"many-{number}" for number in range(partitions // PER_TOPIC)]
        at = 0
        while at < len(names):
            codes = self._create(names[at : at + TOPICS_PER_REQUEST])
            if codes & {ErrorCode.NOT_CONTROLLER, ErrorCode.REQUEST_TIMED_OUT}:
                self.answers_again()
                continue
            if codes - {ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS}:
                raise RuntimeError(f"topics were not created: {codes}")
            at += TOPICS_PER_REQUEST

    def _create(self, names: list[str]) -> set[ErrorCode]:
        topics = [
            CreateTopicsRequest.CreatableTopic(name=name, num_partitions=PER_TOPIC, replication_factor=3)
            for name in names
        ]
        request = CreateTopicsRequest(topics=topics, timeout_ms=int(1_000 * TIMEOUT_S))
        with self.client() as client:
            return {ErrorCode(topic.error_code) for topic in client.send_to_any(request).topics}

    def fence(self) -> None:
        with self.client() as client:
            if not self.heartbeat(client, BROKERS[0], want_fence=True).is_fenced:
                raise RuntimeError("the broker was not fenced")

    def answers_again(self) -> None:
        """Until an active controller answers a heartbeat."""
        deadline = time.monotonic() + TIMEOUT_S
        while time.monotonic() < deadline:
            for node, address in self._controllers.addresses.items():
                if node not in self._controllers.pids:
                    continue
                with contextlib.suppress(OSError, KafkaError), Client(address, timeout_s=10.0) as client:
                    self.heartbeat(client, BROKERS[1])
                    self.active = node
                    return
            time.sleep(POLL_S)
        raise RuntimeError("no controller answers a heartbeat")

    @contextlib.contextmanager
    def longest_wait(self, found: list[float]) -> Iterator[None]:
        """Appends the longest time in s that a heartbeat had to wait."""
        ended = threading.Event()

        def beat() -> None:
            longest = 0.0
            while not ended.wait(POLL_S):
                began = time.monotonic()
                with contextlib.suppress(OSError, KafkaError), self.client() as client:
                    self.heartbeat(client, BROKERS[1])
                longest = max(longest, time.monotonic() - began)
            found.append(longest)

        thread = threading.Thread(target=beat)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


def measured(controllers: Controllers, partitions: int) -> Figures:
    quorum = Quorum(controllers)
    quorum.register()
    waits: list[float] = []
    before, epoch = quorum.end_offset(), quorum.epoch()
    with quorum.longest_wait(waits):
        create_s = _seconds(lambda: quorum.create(partitions))
        time.sleep(5.0)  # the last snapshot is written in the background
    created, elections = quorum.end_offset(), quorum.epoch() - epoch
    memory_mib = Cost.of([controllers.pids[quorum.active]]).memory_bytes / MIB
    snapshot_mib = max((path.stat().st_size for path in controllers.data.rglob("*.checkpoint")), default=0) / MIB
    fence_s = _seconds(quorum.fence)
    fenced = quorum.end_offset()
    controllers.kill(quorum.active)
    fail_over_s = _seconds(quorum.answers_again)
    for node in controllers.addresses:
        controllers.kill(node)
    for node in controllers.addresses:
        controllers.start(node)
    restart_s = _seconds(quorum.answers_again)
    return Figures(
        partitions,
        create_s,
        created - before,
        max(waits),
        memory_mib,
        snapshot_mib,
        elections,
        fence_s,
        fenced - created,
        fail_over_s,
        restart_s,
    )


def _seconds(what: Callable[[], object]) -> float:
    began = time.monotonic()
    what()
    return time.monotonic() - began


def of_heirlog(partitions: int) -> Figures:
    with HeirlogControllers() as controllers:
        return measured(controllers, partitions)


def of_apache_kafka(jars: Path, partitions: int) -> Figures:
    settings = {name: value for name, value in SETTINGS.items() if not name.startswith("heirlog.")}
    with ApacheKafkaControllers(jars, settings) as controllers:
        return measured(controllers, partitions)


TITLES = (
    ("partitions", "{:,}", "partitions"),
    ("create, s", "{:.1f}", "create_s"),
    ("records", "{:,}", "records"),
    ("longest wait of a heartbeat meanwhile, s", "{:.2f}", "longest_wait_s"),
    ("memory, MiB", "{:.0f}", "memory_mib"),
    ("snapshot, MiB", "{:.1f}", "snapshot_mib"),
    ("elections meanwhile", "{}", "elections"),
    ("fence one broker, s", "{:.2f}", "fence_s"),
    ("records of that", "{:,}", "fence_records"),
    ("fail over, s", "{:.2f}", "fail_over_s"),
    ("restart of all, s", "{:.2f}", "restart_s"),
)


def titles() -> None:
    print(f"\n| three controllers | {' | '.join(title for title, _, _ in TITLES)} |")
    print(f"|---|{'---|' * len(TITLES)}", flush=True)


def row(name: str, figures: Figures) -> None:
    cells = [form.format(getattr(figures, field)) for _, form, field in TITLES]
    print(f"| {name} | {' | '.join(cells)} |", flush=True)


def report(scale: float) -> None:
    titles()
    row("heirlog", of_heirlog(int(PARTITIONS * scale)))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.metadata", description=__doc__)
    parser.add_argument("--jars", type=Path, help="the directory of Apache Kafka's jars, to measure that too")
    parser.add_argument("--partitions", type=int, default=PARTITIONS)
    options = parser.parse_args()
    print(f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}")
    titles()
    row("heirlog", of_heirlog(options.partitions))
    if options.jars is not None:
        row("Apache Kafka", of_apache_kafka(options.jars, options.partitions))


if __name__ == "__main__":
    main()
