"""What a quorum of three controllers needs for many partitions, of heirlog or of Apache Kafka, under the same client.

This process registers three brokers and sends their heartbeats, so that the figures are those of the controllers alone.
Each of the three brokers has a replica of every partition. One real broker has ten partitions of its own; it runs only
while its restart is measured.
"""

from __future__ import annotations

import contextlib
import statistics
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from benchmarks.apache_kafka import ApacheKafkaApart
from benchmarks.gauges import MIB, peak_memory_bytes
from heirlog.blocking import Client
from heirlog.local import layout as layouts
from heirlog.local.cluster import Cluster
from heirlog.local.ready import known_brokers, led_epoch
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import (
    AllocateProducerIdsRequest,
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    CreateTopicsRequest,
    DescribeClusterRequest,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
)
from heirlog.protocol.types import METADATA_TOPIC

PARTITIONS = 100_000
PER_TOPIC = 1_000
TOPICS_PER_REQUEST = 2
CLIENTS = 10
"""Of heirlog each waits 0.5 s longer for each answer than with real brokers: the played ones do not fetch what was
created."""
BROKERS = (11, 12, 13)
REAL_BROKER = 1
FEW = 10
"""Partitions of the real broker."""
CHANGES = 20
"""Small ones, one after the other."""
TIMEOUT_S = 120.0
POLL_S = 0.02
HEARTBEAT_S = 1.0
SESSION_S = 30.0
APPLIED_EVERYTHING = 2**40
SETTINGS = {
    "broker.session.timeout.ms": "30000",
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

    cluster_id: str

    @property
    def bootstrap_servers(self) -> str:
        """Of the real broker."""

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
    """Three controllers and a broker."""

    def __init__(self) -> None:
        self._cluster = Cluster(nodes=1, controllers=3, ledger=False, config=SETTINGS)
        self.cluster_id = ""
        self.addresses: dict[int, str] = {}

    def __enter__(self) -> HeirlogControllers:
        self._cluster.open()
        with Client(self._cluster.bootstrap_servers) as client:
            self.cluster_id = client.send_to_any(DescribeClusterRequest()).cluster_id
        layout = layouts.load(self._cluster.data)
        assert layout is not None
        self.addresses = {
            node.node_id: address for node in layout.nodes if (address := node.controller_address()) is not None
        }
        return self

    def __exit__(self, *_: object) -> None:
        self._cluster.close()

    @property
    def bootstrap_servers(self) -> str:
        return self._cluster.bootstrap_servers

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
    one_record_ms: float
    """To commit one record before that; a median."""
    one_more_record_ms: float
    """The same after it."""
    memory_mib: float
    """The most that the active controller used until then."""
    snapshot_mib: float
    elections: int
    """Of the quorum, while the topics were created: the goal is none."""
    standby_s: float
    """A killed standby, from its start until it has caught up."""
    broker_s: float
    """The real broker, from its start until it is unfenced and knows it."""
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
        self._beating: list[int] = []
        self._stopped_at = 0.0
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
                self._beating.append(broker)

    @contextlib.contextmanager
    def heartbeats(self) -> Iterator[None]:
        """Keeps the sessions of the registered brokers."""
        ended = threading.Event()

        def beat() -> None:
            while not ended.wait(HEARTBEAT_S):
                with contextlib.suppress(OSError, KafkaError), self.client() as client:
                    for broker in [*self._beating]:
                        self.heartbeat(client, broker)

        thread = threading.Thread(target=beat)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

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
        return int(self._described().high_watermark)

    def _described(self) -> DescribeQuorumResponse.PartitionData:
        nested = DescribeQuorumRequest
        asked = nested.TopicData(topic_name=METADATA_TOPIC, partitions=[nested.PartitionData(partition_index=0)])
        with self.client() as client:
            found: DescribeQuorumResponse.PartitionData = (
                client.send_to_any(nested(topics=[asked])).topics[0].partitions[0]
            )
        return found

    def create(self, partitions: int) -> None:
        names = [f"many-{number}" for number in range(partitions // PER_TOPIC)]
        requests = [names[at : at + TOPICS_PER_REQUEST] for at in range(0, len(names), TOPICS_PER_REQUEST)]
        with ThreadPoolExecutor(CLIENTS) as clients:
            for _ in clients.map(self._create_repeatedly, requests):
                pass

    def _create_repeatedly(self, names: list[str]) -> None:
        while (codes := self._create(names)) & {ErrorCode.NOT_CONTROLLER, ErrorCode.REQUEST_TIMED_OUT}:
            self.answers_again()
        if codes - {ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS}:
            raise RuntimeError(f"topics were not created: {codes}")

    def _create(self, names: list[str]) -> set[ErrorCode]:
        topics = [
            CreateTopicsRequest.CreatableTopic(name=name, num_partitions=PER_TOPIC, replication_factor=3)
            for name in names
        ]
        request = CreateTopicsRequest(topics=topics, timeout_ms=int(1_000 * TIMEOUT_S))
        with self.client() as client:
            return {ErrorCode(topic.error_code) for topic in client.send_to_any(request).topics}

    def create_few(self) -> None:
        """The partitions of the real broker, which stops then."""
        topic = CreateTopicsRequest.CreatableTopic(name="few", num_partitions=FEW, replication_factor=1)
        with Client(self._controllers.bootstrap_servers, timeout_s=TIMEOUT_S) as client:
            client.send_to_any(CreateTopicsRequest(topics=[topic], timeout_ms=int(1_000 * TIMEOUT_S)))
        self._controllers.stop(REAL_BROKER)
        self._stopped_at = time.monotonic()

    def one_record_ms(self) -> float:
        """The median of some requests that change the metadata by one record."""
        waits = []
        request = AllocateProducerIdsRequest(broker_id=BROKERS[1], broker_epoch=self._epochs[BROKERS[1]])
        with self.client() as client:
            for _ in range(CHANGES):
                began = time.monotonic()
                if code := client.send_to_any(request).error_code:
                    raise RuntimeError(f"no producer ids were allocated: {code}")
                waits.append(1_000 * (time.monotonic() - began))
        return statistics.median(waits)

    def restart_standby(self) -> float:
        standby = next(node for node in self._controllers.addresses if node != self.active)
        self._controllers.kill(standby)
        began, began_ms = time.monotonic(), int(1_000 * time.time())
        self._controllers.start(standby)
        while self._caught_up_ms(standby) < began_ms:
            if time.monotonic() - began > TIMEOUT_S:
                raise RuntimeError(f"controller {standby} did not catch up")
            time.sleep(POLL_S)
        return time.monotonic() - began

    def _caught_up_ms(self, controller: int) -> int:
        voters = {voter.replica_id: voter for voter in self._described().current_voters}
        return int(voters[controller].last_caught_up_timestamp)

    def restart_broker(self) -> float:
        # Apache Kafka keeps the session of a broker that has stopped, and refuses the next process until it ends
        time.sleep(max(0.0, self._stopped_at + SESSION_S - time.monotonic()))
        began = time.monotonic()
        self._controllers.start(REAL_BROKER)
        while REAL_BROKER not in known_brokers(self._controllers.bootstrap_servers):
            if time.monotonic() - began > TIMEOUT_S:
                raise RuntimeError("the broker was not unfenced")
            time.sleep(POLL_S)
        seconds = time.monotonic() - began
        # a clean stop would wait for what the played brokers have applied
        self._controllers.kill(REAL_BROKER)
        return seconds

    def fence(self) -> None:
        self._beating.remove(BROKERS[0])
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
    quorum.create_few()
    with quorum.heartbeats():
        quorum.register()
        return _measured(controllers, quorum, partitions)


def _measured(controllers: Controllers, quorum: Quorum, partitions: int) -> Figures:
    one_record_ms = quorum.one_record_ms()
    waits: list[float] = []
    before, epoch = quorum.end_offset(), quorum.epoch()
    with quorum.longest_wait(waits):
        create_s = _seconds(lambda: quorum.create(partitions))
        time.sleep(5.0)  # the last snapshot is written in the background
    created, elections = quorum.end_offset(), quorum.epoch() - epoch
    memory_mib = peak_memory_bytes(controllers.pids[quorum.active]) / MIB
    snapshot_mib = max((path.stat().st_size for path in controllers.data.rglob("*.checkpoint")), default=0) / MIB
    one_more_record_ms = quorum.one_record_ms()
    standby_s = quorum.restart_standby()
    broker_s = quorum.restart_broker()
    unfenced = quorum.end_offset()
    fence_s = _seconds(quorum.fence)
    fence_records = quorum.end_offset() - unfenced
    controllers.kill(quorum.active)
    fail_over_s = _seconds(quorum.answers_again)
    for node in controllers.addresses:
        controllers.kill(node)
    for node in controllers.addresses:
        controllers.start(node)
    restart_s = _seconds(quorum.answers_again)
    return Figures(
        partitions=partitions,
        create_s=create_s,
        records=created - before,
        longest_wait_s=max(waits),
        one_record_ms=one_record_ms,
        one_more_record_ms=one_more_record_ms,
        memory_mib=memory_mib,
        snapshot_mib=snapshot_mib,
        elections=elections,
        standby_s=standby_s,
        broker_s=broker_s,
        fence_s=fence_s,
        fence_records=fence_records,
        fail_over_s=fail_over_s,
        restart_s=restart_s,
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
    with ApacheKafkaApart(jars, 1, settings) as controllers:
        return measured(controllers, partitions)


class Title(NamedTuple):
    text: str
    unit: str
    form: str
    field: str
    most: float | None
    """Goal of heirlog's figure divided by Apache Kafka's; None: a count, which is not compared."""


TITLES = (
    Title("create all", "s", "{:.1f}", "create_s", 1.0),
    Title("records of that", "", "{:,}", "records", None),
    Title("longest wait of a heartbeat meanwhile", "s", "{:.2f}", "longest_wait_s", 1.0),
    Title("elections meanwhile", "", "{}", "elections", None),
    Title("memory of the active controller, peak", "MiB", "{:.0f}", "memory_mib", 1 / 2),
    Title("snapshot", "MiB", "{:.1f}", "snapshot_mib", None),
    Title("commit one record, before", "ms", "{:.1f}", "one_record_ms", 1.0),
    Title("commit one record, after", "ms", "{:.1f}", "one_more_record_ms", 1.0),
    Title("restart a standby controller", "s", "{:.2f}", "standby_s", 1.0),
    Title(f"restart a broker with {FEW} partitions", "s", "{:.2f}", "broker_s", 1.0),
    Title("fence one broker", "s", "{:.2f}", "fence_s", 1.0),
    Title("records of that", "", "{:,}", "fence_records", None),
    Title("fail over", "s", "{:.2f}", "fail_over_s", 1.0),
    Title("restart all controllers", "s", "{:.2f}", "restart_s", 1.0),
)


def report(scale: float) -> None:
    """heirlog alone."""
    found = of_heirlog(int(PARTITIONS * scale))
    print(f"\n| three controllers, {found.partitions:,} partitions of three replicas | |\n|---|---|")
    for title in TITLES:
        print(f"| {title.text} | {cell(title, found)} |", flush=True)


def cell(title: Title, figures: Figures) -> str:
    return f"{title.form.format(getattr(figures, title.field))} {title.unit}".strip()
