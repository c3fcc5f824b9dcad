"""What Prometheus reads of heirlog beside what it reads of Apache Kafka 4.2 through the JMX exporter.

Both get the same records and the same consumer; then both are scraped. Apache Kafka must show the names, types and
labels of tests/server/metrics/apache-kafka-4.2.0.txt, which `make test` compares heirlog with; and of every name that
both show, the type is the same, heirlog's labels are labels of Kafka's, and the topic got as many records.

After a change of the rules or of Kafka, `python interop/exported.py --write` writes the list anew.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import jars
import jmx_rules
from apache_kafka import PATIENCE_S, on_one_node, started
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from prometheus_client.parser import text_string_to_metric_families

from heirlog.testing import Cluster
from heirlog.testing.apache_kafka import free_ports, write_properties

STORED = jars.HERE.parent / "tests" / "server" / "metrics" / "apache-kafka-4.2.0.txt"
AGENT = "io.prometheus.jmx:jmx_prometheus_javaagent:1.0.1"
AGENT_SHA256 = "7d61f737fd661610ccc14aea79764faa1ea94a340cbc8f0029b3d2edea3d80c1"
CACHE = jars.CACHE / "agent"
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
TOPIC = "words"
RECORDS = 100
LISTENERS = ("PLAIN", "CONTROLLER", "METRICS")
NAMELESS = "_objectname"
"""The exporter's label for values whose names fall together under these rules."""

Shape = dict[str, tuple[str, set[str]]]
"""By name: type, and the sets of label names it comes with, each joined by commas (`-` for none)."""


def check() -> str:
    with apache_kafka() as (servers, url):
        drive(servers)
        kafka = scraped(url)
    with Cluster(nodes=1, combined=True, config={"heirlog.metrics.listener": "127.0.0.1:0"}, ledger=False) as cluster:
        drive(cluster.bootstrap_servers)
        heirlog = scraped(address_of(cluster))
    shape, ours = shape_of(kafka), shape_of(heirlog)
    wrong = [f"stored, and not so now: {line}" for line in lines(stored()) - lines(shape)]
    wrong += [f"so now, and not stored: {line}" for line in lines(shape) - lines(stored())]
    both = sorted(shape.keys() & ours.keys())
    wrong += [
        f"{name}: {ours[name]}, Apache Kafka's {shape[name]}" for name in both if not fits(ours[name], shape[name])
    ]
    records = f'kafka_server_brokertopicmetrics_messagesin_total{{topic="{TOPIC}"'
    if value_of(kafka, records) != value_of(heirlog, records):
        wrong.append(f"{records}: {value_of(heirlog, records)}, Apache Kafka's {value_of(kafka, records)}")
    if wrong:
        raise AssertionError("\n".join(sorted(wrong)))
    return f"{len(both)} of Kafka's {len(shape)} names, with its types and labels"


def fits(ours: tuple[str, set[str]], kafka: tuple[str, set[str]]) -> bool:
    return ours[0] == kafka[0] and ours[1] <= kafka[1]


def drive(servers: str) -> None:
    """The same for both: records in one batch, and a consumer that commits."""
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(TOPIC, 2, 1)])[TOPIC].result()
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 500})
    for number in range(RECORDS):
        producer.produce(TOPIC, f"word {number}", partition=0)
    producer.flush()
    reading = {"group.id": "g", "auto.offset.reset": "earliest", "enable.auto.commit": False}
    consumer = Consumer({"bootstrap.servers": servers, **reading})
    consumer.subscribe([TOPIC])
    deadline, seen = time.monotonic() + PATIENCE_S, 0
    while seen < RECORDS:
        if time.monotonic() > deadline:
            raise RuntimeError(f"{seen} of {RECORDS} records were read")
        message = consumer.poll(1.0)
        seen += message is not None and message.error() is None
    # a fetch that finds nothing ends by its time limit of half a second, and is counted
    consumer.poll(2.0)
    consumer.commit(asynchronous=False)
    consumer.close()


def scraped(url: str) -> str:
    with urlopen(url, timeout=PATIENCE_S) as answer:
        return str(answer.read().decode())


def shape_of(text: str) -> Shape:
    kinds = dict(line.split()[2:4] for line in text.splitlines() if line.startswith("# TYPE kafka_"))
    found: Shape = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name in kinds and NAMELESS not in sample.labels:
                labels = ",".join(sorted(sample.labels)) or "-"
                found.setdefault(sample.name, (kinds[sample.name], set()))[1].add(labels)
    return found


def lines(shape: Shape) -> set[str]:
    return {f"{name} {kind} {' '.join(sorted(labels))}" for name, (kind, labels) in shape.items()}


def stored() -> Shape:
    rows = [line.split() for line in STORED.read_text(encoding="utf-8").splitlines()]
    return {name: (kind, set(labels)) for name, kind, *labels in rows}


def value_of(text: str, beginning: str) -> str:
    return next((line.split()[-1] for line in text.splitlines() if line.startswith(beginning)), "nothing")


def address_of(cluster: Cluster) -> str:
    said = [json.loads(line) for line in cluster.output(1).splitlines() if '"metrics-listening"' in line]
    return f"http://{said[-1]['host']}:{said[-1]['port']}/metrics"


def agent() -> Path:
    """The exporter's jar. Raises jars.Missing; RuntimeError where a download fails or has other content."""
    jar = CACHE / f"{AGENT.split(':')[1]}-{AGENT.split(':')[2]}.jar"
    if not _is_right(jar):
        jars.need("mvn", install="Maven (on Debian: apt install maven)")
        shutil.rmtree(CACHE, ignore_errors=True)
        jars.retried(["mvn", "-B", "-q", COPY, f"-Dartifact={AGENT}", f"-DoutputDirectory={CACHE}"], cwd=jars.HERE)
    if not _is_right(jar):
        raise RuntimeError(f"{jar.name} is not the one that interop/exported.py names")
    return jar


def _is_right(jar: Path) -> bool:
    return jar.exists() and hashlib.sha256(jar.read_bytes()).hexdigest() == AGENT_SHA256


@contextmanager
def apache_kafka() -> Iterator[tuple[str, str]]:
    """One node with both roles: its bootstrap servers, and where the exporter is scraped. Raises jars.Missing."""
    exporter = agent()
    ports = dict(zip(LISTENERS, free_ports(len(LISTENERS)), strict=True))
    with tempfile.TemporaryDirectory(prefix="kafka-exported-") as name:
        directory, rules = Path(name), Path(name) / "rules.yml"
        write_properties(directory, _properties(ports, directory))
        rules.write_text(jmx_rules.rules())
        exporting = f"-javaagent:{exporter}=127.0.0.1:{ports['METRICS']}:{rules}"
        with started(directory, jvm=["-Xmx512m", exporting]) as node:
            servers = f"127.0.0.1:{ports['PLAIN']}"
            node.wait_until_it_knows({1}, servers)
            yield servers, f"http://127.0.0.1:{ports['METRICS']}/metrics"


def _properties(ports: dict[str, int], directory: Path) -> dict[str, object]:
    plain, controller = (f"127.0.0.1:{ports[name]}" for name in ("PLAIN", "CONTROLLER"))
    own = {"offsets.topic.num.partitions": 2, "group.initial.rebalance.delay.ms": 0}
    return {**on_one_node(directory, plain, controller), **own}


def main() -> int:
    if sys.argv[1:] != ["--write"]:
        print(check())
        return 0
    with apache_kafka() as (servers, url):
        drive(servers)
        STORED.write_text("\n".join(sorted(lines(shape_of(scraped(url))))) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
