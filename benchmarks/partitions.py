"""What partitions cost that nobody uses: on a controller's image (in this process), and on a cluster of processes.

A figure is the cost of *one* operation beside N partitions that merely exist, and should not grow with N. What is about
N partitions by nature (loading them, fencing a broker that has them) is given per partition.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import psutil

from benchmarks import load
from benchmarks.gauges import Cost, brokers, everything
from heirlog.blocking import Client
from heirlog.controller.leadership import Leadership
from heirlog.local.cluster import Cluster
from heirlog.metadata.apply import apply, image_of_snapshot
from heirlog.metadata.config_def import StaticConfig, parse_static
from heirlog.metadata.image import Image
from heirlog.protocol.messages import CreateTopicsRequest, MetadataRequest
from heirlog.protocol.records import PartitionChangeRecord, PartitionRecord, RegisterBrokerRecord, TopicRecord
from heirlog.protocol.types import BrokerId

IN_MEMORY = (100, 10_000, 100_000)
ON_A_CLUSTER = (100, 10_000)
PARTITIONS_PER_TOPIC = 100
TOPICS_PER_REQUEST = 10
BUSY = 9
"""Brokers that share all partitions but one hundred, which the last broker alone holds."""
LONER = BrokerId(BUSY + 1)
READY_TIMEOUT_S = 300.0


class OnController(NamedTuple):
    partitions: int
    load_s: float
    kib_each: float
    fence_us_each: float
    """Of a broker that has a third of all."""
    fence_loner_ms: float
    change_us: float


def on_controller(partitions: int) -> OnController:
    records = list(_records(partitions))
    gc.collect()
    before = psutil.Process().memory_info().rss
    began = time.process_time()
    image = image_of_snapshot(records, len(records), 1)
    load_s = time.process_time() - began
    gc.collect()
    memory_bytes = psutil.Process().memory_info().rss - before
    static = _controller_config()
    held = sum(1 for _ in image.replicas_on(BrokerId(1))) or 1
    return OnController(
        partitions,
        load_s,
        memory_bytes / 1024 / partitions,
        1e6 * _cpu_s(lambda: Leadership(image, static).broker_leaves(BrokerId(1))) / held,
        1e3 * _cpu_s(lambda: Leadership(image, static).broker_leaves(LONER)),
        1e6 * _cpu_s(lambda: _change(image), times=1_000),
    )


def _records(partitions: int) -> Iterator[Any]:
    for broker in range(1, BUSY + 2):
        endpoint = RegisterBrokerRecord.BrokerEndpoint(name="PLAINTEXT", host="localhost", port=9092)
        yield RegisterBrokerRecord(broker_id=broker, broker_epoch=broker, end_points=[endpoint], fenced=False)
    for topic in range(-(-partitions // PARTITIONS_PER_TOPIC)):
        topic_id = topic.to_bytes(16, "big")
        yield TopicRecord(name=f"topic-{topic}", topic_id=topic_id)
        for index in range(PARTITIONS_PER_TOPIC):
            first = (topic * PARTITIONS_PER_TOPIC + index) % BUSY
            replicas = [int(LONER)] if not topic else [1 + (first + n) % BUSY for n in range(3)]
            yield PartitionRecord(
                partition_id=index,
                topic_id=topic_id,
                replicas=replicas,
                isr=replicas,
                leader=replicas[0],
                directories=[broker.to_bytes(16, "big") for broker in replicas],
            )


def _controller_config() -> StaticConfig:
    return parse_static(
        {
            "process.roles": "controller",
            "node.id": "100",
            "listeners": "CONTROLLER://localhost:9093",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": "100@localhost:9093",
        }
    )


def _change(image: Image) -> None:
    journal = image.journal()
    apply(image, PartitionChangeRecord(partition_id=0, topic_id=bytes(16), isr=[LONER]), image.offset + 1, 1, journal)


def _cpu_s(what: Callable[[], object], times: int = 1) -> float:
    began = time.process_time()
    for _ in range(times):
        what()
    return (time.process_time() - began) / times


class OnCluster(NamedTuple):
    partitions: int
    created_s: float
    broker_kib_each: float
    """Per replica."""
    controller_kib_each: float
    idle_cores: float
    metadata_us: float
    produce_us: float
    restart_s: float


def on_cluster(partitions: int, idle_s: float) -> OnCluster:
    """Three replicas each; CPU is that of all processes."""
    with Cluster(nodes=3, ledger=False) as nodes:
        time.sleep(1.0)
        controllers = [pid for pid in everything(nodes) if pid not in brokers(nodes)]
        empty = Cost.of(brokers(nodes)).memory_bytes, Cost.of(controllers).memory_bytes
        began = time.monotonic()
        create(nodes, partitions)
        load.create(nodes, "one", 3, partitions=1)
        created_s = time.monotonic() - began
        wait_until_idle(nodes)
        full = Cost.of(brokers(nodes)).memory_bytes, Cost.of(controllers).memory_bytes
        before = Cost.of(everything(nodes)).cpu_s
        time.sleep(idle_s)
        idle_cores = (Cost.of(everything(nodes)).cpu_s - before) / idle_s
        metadata_us = _metadata_us(nodes)
        before = Cost.of(everything(nodes)).cpu_s
        trips = load.round_trips(nodes, "one", acks="all")
        produce_us = 1e6 * (Cost.of(everything(nodes)).cpu_s - before - idle_cores * trips.seconds) / trips.count
        began = time.monotonic()
        nodes.stop(1)
        nodes.start(1)
        nodes.wait_until_ready(READY_TIMEOUT_S)
        restart_s = time.monotonic() - began
    return OnCluster(
        partitions,
        created_s,
        (full[0] - empty[0]) / 1024 / partitions / 3,
        (full[1] - empty[1]) / 1024 / partitions,
        idle_cores,
        metadata_us,
        produce_us,
        restart_s,
    )


def create(nodes: Cluster, partitions: int) -> list[str]:
    """In topics of a hundred, whose names are returned. Raises RuntimeError."""
    topics = [
        CreateTopicsRequest.CreatableTopic(name=f"many-{n}", num_partitions=PARTITIONS_PER_TOPIC, replication_factor=3)
        for n in range(partitions // PARTITIONS_PER_TOPIC)
    ]
    with Client(nodes.bootstrap_servers, timeout_s=READY_TIMEOUT_S) as client:
        for at in range(0, len(topics), TOPICS_PER_REQUEST):
            request = CreateTopicsRequest(topics=topics[at : at + TOPICS_PER_REQUEST], timeout_ms=120_000)
            for topic in client.send_to_any(request).topics:
                if topic.error_code:
                    raise RuntimeError(f"{topic.name} was not created: {topic.error_message}")
    return [topic.name for topic in topics]


def wait_until_idle(nodes: Cluster) -> None:
    """Until new replicas have found their leaders: the processes use next to no CPU."""
    deadline = time.monotonic() + READY_TIMEOUT_S
    while time.monotonic() < deadline:
        before = Cost.of(everything(nodes)).cpu_s
        time.sleep(1.0)
        if Cost.of(everything(nodes)).cpu_s - before < 0.2:
            return


def _metadata_us(nodes: Cluster, times: int = 500) -> float:
    request = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="one")])
    with Client(nodes.bootstrap_servers) as client:
        client.send_to_any(request)
        before = Cost.of(brokers(nodes)).cpu_s
        for _ in range(times):
            client.send_to_any(request)
        return 1e6 * (Cost.of(brokers(nodes)).cpu_s - before) / times


def report(scale: float) -> None:
    """Both tables; `scale` below 1 leaves out the largest sizes."""
    sizes = IN_MEMORY if scale >= 1 else IN_MEMORY[:-1]
    print("\n| partitions on a controller | load | memory each | fence a broker, per partition of it |", end="")
    print(" fence one that has 100 | one change |\n|---|---|---|---|---|---|")
    for found in map(on_controller, sizes):
        print(
            f"| {found.partitions:,} | {found.load_s:.2f} s | {found.kib_each:.2f} KiB | {found.fence_us_each:.0f} µs "
            f"| {found.fence_loner_ms:.1f} ms | {found.change_us:.1f} µs |",
            flush=True,
        )
    print("\n| partitions on three brokers, RF 3 | created | memory: a replica, on the controller |", end="")
    print(" CPU idle | Metadata of one | acks=all of one | a broker restarted |\n|---|---|---|---|---|---|---|")
    for partitions in ON_A_CLUSTER if scale >= 1 else (100, 1_000):
        cost = on_cluster(partitions, idle_s=max(3.0, 10.0 * scale))
        print(
            f"| {cost.partitions:,} | {cost.created_s:.1f} s | {cost.broker_kib_each:.2f} KiB, "
            f"{cost.controller_kib_each:.2f} KiB | {cost.idle_cores:.3f} cores | {cost.metadata_us:.0f} µs "
            f"| {cost.produce_us:.0f} µs | {cost.restart_s:.1f} s |",
            flush=True,
        )


if __name__ == "__main__":
    report(1.0)
