"""`heirlog audit` on directories that Apache Kafka wrote: nothing is wrong in healthy ones, and damage is found.

The brokers write a plain, a compacted and a group's topic. One stops cleanly and one is killed while they do, so the
leaders change. All stop; two stop cleanly, and one is killed. Then a bit is flipped in one replica, and another one
loses its oldest segment.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import jars
from apache_kafka import eventually
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from recovery import BROKERS, CONTROLLER, KafkaNodes, kafka_nodes

TOPIC = "audited"
COMPACTED = "audited-keys"
RECORDS = 300
PATIENCE_S = 60


def check() -> str:
    jars.fetch()
    with kafka_nodes() as nodes, tempfile.TemporaryDirectory(prefix="heirlog-audit-") as out:
        write(nodes)
        for node in (*BROKERS[1:], CONTROLLER):
            nodes.stop(node)
        nodes.kill(BROKERS[0])
        healthy = audit(nodes.data, Path(out))
        if healthy["findings"]:
            raise AssertionError(f"findings in healthy directories: {healthy['findings']}")
        kinds = {("batch-damaged", 2), ("offsets-missing", 3)}
        damage(nodes.data)
        found = {(finding["kind"], finding["replica"]) for finding in audit(nodes.data, Path(out))["findings"]}
        if not kinds <= found:
            raise AssertionError(f"planted {kinds}, found {found}")
    return f"{healthy['replicas']} replicas, {healthy['records']} records, {len(kinds)} kinds of damage"


def write(nodes: KafkaNodes) -> None:
    servers = {"bootstrap.servers": nodes.bootstrap_servers}
    admin = AdminClient(servers)
    config = {"min.insync.replicas": "2", "segment.bytes": str(1 << 20)}
    compacted = {**config, "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "1000"}
    topics = [NewTopic(TOPIC, 2, 3, config=config), NewTopic(COMPACTED, 1, 3, config=compacted)]
    for created in admin.create_topics(topics).values():
        created.result()
    producer = Producer({**servers, "enable.idempotence": True, "batch.num.messages": 10})
    for number in range(RECORDS):
        producer.produce(TOPIC, b"%d" % number * 5000, partition=number % 2)
        producer.produce(COMPACTED, b"%d" % number, key=b"%d" % (number % 7))
        if number % 30 == 0:
            producer.flush()
        if number == RECORDS // 3:
            nodes.stop(1)
        elif number == RECORDS // 2:
            nodes.start(1)
            eventually(lambda: in_sync(admin), "broker 1 is back in sync")
            nodes.kill(2)
        elif number == RECORDS * 2 // 3:
            nodes.start(2)
    left = producer.flush(PATIENCE_S)
    assert left == 0, f"{left} records were not acknowledged"
    consumer = Consumer({**servers, "group.id": "auditors", "auto.offset.reset": "earliest"})
    consumer.subscribe([TOPIC])
    assert consumer.consume(RECORDS, PATIENCE_S)
    consumer.commit(asynchronous=False)
    consumer.close()
    eventually(lambda: in_sync(admin), "all replicas are in sync")


def in_sync(admin: AdminClient) -> bool:
    topics = admin.list_topics(timeout=10).topics
    return all(
        len(partition.isrs) == 3 for name in (TOPIC, COMPACTED) for partition in topics[name].partitions.values()
    )


def damage(data: Path) -> None:
    (first, *_) = sorted((data / "broker-2" / "data" / f"{TOPIC}-0").glob("*.log"))
    content = bytearray(first.read_bytes())
    content[len(content) // 2] ^= 1
    first.write_bytes(content)
    (oldest, *_) = sorted((data / "broker-3" / "data" / f"{TOPIC}-1").glob("*.log"))
    for path in oldest.parent.glob(f"{oldest.stem}.*"):
        path.unlink()


def audit(data: Path, out: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "heirlog", "audit", str(data), "--out", str(out / "out"), "--json"]
    ended = subprocess.run([*command, "--master", "local[2]"], capture_output=True, text=True, check=False)
    if ended.returncode not in (0, 1):
        raise AssertionError(f"{ended.stderr}\nexit code {ended.returncode}")
    found: dict[str, Any] = json.loads(ended.stdout)
    return found
