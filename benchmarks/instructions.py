"""Interpreted instructions of each step between a request and its answer.

    python -m benchmarks.instructions               a Produce with acks=all, at replication factor 3
    python -m benchmarks.instructions batches       the same with batches of 64 KiB, to three partitions at once
    python -m benchmarks.instructions consume       a Fetch of a consumer that takes 1 MiB
    python -m benchmarks.instructions heartbeat     a ConsumerGroupHeartbeat that changes nothing

`--functions` prints the functions of each step too: their instructions, without those of what they call, and calls.

One record, batch of each partition or heartbeat at a time goes through a real cluster whose nodes trace themselves
(`instruction_counter.py`). That takes fifty times as long, but the counts are nearly the same in every run, also on a
busy machine. What nodes do besides is counted too: heartbeats of brokers (API 63), the metadata log (a part of API 1).
"""

from __future__ import annotations

import argparse
import os
import signal
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from benchmarks import groups, load
from benchmarks.instruction_counter import BEGIN, END, FOLDER
from heirlog.local.cluster import Cluster

TOPIC = "counted"
WARM_UP = 1_100
"""Records; of the first thousand requests of an API each one is timed."""
COUNTED = 100
COUNTED_FETCHES = 25
MEMBERS = 10
"""Of the group whose heartbeats are counted."""
BATCH_BYTES = 64 * 1024
READ_BYTES = 100 * 2**20
FETCH_BYTES = 2**20
PAUSE_S = 0.005
WAIT_S = 30.0
SHOWN = 40
"""Functions of a step."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.instructions", description=__doc__)
    parser.add_argument("of", nargs="?", choices=COUNTS, default="record")
    parser.add_argument("--functions", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "sitecustomize.py").write_text("from benchmarks.instruction_counter import install\n\ninstall()\n")
        root = str(Path(__file__).resolve().parent.parent)
        os.environ["PYTHONPATH"] = os.pathsep.join((folder, root, os.environ.get("PYTHONPATH", "")))
        os.environ[FOLDER] = folder
        with Cluster(nodes=3, ledger=False) as cluster:
            COUNTS[options.of](cluster, folder, options.functions)


def _count_records(cluster: Cluster, folder: str, functions: bool) -> None:
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
        _show(f"{role} {node}", "Produce", Path(folder, str(pid)), functions)


def _count_batches(cluster: Cluster, folder: str, functions: bool) -> None:
    load.create(cluster, TOPIC, 3)
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all", "linger.ms": 0, "log_level": 2})
    _produce(producer, WARM_UP, 0.0, BATCH_BYTES - 1024, load.PARTITIONS)
    _signal_all(cluster, BEGIN)
    _produce(producer, COUNTED, PAUSE_S, BATCH_BYTES - 1024, load.PARTITIONS)
    _signal_all(cluster, END)
    for node, pid in cluster.pids.items():
        role = "broker" if node in cluster.brokers else "controller"
        _show(f"{role} {node}", "batch of each partition", Path(folder, str(pid)), functions)


def _count_fetches(cluster: Cluster, folder: str, functions: bool) -> None:
    load.create(cluster, TOPIC, 1, partitions=1)
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "linger.ms": 5, "log_level": 2})
    _produce(producer, READ_BYTES // (BATCH_BYTES - 1024), 0.0, BATCH_BYTES - 1024)
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": "counted",
            "enable.auto.commit": False,
            "queued.max.messages.kbytes": 1_024,
            "max.partition.fetch.bytes": FETCH_BYTES,
        }
    )
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    _consume(consumer, READ_BYTES // 2)
    _signal_all(cluster, BEGIN)
    _consume(consumer, COUNTED_FETCHES * FETCH_BYTES)
    _signal_all(cluster, END)
    consumer.close()
    for node, pid in cluster.pids.items():
        _show(f"node {node}", "MiB", Path(folder, str(pid)), functions, COUNTED_FETCHES)


def _consume(consumer: Consumer, size: int) -> None:
    while size > 0:
        size -= sum(len(message.value()) for message in consumer.consume(1, timeout=1.0) if message.error() is None)


def _count_heartbeats(cluster: Cluster, folder: str, functions: bool) -> None:
    groups.create(cluster)
    with groups.Group(cluster, MEMBERS) as group:
        _beat(group, WARM_UP)
        _signal_all(cluster, BEGIN)
        _beat(group, COUNTED)
        _signal_all(cluster, END)
        coordinator = group.coordinator()
    for node, pid in cluster.pids.items():
        role = "coordinator" if node == coordinator else "node"
        _show(f"{role} {node}", "heartbeat", Path(folder, str(pid)), functions)


def _beat(group: groups.Group, count: int) -> None:
    for number in range(count):
        group.beat(group.members[number % MEMBERS])


def _produce(producer: Producer, records: int, pause_s: float, size: int = 100, partitions: int = 1) -> None:
    for _ in range(records):
        for partition in range(partitions):
            producer.produce(TOPIC, bytes(size), partition=partition)
        producer.flush(WAIT_S)
        time.sleep(pause_s)


def _signal_all(cluster: Cluster, number: signal.Signals) -> None:
    for pid in cluster.pids.values():
        os.kill(pid, number)


def _show(title: str, of: str, counts: Path, functions: bool, times: int = COUNTED) -> None:
    """of: what was counted so many times."""
    deadline = time.monotonic() + WAIT_S
    while not counts.exists() or not counts.stat().st_size:
        if time.monotonic() > deadline:
            raise RuntimeError(f"{title} has not written what it counted")
        time.sleep(0.01)
    steps: defaultdict[str, list[tuple[int, int, str]]] = defaultdict(list)
    for line in counts.read_text().splitlines():
        instructions, called, step, function = line.split("\t")
        steps[step].append((int(instructions), int(called), function))
    whole = {step: sum(count for count, _, _ in found) for step, found in steps.items()}
    print(f"\n{title}: {sum(whole.values()) / times:,.0f} instructions per {of}")
    for step in sorted(whole, key=lambda step: -whole[step]):
        print(f"    {whole[step] / times:>8,.0f}  {step}")
        for count, calls, function in sorted(steps[step], reverse=True)[: SHOWN if functions else 0]:
            print(f"        {count / times:>8,.0f}  {calls / times:>6,.1f} calls  {function}")


COUNTS: Mapping[str, Callable[[Cluster, str, bool], None]] = {
    "record": _count_records,
    "batches": _count_batches,
    "consume": _count_fetches,
    "heartbeat": _count_heartbeats,
}


if __name__ == "__main__":
    main()
