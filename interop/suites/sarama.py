"""sarama's functional tests, with five brokers behind toxiproxy. Versions are in sarama/go.mod, checksums in go.sum.

The tests steer toxiproxy themselves: they cut brokers off and reset connections. Those that want more than that, a
broker of docker's to stop or a Java client in its container, skip themselves here. The five brokers and their
controller, of heirlog or of Apache Kafka, are started from the same files; clients are told of the proxies, brokers
reach each other directly.
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import jars
from apache_kafka import started

from heirlog.local.errors import LocalError
from heirlog.local.layout import HOST
from heirlog.local.ports import PortReservation
from heirlog.testing import Cluster, apache_kafka
from suites import golang
from suites.golang import Suite
from suites.verdict import Outcomes

CLIENT = "sarama"
BROKERS = range(1, 6)
CONTROLLER = 100
TOXIPROXY = "github.com/Shopify/toxiproxy/v2"
SARAMA = Suite(
    "github.com/IBM/sarama",
    ".",
    "",
    # what reads a log or stops a broker by docker; quotas; one that waits for a minute on the client's timers
    "TestFuncTxnProduceWithBrokerFailure|TestFuncIdempotentBufferedSequence|TestConsumerFetchFollowerFailover"
    "|TestFuncAdminListConsumerGroupOffsets$|TestFuncAdminQuotas|TestFuncTxnProduceAndCommitOffset",
    modules="sarama",
    tags="functional",
    timeout_s=600,
)
CONFIG = {
    "default.replication.factor": 2,
    "offsets.topic.replication.factor": 2,
    "offsets.topic.num.partitions": 10,
    "transaction.state.log.replication.factor": 2,
    "transaction.state.log.num.partitions": 2,
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": 0,
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "INTERNAL",
    "listener.security.protocol.map": "INTERNAL:PLAINTEXT,LOCAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
}


@dataclass(frozen=True, slots=True)
class Ports:
    first: int
    """Of the five proxies."""
    api: int
    """Toxiproxy's."""

    def proxy(self, broker: int) -> int:
        return self.first + broker - BROKERS[0]


def check() -> str:
    """For `make interop`. Raises AssertionError with every test that is not as it should be."""
    golang.fetch(SARAMA)
    with five_of_heirlog() as ports:
        return golang.together([golang.judge(CLIENT, SARAMA, lambda names: run(ports, names))])


def record(node: Callable[[], AbstractContextManager[str]]) -> dict[str, Outcomes]:
    """For `record.py`, whose single node is not what these tests want."""
    golang.fetch(SARAMA)
    with five_of_kafka() as ports:
        outcomes = dict(run(ports))
        for _ in range(golang.RERUNS):
            failed = [name for name, outcome in outcomes.items() if outcome == "failed"]
            if failed:
                outcomes.update(run(ports, failed))
        return {SARAMA.name: outcomes}


def run(ports: Ports, names: Sequence[str] = ()) -> Outcomes:
    golang.fetch(SARAMA)
    environment = SARAMA.home / "functional_test.go"
    text = environment.read_text()
    assert "29090+i" in text, "sarama's tests find their brokers otherwise than they did"
    environment.write_text(text.replace("29090+i", f"{ports.first - 1}+i"))
    sources = [path.read_text() for path in sorted(SARAMA.home.glob("functional_*_test.go"))]
    functions = [name for source in sources for name in re.findall(r"^func (Test\w+)", source, re.M)]
    suite = replace(SARAMA, run=f"^({'|'.join(functions)})$")
    received = {"TOXIPROXY_ADDR": f"http://{HOST}:{ports.api}", "KAFKA_VERSION": "4.2.0"}
    return golang.run(suite, golang.compiled(SARAMA), names, received)


@contextmanager
def toxiproxy(ports: Ports, upstreams: Sequence[str]) -> Iterator[None]:
    """One proxy for each broker, under the names that the tests look for."""
    program = SARAMA.build / "toxiproxy"
    jars.retried(["go", "build", "-o", str(program), f"{TOXIPROXY}/cmd/server"], cwd=SARAMA.build)
    proxies = [
        {"name": f"kafka{broker}", "listen": f"{HOST}:{ports.proxy(broker)}", "upstream": upstream, "enabled": True}
        for broker, upstream in zip(BROKERS, upstreams, strict=True)
    ]
    settings = SARAMA.build / "proxies.json"
    settings.write_text(json.dumps(proxies))
    command = [str(program), "-host", HOST, "-port", str(ports.api), "-config", str(settings)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.kill()


@contextmanager
def five_of_heirlog() -> Iterator[Ports]:
    with tempfile.TemporaryDirectory(prefix="heirlog-sarama-") as directory:
        ports = free_ports()
        upstreams = write_properties(Path(directory), ports)
        with Cluster(data=directory, ledger=False), toxiproxy(ports, upstreams):
            yield ports


@contextmanager
def five_of_kafka() -> Iterator[Ports]:
    """Raises jars.Missing."""
    jars.fetch()
    with tempfile.TemporaryDirectory(prefix="kafka-sarama-") as directory, ExitStack() as stack:
        ports = free_ports()
        upstreams = write_properties(Path(directory), ports)
        homes = [Path(directory) / f"controller-{CONTROLLER}", *(Path(directory) / f"broker-{id}" for id in BROKERS)]
        nodes = [stack.enter_context(started(home, jvm=["-Xmx256m"])) for home in homes]
        for node, address in zip(nodes[1:], upstreams, strict=True):
            node.wait_until_it_knows(BROKERS, address)
        stack.enter_context(toxiproxy(ports, upstreams))
        yield ports


def write_properties(data: Path, ports: Ports) -> list[str]:
    """Where `Cluster` looks for its nodes. Returns the brokers' addresses behind the proxies."""
    reserved = PortReservation()
    inside = [reserved.reserve() for _ in BROKERS]
    behind = [reserved.reserve() for _ in BROKERS]
    controller = f"{HOST}:{reserved.reserve()}"
    reserved.release()
    for broker, internal, local in zip(BROKERS, inside, behind, strict=True):
        write(
            data / f"broker-{broker}",
            {
                "process.roles": "broker",
                "node.id": broker,
                "broker.rack": broker,
                "listeners": f"INTERNAL://{HOST}:{internal},LOCAL://{HOST}:{local}",
                "advertised.listeners": f"INTERNAL://{HOST}:{internal},LOCAL://{HOST}:{ports.proxy(broker)}",
                "controller.quorum.voters": f"{CONTROLLER}@{controller}",
            },
        )
    write(
        data / f"controller-{CONTROLLER}",
        {
            "process.roles": "controller",
            "node.id": CONTROLLER,
            "listeners": f"CONTROLLER://{controller}",
            "controller.quorum.voters": f"{CONTROLLER}@{controller}",
        },
    )
    return [f"{HOST}:{port}" for port in behind]


def write(home: Path, own: dict[str, object]) -> None:
    apache_kafka.write_properties(home, {**own, "log.dirs": home / "log", **CONFIG})


def free_ports() -> Ports:
    """The proxies need five in a row."""
    for first in range(29_091, 32_000, 5):
        try:
            held = PortReservation()
            for port in range(first, first + len(BROKERS)):
                held.reserve(port)
            return Ports(first, held.reserve())
        except LocalError:
            continue
        finally:
            held.release()
    raise RuntimeError("there are no five free ports in a row")
