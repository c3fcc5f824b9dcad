"""What TLS costs: one broker of each kind, whose listeners PLAINTEXT and SSL take the same loads from librdkafka.

CPU is that of the broker. Both use the same key (P-256), and the cipher that they agree on with the client.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import load, page_cache
from benchmarks.gauges import Nodes
from heirlog.local.certificates import Authority
from heirlog.local.layout import HOST
from heirlog.local.secure import write_private
from heirlog.testing import Cluster
from heirlog.testing.apache_kafka import ApacheKafkaNode, free_ports, write_properties

NODE = 1
VALUE_BYTES, BATCH_BYTES = 1_024, 65_536
PROTOCOLS = ("PLAINTEXT", "SSL")
WORK = ("produce", "consume")
Costs = dict[tuple[str, str], float]
"""CPU seconds for a gigabyte, by work and protocol."""


@dataclass
class OneKafka:
    """One node of Apache Kafka with the face of `Cluster`."""

    data: Path
    bootstrap_servers: str
    node: ApacheKafkaNode

    @property
    def brokers(self) -> Sequence[int]:
        return [NODE]

    @property
    def pids(self) -> Mapping[int, int]:
        pid = self.node.pid
        return {} if pid is None else {NODE: pid}

    def start(self, node: int) -> None:
        self.node.start()

    def stop(self, node: int) -> None:
        self.node.stop()

    def kill(self, node: int) -> None:
        self.node.kill()

    def wait_until_ready(self) -> None:
        self.node.wait_until_it_knows([NODE], self.bootstrap_servers)


@contextmanager
def folder() -> Iterator[tuple[Path, dict[str, str]]]:
    """Of a node that is not formatted; and where each listener is."""
    with tempfile.TemporaryDirectory(prefix="encrypted-") as name:
        data = Path(name)
        home = data / f"broker-{NODE}"
        home.mkdir()
        authority = Authority.new()
        (data / "ca.pem").write_text(authority.certificate_pem)
        write_private(data / "node.pem", authority.issue("node", [HOST]))
        ports = dict(zip((*PROTOCOLS, "CONTROLLER"), free_ports(3), strict=True))
        places = {protocol: f"{HOST}:{ports[protocol]}" for protocol in ports}
        properties = {
            "process.roles": "broker,controller",
            "node.id": NODE,
            "controller.quorum.voters": f"{NODE}@{places['CONTROLLER']}",
            "listeners": ",".join(f"{listener}://{place}" for listener, place in places.items()),
            "advertised.listeners": ",".join(f"{protocol}://{places[protocol]}" for protocol in PROTOCOLS),
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SSL:SSL,CONTROLLER:PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": data / "node.pem",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": data / "ca.pem",
            "log.dirs": home / "data",
            "offsets.topic.replication.factor": 1,
            "offsets.topic.num.partitions": 1,
        }
        write_properties(home, properties)
        yield data, places


@contextmanager
def heirlog_node() -> Iterator[Callable[[int, int], Costs]]:
    with folder() as (data, places), Cluster(data=data, ledger=False) as running:
        yield lambda records, number: costs(running, places, records, number)


@contextmanager
def kafka_node(jars: Path, jvm: Sequence[str]) -> Iterator[Callable[[int, int], Costs]]:
    with folder() as (data, places):
        node = ApacheKafkaNode(data / f"broker-{NODE}", jars, jvm)
        node.format()
        with node:
            running = OneKafka(data, places["PLAINTEXT"], node)
            running.wait_until_ready()
            yield lambda records, number: costs(running, places, records, number)


def costs(nodes: Nodes, places: Mapping[str, str], records: int, number: int) -> Costs:
    found: Costs = {}
    for protocol in PROTOCOLS:
        client: dict[str, str] = {"bootstrap.servers": places[protocol], "security.protocol": protocol}
        if protocol == "SSL":
            client["ssl.ca.location"] = str(nodes.data / "ca.pem")
        topic = f"encrypted-{protocol}-{number}"
        load.create(nodes, topic, 1)
        page_cache.fill()
        made = load.produce(
            nodes, topic, acks="1", records=records, value_bytes=VALUE_BYTES, batch_bytes=BATCH_BYTES, client=client
        )
        if not number:
            load.meet_consumers(nodes, topic)
        read = load.consume(nodes, topic, records=records, value_bytes=VALUE_BYTES, client=client)
        found["produce", protocol] = made.cpu_s_per_gb
        found["consume", protocol] = read.cpu_s_per_gb
    return found


def measure(
    jars: Path, jvm: Sequence[str], records: int, rounds: int, warm_ups: int
) -> list[tuple[str, str, list[tuple[float, float]]]]:
    """For each work and protocol, both costs of each round. warm_ups: of the JVM, which are not counted."""
    with ExitStack() as held:
        ours, theirs = held.enter_context(heirlog_node()), held.enter_context(kafka_node(jars, jvm))
        for number in range(warm_ups):
            theirs(records, number)
        runs = [(ours(records, n), theirs(records, n + warm_ups)) for n in range(rounds)]
    return [
        (work, protocol, [(a[work, protocol], b[work, protocol]) for a, b in runs])
        for protocol in PROTOCOLS
        for work in WORK
    ]
