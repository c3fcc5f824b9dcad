"""Interpreted instructions of each step between a request and its answer.

    python -m benchmarks.instructions               a Produce with acks=all, at replication factor 3
    python -m benchmarks.instructions heartbeat     a ConsumerGroupHeartbeat that changes nothing

One record or heartbeat at a time goes through a real cluster whose nodes trace themselves (`instruction_counter.py`).
That takes fifty times as long, but the counts are nearly the same in every run, also on a busy machine. What nodes do
besides is counted too (heartbeats of brokers, the metadata log: API 63 and a part of API 1).
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from benchmarks import groups, load
from benchmarks.instruction_counter import BEGIN, END, FOLDER
from heirlog.local.cluster import Cluster

TOPIC = "counted"
WARM_UP = 1_100
"""Records; of the first thousand requests of an API each one is timed."""
COUNTED = 100
MEMBERS = 10
"""Of the group whose heartbeats are counted."""
PAUSE_S = 0.005
WAIT_S = 30.0


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "sitecustomize.py").write_text("from benchmarks.instruction_counter import install\n\ninstall()\n")
        root = str(Path(__file__).resolve().parent.parent)
        os.environ["PYTHONPATH"] = os.pathsep.join((folder, root, os.environ.get("PYTHONPATH", "")))
        os.environ[FOLDER] = folder
        with Cluster(nodes=3, ledger=False) as cluster:
            if sys.argv[1:] == ["heartbeat"]:
                _count_heartbeats(cluster, folder)
            else:
                _count_produces(cluster, folder)


def _count_produces(cluster: Cluster, folder: str) -> None:
    load.create(cluster, TOPIC, 3, partitions=1)
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all", "linger.ms": 0, "log_level": 2})
    _produce(producer, WARM_UP, 0.0)
    leader = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 2}).list_topics(TOPIC)
    leads = leader.topics[TOPIC].partitions[0].leader
    _signal_all(cluster, BEGIN)
    _produce(producer, COUNTED, PAUSE_S)
    _signal_all(cluster, END)
    for node, pid in cluster.pids.items():
        role = "leader" if node == leads else "follower" if node in cluster.brokers else "controller"
        _show(f"{role} {node}", "Produce", Path(folder, str(pid)))


def _count_heartbeats(cluster: Cluster, folder: str) -> None:
    groups.create(cluster)
    with groups.Group(cluster, MEMBERS) as group:
        _beat(group, WARM_UP)
        _signal_all(cluster, BEGIN)
        _beat(group, COUNTED)
        _signal_all(cluster, END)
        coordinator = group.coordinator()
    for node, pid in cluster.pids.items():
        role = "coordinator" if node == coordinator else "node"
        _show(f"{role} {node}", "heartbeat", Path(folder, str(pid)))


def _beat(group: groups.Group, count: int) -> None:
    for number in range(count):
        group.beat(group.members[number % MEMBERS])


def _produce(producer: Producer, records: int, pause_s: float) -> None:
    for _ in range(records):
        producer.produce(TOPIC, b"x" * 100, partition=0)
        producer.flush(WAIT_S)
        time.sleep(pause_s)


def _signal_all(cluster: Cluster, number: signal.Signals) -> None:
    for pid in cluster.pids.values():
        os.kill(pid, number)


def _show(title: str, of: str, counts: Path) -> None:
    """of: what was counted."""
    deadline = time.monotonic() + WAIT_S
    while not counts.exists() or not counts.stat().st_size:
        if time.monotonic() > deadline:
            raise RuntimeError(f"{title} has not written what it counted")
        time.sleep(0.01)
    found = [line.split("\t") for line in counts.read_text().splitlines()]
    print(f"\n{title}: {sum(int(count) for count, _ in found) / COUNTED:,.0f} instructions per {of}")
    for count, name in sorted(found, key=lambda row: -int(row[0])):
        print(f"    {int(count) / COUNTED:>8,.0f}  {name}")


if __name__ == "__main__":
    main()
